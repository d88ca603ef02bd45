"""Windows to select from, as nothing but labels and sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition
from readbench.benchmark.protocol._compose import Selection, select


@dataclass(frozen=True, eq=False)
class Windows:
    """(N,) labels, and which windows are held out."""

    labels: NDArray[np.int32]
    test: NDArray[np.bool_]

    def indices(self, *, test: bool, normal: bool) -> list[int]:
        return np.flatnonzero((self.test == test) & ((self.labels == 0) == normal)).tolist()


def windows(train: Sequence[int], test: Sequence[int]) -> Windows:
    """`train[k]` and `test[k]` windows of class k on either side, sorted by class."""
    labels = [k for side in (train, test) for k, count in enumerate(side) for _ in range(count)]
    return Windows(np.array(labels, np.int32), np.arange(len(labels)) >= sum(train))


@dataclass(frozen=True, eq=False)
class Case:
    """What to compose, and how."""

    windows: Windows
    settings: Composition
    seed: int

    def select(self) -> Selection:
        return select(self.windows.labels, self.windows.test, self.settings, self.seed)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Skewed classes, some of them on one side only; caps below, at and above what there is."""
    size = st.integers(0, 60)
    train = [draw(st.integers(0, 120)), *draw(st.lists(size, min_size=1, max_size=6))]
    test = [draw(size), *draw(st.lists(size, min_size=len(train) - 1, max_size=len(train) - 1))]
    settings = Composition(
        corpus_cap=draw(st.none() | st.integers(len(train), 150)),
        query_cap=draw(st.none() | st.integers(len(train), 40)),
        rho=draw(st.sampled_from([(0, 10, 20), (0,), (0, 5, 50), (10, 30)])),
        normals_cap=draw(st.integers(1, 60)),
    )
    return Case(windows(train, test), settings, draw(st.integers(0, 9)))


def levels_of(chosen: Selection) -> dict[int, list[int]]:
    """Rho -> windows of the corpus at that level, in order."""
    return {rho: chosen.corpus[positions].tolist() for rho, positions in chosen.levels.items()}


SKEWED = windows([400, 300, 200, 100, 20], [10, 60, 50, 30, 5])
"""Four faults from frequent to rare, and plenty of normals."""
CHOSEN = select(SKEWED.labels, SKEWED.test, Composition(corpus_cap=100, query_cap=20), seed=0)
"""A right selection, for tests that break it."""
