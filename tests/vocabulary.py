"""A small vocabulary of methods for tests of the grammar, independent of which methods exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import pytest

from readbench.engine.parameters import ParameterRange
from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, SOURCES, TRANSFORMS

Count = Annotated[int, ParameterRange(1)]
Share = Annotated[float, ParameterRange(0, 1)]


class Charm:
    """An encoder without parameters."""


class Mantis:
    def __init__(self, metric: Literal["cosine", "euclid"] = "cosine") -> None:
        self.metric = metric


class Residual:
    def __init__(self, k: Count = 10) -> None:
        self.k = k


class Warped:
    def __init__(self, band: Share = 0.1, norm: Literal["channel", "window", "none"] = "channel") -> None:
        self.band, self.norm = band, norm


class Chance:
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed


class ReciprocalRank:
    def __init__(self, k0: Annotated[float, ParameterRange(0)] = 60) -> None:
        self.k0 = k0


class WeightedSum:
    def __init__(self, alpha: Share = 0.5) -> None:
        self.alpha = alpha


class TwoStep:
    def __init__(self, k: Count = 100) -> None:
        self.k = k


class GaussianProcess:
    def __init__(self, k: Count = 20, kernel: Literal["rbf", "matern"] = "rbf") -> None:
        self.k, self.kernel = k, kernel


class MajorityVote:
    """A reranker without parameters."""


class Language:
    def __init__(self, model: str = "small", k: Count | None = None, *, think: bool = False) -> None:
        self.model, self.k, self.think = model, k, think


class Plant:
    def __init__(self, seed: int = 7, level: Count = 1) -> None:
        self.seed, self.level = seed, level


@contextmanager
def vocabulary() -> Iterator[None]:
    """Only these components are registered inside; what was there before comes back."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (SOURCES, RETRIEVERS, ENCODERS, TRANSFORMS, FUSIONS, RERANKERS):
            list(registry)  # what is imported on first use must not register itself inside
            patch.setattr(registry, "_homes", {})
            patch.setattr(registry, "_entries", {})
            patch.setattr(registry, "_aliases", {})
        ENCODERS.register("charm", title="CHARM")(Charm)
        ENCODERS.register("mantis", title="Mantis")(Mantis)
        TRANSFORMS.register("nr", title="NR", aliases=("residual",))(Residual)
        RETRIEVERS.register("dtw-i", title="DTW-I", aliases=("dtw",))(Warped)
        RETRIEVERS.register("random", title="Random")(Chance)
        FUSIONS.register("rrf", title="RRF")(ReciprocalRank)
        FUSIONS.register("ws", title="WS")(WeightedSum)
        FUSIONS.register("2step", title="2-step")(TwoStep)
        RERANKERS.register("gpc", title="GPC")(GaussianProcess)
        RERANKERS.register("majvote", title="MajVote", aliases=("vote",))(MajorityVote)
        RERANKERS.register("llm", title="LLM", positional="model")(Language)
        SOURCES.register("plant", aliases=("works",))(Plant)
        yield
