"""Windows on a common channel axis, a block at a time: what scorers of raw windows work on.

Windows of one shape, the common case, are scaled and laid out all at once, with the numbers that one after the other
would give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.windows import ChannelStats, Normalisation, WindowSet, channel_axis, dense, normalise
from readbench.windows.reconcile import LARGEST_SCORE, Alignment


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
        values, stats = stacked(windows), self.reference.stats
        if values is None or stats is None or not np.isfinite(values).all():
            return normalise(windows, self.mode, corpus=self.reference)
        return _stacked_set(windows, _standardised(values, windows.channels(0), stats))


@dataclass(frozen=True, eq=False)
class Rows:
    """N windows side by side: `values` (N, C, T) with zeros after the end of each, and their `lengths` (N,)."""

    values: NDArray[np.float32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, windows: WindowSet, axis: tuple[str, ...], align: Alignment) -> Self:
        """Windows on a channel axis; a channel that a window lacks is a row of zeros.

        >>> rows = Rows.of(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0]]]), ("ch0", "ch1"), "name")
        >>> rows.values.tolist()
        [[[1.0, 2.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 0.0]]]
        """
        place = {name: row for row, name in enumerate(axis)}
        longest = int(windows.lengths.max(initial=1))
        alike = stacked(windows)
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
    alike = stacked(windows)
    if alike is None or alike.shape[2] != length or not np.isfinite(alike).all():
        return dense(windows, channels=axis, length=length, align=align)
    return _spread(alike, windows.channels(0), axis, align)


def stacked(windows: WindowSet) -> NDArray[np.float32] | None:
    """(N, C, T) windows that have the same channels and length; None where they differ, or are none.

    >>> stacked(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0, 4.0]]])).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    >>> stacked(WindowSet.from_arrays([[[1.0, 2.0]], [[3.0]]])) is None
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


def joined_channels(left: WindowSet, right: WindowSet, align: Alignment) -> NDArray[np.float32]:
    """(Q, N) number of channels that at least one of the two windows has."""
    if align == "position":
        return np.maximum.outer(left.channel_counts, right.channel_counts).astype(np.float32)
    own, other = (list(map(frozenset, s.channel_sets)) for s in (left, right))
    table = np.array([[len(a | b) for b in other] for a in own], np.float32).reshape(len(own), len(other))
    return table[left.channel_set][:, right.channel_set]
