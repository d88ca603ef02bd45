"""Bringing windows of different shape and scale together: gaps, channels, length, scale.

The one rule for missing readings (`fill_gaps`): a gap takes the last valid reading, a leading gap the next one. The
benchmark applies it inside each stretch of constant label of a recording, the case library to each window.

Three independent steps bring windows onto a common grid, as the paper's appendix "Raw-window distances" has them:

* **channels**: a channel that a window lacks is a row of zeros. Rows are matched by name (default) or, as the paper
  words it, by position with zeros on the right.
* **length**: linear interpolation onto the longest grid, so that no measured point is discarded.
* **scale**: `none`, `window` (z-score per window and channel) or `channel` (z-score per channel by statistics of the
  corpus). Scaling comes before padding, so that a missing channel reads as "at its mean".

`dense` does all three for a set. `Scaler` and `WindowRows` do it a block at a time, for scorers of raw windows. Windows
of one shape, the common case, are scaled and laid out all at once, with the numbers that one after the other would
give. `scale` scales windows before they are encoded, by statistics that are settled once, when an encoder is fitted.

`thin_series` leaves fewer points of a series for a drawing, so that no spike is lost.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from readbench.engine.windows import WindowSet
from readbench.errors import ParameterError, UsageError

Normalisation = Literal["channel", "window", "none", "normals"]
"""How raw values are scaled; `normals` is `channel` with the statistics of the normal windows."""
Alignment = Literal["name", "position"]
LARGEST_SCORE = 1e15
"""Scaled values end here, so that a reading off an almost dead channel, and sums of its square, stay finite."""


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
        """One pass in float64, one window at a time; a constant channel has standard deviation 0."""
        names = channel_axis(windows)
        place = {name: c for c, name in enumerate(names)}
        rows = [np.array([place[name] for name in own if name in place], np.intp) for own in windows.channel_sets]
        count, total, square, shift = np.zeros((4, len(names)))
        for i in range(len(windows)):
            values, own = windows.values(i), rows[windows.channel_set[i]]
            new = count[own] == 0
            shift[own[new]] = values[new, 0]
            centred = values - shift[own][:, None]
            count[own] += values.shape[1]
            total[own] += centred.sum(axis=1)
            square[own] += np.einsum("ct,ct->c", centred, centred)
        mean = total / np.maximum(count, 1)
        std = np.sqrt(np.maximum(0.0, square / np.maximum(count, 1) - mean**2))
        return cls(
            mean=dict(zip(names, (shift + mean).tolist(), strict=True)), std=dict(zip(names, std.tolist(), strict=True))
        )

    def fingerprint(self) -> str:
        """Hash of all numbers."""
        return hashlib.sha256(repr((sorted(self.mean.items()), sorted(self.std.items()))).encode()).hexdigest()[:16]


def normalise(
    windows: WindowSet, mode: Normalisation, *, corpus: WindowSet, normals: WindowSet | None = None
) -> WindowSet:
    """Scale windows; a constant channel becomes zero, never NaN.

    Args:
        windows: what to scale.
        mode: `none`, `window`, `channel` or `normals`.
        corpus: gives the statistics for `channel`: those fixed on it (`corpus.stats`), else its own.
        normals: gives the statistics for `normals`.
    """
    if mode not in get_args(Normalisation):
        raise ParameterError(f"norm must be one of {', '.join(get_args(Normalisation))}. Got {mode!r} instead.")
    windows.require_finite()
    if mode == "none":
        return windows
    if mode == "normals" and (normals is None or not len(normals)):
        raise ParameterError("norm=normals needs normal windows, and this task has none. Use norm=channel.")
    reference = None
    if mode == "channel":
        reference = corpus.stats or ChannelStats.of(corpus)
    elif mode == "normals" and normals is not None:
        reference = ChannelStats.of(normals)
    own = windows.compact()
    flat = own.chunks[0]
    scaled = replace(own, chunks=(flat,))
    for i in range(len(scaled)):
        values = scaled.values(i)
        mean, std = _location_scale(values, scaled.channels(i), reference)
        score = np.where(std > _tiny(mean), (values - mean) / np.where(std > 0, std, 1.0), 0.0)
        values[:] = score.clip(-LARGEST_SCORE, LARGEST_SCORE)
    return scaled


def _location_scale(
    values: NDArray[np.float32], channels: tuple[str, ...], reference: ChannelStats | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if reference is None:
        wide = values.astype(np.float64)
        return wide.mean(axis=1, keepdims=True), wide.std(axis=1, keepdims=True)
    mean = [reference.mean.get(name, 0.0) for name in channels]
    std = [reference.std.get(name, 0.0) for name in channels]
    return np.array(mean)[:, None], np.array(std)[:, None]


def _tiny(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spread below float32 resolution is rounding noise, not signal."""
    return np.abs(mean) * float(np.finfo(np.float32).eps)


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
    """All channel names in order of first appearance: the common axis when rows are matched by name."""
    return tuple(dict.fromkeys(name for s in sets for names in _used(s) for name in names))


def _used(windows: WindowSet) -> list[tuple[str, ...]]:
    order = dict.fromkeys(windows.channel_set.tolist())
    return [windows.channel_sets[i] for i in order]


def _default_axis(windows: WindowSet, align: Alignment) -> tuple[str, ...]:
    if align == "name":
        return channel_axis(windows)
    return tuple(f"ch{c}" for c in range(int(windows.channel_counts.max(initial=1))))


def dense(
    windows: WindowSet,
    *,
    channels: tuple[str, ...] | None = None,
    length: int | None = None,
    align: Alignment = "name",
) -> NDArray[np.float32]:
    """Windows as one array (N, C, T): missing channels zero, lengths interpolated.

    Args:
        windows: N windows.
        channels: the common axis (`channel_axis`); default this set's own. Channels outside it are left out.
        length: the common length; default the longest of this set.
        align: match rows by `name`, or by `position` with zeros on the right.

    >>> ws = WindowSet.from_arrays([np.ones((1, 2)), np.ones((2, 3))], channels=[("b",), ("a", "b")])
    >>> dense(ws)[0].tolist()
    [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    windows.require_finite()
    axis = _default_axis(windows, align) if channels is None else channels
    longest = int(windows.lengths.max(initial=1)) if length is None else length
    place = {name: row for row, name in enumerate(axis)}
    out = np.zeros((len(windows), len(axis), longest), np.float32)
    for i in range(len(windows)):
        values, names = windows.values(i), windows.channels(i)
        rows = [place.get(name, -1) for name in names] if align == "name" else list(range(len(names)))
        kept = [k for k, row in enumerate(rows) if 0 <= row < len(axis)]
        out[i, [rows[k] for k in kept]] = resample(values[kept], longest)
    return out


class Scaler:
    """Scales windows block by block, by statistics that are computed once.

    >>> corpus = WindowSet.from_arrays([[[1.0, 3.0]], [[5.0, 7.0]]])
    >>> Scaler("channel", corpus, corpus[:0])(corpus[1:]).values(0).astype(float).round(2).tolist()
    [[0.45, 1.34]]
    """

    def __init__(self, norm: Normalisation, corpus: WindowSet, normals: WindowSet) -> None:
        nothing = corpus[:0].compact()
        if norm == "normals" and not len(normals):
            normalise(nothing, norm, corpus=corpus, normals=normals)  # says why it cannot be
        self.mode: Normalisation = "channel" if norm == "normals" else norm
        stats = None
        if norm == "normals":
            stats = ChannelStats.of(normals)
        elif norm == "channel":
            stats = corpus.stats or ChannelStats.of(corpus)
        self.reference = nothing.with_stats(stats)

    def __call__(self, windows: WindowSet) -> WindowSet:
        """The windows, scaled; their own memory unless nothing is to be done."""
        values, stats = stack_windows(windows), self.reference.stats
        if values is None or stats is None or not np.isfinite(values).all():
            return normalise(windows, self.mode, corpus=self.reference)
        return _stacked_set(windows, _standardised(values, windows.channels(0), stats))


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
            own, names = windows.values(i), windows.channels(i)
            to = [place[name] for name in names] if align == "name" else list(range(len(names)))
            values[i, to, : own.shape[1]] = own
        return cls(values, windows.lengths.astype(np.int64))


def on_grid(windows: WindowSet, axis: tuple[str, ...], length: int, align: Alignment) -> NDArray[np.float32]:
    """(N, C, T) what `dense` makes of finite windows; windows that are on the grid already are only laid out."""
    alike = stack_windows(windows)
    if alike is None or alike.shape[2] != length or not np.isfinite(alike).all():
        return dense(windows, channels=axis, length=length, align=align)
    return _spread(alike, windows.channels(0), axis, align)


def stack_windows(windows: WindowSet) -> NDArray[np.float32] | None:
    """(N, C, T) windows that have the same channels and length; None where they differ, or are none.

    >>> stack_windows(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0, 4.0]]])).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    >>> stack_windows(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0]]])) is None
    True
    """
    if not len(windows) or np.ptp(windows.lengths) or np.ptp(windows.channel_set):
        return None
    size = len(windows.channels(0)) * int(windows.lengths[0])
    if not np.ptp(windows.chunk) and (np.diff(windows.offset) == size).all():  # they lie side by side
        first, flat = int(windows.offset[0]), windows.chunks[int(windows.chunk[0])]
        return flat[first : first + size * len(windows)].reshape(len(windows), len(windows.channels(0)), -1)
    return np.stack([windows.values(i) for i in range(len(windows))])


def _stacked_set(windows: WindowSet, values: NDArray[np.float32]) -> WindowSet:
    """The set with other values (N, C, T), which it holds itself."""
    count, size = len(windows), values[0].size
    return replace(
        windows,
        chunks=(values.reshape(-1),),
        chunk=np.zeros(count, np.int32),
        offset=np.arange(0, count * size, size, dtype=np.int64),
    )


def _standardised(values: NDArray[np.float32], channels: tuple[str, ...], stats: ChannelStats) -> NDArray[np.float32]:
    """(N, C, T) what `normalise` makes of them by these statistics."""
    mean = np.array([stats.mean.get(name, 0.0) for name in channels])[:, None]
    std = np.array([stats.std.get(name, 0.0) for name in channels])[:, None]
    varies = std > np.abs(mean) * float(np.finfo(np.float32).eps)
    scaled = (values - mean) / np.where(std > 0, std, 1.0)
    np.clip(scaled, -LARGEST_SCORE, LARGEST_SCORE, out=scaled)
    scaled[:, ~varies[:, 0]] = 0.0
    return scaled.astype(np.float32)


def _spread(
    values: NDArray[np.float32], channels: tuple[str, ...], axis: tuple[str, ...], align: Alignment
) -> NDArray[np.float32]:
    """(N, C', T) on another channel axis: zeros in the rows of channels that they lack."""
    names = channels if align == "name" else axis[: len(channels)]
    if names == axis:
        return values
    place = {name: row for row, name in enumerate(axis)}
    kept = [row for row, name in enumerate(names) if name in place]
    out = np.zeros((len(values), len(axis), values.shape[2]), np.float32)
    out[:, [place[names[row]] for row in kept]] = values[:, kept]
    return out


def common_axis(align: Alignment, *sets: WindowSet) -> tuple[str, ...]:
    """The channel axis of several sets: all names, or as many positions as the widest window has."""
    if align == "name":
        return channel_axis(*sets)
    return tuple(f"ch{c}" for c in range(max(int(s.channel_counts.max(initial=1)) for s in sets)))


def join_channels(left: WindowSet, right: WindowSet, align: Alignment) -> NDArray[np.float32]:
    """(Q, N) number of channels that at least one of the two windows has."""
    if align == "position":
        return np.maximum.outer(left.channel_counts, right.channel_counts).astype(np.float32)
    own, other = (list(map(frozenset, s.channel_sets)) for s in (left, right))
    table = np.array([[len(a | b) for b in other] for a in own], np.float32).reshape(len(own), len(other))
    return table[left.channel_set][:, right.channel_set]


def scaling_statistics(norm: Normalisation, corpus: WindowSet, normals: WindowSet) -> ChannelStats | None:
    """What `scale` needs: statistics of the corpus or of the normals; nothing for `none` and `window`.

    Statistics that a task fixes on its corpus (`corpus.stats`) come first: they are the same at all pollution levels.
    """
    if norm == "channel":
        return corpus.stats or ChannelStats.of(corpus)
    if norm == "normals":
        if not len(normals):
            raise ParameterError("norm=normals needs normal windows, and this task has none. Use norm=channel.")
        return ChannelStats.of(normals)
    return None


def scale(windows: WindowSet, norm: Normalisation, stats: ChannelStats | None) -> WindowSet:
    """Windows scaled by settled statistics.

    >>> import numpy as np
    >>> ws = WindowSet.from_arrays([[[1.0, 3.0]]], channels=("level",))
    >>> scale(ws, "channel", ChannelStats.of(ws)).values(0).tolist()
    [[-1.0, 1.0]]
    """
    if stats is not None:
        return normalise(windows, "channel", corpus=windows.with_stats(stats))
    if norm in ("channel", "normals"):
        raise UsageError(f"Fit the encoder first: norm={norm} scales windows by what it is fitted on.")
    return normalise(windows, norm, corpus=windows)


Readings = NDArray[np.floating[Any]]


def is_reading(values: Readings) -> NDArray[np.bool_]:
    """Where there is a number that a window, which is float32, can hold; sentinels such as -1.18e42 are gaps."""
    readings: NDArray[np.bool_] = np.abs(values) <= np.finfo(np.float32).max
    return readings


def fill_gaps(values: Readings, readings: NDArray[np.bool_]) -> Readings:
    """(C, T) values without gaps: filled forward, then backward; a channel without any reading is zero.

    Args:
        values: (C, T).
        readings: (C, T) where there is one.

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
    """(C, T) -> (C, at most `points`): the least and the greatest value of each stretch, in the order they occur.

    A mean would flatten a spike of one step and interpolation would step over it; this keeps it. A window that is short
    enough stays as it is.

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
