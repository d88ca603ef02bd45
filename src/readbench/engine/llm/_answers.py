"""Unanswered questions to language models, and how results report them.

A query without an answer keeps its base order, or has no class: many such queries say nothing about the model. Above
`MARKED_ABOVE` every table marks the result; above `FAILED_ABOVE` it is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

ANSWERED_BY = "model "
"""Prefix, in `usage`, of the names of models that answered, as the provider returns them."""
MARKED_ABOVE, FAILED_ABOVE = 0.05, 0.5
REMEDIES = {
    "refusal": "Ask another model, or other prompts",
    "truncated": "Raise max_tokens of the profile, or turn thinking off",
    "empty": "Check the model, `readbench models check NAME` shows what it says",
    "unreadable": "Set structured = true, or ask another model; `readbench models check NAME` shows what it says",
}
"""Remedies by kind of failed answer."""


def average_samples(
    drawn: NDArray[np.float64], silent: NDArray[np.float64] | float
) -> tuple[NDArray[np.float32], float]:
    """(Q, K) means of several answers to the same questions, and the sum over queries of their spread.

    Args:
        drawn: (S, Q, K) scores of each answer, NaN if missing.
        silent: scores if no answer is there.

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
    """Share of questions without a readable answer.

    >>> unanswered_share({"questions": 50, "given_up": 2}), unanswered_share({})
    (0.04, 0.0)
    """
    return usage.get("given_up", 0) / max(usage.get("questions", 0), 1)


def mark_unanswered(share: float) -> str:
    """Suffix of a method's name in tables; "" if everything was answered.

    >>> mark_unanswered(0.0), mark_unanswered(0.02), mark_unanswered(0.31)
    ('', ' [2% unanswered]', ' [! 31% unanswered]')
    """
    if not share > 0:
        return ""
    return f" [{'! ' if share > MARKED_ABOVE else ''}{max(share, 0.01):.0%} unanswered]"


def explain_silence(usage: Mapping[str, float]) -> str:
    """Why too few questions were answered, and the remedy; "" if enough were.

    >>> explain_silence({"questions": 10, "given_up": 6, "truncated": 6})
    'no readable answer to 6 of 10 questions (truncated 6). Raise max_tokens of the profile, or turn thinking off.'
    """
    if unanswered_share(usage) <= FAILED_ABOVE:
        return ""
    kinds = {kind: usage[kind] for kind in REMEDIES if usage.get(kind)}
    counts = ", ".join(f"{kind} {count:g}" for kind, count in kinds.items())
    remedy = REMEDIES[max(kinds, key=lambda kind: kinds[kind])] if kinds else REMEDIES["unreadable"]
    return f"no readable answer to {usage['given_up']:g} of {usage['questions']:g} questions ({counts}). {remedy}."
