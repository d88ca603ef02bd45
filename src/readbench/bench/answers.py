"""What a case library does all day: answer about one window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from readbench.bench.measure import Case, Contender
from readbench.encoders import unit
from readbench.pipeline import System, group_numbers
from readbench.ranking import rank
from readbench.rerank import View
from readbench.rerank.verdict import Judgement, judged
from readbench.windows import WindowSet

METHOD = "raw|ws(alpha=0.7)|raw(norm=window)|ws(alpha=0.7)|dtw-i+verdict"
"""The flagship's shape, with vectors that cost nothing in the place of its encoders."""
CLASSES, CHANNELS, LENGTH, NOISE = 8, 8, 256, 8.0


def answer(cases: int = 1000) -> Case:
    """One window against a library of cases, after the encoder: three legs, fusion, posterior and order."""
    library, query = library_of(cases), library_of(1, seed=1).anonymous()
    system = System(METHOD).fit(library, library[:0])
    lesson = learned(system, library)

    def ours() -> NDArray[np.int64]:
        base = rank(system.combine([leg.score(query) for leg in system.legs]))
        asked = [unit(leg.represent(library, query)[0]) for leg in system.viewing]
        views = tuple(View(own, view.items) for own, view in zip(asked, lesson.views, strict=True))
        known = replace(lesson, views=views)
        return base[0][rank(known.shared(np.array([0]), base).astype(np.float32))[0]]

    return Case(
        name="answer",
        what=f"one window against {cases} cases after the encoder, C={CHANNELS}, T={LENGTH}, with DTW-I and verdict;"
        " the peer learns from all labels anew",
        ours=Contender("readbench, fitted", ours),
        peers=(Contender("readbench, from scratch", lambda: rank(system.score(query))[0]),),
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


def learned(system: System, library: WindowSet) -> Judgement:
    """What the labels of a library teach."""
    views = views_of(system, library, library[:1])
    return judged(views, np.arange(len(library)), library.labels, group_numbers(library))


def views_of(system: System, library: WindowSet, queries: WindowSet) -> tuple[View, ...]:
    """Queries and library as the legs of a fitted method see them, rows of length one."""
    seen = (leg.represent(library, queries) for leg in system.viewing)
    return tuple(View(unit(asked), unit(items)) for asked, items in seen)
