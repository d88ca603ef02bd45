"""One cell, from a task and a method to a result: scores (cached), ranking, metrics."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.data import Task
from readbench.evaluate import PerQuery, evaluate
from readbench.experiment.plan import Cell
from readbench.experiment.version import code_version
from readbench.pipeline import Evidence, LegSystem, System
from readbench.ranking import rank
from readbench.retrieve import Scores
from readbench.spec import MethodSpec
from readbench.windows import WindowSet

RANKING_DEPTH = 100
STAGES = ("encode", "fit", "score", "rerank")
"""Stages whose wall time is reported, in seconds."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a finished cell leaves behind; `failure` is empty when it succeeded.

    Args:
        cell: which one.
        fingerprint: of task, method, level and code.
        seconds: wall time per stage, as measured when the scores were computed.
        queries: ids of the Q queries.
        groups: their split groups, for cluster bootstraps.
        per_query: metrics.
        ranking: (Q, D) ids of the best items.
        scores: (Q, D) their scores.
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
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Scored:
    """A score matrix and what it took."""

    scores: Scores
    seconds: dict[str, float]


def cell_fingerprint(task_fingerprint: str, spec: MethodSpec, rho: int) -> str:
    """Hash of everything a cell's result depends on."""
    identity = (task_fingerprint, spec.fingerprint(), rho, code_version())
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


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
    )


def scored_level(task: Task, task_fingerprint: str, system: System, rho: int, cache: Path) -> Scored:
    """Scores of a whole method at one level: each leg from the cache or computed, then fused and reranked."""
    legs = [scored_leg(task, task_fingerprint, leg, rho, cache) for leg in system.legs]
    seconds = {stage: sum(leg.seconds[stage] for leg in legs) for stage in STAGES}
    scores = system.combine([leg.scores for leg in legs])
    if not system.rerankers:
        return Scored(scores, seconds)
    evidence = _evidence(task, task_fingerprint, system, rho, cache)
    began = time.perf_counter()
    scores = system.rerank(scores, evidence)
    return Scored(scores, seconds | {"rerank": time.perf_counter() - began})


def _evidence(task: Task, task_fingerprint: str, system: System, rho: int, cache: Path) -> Evidence:
    """What the rerankers may use at one level; scores between corpus items are computed, and cached, if asked for."""
    corpus = task.corpus_at(rho)
    leg = system.representing
    leg.fit(corpus, task.normals)

    def similarity() -> Scores:
        own = replace(task, queries=task.corpus)
        legs = [scored_leg(own, f"{task_fingerprint} corpus", part, rho, cache) for part in system.legs]
        return system.combine([part.scores[task.levels[rho]] for part in legs])

    return Evidence(*leg.represent(corpus, task.queries), corpus.labels, similarity)


def scored_leg(task: Task, task_fingerprint: str, leg: LegSystem, rho: int, cache: Path) -> Scored:
    """The score matrix of one leg at one level: from the cache, or computed and cached.

    A pairwise method is scored once, on the largest corpus; every smaller corpus is a subset of its columns. One that
    depends on the whole corpus is fitted and scored at each level.
    """
    level = rho if leg.corpus_dependent else max(task.levels)
    path = cache / "scores" / f"{cell_fingerprint(task_fingerprint, leg.spec, level)}.npz"
    stored = _read(path)
    if stored is None:
        stored = _compute(leg, task.queries, task.corpus_at(level), task.normals)
        _write(path, stored)
    if level == rho:
        return stored
    columns = np.isin(task.levels[level], task.levels[rho])
    return Scored(stored.scores[:, columns], stored.seconds)


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
    return Scored(scores, seconds)


def _read(path: Path) -> Scored | None:
    if not path.exists():
        return None
    with np.load(path) as stored:
        return Scored(stored["scores"], dict(zip(STAGES, stored["seconds"].tolist(), strict=True)))


def _write(path: Path, scored: Scored) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, scores=scored.scores, seconds=np.array([scored.seconds[s] for s in STAGES]))
    partial.replace(path)
