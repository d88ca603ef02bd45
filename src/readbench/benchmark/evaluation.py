"""The benchmark from Python: one method on one task, or many of both in a run folder that is read back.

    task = readbench.load_task("sim_tanks")
    evaluate("dtw-i", task)["NDCG@10"]                     # {0: 0.83, 10: 0.82, 20: 0.81} by pollution level
    run("sim_tanks", ["euclidean", "dtw-i"], out="runs/first").leaderboard()
    read_run("runs/first").scores                          # a pandas frame, one row a cell

Paths may be texts, methods and datasets are texts of the grammar, and the cache has a default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from readbench.benchmark import metrics as judging, runs
from readbench.benchmark.metrics import DEFAULT_METRIC
from readbench.benchmark.protocol import Source, SplitUnit, Task, load_task
from readbench.benchmark.report import (
    AgainstRow,
    Results,
    ScoredCell,
    check_published,
    choose_headline,
    compare_with_published,
    find_published,
    leaderboard,
    read_results,
)
from readbench.benchmark.runs import WHOLE, Executor, Plan, executor_of, open_folder, parse_shard
from readbench.common.files import cache_root
from readbench.common.progress import SILENT, Progress
from readbench.common.sharing import one_thread_for_products
from readbench.engine.llm import ModelOptions, explain_silence
from readbench.engine.method import Method, Ranking
from readbench.engine.protocols import Retriever
from readbench.engine.registry import METRICS
from readbench.engine.spec import parse, parse_dataset, split_specs
from readbench.errors import RunError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pandas import DataFrame

AnyMethod: TypeAlias = "str | Method | Retriever"
"""A text of the grammar, a method, or an object that keeps the `Retriever` protocol."""
AnyTask: TypeAlias = "Task | Source | str"
"""A task, or the source of one, itself or as a text of the grammar."""
SHOWN_LINES = 3
"""Rows in a representation: with a heading and a line for what is left out it fits on five lines."""
LINE = 116
"""Characters on a line of a representation."""
SHOWN_METRICS = 6
SHOWN_CUTOFF = 10
"""The cutoff of metrics in a representation."""


# --- one method on tasks -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelScores:
    """What a method scored on one task at one pollution level.

    Args:
        task: dataset and split seed.
        rho: the level in percent.
        judged: metrics of each query.
        queries: (Q,) ids.
        classes: names of the fault types.
        seconds: wall time per stage, as measured when scores were computed.
        fingerprint: of the task's data.
    """

    task: tuple[str, int]
    rho: int
    judged: judging.PerQuery
    queries: tuple[str, ...]
    classes: tuple[str, ...]
    seconds: Mapping[str, float]
    fingerprint: str = ""

    def __repr__(self) -> str:
        return f"LevelScores({self.task[0]}, seed {self.task[1]}, rho {self.rho}, {len(self.judged)} queries)"

    @property
    def place(self) -> dict[str, Any]:
        """Where it was measured."""
        return {"dataset": self.task[0], "seed": self.task[1], "rho": self.rho}

    def per_query(self) -> Iterator[dict[str, Any]]:
        """One row a query: its fault type, that of the first hit, and the metrics that a single query has."""
        for i, query in enumerate(self.queries):
            values = {name: float(column[i]) for name, column in self.judged.values.items()}  # noqa: PD011 - no frame
            yield self.place | {"query": query, "fault": self._name(i), "first": self._first(i)} | values

    def _name(self, i: int) -> str:
        return self.classes[int(self.judged.query_labels[i])]

    def _first(self, i: int) -> str:
        label = int(self.judged.predicted[i])
        return self.classes[label] if label >= 0 else ""


class ScoreTable(Sequence[dict[str, Any]]):
    """Rows with the same columns: a list of dictionaries that can become a frame, and shows its first rows."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [dict(row) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, key: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._rows[key]

    def to_frame(self) -> DataFrame:
        """The rows as a pandas frame."""
        try:
            from pandas import DataFrame  # noqa: PLC0415 - optional
        except ModuleNotFoundError as error:
            raise UsageError(
                "A frame needs pandas: pip install pandas. The same rows are there without it, as dictionaries."
            ) from error
        return DataFrame(self._rows)

    def __repr__(self) -> str:
        if not self._rows:
            return "ScoreTable(no rows)"
        left = len(self) - SHOWN_LINES
        shown = self._rows if left <= 0 else self._rows[:SHOWN_LINES]
        return "\n".join([*_aligned(shown), *([f"... {left} more rows"] if left > 0 else [])])


class Evaluation:
    """What a method scored on its tasks, at each pollution level; `evaluation["NDCG@10"]` is one metric by level.

    Example: `evaluate("dtw-i", "sim_tanks").to_frame()` is a pandas frame, one row a task and level.

    Args:
        method: its canonical text, or the name of its class.
        levels: scores at each level of each task.
        beside: published methods on the same queries, where it was compared with them.
    """

    def __init__(self, method: str, levels: Sequence[LevelScores], beside: Sequence[AgainstRow] = ()) -> None:
        self.method = method
        self.levels = tuple(levels)
        self.beside = tuple(beside)

    @property
    def against(self) -> ScoreTable:
        """One row a published method and level: both means, the difference with its interval, and who is ahead."""
        return ScoreTable(
            {"rho": row.rho, "published": row.title, "labels": row.labels, "datasets": row.datasets}
            | {"queries": row.queries, "own": row.own, "theirs": row.theirs, "difference": row.difference.mean}
            | {"low": row.difference.low, "high": row.difference.high, "outcome": row.outcome}
            for row in self.beside
        )

    def rows(self) -> ScoreTable:
        """One row a task and level: where, and the mean of each metric over the queries."""
        return ScoreTable(
            level.place | {"method": self.method, "queries": len(level.judged)} | level.judged.means()
            for level in self.levels
        )

    def to_frame(self) -> DataFrame:
        """The rows as a pandas frame."""
        return self.rows().to_frame()

    @property
    def per_query(self) -> ScoreTable:
        """One row a task, level and query: what was asked, the first hit, and the metrics of each query."""
        return ScoreTable(row for level in self.levels for row in level.per_query())

    def means(self) -> dict[int, dict[str, float]]:
        """Level -> metric -> mean over the tasks."""
        rhos = dict.fromkeys(level.rho for level in self.levels)
        found = {rho: [level.judged.means() for level in self.levels if level.rho == rho] for rho in rhos}
        return {rho: {name: _mean(own[name] for own in means) for name in means[0]} for rho, means in found.items()}

    def __getitem__(self, metric: str) -> dict[int, float]:
        means = self.means()
        spelled = {name.lower(): name for own in means.values() for name in own}
        if metric.lower() not in spelled:
            raise UnknownNameError("metric", metric, spelled.values())
        return {rho: own[spelled[metric.lower()]] for rho, own in means.items()}

    def __repr__(self) -> str:
        tasks = dict.fromkeys(level.task for level in self.levels)
        places = shorten(", ".join(f"{name} seed {seed}" for name, seed in tasks), 90, placeholder=" ...")
        means = self.means()
        kept = _shown_metrics(next(iter(means.values())))
        rows = [{"rho": rho} | {name: own[name] for name in kept} for rho, own in means.items()]
        more = "" if len(rows) <= SHOWN_LINES else f" and {len(rows) - SHOWN_LINES} more levels"
        head = f"Evaluation({shorten(self.method, 90, placeholder=' ...')!r} on {places}{more})"
        return "\n".join([head, *_aligned(rows[:SHOWN_LINES])])


def evaluate(  # noqa: PLR0913 - what an evaluation may be told
    method: AnyMethod,
    task: AnyTask | Iterable[AnyTask],
    *,
    levels: int | Iterable[int] | None = None,
    seeds: int | Iterable[int] = 0,
    metrics: str | Iterable[str] | None = None,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    against: str | Path | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Rank the corpora of a task for its queries, and judge the lists: the same numbers as a run has.

    What a text or method computes is kept in the cache; an object that nobody registered computes anew each time.

    Example: `evaluate("dtw-i", "sim_tanks", levels=20)["HR@10"]`

    Args:
        method: a text such as "dtw-i", a `Method`, or any object with `uses_labels`, `corpus_dependent`, `fit` and
            `score` (see docs/adding-a-method.md).
        task: a task, or the name or source of one; or several.
        levels: one pollution level in percent, or several; all of the task by default.
        seeds: one split seed, or several, of tasks that are given by name or source.
        metrics: one name, or several; all that are registered by default.
        root: data root; see `load_task`.
        cache: folder for what can be computed again; see `load_task`.
        against: "published", or a folder of published rows: `evaluation.against` then has every published method on the
            same queries, by NDCG@10 or else the first of `metrics`. Tasks that are not the published ones, by their
            fingerprint, are refused before anything runs.
        progress: told how far builds and encodings have come.
    """
    seeds, metrics = _several(seeds), None if metrics is None else _several(metrics)
    published = find_published(against) if against is not None else None
    own = method if isinstance(method, Method) else None if isinstance(method, str) else Method(method)
    wanted = None if metrics is None else [METRICS.get(name).name for name in metrics]
    judged = wanted[0] if wanted and DEFAULT_METRIC not in wanted else DEFAULT_METRIC
    if published:
        judged = choose_headline(judged, read_results(published).metrics)
    scores: list[LevelScores] = []
    for each in _tasks(task, seeds, root, cache, progress):
        asked = _asked_levels(each, levels)
        if published:
            check_published(each.info.name, each.seed, each.fingerprint(), published)
        scores += _evaluate_task(own or str(method), each, asked, wanted, _path(cache) or cache_root(), progress)
    cells = [_scored_cell(level) for level in scores]
    beside = compare_with_published(cells, published, metric=judged) if published else ()
    return Evaluation(str(own) if own else str(parse(str(method))), scores, beside)


def _scored_cell(level: LevelScores) -> ScoredCell:
    values = {name: np.asarray(column) for name, column in level.judged.values.items()}  # noqa: PD011 - no frame
    return ScoredCell(*level.task, level.rho, level.fingerprint, level.queries, values)


def _evaluate_task(
    method: Method | str,
    task: Task,
    levels: Sequence[int],
    metrics: Sequence[str] | None,
    cache: Path,
    progress: Progress,
) -> Iterator[LevelScores]:
    rank = _ranker(method, task, cache, progress)
    for rho in levels:
        with one_thread_for_products():  # as in a run: sums do not depend on the number of processors
            ranking = rank(rho)
        if silence := explain_silence(ranking.usage):
            raise RunError(f"{task.info.name} seed {task.seed} at {rho} %: {silence}")
        labels = task.corpus_at(rho).labels
        judged = judging.evaluate(ranking.order, task.queries.labels, labels, metrics)
        queries = tuple(map(str, task.queries.ids))
        place = task.info.name, task.seed
        yield LevelScores(place, rho, judged, queries, task.corpus.classes, ranking.seconds, task.fingerprint())


class _Ranker:
    """Ranks a task at one level: remembered in the cache where the method's text says what it is."""

    def __init__(self, method: Method, task: Task, setup: runs.Setup | None) -> None:
        self._method, self._task, self._setup = method, task, setup

    def __call__(self, rho: int) -> Ranking:
        if self._setup:
            return runs.rank_level(self._setup, self._method, rho)
        fitted = self._method.fit(self._task.corpus_at(rho), self._task.normals)
        return fitted.rank(self._task.queries, runs.RANKING_DEPTH)


def _ranker(method: Method | str, task: Task, cache: Path, progress: Progress) -> _Ranker:
    if isinstance(method, Method) and not method.named:
        return _Ranker(method, task, None)
    setup = runs.Setup.of(task, cache)
    own = setup.method(parse(method), progress) if isinstance(method, str) else method.brief(task.info.description)
    return _Ranker(own, task, setup)


def _tasks(
    task: AnyTask | Iterable[AnyTask],
    seeds: Sequence[int],
    root: str | Path | None,
    cache: str | Path | None,
    progress: Progress,
) -> Iterator[Task]:
    if isinstance(task, Task):
        yield task
    elif isinstance(task, str) or not isinstance(task, Iterable):
        yield from (load_task(task, seed, root, cache, progress=progress) for seed in seeds)
    else:
        for each in task:
            yield from _tasks(each, seeds, root, cache, progress)


def _asked_levels(task: Task, levels: int | Iterable[int] | None) -> tuple[int, ...]:
    asked = tuple(sorted(task.levels)) if levels is None else _several(levels)
    if missing := [rho for rho in asked if rho not in task.levels]:
        there = ", ".join(map(str, sorted(task.levels)))
        raise UsageError(
            f"{task.info.name} has no pollution level {missing[0]}: its levels are {there}."
            " Load it with settings=Composition(rho=...) for others."
        )
    return asked


# --- runs --------------------------------------------------------------------------------------------------------


class RunResults:
    """A run folder, read back.

    Example: `read_run("runs/first").leaderboard("HR@10").to_frame()` is a pandas frame, one row a method.

    Args:
        results: as arrays.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.folder = results.folder
        self.failures = results.failures
        self.computed, self.reused = (int(results.manifest["cells"][name]) for name in ("computed", "reused"))
        self.seconds = float(results.manifest["wall_s"])

    def rows(self) -> ScoreTable:
        """`scores.csv`: one row a cell, with every metric, the time of each stage, and its status."""
        _, rows = open_folder(self.folder).read_scores()
        return ScoreTable({name: _number(name, value) for name, value in row.items()} for row in rows)

    @property
    def scores(self) -> DataFrame:
        """The rows as a pandas frame."""
        return self.rows().to_frame()

    def leaderboard(self, metric: str | None = None) -> ScoreTable:
        """One row a method, best first: the metric at each level, and its mean rank where there are several datasets.

        Args:
            metric: that methods are ordered by; NDCG@10 by default.
        """
        results = self.results if metric is None else read_results(self.folder, metric)
        return ScoreTable(
            {"method": row.method}
            | {f"{results.headline} rho {rho}": figure.mean for rho, figure in row.headline.items()}
            | {name: figure.mean for name, figure in row.others.items()}
            | {"rank": row.rank}
            for row in leaderboard(results).rows
        )

    def __repr__(self) -> str:
        found = self.results
        sizes = f"{len(found.methods)} methods on {len(found.datasets)} datasets, {len(found.seeds)} seeds"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return "\n".join(
            [f"RunResults({str(self.folder)!r}: {sizes}{failed})", *_aligned(self.leaderboard()[:SHOWN_LINES])]
        )


def read_run(folder: str | Path) -> RunResults:
    """Read a run folder back: `.scores`, `.leaderboard()`, and `.results` as arrays.

    Example: `read_run("runs/first").scores.groupby("method")["NDCG@10"].mean()`
    """
    return RunResults(read_results(Path(folder)))


class PlanOptions(TypedDict, total=False):
    """What a run may be told of its plan; see `readbench.benchmark.runs.Plan`."""

    seeds: int | Iterable[int]
    levels: int | Iterable[int]
    labels: str | Iterable[str]
    corpus_cap: int | None
    split_by: SplitUnit


def run(  # noqa: PLR0913 - what a run may be told
    datasets: str | Iterable[str] | Plan,
    methods: str | Path | Method | Iterable[str | Method] = (),
    out: str | Path | None = None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    shard: str = str(WHOLE),
    root: str | Path | None = None,
    cache: str | Path | None = None,
    models: ModelOptions | None = None,
    progress: Progress = SILENT,
    **options: Unpack[PlanOptions],
) -> RunResults:
    """Run methods on datasets into a folder; started again with the same folder, it continues.

    Example: `run("sim_tanks", ["euclidean", "dtw-i"], out="runs/first", seeds=0).leaderboard()`

    Args:
        datasets: texts, several in one separated by commas; or a plan, and then the folder in place of methods.
        methods: texts, several in one separated by commas.
        out: the run folder.
        jobs: processes to use.
        executor: where jobs run; processes by default, where several are asked for.
        shard: the part of the plan to run, such as "2/8".
        root: data root; see `load_task`.
        cache: folder for what can be computed again; see `load_task`.
        models: what goes before the profiles of language models.
        progress: told of cells that have ended, of data that are built before them, and of encodings.
        options: seeds, pollution levels, label budgets, the cap of a corpus, and what is held out (`PlanOptions`).
    """
    folder = methods if isinstance(datasets, Plan) and out is None else out
    if not isinstance(folder, str | Path):
        raise UsageError("Say where the results go: run(datasets, methods, out='runs/first').")
    runs.run(
        datasets if isinstance(datasets, Plan) else _plan(datasets, methods, options),
        Path(folder),
        executor=executor or executor_of(workers=jobs),
        shard=parse_shard(shard),
        root=_path(root),
        cache=_path(cache),
        models=models,
        progress=progress,
    )
    return read_run(folder)


def _plan(
    datasets: str | Iterable[str], methods: str | Path | Method | Iterable[str | Method], options: PlanOptions
) -> Plan:
    named = [datasets] if isinstance(datasets, str) else datasets
    given = [methods] if isinstance(methods, str | Path | Method) else methods
    fields: dict[str, Any] = {
        name: value if name in {"corpus_cap", "split_by"} else _several(value) for name, value in options.items()
    }
    return Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs(named)),
        methods=tuple(str(parse(text)) for text in split_specs(map(str, given))),
        **fields,
    )


# --- helpers -----------------------------------------------------------------------------------------------------


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _several(given: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a value or an iterable of such values
    """One or several, as several.

    >>> _several(20), _several("all"), _several([0, 1])
    ((20,), ('all',), (0, 1))
    """
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _shown_metrics(names: Iterable[str]) -> list[str]:
    """Those that have room: all where they are few, else one a family, at the usual cutoff or without one."""
    names = list(names)
    kept = [name for name in names if "@" not in name or name.endswith(f"@{SHOWN_CUTOFF}")]
    return names if len(names) <= SHOWN_METRICS else (kept or names)[:SHOWN_METRICS]


def _aligned(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A heading and a line a row, in columns; those that do not fit on a line are left out."""
    cells = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    fit = next((i for i in range(len(widths)) if sum(widths[: i + 1]) + 2 * i > LINE), len(widths))
    rest = " ..." if fit < len(widths) else ""
    return [
        "  ".join(text.rjust(width) for text, width in zip(line[:fit], widths, strict=False)) + rest for line in cells
    ]


def _text(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else shorten(str(value), 60, placeholder=" ...")


def _number(name: str, text: str) -> Any:  # noqa: ANN401 - a cell of a table
    """A cell of `scores.csv` as what it means; None where it is empty."""
    if name in {"dataset", "method", "labels", "status"}:
        return text
    if name in {"seed", "rho", "queries"}:
        return int(text)
    return float(text) if text else None
