"""Several faults at once: does a list of single faults name all of them?

Queries are the windows whose class joins the names of several causes (`workload spike + table restore`); the corpus
holds windows of single causes only. A hit is relevant if its cause is one of the query's. Nearly any method finds one
cause: what separates them is whether the others are in the list, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import build
from readbench.benchmark.report import ReportTable
from readbench.common.progress import Progress
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError
from readbench.studies._study import STUDIES, Grid, Measured, Row, Study, StudyCell, tell

COMPOUND_DEPTH = 10
JOINT = " + "
"""What separates the causes in the name of a class."""
METHODS = (
    *("random", "stats", "euclidean", "dtw-i", "rocket", "sonde", "departure", "ours", "flagship", "flagship-spread"),
)


@dataclass(frozen=True)
class CompoundResult(Measured):
    """Means over the queries of one source.

    Args:
        queries: how many windows have several causes.
        precision: share of the first ten hits that have one of the query's causes.
        shown: share of a query's causes that are among the first ten hits.
        whole: share of the queries all of whose causes are.
    """

    queries: int
    precision: float
    shown: float
    whole: float


@lru_cache(maxsize=2)
def pose_compound(dataset: str, root: Path | None, cache: Path) -> tuple[WindowSet, WindowSet, WindowSet]:
    """Queries of several causes, a corpus of single ones, and normals; the last two from runs of single causes."""
    windows = build(dataset, root, cache).windows
    joint = np.array([JOINT in name for name in windows.classes])[windows.labels]
    if not joint.any():
        raise DataError(
            f"{dataset} has no class of several causes (a name with {JOINT!r}). Of the sources at hand"
            " dbsherlock(compound=true) has them."
        )
    single = ~np.isin(windows.groups, np.unique(windows.groups[joint]))
    normal = windows.labels == NORMAL
    return windows[joint], windows[single & ~normal], windows[single & normal]


def judge_compound(queries: WindowSet, corpus: WindowSet, order: NDArray[np.int64]) -> Row:
    """What rankings (Q, 10) show of the causes of each query."""
    precision, shown = [], []
    for label, items in zip(queries.labels, order[:, :COMPOUND_DEPTH], strict=True):
        causes = set(queries.classes[label].split(JOINT))
        hits = [corpus.classes[corpus.labels[item]] for item in items]
        precision.append(np.mean([hit in causes for hit in hits]))
        shown.append(len(causes.intersection(hits)) / len(causes))
    means = {"precision": precision, "shown": shown, "whole": np.array(shown) == 1}
    return {"queries": len(queries)} | {name: float(np.mean(values)) for name, values in means.items()}


def cells_of_causes(dataset: str, method: str, grid: Grid) -> Iterable[StudyCell]:
    """One cell of a source that has such windows."""
    pose_compound(dataset, grid.setting().root, grid.setting().cache)
    return [StudyCell(dataset, method)]


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """All windows."""
    return [part.fingerprint() for part in pose_compound(cell.dataset, grid.setting().root, grid.setting().cache)]


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row."""
    queries, corpus, normals = pose_compound(cell.dataset, grid.setting().root, grid.setting().cache)
    order = grid.method(cell, progress).fit(corpus, normals).rank(queries, COMPOUND_DEPTH).order
    return [judge_compound(queries, corpus, order)]


def compound_table(measured: Sequence[CompoundResult]) -> ReportTable:
    """One row a source and method: what ten hits show of the causes of a query that has several."""
    rows = [[one.cell.dataset, one.cell.method, *tell([one.precision, one.shown, one.whole])] for one in measured]
    queries = ", ".join(f"{n} of {name}" for name, n in {one.cell.dataset: one.queries for one in measured}.items())
    caption = (
        f"Faults of several causes among cases of single ones, first ten hits; queries: {queries}. of a cause: share of"
        " the hits that have one of the causes. causes shown: share of a query's causes among them. all shown: share of"
        " the queries all of whose causes are"
    )
    header = ["Dataset", "Method", "of a cause", "causes shown", "all shown"]
    return ReportTable("compound", caption, header, rows)


STUDIES.register(
    Study(
        name="compound",
        summary="Faults of several causes at once among cases of single ones: does the list name all of them?",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_of_causes,
        result=CompoundResult,
        tables=(compound_table,),
        datasets=("dbsherlock(compound=true)",),
        methods=METHODS,
        axes=("datasets", "methods"),
    )
)
