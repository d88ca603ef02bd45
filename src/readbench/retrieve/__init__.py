"""Scorers over the whole corpus; importing this room registers all of them."""

from readbench.retrieve import euclidean, fusion, residual, shortcuts, trivial
from readbench.retrieve.base import Hits, Retriever, Scores, checked_scores

__all__ = ["Hits", "Retriever", "Scores", "checked_scores", "euclidean", "fusion", "residual", "shortcuts", "trivial"]
