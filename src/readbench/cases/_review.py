"""What is worth a second look: cases that should be labelled next, and labels that look wrong."""

from __future__ import annotations

import numpy as np

from readbench.cases._models import Doubt, Suggestion
from readbench.cases._search import Reviewed
from readbench.cases._snapshot import Snapshot
from readbench.engine.rerankers import Array, LabelModel, select_most_informative, sharpen, suspects


def suggest_next(reviewed: Reviewed, count: int) -> list[Suggestion]:
    """The open cases that would tell most about the others, most telling first (`readbench.engine.rerankers`).

    Args:
        reviewed: N cases, and what is known of them.
        count: most suggestions.
    """
    snapshot, lesson = reviewed.snapshot, reviewed.lesson
    guesses, names = _calibrated(lesson), _names(snapshot, lesson)
    doubt = np.ones(len(snapshot)) if guesses is None else 1.0 - guesses.max(axis=1)
    telling = select_most_informative(reviewed.fitted.units, snapshot.labels, reviewed.fitted.groups, doubt, count)
    return [
        Suggestion(
            case=snapshot.case(position),
            guess=None if guesses is None or doubt[position] == 1.0 else names[guesses[position].argmax()],
            doubt=float(doubt[position]),
            tells=tells,
        )
        for position, tells in zip(telling.positions.tolist(), telling.tells.tolist(), strict=True)
    ]


def find_doubtful(reviewed: Reviewed, count: int) -> list[Doubt]:
    """The cases whose label all other recordings contradict most (`readbench.engine.rerankers`); as above."""
    snapshot, lesson = reviewed.snapshot, reviewed.lesson
    if lesson is None:
        return []
    found = suspects(lesson.judgement, lesson.calibration.exponent)
    return [
        Doubt(
            case=snapshot.case(int(found.positions[i])),
            probability=float(found.own[i]),
            rather=snapshot.classes[found.labels[i]],
            rather_probability=float(found.others[i]),
        )
        for i in range(min(count, len(found.positions)))
    ]


def _calibrated(lesson: LabelModel | None) -> Array | None:
    """(N, K) calibrated probabilities of the fault types; None where fewer than two are known."""
    if lesson is None or lesson.guesses.shape[1] < 2:
        return None
    return np.where(lesson.guesses > 0, sharpen(lesson.guesses, lesson.calibration.exponent), 0.0)


def _names(snapshot: Snapshot, lesson: LabelModel | None) -> list[str]:
    """(K,) names of the fault types that the labels teach."""
    return [] if lesson is None else [snapshot.classes[label] for label in lesson.judgement.ridge.classes]
