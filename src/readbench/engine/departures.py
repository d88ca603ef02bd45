"""Departures of an asset from its normal operation, at a stated rate of false alarms per day.

Three kinds of values are measured per channel, each in standard deviations of normal operation: trailing means over
three spans; trailing roughness (log of the root mean square step) over two spans; and the residual of a mean after a
ridge regression on the other channels, which stays small when a set-point moves and grows when a sensor or valve no
longer agrees with the others. The largest value of each kind is divided by its limit. The score is the largest of
these ratios; above 1 the asset departs.

Limits are set from normal operation: it is cut into blocks, the maximum of each block is measured with statistics from
the other half of the time, and a generalised extreme value distribution (fitted by L-moments, its tail at least
exponential) gives the value that the stated share of blocks exceeds. Each kind gets a third of the false alarms.

The rate holds for operation like that in the normal data; a new season, product or service interval is a departure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.sharing import one_thread_for_products
from readbench.common.times import DAY_S
from readbench.errors import DataError

Floats = NDArray[np.float64]
SPAN_SHARES = (1 / 32, 1 / 8, 1 / 2)
"""Lengths of the trailing means, as shares of a window."""
ROUGHNESS_SPANS = (1, 2)
"""Indices of the spans for roughness."""
MAX_DEPARTURE = 100.0
"""Departures are clipped here, in standard deviations."""
REGRESSION_SPAN = 1
"""Index of the span whose means are regressed on the other channels."""
MAX_REGRESSION_CHANNELS = 200
"""Maximum number of channels of an asset for the regression; with more, it is left out."""
RIDGE_PENALTY = 0.02
MIN_SPREAD_SHARE = 0.1
"""Minimum standard deviation of a trailing measure, as a share of the channel's; means over few blocks hardly vary."""
MIN_BLOCKS = 12
"""Minimum number of blocks of normal operation."""
HELD_OUT_BLOCKS = 4
"""Consecutive blocks held out together, so that a slow process is not predicted from its neighbour block."""
MAX_TAIL_SHAPE = 0.25
"""Maximum shape parameter of the tail; estimates from few blocks scatter."""
OUTLIER_FACTOR = 4.0
"""Blocks with a score above this many medians are outliers and left out, at most a tenth of them."""


@dataclass(frozen=True, eq=False)
class _Normal:
    """Statistics of normal operation.

    Args:
        centre: (M, C) means of the M measures.
        spread: (M, C) their standard deviations.
        mix: (C, C) maps standardised means to regression residuals; empty for one channel, or too many.
        rest: (C,) standard deviations of the residuals.
    """

    centre: Floats
    spread: Floats
    mix: Floats
    rest: Floats

    @classmethod
    def of(cls, blocks: Sequence[Floats], floor: Floats) -> Self:
        """Estimate from blocks of measures (M, C, T)."""
        joined = np.concatenate(blocks, axis=2)
        known = np.isfinite(joined)
        counts = np.maximum(known.sum(axis=2), 1)
        centre = np.where(known, joined, 0.0).sum(axis=2) / counts
        spread = np.sqrt((np.where(known, joined - centre[:, :, None], 0.0) ** 2).sum(axis=2) / counts)
        means = len(centre) - len(ROUGHNESS_SPANS)
        spread[:means] = np.maximum(spread[:means], floor)
        spread[means:] = np.maximum(spread[means:], MIN_SPREAD_SHARE)
        channels = centre.shape[1]
        if not 2 <= channels <= MAX_REGRESSION_CHANNELS:
            return cls(centre, spread, np.empty((0, 0)), np.empty(0))
        standard = np.nan_to_num(
            (joined[REGRESSION_SPAN] - centre[REGRESSION_SPAN][:, None]) / spread[REGRESSION_SPAN][:, None]
        )
        precision = np.linalg.inv(standard @ standard.T / standard.shape[1] + RIDGE_PENALTY * np.eye(channels))
        mix = precision / np.diag(precision)[:, None]
        rest = np.sqrt(((mix @ standard) ** 2).mean(axis=1))
        return cls(centre, spread, mix, np.maximum(rest, MIN_SPREAD_SHARE * RIDGE_PENALTY))

    def departures(self, measured: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """(3, T) largest mean, roughness and residual of each step; (T,) channel of the largest mean."""
        far = np.nan_to_num(np.abs(measured - self.centre[:, :, None]) / self.spread[:, :, None])
        means = len(far) - len(ROUGHNESS_SPANS)
        rest = np.zeros(far.shape[2])
        if len(self.mix):
            scaled = (measured[REGRESSION_SPAN] - self.centre[REGRESSION_SPAN][:, None]) / self.spread[REGRESSION_SPAN][
                :, None
            ]
            rest = np.nan_to_num(np.abs(self.mix @ scaled) / self.rest[:, None]).max(axis=0)
        level = far[:means].max(axis=0)
        found = np.stack([level.max(axis=0), far[means:].max(axis=(0, 1)), rest])
        return np.minimum(found, MAX_DEPARTURE), level.argmax(axis=0)


@dataclass(frozen=True, eq=False)
class DepartureDetector:
    """Detects when an asset departs from its normal operation.

    Args:
        channels: C names.
        spans: lengths of the trailing spans, steps.
        normal: statistics of normal operation.
        maxima: (B, 3) largest mean, roughness and residual of each normal block, in standard deviations.
        block_s: length of a block, seconds.
        false_alarms_a_day: expected false alarms per day.
        units: units of the channels, "" if unknown.
    """

    channels: tuple[str, ...]
    spans: tuple[int, ...]
    normal: _Normal
    maxima: Floats
    block_s: float
    false_alarms_a_day: float
    units: tuple[str, ...]

    @classmethod
    def fit(
        cls,
        stretches: Sequence[NDArray[np.floating[Any]]],
        channels: Sequence[str],
        *,
        window: int,
        step_s: float,
        false_alarms_a_day: float,
        units: Sequence[str] = (),
    ) -> Self:
        """Fit to normal operation.

        Args:
            stretches: (C, T) readings each, in order of time, NaN in gaps.
            channels: C names.
            window: usual length of a window of the library in steps; scales spans and blocks.
            step_s: seconds between steps.
            false_alarms_a_day: expected false alarms per day.
            units: units of the channels, if known.
        """
        spans = tuple(max(2, round(window * share)) for share in SPAN_SHARES)
        measured = [measure(values, spans) for values in stretches if values.shape[1] > spans[-1]]
        blocks = [
            part[:, :, start : start + window]
            for part in measured
            for start in range(0, max(1, part.shape[2] - window // 2), window)
        ]
        if len(blocks) < MIN_BLOCKS:
            raise DataError(
                f"{len(blocks)} stretches of {window} steps of normal operation are known: at least {MIN_BLOCKS} are"
                " needed. Give a longer --learn, or add normals of this asset to the library."
            )
        floor = _least_spread(stretches)
        with one_thread_for_products():  # small products are slower on several threads of a busy machine
            maxima = _held_out_maxima(blocks, floor)
            bound = np.maximum(OUTLIER_FACTOR * np.median(maxima, axis=0), np.quantile(maxima, 0.9, axis=0))
            usual = np.flatnonzero((maxima <= bound).all(axis=1))
            kept = [blocks[i] for i in usual] if len(usual) >= MIN_BLOCKS else blocks
            maxima = _held_out_maxima(kept, floor)
            normal = _Normal.of(kept, floor)
        told = tuple(units) or ("",) * len(channels)
        return cls(tuple(channels), spans, normal, maxima, window * step_s, false_alarms_a_day, told)

    @cached_property
    def limits(self) -> Floats:
        """(3,) limits of means, roughness and residuals, in standard deviations."""
        share = min(0.5, self.false_alarms_a_day * self.block_s / DAY_S) / self.maxima.shape[1]
        return np.array([extreme_quantile(column, share) for column in self.maxima.T])

    @property
    def memory(self) -> int:
        """Steps needed before the first scored step."""
        return self.spans[-1]

    def scores(self, values: NDArray[np.floating[Any]]) -> tuple[Floats, NDArray[np.intp]]:
        """(T - memory,) scores of the steps after the first `memory`, above 1 for a departure; and their channels.

        Args:
            values: (C, T) readings, in the order of `channels`; NaN in gaps.
        """
        far, channel = self.normal.departures(measure(values, self.spans))
        return (far / self.limits[:, None]).max(axis=0), channel

    def to_json(self) -> dict[str, Any]:
        """Serialise for a JSON file."""
        normal = {name: getattr(self.normal, name).tolist() for name in ("centre", "spread", "mix", "rest")}
        return {
            "channels": self.channels,
            "units": self.units,
            "spans": self.spans,
            "normal": normal,
            "maxima": self.maxima.tolist(),
            "block_s": self.block_s,
            "false_alarms_a_day": self.false_alarms_a_day,
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Self:
        """Deserialise; raises KeyError for the format of an earlier version."""
        return cls(
            tuple(kept["channels"]),
            tuple(kept["spans"]),
            _Normal(**{name: np.array(values, np.float64) for name, values in kept["normal"].items()}),
            np.array(kept["maxima"], np.float64),
            float(kept["block_s"]),
            float(kept["false_alarms_a_day"]),
            tuple(kept["units"]),
        )


def measure(values: NDArray[np.floating[Any]], spans: Sequence[int]) -> Floats:
    """(M, C, T - longest span) trailing means and roughness; NaN where half of a span is missing.

    >>> measure(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), (2, 2, 2))[0].tolist()
    [[2.5, 3.5, 4.5]]
    """
    given = np.asarray(values, np.float64)
    longest = spans[-1]
    steps = given.shape[1] - longest
    known = np.isfinite(given)
    # Sums relative to the first reading: readings around a large level keep their digits.
    base = np.where(known.any(axis=1), given[np.arange(len(given)), np.argmax(known, axis=1)], 0.0)
    filled = np.where(known, given - base[:, None], 0.0)
    moves = np.diff(given, axis=1, prepend=given[:, :1])
    squares = np.where(np.isfinite(moves), moves, 0.0) ** 2
    sums = [_cumulate(rows) for rows in (filled, squares, ~known, ~np.isfinite(moves))]
    found = np.empty((len(spans) + len(ROUGHNESS_SPANS), len(given), steps))
    for number, span in enumerate(spans):
        mean, gaps = _trail(sums[0], span, steps) / span, _trail(sums[2], span, steps)
        found[number] = np.where(2 * gaps > span, np.nan, mean * span / np.maximum(span - gaps, 1) + base[:, None])
    for number, place in enumerate(ROUGHNESS_SPANS, start=len(spans)):
        span = spans[place]
        power, gaps = _trail(sums[1], span, steps), _trail(sums[3], span, steps)
        level = np.maximum(power, 0.0) / np.maximum(span - gaps, 1)
        found[number] = np.where(2 * gaps > span, np.nan, 0.5 * np.log(level + 1e-18))
    return found


def _cumulate(rows: NDArray[Any]) -> Floats:
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1, dtype=np.float64)], axis=1)


def _trail(sums: Floats, span: int, steps: int) -> Floats:
    """Sums over the `span` steps up to each of the last `steps` steps."""
    end = sums.shape[1]
    return sums[:, end - steps :] - sums[:, end - steps - span : end - span]


def _least_spread(stretches: Sequence[NDArray[np.floating[Any]]]) -> Floats:
    """(C,) minimum deviation of means: a share of the channel's deviation, or of its mean where it is constant."""
    values = np.concatenate([np.asarray(stretch, np.float64) for stretch in stretches], axis=1)
    usable = np.where(np.isfinite(values), values, np.nan)
    known = np.isfinite(usable).any(axis=1)
    deviation, size = np.zeros(len(values)), np.ones(len(values))
    deviation[known] = np.nanstd(usable[known], axis=1)
    size[known] = np.abs(np.nanmean(usable[known], axis=1))
    return np.maximum(MIN_SPREAD_SHARE * deviation, 1e-4 * np.maximum(size, 1e-6))


def _held_out_maxima(blocks: Sequence[Floats], floor: Floats) -> Floats:
    """(B, 3) maxima of each block, with statistics from the other half of the time."""
    parts: tuple[list[Floats], list[Floats]] = ([], [])
    for i, block in enumerate(blocks):
        parts[(i // HELD_OUT_BLOCKS) % 2].append(block)
    found = []
    for held_out, other in (parts, parts[::-1]):
        normal = _Normal.of(other, floor)
        found += [normal.departures(block)[0].max(axis=1, initial=0.0) for block in held_out]
    return np.array(found)


def extreme_quantile(maxima: Floats, share: float) -> float:
    """Value exceeded by a share of further maxima: quantile of a generalised extreme value distribution, by L-moments.

    The shape is limited to tails between exponential and `MAX_TAIL_SHAPE`. The scale is estimated from n blocks to
    about 1 / sqrt(n) and taken half of that larger.

    >>> maxima = np.random.default_rng(0).gumbel(3.0, 1.0, 5000)
    >>> round(extreme_quantile(maxima, 0.01), 1), round(3.0 - math.log(-math.log(0.99)), 1)
    (7.7, 7.6)
    """
    ordered, n = np.sort(maxima), len(maxima)
    ranks = np.arange(n)
    first = float(ordered.mean())
    weighted = float((ranks * ordered).sum() / (n * (n - 1)))
    twice = float((ranks * (ranks - 1) * ordered).sum() / (n * (n - 1) * (n - 2)))
    second = max(2 * weighted - first, 1e-9)
    skew = (6 * twice - 6 * weighted + first) / second
    c = 2 / (3 + skew) - math.log(2) / math.log(3)
    shape = min(max(-(7.8590 * c + 2.9554 * c * c), 0.0), MAX_TAIL_SHAPE)  # Hosking's k has the other sign
    if shape < 1e-3:
        scale = second / math.log(2)
        place = first - 0.5772156649 * scale
        reduced = -math.log(-math.log1p(-share))
    else:
        gamma = math.gamma(1 - shape)
        scale = second * shape / (gamma * (2**shape - 1))
        place = first - scale * (gamma - 1) / shape
        reduced = ((-math.log1p(-share)) ** -shape - 1) / shape
    return place + scale * (1 + 0.5 / math.sqrt(n)) * reduced


def find_onset(scores: Floats) -> int:
    """Step at which the departure at the last step began: the first after the last score below one half.

    >>> find_onset(np.array([0.1, 0.1, 0.5, 0.8, 1.1]))
    2
    """
    low = np.flatnonzero(scores[:-1] < 0.5)
    return int(low[-1]) + 1 if len(low) else 0
