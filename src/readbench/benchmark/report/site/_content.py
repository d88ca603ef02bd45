"""The data of the page as plain JSON; cases are packed apart.

`CellScores` holds per-query scores by dataset, `judge_means` the standard errors of their means and the means by class.
`content` puts the page's data together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.report import (
    MARKS,
    Gallery,
    Results,
    base_name,
    explain_marks,
    marks_of,
    place_methods,
    retained_shares,
    state_method,
    tell_place,
    tell_retained,
)
from readbench.benchmark.runs import TIMES, open_folder, parse_budget, read_costs
from readbench.common.plots import colour_of
from readbench.engine.legs import STAGES
from readbench.engine.spec import Stage, parse
from readbench.errors import ReadbenchError

Place = tuple[int, int, str, str]
"""Seed, pollution level, label budget and method of a cell."""


@dataclass(frozen=True, eq=False)
class CellScores:
    """Per-query metrics of one dataset.

    Args:
        metrics: names.
        queries: seed -> ids.
        groups: seed -> split groups of the queries.
        values: cell -> (Q, metrics).
    """

    metrics: tuple[str, ...]
    queries: dict[int, list[str]]
    groups: dict[int, list[str]]
    values: dict[Place, NDArray[np.float64]]

    def metric(self, name: str, place: Place) -> NDArray[np.float64]:
        """(Q,) one metric of a cell."""
        values: NDArray[np.float64] = self.values[place][:, self.metrics.index(name)]
        return values


def read_answers(folder: Path, dataset: str) -> CellScores:
    """Read the per-query metrics of one dataset."""
    table = open_folder(folder).read_per_query([("dataset", "=", dataset)])
    metrics = tuple(table["metric"].unique().to_pylist())
    answers = CellScores(metrics, {}, {}, {})
    for place, cell in by_cell(table):
        answers.values[place] = cell["value"].to_numpy().reshape(-1, len(metrics))
        seed = place[0]
        if seed not in answers.queries:
            answers.queries[seed] = cell["query"].to_pylist()[:: len(metrics)]
            answers.groups[seed] = cell["group"].to_pylist()[:: len(metrics)]
    return answers


def by_cell(table: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
    """Rows by cell; those of a cell are contiguous in the tables of a run."""
    if not len(table):
        return
    table = table.unify_dictionaries()
    keys = ("seed", "rho", "labels", "method")
    changes = np.flatnonzero(np.any([np.diff(_codes(table[name])) != 0 for name in keys], axis=0)) + 1
    for start, stop in pairwise([0, *changes.tolist(), len(table)]):
        seed, rho, labels, method = (table[name][start].as_py() for name in keys)
        yield (seed, rho, labels, method), table.slice(start, stop - start)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """A number for each distinct value."""
    values = column.combine_chunks()
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    return encoded.indices.to_numpy()


def covariance(values: list[NDArray[np.float64]], groups: list[list[str]]) -> NDArray[np.float64]:
    """(M, M) covariance of the methods' means, clustered by split group (Liang and Zeger, 1986).

    A mean is taken over the queries of each seed, then over seeds; a group is one observation in all seeds. The page
    derives the variance of any difference of two means from it.

    Args:
        values: (Q, M) matrix per seed.
        groups: split groups of the queries of each seed.

    Returns:
        NaN for a method without values, and throughout with a single group.

    >>> covariance([np.array([[1.0], [1.0], [0.0], [0.0]])], [["a", "a", "b", "b"]])
    array([[0.25]])
    """
    names, codes = np.unique(np.concatenate([np.asarray(own) for own in groups]), return_inverse=True)
    if len(names) < 2:
        return np.full((values[0].shape[1],) * 2, np.nan)
    errors = np.concatenate([(own - own.mean(axis=0)) / (len(own) * len(values)) for own in values])
    sums = np.zeros((len(names), errors.shape[1]))
    np.add.at(sums, codes, errors)
    return sums.T @ sums * (len(names) / (len(names) - 1))


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Standard errors of all means, and covariances between methods for the headline.

    Args:
        headline: metric of `joint` and `classes`.
        errors: metric -> (datasets, levels, budgets, methods).
        joint: (datasets, levels, budgets, methods, methods).
        classes: dataset -> class -> (levels, budgets, methods) mean of the headline metric.
    """

    headline: str
    errors: dict[str, NDArray[np.float64]]
    joint: NDArray[np.float32]
    classes: dict[str, dict[str, NDArray[np.float64]]]


def judge_means(results: Results, answers: Sequence[CellScores], gallery: Gallery | None) -> MeanErrors:
    """Standard errors and class means of a run."""
    shape = (len(results.datasets), len(results.levels), len(results.labels), len(results.methods))
    out = MeanErrors(
        errors={metric: np.full(shape, np.nan) for metric, facts in results.metrics.items() if facts.per_query},
        headline=results.headline,
        joint=np.full((*shape, shape[-1]), np.nan, np.float32),
        classes={dataset: {} for dataset in results.datasets},
    )
    for d, (dataset, own) in enumerate(zip(results.datasets, answers, strict=True)):
        if not own.queries:
            continue
        labels = _query_labels(gallery, dataset)
        names = sorted({name for seed in labels.values() for name in seed.values()})
        out.classes[dataset] = {name: np.full(shape[1:], np.nan) for name in names}
        for level, rho in enumerate(results.levels):
            for b in range(len(results.labels)):
                values = {seed: _matrix(results, own, seed, rho, b) for seed in own.queries}
                _judge(out, (d, level, b), values, own)
                _judge_classes(out, dataset, (level, b), values, own, labels)
    return out


def _judge(
    out: MeanErrors, place: tuple[int, int, int], values: dict[int, NDArray[np.float64]], own: CellScores
) -> None:
    groups = [own.groups[seed] for seed in values]
    for k, metric in enumerate(own.metrics):
        joint = covariance([matrix[:, :, k] for matrix in values.values()], groups)
        out.errors[metric][place] = np.sqrt(np.diagonal(joint))
        if metric == out.headline:
            out.joint[place] = joint


def _judge_classes(
    out: MeanErrors,
    dataset: str,
    place: tuple[int, int],
    values: dict[int, NDArray[np.float64]],
    own: CellScores,
    labels: dict[int, dict[str, str]],
) -> None:
    """Fill in the mean headline over the queries of each class, all seeds together."""
    headline = own.metrics.index(out.headline)
    for name, means in out.classes[dataset].items():
        rows = [
            matrix[[labels[seed].get(query) == name for query in own.queries[seed]], :, headline]
            for seed, matrix in values.items()
            if seed in labels
        ]
        asked = np.concatenate(rows) if rows else np.empty((0, 0))
        if len(asked):
            means[place] = asked.mean(axis=0)


def _query_labels(gallery: Gallery | None, dataset: str) -> dict[int, dict[str, str]]:
    """Class names of the queries of a dataset, by seed and id."""
    if gallery is None:
        return {}
    return {
        seed: {exhibit.window: exhibit.label for exhibit in exhibits if exhibit.query}
        for (name, seed), exhibits in gallery.exhibits.items()
        if name == dataset
    }


def _matrix(results: Results, own: CellScores, seed: int, rho: int, budget: int) -> NDArray[np.float64]:
    """(Q, M, metrics) of one corpus under one label budget; NaN where a cell failed."""
    missing = np.full((len(own.queries[seed]), len(own.metrics)), np.nan)
    places = [(seed, rho, _budget_of(results, method, budget), method) for method in results.methods]
    return np.stack([own.values.get(place, missing) for place in places], axis=1)


def _budget_of(results: Results, method: str, budget: int) -> str:
    """The label budget of a method at a budget of the page; its only one if it has one."""
    budgets = results.budgets(method)
    return budgets[budget] if len(budgets) == len(results.labels) else budgets[0]


def content(results: Results, gallery: Gallery | None, measured: MeanErrors) -> dict[str, Any]:
    """The page's data, without the cases."""
    return {
        "name": results.folder.resolve().name,
        "code": results.manifest.get("code", ""),
        "headline": results.headline,
        "metrics": list(results.metrics),
        "smaller_is_better": [name for name, metric in results.metrics.items() if not metric.larger_is_better],
        "stages": list(STAGES),
        "levels": list(results.levels),
        "seeds": list(results.seeds),
        "budgets": [{"text": text, "words": parse_budget(text).words} for text in results.labels],
        "origins": [list(pair) for pair in MARKS.items()],
        "marks": explain_marks(marks_of(results, name) for name in results.datasets),
        "datasets": [_dataset(results, gallery, name, measured) for name in results.datasets],
        "methods": [_method(results, method) for method in results.methods],
        "values": {metric: _rounded(results.values[metric].mean(axis=1)) for metric in results.metrics},
        "errors": {metric: _rounded(errors) for metric, errors in measured.errors.items()},
        "seconds": _rounded(np.stack([results.values[name].mean(axis=(1, 2, 3)) for name in TIMES])),
        "cost_task": next((cost.task for cost in read_costs(results.folder).values()), ""),
        "places": {
            row.method: {"place": tell_place(row), "low": row.low, "tie": row.tie, "of": row.rivals}
            for row in place_methods(results).rows
        },
        "failures": [list(failure) for failure in results.failures],
    }


def _dataset(results: Results, gallery: Gallery | None, name: str, measured: MeanErrors) -> dict[str, Any]:
    sizes = [own for task, own in results.manifest.get("sizes", {}).items() if task.rpartition("/")[0] == name]
    notes = [note for task, own in results.manifest["notes"].items() if task.rpartition("/")[0] == name for note in own]
    facts = gallery.facts.get(name, {}) if gallery else {}
    return {
        **results.manifest.get("datasets", {}).get(name, {"title": name}),
        "name": name,
        "origin": results.origins[name],
        "marks": marks_of(results, name),
        "files": results.files(name),
        "sizes": sizes[0] if sizes else {},
        "notes": list(dict.fromkeys(notes)),
        "units": facts.get("units", {}),
        "classes": _classes(facts.get("tasks", {})),
        "by_class": {label: _rounded(means) for label, means in measured.classes[name].items()},
    }


def _classes(tasks: dict[str, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Windows by class over all seeds: sum of queries, range of the corpus."""
    names = dict.fromkeys(name for task in tasks.values() for name in task)
    found = []
    for name in names:
        own = [task[name] for task in tasks.values() if name in task]
        corpus = [facts["corpus"] for facts in own]
        telling = next((facts["telling"] for facts in own if facts["telling"]), "")
        asked = sum(facts["queries"] for facts in own)
        found.append({"name": name, "queries": asked, "corpus": [min(corpus), max(corpus)], "telling": telling})
    return found


def _method(results: Results, method: str) -> dict[str, Any]:
    family = results.family(method)
    kept, cost = retained_shares(results).get(method), read_costs(results.folder).get(method)
    share = kept.share if kept else None
    return {
        "text": method,
        "title": results.title(method),
        "family": family,
        "colour": colour_of(family, base_name(method)),
        "labels": state_method(method).knowledge,
        "chosen_on": list(state_method(method).chosen_on),
        "retained": round(share.mean, 2) if share else None,
        "retained_interval": tell_retained(kept),
        "cpu_seconds": cost.cpu_s if cost else None,
        "budgets": list(results.budgets(method)),
        "stages": _stages(method),
    }


def _stages(method: str) -> list[dict[str, Any]]:
    """Parts of a method with their summaries; empty if a part is not installed."""
    try:
        spec = parse(method)
        entries = spec.entries()
    except ReadbenchError:
        return []
    parts: list[tuple[str, Stage]] = []
    for leg in spec.legs:
        parts += [("leg", leg.stage), *(("transform", stage) for stage in leg.transforms)]
    parts += [*(("fusion", stage) for stage in spec.fusions), *(("reranker", stage) for stage in spec.rerankers)]
    return [
        {
            "role": role,
            "name": stage.name,
            "title": entry.title,
            "summary": entry.summary,
            "parameters": [[key, str(value)] for key, value in stage.parameters],
        }
        for (role, stage), entry in zip(parts, entries, strict=True)
    ]


def _rounded(values: NDArray[np.float64]) -> Any:  # noqa: ANN401 - lists as deep as the array
    """Nested lists with four digits; None for NaN."""

    def walk(item: Any) -> Any:  # noqa: ANN401
        if isinstance(item, Iterable):
            return [walk(one) for one in item]
        return None if math.isnan(item) else round(item, 4)

    return walk(values.tolist())
