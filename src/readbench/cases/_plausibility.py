"""Plausibility check of a window against the cases and normal windows of a library.

Each channel is described by a few numbers (`MEASURES`): ends of its range, spread, roughness, share of steps without
change, and share of steps at the ends of its range. `LibraryProfile` keeps the minimum and maximum of each over the
library's windows. The excess of a window is its distance outside these bounds, in widths of the channel's range,
decades or shares.

The excess of a genuine window of a new recording is estimated by hold-out: each recording is compared with
the bounds of all others, or each asset where several are known, since the next window may come from a new one. An
excess counts above the quantile that leaves `FALSE_ALARM_RATE` of these held-out windows. The profile does not depend
on a query; it costs a pass over at most `MOST_PROFILED` cases and as many normals.

A reversed window is detected by numbers that change sign with the direction of time (skewness of steps, trends): ridge
regression finds weights that make their sum positive on the library's windows, and a window counts as reversed below
the range of held-out windows. If the library's windows look alike in both directions, reversal is not checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._intake import holds_reading
from readbench.cases._models import Remark, RemarkKind, Severity
from readbench.cases.limits import MAX_READING
from readbench.engine.windows import Window, WindowSet

Array = NDArray[np.float64]
Groups = NDArray[np.intp]
FALSE_ALARM_RATE = 0.02
"""Share of held-out windows of the library that may get a remark."""
MEASURES = ("low", "high", "spread", "roughness", "flat", "clipped")
ONE_SIDED = np.array([measure in ("flat", "clipped") for measure in MEASURES])
FLOORS = np.array([0.25, 0.25, 0.3, 0.1, 0.2, 0.1])
"""Smallest scale of the excess of each measure: widths, widths, decades, decades, shares, shares."""
WINDOW_FLOOR = 0.25
"""Smallest scale of the excess of a whole window, in sd of its median channel."""
USUAL_SHARE = 0.9
"""Quantile of the held-out excess that scales the measures of different channels."""
GROSS_EXCESS = 10.0
"""Excess from which a single channel forbids a judgement: widths of the range, or hundredfold spread."""
BAD_SHARE = 0.5
"""Share of odd channels from which a window cannot be judged."""
MIN_KNOWN_SHARE = 0.4
"""Smallest share of the library's channels that a window needs to be judged."""
LENGTH_FACTOR = 4.0
"""Factor of length or rate outside the library's range from which a window cannot be judged."""
SAME_LENGTH = 1.1
MISSING_CHANNEL, MISSING_WINDOW = 0.5, 0.5
"""Share of missing readings from which a channel is reported, and from which a window cannot be judged."""
MAX_GAP_SHARE = 0.05
"""Share of filled readings from which a window gets a remark, and constant channels are excused."""
MIN_STEPS = 8
"""Fewest steps for measures of shape."""
MOST_PROFILED, LEAST_PROFILED, MOST_READINGS = 512, 64, 2_000_000
"""Largest and smallest number of profiled cases (and of normals), and of their readings, to bound the time."""
MIN_CASES = 10
"""Fewest cases for remarks on values, since normal windows do not show the range of faults."""
MIN_GROUPS = 5
"""Fewest recordings or assets for hold-out."""
MAX_NAMED = 4
MAX_SWAPPED = 6
"""Largest number of odd channels among which swapped names are searched."""
MAX_PARTNERS = 3
"""Largest number of candidates for a swapped name; with more the channel is just odd."""
UNIT_FACTORS = (1e3, 1e6, 100.0, 10.0, 60.0, 3600.0)
"""Factors between commonly confused units, the likeliest first: prefixes, per cent, minutes, hours."""
UNIT_SLACK = 2.0
"""Remaining factor outside the library's range that is allowed after a unit is corrected."""
EPSILON = 1e-12
WHOLE: dict[str, tuple[RemarkKind, str, str]] = {
    "low": ("range", "lie lower", "lie higher"),
    "high": ("range", "lie lower", "lie higher"),
    "spread": ("spread", "move less", "move more"),
    "roughness": ("roughness", "are smoother", "are rougher, like noise,"),
    "flat": ("frozen", "", "stand still for longer"),
    "clipped": ("clipped", "", "are cut off more often"),
}
"""Kind of each measure of a whole window, and its words below and above the bounds."""
EQUAL_TOLERANCE = 1e-7
"""Relative difference below which readings count as equal, since windows are stored in single precision."""
FLAT_SHARE = 0.5
SPIKE_SHARE = 0.02
"""Share of readings at each end that is left out of the range, as spikes."""
MIN_ROUGHNESS = 1e-3
MIN_MOVEMENT = 1e-6
LAGS = (1, 4, 16)
ARROW_MARGIN = 0.1
ARROW_SHARE = 0.2
"""Smallest share of reversed windows that must be detected, else reversal is not checked."""
MARGIN = 5.0
"""The limit from N held-out windows is widened by 1 + MARGIN / sqrt(N)."""


@dataclass(frozen=True, eq=False)
class LibraryProfile:
    """Ranges of the measures over the windows of a library.

    Args:
        channels: index of each channel, by name.
        sets: distinct sets of channel names.
        lengths: smallest and largest number of steps.
        rates: lowest and highest known rate; NaN if none is known.
        width: (C,) widths of the channels' ranges.
        sizes: (3, C) smallest, usual and largest mean size of the values.
        usual: (2, C, M) mean and standard deviation of the measures.
        bounds: (2, C + 1, M) minimum and maximum of the measures; the last row is of whole windows (`_with_window`).
        extremes: (2, G, C + 1, M) the same for each of the G groups that are held out together.
        held_out_with: group number of each window, by name.
        scale: (C + 1, M) usual excess of held-out windows, at least `FLOORS`.
        limit: smallest excess, in units of `scale`, that gets a remark.
        still: share of windows without any movement.
        shows_faults: True with enough cases for remarks on values.
        arrow: weights of the direction of time, and the value below which a window counts as reversed; None if not
            checked.
    """

    channels: Mapping[str, int]
    sets: tuple[frozenset[str], ...]
    lengths: tuple[int, int]
    rates: tuple[float, float]
    width: Array
    sizes: Array
    usual: Array
    bounds: Array
    extremes: Array
    held_out_with: Mapping[str, int]
    scale: Array
    limit: float
    still: float
    shows_faults: bool
    arrow: tuple[Array, float] | None

    @classmethod
    def of(cls, cases: WindowSet, normals: WindowSet) -> Self | None:
        """Profile of a library; None without windows."""
        chosen = [_spread_out(part) for part in (cases, normals) if len(part)]
        if not chosen:
            return None
        windows = [window for part in chosen for window in part]
        channels = {name: i for i, name in enumerate(dict.fromkeys(n for w in windows for n in w.channels))}
        held_out = _held_out_with(chosen)
        ends = _gather(windows, channels, lambda values, _: _ends(values))
        width = np.maximum(np.nanmax(ends[..., 1], axis=0) - np.nanmin(ends[..., 0], axis=0), EPSILON)
        sizes = np.stack([combine(ends[..., 2], axis=0) for combine in (np.nanmin, np.nanmedian, np.nanmax)])
        measured = _gather(windows, channels, lambda values, places: measure_channels(values, width[places]))
        mean, spread = mean_and_spread(measured)
        usual = np.stack([mean, np.maximum(spread, FLOORS / 2)])
        measured = _with_window(measured, usual)
        extremes = _extremes(measured, held_out)
        excess = _excess(measured, *(side[held_out] for side in _bounds_of_others(extremes)))
        scale, limit = _calibrate(excess, held_out)
        return cls(
            channels=channels,
            sets=tuple(dict.fromkeys(frozenset(w.channels) for w in windows)),
            lengths=(min(w.values.shape[1] for w in windows), max(w.values.shape[1] for w in windows)),
            rates=_extent([w.rate for w in windows]),
            width=width,
            sizes=sizes,
            usual=usual,
            bounds=_join_extremes(extremes),
            extremes=extremes,
            held_out_with={str(name): int(code) for name, code in zip(_ids(chosen), held_out, strict=True)},
            shows_faults=len(cases) >= MIN_CASES,
            still=float(np.mean([not _moves(w.values).any() for w in windows])),
            scale=scale,
            limit=limit,
            arrow=_fit_arrow(windows, channels, held_out),
        )

    def without(self, case: str | None) -> LibraryProfile:
        """Profile without the group of a case."""
        group = None if case is None else self.held_out_with.get(case)
        if group is None or self.extremes.shape[1] == 1:
            return self
        return replace(self, bounds=_join_extremes(np.delete(self.extremes, group, axis=1)))

    def excess(self, window: Window) -> Array:
        """(C + 1, M) excess of the channels and, last, of the whole window; above 1 it gets a remark; NaN if absent."""
        measured = self.measure(window)
        return _excess(measured, *self.bounds) / (self.scale * self.limit)

    def excess_of(self, values: NDArray[np.floating], name: str) -> float:
        """Largest excess of values (1, T) taken as those of the channel `name`."""
        c = self.channels[name]
        measured = measure_channels(values, self.width[[c]])
        return float(np.nanmax(_excess(measured, *self.bounds[:, [c]]) / (self.scale[c] * self.limit)))

    def arrow_of_time(self, window: Window) -> float:
        """Excess of a window against the direction of time; above 1 it counts as reversed."""
        if self.arrow is None:
            return 0.0
        weights, least = self.arrow
        odd = _gather([window], self.channels, lambda values, _: _measure_direction(values))
        return float(np.nan_to_num(odd).ravel() @ weights / least)

    def measure(self, window: Window) -> Array:
        """(C + 1, M) measures of the channels, NaN if absent, and last of the window."""
        measured = _gather(
            [window], self.channels, lambda measured, places: measure_channels(measured, self.width[places])
        )
        return _with_window(measured, self.usual)[0]


def describe_windows(profile: LibraryProfile, windows: WindowSet) -> Array:
    """(N, F) concatenated descriptions of the channels: `MEASURES` except the last, and the trend."""

    def describe(values: NDArray[np.floating], places: NDArray[np.intp]) -> Array:
        shown = measure_channels(values, profile.width[places])[..., :-1]
        return np.concatenate([shown, _measure_direction(values)[..., -1:]], axis=-1)

    return _gather(list(windows), profile.channels, describe).reshape(len(windows), -1)


def mean_and_spread(measured: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over the first axis, ignoring NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(measured, axis=0), np.nanstd(measured, axis=0)


def check_window(profile: LibraryProfile | None, window: Window, given: Window | None = None) -> list[Remark]:
    """Remarks on the oddities of a window, the most serious first.

    Args:
        profile: profile of the library; None if it is empty.
        window: window without gaps, under the library's channel names.
        given: the same window with its gaps.
    """
    remarks = [] if given is None else _remark_missing(given)
    if profile is not None:
        remarks += _remark_form(profile, window)
        if not profile.shows_faults and not _moves(window.values).any():
            remarks.append(_remark_still(window))
        elif profile.shows_faults and window.values.shape[1] >= MIN_STEPS:
            remarks += _remark_values(profile, window, filled=given is not None and _has_gaps(given))
    elif not _moves(window.values).any():
        remarks.append(_remark_still(window))
    return sorted(remarks, key=lambda remark: remark.judgeable)


def measure_channels(values: NDArray[np.floating], width: Array) -> Array:
    """(..., C, M) measures of channels (..., C, T); roughness is NaN for a constant channel.

    >>> measure_channels(np.array([[0.0, 0.0, 1.0, 1.0]]), np.array([1.0])).round(2).tolist()
    [[0.0, 1.0, -0.3, -0.03, 0.67, 0.0]]
    """
    readings = values.astype(np.float64)
    low, high, _ = np.moveaxis(_ends(readings), -1, 0)
    std, steps = readings.std(axis=-1), np.diff(readings, axis=-1)
    if not steps.shape[-1]:
        steps = np.zeros_like(readings)
    rough = np.divide(steps.std(axis=-1), std, out=np.full(std.shape, np.nan), where=_moves(readings))
    flat = (np.abs(steps) <= EQUAL_TOLERANCE * width[..., None]).mean(axis=-1)
    ends = (readings == readings.min(axis=-1, keepdims=True)) | (readings == readings.max(axis=-1, keepdims=True))
    spread = np.log10(np.maximum(std / width, MIN_MOVEMENT))
    # A flat channel does not also count as clipped.
    clipped = np.where(flat > FLAT_SHARE, 0.0, ends.mean(axis=-1) - 2 / readings.shape[-1]).clip(0.0)
    return np.stack(
        [low / width, high / width, spread, np.log10(np.maximum(rough, MIN_ROUGHNESS)), flat, clipped], axis=-1
    )


def _ends(values: NDArray[np.floating]) -> Array:
    """(..., C, 3) ends of the range without spikes, and typical size."""
    last = values.shape[-1] - 1
    ends = round(SPIKE_SHARE * last), last - round(SPIKE_SHARE * last)
    ordered = np.partition(values, ends, axis=-1)
    return np.stack(
        [ordered[..., ends[0]], ordered[..., ends[1]], np.abs(values).mean(axis=-1, dtype=np.float64)],
        axis=-1,
        dtype=np.float64,
    )


def _moves(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    extent = values.max(axis=-1).astype(np.float64) - values.min(axis=-1)
    moves: NDArray[np.bool_] = extent > EQUAL_TOLERANCE * np.abs(values).max(axis=-1)
    return moves


def _measure_direction(values: NDArray[np.floating]) -> Array:
    """(..., C, L + 1) skewness of the steps at each lag, and trend; they change sign when time is reversed."""
    readings = values.astype(np.float64)
    columns = []
    for lag in LAGS:
        steps = readings[..., lag:] - readings[..., :-lag] if readings.shape[-1] > lag else np.zeros_like(readings)
        size = np.sqrt((steps**2).mean(axis=-1))
        cubed = (steps * steps * steps).mean(axis=-1)  # a power of three takes twenty times as long
        columns.append(np.divide(cubed, size**3, out=np.zeros(size.shape), where=size > EPSILON))
    ramp, std = np.linspace(-1, 1, readings.shape[-1]), readings.std(axis=-1)
    trend = ((readings - readings.mean(axis=-1, keepdims=True)) * ramp).mean(axis=-1)
    columns.append(np.divide(trend, std, out=np.zeros(std.shape), where=std > EPSILON))
    return np.cbrt(np.stack(columns, axis=-1))


def _gather(
    windows: Sequence[Window],
    channels: Mapping[str, int],
    measure: Callable[[NDArray[np.floating], NDArray[np.intp]], Array],
) -> Array:
    """(N, C, M) results of a function of windows (n, c, T) and channel indices; NaN for absent channels."""
    alike: dict[tuple[tuple[str, ...], int], list[int]] = {}
    for i, window in enumerate(windows):
        alike.setdefault((window.channels, window.values.shape[1]), []).append(i)
    gathered = np.empty((0, 0, 0))
    for (names, _), numbers in alike.items():
        rows = [row for row, name in enumerate(names) if name in channels]
        places = np.array([channels[names[row]] for row in rows], np.intp)
        measured = measure(np.stack([windows[i].values[rows] for i in numbers]), places)
        if not gathered.size:
            gathered = np.full((len(windows), len(channels), measured.shape[-1]), np.nan)
        gathered[np.array(numbers)[:, None], places] = measured
    return gathered


def _with_window(measured: Array, usual: Array) -> Array:
    """(N, C + 1, M) measures of the channels and, last, of the window: median standardised measure of its channels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no channel of a window is rough where none moves
        whole = np.nanmedian((measured - usual[0]) / usual[1], axis=1, keepdims=True)
    return np.concatenate([measured, whole], axis=1)


def _spread_out(windows: WindowSet) -> WindowSet:
    """All windows, or an evenly spaced selection."""
    size = int((windows.channel_counts * windows.lengths).max())
    most = max(LEAST_PROFILED, min(MOST_PROFILED, MOST_READINGS // size))
    return windows[spread_evenly(len(windows), most)]


def spread_evenly(count: int, most: int) -> NDArray[np.intp]:
    """Positions of `count` items, or of `most` evenly spaced ones."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.intp)


def _held_out_with(parts: Sequence[WindowSet]) -> Groups:
    """(N,) groups for hold-out: assets if several are known, else recordings."""
    known = [(asset, group) for part in parts for asset, group in zip(part.assets, part.groups, strict=True)]
    assets = np.unique([asset or f"\0{group}" for asset, group in known], return_inverse=True)[1]
    named = len({asset for asset, _ in known if asset})
    return assets if named >= MIN_GROUPS else np.unique([group for _, group in known], return_inverse=True)[1]


def _ids(parts: Sequence[WindowSet]) -> list[str]:
    return [name for part in parts for name in part.ids.tolist()]


def _extremes(measured: Array, groups: Groups) -> Array:
    """(2, G, C, M) minimum and maximum of the measures of each group; infinite without values."""
    low = np.full((groups.max() + 1, *measured.shape[1:]), np.inf)
    high = -low
    np.minimum.at(low, groups, np.where(np.isnan(measured), np.inf, measured))
    np.maximum.at(high, groups, np.where(np.isnan(measured), -np.inf, measured))
    return np.stack([low, high])


def _bounds_of_others(extremes: Array) -> Array:
    """(2, G, C, M) minimum and maximum of the measures of all other groups; NaN without values."""
    return _finite(np.stack([_extreme_of_others(extremes[0]), -_extreme_of_others(-extremes[1])]))


def _join_extremes(extremes: Array) -> Array:
    return _finite(np.stack([extremes[0].min(axis=0), extremes[1].max(axis=0)]))


def _finite(bounds: Array) -> Array:
    return np.where(np.isfinite(bounds), bounds, np.nan)


def _extreme_of_others(values: Array) -> Array:
    """(G, ...) minimum over all other rows."""
    if len(values) == 1:
        return np.full_like(values, np.inf)
    two = np.partition(values, 1, axis=0)[:2]
    return np.where(values == two[0], two[1], two[0])


def _excess(measured: Array, low: Array, high: Array) -> Array:
    """Distance of measures outside their bounds, 0 inside, NaN if unknown; low flat and clipped shares count as 0."""
    below = np.where(ONE_SIDED, 0.0, low - measured)
    return np.maximum(np.maximum(below, measured - high), np.where(np.isnan(measured - low), np.nan, 0.0))


def _calibrate(held_out: Array, groups: Groups) -> tuple[Array, float]:
    """(C, M) scale of the excess, and the limit that `FALSE_ALARM_RATE` of the held-out windows exceed."""
    known = np.nan_to_num(held_out)
    floors = np.vstack([np.tile(FLOORS, (known.shape[1] - 1, 1)), np.full(len(FLOORS), WINDOW_FLOOR)])
    scale = np.maximum(floors, np.quantile(known, USUAL_SHARE, axis=0))
    worst = (known / scale).max(axis=(1, 2))
    votes = (1.0 / np.bincount(groups))[groups]
    order = np.argsort(worst)
    beyond = 1.0 - np.cumsum(votes[order]) / votes.sum()
    limit = float(worst[order][np.argmax(beyond <= FALSE_ALARM_RATE + EPSILON)])
    return scale, (1.0 + MARGIN / np.sqrt(len(worst))) * max(1.0, limit)


def _fit_arrow(windows: Sequence[Window], channels: Mapping[str, int], groups: Groups) -> tuple[Array, float] | None:
    """Weights of the direction of time, and the value below which a window counts as reversed; None if unclear."""
    if groups.max() + 1 < MIN_GROUPS:
        return None
    odd = np.nan_to_num(_gather(windows, channels, lambda values, _: _measure_direction(values)))
    rows = odd.reshape(len(windows), -1)
    kernel = rows @ rows.T
    penalty = np.trace(kernel) / len(rows)
    inverse = np.linalg.inv(kernel + penalty * np.eye(len(rows)))
    solution = inverse.sum(axis=1)
    held_out = np.empty(len(rows))
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        held_out[members] = 1.0 - np.linalg.solve(inverse[np.ix_(members, members)], solution[members])
    least = min(float(np.quantile(held_out, FALSE_ALARM_RATE / 4)), 0.0) - ARROW_MARGIN
    # Reversing a window flips the sign of its values.
    if (-held_out < least).mean() < ARROW_SHARE:
        return None
    return rows.T @ solution, least


def _extent(values: Iterable[float]) -> tuple[float, float]:
    known = [value for value in values if np.isfinite(value)]
    return (min(known), max(known)) if known else (np.nan, np.nan)


def _remark_form(profile: LibraryProfile, window: Window) -> list[Remark]:
    """Remarks on length, rate and channels."""
    remarks, steps = [], window.values.shape[1]
    if outside := _outside(steps, profile.lengths):
        long, factor = steps > profile.lengths[1], f"{_times(outside)} " if outside >= 2 else ""
        how = f"{factor}longer" if long else f"{factor}shorter"
        remarks.append(
            _remark(
                "length",
                f"Its length of {steps} steps is {how} than any of the library ({_format_extent(profile.lengths)}).",
                serious=outside > LENGTH_FACTOR or steps < MIN_STEPS,
            )
        )
    if outside := _outside(window.rate, profile.rates):
        remarks.append(
            _remark(
                "rate",
                f"Its rate of {window.rate:g} Hz is none of the library ({_format_extent(profile.rates)} Hz).",
                serious=outside > LENGTH_FACTOR,
            )
        )
    return remarks + _remark_channels(profile, window)


def _remark_channels(profile: LibraryProfile, window: Window) -> list[Remark]:
    present = frozenset(window.channels)
    nearest = max(profile.sets, key=lambda other: (len(present & other) / len(other), -len(present ^ other)))
    lacking = [name for name in profile.channels if name in nearest - present]
    unknown = [name for name in window.channels if name not in profile.channels]
    remarks = []
    if lacking:
        common = len(nearest) - len(lacking)
        remarks.append(
            _remark(
                "channels",
                f"Only {common} of {len(nearest)} channels are in common; it lacks {_join(lacking)}.",
                lacking,
                serious=common / len(nearest) < MIN_KNOWN_SHARE,
                note=True,
            )
        )
    if unknown:
        verb = "are" if len(unknown) > 1 else "is"
        remarks.append(
            _remark("channels", f"{_join(unknown)} {verb} not known here, and left out.", unknown, note=True)
        )
    return remarks


def _remark_missing(given: Window) -> list[Remark]:
    """Remarks on gaps and invalid readings."""
    readings = holds_reading(given.values)
    missing = 1.0 - readings.mean(axis=1)
    remarks = []
    if odd := int((~readings & ~np.isnan(given.values)).sum()):
        words = f"{odd:,} of its {readings.size:,} readings are infinite or {MAX_READING:g} and more: taken as missing."
        remarks.append(_remark("missing", words))
    worst = [name for name, share in zip(given.channels, missing, strict=True) if share > MISSING_CHANNEL]
    if missing.mean() > MISSING_WINDOW:
        remarks.append(_remark("missing", f"{missing.mean():.0%} of its readings are missing.", worst, serious=True))
    elif worst:
        remarks.append(_remark("missing", f"Most readings of {_join(worst)} are missing.", worst))
    elif missing.mean() > MAX_GAP_SHARE:
        words = f"{missing.mean():.0%} of its readings are missing, and stand as the reading before them."
        remarks.append(_remark("missing", words, note=True))
    return remarks


def _remark_still(window: Window) -> Remark:
    what = "All values are zero" if not window.values.any() else "No channel moves"
    return _remark("constant", f"{what}.", window.channels, serious=True)


def _has_gaps(given: Window) -> bool:
    return bool((~holds_reading(given.values)).mean(axis=1).max() > MAX_GAP_SHARE)


def _remark_values(profile: LibraryProfile, window: Window, *, filled: bool) -> list[Remark]:
    """Remarks on the values of the channels; fewer if gaps were filled."""
    excess = np.nan_to_num(profile.excess(window))
    if filled:
        excess[:, MEASURES.index("roughness") :] = 0.0
    known = [name for name in window.channels if name in profile.channels]
    odd = [name for name in known if excess[profile.channels[name]].max() > 1.0]
    if not _moves(window.values).any() and (profile.still < FALSE_ALARM_RATE or not window.values.any()):
        return [_remark_still(window)]
    misplaced = {name for name in odd if excess[profile.channels[name], ~ONE_SIDED].max() > 1.0}
    remarks, rest = _remark_swapped(profile, window, odd, misplaced)
    alike: dict[tuple[RemarkKind, str], list[str]] = {}
    for name in rest:
        alike.setdefault(_name_oddity(profile, window, name, excess[profile.channels[name]]), []).append(name)
    spoilt = len(odd) >= max(BAD_SHARE * len(known), min(2, len(known)))
    for (kind, words), names in alike.items():
        gross = kind == "unit" or (kind == "range" and any(_gross(profile, window, name) for name in names))
        far = _how_far(profile, window, names) if kind == "range" else ""
        remarks.append(_remark(kind, _agree(names, words) + far, names, serious=spoilt or gross))
    whole = any(known_set.issubset(known) for known_set in profile.sets) and all(remark.judgeable for remark in remarks)
    if whole and excess[-1].max() > 1.0:
        remarks.append(_remark_whole(profile, window, int(excess[-1].argmax())))
    if not remarks and profile.arrow_of_time(window) > 1.0:
        remarks.append(_remark("reversed", "Its time seems to run backwards.", window.channels, serious=True))
    return remarks


def _remark_whole(profile: LibraryProfile, window: Window, worst: int) -> Remark:
    """Remark on a window whose channels are odd only together."""
    kind, less, more = WHOLE[MEASURES[worst]]
    above = profile.measure(window)[-1, worst] > profile.bounds[1, -1, worst]
    words = f"Taken together, its channels {more if above else less} than in any window here."
    return _remark(kind, words, window.channels, serious=True)


def _name_oddity(profile: LibraryProfile, window: Window, name: str, excess: Array) -> tuple[RemarkKind, str]:
    """Kind and words of the remark on an odd channel; verbs as `plural/singular` (`_agree`)."""
    c, values = profile.channels[name], window.values[[window.channels.index(name)]]
    low, high, spread, rough, flat, clipped = excess
    above = measure_channels(values, profile.width[[c]])[0] > profile.bounds[1, c]
    if not _moves(values)[0] and max(spread, flat) > 1.0:
        return "constant", "stand/stands still, which never happens here."
    if max(low, high, spread) > 1.0 and (factor := _unit_factor(profile, window, name)):
        way = "above" if factor > 1 else "below"
        return "unit", f"lie/lies {_times(max(factor, 1 / factor))} {way} anything here: check the unit."
    if max(low, high) > 1.0:
        return "range", "lie/lies outside anything here."
    shapes: list[tuple[float, RemarkKind, str]] = [
        (flat, "frozen", "stand/stands still for longer than ever here."),
        (spread, "spread", f"move/moves far {'more' if above[2] else 'less'} than ever here."),
        (rough, "roughness", f"are/is far {'rougher, like noise,' if above[3] else 'smoother'} than ever here."),
        (clipped, "clipped", "are/is cut off at the end of the range."),
    ]
    return next((kind, words) for excess_of, kind, words in shapes if excess_of > 1.0)


def _how_far(profile: LibraryProfile, window: Window, names: Sequence[str]) -> str:
    """Sentence on the size of channels outside the range, if it is far from usual; else ""."""
    places = [profile.channels[name] for name in names]
    size = np.abs(window.values[[window.channels.index(name) for name in names]]).mean(axis=1, dtype=np.float64)
    usual = profile.sizes[1, places]
    known = usual > EQUAL_TOLERANCE * profile.width[places]
    times = float(np.divide(size, usual, out=np.zeros_like(usual), where=known).max())
    most = "up to " if len(names) > 1 else ""
    return f" The size is {most}{_times(times)} the usual one." if times >= GROSS_EXCESS else ""


def _agree(names: Sequence[str], words: str) -> str:
    """Sentence on some channels; `words` has the verb as `plural/singular`.

    >>> _agree(["flow"], "lie/lies outside."), _agree(["flow", "level"], "lie/lies outside.")
    ('flow lies outside.', 'flow, level lie outside.')
    """
    verb, rest = words.split(" ", 1)
    return f"{_join(names)} {verb.split('/')[len(names) == 1]} {rest}"


def _unit_factor(profile: LibraryProfile, window: Window, name: str) -> float | None:
    """Factor between units that explains an odd channel; None if there is none."""
    c, row = profile.channels[name], window.channels.index(name)
    size, (least, _, largest) = np.abs(window.values[row]).mean(dtype=np.float64), profile.sizes[:, c]
    for factor in (scale for larger in UNIT_FACTORS for scale in (larger, 1 / larger)):
        # The size must fit too, since a channel around zero fits after any division.
        likely = least / UNIT_SLACK <= size / factor <= largest * UNIT_SLACK
        if likely and profile.excess_of(window.values[[row]] / factor, name) <= 1.0:
            return factor
    return None


def _gross(profile: LibraryProfile, window: Window, name: str) -> bool:
    c, row = profile.channels[name], window.channels.index(name)
    measured = measure_channels(window.values[[row]], profile.width[[c]])
    excess = _excess(measured, *profile.bounds[:, [c]])[0]
    return bool(excess[:2].max() > max(GROSS_EXCESS, profile.scale[c, :2].max() * profile.limit))


def _remark_swapped(
    profile: LibraryProfile, window: Window, odd: list[str], misplaced: set[str]
) -> tuple[list[Remark], list[str]]:
    """Remarks on odd channels that fit under each other's names, and the remaining odd channels.

    A single odd channel counts if it is `misplaced` (its values are odd, not just flat or clipped) and few others could
    have its name.
    """
    moving = [name for name, moves in zip(window.channels, _moves(window.values), strict=True) if moves]
    known = [name for name in moving if name in profile.channels]
    values = {name: window.values[[window.channels.index(name)]] for name in known}
    rest, remarks = list(odd), list[Remark]()
    if len(odd) > MAX_SWAPPED:
        return remarks, rest
    for name in odd:
        if name not in rest or name not in values:
            continue
        fits = [
            other
            for other in known
            if other != name
            and profile.excess_of(values[name], other) <= 1.0
            and profile.excess_of(values[other], name) <= 1.0
        ]
        both = [other for other in fits if other in rest]
        found = both or ([] if name not in misplaced or _unit_factor(profile, window, name) else fits)
        if len(found) == 1:
            rest = [candidate for candidate in rest if candidate not in (name, found[0])]
            words = f"{name} and {found[0]} look swapped: each fits the name of the other."
        elif 1 < len(found) <= MAX_PARTNERS:
            rest.remove(name)
            words = f"{name} looks swapped: it fits the name of {' or '.join(found)}, and not that of {name}."
        else:
            continue
        remarks.append(_remark("swapped", words, (name, *found), serious=True))
    return remarks, rest


def _remark(
    kind: RemarkKind, words: str, channels: Iterable[str] = (), *, serious: bool = False, note: bool = False
) -> Remark:
    severity: Severity = "serious" if serious else "note" if note else "warning"
    return Remark(kind=kind, words=words, severity=severity, channels=tuple(channels))


def _outside(value: float, extent: tuple[float, float]) -> float:
    """Factor by which a number lies outside an extent; 0 inside or if unknown."""
    if not (np.isfinite(value) and np.isfinite(extent[0]) and value > 0):
        return 0.0
    factor = max(extent[0] / value, value / extent[1])
    return float(factor) if factor > SAME_LENGTH else 0.0


def _format_extent(extent: tuple[float, float]) -> str:
    low, high = (f"{end:g}" for end in extent)
    return low if low == high else f"{low} to {high}"


def _times(factor: float) -> str:
    """Rounded factor in words.

    >>> _times(983.0), _times(2.54)
    ('about 980 times', 'about 2.5 times')
    """
    digits = 10.0 ** (np.floor(np.log10(factor)) - 1)
    return f"about {round(factor / digits) * digits:,.10g} times"


def _join(names: Sequence[str]) -> str:
    first = ", ".join(names[:MAX_NAMED])
    return first if len(names) <= MAX_NAMED else f"{first} and {len(names) - MAX_NAMED} more"
