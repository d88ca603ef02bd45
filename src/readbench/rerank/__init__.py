"""From a pool of candidates to a new order; importing this room registers all rerankers."""

from readbench.rerank.base import Pool, Reranker

__all__ = ["Pool", "Reranker"]
