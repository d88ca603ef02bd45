"""Prepare windows of different shape and scale: fill gaps, scale, align channels and length.

As the paper's appendix "Raw-window distances" has it:

* **gaps** (`fill_gaps`): a gap takes the last valid reading, a leading gap the next one. The benchmark applies this
  inside each stretch of constant label of a recording, the case library to each window.
* **scale** (`Scaler`): `none`, `window` (z-score per window and channel), `channel` or `normals` (z-score per channel
  by statistics of the corpus, or of normal windows) or `before` (z-score per channel by the time before each window).
  It comes before padding, so that a missing channel reads as "at its mean".
* **channels** (`dense`, `WindowRows`): a channel that a window lacks is a row of zeros. Rows are matched by name
  (default) or, as the paper words it, by position with zeros on the right.
* **length** (`dense`): linear interpolation onto the longest grid, so that no measured point is discarded.

Windows of the same shape, the common case, are scaled and aligned as one array, with equal results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.context import ABSENT, Context
from readbench.engine.room import allocate
from readbench.engine.windows import WindowSet
from readbench.errors import ParameterError, UsageError

Normalisation = Literal["channel", "window", "none", "normals", "before"]
"""How raw values are scaled; `normals` is `channel` with the statistics of the normal windows."""
Alignment = Literal["name", "position"]
MAX_SCORE = 1e15
"""Scaled values are clipped here, so that a nearly dead channel and sums of squares stay finite."""
RESOLUTION = float(np.finfo(np.float32).eps)
"""Relative spread of one window below which it is float32 rounding."""
MIN_SPREAD_SHARE = 0.1
"""Minimum spread of a channel before a window or in normals, as a share of its spread in the corpus: otherwise the
first movement of a valve that hardly moves in normal operation would dominate."""
MAX_LENT_STEPS = 2048
"""Maximum steps of normal windows lent as the time before a case."""
SCALING_BLOCK_NUMBERS = 2**18
"""Numbers scaled per step, so that intermediate results stay in the processor cache."""


@dataclass(frozen=True, eq=False)
class ChannelStats:
    """Mean and standard deviation of each channel over all timesteps of a set of windows.

    >>> ws = WindowSet.from_arrays([[[1.0, 3.0]], [[5.0, 7.0]]], channels=("level",))
    >>> stats = ChannelStats.of(ws)
    >>> stats.mean["level"], round(stats.std["level"], 3)
    (4.0, 2.236)
    """

    mean: dict[str, float]
    std: dict[str, float]

    @classmethod
    def of(cls, windows: WindowSet) -> ChannelStats:
        """Compute in one pass in float64; a constant channel has standard deviation 0."""
        names = channel_axis(windows)
        place = {name: c for c, name in enumerate(names)}
        rows = [np.array([place[name] for name in listed if name in place], np.intp) for listed in windows.channel_sets]
        count, total, square, shift = np.zeros((4, len(names)))
        for i in range(len(windows)):
            values, columns = windows.values(i), rows[windows.channel_set[i]]
            new = count[columns] == 0
            shift[columns[new]] = values[new, 0]
            centred = values - shift[columns][:, None]
            count[columns] += values.shape[1]
            total[columns] += centred.sum(axis=1)
            square[columns] += np.einsum("ct,ct->c", centred, centred)
        mean = total / np.maximum(count, 1)
        std = np.sqrt(np.maximum(0.0, square / np.maximum(count, 1) - mean**2))
        return cls(
            mean=dict(zip(names, (shift + mean).tolist(), strict=True)), std=dict(zip(names, std.tolist(), strict=True))
        )

    def fingerprint(self) -> str:
        """Hash of the statistics."""
        return digest(sorted(self.mean.items()), sorted(self.std.items()))


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scales windows by fixed statistics.

    Args:
        norm: `none`, `window`, `channel`, `normals` or `before`.
        stats: statistics for `channel` and `normals`, and for `before` if a window has no time before; None if not
            needed or not fitted.
        whole: statistics of the corpus; a spread in the time `before` counts as at least a share of it.

    >>> corpus = WindowSet.from_arrays([[[1.0, 3.0]], [[5.0, 7.0]]])
    >>> Scaler.of("channel", corpus)(corpus[1:]).values(0).astype(float).round(2).tolist()
    [[0.45, 1.34]]
    """

    norm: Normalisation
    stats: ChannelStats | None = None
    whole: ChannelStats | None = None

    @classmethod
    def of(cls, norm: Normalisation, corpus: WindowSet, normals: WindowSet | None = None) -> Self:
        """Compute the statistics.

        Args:
            norm: kind of scaling.
            corpus: for `channel`, provides `corpus.stats` (fixed by a task, the same at all pollution levels), or its
                statistics.
            normals: provide the statistics for `normals`.
        """
        if norm not in get_args(Normalisation):
            raise ParameterError(f"norm must be one of {', '.join(get_args(Normalisation))}. Got {norm!r} instead.")
        if norm == "channel":
            return cls(norm, corpus.stats or ChannelStats.of(corpus))
        if norm == "before":
            whole = corpus.stats or ChannelStats.of(corpus)
            return cls(norm, operating_statistics(corpus, corpus[:0] if normals is None else normals), whole)
        if norm != "normals":
            return cls(norm)
        if normals is None or not len(normals):
            raise ParameterError("norm=normals needs normal windows, and this task has none. Use norm=channel.")
        return cls(norm, ChannelStats.of(normals))

    def __call__(self, windows: WindowSet) -> WindowSet:
        """Scale windows into new memory (`none` returns them unchanged); a constant channel becomes zero."""
        stacked = stack_windows(windows) if self.norm in ("channel", "normals") else None
        if stacked is None or not np.isfinite(stacked).all():
            windows.require_finite()  # names the window
        if self.norm == "none":
            return windows
        if stacked is not None:
            return _stacked_set(windows, self._scale_stacked(stacked, windows.channels(0)))
        scaled = windows.compact()
        for i in range(len(scaled)):
            values = scaled.values(i)
            values[:] = _standardise(values, *self.moments_of(scaled, i))
        return scaled

    def moments(self, channels: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation (C,) for code that scales by itself: (value - mean) / deviation, up to `MAX_SCORE`.

        A channel that is constant or unknown has an infinite deviation, which makes it zero.
        """
        if self.stats is None:
            raise UsageError(f"Fit the encoder first: norm={self.norm} scales windows by what it is fitted on.")
        mean = np.array([self.stats.mean.get(name, 0.0) for name in channels])
        std = np.array([self.stats.std.get(name, 0.0) for name in channels])
        return mean, _resolved(mean, std)

    def moments_of(self, windows: WindowSet, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation (C,) that window i is scaled by.

        For `before`, those of its time before, if it has one; the deviation is at least a share of that in the corpus.
        """
        if self.norm == "before":
            before = windows.context.before_of(i) if windows.context is not None else None
            return self.moments(windows.channels(i)) if before is None else self._usual(before, windows.channels(i))
        if self.norm != "window":
            return self.moments(windows.channels(i))
        wide = windows.values(i).astype(np.float64)
        mean, std = wide.mean(axis=1), wide.std(axis=1)
        # A few rounding steps, negligible in a corpus, would otherwise be all that such a window shows.
        return mean, np.where(std > np.abs(mean) * RESOLUTION, std, np.inf)

    def fingerprint(self) -> str:
        """Hash of the statistics; "" without any."""
        text = self.stats.fingerprint() if self.stats else ""
        return text + (self.whole.fingerprint() if self.whole else "")

    def _usual(
        self, before: NDArray[np.float32], channels: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        wide = before.astype(np.float64)
        mean = wide.mean(axis=1)
        whole = np.array([self.whole.std.get(name, 0.0) if self.whole else 0.0 for name in channels])
        return mean, _resolved(mean, np.maximum(wide.std(axis=1), MIN_SPREAD_SHARE * whole))

    def _scale_stacked(self, values: NDArray[np.float32], channels: tuple[str, ...]) -> NDArray[np.float32]:
        """(N, C, T) scaled in blocks of windows, since intermediate results are float64."""
        moments = self.moments(channels)
        out = allocate(values.size).reshape(values.shape)
        some = max(1, SCALING_BLOCK_NUMBERS // max(1, values[0].size))
        for start in range(0, len(values), some):
            out[start : start + some] = _standardise(values[start : start + some], *moments)
        return out


def operating_statistics(corpus: WindowSet, normals: WindowSet) -> ChannelStats:
    """Mean and spread of each channel in normal operation; those of the corpus for channels unknown to normals.

    A spread is at least `MIN_SPREAD_SHARE` of that in the corpus.
    """
    whole = corpus.stats or ChannelStats.of(corpus)
    if not len(normals):
        return whole
    usual = ChannelStats.of(normals)
    mean = whole.mean | usual.mean
    std = {
        n: max(usual.std[n], MIN_SPREAD_SHARE * whole.std.get(n, 0.0)) if n in usual.std else whole.std[n] for n in mean
    }
    return ChannelStats(mean, std)


def add_differences(windows: WindowSet) -> WindowSet:
    """Add the step-to-step difference of each channel as a channel `(change) NAME`.

    Statistics and context do not cover the new channels and are dropped.

    >>> add_differences(WindowSet.from_arrays([[[1.0, 3.0, 2.0]]], channels=("level",)))[0].values.tolist()
    [[1.0, 3.0, 2.0], [0.0, 2.0, -1.0]]
    """
    size = 2 * windows.channel_counts.astype(np.int64) * windows.lengths
    flat = allocate(int(size.sum()))
    offset = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)[: len(windows)]
    for i, start in enumerate(offset.tolist()):
        values = windows.values(i)
        both = flat[start : start + size[i]].reshape(2, *values.shape)
        both[0], both[1] = values, np.diff(values, axis=1, prepend=values[:, :1])
    names = tuple((*names, *(f"(change) {name}" for name in names)) for names in windows.channel_sets)
    chunk = np.zeros(len(windows), np.int32)
    return replace(windows, chunks=(flat,), chunk=chunk, offset=offset, channel_sets=names, stats=None, context=None)


def lend_before(cases: WindowSet, normals: WindowSet) -> WindowSet:
    """Give cases without a time before the normal windows of their asset in its place, if there are any.

    Use it only for the searched corpus: the asset of a query is hidden.

    >>> case = WindowSet.from_arrays([[[5.0]]], assets=["pump"])
    >>> lend_before(case, WindowSet.from_arrays([[[1.0, 2.0]]], assets=["pump"]))[0].before.tolist()
    [[1.0, 2.0]]
    """
    context = cases.context or Context.unknown(len(cases))
    numbers = np.full(len(cases), ABSENT, np.int32)
    lent: list[NDArray[np.float32]] = []
    lacking = (cases.assets != "") & ~context.has_before & np.isin(cases.assets, normals.assets)
    for asset, channel_set in dict.fromkeys(
        zip(cases.assets[lacking].tolist(), cases.channel_set[lacking].tolist(), strict=True)
    ):
        before = _usual_rows(normals[normals.assets == asset], cases.channel_sets[channel_set])
        if before is not None:
            numbers[lacking & (cases.assets == asset) & (cases.channel_set == channel_set)] = len(lent)
            lent.append(before)
    return cases.with_context(context.with_lent(lent, numbers)) if lent else cases


def _usual_rows(normals: WindowSet, channels: tuple[str, ...]) -> NDArray[np.float32] | None:
    """(C, at most MAX_LENT_STEPS) readings of these channels, taken evenly from the windows that have all of them."""
    having = [i for i in range(len(normals)) if set(channels) <= set(normals.channels(i))]
    if not having:
        return None
    rows = [normals.values(i)[[normals.channels(i).index(name) for name in channels]] for i in having]
    share = max(1, MAX_LENT_STEPS // len(rows))
    return np.concatenate([row[:, -share:] for row in rows], axis=1)[:, -MAX_LENT_STEPS:]


def _standardise(
    values: NDArray[np.float32], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(..., C, T) z-scores: deviations from the mean of the channel."""
    score = (values - mean[:, None]) / deviation[:, None]
    np.clip(score, -MAX_SCORE, MAX_SCORE, out=score)
    score[..., np.isinf(deviation), :] = 0.0  # a finite number divided by infinity may be -0.0
    return score


def _resolved(mean: NDArray[np.float64], std: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C,) deviations; infinite if they are within the rounding of a constant to float32 (half a step).

    A channel far from zero that moves by more steps is used as it is: sums around the mean are in float64.
    """
    step = np.spacing(np.abs(mean).astype(np.float32)).astype(np.float64)
    return np.where(std > step / 2, std, np.inf)


def resample(values: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Linear interpolation of (C, T) onto `length` equidistant points between first and last sample.

    >>> resample(np.array([[0.0, 2.0]], np.float32), 3).tolist()
    [[0.0, 1.0, 2.0]]
    """
    old = values.shape[1]
    if old == length:
        return values
    if old == 1:
        return np.repeat(values, length, axis=1)
    position = np.linspace(0.0, old - 1, length)
    left = np.minimum(position.astype(np.intp), old - 2)
    weight = (position - left).astype(np.float32)
    blend: NDArray[np.float32] = values[:, left] * (1 - weight) + values[:, left + 1] * weight
    return blend


def channel_axis(*sets: WindowSet) -> tuple[str, ...]:
    """All channel names in order of first appearance: the common axis for matching by name."""
    return tuple(dict.fromkeys(name for s in sets for names in _used(s) for name in names))


def _used(windows: WindowSet) -> list[tuple[str, ...]]:
    order = dict.fromkeys(windows.channel_set.tolist())
    return [windows.channel_sets[i] for i in order]


def dense(
    windows: WindowSet,
    *,
    channels: tuple[str, ...] | None = None,
    length: int | None = None,
    align: Alignment = "name",
) -> NDArray[np.float32]:
    """Windows as one array (N, C, T): missing channels are zero, lengths are interpolated.

    Args:
        windows: N windows.
        channels: common channel axis (`channel_axis`); default that of this set. Other channels are dropped.
        length: common length; default the longest of this set.
        align: match rows by `name`, or by `position` with zeros on the right.

    >>> ws = WindowSet.from_arrays([np.ones((1, 2)), np.ones((2, 3))], channels=[("b",), ("a", "b")])
    >>> dense(ws)[0].tolist()
    [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    windows.require_finite()
    axis = common_axis(align, windows) if channels is None else channels
    longest = int(windows.lengths.max(initial=1)) if length is None else length
    place = {name: row for row, name in enumerate(axis)}
    out = np.zeros((len(windows), len(axis), longest), np.float32)
    for i in range(len(windows)):
        values, names = windows.values(i), windows.channels(i)
        rows = [place.get(name, -1) for name in names] if align == "name" else list(range(len(names)))
        kept = [k for k, row in enumerate(rows) if 0 <= row < len(axis)]
        out[i, [rows[k] for k in kept]] = resample(values[kept], longest)
    return out


@dataclass(frozen=True, eq=False)
class WindowRows:
    """N windows side by side: `values` (N, C, T) with zeros after the end of each, and their `lengths` (N,)."""

    values: NDArray[np.float32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, windows: WindowSet, axis: tuple[str, ...], align: Alignment) -> Self:
        """Windows on a channel axis; a channel that a window lacks is a row of zeros.

        >>> rows = WindowRows.of(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0]]]), ("ch0", "ch1"), "name")
        >>> rows.values.tolist()
        [[[1.0, 2.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 0.0]]]
        """
        place = {name: row for row, name in enumerate(axis)}
        longest = int(windows.lengths.max(initial=1))
        alike = stack_windows(windows)
        if alike is not None:
            return cls(_spread(alike, windows.channels(0), axis, align), windows.lengths.astype(np.int64))
        values = np.zeros((len(windows), len(axis), longest), np.float32)
        for i in range(len(windows)):
            series, names = windows.values(i), windows.channels(i)
            to = [place[name] for name in names] if align == "name" else list(range(len(names)))
            values[i, to, : series.shape[1]] = series
        return cls(values, windows.lengths.astype(np.int64))


def on_grid(windows: WindowSet, axis: tuple[str, ...], length: int, align: Alignment) -> NDArray[np.float32]:
    """(N, C, T) as `dense` for finite windows; faster for windows that share channels and length."""
    alike = stack_windows(windows)
    if alike is None or alike.shape[2] != length or not np.isfinite(alike).all():
        return dense(windows, channels=axis, length=length, align=align)
    return _spread(alike, windows.channels(0), axis, align)


def stack_windows(windows: WindowSet) -> NDArray[np.float32] | None:
    """(N, C, T) windows with the same channels and length; None if they differ, or there are none.

    >>> stack_windows(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0, 4.0]]])).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    >>> stack_windows(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0]]])) is None
    True
    """
    if not len(windows) or np.ptp(windows.lengths) or np.ptp(windows.channel_set):
        return None
    size = len(windows.channels(0)) * int(windows.lengths[0])
    if not np.ptp(windows.chunk) and (np.diff(windows.offset) == size).all():  # contiguous
        first, flat = int(windows.offset[0]), windows.chunks[int(windows.chunk[0])]
        return flat[first : first + size * len(windows)].reshape(len(windows), len(windows.channels(0)), -1)
    return np.stack([windows.values(i) for i in range(len(windows))])


def _stacked_set(windows: WindowSet, values: NDArray[np.float32]) -> WindowSet:
    """Replace the values of a set by an array (N, C, T)."""
    count, size = len(windows), values[0].size
    return replace(
        windows,
        chunks=(values.reshape(-1),),
        chunk=np.zeros(count, np.int32),
        offset=np.arange(0, count * size, size, dtype=np.int64),
    )


def _spread(
    values: NDArray[np.float32], channels: tuple[str, ...], axis: tuple[str, ...], align: Alignment
) -> NDArray[np.float32]:
    """(N, C', T) on another channel axis, with zeros for missing channels."""
    names = channels if align == "name" else axis[: len(channels)]
    if names == axis:
        return values
    place = {name: row for row, name in enumerate(axis)}
    kept = [row for row, name in enumerate(names) if name in place]
    out = np.zeros((len(values), len(axis), values.shape[2]), np.float32)
    out[:, [place[names[row]] for row in kept]] = values[:, kept]
    return out


def common_axis(align: Alignment, *sets: WindowSet) -> tuple[str, ...]:
    """Channel axis of several sets: all names, or as many positions as the widest window has."""
    if align == "name":
        return channel_axis(*sets)
    return tuple(f"ch{c}" for c in range(max(int(s.channel_counts.max(initial=1)) for s in sets)))


def join_channels(left: WindowSet, right: WindowSet, align: Alignment) -> NDArray[np.float32]:
    """(Q, N) number of channels that at least one of both windows has."""
    if align == "position":
        return np.maximum.outer(left.channel_counts, right.channel_counts).astype(np.float32)
    rows, columns = (list(map(frozenset, s.channel_sets)) for s in (left, right))
    table = np.array([[len(a | b) for b in columns] for a in rows], np.float32).reshape(len(rows), len(columns))
    return table[left.channel_set][:, right.channel_set]


Readings = NDArray[np.floating[Any]]


def is_reading(values: Readings) -> NDArray[np.bool_]:
    """True for numbers that float32 can hold; sentinels such as -1.18e42 are gaps."""
    readings: NDArray[np.bool_] = np.abs(values) <= np.finfo(np.float32).max
    return readings


def fill_gaps(values: Readings, readings: NDArray[np.bool_]) -> Readings:
    """(C, T) values filled forward, then backward where `readings` (C, T) is False; zero in channels without readings.

    >>> nan = float("nan")
    >>> gaps = np.array([[nan, 1.0, nan, 4.0], [nan, nan, nan, nan]])
    >>> fill_gaps(gaps, is_reading(gaps)).tolist()
    [[1.0, 1.0, 1.0, 4.0], [0.0, 0.0, 0.0, 0.0]]
    """
    steps = np.arange(values.shape[1])
    last = np.maximum.accumulate(np.where(readings, steps, -1), axis=1)
    following = np.minimum.accumulate(np.where(readings, steps, len(steps))[:, ::-1], axis=1)[:, ::-1]
    nearest = np.where(last >= 0, last, np.where(following < len(steps), following, 0))
    filled: Readings = np.take_along_axis(values, nearest, axis=1)
    filled[~readings.any(axis=1)] = 0
    return filled


D = TypeVar("D", bound=np.generic)


def thin_series(values: NDArray[D], points: int) -> NDArray[D]:
    """(C, T) -> (C, at most `points`): minimum and maximum of each stretch, in order of time.

    This keeps spikes of one step, which means and interpolation would lose. A shorter window is returned unchanged.

    >>> thin_series(np.array([[0, 1, 5, 1, 0, 0]]), 4).tolist()
    [[0, 5, 1, 0]]
    """
    count, length = values.shape
    if length <= points:
        return values
    width = -(-length // (points // 2))
    stretches = -(-length // width)
    padded = np.pad(values, ((0, 0), (0, stretches * width - length)), mode="edge").reshape(count, stretches, width)
    ends = np.sort(np.stack([padded.argmin(axis=2), padded.argmax(axis=2)], axis=2), axis=2)
    return np.take_along_axis(padded, ends, axis=2).reshape(count, 2 * stretches)


@dataclass(frozen=True, eq=False)
class LevelScale:
    """Scales channel means and deviations by their distribution over the corpus.

    Args:
        axis: C channels.
        mean: (2C,) mean of the channels' means, then of their deviations.
        spread: (2C,) their standard deviations; infinite if constant.
    """

    axis: tuple[str, ...]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, axis: tuple[str, ...], raw: NDArray[np.float64]) -> Self:
        """Estimate from a corpus's levels (N, 2C)."""
        present = ~np.isnan(raw)
        count = np.maximum(present.sum(axis=0), 1)
        mean = np.where(present, raw, 0).sum(axis=0) / count
        spread = np.sqrt((np.where(present, raw - mean, 0) ** 2).sum(axis=0) / count)
        return cls(axis, mean, np.where(spread > 1e-12 * np.abs(mean), spread, np.inf))

    def __call__(self, raw: NDArray[np.float64]) -> NDArray[np.float32]:
        """(N, 2C) scaled; missing values are at the mean."""
        features: NDArray[np.float32] = np.nan_to_num((raw - self.mean) / self.spread, nan=0.0).astype(np.float32)
        return features


def measure_levels(
    series: Sequence[NDArray[np.float32] | None], channels: Sequence[tuple[str, ...]], axis: tuple[str, ...]
) -> NDArray[np.float64]:
    """(N, 2C) means, then deviations, of N series (C', T) on a channel axis; NaN for missing channels or series."""
    place = {name: c for c, name in enumerate(axis)}
    raw = np.full((len(series), 2, len(axis)), np.nan)
    for i, (values, names) in enumerate(zip(series, channels, strict=True)):
        if values is None:
            continue
        known = [k for k, name in enumerate(names) if name in place]
        present = values[known].astype(np.float64)
        columns = [place[names[k]] for k in known]
        raw[i, 0, columns] = present.mean(axis=1)
        raw[i, 1, columns] = present.std(axis=1)
    return raw.reshape(len(series), -1)
