"""Abilities: optional Protocols that a part of a method may implement beyond its main task.

A part declares its abilities at registration, `RETRIEVERS.register("mine", abilities=(Searcher,))`. Undeclared
abilities are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from readbench.common.progress import Progress
    from readbench.engine.llm import ModelOptions, Spending
    from readbench.engine.preparation import Normalisation
    from readbench.engine.protocols import Pool, Retriever, Scores, Vectors
    from readbench.engine.rerankers import LabelModel
    from readbench.engine.windows import WindowSet


@dataclass(frozen=True, eq=False)
class Hits:
    """Top-k lists: `indices` (Q, k) into the corpus and their `scores` (Q, k), best first."""

    indices: NDArray[np.int64]
    scores: Scores


class Searcher(Protocol):
    """A retriever that finds the top k without computing all scores."""

    def search(self, queries: WindowSet, k: int) -> Hits:
        """Find the k best items for each query, best first; ties keep corpus order."""
        ...


class Grows(Protocol):
    """A retriever that can add windows without being fitted again."""

    def grow(self, more: WindowSet) -> Retriever:
        """Return a fitted copy that searches these windows too, after those of its corpus."""
        ...


class ScalesWindows(Protocol):
    """A part that states how it scales windows; rerankers see the windows of a retriever on the same scale.

    With the scale `before` it sees the windows' context.
    """

    @property
    def norm(self) -> Normalisation:
        """Kind of scaling."""
        ...


class UsesContext(Protocol):
    """A part that uses the context of windows (`readbench.engine.context`); it is hidden from all others."""

    @property
    def uses_context(self) -> bool:
        """Whether it uses context, with its parameters."""
        ...


class Indexed(Protocol):
    """A retriever that searches an index instead of the windows."""

    @property
    def index_bytes(self) -> int:
        """Size of the index."""
        ...


class Keyed(Protocol):
    """A part whose results depend on more than its parameters, such as weights or prompts."""

    @property
    def content_key(self) -> str:
        """Hash of that content."""
        ...


class Pretrained(Protocol):
    """An encoder that reads weight files: results are cached by the content of the files, not their names."""

    def weights_fingerprint(self) -> str:
        """Hash of the files' contents and of the code that runs them; known before fitting."""
        ...


class OnDevice(Protocol):
    """An encoder that can run on a GPU; its vectors are searched on the same device."""

    @property
    def device(self) -> str:
        """`cpu`, `cuda` or `auto`."""
        ...


class AsksModel(Keyed, Protocol):
    """A part that queries a language model."""

    @property
    def model(self) -> str:
        """Name of the model, as in the method text."""
        ...

    @property
    def usage(self) -> dict[str, float]:
        """Cost of its last scores, by name: calls, tokens, dollars, failures."""
        ...

    @property
    def model_facts(self) -> dict[str, Any]:
        """Facts to reproduce its answers: provider, model id, settings, prompts."""
        ...

    def brief(self, description: str, options: ModelOptions, progress: Progress = ...) -> None:
        """Set the source's description, options that override the model's profile, and the progress callback."""
        ...

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """Maximum cost of scoring these queries."""
        ...


class ReadsWindows(Protocol):
    """A reranker that reads the series: its pools have a `Scene`."""

    @property
    def reads_windows(self) -> bool:
        """Whether it reads windows, with its parameters."""
        ...


class GivesOpinion(Protocol):
    """A reranker that learns from labels, independently of queries, and gives calibrated opinions on queries.

    Calibration is part of the contract: of the queries with probability p for a fault type, a share of about p has it
    (`readbench.testing` checks this on held-out cases).
    """

    def learn(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None = None,
        assets: NDArray[np.int64] | None = None,
    ) -> LabelModel | None:
        """Learn from the labels of a corpus; None if they teach nothing.

        Args:
            items: (N, D) items in each view, unit vectors.
            labels: (N,) -1 if unknown.
            groups: (N,) numbers of the recordings.
            rejected: (N, K) classes that an item is known not to have.
            assets: (N,) numbers of the assets; None if unknown.
        """
        ...

    def rerank_by(self, lesson: LabelModel, pool: Pool, ruled_out: NDArray[np.bool_] | None = None) -> Scores:
        """(Q, K) new scores of a pool by an earlier lesson; the same as `rerank` if nothing is ruled out.

        Args:
            lesson: learned from the pool's corpus and labels, at the pool's queries.
            pool: all its queries know the same labels.
            ruled_out: (K,) classes that the queries are known not to have.
        """
        ...


ABILITIES: tuple[type, ...] = (
    Searcher,
    Grows,
    ScalesWindows,
    UsesContext,
    Indexed,
    Keyed,
    Pretrained,
    OnDevice,
    AsksModel,
    ReadsWindows,
    GivesOpinion,
)
