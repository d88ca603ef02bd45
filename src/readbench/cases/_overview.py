"""Review of a library: cases to label next, doubtful labels, map of the cases, near-duplicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import Snapshot
from readbench.cases._models import Case, CasePair, Doubt, LibraryOverview, MapPoint, Suggestion
from readbench.cases._search import Review, bare, coarse_encoder
from readbench.engine.rerankers import Array, LabelModel, select_most_informative, sharpen, suspects

MAX_CASES = 2000
"""Number of cases on the map: the latest."""
MAX_COMPONENTS = 50
"""Principal components from which the two axes of the map are computed."""
TWIN_SIMILARITY = 0.98
"""Smallest cosine of near-duplicates."""
MAX_LISTED = 12
DOUBTED_SHARE, DOUBTED_ALWAYS = 0.1, 5
"""Largest share of doubtful labels, and their number allowed in any library."""
CONTRADICTION_RATIO = 5.0
"""Smallest ratio of the probability of another fault type to that of the label."""
Vectors = NDArray[np.float64]


def suggest_next(review: Review, count: int) -> list[Suggestion]:
    """Open cases to label next, the most informative first (`readbench.engine.rerankers`).

    Args:
        review: N cases with the fitted method.
        count: largest number of suggestions.
    """
    snapshot, lesson = review.snapshot, review.lesson
    guesses, names = _calibrate(lesson), _names(snapshot, lesson)
    doubt = np.ones(len(snapshot)) if guesses is None else 1.0 - guesses.max(axis=1)
    telling = select_most_informative(review.fitted.units, snapshot.labels, review.fitted.groups, doubt, count)
    return [
        Suggestion(
            case=snapshot.case(position),
            guess=None if guesses is None or doubt[position] == 1.0 else names[guesses[position].argmax()],
            doubt=float(doubt[position]),
            tells=tells,
        )
        for position, tells in zip(telling.positions.tolist(), telling.tells.tolist(), strict=True)
    ]


def find_doubtful(review: Review, count: int) -> list[Doubt]:
    """Cases whose label the other recordings contradict most (`readbench.engine.rerankers`).

    Only clear contradictions count, and at most a tenth of the labels, since similar faults often make another type
    likelier than a correct label (`research.label_doubts` measures both).
    """
    snapshot, lesson = review.snapshot, review.lesson
    if lesson is None:
        return []
    found = suspects(lesson.judgement, lesson.calibration.exponent)
    most = max(DOUBTED_ALWAYS, int(DOUBTED_SHARE * len(lesson.judgement.cases)))
    clear = np.flatnonzero(found.others >= CONTRADICTION_RATIO * found.own)[: min(count, most)]
    return [
        Doubt(
            case=snapshot.case(int(found.positions[i])),
            probability=float(found.own[i]),
            rather=snapshot.classes[found.labels[i]],
            rather_probability=float(found.others[i]),
        )
        for i in clear
    ]


def _calibrate(lesson: LabelModel | None) -> Array | None:
    """(N, K) calibrated probabilities of the fault types; None with fewer than two types."""
    if lesson is None or lesson.guesses.shape[1] < 2:
        return None
    return np.where(lesson.guesses > 0, sharpen(lesson.guesses, lesson.calibration.exponent), 0.0)


def _names(snapshot: Snapshot, lesson: LabelModel | None) -> list[str]:
    """(K,) names of the fault types of a lesson."""
    return [] if lesson is None else [snapshot.classes[label] for label in lesson.judgement.classes]


def draw_map(snapshot: Snapshot) -> LibraryOverview:
    """Map and near-duplicates of the latest cases, by cosine of scaled MiniRocket features."""
    first = max(0, len(snapshot) - MAX_CASES)
    positions = np.arange(first, len(snapshot))
    cases = [snapshot.case(int(i)) for i in positions]
    if not cases:
        return LibraryOverview(points=(), twins=(), left_out=0)
    vectors = _scale_features(snapshot, positions)
    places = project_vectors(vectors, snapshot.labels[positions])
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -2.0)
    return LibraryOverview(
        points=tuple(MapPoint(case=case, x=float(x), y=float(y)) for case, (x, y) in zip(cases, places, strict=True)),
        twins=_find_twins(cases, likeness),
        left_out=first,
    )


def project_vectors(vectors: Vectors, labels: NDArray[np.int32]) -> Vectors:
    """(N, 2) coordinates from 0 to 1: two discriminant axes, or principal components with fewer than three labels.

    Args:
        vectors: (N, D) vectors.
        labels: (N,) label numbers, -1 for open cases.

    >>> project_vectors(np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0]]), np.int32([-1, -1, -1])).round(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:MAX_COMPONENTS] * np.sign(axes[:MAX_COMPONENTS].sum(axis=1, keepdims=True) + 1e-12)
    main = centred @ axes.T
    flat = np.zeros((len(vectors), 2))
    known = labels >= 0
    if len(np.unique(labels[known])) > 2 and known.sum() > 2 * main.shape[1]:
        from sklearn.discriminant_analysis import (  # noqa: PLC0415 - a second that only the map needs
            LinearDiscriminantAnalysis,
        )

        judge = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto", n_components=2)
        flat[:] = judge.fit(main[known], labels[known]).transform(main)
    else:
        flat[:, : main.shape[1]] = main[:, :2]
    low, extent = flat.min(axis=0), np.ptp(flat, axis=0)
    return np.divide(flat - low, extent, out=np.full_like(flat, 0.5), where=extent > 1e-12)


def _scale_features(snapshot: Snapshot, positions: NDArray[np.intp]) -> Vectors:
    """(N, D) scaled features with rows of unit length."""
    raw = coarse_encoder(snapshot).encode(bare(snapshot.windows(positions))).astype(np.float64)
    deviation = raw.std(axis=0)
    scaled = np.divide(raw - raw.mean(axis=0), deviation, out=np.zeros_like(raw), where=deviation > 1e-9)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, lengths, out=np.zeros_like(scaled), where=lengths > 0)


def _find_twins(cases: list[Case], likeness: Vectors) -> tuple[CasePair, ...]:
    rows, columns = np.nonzero(np.triu(likeness >= TWIN_SIMILARITY, 1))
    nearest = np.argsort(-likeness[rows, columns], kind="stable")[:MAX_LISTED]
    return tuple(
        CasePair(
            first=cases[rows[i]], second=cases[columns[i]], likeness=min(1.0, float(likeness[rows[i], columns[i]]))
        )
        for i in nearest
    )
