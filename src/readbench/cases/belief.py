"""From an opinion on known fault types to one in which "unlike anything here" is an option.

How likely the next fault is of a type that the library has never seen, π, is told by the types it has seen once
(`readbench.rerank.judgement.unnamed`, Good and Turing's estimate, which Verdict uses too). How strange a window is
comes as a p-value p among the library's own held-out cases, and speaks for a new type by -1 / (e p ln p) at most
(Sellke, Bayarri and Berger, 2001). So

    P(unlike) = π / (π + (1 - π) b),     b = -e p ln p for p < 1/e, else 1

and the known types share the rest as their posterior says.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from readbench.cases.answers import UNLIKE, Fault
from readbench.rerank.judgement import unnamed
from readbench.rerank.opinion import Opinion


def unlike(p_value: float, prior: float) -> float:
    """Probability of a type that the library does not know.

    >>> round(unlike(0.5, 0.1), 3), round(unlike(0.001, 0.1), 3)
    (0.1, 0.855)
    """
    known = -math.e * p_value * math.log(p_value) if p_value < 1 / math.e else 1.0
    return prior / (prior + (1.0 - prior) * known)


def unseen_share(labels: NDArray[np.int32], groups: NDArray[np.int64]) -> float:
    """Probability that the next case is of a new type, before it is looked at.

    The estimate is never taken for certainty: where every type was met once it is 1, and nothing that a window shows
    could then speak for a known type. G recordings are not enough to say more than G / (G + 1).

    Args:
        labels: (L,) of the resolved cases.
        groups: (L,) their recordings.

    >>> unseen_share(np.int32([1, 1, 2]), np.array([0, 1, 2]))
    0.5
    """
    recordings = len(np.unique(groups))
    return min(unnamed(labels, groups), recordings / (recordings + 1))


def options(opinion: Opinion, posterior: NDArray[np.float64], new: float, classes: tuple[str, ...]) -> list[Fault]:
    """All options, most likely first.

    Args:
        opinion: on the known types.
        posterior: (K,) their probabilities, which may rule out what the opinion does not.
        new: probability of a new type.
        classes: names by label.
    """
    known = [
        Fault(
            label=classes[label],
            probability=float(p) * (1.0 - new),
            possible=int(label) in opinion.candidates and p > 0,
        )
        for label, p in zip(opinion.classes, posterior, strict=True)
    ]
    known.append(Fault(label=UNLIKE, probability=new, possible=opinion.novel or new > 0.05))
    return sorted(known, key=lambda fault: -fault.probability)
