"""What an order of labelling is worth: the ranking after so many labels, against labels in random order.

An expert labels the cases of a corpus one by one: in batches that `readbench.engine.rerankers` asks for, learning from
the labels so far, or in an order that is drawn, several times. After each batch the method ranks anew and is judged by
the true labels of all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import DEFAULT_METRIC, ConfidenceInterval, evaluate, mean_interval
from readbench.benchmark.protocol import Task
from readbench.benchmark.report import ReportTable
from readbench.benchmark.runs import RANKING_DEPTH, Setup
from readbench.common.plots import METHOD_COLOURS, REFERENCE_GREY, Line, lines
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import FittedMethod, Knowledge
from readbench.engine.rerankers import next_cases
from readbench.engine.spec import MethodSpec
from readbench.engine.windows import UNLABELLED
from readbench.studies._opinions import check_methods, require_opinions
from readbench.studies._study import (
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    count_seeds,
    group_by,
    mark_origins,
    plural,
    tell,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = (5, 10, 20, 50, 100, 200, 500)
"""Labels after which the ranking is judged."""
DRAWS = 3
"""Random orders."""
LEARNING_METRIC = DEFAULT_METRIC
TELLING, RANDOM = "most telling first", "random order"
COLOURS = {TELLING: METHOD_COLOURS[0], RANDOM: REFERENCE_GREY}
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class LearningCurve(Measured):
    """How good a method was after each batch of labels.

    Args:
        counts: (B,) labels known.
        values: order -> (B, Q) metric of each query, the mean over the draws for the random order.
        groups: (Q,) recordings of the queries.
    """

    counts: NDArray[np.int64]
    values: dict[str, NDArray[np.float64]]
    groups: NDArray[np.str_]


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row with the metric of each query after so many labels, for both orders."""
    spec = require_opinions(cell.method).spec
    cache = grid.setting().cache
    return [simulate_labelling(grid.task(cell), cell.rho, spec, cache, within(progress, "encoding"))]


def simulate_labelling(task: Task, rho: int, method: MethodSpec, cache: Path, progress: Progress = SILENT) -> Row:
    """The row of a level whose corpus is labelled in both orders.

    Args:
        task: with all labels.
        rho: pollution level in percent.
        method: one that ends with `+verdict`.
        cache: cache root.
        progress: told how far encodings have come.
    """
    setup = Setup.of(task, cache)
    expert = _Expert(setup.fit(setup.method(method, progress), rho), task)
    size = len(expert.labels)
    counts = tuple(sorted({min(count, size) for count in COUNTS}))
    orders = [np.random.default_rng([task.seed, draw]).permutation(size) for draw in range(DRAWS)]
    drawn = np.mean([expert.values(order, counts) for order in orders], axis=0)
    values = {TELLING: expert.values(expert.telling_order(counts), counts).tolist(), RANDOM: drawn.tolist()}
    return {"counts": list(counts), "values": values, "groups": task.queries.groups.tolist()}


class _Expert:
    """Knows all labels of a corpus, tells some of them, and judges the ranking that follows."""

    def __init__(self, fitted: FittedMethod, task: Task) -> None:
        self.fitted = fitted
        self.asked = fitted.ask(task.queries)
        self.labels, self.truth = fitted.corpus.labels, task.queries.labels

    def telling_order(self, counts: Sequence[int]) -> NDArray[np.intp]:
        """Positions of as many cases as the last count, asked for batch by batch."""
        order = np.empty(0, np.intp)
        for count in counts:
            asked = next_cases(self.fitted.units, self._told(order), self.fitted.groups, count - len(order))
            order = np.append(order, asked)
        return order

    def values(self, order: NDArray[np.intp], counts: Sequence[int]) -> NDArray[np.float64]:
        """(B, Q) the metric when the first cases of an order are labelled."""
        return np.stack([self._judged(order[:count]) for count in counts])

    def _judged(self, first: NDArray[np.intp]) -> NDArray[np.float64]:
        ranking = self.asked.rank(RANKING_DEPTH, Knowledge(self._told(first)))
        return evaluate(ranking.order, self.truth, self.labels, [LEARNING_METRIC]).values[LEARNING_METRIC]

    def _told(self, items: NDArray[np.intp]) -> NDArray[np.int32]:
        """(N,) the labels of some items, -1 elsewhere."""
        labels = np.full(len(self.labels), UNLABELLED, np.int32)
        labels[items] = self.labels[items]
        return labels


def active_table(lessons: Sequence[LearningCurve]) -> ReportTable:
    """One row a dataset and order, its mean over the seeds; below, the means over the datasets."""
    counts = common_counts(lessons)
    by_dataset = group_by(lambda one: one.cell.dataset, lessons)
    names, mean = mark_origins(by_dataset)
    blocks = [*zip(names, by_dataset.values(), strict=True), *([(mean, lessons)] if len(names) > 1 else [])]
    rows = [
        [name, order, *tell(interval.mean for interval in _intervals(own, order, counts))]
        for name, own in blocks
        for order in COLOURS
    ]
    return ReportTable("active", _caption(lessons), ["Dataset", "Order", *map(str, counts)], rows)


def draw_active(lessons: Sequence[LearningCurve]) -> Figure:
    """Both orders over the number of labels, mean over the datasets, bands being intervals over recordings."""
    counts, drawn = common_counts(lessons), []
    for order, colour in COLOURS.items():
        mean, low, high = np.array([[i.mean, i.low, i.high] for i in _intervals(lessons, order, counts)]).T
        drawn.append(Line(order, mean, colour, reference=order == RANDOM, band=np.stack([low, high])))
    axes, note = ("labelled cases", LEARNING_METRIC), "bands: 95 % intervals over recordings"
    return lines(drawn, [str(count) for count in counts], axes, _caption(lessons), note)


def common_counts(lessons: Sequence[LearningCurve]) -> list[int]:
    """Numbers of labels that every corpus has."""
    return sorted(set.intersection(*(set(one.counts.tolist()) for one in lessons)))


def _intervals(lessons: Sequence[LearningCurve], order: str, counts: Sequence[int]) -> list[ConfidenceInterval]:
    """Mean over datasets of the queries of all seeds, after each number of labels."""
    strata = [one.cell.dataset for one in lessons for _ in one.groups]
    clusters = [group for one in lessons for group in one.groups.tolist()]
    found = []
    for count in counts:
        values = np.concatenate([one.values[order][one.counts.tolist().index(count)] for one in lessons])
        found.append(mean_interval(values, strata, clusters, seed=0, resamples=RESAMPLES))
    return found


def _caption(lessons: Sequence[LearningCurve]) -> str:
    datasets = plural(len({one.cell.dataset for one in lessons}), "dataset")
    return f"{LEARNING_METRIC} at ρ={lessons[0].cell.rho}% after so many labels, {datasets}, {count_seeds(lessons)}"


STUDIES.register(
    Study(
        name="active",
        aliases=("labelling",),
        summary="Which cases to label first: the most telling ones against a random order.",
        measure=measure_cell,
        complete=check_methods,
        result=LearningCurve,
        tables=(active_table,),
        figures={"active": draw_active},
        methods=("flagship",),
        single=("methods", "levels"),
        metrics=(LEARNING_METRIC,),
    )
)
