"""Whether an asset departs from its own normal operation, with a stated number of false alarms a day.

Three things are measured of each channel, in standard deviations of the same in normal operation: trailing means over
three spans; the trailing roughness (log of the root mean square step) over two; and what is left of a mean when the
other channels have been asked for it (a ridge regression), which stays small when a set-point moves and grows when a
sensor or a valve no longer fits the rest. The largest of each kind is divided by a limit of its own, and the score is
the largest of these shares: above 1 the asset departs.

A limit is exceeded as often as was stated: normal operation is cut into blocks, the largest value of each block is
taken with what was learned from the other half of the time, and a generalised extreme value distribution (by L-moments,
its tail at least exponential) says which value one block in so many exceeds. Each kind has a third of the false alarms.

This holds for operation like that which it learned from: a season, a new product or a service interval that it has not
seen is a departure.
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
SPANS = (1 / 32, 1 / 8, 1 / 2)
"""Shares of a window over which means are taken."""
ROUGH = (1, 2)
"""Spans over which roughness is measured."""
FARTHEST = 100.0
"""Largest departure."""
RELATED = 1
"""Span whose means are asked of the other channels."""
MOST_RELATED = 200
"""Channels of one asset from which on no relations are learned."""
RIDGE = 0.02
LEAST_SPREAD = 0.1
"""Least deviation of a trailing measure, as a share of the channel's own: a mean over few blocks may hardly move."""
LEAST_BLOCKS = 12
"""Blocks of normal operation that must be known."""
TOGETHER = 4
"""Blocks in a row that are held out together: a slow process must not be known from next door."""
HEAVIEST = 0.25
"""Largest shape of the tail; estimates from few blocks wander."""
OUTLYING = 4.0
"""Blocks whose score is so many times the usual one are no normal operation, and are left out; a tenth at most."""


@dataclass(frozen=True, eq=False)
class _Normal:
    """Statistics of normal operation.

    Args:
        centre: (M, C) means of the M measures.
        spread: (M, C) their standard deviations.
        mix: (C, C) what is left of each channel's mean after the others, from standardised means; empty where there are
            fewer than two channels or too many.
        rest: (C,) standard deviation of that.
    """

    centre: Floats
    spread: Floats
    mix: Floats
    rest: Floats

    @classmethod
    def of(cls, blocks: Sequence[Floats], floor: Floats) -> Self:
        """Learned from blocks of measures."""
        joined = np.concatenate(blocks, axis=2)
        known = np.isfinite(joined)
        counts = np.maximum(known.sum(axis=2), 1)
        centre = np.where(known, joined, 0.0).sum(axis=2) / counts
        spread = np.sqrt((np.where(known, joined - centre[:, :, None], 0.0) ** 2).sum(axis=2) / counts)
        means = len(centre) - len(ROUGH)
        spread[:means] = np.maximum(spread[:means], floor)
        spread[means:] = np.maximum(spread[means:], LEAST_SPREAD)
        channels = centre.shape[1]
        if not 2 <= channels <= MOST_RELATED:
            return cls(centre, spread, np.empty((0, 0)), np.empty(0))
        standard = np.nan_to_num((joined[RELATED] - centre[RELATED][:, None]) / spread[RELATED][:, None])
        precision = np.linalg.inv(standard @ standard.T / standard.shape[1] + RIDGE * np.eye(channels))
        mix = precision / np.diag(precision)[:, None]
        rest = np.sqrt(((mix @ standard) ** 2).mean(axis=1))
        return cls(centre, spread, mix, np.maximum(rest, LEAST_SPREAD * RIDGE))

    def departures(self, measured: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """(3, T) the largest mean, roughness and rest of each step, and (T,) the channel of the largest mean."""
        far = np.nan_to_num(np.abs(measured - self.centre[:, :, None]) / self.spread[:, :, None])
        means = len(far) - len(ROUGH)
        rest = np.zeros(far.shape[2])
        if len(self.mix):
            own = (measured[RELATED] - self.centre[RELATED][:, None]) / self.spread[RELATED][:, None]
            rest = np.nan_to_num(np.abs(self.mix @ own) / self.rest[:, None]).max(axis=0)
        level = far[:means].max(axis=0)
        found = np.stack([level.max(axis=0), far[means:].max(axis=(0, 1)), rest])
        return np.minimum(found, FARTHEST), level.argmax(axis=0)


@dataclass(frozen=True, eq=False)
class DepartureDetector:
    """What is normal of one asset, and from when on it departs.

    Args:
        channels: C names.
        spans: steps of the trailing spans.
        normal: statistics of normal operation.
        maxima: (B, 3) largest mean, roughness and rest of each block of normal operation, in standard deviations.
        block_s: seconds of a block.
        false_alarms_a_day: how often normal operation may exceed the limits.
        units: of the channels, "" where unknown.
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
        """Learn from normal operation.

        Args:
            stretches: (C, T) readings each, in order, NaN in gaps.
            channels: C names.
            window: usual steps of a window of the library: spans and blocks are measured by it.
            step_s: seconds between steps.
            false_alarms_a_day: how often normal operation may exceed the limits.
            units: of the channels, where they are known.
        """
        spans = tuple(max(2, round(window * share)) for share in SPANS)
        measured = [measure(own, spans) for own in stretches if own.shape[1] > spans[-1]]
        blocks = [
            part[:, :, start : start + window]
            for part in measured
            for start in range(0, max(1, part.shape[2] - window // 2), window)
        ]
        if len(blocks) < LEAST_BLOCKS:
            raise DataError(
                f"{len(blocks)} stretches of {window} steps of normal operation are known: at least {LEAST_BLOCKS} are"
                " needed. Give a longer --learn, or add normals of this asset to the library."
            )
        floor = _least_spread(stretches)
        with one_thread_for_products():  # on a busy machine the threads of small products wait for each other
            maxima = _held_out_maxima(blocks, floor)
            bound = np.maximum(OUTLYING * np.median(maxima, axis=0), np.quantile(maxima, 0.9, axis=0))
            usual = np.flatnonzero((maxima <= bound).all(axis=1))
            kept = [blocks[i] for i in usual] if len(usual) >= LEAST_BLOCKS else blocks
            maxima = _held_out_maxima(kept, floor)
            normal = _Normal.of(kept, floor)
        told = tuple(units) or ("",) * len(channels)
        return cls(tuple(channels), spans, normal, maxima, window * step_s, false_alarms_a_day, told)

    @cached_property
    def limits(self) -> Floats:
        """(3,) of means, roughness and rests, in standard deviations."""
        share = min(0.5, self.false_alarms_a_day * self.block_s / DAY_S) / self.maxima.shape[1]
        return np.array([extreme_quantile(own, share) for own in self.maxima.T])

    @property
    def memory(self) -> int:
        """Steps that must lie before the first one that is scored."""
        return self.spans[-1]

    def scores(self, values: NDArray[np.floating[Any]]) -> tuple[Floats, NDArray[np.intp]]:
        """(T - memory,) scores of the steps after the first `memory`, above 1 where it departs; and a channel of each.

        Args:
            values: (C, T) readings, in the order of `channels`; NaN in gaps, which count as nothing.
        """
        far, channel = self.normal.departures(measure(values, self.spans))
        return (far / self.limits[:, None]).max(axis=0), channel

    def to_json(self) -> dict[str, Any]:
        """As a file keeps it."""
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
        """As it was; KeyError where an earlier version kept something else."""
        return cls(
            tuple(kept["channels"]),
            tuple(kept["spans"]),
            _Normal(**{name: np.array(own, np.float64) for name, own in kept["normal"].items()}),
            np.array(kept["maxima"], np.float64),
            float(kept["block_s"]),
            float(kept["false_alarms_a_day"]),
            tuple(kept["units"]),
        )


def measure(values: NDArray[np.floating[Any]], spans: Sequence[int]) -> Floats:
    """(M, C, T - longest span) trailing means and roughness of each step after the first; NaN where a gap lies in it.

    >>> measure(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), (2, 2, 2))[0].tolist()
    [[2.5, 3.5, 4.5]]
    """
    given = np.asarray(values, np.float64)
    longest = spans[-1]
    steps = given.shape[1] - longest
    known = np.isfinite(given)
    # Sums of what departs from the first reading: readings around a large level keep their digits.
    base = np.where(known.any(axis=1), given[np.arange(len(given)), np.argmax(known, axis=1)], 0.0)
    filled = np.where(known, given - base[:, None], 0.0)
    moves = np.diff(given, axis=1, prepend=given[:, :1])
    squares = np.where(np.isfinite(moves), moves, 0.0) ** 2
    sums = [_cumulate(own) for own in (filled, squares, ~known, ~np.isfinite(moves))]
    found = np.empty((len(spans) + len(ROUGH), len(given), steps))
    for number, span in enumerate(spans):
        mean, gaps = _trail(sums[0], span, steps) / span, _trail(sums[2], span, steps)
        found[number] = np.where(2 * gaps > span, np.nan, mean * span / np.maximum(span - gaps, 1) + base[:, None])
    for number, place in enumerate(ROUGH, start=len(spans)):
        span = spans[place]
        power, gaps = _trail(sums[1], span, steps), _trail(sums[3], span, steps)
        level = np.maximum(power, 0.0) / np.maximum(span - gaps, 1)
        found[number] = np.where(2 * gaps > span, np.nan, 0.5 * np.log(level + 1e-18))
    return found


def _cumulate(rows: NDArray[Any]) -> Floats:
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1, dtype=np.float64)], axis=1)


def _trail(sums: Floats, span: int, steps: int) -> Floats:
    """Sums over the `span` steps that end at each of the last `steps`."""
    end = sums.shape[1]
    return sums[:, end - steps :] - sums[:, end - steps - span : end - span]


def _least_spread(stretches: Sequence[NDArray[np.floating[Any]]]) -> Floats:
    """(C,) the least deviation of means: a share of the channel's own, or of its size where it never moves."""
    values = np.concatenate([np.asarray(own, np.float64) for own in stretches], axis=1)
    usable = np.where(np.isfinite(values), values, np.nan)
    known = np.isfinite(usable).any(axis=1)
    deviation, size = np.zeros(len(values)), np.ones(len(values))
    deviation[known] = np.nanstd(usable[known], axis=1)
    size[known] = np.abs(np.nanmean(usable[known], axis=1))
    return np.maximum(LEAST_SPREAD * deviation, 1e-4 * np.maximum(size, 1e-6))


def _held_out_maxima(blocks: Sequence[Floats], floor: Floats) -> Floats:
    """(B, 3) largest values of each block, by what was learned from the other half of the time."""
    parts: tuple[list[Floats], list[Floats]] = ([], [])
    for i, block in enumerate(blocks):
        parts[(i // TOGETHER) % 2].append(block)
    found = []
    for own, other in (parts, parts[::-1]):
        normal = _Normal.of(other, floor)
        found += [normal.departures(block)[0].max(axis=1, initial=0.0) for block in own]
    return np.array(found)


def extreme_quantile(maxima: Floats, share: float) -> float:
    """The value that a share of further maxima exceed: a generalised extreme value distribution, by L-moments.

    Its shape is bounded to tails between exponential and `HEAVIEST`. From n blocks the scale is known to about
    1 / sqrt(n): it is taken half of that larger.

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
    shape = min(max(-(7.8590 * c + 2.9554 * c * c), 0.0), HEAVIEST)  # Hosking's k has the other sign
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
    """The step at which a departure began that is seen at the last step: where its score last lay below one half.

    >>> find_onset(np.array([0.1, 0.1, 0.5, 0.8, 1.1]))
    2
    """
    low = np.flatnonzero(scores[:-1] < 0.5)
    return int(low[-1]) + 1 if len(low) else 0
