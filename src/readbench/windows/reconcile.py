"""Bringing windows of different shape and scale together.

Three independent steps, as the paper's appendix "Raw-window distances" has them:

* **channels**: a channel that a window lacks is a row of zeros. Rows are matched by name (default) or, as the paper
  words it, by position with zeros on the right.
* **length**: linear interpolation onto the longest grid, so that no measured point is discarded.
* **scale**: `none`, `window` (z-score per window and channel) or `channel` (z-score per channel by statistics of the
  corpus). Scaling comes before padding, so that a missing channel reads as "at its mean".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from readbench.errors import ParameterError
from readbench.windows.container import WindowSet

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
