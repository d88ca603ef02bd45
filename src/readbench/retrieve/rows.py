"""Windows on a common channel axis, a block at a time: what scorers that keep unequal lengths work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.windows import ChannelStats, Normalisation, WindowSet, channel_axis, normalise
from readbench.windows.reconcile import Alignment


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
        return normalise(windows, self.mode, corpus=self.reference)


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
        values = np.zeros((len(windows), len(axis), longest), np.float32)
        for i in range(len(windows)):
            own, names = windows.values(i), windows.channels(i)
            to = [place[name] for name in names] if align == "name" else list(range(len(names)))
            values[i, to, : own.shape[1]] = own
        return cls(values, windows.lengths.astype(np.int64))


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
