"""Slow twin of BM25: documents are lists of words, one channel after the other, one query word after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import fmean

Document = Sequence[Sequence[Hashable]]
"""For each field, its words."""


def idf(word: Hashable, field: Sequence[Sequence[Hashable]], rule: str) -> float:
    """Weight of a word among the documents of one field."""
    items, holders = len(field), sum(word in document for document in field)
    odds = (items - holders + 0.5) / (holders + 0.5)
    if rule == "plus1":
        return math.log(1 + odds)
    if rule == "floor" and math.log(odds) < 0:
        mean = fmean(idf(other, field, "printed") for other in {w for document in field for w in document})
        return max(0.0, 0.25 * mean)
    return math.log(odds)


def field_score(
    query: Sequence[Hashable], item: int, field: Sequence[Sequence[Hashable]], rule: str, k1: float, b: float
) -> float:
    document, counts = field[item], Counter(field[item])
    relative = len(document) / fmean(len(other) for other in field)
    score = 0.0
    for word in query:
        if counts[word]:
            saturated = counts[word] * (k1 + 1) / (counts[word] + k1 * (1 - b + b * relative))
            score += idf(word, field, rule) * saturated
    return score


def score(query: Document, item: int, corpus: Sequence[Document], rule: str, k1: float = 1.5, b: float = 0.75) -> float:
    """Mean over the fields of Okapi BM25."""
    fields = range(len(query))
    return fmean(field_score(query[f], item, [doc[f] for doc in corpus], rule, k1, b) for f in fields)
