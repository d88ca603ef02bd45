"""Does anything of a query stand in the corpus it is ranked against?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.task import Task
from readbench.windows import WindowSet

TOLERANCE = 1e-6
"""Largest difference between two values that count as equal."""


@dataclass(frozen=True)
class Audit:
    """What leaks from the corpus to the queries; a sound task has none of it.

    Args:
        shared_groups: split groups on both sides.
        overlaps: (query id, corpus id) pairs cut from overlapping samples of one recording.
        duplicates: (query id, corpus id) pairs with equal values, constant windows left out.
        constant: number of queries without any variation, which equal other constant windows without being copies.
    """

    shared_groups: tuple[str, ...]
    overlaps: tuple[tuple[str, str], ...]
    duplicates: tuple[tuple[str, str], ...]
    constant: int

    @property
    def sound(self) -> bool:
        """Whether nothing leaks."""
        return not (self.shared_groups or self.overlaps or self.duplicates)


def audit(task: Task) -> Audit:
    """Look for leaks in the largest corpus of a task."""
    queries, corpus = task.queries, task.corpus
    varying = np.array([float(np.ptp(w.values, axis=1).max()) > 0 for w in queries], bool)
    return Audit(
        shared_groups=tuple(sorted(set(queries.groups.tolist()) & set(corpus.groups.tolist()))),
        overlaps=tuple(_overlaps(queries, corpus)),
        duplicates=tuple(_duplicates(queries[varying], corpus)),
        constant=int((~varying).sum()),
    )


def _overlaps(queries: WindowSet, corpus: WindowSet) -> Iterator[tuple[str, str]]:
    """Pairs of the same recording whose steps overlap; ids are `recording@first step`."""
    places: dict[str, list[tuple[int, int, str]]] = {}
    for identity, length in zip(corpus.ids.tolist(), corpus.lengths.tolist(), strict=True):
        recording, start = _place(identity)
        places.setdefault(recording, []).append((start, start + length, identity))
    for identity, length in zip(queries.ids.tolist(), queries.lengths.tolist(), strict=True):
        recording, start = _place(identity)
        for other_start, other_stop, other in places.get(recording, ()):
            if start < other_stop and other_start < start + length:
                yield identity, other


def _place(identity: str) -> tuple[str, int]:
    recording, _, start = identity.rpartition("@")
    return (recording, int(start)) if start.isdigit() else (identity, 0)


def _duplicates(queries: WindowSet, corpus: WindowSet) -> Iterator[tuple[str, str]]:
    """Pairs with equal values: a few sums find the candidates, a full comparison decides."""
    left, right = _sketches(queries), _sketches(corpus)
    for q, sketch in enumerate(left):
        close = np.isclose(right, sketch, rtol=1e-5, atol=TOLERANCE).all(axis=1)
        for c in np.flatnonzero(close):
            own, other = queries.values(q), corpus.values(int(c))
            if own.shape == other.shape and np.allclose(own, other, rtol=0, atol=TOLERANCE):
                yield str(queries.ids[q]), str(corpus.ids[c])


def _sketches(windows: WindowSet) -> NDArray[np.float64]:
    """(N, 5) shape and three sums of each window, equal for equal windows."""
    rows = []
    for window in windows:
        values = window.values.astype(np.float64)
        ramp = np.linspace(-1.0, 1.0, values.shape[1])
        rows.append((*values.shape, values.mean(), values.std(), (values * ramp).mean()))
    return np.array(rows, np.float64).reshape(len(rows), 5)
