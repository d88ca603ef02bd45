"""A method beside the published ones: on the same queries of the same tasks, or not at all.

Nothing of the published is computed again. What is compared must be the same task: dataset, split seed, pollution level
and the fingerprint of the data; anything else is refused in a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
from readbench.benchmark.runs import Cell, PublishedFolder, open_folder
from readbench.errors import RunError, UsageError

PUBLISHED = "published"
"""Stands for the rows that come with the code."""
VARIABLE = "READBENCH_RESULTS"


@dataclass(frozen=True, eq=False)
class OwnCell:
    """What a method scored on the queries of one task at one level.

    Args:
        dataset: its name.
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
    """A method less a published one at one level.

    Args:
        rho: pollution level.
        published: canonical text of the published method.
        title: its name in tables.
        labels: which labels it reads.
        datasets: on how many datasets both are.
        queries: on how many queries.
        own: mean of the method over datasets.
        theirs: mean of the published one.
        difference: own less theirs with its interval: over datasets where there are three, else over split groups.
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
        """Who is ahead, where the interval leaves out zero."""
        if self.difference.low <= 0 <= self.difference.high:
            return "no difference shown"
        return "ahead" if (self.difference.low > 0) == self.larger_is_better else "behind"


def find_published(where: str | Path = PUBLISHED) -> Path:
    """The folder of published rows.

    Args:
        where: a folder, or "published" for the one that `READBENCH_RESULTS` names, else `results` here, else that of
            the repository this package runs from.
    """
    if str(where) != PUBLISHED:
        found = Path(where)
        if not isinstance(open_folder(found), PublishedFolder):
            raise UsageError(f"{found} holds no published rows. Make them: readbench submit runs/... --rows {found}")
        return found
    named = os.environ.get(VARIABLE)
    places = [Path(named)] if named else [Path("results"), Path(__file__).parents[4] / "results"]
    for place in places:
        if isinstance(open_folder(place), PublishedFolder):
            return place
    raise UsageError(
        f"No published rows in {' or '.join(map(str, places))}: they are in the folder results of the repository, not"
        f" in the installed package. Clone it, and set {VARIABLE} to that folder."
    )


def own_cells(results: Results, method: str) -> list[OwnCell]:
    """The finished cells of a method of a run."""
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
                found.append(OwnCell(dataset, seed, rho, task, table["query"].to_pylist(), values))
    return found


def compare_with_published(
    cells: Sequence[OwnCell],
    published: Path,
    *,
    metric: str = DEFAULT_METRIC,
    labels: str = "",
    methods: Sequence[str] = (),
) -> list[AgainstRow]:
    """Put a method beside each published one on the tasks that it was run on; the best published one comes first.

    Args:
        cells: of the method; all must be on tasks that the published rows are on.
        published: folder of published rows.
        metric: a per-query metric of the benchmark.
        labels: compare only with methods that read these labels (`none`, `pool`, `all`); with all by default.
        methods: compare only with these.
    """
    results = read_results(published)
    folder = open_folder(results.folder)
    if not isinstance(folder, PublishedFolder):
        raise UsageError(
            f"{published} holds no published rows. Make them: readbench submit runs/... --rows {published}"
        )
    metric = choose_headline(metric, results.metrics)
    _check_tasks(cells, results)
    wanted = [m for m in results.methods if not methods or m in methods]
    if labels:
        wanted = [m for m in wanted if state_method(m).labels == labels]
    if not wanted:
        raise UsageError(f"{published} has no method that reads {labels or 'the named ones'}.")
    rows = [row for method in wanted for row in _rows(cells, folder, results, method, metric)]
    upwards = results.metrics[metric].larger_is_better
    return sorted(rows, key=lambda row: (row.rho, -row.theirs if upwards else row.theirs))


def check_published(dataset: str, seed: int, task: str, published: Path) -> None:
    """Refuse a task that is not the published one.

    Args:
        dataset: its name.
        seed: split seed.
        task: fingerprint of the data.
        published: folder of published rows.
    """
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


def _check_tasks(cells: Sequence[OwnCell], results: Results) -> None:
    """Refuse what is not on the published tasks."""
    if not cells:
        raise RunError("The method has no finished cell to compare.")
    for cell in cells:
        check_published(cell.dataset, cell.seed, cell.task, results.folder)
        if cell.rho not in results.levels:
            raise UsageError(f"{results.folder} has no level {cell.rho}. It has: {results.levels}.")


def _rows(
    cells: Sequence[OwnCell], folder: PublishedFolder, results: Results, method: str, metric: str
) -> Iterator[AgainstRow]:
    for rho in dict.fromkeys(cell.rho for cell in cells):
        here = [cell for cell in cells if cell.rho == rho]
        tables = {
            (cell.dataset, cell.seed): table
            for cell in here
            if (table := folder.read(Cell(cell.dataset, cell.seed, rho, method))) is not None
        }
        if len(tables) < len(here):  # planned, not computed
            continue
        own: dict[str, list[NDArray[np.float64]]] = {}
        theirs: dict[str, list[NDArray[np.float64]]] = {}
        clusters: list[str] = []
        for cell in here:
            table = tables[cell.dataset, cell.seed]
            places = {query: i for i, query in enumerate(table["query"].to_pylist())}
            if set(places) != set(cell.queries):
                raise RunError(f"{cell.dataset}/seed-{cell.seed} has other queries than the published task.")
            rows = [places[query] for query in cell.queries]
            own.setdefault(cell.dataset, []).append(cell.values[metric])
            theirs.setdefault(cell.dataset, []).append(table[metric].to_numpy()[rows])
            groups = table["group"].to_pylist()
            clusters += [f"{cell.dataset}/{groups[row]}" for row in rows]
        yield _row(results, method, metric, rho, own, theirs, clusters)


def _row(
    results: Results,
    method: str,
    metric: str,
    rho: int,
    own: dict[str, list[NDArray[np.float64]]],
    theirs: dict[str, list[NDArray[np.float64]]],
    clusters: list[str],
) -> AgainstRow:
    means = [np.array([np.mean([seed.mean() for seed in parts]) for parts in side.values()]) for side in (own, theirs)]
    flat = [np.concatenate([values for parts in side.values() for values in parts]) for side in (own, theirs)]
    if len(own) >= MIN_DATASETS:
        interval = bootstrap_datasets(*means, seed=0)
    else:
        several = len(set(clusters)) > 1
        interval = paired_bootstrap(flat[0], flat[1], seed=0, clusters=_by_dataset(clusters, own) if several else None)
    if interval is None:
        raise RunError(f"{method} has no interval at {rho} %.")
    return AgainstRow(
        rho=rho,
        published=method,
        title=results.title(method),
        labels=state_method(method).label_text,
        datasets=len(own),
        queries=len(flat[0]),
        own=float(means[0].mean()),
        theirs=float(means[1].mean()),
        difference=interval,
        larger_is_better=results.metrics[metric].larger_is_better,
    )


def _by_dataset(clusters: list[str], own: dict[str, list[NDArray[np.float64]]]) -> list[str]:
    """Clusters in the order of the values, which stand dataset by dataset."""
    order = {dataset: place for place, dataset in enumerate(own)}
    return sorted(clusters, key=lambda cluster: order[cluster.partition("/")[0]])


def against_table(name: str, rows: Sequence[AgainstRow], metric: str = DEFAULT_METRIC) -> ReportTable:
    """One row a published method and level."""
    unit = "datasets" if rows[0].datasets >= MIN_DATASETS else "split groups"
    header = ["Published", "Labels", "ρ", "Datasets", "Queries", name, "Published value", "Difference", "Outcome"]
    cells = []
    for row in rows:
        where = [row.title, row.labels, f"{row.rho} %", str(row.datasets), str(row.queries)]
        difference = f"{row.difference.mean:+.3f} {bracket(row.difference)}"
        cells.append([*where, f"{row.own:.3f}", f"{row.theirs:.3f}", difference, row.outcome])
    caption = f"{name} beside the published, {metric} on the same queries; 95 % paired bootstrap over {unit}"
    return ReportTable("against", caption, header, cells, labels=2)
