"""The results of a run, read from its folder, and the leaderboard.

`Results` holds the scores as arrays. `leaderboard` gives mean and spread, mean ranks and significance.
`read_stated_probabilities` reads the stated certainty of each query and whether it was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    DEFAULT_METRIC,
    MIN_DATASETS,
    FriedmanResult,
    critical_difference,
    friedman,
    mean_ranks,
    metric_order,
)
from readbench.benchmark.protocol import DataOrigin
from readbench.benchmark.report._origins import find_real, read_origin
from readbench.benchmark.runs import (
    ALL,
    DONE,
    OPINION,
    TIMES,
    UNANSWERED,
    Cell,
    Plan,
    RunFolder,
    StatedProbabilities,
    cell_of,
    is_planned,
    metric_columns,
    open_folder,
    plan_of,
    take_tasks_once,
)
from readbench.engine.llm import mark_unanswered
from readbench.engine.registry import METRICS
from readbench.engine.spec import COMPOSED, composed_title
from readbench.errors import RunError, UnknownNameError, UsageError


@dataclass(frozen=True)
class MetricFacts:
    """A metric as the run knew it; the fields are those of `readbench.engine.registry.MetricEntry`."""

    name: str
    title: str
    family: str
    cutoff: int | None
    depth: int
    per_query: bool
    larger_is_better: bool
    origin: str

    @classmethod
    def of(cls, name: str, kept: Mapping[str, dict[str, Any]]) -> Self:
        """Facts about the metric of a column: from `kept` of `run.json`, the registry, or else its name."""
        if name in kept:
            return cls(name, **kept[name])
        if name in METRICS:
            return cls(name, **METRICS.get(name).facts())
        family, _, k = name.partition("@")
        cutoff = int(k) if k.isdecimal() else None
        return cls(name, name, family, cutoff, cutoff or 1, per_query=False, larger_is_better=True, origin="")

    def orient(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values with the sign that makes larger better."""
        return values if self.larger_is_better else -values


@dataclass(frozen=True, eq=False)
class Results:
    """Scores of a run as arrays, and the facts of `run.json`.

    Args:
        folder: the run folder.
        datasets: names in plan order.
        seeds: split seeds.
        levels: pollution levels in percent.
        labels: label budgets in plan order.
        methods: canonical texts.
        values: metric or time -> (dataset, seed, level, budget, method), NaN if a cell failed or is missing. A method
            that reads no label has the same value under every budget. A split seed whose split equals an earlier one
            has the mean of the dataset's other seeds, so that a mean over seeds counts each split once.
        failures: (cell name, reason) of failed cells.
        manifest: content of `run.json`.
        metrics: metrics of the run in column order.
        headline: per-query metric that orders and compares methods.
        plan: plan of the run without repeated splits.
        unanswered: method -> largest share of unanswered questions to a language model in any finished cell.
    """

    folder: Path
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    levels: tuple[int, ...]
    labels: tuple[str, ...]
    methods: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    failures: tuple[tuple[str, str], ...]
    manifest: dict[str, Any]
    metrics: dict[str, MetricFacts]
    plan: Plan
    headline: str = DEFAULT_METRIC
    unanswered: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        axes = ", ".join(f"{len(getattr(self, name))} {name}" for name in AXES)
        return f"Results({str(self.folder)!r}: {axes}; {len(self.failures)} failed cells, by {self.headline})"

    def title(self, method: str) -> str:
        """Name of a method in tables, marked if a language model left questions unanswered."""
        # Names of composed methods may have changed since the rows were computed; texts have not.
        named = composed_title(method) or _varied_title(method) or str(self.manifest["methods"][method]["title"])
        return named + mark_unanswered(self.unanswered.get(method, 0.0))

    def family(self, method: str) -> str:
        """Family of a method."""
        return str(self.manifest["methods"][method]["family"])

    @cached_property
    def origins(self) -> dict[str, DataOrigin]:
        """Dataset -> where its values come from."""
        return {dataset: read_origin(self.manifest, dataset) for dataset in self.datasets}

    def files(self, dataset: str) -> str:
        """State of a source's official files (`complete`, `partial` ...); empty in older runs."""
        return str(self.manifest["datasets"][dataset].get("files", ""))

    def domain(self, dataset: str) -> str:
        """Diagnostic domain of a dataset."""
        return str(self.manifest["datasets"][dataset]["domain"])

    def sizes(self, dataset: str) -> dict[int, dict[str, Any]]:
        """Split seed -> composition of the task; see `readbench.benchmark.protocol.composition_row`."""
        seeds = self.plan.seeds_of(dataset)
        tasks = {seed: self.manifest["sizes"].get(f"{dataset}/seed-{seed}") for seed in seeds}
        return {seed: sizes for seed, sizes in tasks.items() if sizes}

    def budgets(self, method: str) -> tuple[str, ...]:
        """Label budgets that a method ran under: `all` alone for one that reads no label."""
        return tuple(self.manifest["methods"][method]["labels"])

    def at(self, metric: str, rho: int) -> NDArray[np.float64]:
        """(dataset, seed, method) values at one level, under the last budget of the plan."""
        values: NDArray[np.float64] = self.values[metric][:, :, self.levels.index(rho), -1]
        return values

    def complete(self) -> NDArray[np.intp]:
        """Indices of the methods with a value in every cell, which can be ranked."""
        return np.flatnonzero(~np.isnan(self.values[self.headline]).any(axis=(0, 1, 2, 3)))

    def held(self, method: int, rho: int | None = None) -> list[int]:
        """Indices of the datasets on which a method has every cell, at one level or at all."""
        values = self.values[self.headline][..., method]
        wanted = values if rho is None else values[:, :, [self.levels.index(rho)]]
        return np.flatnonzero(~np.isnan(wanted).any(axis=(1, 2, 3))).tolist()

    def missing(self) -> dict[str, int]:
        """Method -> number of planned cells neither computed nor failed; without zeros."""
        failed = {name for name, _ in self.failures}
        found: dict[str, int] = {}
        for place in np.argwhere(np.isnan(self.values[self.headline])):
            dataset, seed, rho, labels, method = (
                axis[i] for axis, i in zip((getattr(self, name) for name in AXES), place, strict=True)
            )
            own = self.budgets(method)
            if seed not in self.plan.seeds_of(dataset):
                continue
            if labels not in own and labels != self.labels[-1]:
                continue
            cell = Cell(dataset, seed, rho, method, labels if labels in own else own[-1])
            if str(cell) not in failed and is_planned(cell, self.manifest):
                found[method] = found.get(method, 0) + 1
        return found

    def figure(self, metric: str, rho: int, datasets: Sequence[int], method: int) -> Figure:
        """Mean over datasets and seeds of one metric, and its spread."""
        return self.summarise(self.at(metric, rho)[:, :, method], datasets)

    def summarise(self, values: NDArray[np.float64], datasets: Sequence[int] | None = None) -> Figure:
        """Mean of `values` (datasets, seeds) over `datasets`, by default all, and its deviation over seeds.

        The deviation is over the seeds whose splits differ on every dataset. Both are NaN without datasets.
        """
        datasets = range(len(self.datasets)) if datasets is None else datasets
        if not len(datasets):
            return Figure(float("nan"), float("nan"))
        per_seed = values[list(datasets)].mean(axis=0)
        taken = [self.plan.seeds_of(self.datasets[d]) for d in datasets]
        differing = per_seed[[all(seed in own for own in taken) for seed in self.seeds]]
        spread = float(differing.std(ddof=1)) if len(differing) > 1 else float("nan")
        return Figure(float(per_seed.mean()), spread)

    @property
    def told_seeds(self) -> str:
        """Number of split seeds in words, with the datasets on which fewer differ."""
        count = len(self.seeds)
        fewer = {d: len(self.plan.seeds_of(d)) for d in self.datasets if len(self.plan.seeds_of(d)) < count}
        part = ", ".join(f"{number} of {dataset}" for dataset, number in fewer.items())
        return f"{count} split seed{'s' if count > 1 else ''}" + (f" ({part}: no others differ)" if part else "")

    def orient(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the headline, signed such that larger is better."""
        return self.metrics[self.headline].orient(values)


FACTS = ("plan", "datasets", "methods", "notes", "sizes")
"""What a report reads of `run.json`."""
AXES = {"datasets": "dataset", "seeds": "seed", "levels": "rho", "labels": "labels", "methods": "method"}
"""Lists of the plan that are axes of the values, and their columns in `scores.csv`."""


def read_results(folder: Path, metric: str = DEFAULT_METRIC) -> Results:
    """Read `scores.csv` and `run.json` of a run folder; `metric` is the headline, in any case."""
    folder = Path(folder)
    try:
        manifest = _read_facts(open_folder(folder))
        header, rows = open_folder(folder).read_scores()
        names = metric_columns(header)
        lists = {name: tuple(manifest["plan"][name]) for name in AXES}
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{folder} is not a run folder ({error}). Make one: readbench run --out {folder}") from error
    if not names:
        raise RunError(f"{folder / 'scores.csv'} is damaged. Start the run again: what is finished is kept.")
    axes = {column: tuple(map(str, lists[name])) for name, column in AXES.items()}
    values = {name: np.full([len(axis) for axis in axes.values()], np.nan) for name in (*names, *TIMES)}
    failures, unanswered = [], dict[str, float]()
    plan = _take_once(open_folder(folder), manifest)
    for row in rows:
        if int(row["seed"]) not in plan.seeds_of(row["dataset"]):
            continue
        if row["status"] != DONE:
            failures.append((str(cell_of(row)), row["status"]))
            continue
        place = _place(row, axes, manifest["methods"][row["method"]]["labels"])
        for name, array in values.items():
            array[place] = float(row[name] or "nan")
        if row.get(UNANSWERED):
            unanswered[row["method"]] = max(unanswered.get(row["method"], 0.0), float(row[UNANSWERED]))
    for dataset, seed, _ in plan.copies:
        d, differ = plan.datasets.index(dataset), [plan.seeds.index(s) for s in plan.seeds_of(dataset)]
        for array in values.values():
            array[d, plan.seeds.index(seed)] = array[d, differ].mean(axis=0)
    metrics = {name: MetricFacts.of(name, manifest.get("metrics", {})) for name in metric_order(names)}
    return Results(
        folder=folder,
        **lists,
        values=values,
        failures=tuple(failures),
        manifest=manifest,
        metrics=metrics,
        plan=plan,
        headline=choose_headline(metric, metrics),
        unanswered=unanswered,
    )


def _take_once(folder: RunFolder, manifest: dict[str, Any]) -> Plan:
    """The plan without repeated splits; for runs of earlier versions these are found from the labels."""
    plan = plan_of(manifest)
    if "copies" in manifest["plan"] or len(plan.seeds) < 2:
        return plan
    labels = {task: folder.read_qrels(*task) for task in plan.tasks() if folder.qrels_path(*task).exists()}
    return take_tasks_once(plan, labels)


def choose_headline(name: str, metrics: Mapping[str, MetricFacts]) -> str:
    """The per-query metric of a name, in the spelling of `metrics`."""
    found = choose_metric(name, metrics)
    if not metrics[found].per_query:
        known = ", ".join(own for own, metric in metrics.items() if metric.per_query)
        raise UsageError(f"{found} has no value for a single query. These have: {known}.")
    return found


def choose_metric(name: str, metrics: Iterable[str]) -> str:
    """The metric of a name, in the spelling of `metrics`."""
    spelled = {own.lower(): own for own in metrics}
    if name.lower() not in spelled:
        raise UnknownNameError("metric", name, spelled.values())
    return spelled[name.lower()]


def metrics_beside(metrics: Mapping[str, MetricFacts], headline: str) -> list[MetricFacts]:
    """One metric of each other family: at the headline's cutoff, else at the largest."""
    wanted, families = metrics[headline].cutoff, dict[str, list[MetricFacts]]()
    for metric in metrics.values():
        families.setdefault(metric.family, []).append(metric)
    families.pop(metrics[headline].family)
    return [max(own, key=lambda metric: (metric.cutoff == wanted, metric.cutoff or 0)) for own in families.values()]


def _read_facts(folder: RunFolder) -> dict[str, Any]:
    """Content of `run.json`; KeyError if a report needs an entry that it lacks."""
    manifest = folder.read_manifest()
    if missing := [name for name in FACTS if name not in manifest]:
        raise KeyError(", ".join(missing))
    return manifest


def _place(row: dict[str, str], axes: dict[str, tuple[str, ...]], budgets: list[str]) -> tuple[int | slice, ...]:
    """Index of the value of a row; all budgets for a method that ran once."""
    return tuple(
        slice(None) if column == "labels" and budgets == [str(ALL)] else axis.index(row[column])
        for column, axis in axes.items()
    )


@dataclass(frozen=True)
class Figure:
    """A mean over datasets and seeds, and its standard deviation over the seeds; NaN for a single seed."""

    mean: float
    spread: float

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return "-"
        return f"{self.mean:.3f}" + ("" if np.isnan(self.spread) else f" ±{self.spread:.3f}")


@dataclass(frozen=True)
class LeaderboardRow:
    """One method under the last label budget: headline by level, other metrics and mean rank at the first level.

    `real` is the headline over the real datasets, empty if all or none are real. `datasets` counts the datasets on
    which the method has every cell; means are over these, and only methods with all datasets have a rank.
    """

    method: str
    title: str
    family: str
    headline: dict[int, Figure]
    others: dict[str, Figure]
    rank: float
    real: dict[int, Figure]
    datasets: int


@dataclass(frozen=True)
class Significance:
    """Friedman and Nemenyi over datasets at one level."""

    rho: int
    test: FriedmanResult
    critical_difference: float


@dataclass(frozen=True)
class Leaderboard:
    """Rows from best to worst, and the tests if there are enough datasets."""

    rows: list[LeaderboardRow]
    significance: list[Significance]


def leaderboard(results: Results) -> Leaderboard:
    """Order methods by the headline metric at the first level and test the order."""
    first = results.levels[0]
    ranks = _ranks(results)
    beside = metrics_beside(results.metrics, results.headline)
    real = [results.datasets.index(dataset) for dataset in find_real(results.origins)]
    levels = results.levels if real else ()
    rows = []
    for m, method in enumerate(results.methods):
        held = results.held(m)
        there = [d for d in held if d in real]
        rows.append(
            LeaderboardRow(
                method=method,
                title=results.title(method),
                family=results.family(method),
                headline={rho: results.figure(results.headline, rho, held, m) for rho in results.levels},
                others={metric.title: results.figure(metric.name, first, held, m) for metric in beside},
                rank=ranks.get(m, float("nan")),
                real={rho: results.figure(results.headline, rho, there, m) for rho in levels},
                datasets=len(held),
            )
        )
    rows.sort(
        key=lambda row: (
            row.datasets < len(results.datasets),
            worst_last(results.orient(np.array(row.headline[first].mean))),
        )
    )
    return Leaderboard(rows, _significance(results))


def worst_last(oriented: NDArray[np.float64]) -> float:
    """Sort key: best oriented values first, NaN last."""
    return float(np.nan_to_num(-oriented, nan=np.inf))


def dataset_scores(results: Results, rho: int) -> NDArray[np.float64]:
    """(datasets, methods) headline metric at one level, averaged over seeds."""
    scores: NDArray[np.float64] = results.at(results.headline, rho).mean(axis=1)
    return scores


def _ranks(results: Results) -> dict[int, float]:
    complete = results.complete()
    if len(complete) < 2 or len(results.datasets) < 2:
        return {}
    ranks = mean_ranks(results.orient(dataset_scores(results, results.levels[0])[:, complete]))
    return {int(m): float(rank) for m, rank in zip(complete, ranks, strict=True)}


def _significance(results: Results) -> list[Significance]:
    complete = results.complete()
    if len(results.datasets) < MIN_DATASETS or len(complete) < 3:
        return []
    difference = critical_difference(len(complete), len(results.datasets))
    return [
        Significance(rho, friedman(results.orient(dataset_scores(results, rho)[:, complete])), difference)
        for rho in results.levels
    ]


def read_stated_probabilities(results: Results) -> dict[tuple[str, int, str], StatedProbabilities]:
    """Stated probabilities by method, level and dataset under the last label budget, all split seeds together.

    Empty if no method of the run states any, or for old runs.
    """
    table = open_folder(results.folder).read_opinions()
    if table is None:
        return {}
    keys = zip(*(table[name].to_pylist() for name in ("method", "rho", "dataset", "labels")), strict=True)
    rows: dict[tuple[str, int, str], list[int]] = {}
    for row, (method, rho, dataset, labels) in enumerate(keys):
        if method in results.methods and labels == results.budgets(method)[-1]:
            rows.setdefault((method, rho, dataset), []).append(row)
    columns = [table[name].to_numpy() for name in OPINION]
    order = [(m, rho, d) for m in results.methods for rho in results.levels for d in results.datasets]
    return {key: StatedProbabilities(*(column[rows[key]] for column in columns)) for key in order if key in rows}


def by_method(stated: dict[tuple[str, int, str], StatedProbabilities], rho: int) -> dict[str, StatedProbabilities]:
    """Stated probabilities of each method at one level, all datasets together."""
    parts: dict[str, list[StatedProbabilities]] = {}
    for (method, level, _), own in stated.items():
        if level == rho:
            parts.setdefault(method, []).append(own)
    return {method: StatedProbabilities.together(own) for method, own in parts.items()}


def _varied_title(method: str) -> str:
    """Name of a variant of a composed method; empty for other methods."""
    further = {name: _further_parameters(method, text) for name, text in COMPOSED.items()}
    changed = [(len(more), f"{name.capitalize()}({','.join(more)})") for name, more in further.items() if more]
    return min(changed)[1] if changed else ""


def _further_parameters(method: str, text: str) -> list[str]:
    """Parameters that a method adds to the last stage of another; empty if it is no such variant.

    >>> _further_parameters("a+verdict(drop_normals=false,views=pooled)", "a+verdict(views=pooled)")
    ['drop_normals=false']
    """
    (head, name, own), (other_head, other_name, given) = _last_stage(method), _last_stage(text)
    variant = (head, name) == (other_head, other_name) and set(given) < set(own)
    return [parameter for parameter in own if parameter not in given] if variant else []


def _last_stage(text: str) -> tuple[str, str, list[str]]:
    """Text before the last reranker, its name, and its parameters."""
    head, _, stage = text.rpartition("+")
    name, _, parameters = stage.partition("(")
    return head, name, parameters.removesuffix(")").split(",") if parameters else []
