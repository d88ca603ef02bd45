"""Ours and the peers on the same arrays, in one process, in turn: ratios that mean something on a noisy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import MethodError

REPEATS = 5
SHORTEST_S = 0.05
"""A contender runs at least so long in each round."""


@dataclass(frozen=True, eq=False)
class Contender:
    """A named way to do the job: `run` returns its answer."""

    name: str
    run: Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Contest:
    """One job, and who does it.

    Args:
        name: short name.
        what: the job in one line, with its sizes.
        ours: our way.
        peers: the others; may be empty.
        agree: raises AssertionError unless a peer's answer equals ours.
        work: how much is done, in `unit` times seconds (cells, comparisons, queries).
        unit: of work per second.
        roof: measures the rate, in `unit`, that this machine cannot exceed at the job; None where nobody knows it.
    """

    name: str
    what: str
    ours: Contender
    peers: tuple[Contender, ...]
    agree: Callable[[Any, Any], None]
    work: float
    unit: str
    roof: Callable[[], float] | None = None


@dataclass(frozen=True)
class Timing:
    """How a contender did.

    Args:
        name: who.
        seconds: median over the rounds.
        rate: work per second.
        ratio: how many times slower than ours (median of the ratios within a round).
        share_of_roof: rate as a share of the highest possible one (median of the shares within a round), if known.
    """

    name: str
    seconds: float
    rate: float
    ratio: float
    share_of_roof: float | None


@dataclass(frozen=True)
class Result:
    """What came out of one case; `roof` is the highest possible rate where it could be measured."""

    name: str
    what: str
    unit: str
    timings: list[Timing]
    roof: float | None


def measure(case: Contest, repeats: int = REPEATS) -> Result:
    """Check that all agree, then time them in turn and measure the roof, round after round."""
    everyone = (case.ours, *case.peers)
    answers = [contender.run() for contender in everyone]  # also warms up caches and compilers
    for contender, answer in zip(case.peers, answers[1:], strict=True):
        try:
            case.agree(answers[0], answer)
        except AssertionError as error:
            raise MethodError(f"{case.name}: {contender.name} gives another answer than ours: {error}") from error
    rounds = [([_timed(contender) for contender in everyone], case.roof and case.roof()) for _ in range(repeats)]
    return _summary(case, np.array([seconds for seconds, _ in rounds]), [roof for _, roof in rounds if roof])


def _summary(case: Contest, seconds: NDArray[np.float64], roofs: list[float]) -> Result:
    """Medians over rounds of seconds (rounds, contenders) and, where they are known, of the highest possible rates."""
    middle, ratios = np.median(seconds, axis=0).tolist(), np.median(seconds / seconds[:, :1], axis=0).tolist()
    shares: list[float | None] = [None] * len(middle)
    if roofs:
        shares = np.median(case.work / seconds / np.array(roofs)[:, None], axis=0).tolist()
    timings = [
        Timing(who.name, taken, case.work / taken, ratio, share)
        for who, taken, ratio, share in zip((case.ours, *case.peers), middle, ratios, shares, strict=True)
    ]
    return Result(case.name, case.what, case.unit, timings, float(np.median(roofs)) if roofs else None)


def _timed(contender: Contender) -> float:
    """Seconds of one run; short runs are repeated until the clock and the caches have settled."""
    began, runs, elapsed = time.perf_counter(), 0, 0.0
    while elapsed < SHORTEST_S:
        contender.run()
        runs, elapsed = runs + 1, time.perf_counter() - began
    return elapsed / runs
