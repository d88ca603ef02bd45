"""Departures from the time before a window: encoders `departure`, `residual` and `facts`; no network, no labels.

On a machine without cases, the absolute levels of the sensors do not match those of other machines. Departures from
the time before the window do.

`departure` has 14 numbers per channel, measured by its median m and spread s in the time before,

    s^2 = (n own^2 + n0 typical^2) / (n + n0)      n steps before, n0 = T / 2, typical: median spread among normals

so that a short time before counts less. The numbers are the departures (x - m) / s of the window's mean and its four
quarters, the difference of its halves, and the log growth of its spread and of its step-to-step movement. All are
saturated, departures at two scales (tanh(x / 5), tanh(x / 20)): direction and approximate size transfer to other
machines, the exact size does not. Channels with large departures get more weight, the more so the more channels there
are: a channel's numbers are multiplied by the power log10(1 + C) of their length.

`residual` is for windows cut at an event, such as heartbeats: the window minus the median of earlier stretches, which
are cut alike. `facts` are the facts of windows relative to the corpus.

A window without a time before, or without facts, has a zero vector. The level of the time before is not part of any
vector. Missing channels are zero, as elsewhere, which reveals the set of channels.

The constants of `departure` were chosen on the five simulators, except the minimum share of the corpus's spread, which
they do not determine (docs/flagship.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.abilities import UsesContext
from readbench.engine.encoders._raw import ChannelGrid
from readbench.engine.preparation import ChannelStats, channel_axis
from readbench.engine.protocols import BatchEncoder, Metric, Vectors, unit_vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError

VERSION = 1
"""Increased when vectors change, so that stored ones are not mixed."""
Array = NDArray[np.float64]
SCALES = (5.0, 20.0)
"""Saturation of departures, in spreads."""
TREND, QUARTER, SPREAD, MOVEMENT = 0.2, 0.2, 0.2, 0.5
"""Weights relative to the departure of the mean."""
MOVEMENT_SCALE = 2.0
"""Saturation of the log growth of movement."""
PRIOR_SHARE = 0.5
"""Weight of the typical spread, in steps as a share of the window."""
MIN_SPREAD_OF_LEVEL, MIN_SPREAD_OF_CORPUS = 1e-3, 5e-3
"""Minimum spread, as a share of the channel's level and of its spread in the corpus."""
MIN_SPREAD = 1e-9
NUMBERS_PER_CHANNEL = 6 * len(SCALES) + 2
"""Numbers per channel."""
FACT_SCALE = 0.2
"""Saturation of the log ratio of a fact to its median in the corpus."""


@dataclass(frozen=True, eq=False)
class UsualCourse:
    """Statistics of C channels in the time before a window, (C,) each.

    Args:
        centre: median.
        spread: deviation.
        inner: deviation within a stretch as long as the window.
        movement: deviation of step-to-step differences.
        steps: number of steps.
    """

    centre: Array
    spread: Array
    inner: Array
    movement: Array
    steps: int

    @classmethod
    def of(cls, before: NDArray[np.float32], length: int) -> UsualCourse:
        """Measure the time before (C, T_b) of a window of `length` steps.

        >>> UsualCourse.of(np.array([[1, 3, 1, 3]], np.float32), 2).inner.tolist()
        [1.0]
        """
        wide = before.astype(np.float64)
        stretches = wide[:, None] if wide.shape[1] < length else _cut(wide, length)
        inner = np.sqrt(stretches.var(axis=2).mean(axis=1))
        return cls(np.median(wide, axis=1), wide.std(axis=1), inner, _movement(wide), wide.shape[1])


@ENCODERS.register("departure", title="Departure", family="embedder", abilities=(UsesContext,))
class Departure(BatchEncoder):
    """Departure of each channel from the time before the window."""

    metric: Metric = "cosine"
    corpus_dependent = False
    uses_context = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine the channels and their typical spread."""
        self.axis_ = channel_axis(corpus)
        whole = corpus.stats or ChannelStats.of(corpus)
        self.whole_ = np.array([whole.std.get(name, 0.0) for name in self.axis_])
        typical = measure_typical_spread(normals, self.axis_)
        known = np.isfinite(typical)
        self.typical_ = typical if known.all() else np.where(known, typical, measure_typical_spread(corpus, self.axis_))
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, C * NUMBERS_PER_CHANNEL) float32, channel by channel; zeros for windows without a time before."""
        if not hasattr(self, "axis_"):
            raise UsageError("Fit the encoder first: it needs to know the channels of the corpus.")
        place = {name: c for c, name in enumerate(self.axis_)}
        out = np.zeros((len(windows), len(self.axis_), NUMBERS_PER_CHANNEL))
        for i, usual in _usual_courses(windows):
            names = windows.channels(i)
            kept = [k for k, name in enumerate(names) if name in place]
            columns = [place[names[k]] for k in kept]
            out[i, columns] = self._numbers(windows.values(i).astype(np.float64), usual, place, names)[kept]
        loudness = np.linalg.norm(out, axis=2, keepdims=True)
        out *= loudness ** np.log10(1 + len(self.axis_))
        return out.reshape(len(windows), -1).astype(np.float32)

    def fingerprint(self) -> str:
        """Hash of the channels and spreads."""
        return digest("departure", VERSION, self.axis_, self.whole_.tolist(), self.typical_.tolist())

    def _numbers(self, values: Array, usual: UsualCourse, place: dict[str, int], names: tuple[str, ...]) -> Array:
        """(C, NUMBERS_PER_CHANNEL) for the channels of one window (C, T)."""
        columns = [place.get(name, 0) for name in names]
        least = (
            np.maximum(MIN_SPREAD_OF_LEVEL * np.abs(usual.centre), MIN_SPREAD_OF_CORPUS * self.whole_[columns])
            + MIN_SPREAD
        )
        prior = PRIOR_SHARE * values.shape[1]
        shrunk = (usual.steps * usual.spread**2 + prior * self.typical_[columns] ** 2) / (usual.steps + prior)
        scale = np.maximum(np.sqrt(shrunk), least)
        quarters = (_quarters(values) - usual.centre[:, None]) / scale[:, None]
        trend = quarters[:, 2:].mean(axis=1) - quarters[:, :2].mean(axis=1)
        departures = np.column_stack([(values.mean(axis=1) - usual.centre) / scale, trend, quarters])
        weights = np.array([1.0, TREND, *[QUARTER] * 4]) / np.sqrt(len(SCALES))
        grown = np.log(values.std(axis=1) / np.maximum(usual.inner, least) + 1e-3)
        moved = np.log((_movement(values) + 1e-3 * scale) / (usual.movement + 1e-3 * scale))
        return np.column_stack(
            [
                *(weights * np.tanh(departures / size) for size in SCALES),
                SPREAD * np.tanh(grown),
                MOVEMENT * np.tanh(moved / MOVEMENT_SCALE),
            ]
        )


@ENCODERS.register("residual", title="Residual", family="embedder", abilities=(UsesContext,))
class Residual(BatchEncoder):
    """The window minus its usual course, the median of earlier stretches of the same length.

    For windows cut at an event, as the stretches before them are. Each channel is centred and scaled by the deviation
    of its usual course.
    """

    metric: Metric = "cosine"
    corpus_dependent = False
    uses_context = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine channels and length."""
        self.grid_ = ChannelGrid.of(corpus, normals, "none")
        return self

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window and of its vector."""
        return super().footprint(windows) + self.grid_.size

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, C * T) unit vectors, channel by channel; zeros for windows without a whole earlier stretch."""
        copied = windows.compact()
        for i in range(len(copied)):
            before = None if copied.context is None else copied.context.before_of(i)
            copied.values(i)[:] = _residual(copied.values(i), before)
        return unit_vectors(self.grid_(copied).reshape(len(windows), self.grid_.size))

    def fingerprint(self) -> str:
        """Hash of the grid."""
        return digest("residual", VERSION, self.grid_.fingerprint())


@ENCODERS.register("facts", title="Facts", family="embedder", abilities=(UsesContext,))
class FactEncoder(BatchEncoder):
    """Facts of windows relative to their median in the corpus."""

    metric: Metric = "euclidean"
    corpus_dependent = True
    uses_context = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Determine the facts and their medians."""
        context = corpus.context
        self.names_ = () if context is None else context.compact().fact_names
        table = _fact_table(corpus, self.names_)
        self.median_ = np.nanmedian(table, axis=0) if len(self.names_) else np.empty(0)
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, F) saturated log ratios to the median; zero for unknown facts."""
        table = _fact_table(windows, self.names_)
        comparable = (table > 0) & (self.median_ > 0)
        ratio = np.divide(table, self.median_, out=np.ones_like(table), where=comparable)
        vectors = np.tanh(np.log(ratio) / FACT_SCALE).astype(np.float32)
        return vectors if len(self.names_) else np.zeros((len(windows), 1), np.float32)

    def fingerprint(self) -> str:
        """Hash of names and medians."""
        return digest("facts", VERSION, self.names_, self.median_.tolist())


def measure_typical_spread(windows: WindowSet, axis: tuple[str, ...]) -> Array:
    """(C,) median spread of channels in the time before the windows, else in the windows; NaN if unknown."""
    context, spreads = windows.context, {name: list[float]() for name in axis}
    for i in range(len(windows)):
        before = None if context is None else context.before_of(i)
        measured = (windows.values(i) if before is None else before).astype(np.float64).std(axis=1)
        for name, spread in zip(windows.channels(i), measured, strict=True):
            if name in spreads:
                spreads[name].append(float(spread))
    return np.array([np.median(found) if found else np.nan for found in spreads.values()])


def _usual_courses(windows: WindowSet) -> Iterator[tuple[int, UsualCourse]]:
    """Yield the windows that have a time before, with its statistics, measured once if shared."""
    context, known = windows.context, dict[tuple[int, int], UsualCourse]()
    for i in range(len(windows)):
        before = None if context is None else context.before_of(i)
        if context is not None and before is not None:
            key = int(context.first_alike[i]), int(windows.lengths[i])
            if key not in known:
                known[key] = UsualCourse.of(before, key[1])
            yield i, known[key]


def _residual(values: NDArray[np.float32], before: NDArray[np.float32] | None) -> Array:
    """(C, T) window minus its usual course, in deviations of that; zeros without one."""
    if before is None or before.shape[1] < values.shape[1]:
        return np.zeros(values.shape)
    usual = np.median(_cut(before.astype(np.float64), values.shape[1]), axis=1)
    usual -= usual.mean(axis=1, keepdims=True)
    spread = usual.std(axis=1, keepdims=True)
    course = values - values.mean(axis=1, keepdims=True, dtype=np.float64) - usual
    return np.divide(course, spread, out=np.zeros_like(course), where=spread > MIN_SPREAD)


def _cut(series: Array, length: int) -> Array:
    """(C, S, length) latest complete stretches of a series (C, T)."""
    return series[:, series.shape[1] % length :].reshape(len(series), -1, length)


def _quarters(values: Array) -> Array:
    """(C, 4) means of the quarters of a window; of the whole if a quarter is empty."""
    bounds = np.arange(5) * values.shape[1] // 4
    return np.stack(
        [values[:, a:b].mean(axis=1) if b > a else values.mean(axis=1) for a, b in pairwise(bounds)], axis=1
    )


def _movement(values: Array) -> Array:
    """(C,) deviation of step-to-step differences; zero for a single step."""
    return np.diff(values, axis=1).std(axis=1) if values.shape[1] > 1 else np.zeros(len(values))


def _fact_table(windows: WindowSet, names: tuple[str, ...]) -> Array:
    """(N, F) facts of windows; NaN if unknown."""
    table = np.full((len(windows), len(names)), np.nan)
    if windows.context is not None:
        for f, name in enumerate(names):
            if name in windows.context.fact_names:
                table[:, f] = windows.context.facts[:, windows.context.fact_names.index(name)]
    return table
