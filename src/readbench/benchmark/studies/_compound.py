"""Several faults at once: does a list of single faults name all of them?

Queries are the windows whose class joins the names of several causes (`workload spike + table restore`); the corpus
holds windows of single causes only. A hit is relevant if its cause is one of the query's. Nearly any method finds one
cause: what separates them is whether the others are in the list, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import build
from readbench.benchmark.runs import Executor, fingerprint_of
from readbench.benchmark.studies._study import Failure, MethodCell, Rows, Study, measure_results
from readbench.common.files import cache_root, data_root
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import Method
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet
from readbench.errors import DataError

COMPOUND_DEPTH = 10
JOINT = " + "
"""What separates the causes in the name of a class."""


@dataclass(frozen=True)
class CompoundResult:
    """Means over the queries of one source.

    Args:
        cell: the method and the source.
        queries: how many windows have several causes.
        precision: share of the first ten hits that have one of the query's causes.
        shown: share of a query's causes that are among the first ten hits.
        whole: share of the queries all of whose causes are.
    """

    cell: MethodCell
    queries: int
    precision: float
    shown: float
    whole: float


@dataclass(frozen=True, eq=False)
class CompoundTask:
    """Windows of several causes, those of single ones, and normal operation."""

    queries: WindowSet
    corpus: WindowSet
    normals: WindowSet


def measure_compound(
    datasets: Sequence[str],
    methods: Sequence[str],
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[CompoundResult], Sequence[Failure]]:
    """Search windows of several causes among those of single ones; finished cells in the folder are kept.

    Args:
        datasets: texts of sources with compound classes, such as `dbsherlock(compound=true)`.
        methods: canonical texts.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    data, cached = data_root(root), cache or cache_root()
    cells = [MethodCell(dataset, method) for dataset in datasets for method in methods]
    study = Study(cells, partial(_identify, root=data, cache=cached), partial(_measure, root=data, cache=cached))
    return measure_results(study, lambda cell, row: CompoundResult(cell, **row), out, executor, progress)


def pose_compound(dataset: str, root: Path | None, cache: Path) -> CompoundTask:
    """The windows of a source, apart: several causes, one cause, none; normals only from runs of single causes."""
    windows = build(dataset, root, cache).windows
    joint = np.array([JOINT in name for name in windows.classes])
    of_joint = joint[windows.labels]
    if not of_joint.any():
        raise DataError(
            f"{dataset} has no class of several causes (a name with {JOINT!r}). Of the sources at hand"
            " dbsherlock(compound=true) has them."
        )
    foreign = np.isin(windows.groups, np.unique(windows.groups[of_joint]))
    normal = windows.labels == 0
    return CompoundTask(windows[of_joint], windows[~of_joint & ~normal & ~foreign], windows[normal & ~foreign])


def judge_compound(queries: WindowSet, corpus: WindowSet, order: NDArray[np.int64]) -> dict[str, Any]:
    """What rankings (Q, 10) show of the causes of each query."""
    precision, shown = [], []
    for label, items in zip(queries.labels, order[:, :COMPOUND_DEPTH], strict=True):
        causes = set(queries.classes[label].split(JOINT))
        hits = [corpus.classes[corpus.labels[item]] for item in items]
        precision.append(np.mean([hit in causes for hit in hits]))
        shown.append(len(causes.intersection(hits)) / len(causes))
    whole = np.mean(np.array(shown) == 1)
    return {
        "queries": len(queries),
        "precision": float(np.mean(precision)),
        "shown": float(np.mean(shown)),
        "whole": float(whole),
    }


def _identify(cell: MethodCell, root: Path | None, cache: Path) -> str:
    task, method = pose_compound(cell.dataset, root, cache), Method(cell.method)
    parts = (task.queries.fingerprint(), task.corpus.fingerprint(), task.normals.fingerprint())
    return fingerprint_of(judge_compound, spec=method.spec, also=(*parts, *method.content_keys))


def _measure(cell: MethodCell, progress: Progress, root: Path | None, cache: Path) -> Rows:
    """In a worker: one row."""
    task = pose_compound(cell.dataset, root, cache)
    method = Method(cell.method, vectors=VectorFolder(cache), progress=within(progress, "encoding"))
    order = method.fit(task.corpus, task.normals).rank(task.queries, COMPOUND_DEPTH).order
    return [judge_compound(task.queries, task.corpus, order)]
