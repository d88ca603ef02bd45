"""What a few names are worth: list and belief after so many named incidents per fault type.

An incident is a fault type in a recording. Incidents are named at random or by coverage, and the rest of the corpus
stays unlabelled; its normals are known. The list is judged by all queries, the belief by those whose fault type is
among the named ones. The belief stands beside the fault type of the nearest named case, the simplest rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.report import ReportTable
from readbench.benchmark.runs import RANKING_DEPTH, Setup
from readbench.common.calibration import expected_calibration_error
from readbench.common.plots import METHOD_COLOURS
from readbench.common.progress import Progress, within
from readbench.engine.method import FittedMethod, Knowledge, QueryBatch
from readbench.engine.parameters import Parameter, ParameterRange
from readbench.engine.rerankers import Opinion
from readbench.engine.spec import parse
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet
from readbench.errors import UsageError
from readbench.studies._study import (
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    count_seeds,
    draw_panels,
    group_by,
    mark_origins,
    once,
    plural,
    tell,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Choice = Literal["random", "coverage"]
CHOICES: tuple[Choice, ...] = ("random", "coverage")
NDCG, HITS = "NDCG@10", "HR@10"
ALL = "all"
"""All incidents are named."""
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class NamedIncidents(Measured):
    """What a method makes of some named incidents.

    Args:
        names: named incidents per fault type, as text.
        choice: how they were chosen.
        draw: number of the draw.
        ndcg: (Q,) of each query.
        hits: (Q,) 1 where one of the first ten shares the fault type.
        unnamed: (Q,) NDCG@10 of the list without any name.
        named: (Q,) whether the query's fault type is named.
        right: (Q,) whether the first belief is; NaN for a method without opinions.
        confidence: (Q,) its probability.
        nearest: (Q,) whether the nearest named case has the fault type.
    """

    names: str
    choice: str
    draw: int
    ndcg: NDArray[np.float64]
    hits: NDArray[np.float64]
    unnamed: NDArray[np.float64]
    named: NDArray[np.bool_]
    right: NDArray[np.float64]
    confidence: NDArray[np.float64]
    nearest: NDArray[np.float64]


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """A row for each number of names, choice and draw."""
    task, counts = grid.task(cell), read_counts(str(grid["names"]))
    setup = Setup.of(task, grid.setting().cache)
    fitted = setup.fit(setup.method(parse(cell.method), within(progress, "encoding")), cell.rho)
    batch = fitted.ask(task.queries)
    corpus = fitted.corpus
    nothing = np.where(corpus.labels == NORMAL, NORMAL, UNLABELLED).astype(np.int32)
    unnamed = judge_list(batch, nothing, corpus, task.queries)[NDCG].tolist()
    draws, rows = int(grid["draws"]), []
    for names, count in counts.items():
        for choice in CHOICES if names != ALL else CHOICES[:1]:
            for draw in range(draws if names != ALL else 1):
                labels = name_incidents(corpus, count, choice, draw, fitted)
                progress(f"{names} names, {choice}", draw, draws)
                found = judge(batch, labels, corpus, task.queries)
                rows.append({"names": names, "choice": choice, "draw": draw, "unnamed": unnamed, **found})
    return rows


def judge_list(
    batch: QueryBatch, labels: Labels, corpus: WindowSet, queries: WindowSet
) -> Mapping[str, NDArray[np.float64]]:
    """Metrics of each query, (Q,), when these labels (N,) are known."""
    order = batch.rank(RANKING_DEPTH, Knowledge(labels)).order
    return evaluate(order, queries.labels, corpus.labels, [NDCG, HITS]).values


def judge(batch: QueryBatch, labels: Labels, corpus: WindowSet, queries: WindowSet) -> Row:
    """List and belief of each query when these labels (N,) are known; no belief where the method forms none."""
    values, truth = judge_list(batch, labels, corpus, queries), queries.labels
    cases = np.flatnonzero(labels > NORMAL)
    nearest = labels[cases][batch.base[:, cases].argmax(axis=1)]
    opinions: Sequence[Opinion | None] = batch.opinions(labels) or [None] * len(truth)
    return {
        "ndcg": values[NDCG].tolist(),
        "hits": values[HITS].tolist(),
        "named": np.isin(truth, labels[cases]).tolist(),
        "right": [said and float(said.label == true) for said, true in zip(opinions, truth, strict=True)],
        "confidence": [said and said.confidence for said in opinions],
        "nearest": (nearest == truth).astype(float).tolist(),
    }


def read_counts(text: str) -> dict[str, float]:
    """Incidents per fault type by their text, all being infinite.

    >>> read_counts("0.5,1,all")
    {'0.5': 0.5, '1': 1.0, 'all': inf}
    """
    try:
        counts = {part.strip(): float("inf") if part.strip() == ALL else float(part) for part in text.split(",")}
    except ValueError:
        counts = {}
    if not counts or not all(count > 0 for count in counts.values()):
        raise UsageError(f"names: named incidents per fault type, as in 0.5,1,2,5,{ALL}. Got {text!r}.")
    return counts


def name_incidents(corpus: WindowSet, per_class: float, choice: Choice, draw: int, fitted: FittedMethod) -> Labels:
    """(N,) labels of normals and of so many incidents per fault type, -1 elsewhere.

    Args:
        corpus: with all labels.
        per_class: incidents named, on average over the fault types; at least one is.
        choice: at random, or those that lie nearest to many cases.
        draw: its number.
        fitted: gives the likeness of cases for coverage.
    """
    keys = [repr(pair) for pair in zip(corpus.groups.tolist(), corpus.labels.tolist(), strict=True)]
    incidents = sorted({key for key, label in zip(keys, corpus.labels, strict=True) if label > NORMAL})
    types = len(np.unique(corpus.labels[corpus.labels > NORMAL]))
    count = len(incidents) if np.isinf(per_class) else min(max(1, round(per_class * types)), len(incidents))
    rng = np.random.default_rng([draw, count])
    if choice == "random" or count == len(incidents):
        chosen = [incidents[i] for i in rng.permutation(len(incidents))[:count]]
    else:
        chosen = [incidents[i] for i in cover(incidents, keys, fitted, count, rng)]
    known = np.isin(keys, chosen) | (corpus.labels == NORMAL)
    return np.where(known, corpus.labels, UNLABELLED).astype(np.int32)


def cover(
    incidents: Sequence[str], keys: Sequence[str], fitted: FittedMethod, count: int, rng: np.random.Generator
) -> list[int]:
    """Incidents to which the others are nearest: each next one adds most (greedy facility location).

    The first one is drawn, so that draws differ.
    """
    place = {key: i for i, key in enumerate(incidents)}
    members = np.array([place.get(key, -1) for key in keys])
    means = []
    for vectors in fitted.units:
        total = np.zeros((len(incidents), vectors.shape[1]))
        np.add.at(total, members[members >= 0], vectors[members >= 0])
        means.append(total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12))
    alike = np.mean([vectors @ vectors.T for vectors in means], axis=0)
    chosen = [int(rng.integers(len(incidents)))]
    while len(chosen) < count:
        gain = np.maximum(alike, alike[:, chosen].max(axis=1, keepdims=True)).sum(axis=0)
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
    return chosen


Read = Callable[[NamedIncidents], float]


def calibration_error(results: Iterable[NamedIncidents]) -> float:
    """Expected calibration error of the first belief, over all queries whose fault type is named; NaN without any."""
    parts = [(one.confidence[one.named], one.right[one.named]) for one in results]
    stated, right = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return expected_calibration_error(stated, right) if np.isfinite(stated).any() else float("nan")


def labels_table(results: Sequence[NamedIncidents]) -> ReportTable:
    """One row a method, choice and number of names: means over the datasets, of all draws and seeds."""
    names, mean = mark_origins(group_by(lambda one: one.cell.dataset, results))
    header = [
        "Method",
        "Chosen",
        "Names per type",
        NDCG,
        "against none",
        "worst dataset",
        HITS,
        "right",
        "nearest",
        "ECE",
    ]
    rows = []
    for (method, choice, count), block in _blocks(results).items():
        gains = [*_by_dataset(block, _gain).values()]
        means = [_mean(block, read) for read in (_ndcg, _hits, _right, _nearest)]
        cells = [means[0], float(np.mean(gains)), min(gains), *means[1:], calibration_error(block)]
        rows.append([method, choice, count, *tell(cells)])
    caption = (
        f"List and belief after so many named incidents per fault type, {mean} ({', '.join(names)}), ρ ="
        f" {results[0].cell.rho}%, {count_seeds(results)}. against none: less the list without names, and the worst"
        " dataset. right: the first belief of queries whose fault type is named; nearest: the nearest named case"
        " instead. ECE over all of them"
    )
    return ReportTable("labels", caption, header, rows)


def dataset_table(results: Sequence[NamedIncidents]) -> ReportTable:
    """One row a dataset, method, choice and number of names."""
    rows = []
    for (method, choice, count), block in _blocks(results).items():
        for dataset, found in group_by(lambda one: one.marked, block).items():
            means = [_mean(found, read) for read in (_ndcg, _gain, _right, _nearest)]
            rows.append([dataset, method, choice, count, *tell(means)])
    header = ["Dataset", "Method", "Chosen", "Names per type", NDCG, "against none", "right", "nearest"]
    return ReportTable("labels_by_dataset", "The same by dataset", header, rows)


def draw_list(results: Sequence[NamedIncidents]) -> Figure:
    """A panel a method: NDCG@10 over the names per type; dashed without any name."""
    return _draw(results, _ndcg, ("without names", lambda one: float(one.unnamed.mean())), NDCG)


def draw_belief(results: Sequence[NamedIncidents]) -> Figure | None:
    """A panel a method: share of right first beliefs; dashed the nearest named case."""
    able = [one for one in results if not np.isnan(one.right).all()]
    return _draw(able, _right, ("nearest case", _nearest), "first belief right") if able else None


def _draw(results: Sequence[NamedIncidents], read: Read, reference: tuple[str, Read], shown: str) -> Figure:
    ticks = once(one.names for one in results)
    name, beside = reference

    def draw(axis: Axes, method: str, found: Sequence[NamedIncidents]) -> None:
        for choice, colour in zip(CHOICES, METHOD_COLOURS, strict=False):
            # All incidents are the same, however they are chosen.
            of = group_by(lambda one: one.names, (one for one in found if one.choice == choice or one.names == ALL))
            at = [place for place, tick in enumerate(ticks) if tick in of]
            values, lower = ([_mean(of[ticks[place]], by) for place in at] for by in (read, beside))
            axis.plot(at, values, marker="o", markersize=4, color=colour, label=choice)
            axis.plot(at, lower, linestyle="--", linewidth=1, color=colour, label=f"{choice}, {name}")
        axis.set_xticks(range(len(ticks)), ticks)
        axis.set_title(fill(method, 46), fontsize=8)
        axis.legend(frameon=False, fontsize=7)

    panels = group_by(lambda one: one.cell.method, results)
    title = f"{shown}, mean of {plural(len({one.cell.dataset for one in results}), 'dataset')}"
    return draw_panels(panels, draw, (4.2, 3.4), title, ("named incidents per fault type", shown))


def _ndcg(one: NamedIncidents) -> float:
    return float(one.ndcg.mean())


def _gain(one: NamedIncidents) -> float:
    return float((one.ndcg - one.unnamed).mean())


def _hits(one: NamedIncidents) -> float:
    return float(one.hits.mean())


def _right(one: NamedIncidents) -> float:
    return float(one.right[one.named].mean()) if one.named.any() else float("nan")


def _nearest(one: NamedIncidents) -> float:
    return float(one.nearest[one.named].mean()) if one.named.any() else float("nan")


def _blocks(results: Sequence[NamedIncidents]) -> Mapping[tuple[str, str, str], list[NamedIncidents]]:
    return group_by(lambda one: (one.cell.method, one.choice, one.names), results)


def _by_dataset(block: Sequence[NamedIncidents], read: Read) -> dict[str, float]:
    by_dataset = group_by(lambda one: one.cell.dataset, block)
    return {name: _mean_known([read(one) for one in found]) for name, found in by_dataset.items()}


def _mean(block: Sequence[NamedIncidents], read: Read) -> float:
    return _mean_known([*_by_dataset(block, read).values()])


def _mean_known(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


STUDIES.register(
    Study(
        name="labels",
        summary="What a few named incidents are worth: list and belief, named at random or by coverage.",
        measure=measure_cell,
        result=NamedIncidents,
        tables=(labels_table, dataset_table),
        shown=(labels_table,),
        figures={"labels": draw_list, "labels_right": draw_belief},
        methods=("flagship",),
        seeds=(0,),
        single=("levels",),
        settings=(
            Parameter("names", str, "0.5,1,2,5,all"),
            Parameter("draws", int, 4, interval=ParameterRange(1, 100)),
        ),
        metrics=(NDCG, HITS),
    )
)
