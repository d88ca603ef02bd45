"""Evidence for a match: channels of window and case that depart from normal operation in the same way.

The agreement of a channel is the mean of cosine and correlation of both departures after alignment; two constant
offsets have cosine 1 and correlation 0. With a and b the sizes log(1 + departure) of the channels of window and case,
`support` is the mean of

    agreement      mean over the channels, weighted by the smaller of the two departures
    same channels  correlation of a and b over the channels, each with departure and size of its steps
    same size      1 - 2 sum |a - b| / sum (a + b)

and for fewer than `MIN_CHANNELS` shared channels the first term alone. `measure_separation` gives its AUC in a library.
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
from readbench.engine.preparation import MIN_SPREAD_SHARE, ChannelStats, resample
from readbench.engine.windows import NORMAL, Window, WindowSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_ALIGNED_STEPS = 256
"""Longest window that is aligned; longer ones are resampled."""
DEPARTURE_THRESHOLD = 2.0
"""Root mean square of a departing channel, in sd, at least; about 1 in normal operation."""
AGREEMENT_THRESHOLD = 0.4
"""Agreement of equal departures, at least; two noisy constant offsets reach nearly 0.5."""
CLIP_SIGMA = 20.0
"""Departures are clipped to this many sd before alignment, so that one dead sensor does not decide it."""
MIN_BEFORE_STEPS = 8
"""Fewest steps before a window from which normal operation is estimated."""
MIN_FAULT_STEPS = 8
"""Fewest steps since the onset over which a departure is measured."""
MIN_CHANNELS = 3
"""Fewest shared channels for a correlation; with two it is always 1 or -1."""
Series = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NormalReference:
    """Channel statistics of normal operation, and their origin in words."""

    stats: ChannelStats
    words: str

    def departures(self, window: Window, channels: list[str]) -> Series:
        """(C, T) departures of the named channels in sd from normal; 0 for a constant channel."""
        rows = [window.channels.index(name) for name in channels]
        values = resample(window.values[rows], min(MAX_ALIGNED_STEPS, window.values.shape[1])).astype(np.float64)
        mean = np.array([self.stats.mean.get(name, 0.0) for name in channels])[:, None]
        std = np.array([self.stats.std.get(name, 0.0) for name in channels])[:, None]
        return np.divide(values - mean, std, out=np.zeros_like(values), where=std > 1e-7 * np.abs(mean))


def reference_for(snapshot: Snapshot, window: Window) -> NormalReference:
    """Normal operation that a window is compared with.

    The first that exists of: the readings before it, normal windows of its asset, those of all assets, the cases. The
    spread of the readings before counts as at least `LEAST_SPREAD` of that among the cases, since a channel that stood
    still has none.
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
    """Statistics of the readings before a window; `whole`: channel statistics of all cases."""
    stats = ChannelStats.of(WindowSet.from_arrays([before], channels=window.channels))
    spread = {name: max(std, MIN_SPREAD_SHARE * whole.std.get(name, 0.0)) for name, std in stats.std.items()}
    return NormalReference(ChannelStats(stats.mean, spread), f"the {before.shape[1]} steps before it")


def measure_departure(window: Window, whole: ChannelStats) -> float:
    """Largest departure of a channel from the readings before, in sd; NaN with fewer than `MIN_BEFORE_STEPS`."""
    if window.before is None or window.before.shape[1] < MIN_BEFORE_STEPS:
        return float("nan")
    departures = reference_before(window, window.before, whole).departures(window, list(window.channels))
    return float(np.sqrt((departures**2).mean(axis=1)).max())


def explain_match(snapshot: Snapshot, window: Window, case: Case, onset: int = 0) -> Evidence:
    """Evidence that a case matches a window, each compared with its own normal operation (`reference_for`).

    Args:
        snapshot: state of the library.
        window: the query, (C, T).
        case: case of the library.
        onset: step at which the fault begins; the departure of the window is measured from there on.
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
    """Evidence of each channel, the warping path, and the root mean square distance along it.

    Args:
        window: (C, T) departures of the window.
        case: (C, T') departures of the case.
        names: (C,) channel names.
        begins: onset as a share of the window; the size of its departures is measured from there on.
    """
    if not names:
        return [], np.empty((0, 2), np.int64), float("inf")
    ours, theirs = (series.clip(-CLIP_SIGMA, CLIP_SIGMA) for series in (window, case))
    path, cost = warping_path(ours, theirs)
    left, right = ours[:, path[:, 0]], theirs[:, path[:, 1]]
    level, course = _cosines(left, right), _cosines(_centre(left), _centre(right))
    first = max(0, min(round(begins * window.shape[1]), window.shape[1] - MIN_FAULT_STEPS))
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
    alone = most >= DEPARTURE_THRESHOLD and least < DEPARTURE_THRESHOLD and most >= 2 * least
    return ChannelEvidence(
        name=name,
        window=far[0],
        case=far[1],
        agreement=float(agreement),
        same_way=least >= DEPARTURE_THRESHOLD and agreement >= AGREEMENT_THRESHOLD,
        against=alone or (least >= DEPARTURE_THRESHOLD and agreement < 0),
        window_series=tuple(window.tolist()),
        case_series=tuple(case.tolist()),
    )


def _support(channels: list[ChannelEvidence]) -> float:
    """Evidence as a number from -1 to 1; 0 without shared channels."""
    if not channels:
        return 0.0
    sizes = np.array([(channel.window, channel.case) for channel in channels]).T
    weights = sizes.min(axis=0)
    agreement = np.array([channel.agreement for channel in channels])
    alike = float(weights @ agreement / weights.sum()) if weights.sum() else 0.0
    if len(channels) < MIN_CHANNELS:
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
    """AUC with which evidence separates pairs with the same fault from pairs with different ones.

    Args:
        snapshot: state of the library.
        pairs: largest number of pairs of each kind; both cases are of different recordings.
        seed: seed of the draw.
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
    """Positions of pairs from different recordings: with the same fault (True) and different ones (False)."""
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
    """Share of the departing channels that depart in the same way."""
    departing = sum(max(channel.window, channel.case) >= DEPARTURE_THRESHOLD for channel in channels)
    return sum(channel.same_way for channel in channels) / max(departing, 1)


MAX_PANELS = 6


def draw_evidence(evidence: Evidence) -> Figure:
    """Figure of the first channels: the window, and the case aligned to it."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    channels = evidence.channels[:MAX_PANELS]
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
