"""From a pool of candidates to a new order; importing this room registers all rerankers."""

from readbench.rerank import feedback, gpc, llm, purity, verdict, vote
from readbench.rerank.base import Pool, Reranker, Scene, View

__all__ = ["Pool", "Reranker", "Scene", "View", "feedback", "gpc", "llm", "purity", "verdict", "vote"]
