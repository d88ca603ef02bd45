"""Parts and legs of a method; `conceal` hides what a method must not see.

`conceal` removes metadata of queries, and of a corpus whose labels a leg may not use. Nothing else does.
"""

# mypy: disable-error-code="type-abstract"
from __future__ import annotations

import time
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

from readbench.common.deadlines import check_deadline
from readbench.common.progress import SILENT, Progress
from readbench.common.sharing import TravellingLock, one_thread_for_products
from readbench.engine.abilities import (
    AsksModel,
    Grows,
    Hits,
    Indexed,
    Keyed,
    OnDevice,
    Pretrained,
    ScalesWindows,
    Searcher,
    UsesContext,
)
from readbench.engine.llm import ModelOptions
from readbench.engine.preparation import Normalisation, Scaler, channel_axis, dense
from readbench.engine.protocols import (
    Retriever,
    Scores,
    Vectors,
    View,
    check_scores,
    unit_vectors,
)
from readbench.engine.registry import ENCODERS, RETRIEVERS, TRANSFORMS, Registry
from readbench.engine.retrievers import EmbeddingRetriever, top
from readbench.engine.spec import Leg, MethodSpec, Stage
from readbench.engine.vectors import StoredVectors, VectorStore
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import UsageError

C = TypeVar("C")
P = TypeVar("P")
RETRIEVER_MEMBERS = ("uses_labels", "corpus_dependent", "fit", "score")
"""Members required of a `Retriever`."""
MAX_CACHED_QUERIES = 256
"""Maximum queries whose vectors are cached until the next ones."""
STAGES = ("encode", "fit", "score", "rerank")
"""Stages with a reported wall time, in seconds."""


def conceal(windows: WindowSet, *, in_place: bool = False) -> WindowSet:
    """Windows as a method may see them: values, channel names and context, which only legs that use it see.

    Label, class, group, asset, time and id are removed.

    Args:
        windows: to conceal.
        in_place: share the values, for corpora larger than memory; a method could then find the values of adjacent
            windows.
    """
    return windows.anonymous(in_place=in_place)


@dataclass(frozen=True, eq=False)
class MethodPart(Generic[C]):
    """A component of a method with its declared abilities."""

    component: C
    abilities: frozenset[type]

    def able(self, ability: type[P]) -> P | None:
        """The component, if it declares this ability, else None."""
        component: Any = self.component
        return component if ability in self.abilities else None

    @property
    def content_key(self) -> str:
        """Hash of what it reads beside its parameters, such as weights or prompts; "" if nothing."""
        if pretrained := self.able(Pretrained):
            return pretrained.weights_fingerprint()
        keyed = self.able(AsksModel) or self.able(Keyed)
        return keyed.content_key if keyed else ""

    @property
    def usage(self) -> dict[str, float]:
        """Cost of its last scores by name; empty except for language models."""
        asking = self.able(AsksModel)
        return dict(asking.usage) if asking else {}


class BuiltLeg:
    """One leg of a method: a retriever, or an encoder with its embedding transforms.

    Args:
        leg: spec of the leg.
        vectors: store for encoder vectors; None computes them each time.
        progress: receives the progress of encoding.
        stored: file for the vectors of a corpus larger than memory.
    """

    named = True
    """Whether its text identifies it, so that results can be cached under it."""

    def __init__(
        self,
        leg: Leg,
        vectors: VectorStore | None = None,
        progress: Progress = SILENT,
        stored: StoredVectors | None = None,
    ) -> None:
        self.leg = leg
        self.spec = MethodSpec((leg,))
        self._build = partial(BuiltLeg, leg, vectors, progress)
        self._briefing: tuple[str, ModelOptions, Progress] | None = None
        self.embedding: EmbeddingRetriever | None = None
        self.retriever: Retriever
        self.part: MethodPart[Any]
        self.transforms: tuple[MethodPart[Any], ...] = ()
        if leg.stage.name in RETRIEVERS:
            self.part = build_part(RETRIEVERS, leg.stage)
            self.retriever = self.part.component
        else:
            self.part = build_part(ENCODERS, leg.stage)
            self.transforms = tuple(build_part(TRANSFORMS, stage) for stage in leg.transforms)
            self.embedding = EmbeddingRetriever(
                self.part.component,
                tuple(part.component for part in self.transforms),
                vectors,
                stored,
                contextual=tuple(part.component for part in self.transforms if _uses_context(part)),
                shown_context=_uses_context(self.part),
                device=self.part.able(OnDevice),
                progress=progress,
                what=str(leg),
            )
            self.retriever = self.embedding

    def __repr__(self) -> str:
        return f"BuiltLeg({str(self.leg)!r})"

    def brief(self, description: str, options: ModelOptions, progress: Progress = SILENT) -> Self:
        """Tell a leg with a language model the source's description."""
        self._briefing = description, options, progress
        if asking := self.part.able(AsksModel):
            asking.brief(description, options, progress)
        return self

    def again(self, stored: StoredVectors | None = None) -> BuiltLeg:
        """The same leg, not fitted, with another file for vectors."""
        fresh = self._build(stored)
        return fresh.brief(*self._briefing) if self._briefing else fresh

    def around(self, retriever: Retriever) -> BuiltLeg:
        """The same leg around another retriever of its kind."""
        other = copy(self)
        other.retriever = retriever
        if isinstance(retriever, EmbeddingRetriever):
            other.embedding = retriever
        else:
            other.part = replace(self.part, component=retriever)
        return other

    @property
    def uses_labels(self) -> bool:
        """Whether it uses corpus labels."""
        return self.retriever.uses_labels

    @property
    def corpus_dependent(self) -> bool:
        """Whether it must be fitted again when the corpus grows."""
        return self.retriever.corpus_dependent

    @property
    def uses_context(self) -> bool:
        """Whether it uses the context of windows, which is hidden otherwise."""
        return any(map(_uses_context, (self.part, *self.transforms)))

    def see(self, windows: WindowSet) -> WindowSet:
        """Windows as this leg sees them: with context only if it uses any."""
        return windows if self.uses_context else windows.with_context(None)

    @property
    def embeds(self) -> bool:
        """Whether it compares embeddings."""
        return self.embedding is not None

    @property
    def content_key(self) -> str:
        """Hash of what it reads beside its parameters; "" if nothing."""
        return self.part.content_key

    @property
    def encode_seconds(self) -> float:
        """Seconds spent on encoding so far, as part of fitting and scoring."""
        return self.embedding.encode_seconds if self.embedding else 0.0


class GivenLeg(BuiltLeg):
    """A leg around a given retriever object; it is not registered, so its name does not identify it.

    Args:
        retriever: copied for every fit; an attribute `uses_context` declares that it uses context.
    """

    named = False

    def __init__(self, retriever: Retriever) -> None:
        if missing := [member for member in RETRIEVER_MEMBERS if not hasattr(retriever, member)]:
            raise UsageError(
                f"{type(retriever).__name__} is no retriever: it has no {', '.join(missing)}."
                " See readbench.engine.protocols.Retriever, or docs/adding-a-method.md."
            )
        self.leg = Leg(Stage(type(retriever).__name__))
        self.spec = MethodSpec((self.leg,))
        self.embedding, self.transforms = None, ()
        declared = {UsesContext} if getattr(retriever, "uses_context", False) else ()
        self.part = MethodPart(retriever, frozenset[type](declared))
        self.retriever = retriever

    def again(self, stored: StoredVectors | None = None) -> BuiltLeg:  # noqa: ARG002 - it has no vectors
        """The same leg, not fitted."""
        return GivenLeg(deepcopy(self.retriever))


class FittedLeg:
    """A leg with the corpus it searches; fitted when first needed.

    Args:
        built: the leg.
        corpus: N windows as the leg may see them.
        normals: windows of normal operation, likewise.
    """

    def __init__(self, built: BuiltLeg, corpus: WindowSet, normals: WindowSet) -> None:
        self.built = built
        self._corpus, self._normals = built.see(corpus), built.see(normals)
        self._fitted = False
        self._fitting = TravellingLock()
        self._asked: tuple[WindowSet, Vectors] | None = None

    def __repr__(self) -> str:
        return f"FittedLeg({str(self.built.leg)!r}, {len(self._corpus)} windows)"

    def on(self, corpus: WindowSet, normals: WindowSet) -> FittedLeg:
        """The same leg on another corpus, concealed as needed."""
        return FittedLeg(self.built.again(), *_show(self.built, corpus, normals))

    def grow(self, more: WindowSet) -> FittedLeg | None:
        """Add windows to the corpus without fitting again; None if the leg cannot do that.

        Args:
            more: concealed. A leg that uses labels is fitted with them and cannot grow.
        """
        built, seen = self.built, self.built.see(more)
        growing = built.embedding if built.embedding and not built.embedding.stored else built.part.able(Grows)
        if growing is None or built.uses_labels:
            return None
        self.fit()
        grown = FittedLeg(built.around(growing.grow(seen)), concatenate([self._corpus, seen]), self._normals)
        vars(grown)["_fitted"] = True
        return grown

    @one_thread_for_products()
    def fit(self) -> Self:
        """Fit if not fitted yet; thread-safe."""
        with self._fitting:
            if not self._fitted:
                self.built.retriever.fit(self._corpus, self._normals)
                self._fitted = True
        return self

    @one_thread_for_products()
    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) validated scores of concealed queries."""
        self.fit()
        if embedding := self.built.embedding:
            scores = embedding.compare(self._encode(embedding, queries))
        else:
            scores = self.built.retriever.score(self.built.see(queries))
        return check_scores(scores, len(queries), len(self._corpus), str(self.built.spec))

    def measure(self, queries: WindowSet) -> Scored:
        """Fit and score; encoding time is reported separately from both."""
        check_deadline()  # between legs; DTW checks inside
        leg = self.built
        began, encoded = time.perf_counter(), leg.encode_seconds
        self.fit()
        fitted, encoded_fit = time.perf_counter(), leg.encode_seconds
        scores = self.score(queries)
        ended, encoded_all = time.perf_counter(), leg.encode_seconds
        seconds = dict.fromkeys(STAGES, 0.0) | {
            "encode": encoded_all - encoded,
            "fit": fitted - began - (encoded_fit - encoded),
            "score": ended - fitted - (encoded_all - encoded_fit),
        }
        return Scored(scores, seconds, leg.part.usage)

    @one_thread_for_products()
    def represent(self, queries: WindowSet | None = None) -> View:
        """Concealed queries and corpus as vectors: embeddings, or scaled windows on a common grid.

        Without queries, the first corpus window stands for them.
        """
        queries = self._corpus[:1] if queries is None else queries
        if embedding := self.built.embedding:
            self.fit()
            return View(self._encode(embedding, queries), embedding.vectors_)
        queries = self.built.see(queries)
        scaling = self.built.part.able(ScalesWindows)
        norm: Normalisation = scaling.norm if scaling and scaling.norm != "normals" else "channel"
        both = [*map(Scaler.of(norm, self._corpus, self._normals), (queries, self._corpus))]
        axis, length = channel_axis(*both), int(max(windows.lengths.max(initial=1) for windows in both))
        flat = [dense(windows, channels=axis, length=length).reshape(len(windows), -1) for windows in both]
        return View(flat[0], flat[1])

    def unit_items(self, view: View) -> Vectors:
        """(N, D) unit vectors of the items of a view, cached if they are the leg's."""
        embedding = self.built.embedding
        cached = embedding is not None and self._fitted and view.items is embedding.vectors_
        return embedding.units if embedding and cached else unit_vectors(view.items)

    def _encode(self, embedding: EmbeddingRetriever, queries: WindowSet) -> Vectors:
        """(Q, D) vectors of concealed queries; those of the last small batch are cached, since two steps use them."""
        asked = self._asked
        if asked is not None and asked[0] is queries:
            return asked[1]
        vectors = embedding.represent(self.built.see(queries))
        self._asked = (queries, vectors) if len(queries) <= MAX_CACHED_QUERIES else None
        return vectors

    @one_thread_for_products()
    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best items for each concealed query, by the leg's search or from all scores."""
        searcher = self.built.embedding or self.built.part.able(Searcher)
        if searcher is None:
            return top(self.score(queries), k)
        self.fit()
        return searcher.search(self.built.see(queries), k)

    @property
    def index_bytes(self) -> int | None:
        """Bytes of the index that a search reads; None if it reads the windows."""
        if self.built.embedding:
            return int(self.built.embedding.vectors_.nbytes)
        indexed = self.built.part.able(Indexed)
        return indexed.index_bytes if indexed else None


@dataclass(frozen=True, eq=False)
class Scored:
    """A score matrix with its wall time per stage and other costs by name."""

    scores: Scores
    seconds: dict[str, float]
    usage: dict[str, float] = field(default_factory=dict)


def build_part(registry: Registry, stage: Stage) -> MethodPart[Any]:
    """Build the component of a stage, with its declared abilities."""
    entry = registry.get(stage.name)
    component = entry.build(**dict(stage.parameters))
    return MethodPart(component, frozenset(entry.abilities_of(component)))


def _uses_context(part: MethodPart[Any]) -> bool:
    """Whether a part uses the context of windows or scales by it."""
    using, scaling = part.able(UsesContext), part.able(ScalesWindows)
    return bool(using and using.uses_context) or bool(scaling and scaling.norm == "before")


def _show(leg: BuiltLeg, corpus: WindowSet, normals: WindowSet) -> tuple[WindowSet, WindowSet]:
    """A corpus and its normals as a leg may see them."""
    return (corpus, normals) if leg.uses_labels else (conceal(corpus), conceal(normals))
