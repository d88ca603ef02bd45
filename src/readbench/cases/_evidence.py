"""Why a case is like a window: the channels that depart from normal operation in the same way, aligned and drawn.

A channel's agreement is half the cosine of both departures, after alignment, and half their correlation: a constant
offset on both sides agrees in its level, and says nothing about its course. With a and b the sizes log(1 + departure)
of the channels of window and case, `support` joins the channels in one number, the mean of

    how alike they move           mean of the agreements, weighing as much as the smaller of the two departures
    whether the same ones move    correlation of a and b over the channels, those of their steps (movement) beside them
    whether they move as much     1 - 2 sum |a - b| / sum (a + b): what departs on one side alone speaks against it

of one or two channels the first alone. `measure_separation` says what it is worth in a library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import Snapshot
from readbench.cases._models import Case, ChannelEvidence, Evidence, Separation
from readbench.common.calibration import auroc
from readbench.common.plots import FAULT, NORMAL_GREY, REFERENCE_GREY, STYLE
from readbench.engine.alignment import warping_path
from readbench.engine.preparation import LEAST_SPREAD, ChannelStats, resample
from readbench.engine.windows import NORMAL, Window, WindowSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_STEPS = 256
"""Windows are brought to at most so many steps before they are laid over each other."""
DEPARTS = 2.0
"""Root mean square from which a channel counts as departing; in normal operation it is about 1."""
ALIKE = 0.4
"""Agreement of two departures from which they count as the same; two constant offsets under noise have nearly .5."""
FARTHEST = 20.0
"""Departures end here where windows are aligned, so that one dead sensor does not decide the alignment."""
LEAST_BEFORE = 8
"""Steps of the time before from which it tells how far a window departs."""
LEAST_SINCE = 8
"""Steps since the onset, at least, over which a window's departure is measured: fewer are noise."""
FEWEST = 3
"""Channels from which it tells something which of them move: two are always in line."""
Series = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NormalReference:
    """What normal is: statistics of the channels, and where they come from."""

    stats: ChannelStats
    words: str

    def departures(self, window: Window, channels: list[str]) -> Series:
        """(C, T) values of some channels in standard deviations from normal; a channel that never moves reads 0."""
        rows = [window.channels.index(name) for name in channels]
        values = resample(window.values[rows], min(MOST_STEPS, window.values.shape[1])).astype(np.float64)
        mean = np.array([self.stats.mean.get(name, 0.0) for name in channels])[:, None]
        std = np.array([self.stats.std.get(name, 0.0) for name in channels])[:, None]
        return np.divide(values - mean, std, out=np.zeros_like(values), where=std > 1e-7 * np.abs(mean))


def reference_for(snapshot: Snapshot, window: Window) -> NormalReference:
    """What a window is measured by.

    The time before it, where it brings one; normal operation of its asset; of all assets where that has none; the cases
    where there are no normals. A spread in the time before counts as at least a share of that among the cases: else the
    first movement of what stood still would be off every scale.
    """
    if window.before is not None:
        return reference_before(window, window.before, snapshot.reference)
    normals, asset = snapshot.normals, window.asset
    of_asset = normals[np.flatnonzero(normals.assets == asset)] if asset else normals[:0]
    if len(of_asset):
        return NormalReference(ChannelStats.of(of_asset), f"{len(of_asset)} normal windows of {asset}")
    if len(normals):
        return NormalReference(ChannelStats.of(normals), f"{len(normals)} normal windows of all assets")
    return NormalReference(snapshot.reference, "the cases themselves, for want of normal windows")


def reference_before(window: Window, before: NDArray[np.floating], whole: ChannelStats) -> NormalReference:
    """The time before a window; `whole` is what the channels do among all cases."""
    stats = ChannelStats.of(WindowSet.from_arrays([before], channels=window.channels))
    spread = {name: max(std, LEAST_SPREAD * whole.std.get(name, 0.0)) for name, std in stats.std.items()}
    return NormalReference(ChannelStats(stats.mean, spread), f"the {before.shape[1]} steps before it")


def measure_departure(window: Window, whole: ChannelStats) -> float:
    """How far the channel that moved most departs from the time before; NaN where a window brings (nearly) none."""
    if window.before is None or window.before.shape[1] < LEAST_BEFORE:
        return float("nan")
    departures = reference_before(window, window.before, whole).departures(window, list(window.channels))
    return float(np.sqrt((departures**2).mean(axis=1)).max())


def explain_match(snapshot: Snapshot, window: Window, case: Case, onset: int = 0) -> Evidence:
    """Compare a window with a case, each measured by the time before it or the normal operation of its own asset.

    Args:
        snapshot: of the library.
        window: that is asked about.
        case: of the library.
        onset: step of the window at which it begins to depart. How far it departs is measured from there on: of a fault
            that is young, most of the window is still normal.
    """
    stored = snapshot.windows([snapshot.position(case.id)])[0]
    shared = [name for name in window.channels if name in stored.channels]
    ours, theirs = reference_for(snapshot, window), reference_for(snapshot, stored)
    departures = ours.departures(window, shared), theirs.departures(stored, shared)
    channels, path, distance = _compare(*departures, shared, onset / window.values.shape[1])
    return Evidence(
        case=case,
        channels=tuple(sorted(channels, key=lambda c: (not c.same_way, -min(c.window, c.case)))),
        support=_support(channels),
        only_window=tuple(name for name in window.channels if name not in shared),
        only_case=tuple(name for name in stored.channels if name not in shared),
        path=tuple((int(i), int(j)) for i, j in path),
        distance=distance,
        reference=ours.words if ours.words == theirs.words else f"{ours.words}; for the case, {theirs.words}",
    )


def _compare(
    window: Series, case: Series, names: list[str], begins: float = 0.0
) -> tuple[list[ChannelEvidence], NDArray[np.int64], float]:
    """Evidence of each channel, the common path, and the root mean square distance along it.

    Args:
        window: (C, T) departures of the window.
        case: (C, T') those of the case.
        names: of the C channels.
        begins: share of the window after which its departures count for their size.
    """
    if not names:
        return [], np.empty((0, 2), np.int64), float("inf")
    ours, theirs = (series.clip(-FARTHEST, FARTHEST) for series in (window, case))
    path, cost = warping_path(ours, theirs)
    left, right = ours[:, path[:, 0]], theirs[:, path[:, 1]]
    level, course = _cosines(left, right), _cosines(_centre(left), _centre(right))
    first = max(0, min(round(begins * window.shape[1]), window.shape[1] - LEAST_SINCE))
    far = [np.sqrt((series**2).mean(axis=1)) for series in (window[:, first:], case)]
    channels = [
        _judge_channel(name, (float(far[0][c]), float(far[1][c])), (level[c] + course[c]) / 2, window[c], case[c])
        for c, name in enumerate(names)
    ]
    return channels, path, float(np.sqrt(cost / (len(path) * len(names))))


def _judge_channel(
    name: str, far: tuple[float, float], agreement: float, window: Series, case: Series
) -> ChannelEvidence:
    least, most = min(far), max(far)
    alone = most >= DEPARTS and least < DEPARTS and most >= 2 * least
    return ChannelEvidence(
        name=name,
        window=far[0],
        case=far[1],
        agreement=float(agreement),
        same_way=least >= DEPARTS and agreement >= ALIKE,
        against=alone or (least >= DEPARTS and agreement < 0),
        window_series=tuple(window.tolist()),
        case_series=tuple(case.tolist()),
    )


def _support(channels: list[ChannelEvidence]) -> float:
    """The evidence in one number, from -1 to 1; 0 where nothing is shared."""
    if not channels:
        return 0.0
    sizes = np.array([(channel.window, channel.case) for channel in channels]).T
    weights = sizes.min(axis=0)
    agreement = np.array([channel.agreement for channel in channels])
    alike = float(weights @ agreement / weights.sum()) if weights.sum() else 0.0
    if len(channels) < FEWEST:
        return alike
    moved = [
        [float(np.sqrt(np.mean(np.diff(row) ** 2))) if len(row) > 1 else 0.0 for row in series]
        for series in zip(*((channel.window_series, channel.case_series) for channel in channels), strict=True)
    ]
    same = float(_cosines(*(_centre(row[None]) for row in np.log1p(np.concatenate([sizes, moved], axis=1))))[0])
    ours, theirs = np.log1p(sizes)
    total = float((ours + theirs).sum())
    as_much = 1.0 - 2.0 * float(np.abs(ours - theirs).sum()) / total if total else 0.0
    return (alike + same + as_much) / 3


def _cosines(left: Series, right: Series) -> Series:
    """(C,) cosine of each row; 0 where a row is 0."""
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide((left * right).sum(axis=1), lengths, out=np.zeros(len(left)), where=lengths > 0)


def _centre(rows: Series) -> Series:
    centred: Series = rows - rows.mean(axis=1, keepdims=True)
    return centred


def measure_separation(snapshot: Snapshot, pairs: int, seed: int = 0) -> Separation:
    """How well evidence tells pairs of one fault from pairs of two, all of different recordings.

    Args:
        snapshot: of the library.
        pairs: of each kind, at most.
        seed: that draws them.
    """
    drawn = _draw_pairs(snapshot, pairs, np.random.default_rng(seed))
    places = sorted({place for kind in drawn.values() for pair in kind for place in pair})
    windows = dict(zip(places, snapshot.windows(places), strict=True))
    by_asset: dict[str, NormalReference] = {}

    def measured_by(window: Window) -> NormalReference:
        if window.before is not None:
            return reference_for(snapshot, window)
        if window.asset not in by_asset:
            by_asset[window.asset] = reference_for(snapshot, window)
        return by_asset[window.asset]

    def compare(one: int, other: int) -> list[ChannelEvidence]:
        pair = windows[one], windows[other]
        shared = [name for name in pair[0].channels if name in pair[1].channels]
        ours, theirs = (measured_by(window).departures(window, shared) for window in pair)
        return _compare(ours, theirs, shared)[0]

    found = {same: [compare(*pair) for pair in kind] for same, kind in drawn.items()}
    support, counted = (
        [[of(evidence) for evidence in found[same]] for same in (True, False)] for of in (_support, _counted)
    )
    enough = all(map(len, support))
    return Separation(
        same=len(found[True]),
        other=len(found[False]),
        support=auroc(*support) if enough else None,
        same_way=auroc(*counted) if enough else None,
    )


def _draw_pairs(snapshot: Snapshot, pairs: int, rng: np.random.Generator) -> dict[bool, list[tuple[int, int]]]:
    """Places of cases of different recordings: with the same fault, and with different ones."""
    cases = [snapshot.case(i) for i in range(len(snapshot))]
    labels = np.array([case.label or "" for case in cases])
    groups = np.array([case.recording for case in cases])
    known = np.flatnonzero(snapshot.labels > NORMAL)
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    while len(known) and min(map(len, found.values())) < pairs:
        before = sum(map(len, found.values()))
        for one in rng.permutation(known)[:pairs]:
            others = known[groups[known] != groups[one]]
            for same, drawn in found.items():
                fitting = others[(labels[others] == labels[one]) == same]
                if len(fitting) and len(drawn) < pairs:
                    drawn.append((int(one), int(rng.choice(fitting))))
        if sum(map(len, found.values())) == before:
            break
    return found


def _counted(channels: list[ChannelEvidence]) -> float:
    """Share of the channels that depart at all which depart in the same way."""
    departing = sum(max(channel.window, channel.case) >= DEPARTS for channel in channels)
    return sum(channel.same_way for channel in channels) / max(departing, 1)


MOST_PANELS = 6


def draw_evidence(evidence: Evidence) -> Figure:
    """The channels that tell most: the window, and the case moved onto its steps by the alignment."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    channels = evidence.channels[:MOST_PANELS]
    path = np.array(evidence.path, np.intp).reshape(-1, 2)
    rows = max(1, -(-len(channels) // 2))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.6 * rows + 0.9), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, 2, sharex=True)).ravel()
        for axis, channel in zip(axes, channels, strict=False):
            axis.axhspan(-2, 2, color=NORMAL_GREY, alpha=0.18, lw=0)
            axis.plot(path[:, 0], np.array(channel.case_series)[path[:, 1]], color=REFERENCE_GREY, lw=1.2, ls="--")
            axis.plot(np.arange(len(channel.window_series)), channel.window_series, color=FAULT, lw=1.2)
            same = ", same way" if channel.same_way else ", speaks against" if channel.against else ""
            axis.set_title(f"{channel.name} (agreement {channel.agreement:+.2f}{same})")
        for axis in axes[len(channels) :]:
            axis.set_visible(False)
        for axis in axes[-2:]:
            axis.set_xlabel("step of the window")
        figure.supylabel("departure from normal, standard deviations", fontsize=9)
        label = evidence.case.label or "unresolved"
        figure.suptitle(
            f"red: the window; dashed: {evidence.case.id} ({label}), aligned; grey: normal operation, ±2 sd",
            fontsize=9,
            x=0.01,
            ha="left",
        )
    return figure
