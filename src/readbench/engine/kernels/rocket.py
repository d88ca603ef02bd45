"""MiniRocket: how much of a series lies above a level, after one of many dilated convolutions.

Dempster, Schmidt and Webb, "MiniRocket" (KDD 2021), with the authors' extension to several channels. There are 84
kernels of length 9: three weights are 2, six are -1. Each is applied at up to 32 dilations, each time to the sum of a
few channels drawn at random, and compared with levels (biases) that are quantiles of its response to a window drawn
from the training set. A feature is the share of the responses above one level. Every second kernel also sees the
edges, where the series is continued with zeros.

Weights sum to zero, so the response to a constant stretch is zero. Here it is exactly zero, because responses are sums
of differences: rounding would otherwise decide on which side of a level of zero such a stretch lies.

A vector holds `LANES` neighbouring points of a series, and `Counts` a count for each of them.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import (
    Lanes,
    Node,
    add,
    compiled,
    make_load,
    make_splat,
    multiply,
    operation,
    store,
    subtract,
)

LANES: Final = 8
"""Points of a vector: one 256-bit register."""
_COUNT = ir.IntType(32)
_VECTOR = ir.VectorType(_COUNT, LANES)

load = make_load(LANES)
splat = make_splat(LANES)


class Counts(types.Type):  # type: ignore[misc]
    """Numba's name for `LANES` counts."""

    def __init__(self) -> None:
        super().__init__(name=f"Counts({LANES})")


@register_model(Counts)  # type: ignore[untyped-decorator]
class _CountsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Node) -> None:
        super().__init__(manager, kind, _VECTOR)


_POINTS, _COUNTS = Lanes(LANES), Counts()


@operation
def no_counts(_typing: Node) -> Node:
    """Zero everywhere."""
    return _COUNTS(), lambda _context, _builder, _signature, _values: ir.Constant(_VECTOR, [0] * LANES)


@operation
def count_above(_typing: Node, counts: Node, points: Node, level: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """One more wherever a point is above the level."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        above = builder.fcmp_ordered(">", values[1], values[2])
        return builder.sub(values[0], builder.sext(above, _VECTOR))  # a true comparison is -1

    return _COUNTS(_COUNTS, _POINTS, _POINTS), generate


@operation
def total(_typing: Node, counts: Node) -> Node:  # noqa: ARG001
    """The sum of all counts."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        kind = ir.FunctionType(_COUNT, [_VECTOR])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{LANES}i32")
        return builder.sext(builder.call(function, [values[0]]), ir.IntType(64))

    return types.int64(_COUNTS), generate


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

TAPS = 9
SHORTEST = TAPS
"""Shorter series have no response that is free of the edges."""
MOST_DILATIONS = 32
_THREE = np.float32(3)
_floats, _ints, _int = types.float32[::1], types.int64[::1], types.intp


def _kernels() -> Ints:
    """(84, 9) tap positions of each kernel: first the three with weight 2, then the others."""
    chosen = combinations(range(TAPS), 3)
    return np.array([[*three, *(tap for tap in range(TAPS) if tap not in three)] for three in chosen], np.int64)


KERNELS = _kernels()


class Bank(NamedTuple):
    """All convolutions of a transform, one dilation after the other, each with its 84 kernels.

    Args:
        dilations: (J,) ascending.
        widths: (J,) levels per kernel at that dilation.
        begins: (84 J + 1,) where the channels of each convolution begin in `channels`.
        channels: which channels are summed.
        levels: (F,) the biases; F = 84 * sum of widths.
    """

    dilations: Ints
    widths: Ints
    begins: Ints
    channels: Ints
    levels: Floats


def dilations_of(length: int, features: int) -> tuple[Ints, Ints]:
    """Dilations for series of a length and how many levels each kernel gets at each, for about so many features.

    Exponents are evenly spaced from 1 to the dilation at which a kernel just fits; equal dilations are merged, and what
    is left over goes to the smallest.

    >>> [part.tolist() for part in dilations_of(33, 84 * 5)]
    [[1, 2, 4], [2, 2, 1]]
    """
    each = max(1, features // len(KERNELS))
    count = min(each, MOST_DILATIONS)
    widest = np.log2((length - 1) / (TAPS - 1))
    # Exponents are cut to whole dilations, not rounded, as in the authors' code.
    dilations, repeats = np.unique(np.logspace(0, widest, count, base=2).astype(np.int64), return_counts=True)
    widths = (repeats * (each / count)).astype(np.int64)
    left = each - int(widths.sum())
    widths += left // len(widths)
    widths[: left % len(widths)] += 1
    return dilations, widths


def fit_bank(windows: Floats, features: int, seed: int) -> Bank:
    """Draw channels, and levels from the responses to windows drawn from (N, C, T), T at least `SHORTEST`."""
    count, channels, length = windows.shape
    dilations, widths = dilations_of(length, features)
    rng = np.random.default_rng(seed)
    convolutions = len(KERNELS) * len(dilations)
    # The number of channels is log-uniform, from 1 to 9 at most.
    sizes = (2 ** rng.uniform(0, np.log2(min(channels, TAPS) + 1), convolutions)).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    drawn = np.concatenate([rng.choice(channels, size, replace=False) for size in sizes]).astype(np.int64)
    bank = Bank(dilations, widths, begins, drawn, np.zeros(len(KERNELS) * int(widths.sum()), np.float32))
    return add_levels(bank, windows, rng.integers(count, size=convolutions))


def add_levels(bank: Bank, windows: Floats, examples: Ints) -> Bank:
    """The bank with levels from the responses to these windows of (N, C, T), one for each convolution.

    Quantiles follow a sequence of low discrepancy, the multiples of the golden ratio modulo 1.
    """
    length, single = windows.shape[2], windows.shape[1] == 1
    quantiles = (np.arange(1, len(bank.levels) + 1) * ((np.sqrt(5) + 1) / 2) % 1).astype(np.float32)
    levels, at = np.empty_like(bank.levels), 0
    for convolution, example in enumerate(examples):
        j = convolution // len(KERNELS)
        own = bank.channels[bank.begins[convolution] : bank.begins[convolution + 1]]
        rows = pad_series(windows[example : example + 1, own]).ravel()
        answer = _response(rows, length, bank.dilations[j], KERNELS[convolution % len(KERNELS)], single)
        places = slice(at, at + bank.widths[j])
        with np.errstate(invalid="ignore"):  # of infinite responses to values near the largest float
            levels[places] = np.quantile(answer.astype(np.float64), quantiles[places])
        at = places.stop
    return bank._replace(levels=levels)


def transform(bank: Bank, windows: Floats, out: Floats) -> None:
    """Write the features (N, F) of windows (N, C, T) on the grid of those the bank was fitted on."""
    _transform(pad_series(windows), windows.shape[2], *bank, KERNELS, out)


def pad_series(windows: Floats) -> Floats:
    """(N, C, T) with zeros up to whole vectors, in one piece of memory."""
    missing = -windows.shape[2] % LANES
    return np.ascontiguousarray(np.pad(windows, ((0, 0), (0, 0), (0, missing))) if missing else windows, np.float32)


@compiled(_int(_int))
def _margin(dilation: int) -> int:
    """Zeros before the series, as many as the first tap reaches back, in whole vectors."""
    return (TAPS // 2 * dilation + LANES - 1) // LANES * LANES


@compiled(types.none(_floats, _int, _ints, _floats, _int))
def _sum_channels(window: Floats, length: int, channels: Ints, out: Floats, at: int) -> None:
    """Write the sum of some channels to out[at : at + length], and zeros up to the end of its last vector."""
    stride = (length + LANES - 1) // LANES * LANES
    first = channels[0] * stride
    second = channels[min(1, len(channels) - 1)] * stride
    for t in range(0, length, LANES):
        if len(channels) == 1:
            store(out, at + t, load(window, first + t))
        else:
            store(out, at + t, add(load(window, first + t), load(window, second + t)))
    for c in range(2, len(channels), 2):
        first, last = channels[c] * stride, c + 1 == len(channels)
        second = first if last else channels[c + 1] * stride
        for t in range(0, length, LANES):
            more = load(window, first + t)
            if not last:
                more = add(more, load(window, second + t))
            store(out, at + t, add(load(out, at + t), more))


@compiled(types.none(_floats, _int, _int, _ints, _int, _floats))
def _convolve(series: Floats, at: int, dilation: int, taps: Ints, count: int, out: Floats) -> None:
    """Responses of one kernel whose first tap is at series[at]."""
    high0, high1, high2 = at + taps[0] * dilation, at + taps[1] * dilation, at + taps[2] * dilation
    low0, low1, low2 = at + taps[3] * dilation, at + taps[4] * dilation, at + taps[5] * dilation
    low3, low4, low5 = at + taps[6] * dilation, at + taps[7] * dilation, at + taps[8] * dilation
    # Each tap of weight 2 is paired with two of weight -1: of equal values the differences are exactly zero.
    for t in range(0, count, LANES):
        one, two, three = load(series, high0 + t), load(series, high1 + t), load(series, high2 + t)
        first = add(subtract(one, load(series, low0 + t)), subtract(one, load(series, low1 + t)))
        second = add(subtract(two, load(series, low2 + t)), subtract(two, load(series, low3 + t)))
        third = add(subtract(three, load(series, low4 + t)), subtract(three, load(series, low5 + t)))
        store(out, t, add(add(first, second), third))


@compiled(types.none(_floats, _int, _ints, _int, _int, _floats))
def _combine(steps: Floats, stride: int, taps: Ints, start: int, count: int, out: Floats) -> None:
    """The same from the differences to the middle tap: three times those of weight 2, less all of them."""
    one, two, three = taps[0] * stride + start, taps[1] * stride + start, taps[2] * stride + start
    everything = TAPS * stride + start
    # 2 h - l = 3 h - (h + l), and weights that sum to zero do not see the middle tap being subtracted.
    for t in range(0, count, LANES):
        high = add(add(load(steps, one + t), load(steps, two + t)), load(steps, three + t))
        store(out, t, subtract(multiply(splat(_THREE), high), load(steps, everything + t)))


@compiled(types.none(_floats, _int, _int, _int, _floats, _int))
def _differences(series: Floats, at: int, dilation: int, length: int, out: Floats, stride: int) -> None:
    """Write the difference of each tap to the middle one, tap by tap, then the sum of all."""
    middle = at + TAPS // 2 * dilation
    for t in range(0, length, LANES):
        sum_, own = splat(np.float32(0)), load(series, middle + t)
        for tap in range(TAPS):
            step = subtract(load(series, at + tap * dilation + t), own)
            store(out, tap * stride + t, step)
            sum_ = add(sum_, step)
        store(out, TAPS * stride + t, sum_)


@compiled(types.none(_floats, _int, _floats, _floats))
def _shares(answer: Floats, count: int, levels: Floats, out: Floats) -> None:
    """Write the share of the first `count` responses above each level, four levels at a time."""
    for t in range(count, (count + LANES - 1) // LANES * LANES):
        answer[t] = -np.inf  # above no level: whole vectors can be counted
    scale = 1.0 / count
    last = len(levels) - len(levels) % 4
    for f in range(0, last, 4):
        level0, level1 = splat(levels[f]), splat(levels[f + 1])
        level2, level3 = splat(levels[f + 2]), splat(levels[f + 3])
        above0 = above1 = above2 = above3 = no_counts()
        for t in range(0, count, LANES):
            points = load(answer, t)
            above0, above1 = count_above(above0, points, level0), count_above(above1, points, level1)
            above2, above3 = count_above(above2, points, level2), count_above(above3, points, level3)
        out[f], out[f + 1] = total(above0) * scale, total(above1) * scale
        out[f + 2], out[f + 3] = total(above2) * scale, total(above3) * scale
    for f in range(last, len(levels)):
        level, above = splat(levels[f]), no_counts()
        for t in range(0, count, LANES):
            above = count_above(above, load(answer, t), level)
        out[f] = total(above) * scale


@compiled(_floats(_floats, _int, _int, _ints, types.boolean))
def _response(rows: Floats, length: int, dilation: int, taps: Ints, single: bool) -> Floats:  # noqa: FBT001
    """(T,) response of one kernel, edges included, to the sum of rows (n, T) that are `pad_series` and flat.

    With `single`, by way of the differences, as `transform` does where windows have one channel.
    """
    stride, margin = (length + LANES - 1) // LANES * LANES, _margin(dilation)
    series, answer = np.zeros(stride + 2 * margin + LANES, np.float32), np.zeros(stride, np.float32)
    _sum_channels(rows, length, np.arange(len(rows) // stride), series, margin)
    at = margin - TAPS // 2 * dilation
    if single:
        steps = np.zeros((TAPS + 1) * stride, np.float32)
        _differences(series, at, dilation, length, steps, stride)
        _combine(steps, stride, taps, 0, length, answer)
    else:
        _convolve(series, at, dilation, taps, length, answer)
    return answer[:length]


_TRANSFORM = types.none(
    *(types.float32[:, :, ::1], _int, _ints, _ints, _ints, _ints, _floats),
    *(types.int64[:, ::1], types.float32[:, ::1]),
)


@compiled(_TRANSFORM)
def _transform(  # noqa: PLR0913, PLR0917 - flat arrays in, flat arrays out
    windows: Floats,
    length: int,
    dilations: Ints,
    widths: Ints,
    begins: Ints,
    channels: Ints,
    levels: Floats,
    kernels: Ints,
    out: Floats,
) -> None:
    """Write the features (N, F) of windows (N, C, T) that are `pad_series`; the bank comes as its parts."""
    stride, single = windows.shape[2], windows.shape[1] == 1
    series = np.zeros(stride + 2 * (_margin(dilations[-1]) + LANES), np.float32)
    answer = np.zeros(stride + LANES, np.float32)
    steps = np.zeros((TAPS + 1) * stride + LANES, np.float32)
    for n in range(len(windows)):
        window, at = windows[n].reshape(-1), 0
        for j in range(len(dilations)):
            dilation, reach = dilations[j], TAPS // 2 * dilations[j]
            margin = _margin(dilation)
            series[:] = 0
            if single:
                _sum_channels(window, length, channels[:1], series, margin)
                _differences(series, margin - reach, dilation, length, steps, stride)
            for k in range(len(kernels)):
                convolution = j * len(kernels) + k
                inner = (j + k) % 2 * reach  # every second convolution sees no edges
                count = length - 2 * inner
                if single:
                    _combine(steps, stride, kernels[k], inner, count, answer)
                else:
                    own = channels[begins[convolution] : begins[convolution + 1]]
                    _sum_channels(window, length, own, series, margin)
                    _convolve(series, margin - reach + inner, dilation, kernels[k], count, answer)
                _shares(answer, count, levels[at : at + widths[j]], out[n, at : at + widths[j]])
                at += widths[j]
