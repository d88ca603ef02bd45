"""What an order of labelling is worth: the ranking after so many labels, against labels in random order.

An expert labels the cases of a corpus one by one: in batches that `readbench.engine.rerankers` asks for, learning from
the labels so far, or in an order that is drawn, several times. After each batch the method ranks anew and is judged by
the true labels of all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import DEFAULT_METRIC, evaluate
from readbench.benchmark.protocol import Task
from readbench.benchmark.runs import (
    RANKING_DEPTH,
    Cell,
    Executor,
    Plan,
    Setting,
    Setup,
    build_first,
    load_cell_task,
    take_once,
)
from readbench.benchmark.studies._opinions import identify_cell, require_opinions
from readbench.benchmark.studies._study import Failure, Rows, Study, measure_results
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import FittedMethod, Knowledge
from readbench.engine.rerankers import next_cases
from readbench.engine.spec import MethodSpec
from readbench.engine.windows import UNLABELLED

COUNTS = (5, 10, 20, 50, 100, 200, 500)
"""Labels after which the ranking is judged."""
DRAWS = 3
"""Random orders."""
LEARNING_METRIC = DEFAULT_METRIC
TELLING, RANDOM = "most telling first", "random order"


@dataclass(frozen=True, eq=False)
class LabellingResult:
    """How good a method was after each batch of labels.

    Args:
        counts: (B,) labels known.
        values: order -> (B, Q) metric of each query, the mean over the draws for the random order.
        groups: (Q,) recordings of the queries.
    """

    counts: tuple[int, ...]
    values: dict[str, NDArray[np.float64]]
    groups: list[str]


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """How a method learned on one task."""

    cell: Cell
    learned: LabellingResult

    @classmethod
    def of(cls, cell: Cell, row: dict[str, Any]) -> Self:
        """From the row that `measure_labelling` keeps."""
        values = {order: np.array(own) for order, own in row["values"].items()}
        return cls(cell, LabellingResult(tuple(row["counts"]), values, row["groups"]))


def measure_labelling(
    plan: Plan,
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[LearningCurve], Sequence[Failure]]:
    """Measure both orders of labelling on all cells of a plan; finished ones in the folder are kept.

    Args:
        plan: datasets, split seeds and levels, one method that ends with `+verdict`.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    setting = Setting.of(plan, out, root, cache)
    build_first(plan.datasets, setting, progress)
    identify = partial(identify_cell, setting=setting, roots=(simulate_labelling,))
    measure = partial(measure_lesson, setting=setting)
    cells = list(take_once(plan, setting).cells())
    return measure_results(Study(cells, identify, measure), LearningCurve.of, out, executor, progress)


def measure_lesson(cell: Cell, progress: Progress, setting: Setting) -> Rows:
    """In a worker: one row with the metric of each query after so many labels, for both orders."""
    task, _ = load_cell_task(cell.dataset, cell.seed, setting)
    spec = require_opinions(cell.method).spec
    learned = simulate_labelling(task, cell.rho, spec, setting.cache, within(progress, "encoding"))
    values = {order: own.tolist() for order, own in learned.values.items()}
    return [{"counts": list(learned.counts), "values": values, "groups": learned.groups}]


def simulate_labelling(
    task: Task, rho: int, method: MethodSpec, cache: Path, progress: Progress = SILENT
) -> LabellingResult:
    """Label the corpus of a level in both orders.

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
    values = {TELLING: expert.values(expert.telling_order(counts), counts), RANDOM: drawn}
    return LabellingResult(counts, values, task.queries.groups.tolist())


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
