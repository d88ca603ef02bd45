"""Submissions by pull request: what is wrong with each file, said in a sentence, for any CI.

`read_bundle` computes every number of a submission again from its own lists and labels. Here it is held against the
published rows: the tasks must be theirs, the results must not be a copy, the statements must be there, and the lists
must not be such as only the answers can give. What is far better than any published method that reads as few labels is
held until a person has looked at it.

A sample is run again: lists that were not made by the method that they name give other scores. A method can be run
again where it is in the grammar here: its parts are the package's or come from a plug-in that was named, it asks no
language model, and its data are here. Nothing can be said of others: they are not reproduced.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.report._bundle import (
    SUFFIX,
    Bundle,
    Declared,
    Identity,
    Task,
    find_other_task,
    identify_task,
    lists_by_cell,
    read_bundle,
    state_run,
)
from readbench.benchmark.report._results import Results
from readbench.benchmark.report._statements import LABEL_USES, LabelUse, state_method
from readbench.benchmark.runs import DONE, Cell, Plan, PublishedFolder, open_folder, plan_of, run
from readbench.engine.spec import build_source, parse
from readbench.engine.windows import NORMAL
from readbench.errors import DataError, ReadbenchError, UsageError

OURS = "readbench"
"""Name of the published rows among submissions."""
IDEAL = "NDCG@20"
FEWEST_QUERIES = 10
"""Queries of a task below which perfect lists may be luck."""
NEAR = 0.95
"""Where a published method reaches this, perfect lists are believed."""
HIGH = 0.9
"""Share of what is possible from which the lists of a dataset are looked at, where no published method has as much."""
LEAP = 0.5
"""Share of what the best published method leaves that a method must add to be looked at; of the published ones none
adds as much to the others on a dataset where these are below `HIGH`."""
FEWER = 20
"""How many times less than the best published method may be missing from ideal lists."""
COPIED = 0.95
"""Share of lists that two methods have in common from which one is a copy; of the published ones none shares .87."""
EXACT = 1e-9
"""Rounding of an ideal list."""
WRONG_PLACES = 200
"""Wrong places of a polluted task from which it is odd that none holds a normal window."""


@dataclass(frozen=True)
class CheckedSubmission:
    """A file of the folder.

    Args:
        file: its name.
        methods: what it brings; empty where it cannot be read.
        reasons: why it is refused.
        doubts: why it is held until a person has looked at it; it is taken where there are neither.
        missing: what was not reproduced, and why.
    """

    file: str
    methods: tuple[str, ...]
    reasons: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def check_submissions(
    folder: Path, published: Results, reviewed: Collection[str] = (), rerun: int = 0
) -> list[CheckedSubmission]:
    """Judge every file of a folder of submissions.

    Args:
        folder: with one file a submission; anything else in it but text is an error.
        published: rows that they are held against.
        reviewed: names of submissions that a person has looked at: nothing is doubted of them any more.
        rerun: tasks on which each method of a submission is run again, where it can be.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder} with submissions.")
    held = open_folder(published.folder)
    if not isinstance(held, PublishedFolder):
        raise UsageError(
            f"{published.folder} holds no published rows. Make them: readbench submit runs/... --rows results"
        )
    found: list[CheckedSubmission] = []
    taken: list[tuple[str, Bundle]] = []
    for file in sorted(folder.iterdir()):
        if file.suffix in {".md", ".txt"} or file.name.startswith("."):
            continue
        if not file.name.endswith(SUFFIX):
            reason = f"its name does not end with {SUFFIX}: pack a run with readbench submit"
            found.append(CheckedSubmission(file.name, (), (reason,)))
            continue
        try:
            bundle = read_bundle(file)
        except DataError as error:
            found.append(CheckedSubmission(file.name, (), (str(error),)))
            continue
        reasons = tuple(_find_reasons(file, bundle, held, taken))
        doubts = tuple(_find_doubts(bundle, held)) if not reasons and bundle.name not in reviewed else ()
        again = RerunReport() if reasons else rerun_sample(bundle, rerun)
        reasons += again.differing
        found.append(CheckedSubmission(file.name, bundle.plan.methods, reasons, doubts, again.missing))
        if not reasons:
            taken.append((file.name, bundle))
    return found


def _find_reasons(
    file: Path, bundle: Bundle, published: PublishedFolder, taken: Sequence[tuple[str, Bundle]]
) -> Iterator[str]:
    if file.name != f"{bundle.name}{SUFFIX}":
        yield f"its name is {bundle.name}, so the file must be called {bundle.name}{SUFFIX}"
    if bundle.name == OURS:
        yield f"the name {OURS} is that of the published rows"
    if (other := next((name for name, own in taken if own.name == bundle.name), None)) is not None:
        yield f"the name {bundle.name} is taken by {other}"
    yield from _missing_statements(bundle.manifest.declared)
    yield from _leaks_by_statement(bundle)
    if reason := _other_task(bundle, published):
        yield reason
        return
    yield from _copies(bundle, published, taken)
    yield from _impossible_lists(bundle, published)


def _missing_statements(declared: Declared) -> Iterator[str]:
    for name, value, option in (
        ("what it was trained on", declared.trained_on, "--trained-on"),
        ("which datasets its settings were chosen on", declared.chosen_on, "--chosen-on"),
        ("which labels it reads", declared.labels, "--labels"),
    ):
        if value is None:
            yield f"it does not say {name}: pack it again with {option}"
    if not declared.authors:
        yield "it does not say who made it: pack it again with --authors"


def _leaks_by_statement(bundle: Bundle) -> Iterator[str]:
    own = {name.split("(")[0] for name in bundle.plan.datasets}
    if seen := sorted(own & set(bundle.manifest.declared.trained_on or ())):
        yield f"it was trained on {', '.join(seen)}, which it is measured on: leave these datasets out of the run"
    labels, chosen = bundle.manifest.declared.labels, bundle.manifest.declared.chosen_on
    for method in bundle.plan.methods:
        stated = state_method(method)
        order = ("none", "pool", "all")
        if labels is not None and stated.labels in order and order.index(stated.labels) > order.index(labels):
            yield f"{method} reads labels ({stated.labels}), and the submission says {labels}"
        if chosen is not None and (unsaid := sorted(set(stated.chosen_on) - set(chosen))):
            yield (
                f"settings of parts of {method} were chosen with {', '.join(unsaid)} in sight, which the submission"
                " does not say: pack it again with --chosen-on"
            )


def _other_task(bundle: Bundle, published: PublishedFolder) -> str:
    tasks = published.read_manifest()["tasks"]

    def identify(task: Task) -> Identity | None:
        name = f"{task[0]}/seed-{task[1]}"
        return (tasks[name], identify_task(published.read_qrels(*task))[1]) if name in tasks else None

    return find_other_task(bundle, identify, "the published rows")


def _copies(bundle: Bundle, published: PublishedFolder, taken: Sequence[tuple[str, Bundle]]) -> Iterator[str]:
    """Methods whose lists are, place by place, those of another in the cells that both have, but for a few."""
    own = _lists(bundle)
    for method, cells in own.items():
        for other in published.plan.methods:
            theirs = {key: lists for key in cells if (lists := _published_lists(published, key, other)) is not None}
            if copied := _tell_copied(cells, theirs):
                yield f"{copied} of {method} are those of the published {other}"
                break
        for name, known in taken:
            for other, theirs in _lists(known).items():
                if copied := _tell_copied(cells, theirs):
                    yield f"{copied} of {method} are those of {other} in {name}"


Key = tuple[str, int, int]
"""Dataset, split seed and pollution level."""
Values = dict[Key, float]
"""`IDEAL` by task and level."""


def _lists(bundle: Bundle) -> dict[str, dict[Key, NDArray[np.int64]]]:
    """Method -> cell -> (Q, D) items by query, under the last budget."""
    found: dict[str, dict[Key, NDArray[np.int64]]] = {}
    for cell, (queries, items) in lists_by_cell(bundle.lists).items():
        own = np.array(items, np.int64)[np.argsort(queries)]
        found.setdefault(cell.method, {})[cell.dataset, cell.seed, cell.rho] = own
    return found


def _published_lists(published: PublishedFolder, key: Key, method: str) -> NDArray[np.int64] | None:
    dataset, seed, rho = key
    cell = Cell(dataset, seed, rho, method)
    return published.places(cell) if published.finished(cell) else None


def _tell_copied(own: dict[Key, NDArray[np.int64]], other: dict[Key, NDArray[np.int64]]) -> str:
    """How many lists of shared cells are the same, where these are all or nearly all; else nothing."""
    same = [_find_same(own[key], other[key]) for key in own.keys() & other.keys()]
    count, total = sum(int(one.sum()) for one in same), sum(map(len, same))
    if not total or count < COPIED * total:
        return ""
    return "the lists" if count == total else f"{count} of {total} lists"


def _find_same(one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(Q,) whether two lists hold the same items as far as both reach."""
    depth = min(one.shape[1], two.shape[1])
    return np.all(one[:, :depth] == two[:, :depth], axis=1)


def _impossible_lists(bundle: Bundle, published: PublishedFolder) -> Iterator[str]:
    """Lists that only somebody who knows the answers can make."""
    labels = bundle.manifest.declared.labels
    for method, cells in _lists(bundle).items():
        rivals = _rivals(bundle, published, method)
        told = (_too_good(bundle, rivals, key, own) for key, own in cells.items())
        if (reason := next(filter(None, told), "")) or (labels == "none" and (reason := _knows_normals(bundle, cells))):
            yield f"{method}: {reason}"


def _too_good(bundle: Bundle, rivals: dict[str, Values], key: Key, own: NDArray[np.int64]) -> str:
    """Whether the lists of a task are ideal, or all but, where no published method like it comes near."""
    dataset, seed, rho = key
    qrels = bundle.qrels[dataset, seed]
    values = _ideal(own, qrels.query_labels, qrels.item_labels, qrels.item_levels <= rho)
    if len(values) < FEWEST_QUERIES or 1 - values.mean() > 1 / FEWER:
        return ""
    best = max((theirs[key] for theirs in rivals.values() if key in theirs), default=0.0)
    if best >= NEAR or 1 - values.mean() > (1 - best) / FEWER:
        return ""
    ideal = int((values > 1 - EXACT).sum())
    return (
        f"{ideal} of {len(values)} lists of {dataset} seed {seed} at {rho} % are perfect, where the best published"
        f" method that reads no more labels has {IDEAL} {best:.3f}: only the labels of the queries give such lists"
    )


def _find_doubts(bundle: Bundle, published: PublishedFolder) -> Iterator[str]:
    """Methods that are far better on a dataset than any published one that reads no more labels."""
    for method in bundle.plan.methods:
        own = values_by_method(bundle.rows).get(method, {})
        queries = {key: len(bundle.qrels[key[0], key[1]].queries) for key in own}
        rivals = _rivals(bundle, published, method)
        yield from (f"{method}: {doubt}" for doubt in find_leaps(own, rivals, queries))


def find_leaps(own: Values, rivals: dict[str, Values], queries: dict[Key, int]) -> Iterator[str]:
    """Datasets and levels on which a method has nearly everything, and the best of its rivals far less.

    Args:
        own: of the method.
        rivals: by method; those count that have all tasks of a dataset and level.
        queries: how many a task has.
    """
    for dataset, rho in sorted({(key[0], key[2]) for key in own}):
        keys = [key for key in own if (key[0], key[2]) == (dataset, rho)]
        if sum(queries[key] for key in keys) < FEWEST_QUERIES:
            continue
        means = {
            name: float(np.mean([theirs[key] for key in keys]))
            for name, theirs in rivals.items()
            if all(key in theirs for key in keys)
        }
        name = max(means, key=lambda one: means[one], default="")
        best, value = means.get(name, 0.0), float(np.mean([own[key] for key in keys]))
        if best < HIGH <= value and value - best >= LEAP * (1 - best):
            yield (
                f"{IDEAL} {value:.3f} on {dataset} at {rho} %, where the best published method that reads no more"
                f" labels ({name or 'none'}) has {best:.3f}: does it know the labels of these windows?"
            )


def values_by_method(rows: Iterable[dict[str, str]]) -> dict[str, Values]:
    """Method -> its scores, under the last budget."""
    found: dict[str, Values] = {}
    for row in rows:
        if row["status"] == DONE:
            found.setdefault(row["method"], {})[row["dataset"], int(row["seed"]), int(row["rho"])] = float(row[IDEAL])
    return found


def _rivals(bundle: Bundle, published: PublishedFolder, method: str) -> dict[str, Values]:
    """The published methods that read no more labels than a method does, or the submission says."""
    order = LABEL_USES.index
    said: LabelUse = bundle.manifest.declared.labels or "none"
    stated = state_method(method).labels
    most = said if stated == "unknown" else max(said, stated, key=order)
    return {
        name: values
        for name, values in values_by_method(published.read_scores()[1]).items()
        if order(state_method(name).labels) <= order(most)
    }


def _ideal(lists: NDArray[np.int64], queries: Any, items: Any, here: NDArray[np.bool_]) -> NDArray[np.float64]:  # noqa: ANN401 - labels
    positions = (np.cumsum(here) - 1)[lists]
    return np.asarray(evaluate(positions, queries, items[here], [IDEAL]).values[IDEAL])


def _knows_normals(bundle: Bundle, cells: dict[Key, NDArray[np.int64]]) -> str:
    """Whether a method that says it reads no label never lists a normal window among its wrong places."""
    wrong = normal = 0
    for (dataset, seed, rho), own in cells.items():
        if not rho:
            continue
        qrels = bundle.qrels[dataset, seed]
        found = qrels.item_labels[own]
        missed = found != qrels.query_labels[:, None]
        wrong += int(missed.sum())
        normal += int((found[missed] == NORMAL).sum())
    if wrong < WRONG_PLACES or normal:
        return ""
    return (
        f"of {wrong} wrong places in polluted corpora none holds a normal window: it knows which items are normal, and"
        " the submission says that it reads no label"
    )


def published_bundle(results: Results) -> Bundle:
    """Published rows as the first submission of a leaderboard: the same checks and the same table hold for them."""
    folder = open_folder(results.folder)
    if not isinstance(folder, PublishedFolder):
        raise UsageError(
            f"{results.folder} holds no published rows. Make them: readbench submit runs/... --rows results"
        )
    plan = plan_of(results.manifest)
    rows = folder.read_scores()[1]
    manifest = state_run(results, Declared(name=OURS, authors="READ-Bench", trained_on=(), chosen_on=None), {})
    tasks = [(d, s) for d, s in plan.tasks() if f"{d}/seed-{s}" in results.manifest["tasks"]]
    return Bundle(manifest, plan, rows, pa.table({}), {task: folder.read_qrels(*task) for task in tasks})


COMPARED = "NDCG@10"
CLOSE = 0.01
"""Two machines may order nearly equal items differently: that moves the score of a task by less."""


@dataclass(frozen=True)
class RerunReport:
    """What came of running a submission again.

    Args:
        differing: scores that are other than the submission says, a sentence each.
        missing: why a method could not be run again, a sentence each.
    """

    differing: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def rerun_sample(bundle: Bundle, tasks: int) -> RerunReport:
    """Run each method again on some of its tasks, drawn anew at each call, at all levels, and compare the scores.

    Args:
        bundle: the submission.
        tasks: how many tasks a method; 0 runs nothing.
    """
    differing, missing = [], []
    for method in bundle.plan.methods:
        reason = _explain_missing(bundle, method) if tasks else "no task was run again"
        if reason:
            missing.append(f"{method}: {reason}")
            continue
        for dataset, seed in _draw_tasks(bundle, method, tasks):
            plan = replace(bundle.plan, datasets=(dataset,), seeds=(seed,), methods=(method,))
            found, lacking = _compare_task(bundle, plan)
            differing += found
            missing += lacking
    return RerunReport(tuple(differing), tuple(missing))


def _explain_missing(bundle: Bundle, method: str) -> str:
    """Why a method cannot be run here; empty where it can be tried."""
    if method in bundle.manifest.models:
        return "it asks a language model"
    try:
        parse(method)
    except ReadbenchError as error:
        return f"it cannot be built here ({error}) Name its file: readbench --plugin FILE leaderboard --check"
    return ""


def _draw_tasks(bundle: Bundle, method: str, count: int) -> list[tuple[str, int]]:
    """Tasks that the submission has scores for; no seed is set, so that nobody knows beforehand which."""
    tasks = sorted({(row["dataset"], int(row["seed"])) for row in bundle.rows if _is_done(row, method)})
    chosen = np.random.default_rng().permutation(len(tasks))[:count]
    return [tasks[place] for place in sorted(chosen)]


def _is_done(row: dict[str, str], method: str) -> bool:
    return row["method"] == method and row["status"] == DONE


def _compare_task(bundle: Bundle, plan: Plan) -> tuple[list[str], list[str]]:
    """Scores of one method and task that are not those of the submission, and why there are none."""
    (dataset,), (seed,), (method,) = plan.datasets, plan.seeds, plan.methods
    where = f"{method} on {dataset} seed {seed}"
    try:
        build_source(dataset)
        with tempfile.TemporaryDirectory(prefix="readbench-rerun-") as place:
            run(plan, Path(place))
            rows = open_folder(Path(place)).read_scores()[1]
            task = open_folder(Path(place)).read_manifest()["tasks"].get(f"{dataset}/seed-{seed}")
    except ReadbenchError as error:
        return [], [f"{where}: {error}"]
    failed = next((row["status"] for row in rows if row["status"] != DONE), "")
    if failed or not rows:
        return [], [f"{where}: {failed or 'nothing was computed'}"]
    if task != bundle.qrels[dataset, seed].fingerprint:
        return [], [f"{where}: the data here are others (fingerprint {task})"]
    said = {
        (row["rho"], row["labels"]): float(row[COMPARED])
        for row in bundle.rows
        if _is_done(row, method) and (row["dataset"], int(row["seed"])) == (dataset, seed)
    }
    return [
        f"{where} at {row['rho']} % has {COMPARED} {said[key]:.3f} in the submission, and {float(row[COMPARED]):.3f}"
        " when it is run again"
        for row in rows
        if (key := (row["rho"], row["labels"])) in said and abs(said[key] - float(row[COMPARED])) > CLOSE
    ], []
