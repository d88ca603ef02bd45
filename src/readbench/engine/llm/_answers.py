"""How many questions to language models stayed without a readable answer, and what is said of it.

A query without an answer keeps its base order, or no class at all: a result of many such queries is not the model's.
From `MARKED_ABOVE` on every table marks it; from `FAILED_ABOVE` on it is no result.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

ANSWERED_BY = "model "
"""Before the name of a model, as its provider returns it, in what is counted of answers."""
MARKED_ABOVE, FAILED_ABOVE = 0.05, 0.5
REMEDIES = {
    "refusal": "Ask another model, or other prompts",
    "truncated": "Raise max_tokens of the profile, or turn thinking off",
    "empty": "Check the model, `readbench models check NAME` shows what it says",
    "unreadable": "Set structured = true, or ask another model; `readbench models check NAME` shows what it says",
}
"""What helps against each kind of answer that is none."""


def average_samples(
    drawn: NDArray[np.float64], silent: NDArray[np.float64] | float
) -> tuple[NDArray[np.float32], float]:
    """(Q, K) means of several answers to the same questions, and the sum over queries of how far they are apart.

    Args:
        drawn: (S, Q, K) scores by each answer, NaN where there is none.
        silent: scores where no answer is there.

    >>> mean, spread = average_samples(np.array([[[1.0, 3.0]], [[3.0, 3.0]], [[np.nan, np.nan]]]), 0.0)
    >>> mean.tolist(), round(spread, 3)
    ([[2.0, 3.0]], 0.707)
    """
    known = ~np.isnan(drawn)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, drawn, 0.0).sum(axis=0) / count
    squares = np.where(known, (drawn - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1)
    found = np.where(known.any(axis=0), mean, silent).astype(np.float32)
    return found, float(np.sqrt(squares).mean(axis=1).sum())


def unanswered_share(usage: Mapping[str, float]) -> float:
    """Share of the questions without a readable answer.

    >>> unanswered_share({"questions": 50, "given_up": 2}), unanswered_share({})
    (0.04, 0.0)
    """
    return usage.get("given_up", 0) / max(usage.get("questions", 0), 1)


def mark_unanswered(share: float) -> str:
    """What follows the name of a method in tables; empty where everything was answered.

    >>> mark_unanswered(0.0), mark_unanswered(0.02), mark_unanswered(0.31)
    ('', ' [2% unanswered]', ' [! 31% unanswered]')
    """
    if not share > 0:
        return ""
    return f" [{'! ' if share > MARKED_ABOVE else ''}{max(share, 0.01):.0%} unanswered]"


def explain_silence(usage: Mapping[str, float]) -> str:
    """Why answers are too few to be a result, and what to do; empty where they are not.

    >>> explain_silence({"questions": 10, "given_up": 6, "truncated": 6})
    'no readable answer to 6 of 10 questions (truncated 6). Raise max_tokens of the profile, or turn thinking off.'
    """
    if unanswered_share(usage) <= FAILED_ABOVE:
        return ""
    kinds = {kind: usage[kind] for kind in REMEDIES if usage.get(kind)}
    counts = ", ".join(f"{kind} {count:g}" for kind, count in kinds.items())
    remedy = REMEDIES[max(kinds, key=lambda kind: kinds[kind])] if kinds else REMEDIES["unreadable"]
    return f"no readable answer to {usage['given_up']:g} of {usage['questions']:g} questions ({counts}). {remedy}."
