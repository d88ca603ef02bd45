"""Leaks from corpus to queries: shared groups, overlapping samples, copies and near copies.

A copy equals another window value by value. A near copy differs from it by less than NEAR of its variation: the root of
the summed squared differences over that of the summed squared departures from each channel's mean, channels scaled as
the task scales them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.engine.preparation import Scaler
from readbench.engine.windows import WindowSet, concatenate

NEAR = 0.02
"""Largest difference of near copies over the variation of the window."""
TOLERANCE = 1e-6
"""Largest difference between two values that count as equal."""


@dataclass(frozen=True)
class Leaks:
    """Leaks from the corpus to the queries.

    Args:
        shared_groups: split groups on both sides.
        overlaps: (query id, corpus id) pairs cut from overlapping samples of one recording.
        duplicates: (query id, corpus id) pairs with equal values, constant windows left out.
        constant: number of queries without variation, which are not compared.
    """

    shared_groups: tuple[str, ...]
    overlaps: tuple[tuple[str, str], ...]
    duplicates: tuple[tuple[str, str], ...]
    constant: int

    @property
    def sound(self) -> bool:
        """True when no group, sample or window occurs in both queries and corpus."""
        return not (self.shared_groups or self.overlaps or self.duplicates)


def find_leaks(task: Task) -> Leaks:
    """Look for leaks in the largest corpus of a task."""
    queries, corpus = task.queries, task.corpus
    varying = np.array([float(np.ptp(w.values, axis=1).max()) > 0 for w in queries], bool)
    return Leaks(
        shared_groups=tuple(sorted(set(queries.groups.tolist()) & set(corpus.groups.tolist()))),
        overlaps=tuple(_overlaps(queries, corpus)),
        duplicates=tuple(_duplicates(queries[varying], corpus)),
        constant=int((~varying).sum()),
    )


def _overlaps(queries: WindowSet, corpus: WindowSet) -> Iterator[tuple[str, str]]:
    """Pairs of the same recording whose steps overlap; ids are `recording@first step`."""
    places: dict[str, list[tuple[int, int, str]]] = {}
    for identity, length in zip(corpus.ids.tolist(), corpus.lengths.tolist(), strict=True):
        recording, start = _place(identity)
        places.setdefault(recording, []).append((start, start + length, identity))
    for identity, length in zip(queries.ids.tolist(), queries.lengths.tolist(), strict=True):
        recording, start = _place(identity)
        for other_start, other_stop, other in places.get(recording, ()):
            if start < other_stop and other_start < start + length:
                yield identity, other


def _place(identity: str) -> tuple[str, int]:
    recording, _, start = identity.rpartition("@")
    return (recording, int(start)) if start.isdigit() else (identity, 0)


def _duplicates(queries: WindowSet, corpus: WindowSet) -> Iterator[tuple[str, str]]:
    """Pairs with equal values: a few sums find the candidates, a full comparison decides."""
    left, right = _sketches(queries), _sketches(corpus)
    for q, sketch in enumerate(left):
        close = np.isclose(right, sketch, rtol=1e-5, atol=TOLERANCE).all(axis=1)
        for c in np.flatnonzero(close):
            own, other = queries.values(q), corpus.values(int(c))
            if own.shape == other.shape and np.allclose(own, other, rtol=0, atol=TOLERANCE):
                yield str(queries.ids[q]), str(corpus.ids[c])


def _sketches(windows: WindowSet) -> NDArray[np.float64]:
    """(N, 5) shape and three sums of each window, equal for equal windows."""
    rows = []
    for window in windows:
        values = window.values.astype(np.float64)
        ramp = np.linspace(-1.0, 1.0, values.shape[1])
        rows.append((*values.shape, values.mean(), values.std(), (values * ramp).mean()))
    return np.array(rows, np.float64).reshape(len(rows), 5)


@dataclass(frozen=True)
class Copy:
    """Two windows that are near copies, or equal.

    Args:
        first: id of the one.
        second: id of the other.
        same_label: whether they carry the same label.
        distance: how far they differ, as a share of their variation.
    """

    first: str
    second: str
    same_label: bool
    distance: float


@dataclass(frozen=True)
class Copies:
    """Near copies in a task.

    Args:
        across: a query first, then an item of its corpus.
        within: two items of the corpus, of other groups or under other labels.
        queries: how many queries have a near copy in the corpus.
        contradicted: how many items of the corpus have a near copy under another label.
    """

    across: tuple[Copy, ...]
    within: tuple[Copy, ...]
    queries: int
    contradicted: int


def find_copies(task: Task) -> Copies:
    """Find near copies among the queries and the clean corpus; windows without variation are skipped."""
    corpus = task.corpus_at(min(task.levels))
    both = concatenate([task.queries, corpus.with_stats(None)])
    scaled = Scaler.of("channel", task.corpus)(both)
    across, within = [], []
    for first, second, distance in _near_pairs(scaled):
        same = bool(both.labels[first] == both.labels[second])
        pair = Copy(str(both.ids[first]), str(both.ids[second]), same, distance)
        if first < len(task.queries) <= second:
            across.append(pair)
        elif first >= len(task.queries) and (both.groups[first] != both.groups[second] or not same):
            within.append(pair)
    doubtful = {name for pair in within if not pair.same_label for name in (pair.first, pair.second)}
    return Copies(tuple(across), tuple(within), len({pair.first for pair in across}), len(doubtful))


def _near_pairs(windows: WindowSet) -> Iterator[tuple[int, int, float]]:
    """Pairs (i, j, distance) with i < j, of one shape and the same channels."""
    kinds = np.stack([windows.channel_set, windows.lengths], axis=1)
    _, kind = np.unique(kinds, axis=0, return_inverse=True)
    for number in range(int(kind.max(initial=-1)) + 1):
        members = np.flatnonzero(kind.reshape(-1) == number)
        values = np.stack([windows.values(int(i)) for i in members]).astype(np.float32)
        spread = ((values - values.mean(axis=2, keepdims=True)) ** 2).sum(axis=(1, 2), dtype=np.float64)
        flat = values.reshape(len(members), -1)
        squares = (flat.astype(np.float64) ** 2).sum(axis=1)
        for i in np.flatnonzero(spread > 0)[:-1]:
            rough = squares[i] + squares[i + 1 :] - 2.0 * (flat[i + 1 :] @ flat[i])
            most = NEAR**2 * np.minimum(spread[i], spread[i + 1 :])
            # The expanded square is good to some 1e-5 of the squares: it only chooses whom to compare in full.
            close = i + 1 + np.flatnonzero((rough <= most + 1e-5 * (squares[i] + squares[i + 1 :])) & (most > 0))
            exact = ((flat[close] - flat[i]) ** 2).sum(axis=1, dtype=np.float64)
            for j, square in zip(close.tolist(), exact.tolist(), strict=True):
                if square <= most[j - i - 1]:
                    distance = float(np.sqrt(square / min(spread[i], spread[j])))
                    yield int(members[i]), int(members[j]), distance
