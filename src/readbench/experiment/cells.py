"""One cell, from a task and a method to a result: scores (cached), ranking, metrics."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.data import Task
from readbench.evaluate import PerQuery, evaluate
from readbench.experiment.plan import Cell
from readbench.experiment.version import code_version
from readbench.pipeline import System
from readbench.ranking import rank
from readbench.retrieve import Scores
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


def cell_fingerprint(task_fingerprint: str, system: System, rho: int) -> str:
    """Hash of everything a cell's result depends on."""
    identity = (task_fingerprint, system.spec.fingerprint(), rho, code_version())
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
    """The score matrix for one level: from the cache, or computed and cached.

    A pairwise method is scored once, on the largest corpus; every smaller corpus is a subset of its columns. One that
    depends on the whole corpus is fitted and scored at each level.
    """
    level = rho if system.corpus_dependent else max(task.levels)
    path = cache / "scores" / f"{cell_fingerprint(task_fingerprint, system, level)}.npz"
    stored = _read(path)
    if stored is None:
        stored = _compute(system, task.queries, task.corpus_at(level), task.normals)
        _write(path, stored)
    if level == rho:
        return stored
    columns = np.isin(task.levels[level], task.levels[rho])
    return Scored(stored.scores[:, columns], stored.seconds)


def _compute(system: System, queries: WindowSet, corpus: WindowSet, normals: WindowSet) -> Scored:
    began = time.perf_counter()
    system.fit(corpus, normals)
    fitted = time.perf_counter()
    scores = system.score(queries)
    seconds = dict.fromkeys(STAGES, 0.0) | {"fit": fitted - began, "score": time.perf_counter() - fitted}
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
