"""From a pool of candidates to a new order; importing this room registers all rerankers."""

from readbench.rerank import feedback, gpc, purity, vote
from readbench.rerank.base import Pool, Reranker

__all__ = ["Pool", "Reranker", "feedback", "gpc", "purity", "vote"]
