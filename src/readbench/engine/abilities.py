"""What a part of a method may be able to do beyond its one task, each ability a Protocol.

A part declares its abilities where it is registered, `RETRIEVERS.register("mine", abilities=(Searcher,))`, and nobody
looks for them anywhere else. What a part does not declare, it is not asked to do.
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
    """A retriever that finds the best of a corpus without the whole matrix of scores."""

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best of the corpus for each query, best first; ties keep corpus order."""
        ...


class Grows(Protocol):
    """A retriever that takes in more windows as it is: what it settled when it was fitted stays."""

    def grow(self, more: WindowSet) -> Retriever:
        """A copy of it, fitted as before, that searches these windows too, behind those of its corpus."""
        ...


class ScalesWindows(Protocol):
    """A part that says how it scales windows; rerankers see the windows behind a retriever on its scale.

    One that scales by the time `before` sees the windows' context.
    """

    @property
    def norm(self) -> Normalisation:
        """The scale."""
        ...


class UsesContext(Protocol):
    """A part that uses what windows bring along (`readbench.engine.context`); from all others it is kept away."""

    @property
    def uses_context(self) -> bool:
        """Whether it does, with the parameters it has."""
        ...


class Indexed(Protocol):
    """A retriever that searches an index of its own instead of the windows."""

    @property
    def index_bytes(self) -> int:
        """Size of the index."""
        ...


class Keyed(Protocol):
    """A part that reads something beside its parameters, such as weights or prompts, which decides its results."""

    @property
    def content_key(self) -> str:
        """Hash of what it reads."""
        ...


class Pretrained(Protocol):
    """An encoder that reads files beside its parameters: results are kept under what the files hold, not their name."""

    def weights_fingerprint(self) -> str:
        """Hash of what the files hold and of the code that runs them; known before anything is fitted."""
        ...


class OnDevice(Protocol):
    """An encoder that can run on a GPU; its vectors are searched where it runs."""

    @property
    def device(self) -> str:
        """`cpu`, `cuda` or `auto`."""
        ...


class AsksModel(Keyed, Protocol):
    """A part that asks a language model."""

    @property
    def model(self) -> str:
        """The model as it stands in the method."""
        ...

    @property
    def usage(self) -> dict[str, float]:
        """What its last scores took beside time, by name: calls, tokens, dollars, failures."""
        ...

    @property
    def model_facts(self) -> dict[str, Any]:
        """What must be known of the model to ask it again: provider, id, settings, prompts."""
        ...

    def brief(self, description: str, options: ModelOptions, progress: Progress = ...) -> None:
        """Tell it what the source says of itself, what goes before the model's profile, and who hears of progress."""
        ...

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """The most that scoring these queries costs."""
        ...


class ReadsWindows(Protocol):
    """A reranker that reads the series themselves: its pools come with a `Scene`."""

    @property
    def reads_windows(self) -> bool:
        """Whether it does, with the parameters it has."""
        ...


class GivesOpinion(Protocol):
    """A reranker that learns from labels, apart from any query, and then says what a query is, with calibration.

    Its probabilities are a contract: of the queries to which it gives a fault type p, a share of about p has it
    (`readbench.testing` checks this on cases held out).
    """

    def learn(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None = None,
        assets: NDArray[np.int64] | None = None,
    ) -> LabelModel | None:
        """What the labels of a corpus teach; None where they teach nothing.

        Args:
            items: (N, D) the corpus as each view sees it, rows of length one.
            labels: (N,) -1 where unknown.
            groups: (N,) numbers of the recordings.
            rejected: (N, K) classes that an item is known not to be.
            assets: (N,) numbers of the assets; None where nobody knows them.
        """
        ...

    def rerank_by(self, lesson: LabelModel, pool: Pool, ruled_out: NDArray[np.bool_] | None = None) -> Scores:
        """(Q, K) new scores of a pool by what was learned ahead; the same as `rerank` where nothing is ruled out.

        Args:
            lesson: of the pool's corpus and labels, at the pool's queries.
            pool: whose queries all know the same labels.
            ruled_out: (K,) classes that the queries are known not to be.
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
