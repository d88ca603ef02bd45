"""Methods: from a spec to a ranking with calibrated opinions.

    method = Method("sonde|ws(alpha=0.7)|dtw-i+verdict")
    fitted = method.fit(cases, normals, memo=memo)
    ranking = fitted.rank(queries, k=20, knowledge=Knowledge(labels))

Legs are scored, fused and reranked only here. Runs, studies, the case library and the server differ in what they
inject: where vectors are stored, where scores are cached (`Memo`), and which labels may be used (`Knowledge`).
`readbench.engine.legs` decides what a leg may see of queries and corpus.
"""

# mypy: disable-error-code="type-abstract"
from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.progress import SILENT, Progress
from readbench.common.sharing import one_thread_for_products
from readbench.engine.abilities import (
    AsksModel,
    GivesOpinion,
    Hits,
    Pretrained,
    ReadsWindows,
)
from readbench.engine.legs import STAGES, BuiltLeg, FittedLeg, GivenLeg, MethodPart, Scored, build_part, conceal
from readbench.engine.llm import ModelOptions, Spending, split_model
from readbench.engine.preparation import channel_axis
from readbench.engine.protocols import (
    Encoder,
    Pool,
    Reranker,
    Retriever,
    Scene,
    Scores,
    Vectors,
    View,
    check_scores,
    unit_vectors,
)
from readbench.engine.ranking import places, rank
from readbench.engine.registry import FUSIONS, RERANKERS
from readbench.engine.retrievers import Fusion, top
from readbench.engine.spec import MethodSpec, Stage, parse
from readbench.engine.vectors import StoredVectors, VectorStore
from readbench.engine.windows import UNLABELLED, WindowSet, WindowsLike, concatenate
from readbench.errors import MethodError, UsageError

if TYPE_CHECKING:
    from readbench.engine.rerankers import LabelModel, Opinion

Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Memo(Protocol):
    """Cache of what legs compute on one corpus; the default caches nothing."""

    def score(self, leg: FittedLeg, queries: WindowSet) -> Scored:
        """Scores of concealed queries by a leg, cached or computed."""
        ...

    def view(self, leg: FittedLeg, queries: WindowSet | None) -> View:
        """Concealed queries and corpus as vectors of a leg, cached or computed; None stands for the corpus alone."""
        ...

    def among_items(self, *, labelled: bool) -> Memo:
        """The memo for corpus items as queries; it has labels only on request."""
        ...


class NoMemo:
    """A memo that caches nothing."""

    def score(self, leg: FittedLeg, queries: WindowSet) -> Scored:
        """Compute the scores."""
        return leg.measure(queries)

    def view(self, leg: FittedLeg, queries: WindowSet | None) -> View:
        """Compute the vectors."""
        return leg.represent(queries)

    def among_items(self, *, labelled: bool) -> Memo:  # noqa: ARG002
        """Return this memo."""
        return self


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Labels that may be used to rank queries.

    >>> Knowledge(np.array([1, 2, -1], np.int32))  # two of three labels of the corpus
    Knowledge(2 of 3 labels, for all queries)

    Args:
        labels: (N,) of the corpus, the same for all queries, or (Q, N) per query; -1 if unknown.
        rejected: (N, K) classes, by label, that an item is known not to have.
        ruled_out: (K,) classes that the queries are known not to have.
    """

    labels: Labels
    rejected: Mask | None = None
    ruled_out: Mask | None = None

    def __repr__(self) -> str:
        known = int((self.labels != UNLABELLED).sum())
        whose = "for all queries" if self.common else "per query"
        return f"Knowledge({known} of {self.labels.size} labels, {whose})"

    @property
    def common(self) -> bool:
        """Whether all queries know the same labels."""
        return self.labels.ndim == 1

    def rows(self, queries: int) -> Labels:
        """(Q, N) labels known to each query."""
        return np.broadcast_to(self.labels, (queries, len(self.labels))) if self.common else self.labels

    @cached_property
    def key(self) -> str:
        """Hash of what can be learned from it, to detect changes."""
        digest = hashlib.sha256(np.ascontiguousarray(self.labels).tobytes())
        if self.rejected is not None:
            digest.update(np.packbits(self.rejected).tobytes())
        return digest.hexdigest()


class Method:
    """A method to be fitted: legs, fusions between them, and rerankers.

    Args:
        spec: text, parsed spec, or an object that implements `readbench.engine.protocols.Retriever`.
        vectors: store for encoder vectors; None computes them each time.
        progress: receives the progress of encoding.
        models: overrides the profiles of language models.
        opinions_by: reranker that forms opinions if the method has none; None for no opinions.

    >>> import numpy as np
    >>> corpus = WindowSet.from_arrays(np.arange(12.0).reshape(3, 1, 4))
    >>> Method("euclidean(norm=none)").fit(corpus).rank(corpus[1:2], k=1).order
    array([[1]])
    """

    def __init__(
        self,
        spec: MethodSpec | str | Retriever,
        *,
        vectors: VectorStore | None = None,
        progress: Progress = SILENT,
        models: ModelOptions | None = None,
        opinions_by: str | None = None,
    ) -> None:
        self.spec: MethodSpec
        given = None
        if isinstance(spec, str):
            self.spec = parse(spec)
        elif isinstance(spec, MethodSpec):
            self.spec = spec
        else:
            given = GivenLeg(spec)
            self.spec = given.spec
        self.vectors = vectors
        self.progress = progress
        self.models = models or ModelOptions()
        self.opinions_by = opinions_by
        self.legs: tuple[BuiltLeg, ...] = (
            (given,) if given else tuple(BuiltLeg(leg, vectors, progress) for leg in self.spec.legs)
        )
        self._fusions: list[Fusion] = [build_part(FUSIONS, stage).component for stage in self.spec.fusions]
        self.rerankers: list[MethodPart[Reranker]] = [build_part(RERANKERS, stage) for stage in self.spec.rerankers]
        self.brief("")

    def __repr__(self) -> str:
        return f"Method({str(self.spec)!r})"

    def __str__(self) -> str:
        return str(self.spec)

    @property
    def named(self) -> bool:
        """Whether its text identifies it, so that results can be cached under it; False for a given object."""
        return all(leg.named for leg in self.legs)

    @property
    def uses_labels(self) -> bool:
        """Whether any part uses corpus labels."""
        return self.legs_use_labels or any(part.component.uses_labels for part in self.rerankers)

    @property
    def legs_use_labels(self) -> bool:
        """Whether a leg uses corpus labels, and must be fitted again when one changes."""
        return any(leg.uses_labels for leg in self.legs)

    @property
    def corpus_dependent(self) -> bool:
        """Whether scores of an item depend on other items; fused and reranked scores always do."""
        return len(self.legs) > 1 or bool(self.rerankers) or self.legs[0].corpus_dependent

    @property
    def content_keys(self) -> list[str]:
        """Hashes of what its parts read beside their parameters; "" for parts that read nothing."""
        return [leg.content_key for leg in self.legs] + [part.content_key for part in self.rerankers]

    @property
    def weights(self) -> dict[str, str]:
        """Hashes of the weight files of its pretrained encoders, by stage."""
        pretrained = ((leg.leg.stage, leg.part.able(Pretrained)) for leg in self.legs)
        return {str(stage): encoder.weights_fingerprint() for stage, encoder in pretrained if encoder}

    @property
    def model_facts(self) -> list[dict[str, Any]]:
        """Provider, id, settings and prompts of each language model it uses."""
        return [asking.model_facts for part in self._parts() if (asking := part.able(AsksModel))]

    @property
    def opinion_former(self) -> MethodPart[Reranker] | None:
        """The part that forms opinions: the last reranker if it can and sees the whole corpus, else `opinions_by`.

        If it is the last reranker, the method ranks by its lesson.
        """
        last = self.rerankers[-1] if self.rerankers else None
        if last and last.component.depth is None and last.able(GivesOpinion):
            return last
        return self._deputy

    @cached_property
    def _deputy(self) -> MethodPart[Reranker] | None:
        return build_part(RERANKERS, Stage(self.opinions_by)) if self.opinions_by else None

    @property
    def viewing(self) -> tuple[BuiltLeg, ...]:
        """Legs whose vectors the rerankers see: those with an embedding, else the first."""
        return tuple(leg for leg in self.legs if leg.embeds) or self.legs[:1]

    def brief(self, description: str) -> Self:
        """Tell the parts that use language models the source's description."""
        for leg in self.legs:
            leg.brief(description, self.models, self.progress)
        for part in self.rerankers:
            if asking := part.able(AsksModel):
                asking.brief(description, self.models, self.progress)
        return self

    def fit(
        self,
        corpus: WindowsLike,
        normals: WindowsLike | None = None,
        *,
        memo: Memo | None = None,
        in_place: bool = False,
        stored: StoredVectors | None = None,
    ) -> FittedMethod:
        """Fit to a corpus; legs are fitted when first needed.

        Args:
            corpus: N windows, with known labels; arrays have none (see `WindowSet.of`).
            normals: windows of normal operation; none by default.
            memo: cache of what legs compute on this corpus.
            in_place: do not copy the values (see `conceal`) nor check that they are finite; for corpora larger than
                memory.
            stored: file for the vectors of such a corpus.
        """
        corpus = WindowSet.of(corpus)
        if not len(corpus):
            raise MethodError(f"{self.spec}: the corpus is empty.")
        normals = corpus[:0] if normals is None else WindowSet.of(normals, like=corpus)
        if not in_place:
            corpus.require_finite()
            normals.require_finite()
        return FittedMethod(self, corpus, normals, memo or NoMemo(), in_place=in_place, stored=stored)

    def rank(self, *_: object, **__: object) -> NoReturn:
        """Raise `UsageError`: the method is not fitted."""
        raise UsageError(f"{self!r} is not fitted yet: call fit(corpus) first.")

    score = search = ask = rank

    def combine(self, scores: Sequence[Scores]) -> Scores:
        """Fuse the scores of the legs over one corpus, from left to right."""
        fused = scores[0]
        for fusion, other in zip(self._fusions, scores[1:], strict=True):
            fused = fusion.combine(fused, other)
        return fused

    def encoders(self, corpus: WindowSet, normals: WindowSet) -> Iterator[tuple[Stage, Encoder]]:
        """Yield its fitted encoders whose vectors do not depend on the corpus."""
        shown = conceal(corpus), conceal(normals)
        for leg in (leg.again() for leg in self.legs):
            if leg.embedding and not leg.corpus_dependent:
                yield leg.leg.stage, leg.embedding.encoder.fit(*map(leg.see, shown))

    def forecasts(self, queries: WindowSet, corpus: WindowSet) -> Iterator[tuple[str, Spending]]:
        """Yield the maximum cost of each language model on these queries, by the model's name."""
        for part in self._parts():
            if asking := part.able(AsksModel):
                shown = corpus if part.component.uses_labels else conceal(corpus)
                yield split_model(asking.model)[0], asking.forecast(conceal(queries), shown)

    @property
    def asks_models(self) -> bool:
        """Whether a part uses a language model."""
        return any(part.able(AsksModel) for part in self._parts())

    def _parts(self) -> tuple[MethodPart[Any], ...]:
        return (*(leg.part for leg in self.legs), *self.rerankers)


class FittedMethod:
    """A method fitted to a corpus; made by `Method.fit`.

    Args:
        method: the method.
        corpus: N windows.
        normals: windows of normal operation.
        memo: cache of what legs compute.
        in_place: see `conceal`.
        stored: file for the vectors of a corpus larger than memory.
    """

    def __init__(
        self,
        method: Method,
        corpus: WindowSet,
        normals: WindowSet,
        memo: Memo,
        *,
        in_place: bool = False,
        stored: StoredVectors | None = None,
    ) -> None:
        self.method = method
        self.corpus = corpus
        self.memo = memo
        self.in_place = in_place
        self._items = conceal(corpus, in_place=in_place)
        hidden = self._items, conceal(normals, in_place=in_place)
        built = [leg.again(stored) for leg in method.legs]
        self.legs = tuple(FittedLeg(leg, *((corpus, normals) if leg.uses_labels else hidden)) for leg in built)
        self._groups = group_numbers(corpus)
        self._assets = asset_numbers(corpus)
        self._knows_assets = self._assets is not None and np.ptp(self._assets) > 0
        self._units: tuple[Vectors, ...] | None = None
        self._learned: tuple[str, LabelModel | None] | None = None

    def __repr__(self) -> str:
        return f"FittedMethod({str(self.method.spec)!r}, {len(self.corpus)} windows)"

    def prepare(self) -> Self:
        """Fit all legs now."""
        for leg in self.legs:
            leg.fit()
        return self

    def retell(self, corpus: WindowSet) -> FittedMethod:
        """The same fitted legs and windows with other recordings, assets and labels."""
        assets = asset_numbers(corpus)
        several = assets is not None and np.ptp(assets) > 0
        return self._varied(corpus=corpus, _assets=assets, _knows_assets=several, _learned=None)

    def grow(self, more: WindowSet, knowledge: Knowledge) -> FittedMethod | None:
        """Add windows to the corpus without fitting or learning again.

        Args:
            more: M windows, or none if only labels have changed.
            knowledge: labels of all N + M windows, which become the labels of items; the lesson keeps what it learned
                from the corpus and its class numbers.

        Returns:
            None if a leg cannot grow, or no vectors are compared.
        """
        legs = [leg.grow(conceal(more)) for leg in self.legs] if len(more) else [*self.legs]
        if not self.viewing[0].built.embeds or None in legs:
            return None
        corpus = concatenate([self.corpus, replace(more, classes=self.corpus.classes)]) if len(more) else self.corpus
        grown = self._varied(
            corpus=corpus,
            legs=tuple(legs),
            _items=concatenate([self._items, conceal(more)]) if len(more) else self._items,
            _assets=asset_numbers(corpus),
        )
        learned = self._learned
        lesson = learned[1] if learned else None
        if lesson:
            lesson = lesson.grow(grown.units, knowledge.labels, grown.groups, knowledge.rejected)
        vars(grown)["_learned"] = knowledge.key, lesson
        return grown

    def _varied(self, *, corpus: WindowSet, **changed: object) -> FittedMethod:
        """A copy with another corpus; cached values are computed again."""
        other = copy(self)
        vars(other).update(corpus=corpus, _groups=group_numbers(corpus), _units=None, **changed)
        return other

    @property
    def encode_seconds(self) -> float:
        """Seconds spent on encoding so far."""
        return sum(leg.built.encode_seconds for leg in self.legs)

    def ask(self, queries: WindowsLike) -> QueryBatch:
        """Queries with this corpus: base scores and views are computed once for any number of rankings."""
        queries = WindowSet.of(queries, like=self.corpus)
        queries.require_finite()
        return QueryBatch(self, conceal(queries, in_place=self.in_place))

    def rank(self, queries: WindowsLike, k: int | None = None, knowledge: Knowledge | Labels | None = None) -> Ranking:
        """Rank the corpus for each of Q queries.

        Args:
            queries: Q windows or arrays (see `WindowSet.of`); the method sees their values and channel names.
            k: places to fill; all by default.
            knowledge: labels that may be used; by default those of the corpus.
        """
        return self.ask(queries).rank(k, knowledge)

    def score(self, queries: WindowsLike) -> Scores:
        """(Q, N) scores of the whole method, larger is better."""
        return self.rank(queries, k=1).scores

    def search(self, queries: WindowsLike, k: int) -> Hits:
        """The k best items for each query; a method of one leg finds them without all scores."""
        queries = WindowSet.of(queries, like=self.corpus)
        if len(self.legs) == 1 and not self.method.rerankers:
            return self.legs[0].search(conceal(queries, in_place=self.in_place), k)
        return top(self.score(queries), k)

    @property
    def index_bytes(self) -> int | None:
        """Bytes of the index that a search reads; None if it reads the windows."""
        sizes = [leg.index_bytes for leg in self.legs]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def units(self) -> tuple[Vectors, ...]:
        """(N, D) corpus in each view, unit vectors."""
        if self._units is None:
            self._units = tuple(leg.unit_items(self.memo.view(leg, None)) for leg in self.viewing)
        return self._units

    @property
    def groups(self) -> NDArray[np.int64]:
        """(N,) numbers of the recordings of corpus items."""
        return self._groups

    @property
    def assets(self) -> NDArray[np.int64] | None:
        """(N,) numbers of the assets of corpus items; None if unknown."""
        return self._assets

    @property
    def viewing(self) -> tuple[FittedLeg, ...]:
        """Legs whose vectors the rerankers see: those with an embedding, else the first.

        Legs that use context are included only if the corpus has several assets: on one machine the absolute level says
        more than the departure from it, and no held-out asset could show otherwise.
        """
        embedding = tuple(leg for leg in self.legs if leg.built.embeds)
        if not self._knows_assets:
            embedding = tuple(leg for leg in embedding if not leg.built.uses_context) or embedding
        return embedding or self.legs[:1]

    def lesson(self, knowledge: Knowledge | None = None) -> LabelModel | None:
        """What the labels teach the part that forms opinions; None without such a part or without labels.

        It is learned once per state of knowledge.
        """
        knowledge = knowledge or Knowledge(self.corpus.labels)
        learned = self._learned  # read once: another thread may replace it
        if learned is None or learned[0] != knowledge.key:
            self._learned = learned = knowledge.key, self._learn(self.units, knowledge)
        return learned[1]

    def recall(self, knowledge: Knowledge, lesson: LabelModel) -> None:
        """Set a lesson that was learned earlier from the same knowledge."""
        self._learned = knowledge.key, lesson

    def lesson_at(self, views: Sequence[View], knowledge: Knowledge, queries: WindowSet) -> LabelModel | None:
        """The lesson at these queries; learned for them alone if they change the representation of the corpus."""
        asked = tuple(unit_vectors(view.queries) for view in views)
        if self._looks_the_same_beside(queries):
            lesson = self.lesson(knowledge)
        else:
            lesson = self._learn(tuple(unit_vectors(view.items) for view in views), knowledge)
        return lesson.at(asked) if lesson else None

    def similarity(self) -> Callable[[], Scores]:
        """Return a function that computes the (N, N) base scores between corpus items.

        Rerankers hold it, so it gives access to labels only if a leg uses them.
        """
        memo = self.memo.among_items(labelled=self.method.legs_use_labels)
        return partial(_similarity, memo, self.legs, self.method.combine, self._items)

    def scene(self, queries: WindowSet) -> Scene:
        """The windows behind a pool, for rerankers that read them."""
        return Scene(queries.with_context(None), self._items.with_context(None), self.corpus.classes)

    @one_thread_for_products()
    def _learn(self, items: Sequence[Vectors], knowledge: Knowledge) -> LabelModel | None:
        former = self.method.opinion_former
        learner = former.able(GivesOpinion) if former else None
        if learner is None or not knowledge.common:
            return None
        return learner.learn(items, knowledge.labels, self._groups, knowledge.rejected, self._assets)

    def _looks_the_same_beside(self, queries: WindowSet) -> bool:
        """Whether these queries leave the representation of the corpus unchanged; raw windows share a grid."""
        if self.viewing[0].built.embeds:
            return True
        known = set(channel_axis(self.corpus))
        shorter = queries.lengths.max(initial=1) <= self.corpus.lengths.max(initial=1)
        return bool(shorter) and known.issuperset(channel_axis(queries))


class QueryBatch:
    """Q concealed queries with a fitted method; caches what does not depend on labels."""

    def __init__(self, method: FittedMethod, queries: WindowSet) -> None:
        self.fitted = method
        self.queries = queries
        self._scored: list[Scored] | None = None
        self._base: Scores | None = None
        self._views: tuple[View, ...] | None = None

    def __repr__(self) -> str:
        return f"QueryBatch({len(self.queries)} queries, {self.fitted!r})"

    # No `cached_property`: in Python 3.11 all batches share its lock, and searches would wait for each other.

    def _measure(self) -> list[Scored]:
        if self._scored is None:
            self._scored = [self.fitted.memo.score(leg, self.queries) for leg in self.fitted.legs]
        return self._scored

    @property
    def base(self) -> Scores:
        """(Q, N) fused scores of the legs, before any reranker."""
        if self._base is None:
            self._base = self.fitted.method.combine([scored.scores for scored in self._measure()])
        return self._base

    @property
    def views(self) -> tuple[View, ...]:
        """Queries and corpus as vectors of each embedding leg."""
        if self._views is None:
            self._views = tuple(self.fitted.memo.view(leg, self.queries) for leg in self.fitted.viewing)
        return self._views

    @one_thread_for_products()
    def opinions(self, knowledge: Knowledge | Labels | None = None) -> list[Opinion] | None:
        """Calibrated opinions on the fault types of the queries; None without a part that forms them, or labels."""
        known = self._known(knowledge)
        lesson = self.fitted.lesson_at(self.views, known, self.queries) if known.common else None
        return lesson.opinions(known.ruled_out) if lesson else None

    @one_thread_for_products()
    def rank(self, k: int | None = None, knowledge: Knowledge | Labels | None = None) -> Ranking:
        """Rank the corpus.

        Args:
            k: places to fill; all by default.
            knowledge: labels that may be used; by default those of the corpus.
        """
        method, known = self.fitted.method, self._known(knowledge)
        scored = self._measure()
        seconds = {stage: sum(one.seconds[stage] for one in scored) for stage in STAGES}
        usage = add_up(one.usage for one in scored)
        if not method.rerankers and method.opinion_former is None:
            return Ranking(rank(self.base, k), self.base, seconds, usage)
        lesson = None
        began = time.perf_counter()
        if known.common and method.opinion_former:
            lesson = self.fitted.lesson_at(self.views, known, self.queries)
        scores, judged = self._rerank(known, lesson)
        seconds["rerank"] = time.perf_counter() - began
        usage = add_up([usage, *(part.usage for part in method.rerankers)])
        opinions = lesson.opinions(known.ruled_out) if lesson else None
        return Ranking(rank(scores, k), scores, seconds, usage, opinions, lesson, judged)

    def _rerank(self, known: Knowledge, lesson: LabelModel | None) -> tuple[Scores, Scores | None]:
        """Apply the rerankers in turn; each reorders the top of the list and keeps the rest.

        Returns:
            (Q, N) scores, and those of the part that forms opinions, if the method ranks by its lesson.
        """
        scores, judged = self.base, None
        method = self.fitted.method
        for part in method.rerankers:
            order = rank(scores)
            depth = min(part.component.depth or order.shape[1], order.shape[1])
            first = order[:, :depth]
            pool = self._pool(part, first, np.take_along_axis(scores, first, axis=1), known)
            former = part.able(GivesOpinion) if part is method.opinion_former else None
            raw = former.rerank_by(lesson, pool, known.ruled_out) if former and lesson else part.component.rerank(pool)
            new = check_scores(raw, len(first), depth, str(method.spec))
            if former and lesson:
                judged = np.empty_like(new)
                np.put_along_axis(judged, first, new, axis=1)
            order[:, :depth] = np.take_along_axis(first, rank(new), axis=1)
            scores = places(order)
        return scores, judged

    def _pool(self, part: MethodPart[Reranker], first: NDArray[np.int64], scores: Scores, known: Knowledge) -> Pool:
        """The pool that a reranker sees; labels and windows only if it uses them."""
        reading = part.able(ReadsWindows)
        scene = self.fitted.scene(self.queries) if reading and reading.reads_windows else None
        labels, groups, assets = known.rows(len(self.queries)), self.fitted.groups, self.fitted.assets
        if not part.component.uses_labels:
            labels, groups, assets = np.full_like(labels, UNLABELLED), np.zeros_like(groups), None
            scene = scene and replace(scene, classes=())
        return Pool(first, scores, self.views, labels, groups, self.fitted.similarity(), scene, assets)

    def _known(self, knowledge: Knowledge | Labels | None) -> Knowledge:
        if isinstance(knowledge, Knowledge):
            return knowledge
        return Knowledge(self.fitted.corpus.labels if knowledge is None else np.asarray(knowledge, np.int32))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rankings of a corpus for Q queries.

    Args:
        order: (Q, K) positions in the corpus, best first.
        scores: (Q, N) final scores, by position.
        seconds: wall time per stage.
        usage: calls, tokens, dollars and failures of language models, by name.
        opinions: on the fault type of each query; None if the method forms none, or no label is known.
        lesson: what the labels teach, at the queries; None likewise.
        judged: (Q, N) scores of the reranker that formed the opinions, by position; None if the method has none.
    """

    order: NDArray[np.int64]
    scores: Scores
    seconds: dict[str, float]
    usage: dict[str, float] = field(default_factory=dict)
    opinions: list[Opinion] | None = None
    lesson: LabelModel | None = None
    judged: Scores | None = None

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        told = "with opinions" if self.opinions else "without opinions"
        return f"Ranking({len(self)} queries, {self.order.shape[1]} places of {self.scores.shape[1]} items, {told})"


def add_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sum values by name.

    >>> add_up([{"calls": 2}, {"calls": 1, "cost": 0.5}])
    {'calls': 3, 'cost': 0.5}
    """
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def group_numbers(corpus: WindowSet) -> NDArray[np.int64]:
    """(N,) number of each window's recording, which reveals nothing else."""
    return np.unique(np.array(corpus.groups.tolist()), return_inverse=True)[1].astype(np.int64)


def asset_numbers(corpus: WindowSet) -> NDArray[np.int64] | None:
    """(N,) number of each window's asset, or recording if its asset is unknown; None if all are unknown."""
    if not (corpus.assets != "").any():
        return None
    names = [(asset, "" if asset else group) for asset, group in zip(corpus.assets, corpus.groups, strict=True)]
    return np.unique(np.array([repr(name) for name in names]), return_inverse=True)[1].astype(np.int64)


def _similarity(
    memo: Memo, legs: Sequence[FittedLeg], combine: Callable[[list[Scores]], Scores], items: WindowSet
) -> Scores:
    return combine([memo.score(leg, items).scores for leg in legs])
