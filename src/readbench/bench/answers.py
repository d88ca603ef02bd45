"""What a case library does all day: answer about one window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.bench.measure import Case, Contender
from readbench.pipeline import Knowledge, Method
from readbench.windows import UNLABELLED, WindowSet

METHOD = "raw|ws(alpha=0.7)|raw(norm=window)|ws(alpha=0.7)|dtw-i+verdict"
"""The flagship's shape, with vectors that cost nothing in the place of its encoders."""
CLASSES, CHANNELS, LENGTH, NOISE = 8, 8, 256, 8.0


def answer(cases: int = 1000) -> Case:
    """One window against a library of cases, after the encoder: three legs, fusion, posterior and order."""
    library, query = library_of(cases), library_of(1, seed=1)
    fitted = Method(METHOD).fit(library).prepare()
    anew = Knowledge(library.labels)

    def from_scratch() -> NDArray[np.int64]:
        fitted.lesson(Knowledge(np.full(cases, UNLABELLED, np.int32)))  # what was learned is forgotten
        return fitted.rank(query, knowledge=anew).order[0]

    return Case(
        name="answer",
        what=f"one window against {cases} cases after the encoder, C={CHANNELS}, T={LENGTH}, with DTW-I and verdict;"
        " the peer learns from all labels anew",
        ours=Contender("readbench, fitted", lambda: fitted.rank(query).order[0]),
        peers=(Contender("readbench, from scratch", from_scratch),),
        agree=np.testing.assert_array_equal,
        work=1.0,
        unit="query/s",
    )


def library_of(cases: int, seed: int = 0) -> WindowSet:
    """Cases of several fault types, each with a shape of its own under noise, four to a recording."""
    shapes = np.random.default_rng(0).standard_normal((CLASSES, CHANNELS, LENGTH)).cumsum(axis=2) / LENGTH**0.5
    rng = np.random.default_rng([seed, 1])
    labels = rng.integers(1, CLASSES + 1, cases)
    values = shapes[labels - 1] + NOISE * rng.standard_normal((cases, CHANNELS, LENGTH))
    names = ("normal", *(f"fault {number}" for number in range(1, CLASSES + 1)))
    groups = [str(number) for number in np.arange(cases) // 4]
    return WindowSet.from_arrays(values, labels=labels, classes=names, groups=groups)
