"""Reading answers strictly: the first JSON object counts, and of it only what was asked for.

Whatever a text from the corpus makes a model say, an answer can do no more than order the ids of the pool, or give a
number from 0 to 100.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import MethodError


class UnreadableError(MethodError):
    """An answer that does not have the form that was asked for."""


@dataclass(frozen=True)
class Ranking:
    """An order of candidates: their positions, best first, and how many ids were foreign or repeated."""

    order: tuple[int, ...]
    foreign: int = 0
    repeated: int = 0


def first_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text.

    >>> first_object('Here {it} is: {"a": {"b": 1}}. And {"c": 2}.')
    {'a': {'b': 1}}
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        return dict(found)
    raise UnreadableError("The answer holds no JSON object.")


def read_ranking(text: str, ids: Sequence[str]) -> Ranking:
    """The order in `{"ranked_ids": [...]}`: ids that are not in the pool and repetitions are left out.

    >>> read_ranking('{"ranked_ids": ["b", "z", "b"]}', ["a", "b"])
    Ranking(order=(1,), foreign=1, repeated=1)
    """
    listed = first_object(text).get("ranked_ids")
    if not isinstance(listed, list):
        raise UnreadableError("The answer holds no list of ranked_ids.")
    places = {name: place for place, name in enumerate(ids)}
    known = [places[name] for name in listed if isinstance(name, str) and name in places]
    order = tuple(dict.fromkeys(known))
    if not order:
        raise UnreadableError("The answer ranks no candidate of the pool.")
    return Ranking(order, len(listed) - len(known), len(known) - len(order))


def read_similarity(text: str) -> float:
    """The number in `{"similarity": 0-100}`."""
    return _percent(first_object(text).get("similarity"), "similarity")


def read_match(text: str) -> float:
    """The confidence in `{"match": "yes" | "no", "confidence": 0-100}` that it is a match.

    >>> read_match('{"match": "no", "confidence": 90}')
    10.0
    """
    found = first_object(text)
    confidence = _percent(found.get("confidence"), "confidence")
    if found.get("match") not in ("yes", "no"):
        raise UnreadableError("The answer's match is neither yes nor no.")
    return confidence if found["match"] == "yes" else 100.0 - confidence


def read_scores(text: str, count: int) -> NDArray[np.float32]:
    """(K,) confidences in `{"scores": {"1": 0-100, ...}}`; 0 for a number that the answer does not name."""
    named = first_object(text).get("scores")
    if not isinstance(named, dict):
        raise UnreadableError("The answer holds no scores.")
    if not any(str(k + 1) in named for k in range(count)):
        raise UnreadableError("The answer scores none of the examples.")
    return np.array([_percent(named.get(str(k + 1), 0), "score") for k in range(count)], np.float32)


def _percent(value: Any, what: str) -> float:  # noqa: ANN401 - any JSON
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise UnreadableError(f"The answer's {what} is no number from 0 to 100.")
    return float(value)
