"""Language models as rerankers: they read the series of a pool.

Models that order a list are asked once per query and see the whole pool; those that rate one candidate at a time
(`chatts-http`, `toto-http`) are asked once per candidate. Candidates that a model ranks come first, in its order; the
others follow in the base order. A query without a readable answer keeps its base order, and is counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from readbench.common.progress import SILENT, Progress
from readbench.engine.abilities import AsksModel, ReadsWindows
from readbench.engine.llm import (
    NO_BRIEFING,
    Briefing,
    Examiner,
    Item,
    ModelOptions,
    ModelRanking,
    Reduction,
    Spending,
    WindowExcerpt,
    average_samples,
    compare,
    content_key,
    describe_model,
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
FORECAST_QUERIES = 4
"""Queries from which a cost forecast is made."""
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
    """A language model orders the pool from plots and numbers of query and candidates.

    Args:
        model: name of a configured model; with `-tsad` it sees channels without their season, with `-evidence`
            statistical evidence beside them.
        pool: number of candidates it sees.
        channels: number of channels shown per window, those with the highest variance.
        points: maximum points per channel; none: all of them.
        labels: show the classes of the candidates, as in the paper; without them it needs no labels.
        samples: number of answers per question; places and ratings are means over the answers.
        draw: number of the first answer; other numbers give other samples of the model.
        shuffle: show the candidates in random order, another one in each sample, with ids in that order; otherwise
            order and ids reveal the base order.
    """

    reads_windows = True

    def __init__(  # noqa: PLR0913 - one parameter per option
        self,
        model: str = "",
        pool: Annotated[int, ParameterRange(1)] = 20,
        channels: Annotated[int, ParameterRange(1)] = 20,
        points: Annotated[int, ParameterRange(2)] | None = 128,
        *,
        labels: bool = True,
        samples: Annotated[int, ParameterRange(1)] = 1,
        draw: Annotated[int, ParameterRange(0)] = 0,
        shuffle: bool = False,
    ) -> None:
        split_model(model)
        self.model = model
        self.pool = pool
        self.channels = channels
        self.points = points
        self.labels = labels
        self.samples = samples
        self.draw = draw
        self.shuffle = shuffle
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
        """Hash of the model and its prompts."""
        return content_key(self.model, self.briefing.options)

    @property
    def model_facts(self) -> dict[str, Any]:
        """Provider, model, settings and prompts."""
        return describe_model(self.model, self.briefing.options)

    def brief(self, description: str, options: ModelOptions, progress: Progress = SILENT) -> None:
        """Set the source's description for every question, and options that override the model's profile."""
        self.briefing = Briefing(description, options, progress)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; with `labels`, the base scores for queries without known labels."""
        if pool.scene is None:
            raise MethodError(f"llm({self.model}) reads windows, and this pool has none: run it through a Method.")
        scores = pool.scores.astype(np.float32)
        rows = np.flatnonzero(pool.labelled.any(axis=1) | (not self.labels))
        examiner = Examiner(self.model, Reduction(self.channels, self.points), self.briefing)
        if len(rows) and pool.candidates.shape[1]:
            exhibits = _Exhibits(examiner, pool, pool.scene)
            questions = [exhibits.question(row) for row in rows.tolist()]
            draws = range(self.draw, self.draw + self.samples)
            if examiner.task == "list":
                scores[rows] = _listed(examiner, questions, draws, shuffle=self.shuffle)
            else:
                scores[rows] = _rated(examiner, questions, draws)
        self.usage = dict(examiner.caller.usage)
        return scores

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """Maximum cost of reranking, estimated from a few queries and items.

        Args:
            queries: all queries; labels are not read.
            corpus: with labels, if `labels` is set.
        """
        examiner = Examiner(self.model, Reduction(self.channels, self.points), self.briefing)
        places = spread_positions(len(corpus), self.pool)
        items = [(examiner.exhibit(corpus, place), self._class(corpus, place)) for place in places]
        asked = [examiner.exhibit(queries, query) for query in spread_positions(len(queries), FORECAST_QUERIES)]
        sample = [(query, [_told(examiner, query, *item) for item in items]) for query in asked]
        if examiner.task == "list":
            return examiner.forecast(sample, len(queries) * self.samples)
        return examiner.forecast(_pairs(sample), len(queries) * len(items) * self.samples)

    def _class(self, corpus: WindowSet, place: int) -> str | None:
        return _name(corpus.classes, int(corpus.labels[place])) if self.labels else None


class _Exhibits:
    """Questions for a pool; each window is prepared once."""

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
    return Item(exhibit, name, chance, compare(query, exhibit) if examiner.treatment == "evidence" else None)


def _pairs(questions: list[Question]) -> list[Question]:
    """Split into one question per candidate."""
    return [(query, [item]) for query, items in questions for item in items]


def _listed(examiner: Examiner, questions: list[Question], draws: range, *, shuffle: bool) -> Scores:
    """(Q, K) scores from ranked lists."""
    count = len(questions[0][1])
    read = partial(read_ranking, ids=[item_id(place) for place in range(count)])
    drawn = []
    for draw in draws:
        orders = [_order(query, count, draw) if shuffle else list(range(count)) for query, _ in questions]
        shown = [(query, [items[p] for p in order]) for (query, items), order in zip(questions, orders, strict=True)]
        rankings = examiner.ask(shown, [read] * len(shown), draw)
        drawn.append([_placed(examiner, *told) for told in zip(rankings, orders, strict=True)])
    return _averaged(examiner, np.array(drawn), -np.arange(count, dtype=np.float64))


def _order(query: WindowExcerpt, count: int, draw: int) -> list[int]:
    """A random order that depends only on the query's values and the number of the answer."""
    seed = zlib.crc32(np.ascontiguousarray(query.values).tobytes())
    return [int(place) for place in np.random.default_rng([seed, draw]).permutation(count)]


def _placed(examiner: Examiner, ranking: ModelRanking | None, order: list[int]) -> NDArray[np.float64]:
    """(K,) scores: ranked candidates first, in the model's order, then the others in the base order.

    Args:
        examiner: counts errors in the list.
        ranking: by the places where candidates were shown; None gives NaN.
        order: the candidate shown at each place.
    """
    count = len(order)
    if ranking is None:
        return np.full(count, np.nan)
    ranked = [order[place] for place in ranking.order]
    left_out = count - len(ranked)
    examiner.caller.count(foreign_ids=ranking.foreign, repeated_ids=ranking.repeated, missing_ids=left_out)
    scores = np.empty(count)
    scores[[*ranked, *(place for place in range(count) if place not in ranked)]] = -np.arange(count)
    return scores


def _rated(examiner: Examiner, questions: list[Question], draws: range) -> Scores:
    """(Q, K) ratings of 0 to 100, one answer per candidate; -1 without an answer."""
    pairs = _pairs(questions)
    read = read_similarity if examiner.task == "similarity" else read_match
    drawn = [examiner.ask(pairs, [read] * len(pairs), draw) for draw in draws]
    ratings = np.array([[np.nan if rating is None else rating for rating in answers] for answers in drawn])
    return _averaged(examiner, ratings.reshape(len(draws), len(questions), -1), UNRATED)


def _averaged(examiner: Examiner, drawn: NDArray[np.float64], silent: NDArray[np.float64] | float) -> Scores:
    """(Q, K) means over the answers; counts their spread."""
    scores, spread = average_samples(drawn, silent)
    if len(drawn) > 1:
        examiner.caller.count(sampled=len(scores), spread=spread)
    return scores


def _chances(pool: Pool) -> NDArray[np.float32]:
    """(Q, K) probability that a candidate has the query's fault; NaN for queries without a classifier."""
    chances = GaussianProcess(pool=pool.candidates.shape[1]).rerank(pool)
    silent = (chances == pool.scores).all(axis=1, keepdims=True)
    return np.where(silent, np.nan, chances).astype(np.float32)
