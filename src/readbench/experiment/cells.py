"""One cell, from a task and a method to a result: scores (cached), ranking, metrics."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.data import Task
from readbench.evaluate import PerQuery, evaluate, plugin_metrics
from readbench.experiment.budget import ALL, Budget
from readbench.experiment.opinions import Answers, overheard
from readbench.experiment.plan import Cell
from readbench.experiment.version import code_version
from readbench.pipeline import Evidence, LegSystem, System, added, group_numbers, scene_of
from readbench.ranking import rank
from readbench.rerank import View
from readbench.rerank.opinion import Opinion, opinions
from readbench.retrieve import Scores
from readbench.spec import Leg, MethodSpec
from readbench.windows import WindowSet

RANKING_DEPTH = 100
STAGES = ("encode", "fit", "score", "rerank")
"""Stages whose wall time is reported, in seconds."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a finished cell leaves behind; `failure` is empty when it succeeded.

    Args:
        cell: which one.
        fingerprint: of task, method, level, label budget, weights and code.
        seconds: wall time per stage, as measured when the scores were computed.
        queries: ids of the Q queries.
        groups: their split groups, for cluster bootstraps.
        per_query: metrics.
        ranking: (Q, D) ids of the best items.
        scores: (Q, D) their scores.
        usage: what it took beside time, by name: calls, tokens, dollars and failures of language models.
        opinions: on the fault type of each query, and the truth; None where the method has none.
        failure: why it failed.
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
    opinions: Answers | None = None
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Scored:
    """A score matrix, what it took, and the method's opinions on the queries where it has some."""

    scores: Scores
    seconds: dict[str, float]
    usage: dict[str, float] = field(default_factory=dict)
    opinions: list[Opinion] | None = None


@dataclass(frozen=True, eq=False)
class Setup:
    """A task, and where what was computed on it is kept.

    Args:
        task: with all labels.
        fingerprint: of the task.
        cache: cache root.
    """

    task: Task
    fingerprint: str
    cache: Path


def cell_fingerprint(setup: Setup, system: System, rho: int, budget: Budget) -> str:
    """Hash of everything a cell's result depends on."""
    return _fingerprint(
        setup.fingerprint, system.spec, rho, *system.content_keys, _budget_key(budget), plugin_metrics()
    )


def _fingerprint(task_fingerprint: str, spec: MethodSpec, rho: int, *further: str) -> str:
    """Hash of a task, a method, a level, the code and whatever further there is: empty parts do not count."""
    identity = (task_fingerprint, spec.fingerprint(), rho, code_version(), *filter(None, further))
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def _budget_key(budget: Budget) -> str:
    return "" if budget == ALL else f"labels {budget}"


def judge(cell: Cell, fingerprint: str, task: Task, scored: Scored) -> Outcome:
    """Rank, evaluate, and keep the top of the lists."""
    corpus = task.corpus_at(cell.rho)
    order = rank(scored.scores, RANKING_DEPTH)
    return Outcome(
        cell=cell,
        fingerprint=fingerprint,
        seconds=scored.seconds,
        queries=task.queries.ids.tolist(),
        groups=task.queries.groups.tolist(),
        per_query=evaluate(order, task.queries.labels, corpus.labels),
        ranking=corpus.ids[order],
        scores=np.take_along_axis(scored.scores, order, axis=1),
        usage=scored.usage,
        opinions=Answers(task.queries.labels, scored.opinions) if scored.opinions else None,
    )


def scored_level(setup: Setup, system: System, rho: int, budget: Budget = ALL) -> Scored:
    """Scores of a whole method at one level, under one label budget: legs scored, then fused and reranked.

    Methods meet the task as the budget shows it, and nothing else of it.
    """
    budget.check(system)
    system.describe(setup.task.info.description)
    shown = replace(setup, task=budget.shown(setup.task))
    legs = [scored_leg(shown, leg, rho, budget) for leg in system.legs]
    seconds = {stage: sum(leg.seconds[stage] for leg in legs) for stage in STAGES}
    scores = system.combine([leg.scores for leg in legs])
    usage = added(leg.usage for leg in legs)
    if not system.rerankers:
        return Scored(scores, seconds, usage)
    corpus, archive = shown.task.corpus_at(rho), budget.archive(setup.task)[setup.task.levels[rho]]
    views = tuple(represented(setup.task, leg.leg, leg.content_key, rho, setup.cache) for leg in system.viewing)
    labels = budget.known(corpus.labels, archive, scores)
    scene = partial(scene_of, setup.task.queries, corpus)
    evidence = Evidence(views, labels, group_numbers(corpus), similarity_of(shown, system, rho, budget), scene)
    opinionated = overheard(system) if budget.per_query is None else None
    began = time.perf_counter()
    scores = system.rerank(scores, evidence)
    seconds["rerank"] = time.perf_counter() - began
    lessons = opinionated.lessons_ if opinionated else ()
    said = opinions(lessons[0], np.arange(len(scores))) if lessons else None
    return Scored(scores, seconds, added([usage, system.usage]), said)


@lru_cache(maxsize=8)
def represented(task: Task, leg: Leg, content: str, rho: int, cache: Path) -> View:  # noqa: ARG001
    """Queries and corpus as the rerankers of one level see them, the same under every budget.

    `content` says what the files of the leg hold: other weights are other vectors.
    """
    system, corpus = LegSystem(leg, cache), task.corpus_at(rho)
    if system.embeds:
        system.fit(corpus, task.normals)
    return View(*system.represent(corpus, task.queries))


def similarity_of(shown: Setup, system: System, rho: int, budget: Budget) -> Callable[[], Scores]:
    """Computes, or reads from the cache, the (N, N) scores between the items of a level, when it is called.

    A reranker holds it, so it knows the labels only where a leg reads them.
    """
    task = shown.task
    corpus = task.corpus if any(leg.uses_labels for leg in system.legs) else task.corpus.anonymous()
    items = Setup(replace(task, queries=corpus, corpus=corpus), f"{shown.fingerprint} corpus", shown.cache)

    def similarity() -> Scores:
        legs = [scored_leg(items, leg, rho, budget) for leg in system.legs]
        return system.combine([leg.scores[items.task.levels[rho]] for leg in legs])

    return similarity


def scored_leg(setup: Setup, leg: LegSystem, rho: int, budget: Budget = ALL) -> Scored:
    """The score matrix of one leg at one level: from the cache, or computed and cached.

    A pairwise method is scored once, on the largest corpus; every smaller corpus is a subset of its columns. One that
    depends on the whole corpus is fitted and scored at each level; one that reads labels, under each budget.
    """
    task, level = setup.task, rho if leg.corpus_dependent else max(setup.task.levels)
    labels = _budget_key(budget) if leg.uses_labels else ""
    path = setup.cache / "scores" / f"{_fingerprint(setup.fingerprint, leg.spec, level, leg.content_key, labels)}.npz"
    stored = _read(path)
    if stored is None:
        stored = _compute(leg, task.queries, task.corpus_at(level), task.normals)
        _write(path, stored)
    if level == rho:
        return stored
    columns = np.isin(task.levels[level], task.levels[rho])
    return replace(stored, scores=stored.scores[:, columns])


def _compute(leg: LegSystem, queries: WindowSet, corpus: WindowSet, normals: WindowSet) -> Scored:
    """Fit and score; the time for encoding is taken out of both and reported on its own."""
    began, encoded = time.perf_counter(), leg.encode_seconds
    leg.fit(corpus, normals)
    fitted, encoded_fit = time.perf_counter(), leg.encode_seconds
    scores = leg.score(queries)
    ended, encoded_all = time.perf_counter(), leg.encode_seconds
    seconds = dict.fromkeys(STAGES, 0.0) | {
        "encode": encoded_all - encoded,
        "fit": fitted - began - (encoded_fit - encoded),
        "score": ended - fitted - (encoded_all - encoded_fit),
    }
    return Scored(scores, seconds, leg.usage)


def _read(path: Path) -> Scored | None:
    if not path.exists():
        return None
    with np.load(path) as stored:
        seconds = dict(zip(STAGES, stored["seconds"].tolist(), strict=True))
        return Scored(stored["scores"], seconds, json.loads(str(stored["usage"])))


def _write(path: Path, scored: Scored) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        seconds = np.array([scored.seconds[s] for s in STAGES])
        np.savez(file, scores=scored.scores, seconds=seconds, usage=np.array(json.dumps(scored.usage)))
    partial.replace(path)
