"""Calibrated opinions on the fault types of queries, and their stated probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.calibration import Reliability, calibration_floor, reliability

if TYPE_CHECKING:
    from readbench.engine.rerankers import Opinion

OPINION = ("confidence", "correct", "truth")
"""An opinion: probability of the most likely fault type, whether it is the true one, probability of the true one."""


@dataclass(frozen=True, eq=False)
class StatedProbabilities:
    """Answers to n queries.

    Args:
        confidence: (n,) probability of the most likely fault type.
        correct: (n,) whether it is the true one.
        truth: (n,) probability of the true one; 0 if no case has it.
    """

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    truth: NDArray[np.float64]

    @classmethod
    def together(cls, parts: Iterable[StatedProbabilities]) -> Self:
        """Concatenation of several."""
        columns = [[getattr(part, name) for name in OPINION] for part in parts]
        return cls(*map(np.concatenate, zip(*columns, strict=True)))

    @property
    def curve(self) -> Reliability:
        """Reliability curve: stated probability against accuracy."""
        return reliability(self.confidence, self.correct)

    @property
    def floor(self) -> float:
        """Expected calibration error of perfectly calibrated probabilities."""
        return calibration_floor(self.confidence, seed=0)


@dataclass(frozen=True, eq=False)
class TaskOpinions:
    """Opinions on all queries of a task, and the truth.

    Args:
        labels: (Q,) true fault types.
        opinions: one a query.
    """

    labels: NDArray[np.int32]
    opinions: list[Opinion]

    @property
    def stated(self) -> StatedProbabilities:
        """Stated probabilities of the opinions."""
        said = zip(self.opinions, self.labels, strict=True)
        return StatedProbabilities(
            confidence=np.array([opinion.confidence for opinion in self.opinions]),
            correct=np.array([opinion.label for opinion in self.opinions]) == self.labels,
            truth=np.array([opinion.posterior[opinion.classes == label].sum() for opinion, label in said]),
        )

    @property
    def strangeness(self) -> NDArray[np.float64]:
        """(Q,) strangeness."""
        return np.array([opinion.strangeness for opinion in self.opinions])
