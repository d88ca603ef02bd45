"""Ours and the peers on the same arrays, in one process, in turn: ratios that mean something on a noisy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from readbench.errors import MethodError

REPEATS = 5


@dataclass(frozen=True, eq=False)
class Contender:
    """A named way to do the job: `run` returns its answer."""

    name: str
    run: Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Case:
    """One job, and who does it.

    Args:
        name: short name.
        what: the job in one line, with its sizes.
        ours: our way.
        peers: the others; may be empty.
        agree: raises AssertionError unless a peer's answer equals ours.
        work: how much is done, in `unit` times seconds (cells, comparisons, queries).
        unit: of work per second.
        note: what else to know.
    """

    name: str
    what: str
    ours: Contender
    peers: tuple[Contender, ...]
    agree: Callable[[Any, Any], None]
    work: float
    unit: str
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """Median seconds of a contender, its rate, and how many times slower than ours it is (median of paired ratios)."""

    name: str
    seconds: float
    rate: float
    ratio: float


@dataclass(frozen=True)
class Result:
    """What came out of one case."""

    name: str
    what: str
    unit: str
    timings: list[Timing] = field(default_factory=list)
    note: str = ""


def measure(case: Case, repeats: int = REPEATS) -> Result:
    """Check that all agree, then time them in turn, round after round."""
    everyone = (case.ours, *case.peers)
    answers = [contender.run() for contender in everyone]  # also warms up caches and compilers
    for contender, answer in zip(case.peers, answers[1:], strict=True):
        try:
            case.agree(answers[0], answer)
        except AssertionError as error:
            raise MethodError(f"{case.name}: {contender.name} gives another answer than ours: {error}") from error
    seconds = np.array([[_timed(contender) for contender in everyone] for _ in range(repeats)])
    ratios = np.median(seconds / seconds[:, :1], axis=0)
    medians = np.median(seconds, axis=0)
    timings = [
        Timing(contender.name, float(s), case.work / float(s), float(r))
        for contender, s, r in zip(everyone, medians, ratios, strict=True)
    ]
    return Result(case.name, case.what, case.unit, timings, case.note)


def _timed(contender: Contender) -> float:
    began = time.perf_counter()
    contender.run()
    return time.perf_counter() - began
