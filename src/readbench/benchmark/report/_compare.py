"""Comparison of two methods on the same queries, of one run or two, as table, markdown and JSON.

Differences are second minus first. Links lead to the case browser of a run's page (`case_link`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    DEFAULT_METRIC,
    MIN_DATASETS,
    ConfidenceInterval,
    bootstrap_datasets,
    paired_bootstrap,
)
from readbench.benchmark.protocol import DataOrigin
from readbench.benchmark.report._origins import MARKS, count_origins, explain_marks, find_real
from readbench.benchmark.report._results import Results, choose_headline
from readbench.benchmark.report._significance import bracket
from readbench.benchmark.report._table import ReportTable, bullets
from readbench.benchmark.runs import Cell, open_folder
from readbench.errors import RunError, UsageError

ALL_DATASETS, MEAN, REAL_MEAN = "all", "mean", "real mean"
"""Rows over all queries, for the mean over datasets, and for the mean over the real ones."""
FIRST_HIT = "P@1"
"""Metric whose change flips a query."""


@dataclass(frozen=True, eq=False)
class Side:
    """One method of one run."""

    results: Results
    method: str

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.results.title(self.method)

    def read(self, dataset: str, seed: int, rho: int) -> Any:  # noqa: ANN401 - a pyarrow table
        """Rows of a cell, one per query, under the last label budget; None if it failed."""
        cell = Cell(dataset, seed, rho, self.method, self.results.budgets(self.method)[-1])
        return open_folder(self.results.folder).read(cell)


@dataclass(frozen=True)
class Difference:
    """Second minus first on one dataset, or over several.

    Args:
        dataset: name, `ALL_DATASETS`, or `MEAN` or `REAL_MEAN`, in which each dataset counts the same.
        queries: number of pairs over all split seeds.
        first: mean of the first method.
        second: mean of the second method.
        over_queries: difference when queries are resampled; None for a mean over datasets.
        over_groups: difference when split groups are resampled; None also with a single group.
        over_datasets: difference when datasets are resampled; None except for a mean over datasets.
        larger_is_better: of the metric.
    """

    dataset: str
    queries: int
    first: float
    second: float
    over_queries: ConfidenceInterval | None
    over_groups: ConfidenceInterval | None
    over_datasets: ConfidenceInterval | None
    larger_is_better: bool

    @property
    def interval(self) -> ConfidenceInterval:
        """The interval that decides: over datasets, else over groups, else over queries."""
        found = self.over_datasets or self.over_groups or self.over_queries
        if found is None:
            raise RunError(f"The difference on {self.dataset} has no interval.")
        return found

    @property
    def outcome(self) -> str:
        """Which method is ahead, if the interval excludes zero."""
        if self.interval.low <= 0 <= self.interval.high:
            return "none shown"
        return "second ahead" if (self.interval.low > 0) == self.larger_is_better else "first ahead"


@dataclass(frozen=True)
class Flip:
    """A query whose first hit is right under one method and wrong under the other."""

    dataset: str
    seed: int
    rho: int
    query: str
    gained: bool
    difference: float


@dataclass(frozen=True, eq=False)
class Compared:
    """Comparison of one pair of methods: differences by dataset and over all; flips, largest difference first."""

    first: Side
    second: Side
    metric: str
    rho: int
    differences: tuple[Difference, ...]
    flips: tuple[Flip, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Paired:
    """Shared queries of a task: metric and hit at the first place under both methods, (Q,) each."""

    dataset: str
    seed: int
    queries: list[str]
    clusters: list[str]
    values: tuple[NDArray[np.float64], NDArray[np.float64]]
    hits: tuple[NDArray[np.float64], NDArray[np.float64]]


def pairs_of(first: Results, second: Results | None, methods: Sequence[str]) -> list[tuple[Side, Side]]:
    """Pairs of methods to compare: two of one run, or of two runs the named ones, by default all that both have."""
    if len(methods) > 2 or (second is None and len(methods) != 2):
        raise UsageError("Name two methods to compare within one run, with --methods twice; or give two runs.")
    other = second or first
    chosen = [(m, m) for m in first.methods if m in other.methods] if not methods else [(methods[0], methods[-1])]
    if not chosen:
        raise UsageError(f"{first.folder} and {other.folder} share no method. Name one of each with --methods.")
    for results, method in ((first, chosen[0][0]), (other, chosen[0][1])):
        if method not in results.methods:
            raise UsageError(f"{results.folder} has no method {method!r}. It has: {', '.join(results.methods)}.")
    return [(Side(first, a), Side(other, b)) for a, b in chosen]


def check_data(first: Results, second: Results) -> None:
    """Refuse runs on different data."""
    theirs = second.manifest["tasks"]
    for task, fingerprint in first.manifest["tasks"].items():
        if theirs.get(task, fingerprint) != fingerprint:
            raise RunError(
                f"{first.folder} and {second.folder} ran on different data: {task} is {fingerprint} in one and"
                f" {theirs[task]} in the other. Run one of them again, or compare what they share with --other-data."
            )


def compare(first: Side, second: Side, *, metric: str = DEFAULT_METRIC, rho: int | None = None) -> Compared:
    """Compare two methods by a per-query metric at level `rho` (percent), by default the first of the first run."""
    known = {name: facts for name, facts in first.results.metrics.items() if name in second.results.metrics}
    metric = choose_headline(metric, known)
    rho = first.results.levels[0] if rho is None else rho
    for side in (first, second):
        if rho not in side.results.levels:
            raise UsageError(f"{side.results.folder} has no level {rho}. It has: {side.results.levels}.")
    found, left_out = _paired(first, second, metric, rho)
    if not found:
        raise RunError(
            f"{first.title} and {second.title} share no finished cell at ρ={rho}%: {'; '.join(left_out) or 'none'}."
        )
    datasets = list(dict.fromkeys(pair.dataset for pair in found))
    upwards = known[metric].larger_is_better
    by_dataset = [_difference(d, [pair for pair in found if pair.dataset == d], upwards) for d in datasets]
    overall = [_difference(ALL_DATASETS, found, upwards)] if len(datasets) > 1 else []
    real = find_real({dataset: first.results.origins[dataset] for dataset in datasets})
    means = [
        _mean_difference(name, [row for row in by_dataset if row.dataset in own])
        for name, own in ((MEAN, datasets), (REAL_MEAN, real))
        if len(own) >= MIN_DATASETS
    ]
    flips = sorted((flip for pair in found for flip in _flips(pair, rho)), key=lambda flip: -abs(flip.difference))
    return Compared(first, second, metric, rho, (*by_dataset, *overall, *means), tuple(flips), tuple(left_out))


def _paired(first: Side, second: Side, metric: str, rho: int) -> tuple[list[_Paired], list[str]]:
    """Shared queries by task, and the omitted tasks with the reason."""
    found, left_out = [], []
    tasks = [list(side.results.plan.tasks()) for side in (first, second)]
    for dataset, seed in dict.fromkeys([*tasks[0], *tasks[1]]):
        if not all((dataset, seed) in own for own in tasks):
            left_out.append(f"{dataset} seed {seed} is in one run only")
            continue
        tables = [side.read(dataset, seed, rho) for side in (first, second)]
        if any(table is None or metric not in table.column_names for table in tables):
            left_out.append(f"{dataset} seed {seed} is not finished in both")
            continue
        pair = _aligned(dataset, seed, tables, metric)
        if pair.queries:
            found.append(pair)
        else:
            left_out.append(f"{dataset} seed {seed} has no query in common")
    return found, left_out


def _aligned(dataset: str, seed: int, tables: list[Any], metric: str) -> _Paired:
    """Rows of the queries that both tables have, in the order of the first."""
    names = [table["query"].to_pylist() for table in tables]
    places = {query: place for place, query in enumerate(names[1])}
    shared = [place for place, query in enumerate(names[0]) if query in places]
    rows = [shared, [places[names[0][place]] for place in shared]]
    groups = tables[0]["group"].to_pylist()
    values, hits = (
        tuple(table[name].to_numpy()[own] for table, own in zip(tables, rows, strict=True))
        for name in (metric, FIRST_HIT)
    )
    clusters = [f"{dataset}/{groups[place]}" for place in shared]
    return _Paired(dataset, seed, [names[0][place] for place in shared], clusters, values, hits)


def _difference(dataset: str, pairs: list[_Paired], larger_is_better: bool) -> Difference:  # noqa: FBT001
    first, second = (np.concatenate([pair.values[side] for pair in pairs]) for side in (0, 1))
    clusters = [cluster for pair in pairs for cluster in pair.clusters]
    several = len(set(clusters)) > 1
    return Difference(
        dataset=dataset,
        queries=len(first),
        first=float(first.mean()),
        second=float(second.mean()),
        over_queries=paired_bootstrap(second, first, seed=0),
        over_groups=paired_bootstrap(second, first, seed=0, clusters=clusters) if several else None,
        over_datasets=None,
        larger_is_better=larger_is_better,
    )


def _mean_difference(name: str, rows: list[Difference]) -> Difference:
    """The mean over the datasets of these rows, with its interval when datasets are drawn anew."""
    first, second = [row.first for row in rows], [row.second for row in rows]
    return Difference(
        dataset=name,
        queries=sum(row.queries for row in rows),
        first=float(np.mean(first)),
        second=float(np.mean(second)),
        over_queries=None,
        over_groups=None,
        over_datasets=bootstrap_datasets(second, first, seed=0),
        larger_is_better=rows[0].larger_is_better,
    )


def _flips(pair: _Paired, rho: int) -> list[Flip]:
    moved = pair.hits[1] - pair.hits[0]
    differences = pair.values[1] - pair.values[0]
    return [
        Flip(pair.dataset, pair.seed, rho, pair.queries[i], bool(moved[i] > 0), float(differences[i]))
        for i in np.flatnonzero(moved)
    ]


def case_link(dataset: str, seed: int, rho: int, query: str, first: str, second: str) -> str:
    """The address, inside a run's page, of one query with its lists under two methods.

    >>> case_link("sim_tanks", 0, 20, "run-3/7", "sonde|dtw-i", "euclidean")
    '#/case/sim_tanks/0/20/run-3%2F7/sonde%7Cdtw-i/euclidean'
    """
    return "#/case/" + "/".join(quote(str(part), safe="") for part in (dataset, seed, rho, query, first, second))


SHOWN_FLIPS = 20
"""Most flipped queries in markdown; JSON has all."""
PAGE = Path("report") / "index.html"
"""Where `readbench report` puts the page of a run, in its folder."""


def difference_table(compared: Sequence[Compared]) -> ReportTable:
    """One row for each pair of methods and dataset; a single pair is named in the caption alone."""
    rows = []
    for pair in compared:
        names = [_pair(pair)] if len(compared) > 1 else []
        for row in pair.differences:
            numbers = [str(row.queries), f"{row.first:.3f}", f"{row.second:.3f}", f"{row.interval.mean:+.3f}"]
            words = [bracket(row.interval), _flipped(pair, row.dataset), row.outcome]
            rows.append([*names, _dataset(pair, row.dataset), *numbers, *words])
    labels = ["Method", "Dataset"] if len(compared) > 1 else ["Dataset"]
    header = [*labels, "Queries", "First", "Second", "Change", "interval", "hits", "Outcome"]
    return ReportTable("compare", _caption(compared), header, rows, labels=len(labels))


def markdown(compared: Sequence[Compared], folder: Path) -> str:
    """The table, then the flipped queries of each pair with links into the case browser, relative to a folder."""
    parts = [difference_table(compared).markdown(), *(_flip_list(pair, folder) for pair in compared if pair.flips)]
    left_out = dict.fromkeys(line for pair in compared for line in pair.left_out)
    if left_out:
        parts.append("Left out: " + "; ".join(left_out) + ".\n")
    notes = explain_marks(MARKS[origin] for pair in compared for origin in _origins_of(pair, ALL_DATASETS).values())
    return "\n".join([*parts, *bullets(notes)])


def as_json(compared: Sequence[Compared], folder: Path) -> str:
    """Everything, for programs."""
    return json.dumps([_facts(pair, folder) for pair in compared], indent=1) + "\n"


def links(pair: Compared, flip: Flip, folder: Path) -> list[str]:
    """Addresses of a query in the case browser: one page of one run, or one page of each of two."""
    first, second = pair.first, pair.second
    if first.results.folder == second.results.folder:
        return [_link(first, flip, first.method, second.method, folder)]
    return [_link(side, flip, side.method, side.method, folder) for side in (first, second)]


def _link(side: Side, flip: Flip, first: str, second: str, folder: Path) -> str:
    page = Path(os.path.relpath(side.results.folder / PAGE, folder)).as_posix()
    return page + case_link(flip.dataset, flip.seed, flip.rho, flip.query, first, second)


def _flip_list(pair: Compared, folder: Path) -> str:
    gained = sum(flip.gained for flip in pair.flips)
    lost = len(pair.flips) - gained
    lines = [f"**{_pair(pair)}: the first hit became right for {gained} queries, wrong for {lost}**\n"]
    for flip in pair.flips[:SHOWN_FLIPS]:
        where = links(pair, flip, folder)
        names = ["both lists"] if len(where) == 1 else ["first", "second"]
        seen = ", ".join(f"[{name}]({link})" for name, link in zip(names, where, strict=True))
        change = "right" if flip.gained else "wrong"
        lines.append(
            f"- {flip.dataset} seed {flip.seed} `{flip.query}`: {change} now,"
            f" {pair.metric} {flip.difference:+.3f} ({seen})"
        )
    if len(pair.flips) > SHOWN_FLIPS:
        lines.append(f"- and {len(pair.flips) - SHOWN_FLIPS} more")
    return "\n".join(lines) + "\n"


def _facts(pair: Compared, folder: Path) -> dict[str, Any]:
    return {
        "first": {"run": str(pair.first.results.folder), "method": pair.first.method},
        "second": {"run": str(pair.second.results.folder), "method": pair.second.method},
        "metric": pair.metric,
        "rho": pair.rho,
        "differences": [asdict(row) | {"outcome": row.outcome} for row in pair.differences],
        "flips": [asdict(flip) | {"links": links(pair, flip, folder)} for flip in pair.flips],
        "left_out": list(pair.left_out),
    }


def _caption(compared: Sequence[Compared]) -> str:
    one = compared[0]
    first, second = (side.results.folder for side in (one.first, one.second))
    runs = f"in {first}" if first == second else f"in {second} against {first}"
    what = _pair(one) if len(compared) == 1 else "methods"
    return (
        f"{what} {runs}, {one.metric} at ρ={one.rho}%; 95 % paired bootstrap intervals over split groups, those of"
        " means over datasets over datasets; not corrected for the number of rows; hits: first hits that became right"
        " / wrong"
    )


def _pair(pair: Compared) -> str:
    one, two = pair.first.title, pair.second.title
    return one if one == two else f"{two} − {one}"


def _dataset(pair: Compared, dataset: str) -> str:
    """Name of a dataset with its mark; for several datasets their number by kind."""
    origins = _origins_of(pair, dataset)
    if dataset in origins:
        return dataset + MARKS[origins[dataset]]
    counted = count_origins(origins.values())
    return f"all queries of {counted}" if dataset == ALL_DATASETS else f"mean of {counted}"


def _origins_of(pair: Compared, dataset: str) -> dict[str, DataOrigin]:
    """Origins of the datasets of a row."""
    known = pair.first.results.origins
    compared = {row.dataset: known[row.dataset] for row in pair.differences if row.dataset in known}
    if dataset in compared:
        return {dataset: compared[dataset]}
    return {name: compared[name] for name in find_real(compared)} if dataset == REAL_MEAN else compared


def _flipped(pair: Compared, dataset: str) -> str:
    wanted = _origins_of(pair, dataset)
    gained = [flip.gained for flip in pair.flips if flip.dataset in wanted]
    return f"{sum(gained)}/{len(gained) - sum(gained)}"
