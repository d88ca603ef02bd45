"""Language models as rerankers: they read the series of a pool themselves.

Models that order a list are asked once a query and see the whole pool; those that judge one candidate at a time
(`chatts-http`, `toto-http`) are asked once a candidate. What a model ranks comes first, in its order; what it leaves
out follows in the base order. A query whose answers cannot be read keeps its base order, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import AsksModel, ReadsWindows
from readbench.engine.llm import (
    NO_BRIEFING,
    Examiner,
    Item,
    ModelOptions,
    ModelRanking,
    Reduction,
    Spending,
    WindowExcerpt,
    compare,
    content_key,
    explain_no_models,
    item_id,
    read_match,
    read_ranking,
    read_similarity,
    split_model,
    spread_positions,
)
from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Pool, Scene, Scores
from readbench.engine.registry import RERANKERS
from readbench.engine.rerankers._gpc import GaussianProcess
from readbench.engine.windows import UNLABELLED, WindowSet
from readbench.errors import MethodError

UNRATED = -1.0
"""Below every rating of 0 to 100."""
SAMPLED = 4
"""Queries from which a forecast is made."""
Question = tuple[WindowExcerpt, list[Item]]


@RERANKERS.register(
    "llm",
    title="LLM",
    family="reranker",
    positional="model",
    unavailable=explain_no_models,
    abilities=(AsksModel, ReadsWindows),
)
class LanguageModel:
    """A language model reads query and candidates as plots and numbers, and orders the pool.

    Args:
        model: name of a configured model; with `-tsad` it sees channels without their season, with `-evidence`
            statistical evidence beside them.
        pool: how many candidates it sees.
        channels: how many channels of a window it sees, those with the highest variance.
        points: most points of a channel; none: all of them.
        labels: show the classes of the candidates, as in the paper; without them it needs no label.
    """

    reads_windows = True

    def __init__(
        self,
        model: str = "",
        pool: Annotated[int, ParameterRange(1)] = 20,
        channels: Annotated[int, ParameterRange(1)] = 20,
        points: Annotated[int, ParameterRange(2)] | None = 128,
        *,
        labels: bool = True,
    ) -> None:
        split_model(model)
        self.model = model
        self.pool = pool
        self.channels = channels
        self.points = points
        self.labels = labels
        self.briefing = NO_BRIEFING
        self.usage: dict[str, float] = {}

    @property
    def uses_labels(self) -> bool:
        """Whether it shows the classes of the candidates."""
        return self.labels

    @property
    def depth(self) -> int:
        """The size of the pool."""
        return self.pool

    @property
    def content_key(self) -> str:
        """Hash of the model and the prompts behind its name."""
        return content_key(self.model, self.briefing[1])

    def brief(self, description: str, options: ModelOptions) -> None:
        """What the source says of itself goes into every question; options go before the model's profile."""
        self.briefing = description, options

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries that know no label, where it uses them."""
        if pool.scene is None:
            raise MethodError(f"llm({self.model}) reads windows, and this pool has none: run it through a Method.")
        scores = pool.scores.astype(np.float32)
        rows = np.flatnonzero(pool.labelled.any(axis=1) | (not self.labels))
        examiner = Examiner(self.model, Reduction(self.channels, self.points), self.briefing)
        if len(rows) and pool.candidates.shape[1]:
            exhibits = _Exhibits(examiner, pool, pool.scene)
            ranked = _listed if examiner.task == "list" else _rated
            scores[rows] = ranked(examiner, [exhibits.question(row) for row in rows.tolist()])
        self.usage = dict(examiner.caller.usage)
        return scores

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """The most that reranking costs, told from a few queries and items from all over the corpus.

        Args:
            queries: all of them; no label is read.
            corpus: with labels, where it uses them.
        """
        examiner = Examiner(self.model, Reduction(self.channels, self.points), self.briefing)
        places = spread_positions(len(corpus), self.pool)
        items = [(examiner.exhibit(corpus, place), self._class(corpus, place)) for place in places]
        asked = [examiner.exhibit(queries, query) for query in spread_positions(len(queries), SAMPLED)]
        sample = [(query, [_told(examiner, query, *item) for item in items]) for query in asked]
        if examiner.task == "list":
            return examiner.forecast(sample, len(queries))
        return examiner.forecast(_pairs(sample), len(queries) * len(items))

    def _class(self, corpus: WindowSet, place: int) -> str | None:
        return _name(corpus.classes, int(corpus.labels[place])) if self.labels else None


class _Exhibits:
    """Questions of a pool; each window is prepared once."""

    def __init__(self, examiner: Examiner, pool: Pool, scene: Scene) -> None:
        self.examiner, self.pool, self.scene = examiner, pool, scene
        told = examiner.treatment == "evidence"
        self.chances = _chances(pool) if told else np.full(pool.scores.shape, np.nan)
        self.item: Callable[[int], WindowExcerpt] = cache(partial(examiner.exhibit, scene.items))
        self.query: Callable[[int], WindowExcerpt] = cache(partial(examiner.exhibit, scene.queries))

    def question(self, row: int) -> Question:
        """A query and its candidates."""
        return self.query(row), [self._item(row, place) for place in range(self.pool.candidates.shape[1])]

    def _item(self, row: int, place: int) -> Item:
        exhibit = self.item(int(self.pool.candidates[row, place]))
        name = _name(self.scene.classes, int(self.pool.labels[row, place]))
        return _told(self.examiner, self.query(row), exhibit, name, float(self.chances[row, place]))


def _name(classes: tuple[str, ...], label: int) -> str | None:
    return None if label == UNLABELLED else classes[label]


def _told(
    examiner: Examiner, query: WindowExcerpt, exhibit: WindowExcerpt, name: str | None, chance: float = np.nan
) -> Item:
    """A candidate with what is told about it."""
    return Item(exhibit, name, chance, compare(query, exhibit) if examiner.treatment == "evidence" else None)


def _pairs(questions: list[Question]) -> list[Question]:
    """One question a candidate."""
    return [(query, [item]) for query, items in questions for item in items]


def _listed(examiner: Examiner, questions: list[Question]) -> Scores:
    """(Q, K) scores from one answer a query."""
    count = len(questions[0][1])
    read = partial(read_ranking, ids=[item_id(place) for place in range(count)])
    rankings = examiner.ask(questions, [read] * len(questions))
    return np.stack([_placed(examiner, ranking, count) for ranking in rankings])


def _placed(examiner: Examiner, ranking: ModelRanking | None, count: int) -> Scores:
    """(K,) scores: ranked candidates first, in the model's order, then the others in theirs."""
    order = ranking.order if ranking else ()
    if ranking:
        left_out = count - len(order)
        examiner.caller.count(foreign_ids=ranking.foreign, repeated_ids=ranking.repeated, missing_ids=left_out)
    order = (*order, *(place for place in range(count) if place not in order))
    scores = np.empty(count, np.float32)
    scores[list(order)] = -np.arange(count)
    return scores


def _rated(examiner: Examiner, questions: list[Question]) -> Scores:
    """(Q, K) ratings of 0 to 100, one answer a candidate; below all of them where there is none."""
    pairs = _pairs(questions)
    read = read_similarity if examiner.task == "similarity" else read_match
    ratings = examiner.ask(pairs, [read] * len(pairs))
    flat = np.array([UNRATED if rating is None else rating for rating in ratings], np.float32)
    return flat.reshape(len(questions), -1)


def _chances(pool: Pool) -> NDArray[np.float32]:
    """(Q, K) probability that a candidate has the query's fault; NaN for queries whose classifier has no opinion."""
    chances = GaussianProcess(pool=pool.candidates.shape[1]).rerank(pool)
    silent = (chances == pool.scores).all(axis=1, keepdims=True)
    return np.where(silent, np.nan, chances).astype(np.float32)
