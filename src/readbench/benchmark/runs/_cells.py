"""Computation of one cell: scores (cached on disk), ranking and metrics of a method on a task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import PerQuery, evaluate, plugin_metrics
from readbench.benchmark.protocol import Task
from readbench.benchmark.runs._budget import ALL, Budget
from readbench.benchmark.runs._fingerprint import Provenance, fingerprint_of, provenance_of
from readbench.benchmark.runs._opinions import TaskOpinions
from readbench.benchmark.runs._plan import Cell
from readbench.common.cache import UNREADABLE, mark_used
from readbench.common.files import open_atomic
from readbench.common.progress import SILENT, Progress
from readbench.common.provenance import Root
from readbench.engine.legs import STAGES, BuiltLeg, FittedLeg, Scored, conceal
from readbench.engine.llm import ModelOptions
from readbench.engine.method import FittedMethod, Knowledge, Method, Ranking
from readbench.engine.protocols import Scores, View
from readbench.engine.ranking import rank
from readbench.engine.registry import METRICS
from readbench.engine.spec import Leg, MethodSpec
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet

RANKING_DEPTH = 100


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a cell; `failure` is empty if it succeeded.

    Args:
        cell: the cell.
        fingerprint: hash of task, method, level, label budget, weights and code.
        seconds: wall time per stage when the scores were computed.
        queries: ids of the Q queries.
        groups: split groups of the queries.
        per_query: metrics.
        ranking: (Q, D) ids of the best items.
        scores: (Q, D) scores of these items.
        usage: calls, tokens, dollars and failures of language models, by name.
        opinions: stated fault types of the queries, and the truth; None if the method states none.
        failure: reason of a failure.
    """

    cell: Cell
    fingerprint: str
    seconds: dict[str, float] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    per_query: PerQuery | None = None
    ranking: NDArray[Any] | None = None
    scores: Scores | None = None
    usage: dict[str, float] = field(default_factory=dict)
    opinions: TaskOpinions | None = None
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Setup:
    """A task and the cache of results on it.

    Args:
        task: task with all labels.
        fingerprint: fingerprint of the task.
        cache: cache root.
        models: settings that replace those of the profiles of language models.
    """

    task: Task
    fingerprint: str
    cache: Path
    models: ModelOptions = field(default_factory=ModelOptions)

    @classmethod
    def of(cls, task: Task, cache: Path) -> Setup:
        """A task that was just loaded."""
        return cls(task, task.fingerprint(), cache)

    def method(self, spec: MethodSpec, progress: Progress = SILENT) -> Method:
        """A method with cached vectors and the description of the source."""
        method = Method(spec, vectors=VectorFolder(self.cache), progress=progress, models=self.models)
        return method.brief(self.task.info.description)

    def fit(self, method: Method, rho: int, budget: Budget = ALL) -> FittedMethod:
        """A method fitted on the corpus of one level under a budget; scores of its legs are cached."""
        shown = budget.shown(self.task)
        memo = ScoreCache(self, shown, rho, _budget_key(budget))
        return method.fit(shown.corpus_at(rho), shown.normals, memo=memo)


def cell_fingerprint(setup: Setup, method: Method, rho: int, budget: Budget) -> str:
    """Hash of everything that a cell's result depends on."""
    also = (setup.fingerprint, rho, *method.content_keys, _budget_key(budget), plugin_metrics())
    return fingerprint_of(*_cell_roots(), spec=method.spec, also=also)


def provenance_of_cells(spec: MethodSpec) -> Provenance:
    """The code and the packages that compute the cells of a method."""
    return provenance_of(_cell_roots(), spec)


def _cell_roots() -> tuple[Root, ...]:
    """Functions that compute a cell, without components of the method; metrics are looked up by name, so listed."""
    return (rank_level, judge, *(metric.factory for metric in METRICS))


def _budget_key(budget: Budget) -> str:
    return "" if budget == ALL else f"labels {budget}"


def judge(cell: Cell, fingerprint: str, task: Task, ranking: Ranking) -> Outcome:
    """Evaluate a ranking and keep the top of its lists."""
    corpus = task.corpus_at(cell.rho)
    order = rank(ranking.scores, RANKING_DEPTH)
    return Outcome(
        cell=cell,
        fingerprint=fingerprint,
        seconds=ranking.seconds,
        queries=task.queries.ids.tolist(),
        groups=task.queries.groups.tolist(),
        per_query=evaluate(order, task.queries.labels, corpus.labels),
        ranking=corpus.ids[order],
        scores=np.take_along_axis(ranking.scores, order, axis=1),
        usage=ranking.usage,
        opinions=TaskOpinions(task.queries.labels, ranking.opinions) if ranking.opinions else None,
    )


def rank_level(setup: Setup, method: Method, rho: int, budget: Budget = ALL) -> Ranking:
    """Ranking of the queries of a task at one level; the method sees the task only as the budget shows it."""
    budget.check(method)
    fitted = setup.fit(method, rho, budget)
    asked = fitted.ask(setup.task.queries)
    archive = budget.archive(setup.task)[setup.task.levels[rho]]
    labels = budget.known(fitted.corpus.labels, archive, asked.base) if method.rerankers else fitted.corpus.labels
    return asked.rank(RANKING_DEPTH, Knowledge(labels))


class ScoreCache:
    """Disk cache of the scores of legs on one task at one level.

    A pairwise leg is scored once on the largest corpus; smaller corpora are subsets of its columns. A leg that depends
    on the corpus is scored at each level, one that reads labels under each budget.

    Args:
        setup: the task with all labels, and the cache.
        shown: the task as legs may see it.
        rho: pollution level in percent.
        labels: known labels as part of a fingerprint; empty for all.
    """

    def __init__(self, setup: Setup, shown: Task, rho: int, labels: str) -> None:
        self._setup = setup
        self._shown = shown
        self._rho = rho
        self._labels = labels

    def score(self, leg: FittedLeg, queries: WindowSet) -> Scored:
        """Scores of one leg, cached."""
        built, task = leg.built, self._shown
        level = self._rho if built.corpus_dependent else max(task.levels)
        path = self._path(built, level)
        scored = _read(path)
        if scored is None:
            own = leg if level == self._rho else leg.on(task.corpus_at(level), task.normals)
            scored = own.measure(queries)
            _write(path, scored)
        if level == self._rho:
            return scored
        columns = np.isin(task.levels[level], task.levels[self._rho])
        return replace(scored, scores=scored.scores[:, columns])

    def view(self, leg: FittedLeg, queries: WindowSet | None) -> View:  # noqa: ARG002 - those of the task
        """Queries and corpus as rerankers see them, the same under every budget."""
        return _represent(self._setup.task, leg.built.leg, leg.built.content_key, self._rho, self._setup.cache)

    def among_items(self, *, labelled: bool) -> ItemScores:
        """The scores between the items of the level."""
        return ItemScores(self._setup, self._shown, self._rho, self._labels, labelled=labelled)

    def _path(self, built: BuiltLeg, level: int) -> Path:
        labels = self._labels if built.uses_labels else ""
        also = (self._setup.fingerprint, level, built.content_key, labels)
        name = fingerprint_of(ScoreCache, FittedLeg, spec=built.spec, also=also)
        return self._setup.cache / "scores" / f"{name}.npz"


class ItemScores(ScoreCache):
    """Scores between corpus items, for rerankers; labels are known only if a leg reads them."""

    def __init__(self, setup: Setup, shown: Task, rho: int, labels: str, *, labelled: bool) -> None:
        corpus = shown.corpus if labelled else conceal(shown.corpus)
        task = replace(shown, queries=corpus, corpus=corpus)
        super().__init__(Setup(task, f"{setup.fingerprint} corpus", setup.cache), task, rho, labels)

    def score(self, leg: FittedLeg, queries: WindowSet) -> Scored:  # noqa: ARG002 - the items of the largest corpus are
        """(N, N) of the level."""
        scored = super().score(leg, conceal(self._shown.corpus))
        return replace(scored, scores=scored.scores[self._shown.levels[self._rho]])


@lru_cache(maxsize=8)
def _represent(task: Task, leg: Leg, content: str, rho: int, cache: Path) -> View:  # noqa: ARG001
    """Queries and corpus of one level as a leg represents them; `content`: other weights are other vectors."""
    built = BuiltLeg(leg, VectorFolder(cache))
    empty = task.corpus[:0]
    return FittedLeg(built, empty, empty).on(task.corpus_at(rho), task.normals).represent(conceal(task.queries))


def _read(path: Path) -> Scored | None:
    """Cached scores; None without a file, or if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file) as stored:  # numpy leaves a damaged file open
            seconds = dict(zip(STAGES, stored["seconds"].tolist(), strict=True))
            scored = Scored(stored["scores"], seconds, json.loads(str(stored["usage"])))
    except UNREADABLE:
        return None
    mark_used(path)
    return scored


def _write(path: Path, scored: Scored) -> None:
    with open_atomic(path) as file:
        seconds = np.array([scored.seconds[s] for s in STAGES])
        np.savez(file, scores=scored.scores, seconds=seconds, usage=np.array(json.dumps(scored.usage)))
