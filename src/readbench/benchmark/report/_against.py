"""Comparison of one method with the published ones on the same queries of the same tasks.

Published methods are not run again. Dataset, split seed, pollution level and the fingerprint of the data must agree;
any other comparison is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    DEFAULT_METRIC,
    MIN_DATASETS,
    ConfidenceInterval,
    bootstrap_datasets,
    paired_bootstrap,
)
from readbench.benchmark.report._results import Results, choose_headline, read_results
from readbench.benchmark.report._significance import bracket
from readbench.benchmark.report._statements import state_method
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import Cell, PublishedFolder, open_folder, open_published
from readbench.errors import RunError, UsageError

PUBLISHED = "published"
"""Name of the rows that come with the code."""
VARIABLE = "READBENCH_RESULTS"


@dataclass(frozen=True, eq=False)
class ScoredCell:
    """Scores of a method on one task at pollution level `rho` (percent).

    Args:
        dataset: name.
        seed: split seed.
        rho: pollution level in percent.
        task: fingerprint of the data.
        queries: (Q,) ids.
        values: metric -> (Q,) values.
    """

    dataset: str
    seed: int
    rho: int
    task: str
    queries: Sequence[str]
    values: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class AgainstRow:
    """Difference of a method and a published one at one level.

    Args:
        rho: pollution level in percent.
        published: canonical text of the published method.
        title: its name in tables.
        labels: which labels it reads.
        datasets: number of datasets.
        queries: number of queries.
        own: mean of the method over datasets.
        theirs: mean of the published method.
        difference: own minus theirs; interval over datasets from `MIN_DATASETS` on, else over split groups.
        larger_is_better: of the metric.
    """

    rho: int
    published: str
    title: str
    labels: str
    datasets: int
    queries: int
    own: float
    theirs: float
    difference: ConfidenceInterval
    larger_is_better: bool

    @property
    def outcome(self) -> str:
        """Which method is ahead, if the interval excludes zero."""
        if self.difference.low <= 0 <= self.difference.high:
            return "no difference shown"
        return "ahead" if (self.difference.low > 0) == self.larger_is_better else "behind"


def find_published(where: str | Path = PUBLISHED) -> Path:
    """The folder of published rows: `where`, or for "published" the one of the repository.

    That is the folder that `READBENCH_RESULTS` names, else `results` here, else `results` of the repository that this
    package runs from.
    """
    if str(where) != PUBLISHED:
        return open_published(Path(where)).path
    named = os.environ.get(VARIABLE)
    places = [Path(named)] if named else [Path("results"), Path(__file__).parents[4] / "results"]
    for place in places:
        if isinstance(open_folder(place), PublishedFolder):
            return place
    raise UsageError(
        f"No published rows in {' or '.join(map(str, places))}: they are in the folder results of the repository, not"
        f" in the installed package. Clone it, and set {VARIABLE} to that folder."
    )


def read_scored_cells(results: Results, method: str) -> list[ScoredCell]:
    """The finished cells of a method in a run."""
    folder, found = open_folder(results.folder), []
    names = [name for name, facts in results.metrics.items() if facts.per_query]
    for dataset in results.datasets:
        for seed in results.plan.seeds_of(dataset):
            for rho in results.levels:
                table = folder.read(Cell(dataset, seed, rho, method, results.budgets(method)[-1]))
                if table is None:
                    continue
                values = {name: table[name].to_numpy() for name in names if name in table.column_names}
                task = results.manifest["tasks"][f"{dataset}/seed-{seed}"]
                found.append(ScoredCell(dataset, seed, rho, task, table["query"].to_pylist(), values))
    return found


def compare_with_published(
    cells: Sequence[ScoredCell], published: Path, *, metric: str = DEFAULT_METRIC, labels: str = ""
) -> list[AgainstRow]:
    """Compare a method with each published one on the same tasks; the best published one comes first.

    Args:
        cells: scores of the method; all on tasks of the published rows.
        published: folder of published rows.
        metric: a per-query metric of the benchmark.
        labels: compare only with methods that read these labels (`none`, `pool`, `all`); with all by default.
    """
    results, folder = read_results(published), open_published(published)
    metric = choose_headline(metric, results.metrics)
    _check_tasks(cells, results)
    wanted = [m for m in results.methods if labels in ("", state_method(m).labels)]
    if not wanted:
        raise UsageError(f"{published} has no method that reads {labels} labels.")
    rows = [row for method in wanted for row in _rows(cells, folder, results, method, metric)]
    upwards = results.metrics[metric].larger_is_better
    return sorted(rows, key=lambda row: (row.rho, -row.theirs if upwards else row.theirs))


def check_published(dataset: str, seed: int, task: str, published: Path) -> None:
    """Refuse a task that the published rows do not have, or whose data have another fingerprint than `task`."""
    tasks, name = open_folder(published).read_manifest()["tasks"], f"{dataset}/seed-{seed}"
    if name not in tasks:
        there = f"{published} has {_tell_tasks(tasks, dataset)}.{_tell_beside(name, published)}"
        raise UsageError(f"{name} is no published task. {there}")
    if tasks[name] != task:
        raise RunError(
            f"{name} is another task than the published one: its data have the fingerprint {task}, those of {published}"
            f" {tasks[name]}. Results on other data cannot be put beside it."
        )


def _tell_tasks(tasks: Iterable[str], dataset: str) -> str:
    """The published seeds of a dataset, or else the published datasets."""
    seeds: dict[str, list[str]] = {}
    for known in tasks:
        name, _, seed = known.rpartition("/seed-")
        seeds.setdefault(name, []).append(seed)
    if dataset in seeds:
        return f"the seeds {', '.join(seeds[dataset])} of {dataset}"
    return f"the datasets {', '.join(seeds)}"


def _tell_beside(task: str, published: Path) -> str:
    """A folder of published rows inside these that has a task, as a sentence."""
    inside = (folder for folder in sorted(published.iterdir()) if isinstance(open_folder(folder), PublishedFolder))
    found = next((folder for folder in inside if task in open_folder(folder).read_manifest()["tasks"]), None)
    return f" {found} has it: name that folder." if found else ""


def _check_tasks(cells: Sequence[ScoredCell], results: Results) -> None:
    """Refuse what is not on the published tasks."""
    if not cells:
        raise RunError("The method has no finished cell to compare.")
    for cell in cells:
        check_published(cell.dataset, cell.seed, cell.task, results.folder)
        if cell.rho not in results.levels:
            raise UsageError(f"{results.folder} has no level {cell.rho}. It has: {results.levels}.")


def _rows(
    cells: Sequence[ScoredCell], folder: PublishedFolder, results: Results, method: str, metric: str
) -> Iterator[AgainstRow]:
    for rho in dict.fromkeys(cell.rho for cell in cells):
        paired: dict[str, list[_Paired]] = {}
        complete = True
        for cell in (cell for cell in cells if cell.rho == rho):
            table = folder.read(Cell(cell.dataset, cell.seed, rho, method))
            complete &= table is not None
            if table is not None:
                paired.setdefault(cell.dataset, []).append(_pair(cell, table, metric))
        if complete:  # else it is planned and not computed
            yield _row(results, method, metric, rho, paired)


_Paired = tuple[NDArray[np.float64], NDArray[np.float64], list[str]]
"""(Q,) values of the method and of the published one on the same queries, and their split groups."""


def _pair(cell: ScoredCell, table: pa.Table, metric: str) -> _Paired:
    places = {query: i for i, query in enumerate(table["query"].to_pylist())}
    if set(places) != set(cell.queries):
        raise RunError(f"{cell.dataset}/seed-{cell.seed} has other queries than the published task.")
    rows = [places[query] for query in cell.queries]
    groups = table["group"].to_pylist()
    return cell.values[metric], table[metric].to_numpy()[rows], [f"{cell.dataset}/{groups[row]}" for row in rows]


def _row(results: Results, method: str, metric: str, rho: int, paired: dict[str, list[_Paired]]) -> AgainstRow:
    own = np.array([np.mean([values.mean() for values, _, _ in seeds]) for seeds in paired.values()])
    theirs = np.array([np.mean([values.mean() for _, values, _ in seeds]) for seeds in paired.values()])
    pairs = [pair for seeds in paired.values() for pair in seeds]
    flat = np.concatenate([values for values, _, _ in pairs]), np.concatenate([values for _, values, _ in pairs])
    clusters = [cluster for *_, groups in pairs for cluster in groups]
    several = len(set(clusters)) > 1
    return AgainstRow(
        rho=rho,
        published=method,
        title=results.title(method),
        labels=state_method(method).label_text,
        datasets=len(paired),
        queries=len(clusters),
        own=float(own.mean()),
        theirs=float(theirs.mean()),
        difference=bootstrap_datasets(own, theirs, seed=0)
        or paired_bootstrap(*flat, seed=0, clusters=clusters if several else None),
        larger_is_better=results.metrics[metric].larger_is_better,
    )


def against_table(name: str, rows: Sequence[AgainstRow], metric: str = DEFAULT_METRIC) -> ReportTable:
    """Table with one row per published method and level."""
    unit = "datasets" if rows[0].datasets >= MIN_DATASETS else "split groups"
    header = ["Published", "Labels", "ρ", "Datasets", "Queries", name, "Published value", "Difference", "Outcome"]
    cells = []
    for row in rows:
        where = [row.title, row.labels, f"{row.rho} %", str(row.datasets), str(row.queries)]
        difference = f"{row.difference.mean:+.3f} {bracket(row.difference)}"
        cells.append([*where, f"{row.own:.3f}", f"{row.theirs:.3f}", difference, row.outcome])
    caption = f"{name} beside the published, {metric} on the same queries; 95 % paired bootstrap over {unit}"
    return ReportTable("against", caption, header, cells, labels=2)
