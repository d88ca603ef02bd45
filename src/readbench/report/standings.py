"""A leaderboard from many submissions: which can be believed, which are refused and why, what must be said beside."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from readbench.errors import DataError
from readbench.evaluate import DEFAULT_METRIC
from readbench.experiment.store import DONE, TIMES, metric_columns
from readbench.registry import METRICS
from readbench.report.bundle import Bundle, Declared
from readbench.report.bundle_check import read_bundle
from readbench.report.leaderboard import worst_last
from readbench.report.results import MetricFacts, choose_metric, metrics_beside

Task = tuple[str, int]
Identity = tuple[str, str]
"""Fingerprint of a task, and hash of its labels."""


@dataclass(frozen=True)
class Rejected:
    """A file that is not on the leaderboard."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class Entry:
    """One method of one submission.

    Args:
        submission: name of the first submission that has it.
        method: canonical text.
        title: name in tables.
        family: colour and grouping.
        means: pollution level -> headline metric, mean over datasets.
        datasets: dataset -> headline metric at the first level, mean over split seeds.
        others: name -> further metric at the first level, mean over datasets.
        partial: it does not have every task of the leaderboard, so it has no place.
        flags: what must be said beside its numbers.
        also: other submissions with the same method and the same values.
    """

    submission: str
    method: str
    title: str
    family: str
    means: dict[int, float]
    datasets: dict[str, float]
    others: dict[str, float]
    partial: bool
    flags: tuple[str, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Standings:
    """Entries with all tasks from best to worst, then the partial ones.

    Args:
        entries: in that order.
        metric: the headline.
        others: further metrics: one of each other family, of those installed here.
        levels: pollution levels of any submission.
        datasets: of any submission.
        simulated: those of them that are simulated.
        declared: of each submission that was taken.
        rejected: the others.
    """

    entries: tuple[Entry, ...]
    metric: MetricFacts
    others: tuple[MetricFacts, ...]
    levels: tuple[int, ...]
    datasets: tuple[str, ...]
    simulated: tuple[str, ...]
    declared: tuple[Declared, ...]
    rejected: tuple[Rejected, ...]


def rank_submissions(files: Sequence[Path], reference: Path | None = None, metric: str = DEFAULT_METRIC) -> Standings:
    """Judge all submissions and rank their methods.

    Args:
        files: submissions.
        reference: the one whose tasks are the right ones; without it, those that most submissions share.
        metric: the headline, in any case: one that is installed, so that its values were computed again.
    """
    bundles, rejected = _readable(sorted(files))
    bundles, mismatched = _comparable(bundles, _tasks(bundles, reference))
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
    entries = _join(_entry(bundle, method, shown, levels, tasks) for bundle in taken for method in bundle.plan.methods)
    entries.sort(key=lambda entry: (entry.partial, worst_last(headline.orient(np.array(entry.means[levels[0]])))))
    return Standings(
        entries=tuple(entries),
        metric=headline,
        others=others,
        levels=levels,
        datasets=tuple(dict.fromkeys(dataset for dataset, _ in tasks)),
        simulated=tuple(sorted({name for bundle in taken for name in bundle.manifest.simulated})),
        declared=tuple(bundle.manifest.declared for bundle in taken),
        rejected=(*rejected, *mismatched),
    )


def _readable(files: Sequence[Path]) -> tuple[dict[Path, Bundle], list[Rejected]]:
    """What can be read and is new; the first of two alike, or of one name, stays."""
    bundles: dict[Path, Bundle] = {}
    rejected: list[Rejected] = []
    contents: dict[str, str] = {}
    names: dict[str, str] = {}
    for file in files:
        try:
            bundle = read_bundle(file)
        except DataError as error:
            rejected.append(Rejected(file.name, str(error)))
            continue
        content = _digest(bundle)
        if content in contents:
            rejected.append(Rejected(file.name, f"it holds the same results as {contents[content]}"))
        elif bundle.name in names:
            rejected.append(Rejected(file.name, f"the name {bundle.name} is taken by {names[bundle.name]}"))
        else:
            bundles[file] = bundle
            contents[content], names[bundle.name] = file.name, file.name
    return bundles, rejected


def _digest(bundle: Bundle) -> str:
    """Hash of all results and of the tasks behind them, without times and names, whatever the order of the lists."""
    rows = [{name: value for name, value in row.items() if name not in TIMES} for row in bundle.rows]
    lists = sorted(map(repr, bundle.lists.to_pylist()))
    return hashlib.sha256(repr((rows, lists, _identities(bundle))).encode()).hexdigest()


def _tasks(bundles: dict[Path, Bundle], reference: Path | None) -> dict[Task, Identity]:
    """What each task is: in the reference, else in most submissions, of several the first."""
    if reference is not None:
        return _identities(read_bundle(reference))
    votes: dict[Task, Counter[Identity]] = {}
    for bundle in bundles.values():
        for task, identity in _identities(bundle).items():
            votes.setdefault(task, Counter())[identity] += 1
    return {task: counted.most_common(1)[0][0] for task, counted in votes.items()}


def _identities(bundle: Bundle) -> dict[Task, Identity]:
    return {
        task: (qrels.fingerprint, hashlib.sha256(repr(qrels.table().to_pydict()).encode()).hexdigest())
        for task, qrels in bundle.qrels.items()
    }


def _comparable(bundles: dict[Path, Bundle], tasks: dict[Task, Identity]) -> tuple[dict[Path, Bundle], list[Rejected]]:
    """Submissions on the right tasks, and the others."""
    taken, rejected = {}, []
    for file, bundle in bundles.items():
        reason = next((r for t, own in _identities(bundle).items() if (r := _mismatch(t, own, tasks.get(t)))), "")
        if reason:
            rejected.append(Rejected(file.name, reason))
        else:
            taken[file] = bundle
    return taken, rejected


def _mismatch(task: Task, own: Identity, right: Identity | None) -> str:
    """Why a task is not the right one; empty where it is."""
    name = f"{task[0]} seed {task[1]}"
    if right is None:
        return f"{name} is not a task of the reference"
    if own[0] != right[0]:
        return f"it ran on other data: {name} is {own[0]} and not {right[0]}"
    return "" if own[1] == right[1] else f"its labels of {name} are not those of the task {own[0]}"


def _entry(bundle: Bundle, method: str, metrics: list[str], levels: tuple[int, ...], tasks: list[Task]) -> Entry:
    """One method; the first of the metrics is the headline."""
    facts = bundle.manifest.methods[method]
    rows = [
        row for row in bundle.rows if (row["method"], row["labels"], row["status"]) == (method, facts.labels[-1], DONE)
    ]
    by_metric = {name: _by_level(rows, name, levels, tasks) for name in metrics}
    by_level, first = by_metric[metrics[0]], levels[0]
    finished = {(row["dataset"], int(row["seed"])) for row in rows if int(row["rho"]) == first and row.get(metrics[0])}
    missing = sum(task not in finished for task in tasks)
    return Entry(
        submission=bundle.name,
        method=method,
        title=facts.title,
        family=facts.family,
        means={rho: _mean(own.values()) for rho, own in by_level.items()},
        datasets=by_level[first],
        others={name: _mean(by_metric[name][first].values()) for name in metrics[1:]},
        partial=missing > 0,
        flags=tuple(_flags(bundle, missing, len(tasks))),
    )


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
    """Mean of what there is; NaN where there is nothing."""
    known = [value for value in values if value is not None and not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _flags(bundle: Bundle, missing: int, tasks: int) -> Iterable[str]:
    trained = bundle.manifest.declared.trained_on
    if trained is None:
        yield "training data not declared"
    elif seen := sorted({name.split("(")[0] for name in bundle.plan.datasets} & set(trained)):
        yield f"possible leakage: trained on {', '.join(seen)}"
    if missing:
        yield f"partial: {tasks - missing} of {tasks} tasks"
    if bundle.unchecked:
        yield f"not installed here, so not checked and not shown: {', '.join(bundle.unchecked)}"


def _join(entries: Iterable[Entry]) -> list[Entry]:
    """Each method with the same values once; the same method with other values is flagged.

    What was said of one submission alone does not hold for values that another reached without it.
    """
    found: list[Entry] = []
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


def _values(entry: Entry) -> tuple[str, str]:
    """What two runs of one method share; as text, in which NaN equals NaN."""
    return repr(entry.means), repr(entry.datasets)
