"""Scorers over the whole corpus; importing this room registers all of them."""

from readbench.retrieve import dtw, euclidean, fusion, residual, sbd, shortcuts, symbolic, trivial
from readbench.retrieve.base import Hits, Retriever, Scores, checked_scores

__all__ = [
    "Hits",
    "Retriever",
    "Scores",
    "checked_scores",
    "dtw",
    "euclidean",
    "fusion",
    "residual",
    "sbd",
    "shortcuts",
    "symbolic",
    "trivial",
]
