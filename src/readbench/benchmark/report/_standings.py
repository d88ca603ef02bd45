"""The public leaderboard over many submissions.

`rank_submissions` accepts or refuses each and ranks their methods. `write_standings` writes tables, markdown, JSON and
a page that needs no network.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from readbench.benchmark.metrics import DEFAULT_METRIC
from readbench.benchmark.protocol import DataOrigin
from readbench.benchmark.report._bundle import (
    Bundle,
    Declared,
    Identity,
    Task,
    find_other_task,
    identify_task,
    read_bundle,
)
from readbench.benchmark.report._checking import OURS, published_bundle
from readbench.benchmark.report._origins import MARKS, count_origins, explain_marks, find_real
from readbench.benchmark.report._results import MetricFacts, Results, choose_metric, metrics_beside, worst_last
from readbench.benchmark.report._statements import state_method
from readbench.benchmark.report._table import ReportTable, bullets, html_table, tables_page, tell_number
from readbench.benchmark.runs import DONE, TIMES, UNANSWERED, metric_columns
from readbench.common.files import write_text
from readbench.engine.llm import MARKED_ABOVE, mark_unanswered
from readbench.engine.registry import METRICS
from readbench.errors import DataError


@dataclass(frozen=True)
class Rejected:
    """A file that was refused, and why."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class StandingsEntry:
    """One method of one submission.

    Args:
        submission: name of the first submission that has it.
        method: canonical text.
        title: name in tables.
        family: colour and grouping.
        labels: labels that its parts read, else those declared.
        means: pollution level -> headline, mean over datasets.
        real: the same over the real datasets; empty if all or none are real.
        datasets: dataset -> headline at the first level, mean over split seeds.
        others: name -> further metric at the first level, mean over datasets.
        partial: True if it lacks tasks of the leaderboard; it then has no place.
        flags: remarks.
        also: other submissions with the same method and values.
    """

    submission: str
    method: str
    title: str
    family: str
    labels: str
    means: dict[int, float]
    real: dict[int, float]
    datasets: dict[str, float]
    others: dict[str, float]
    partial: bool
    flags: tuple[str, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Standings:
    """The leaderboard.

    Args:
        entries: complete ones from best to worst, then the partial ones.
        metric: the headline.
        others: one further metric of each other family installed here.
        levels: pollution levels of any submission.
        datasets: datasets of any submission.
        origins: where the values of each dataset come from.
        declared: statements of each accepted submission.
        rejected: refused files.
    """

    entries: tuple[StandingsEntry, ...]
    metric: MetricFacts
    others: tuple[MetricFacts, ...]
    levels: tuple[int, ...]
    datasets: tuple[str, ...]
    origins: dict[str, DataOrigin]
    declared: tuple[Declared, ...]
    rejected: tuple[Rejected, ...]


def rank_submissions(
    files: Sequence[Path], reference: Path | None = None, metric: str = DEFAULT_METRIC, published: Results | None = None
) -> Standings:
    """Check all submissions and rank their methods.

    Args:
        files: submissions.
        reference: the submission with the right tasks; by default `published`, else what most submissions share.
        metric: the headline, in any case; must be installed, since values are recomputed.
        published: published rows, ranked as the first submission.
    """
    bundles, rejected = _readable(sorted(files))
    ours = {published.folder: published_bundle(published)} if published else {}
    right = _identities(ours[published.folder]) if published and reference is None else _tasks(bundles, reference)
    bundles, mismatched = _comparable(bundles, right)
    bundles = ours | bundles
    if not bundles:
        reasons = "; ".join(f"{one.file}: {one.reason}" for one in (*rejected, *mismatched)) or "there is none"
        raise DataError(f"No submission can be used: {reasons}.")
    taken = list(bundles.values())
    levels = tuple(sorted({rho for bundle in taken for rho in bundle.plan.levels}))
    tasks = list(dict.fromkeys(task for bundle in taken for task in bundle.qrels))
    columns = dict.fromkeys(name for bundle in taken for name in metric_columns(bundle.rows[0]) if name in METRICS)
    facts = {name: MetricFacts.of(name, {}) for name in columns}
    headline = facts[choose_metric(metric, facts)]
    others = tuple(metrics_beside(facts, headline.name))
    shown = [headline.name, *(other.name for other in others)]
    datasets = tuple(dict.fromkeys(dataset for dataset, _ in tasks))
    said = [bundle.manifest.origins for bundle in taken]
    origins = {dataset: _origin({own.get(dataset, "real") for own in said}) for dataset in datasets}
    real = find_real(origins)
    entries = _join(
        _entry(bundle, method, shown, levels, tasks, real) for bundle in taken for method in bundle.plan.methods
    )
    entries.sort(key=lambda entry: (entry.partial, worst_last(headline.orient(np.array(entry.means[levels[0]])))))
    return Standings(
        entries=tuple(entries),
        metric=headline,
        others=others,
        levels=levels,
        datasets=datasets,
        origins=origins,
        declared=tuple(bundle.manifest.declared for bundle in taken),
        rejected=(*rejected, *mismatched),
    )


def _readable(files: Sequence[Path]) -> tuple[dict[Path, Bundle], list[Rejected]]:
    """Readable submissions with new content and a new name, and the refused files."""
    bundles: dict[Path, Bundle] = {}
    rejected: list[Rejected] = []
    contents: dict[str, str] = {}
    names: dict[str, str] = {}
    for file in files:
        try:
            bundle = read_bundle(file)
            content = _digest(bundle)
            if content in contents:
                raise DataError(f"it holds the same results as {contents[content]}")  # noqa: TRY301
            if bundle.name in names:
                raise DataError(f"the name {bundle.name} is taken by {names[bundle.name]}")  # noqa: TRY301
        except DataError as error:
            rejected.append(Rejected(file.name, str(error)))
            continue
        bundles[file], contents[content], names[bundle.name] = bundle, file.name, file.name
    return bundles, rejected


def _digest(bundle: Bundle) -> str:
    """Hash of results and tasks, without times and names, in any order of the lists."""
    rows = [{name: value for name, value in row.items() if name not in TIMES} for row in bundle.rows]
    lists = sorted(map(repr, bundle.lists.to_pylist()))
    return hashlib.sha256(repr((rows, lists, _identities(bundle))).encode()).hexdigest()


def _tasks(bundles: dict[Path, Bundle], reference: Path | None) -> dict[Task, Identity]:
    """Identity of each task: of the reference, else the most frequent one."""
    if reference is not None:
        return _identities(read_bundle(reference))
    votes: dict[Task, Counter[Identity]] = {}
    for bundle in bundles.values():
        for task, identity in _identities(bundle).items():
            votes.setdefault(task, Counter())[identity] += 1
    return {task: counted.most_common(1)[0][0] for task, counted in votes.items()}


def _identities(bundle: Bundle) -> dict[Task, Identity]:
    return {task: identify_task(qrels) for task, qrels in bundle.qrels.items()}


def _comparable(bundles: dict[Path, Bundle], tasks: dict[Task, Identity]) -> tuple[dict[Path, Bundle], list[Rejected]]:
    """Submissions on the right tasks, and the refused files."""
    reasons = {file: find_other_task(bundle, tasks.get, "the reference") for file, bundle in bundles.items()}
    rejected = [Rejected(file.name, reason) for file, reason in reasons.items() if reason]
    return {file: bundle for file, bundle in bundles.items() if not reasons[file]}, rejected


def _entry(
    bundle: Bundle, method: str, metrics: list[str], levels: tuple[int, ...], tasks: list[Task], real: tuple[str, ...]
) -> StandingsEntry:
    """One method; the first of the metrics is the headline."""
    facts = bundle.manifest.methods[method]
    rows = [
        row for row in bundle.rows if (row["method"], row["labels"], row["status"]) == (method, facts.labels[-1], DONE)
    ]
    by_metric = {name: _by_level(rows, name, levels, tasks) for name in metrics}
    by_level, first = by_metric[metrics[0]], levels[0]
    finished = {(row["dataset"], int(row["seed"])) for row in rows if int(row["rho"]) == first and row.get(metrics[0])}
    missing = sum(task not in finished for task in tasks)
    return StandingsEntry(
        submission=bundle.name,
        method=method,
        title=facts.title + mark_unanswered(_unanswered(rows)),
        family=facts.family,
        labels=_labels(bundle, method),
        means={rho: _mean(own.values()) for rho, own in by_level.items()},
        real={rho: _mean(own[dataset] for dataset in real) for rho, own in by_level.items()} if real else {},
        datasets=by_level[first],
        others={name: _mean(by_metric[name][first].values()) for name in metrics[1:]},
        partial=missing > 0,
        flags=tuple(_flags(bundle, method, missing, len(tasks), _unanswered(rows))),
    )


def _labels(bundle: Bundle, method: str) -> str:
    stated = state_method(method)
    return stated.label_text if stated.labels != "unknown" else bundle.manifest.declared.labels or "not declared"


def _unanswered(rows: Sequence[dict[str, str]]) -> float:
    """Largest share of unanswered questions to a language model in any row."""
    return max((float(row.get(UNANSWERED) or 0) for row in rows), default=0.0)


def _origin(said: set[DataOrigin]) -> DataOrigin:
    """Origin of a dataset; where submissions disagree, the one that is not real."""
    return next((origin for origin in reversed(MARKS) if origin in said), "real")


def _by_level(
    rows: Sequence[dict[str, str]], metric: str, levels: tuple[int, ...], tasks: list[Task]
) -> dict[int, dict[str, float]]:
    """Level -> dataset -> mean of a metric over the split seeds."""
    values = {(r["dataset"], int(r["seed"]), int(r["rho"])): float(r[metric]) for r in rows if r.get(metric)}
    seeds: dict[str, list[int]] = {}
    for dataset, seed in tasks:
        seeds.setdefault(dataset, []).append(seed)
    return {rho: {d: _mean(values.get((d, s, rho)) for s in own) for d, own in seeds.items()} for rho in levels}


def _mean(values: Iterable[float | None]) -> float:
    """Mean of the known values; NaN without any."""
    known = [value for value in values if value is not None and not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _flags(bundle: Bundle, method: str, missing: int, tasks: int, unanswered: float) -> Iterable[str]:
    trained = bundle.manifest.declared.trained_on
    if trained is None:
        yield "training data not declared"
    elif seen := sorted({name.split("(")[0] for name in bundle.plan.datasets} & set(trained)):
        yield f"possible leakage: trained on {', '.join(seen)}"
    chosen = bundle.manifest.declared.chosen_on
    if bundle.name == OURS:
        chosen = state_method(method).chosen_on
    if chosen:
        yield f"settings chosen on {', '.join(chosen)}"
    if missing:
        yield f"partial: {tasks - missing} of {tasks} tasks"
    if bundle.unchecked:
        yield f"not installed here, so not checked and not shown: {', '.join(bundle.unchecked)}"
    if unanswered > MARKED_ABOVE:
        yield f"up to {unanswered:.0%} of the questions to its language model have no answer"


def _join(entries: Iterable[StandingsEntry]) -> list[StandingsEntry]:
    """Join entries of one method with equal values, keeping the flags that both have; flag differing values."""
    found: list[StandingsEntry] = []
    for entry in entries:
        same = [place for place, known in enumerate(found) if known.method == entry.method]
        twin = next((place for place in same if _values(found[place]) == _values(entry)), None)
        if twin is not None:
            known = found[twin]
            shared = tuple(flag for flag in known.flags if flag in entry.flags)
            found[twin] = replace(known, also=(*known.also, entry.submission), flags=shared)
        elif same and not entry.partial and not found[same[0]].partial:
            odd = f"differs from the run of {found[same[0]].submission}"
            found.append(replace(entry, flags=(*entry.flags, odd)))
        else:
            found.append(entry)
    return found


def _values(entry: StandingsEntry) -> tuple[str, str]:
    """Values that two runs of one method share, as text, so that NaN equals NaN."""
    return repr(entry.means), repr(entry.datasets)


NOTES = (
    "Every number was computed again from the lists and labels of its submission.",
    "A method without a place does not have every task. What a system was trained on is what its authors declared.",
)


def standings_table(board: Standings) -> ReportTable:
    """Table with one row per entry: headline by level, over all and over real datasets, and other metrics."""
    others, real = [metric.title for metric in board.others], find_real(board.origins)
    header = ["Place", "Method", "Labels", "Submission", *(f"ρ={rho}%" for rho in board.levels)]
    header += [*(f"real ρ={rho}%" for rho in board.levels if real), *others, "Remarks"]
    rows = []
    for place, entry in zip(_places(board), board.entries, strict=True):
        names = [place, entry.title, entry.labels, ", ".join((entry.submission, *entry.also))]
        numbers = [*(entry.means[rho] for rho in board.levels), *entry.real.values(), *entry.others.values()]
        rows.append([*names, *map(tell_number, numbers), "; ".join(entry.flags)])
    beside = f"; {', '.join(others)} at ρ={board.levels[0]}%" if others else ""
    alone = f"; real: over the real ones alone ({len(real)})" if real else ""
    caption = (
        f"{board.metric.name}, mean over {count_origins(board.origins.values())}{alone}{beside}."
        f" Submissions: {len(board.declared)}"
    )
    return ReportTable("leaderboard", caption, header, rows, labels=4)


def by_dataset_table(board: Standings) -> ReportTable:
    """Table with one row per entry: the headline on each dataset."""
    datasets = [name + MARKS[board.origins[name]] for name in board.datasets]
    rows = [
        [place, entry.title, entry.submission, *(tell_number(entry.datasets[name]) for name in board.datasets)]
        for place, entry in zip(_places(board), board.entries, strict=True)
    ]
    caption = f"{board.metric.name} by dataset at ρ={board.levels[0]}%, mean over split seeds"
    return ReportTable("datasets", caption, ["Place", "Method", "Submission", *datasets], rows, labels=3)


def rejected_table(board: Standings) -> ReportTable:
    """Table of refused files and reasons."""
    rows = [[one.file, one.reason] for one in board.rejected]
    return ReportTable("rejected", "Not taken", ["File", "Reason"], rows, labels=2)


def write_standings(board: Standings, folder: Path) -> list[Path]:
    """Write `index.html`, `leaderboard.md`, `leaderboard.json` and one CSV a table; returns what was written."""
    tables = [standings_table(board), by_dataset_table(board)]
    refused = [rejected_table(board)] if board.rejected else []
    parts = [*(table.markdown() for table in tables), *bullets(_notes(board)), *(t.markdown() for t in refused)]
    contents = {
        "index.html": _page(tables, refused, _notes(board)),
        "leaderboard.md": "\n".join(parts),
        "leaderboard.json": json.dumps(_facts(board), indent=1) + "\n",
    }
    contents |= {f"{table.name}.csv": table.csv() for table in tables}
    for name, text in contents.items():
        write_text(folder / name, text)
    return [folder / name for name in contents]


def _places(board: Standings) -> list[str]:
    return ["-" if entry.partial else str(place) for place, entry in enumerate(board.entries, start=1)]


def _notes(board: Standings) -> tuple[str, ...]:
    return (*NOTES, *explain_marks(MARKS[origin] for origin in board.origins.values()))


def _facts(board: Standings) -> dict[str, Any]:
    """The leaderboard as JSON; None for NaN."""
    entries = [asdict(entry) for entry in board.entries]
    for entry in entries:
        for name in ("means", "real", "datasets", "others"):
            entry[name] = {key: None if np.isnan(value) else value for key, value in entry[name].items()}
    return {
        "metric": asdict(board.metric),
        "data_origins": board.origins,
        "entries": entries,
        "submissions": [declared.model_dump() for declared in board.declared],
        "rejected": [asdict(one) for one in board.rejected],
    }


def _page(tables: Sequence[ReportTable], refused: Sequence[ReportTable], notes: Sequence[str]) -> str:
    lead = '<h1>Leaderboard</h1>\n<p class="lead">Which method finds the same fault again.</p>'
    remarks = "".join(f"<li>{escape(note)}</li>" for note in notes)
    parts = [
        f'<div class="title">\n{lead}\n</div>',
        *map(html_table, tables),
        f'<ul class="remarks">\n{remarks}\n</ul>',
    ]
    return tables_page("leaderboard", "READ-Bench leaderboard", "\n".join([*parts, *map(html_table, refused)]))
