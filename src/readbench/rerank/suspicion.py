"""Labels that look wrong: what cases of other recordings say of a resolved case.

The ridge judges every case by the cases of other recordings alone (`readbench.rerank.ridge`). Where these give the
case's own label a small probability and another one a larger, the label, or the case, deserves a second look. A wrong
label is met more often among them than elsewhere; a rare or unusual case of the right name is met there too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.rerank.judgement import Judgement
from readbench.rerank.opinion import sharpened
from readbench.rerank.ridge import Array


@dataclass(frozen=True, eq=False)
class Suspects:
    """Cases whose label others contradict, the least likely label first.

    Args:
        positions: (M,) in the corpus.
        own: (M,) probability of their label by cases of other recordings.
        labels: (M,) the label that these find most likely.
        others: (M,) its probability.
    """

    positions: NDArray[np.intp]
    own: Array
    labels: NDArray[np.int32]
    others: Array


def suspects(judgement: Judgement, exponent: float) -> Suspects:
    """The labelled cases that look like another fault type to all other recordings.

    The only case of a type is never among them: without it, nobody could know the type.

    Args:
        judgement: what the labels teach.
        exponent: that calibrates its posteriors (`readbench.rerank.opinion.Calibration`).
    """
    ridge, rows = judgement.ridge, np.arange(len(judgement.cases))
    held_out = sharpened(ridge.held_out, exponent)
    codes = np.searchsorted(ridge.classes, judgement.labels[judgement.cases])
    own, likeliest = held_out[rows, codes], held_out.argmax(axis=1)
    told = np.bincount(codes, minlength=len(ridge.classes))[codes] > 1
    found = np.flatnonzero(told & (likeliest != codes))
    found = found[np.argsort(own[found], kind="stable")]
    return Suspects(
        positions=judgement.cases[found],
        own=own[found],
        labels=ridge.classes[likeliest[found]],
        others=held_out[found, likeliest[found]],
    )
