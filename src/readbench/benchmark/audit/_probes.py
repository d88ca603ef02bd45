"""Shortcut probes: how well a task is solved by a representation that knows nothing but the shortcut.

A probe gives scores (Q, N). Items with equal scores share the mean discount of their places, so that a constant probe
scores chance on any corpus order.

Significance is tested by permutation. The windows of one class in one split group are a unit, since they share the
properties of the group. Labels are permuted among the units of the queries and among those of the corpus; p is the
share of permutations in which the probe is as far above chance as on the true labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from readbench.benchmark.protocol import Task
from readbench.engine.method import Method
from readbench.engine.preparation import LevelScale, channel_axis, measure_levels
from readbench.engine.windows import WindowSet, concatenate

DEPTH = 10
"""Depth of NDCG@10, the metric of the probes."""
DEALS = 299
"""Permutations of the labels."""

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
DISCOUNTS: Floats = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(DEPTH) + 2))])
"""Sum of the first 0, 1, ... DEPTH discounts."""


@dataclass(frozen=True)
class Probe:
    """A representation that knows only a shortcut.

    Args:
        title: title of its row.
        sees: what it looks at, in words.
        score: (Q, N) scores of the corpus for the queries, or the reason why it does not apply.
        leak: True if it cannot be the fault itself, so that any success is a leak.
        use: whether methods see it, in words.
    """

    title: str
    sees: str
    score: Callable[[Task, WindowSet], Floats | str]
    leak: bool
    use: str = "methods see it"


def share_discounts(scores: NDArray[np.floating]) -> Floats:
    """(Q, N) the discount of each item at its place among the first DEPTH; equals share that of all their places.

    >>> share_discounts(np.array([[0.0, 2.0, 0.0]])).round(3).tolist()
    [[0.565, 1.0, 0.565]]
    """
    out = np.empty(scores.shape, np.float64)
    places = np.concatenate([DISCOUNTS, np.full(max(0, scores.shape[1] - DEPTH), DISCOUNTS[-1])])
    for row, own in zip(out, scores, strict=True):
        values, block, counts = np.unique(-own, return_inverse=True, return_counts=True)
        stop = np.cumsum(counts)
        row[:] = ((places[stop] - places[stop - counts]) / counts)[block] if len(values) else 0.0
    return out


def measure_gain(discounts: Floats, queries: Labels, corpus: Labels) -> Floats:
    """(Q,) expected NDCG@10 of a ranking with shared places."""
    relevant = corpus == queries[:, None]
    ideal = DISCOUNTS[np.minimum(relevant.sum(axis=1), DEPTH)]
    gain: Floats = (discounts * relevant).sum(axis=1) / np.where(ideal > 0, ideal, 1.0)
    return gain


def expect_by_chance(queries: Labels, corpus: Labels) -> Floats:
    """(Q,) expected NDCG@10 of a random order.

    Every place holds a relevant item with probability R / N. So it is R / N times the sum of the first min(10, N)
    discounts over the sum of the first min(10, R); R / N itself where ten items or more are relevant.

    >>> expect_by_chance(np.array([1]), np.array([1, 2, 2, 2])).round(3).tolist()
    [0.64]
    """
    count = (corpus == queries[:, None]).sum(axis=1)
    ideal = DISCOUNTS[np.minimum(count, DEPTH)]
    chance: Floats = count / len(corpus) * DISCOUNTS[min(DEPTH, len(corpus))] / np.where(ideal > 0, ideal, 1.0)
    return chance


def deal_labels(discounts: Floats, queries: WindowSet, corpus: WindowSet, seed: int = 0) -> Floats:
    """(DEALS,) excess of a ranking over chance when labels are permuted among units."""
    rng = np.random.default_rng([seed, 0xA0D17])
    asked, held = _units(queries), _units(corpus)
    found = np.empty(DEALS)
    for deal in range(DEALS):
        own, others = _dealt(asked, rng), _dealt(held, rng)
        found[deal] = (measure_gain(discounts, own, others) - expect_by_chance(own, others)).mean()
    return found


def count_units(windows: WindowSet) -> int:
    """Number of units: classes in split groups."""
    return len(_units(windows)[0])


def _units(windows: WindowSet) -> tuple[Labels, NDArray[np.intp]]:
    """Class of each unit, and the unit of each window."""
    _, group = np.unique(windows.groups, return_inverse=True)
    pairs, unit = np.unique(np.stack([group, windows.labels], axis=1), axis=0, return_inverse=True)
    return pairs[:, 1].astype(np.int32), unit.reshape(-1)


def _dealt(units: tuple[Labels, NDArray[np.intp]], rng: np.random.Generator) -> Labels:
    labels, unit = units
    dealt: Labels = rng.permutation(labels)[unit]
    return dealt


def _see_presence(task: Task, corpus: WindowSet) -> Floats | str:
    if len({frozenset(corpus.channel_sets[i]) for i in np.unique(corpus.channel_set)}) < 2:
        return "all windows have the same channels"
    return Method("channel-presence").fit(corpus, task.normals).score(task.queries).astype(np.float64)


def _see_before(task: Task, corpus: WindowSet) -> Floats | str:
    if not any(part.context is not None and part.context.has_before.any() for part in (task.queries, corpus)):
        return "no window brings the time before it"
    return Method("before-level").fit(corpus, task.normals).score(task.queries).astype(np.float64)


def _see_level(task: Task, corpus: WindowSet) -> Floats | str:
    return _compare_levels(task.queries, corpus, lambda values: values)


def _see_first_row(task: Task, corpus: WindowSet) -> Floats | str:
    return _compare_levels(task.queries, corpus, lambda values: values[:, :1])


def see_any_row(task: Task, corpus: WindowSet) -> Floats:
    """(Q, N) scores of a random row of each window, compared like the first row."""
    rng = np.random.default_rng([task.seed, 0x0FF])

    def draw(values: NDArray[np.float32]) -> NDArray[np.float32]:
        row = int(rng.integers(values.shape[1]))
        return values[:, row : row + 1]

    return _compare_levels(task.queries, corpus, draw)


def _compare_levels(
    queries: WindowSet, corpus: WindowSet, part: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> Floats:
    """(Q, N) negative distances between the mean of each channel over a part of the window, scaled by the corpus."""
    axis = channel_axis(corpus)

    def levels(windows: WindowSet) -> Floats:
        places = range(len(windows))
        return measure_levels([part(windows.values(i)) for i in places], [windows.channels(i) for i in places], axis)

    raw = levels(corpus)
    scale = LevelScale.of(axis, raw)
    asked, held = scale(levels(queries))[:, : len(axis)], scale(raw)[:, : len(axis)]
    return np.negative(cdist(asked, held))


def _see_position(task: Task, corpus: WindowSet) -> Floats | str:
    asked, held = find_places(task.queries), find_places(corpus)
    if len(np.unique(held)) < 2 or np.isnan(asked).any() or np.isnan(held).any():
        return "windows have no place in a recording, or all the same"
    return -np.abs(asked[:, None] - held)


def find_places(windows: WindowSet) -> Floats:
    """(N,) first step of each window in its recording by its id; NaN if unknown."""
    steps = [identity.rpartition("@")[2] for identity in windows.ids.tolist()]
    return np.array([float(step) if step.isdigit() else np.nan for step in steps])


def _see_session(task: Task, corpus: WindowSet) -> Floats | str:
    both = concatenate([task.queries, corpus.with_stats(None)])
    starts = np.empty(0) if np.isnan(both.times).any() else _find_starts(both)
    if len(np.unique(np.round(starts, 3))) < 3:
        return "when recordings began is not known"
    asked, held = starts[: len(task.queries)], starts[len(task.queries) :]
    return -np.abs(asked[:, None] - held)


def _find_starts(windows: WindowSet) -> Floats:
    """(N,) start time of each window's recording: its time minus its place, or the earliest known time."""
    _, recording = np.unique([i.rpartition("@")[0] or i for i in windows.ids.tolist()], return_inverse=True)
    if windows.context is not None and np.isfinite(windows.context.rates).all():
        return windows.times - np.nan_to_num(find_places(windows)) / windows.context.rates
    first = np.full(recording.max(initial=0) + 1, np.inf)
    np.minimum.at(first, recording, windows.times)
    return first[recording]


def _see_asset(task: Task, corpus: WindowSet) -> Floats | str:
    if len(np.unique(corpus.assets)) < 2:
        return "one asset, or none is named"
    same = corpus.assets == task.queries.assets[:, None]
    if not same.any():
        return "no query shares its asset with the corpus"
    return same.astype(np.float64)


def _see_length(task: Task, corpus: WindowSet) -> Floats | str:
    if len(np.unique(corpus.lengths)) < 2:
        return "all windows have the same length"
    return -np.abs(np.log(task.queries.lengths)[:, None] - np.log(corpus.lengths))


HIDDEN = "methods do not see it, but may see what goes with it"
PROBES = {
    "presence": Probe("Channel presence", "which channels a window has", _see_presence, leak=True),
    "length": Probe("Window length", "how many steps a window has", _see_length, leak=True),
    "before": Probe("Before alone", "level and spread of the time before the window", _see_before, leak=True),
    "position": Probe(
        "Clock position", "where in its recording the window was cut", _see_position, leak=True, use=HIDDEN
    ),
    "session": Probe("Session", "when the recording began", _see_session, leak=True, use=HIDDEN),
    "asset": Probe("Asset", "whose window it is", _see_asset, leak=True, use=HIDDEN),
    "first-row": Probe("First row", "the first reading of each channel", _see_first_row, leak=False),
    "level": Probe("Level", "the mean of each channel", _see_level, leak=False),
}
"""All probes by name."""
