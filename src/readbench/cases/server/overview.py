"""The library at a glance: a map of the cases, how many are resolved, and which are twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from readbench.cases.answers import Case
from readbench.cases.server.bodies import Body
from readbench.cases.shortlist import coarse_encoder
from readbench.cases.snapshot import Snapshot
from readbench.pipeline import conceal

MOST_CASES = 2000
"""Latest cases that are looked at."""
MAIN_AXES = 50
"""Axes of the vectors among which the map looks for the two that tell the faults apart."""
TWINS = 0.98
"""Cosine of two cases from which they count as near-duplicates."""
MOST_LISTED = 12
Vectors = NDArray[np.float64]


class Point(Body):
    """A case on the map, 0 to 1 both ways."""

    case: Case
    x: float
    y: float


class Pair(Body):
    """Two cases that are almost the same."""

    first: Case
    second: Case
    likeness: float


class Overview(Body):
    """What the page shows.

    Args:
        points: cases on the map.
        twins: near-duplicates, the nearest first.
        left_out: older cases that were not looked at.
    """

    points: tuple[Point, ...]
    twins: tuple[Pair, ...]
    left_out: int


def overview_of(snapshot: Snapshot) -> Overview:
    """Look at the latest cases: MiniRocket features, scaled, and their cosines; fast enough for every visit."""
    first = max(0, len(snapshot) - MOST_CASES)
    positions = np.arange(first, len(snapshot))
    cases = [snapshot.case(int(i)) for i in positions]
    if not cases:
        return Overview(points=(), twins=(), left_out=0)
    vectors = _features(snapshot, positions)
    places = projected(vectors, snapshot.labels[positions])
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -2.0)
    return Overview(
        points=tuple(Point(case=case, x=float(x), y=float(y)) for case, (x, y) in zip(cases, places, strict=True)),
        twins=_twins(cases, likeness),
        left_out=first,
    )


def projected(vectors: Vectors, labels: NDArray[np.int32]) -> Vectors:
    """(N, 2) places, 0 to 1, on the two axes that best tell the labels apart; without three of them, the main axes.

    Args:
        vectors: (N, D).
        labels: (N,) of the cases, -1 where nobody resolved one.

    >>> projected(np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0]]), np.int32([-1, -1, -1])).round(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:MAIN_AXES] * np.sign(axes[:MAIN_AXES].sum(axis=1, keepdims=True) + 1e-12)
    main = centred @ axes.T
    flat = np.zeros((len(vectors), 2))
    known = labels >= 0
    if len(np.unique(labels[known])) > 2 and known.sum() > 2 * main.shape[1]:
        judge = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto", n_components=2)
        flat[:] = judge.fit(main[known], labels[known]).transform(main)
    else:
        flat[:, : main.shape[1]] = main[:, :2]
    low, extent = flat.min(axis=0), np.ptp(flat, axis=0)
    return np.divide(flat - low, extent, out=np.full_like(flat, 0.5), where=extent > 1e-12)


def _features(snapshot: Snapshot, positions: NDArray[np.intp]) -> Vectors:
    """(N, D) scaled features, rows of length one."""
    raw = coarse_encoder(snapshot).encode(conceal(snapshot.windows(positions))).astype(np.float64)
    deviation = raw.std(axis=0)
    scaled = np.divide(raw - raw.mean(axis=0), deviation, out=np.zeros_like(raw), where=deviation > 1e-9)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, lengths, out=np.zeros_like(scaled), where=lengths > 0)


def _twins(cases: list[Case], likeness: Vectors) -> tuple[Pair, ...]:
    rows, columns = np.nonzero(np.triu(likeness >= TWINS, 1))
    nearest = np.argsort(-likeness[rows, columns], kind="stable")[:MOST_LISTED]
    return tuple(
        Pair(first=cases[rows[i]], second=cases[columns[i]], likeness=min(1.0, float(likeness[rows[i], columns[i]])))
        for i in nearest
    )
