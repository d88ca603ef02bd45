"""Checks of submissions by pull request; each file gets reasons for refusal in sentences.

`read_bundle` recomputes every number of a submission from its lists and labels. Here it is compared with the published
rows: same tasks, no copied results, all statements present, no lists that only known answers can give. A method that
is far better than any published one that reads as few labels is held until a person has reviewed it.

A sample of tasks is run again and the scores are compared. That needs a method whose parts are installed (package or
named plug-in) and ask no language model, and its data. Other methods are reported as not reproduced.
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
from readbench.benchmark.runs import DONE, Cell, Plan, PublishedFolder, open_folder, open_published, plan_of, run
from readbench.engine.spec import build_source, parse
from readbench.engine.windows import NORMAL
from readbench.errors import DataError, ReadbenchError, UsageError

OURS = "readbench"
"""Name of the published rows among submissions."""
IDEAL = "NDCG@20"
MIN_QUERIES = 10
"""Fewest queries for a judgement on perfect lists."""
NEAR = 0.95
"""Score of a published method from which perfect lists are believed."""
HIGH = 0.9
"""Score from which a dataset is reviewed, where no published method reaches it."""
LEAP = 0.5
"""Share of the best published method's error that a method must remove to be reviewed; no published one does so."""
FEWER = 20
"""Factor by which the error must be smaller than the best published one's to be impossible."""
COPIED = 0.95
"""Share of equal lists from which a method is a copy; no two published ones share .87."""
EXACT = 1e-9
"""Tolerance of an ideal list."""
WRONG_PLACES = 200
"""Wrong places in polluted corpora from which at least one normal window is expected."""


@dataclass(frozen=True)
class CheckedSubmission:
    """Verdict on one file; it is accepted without reasons and doubts.

    Args:
        file: name.
        methods: its methods; empty if it cannot be read.
        reasons: why it is refused.
        doubts: why a person must review it.
        missing: methods that were not reproduced, and why.
    """

    file: str
    methods: tuple[str, ...]
    reasons: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def check_submissions(
    folder: Path, published: Results, reviewed: Collection[str] = (), rerun: int = 0
) -> list[CheckedSubmission]:
    """Check every file of a folder of submissions.

    Args:
        folder: one file per submission; text files are skipped, anything else is refused.
        published: rows to compare with.
        reviewed: names of submissions that a person has reviewed; they are not held back.
        rerun: number of tasks on which each method is run again.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder} with submissions.")
    held = open_published(published.folder)
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
        differing, missing = ((), ()) if reasons else rerun_sample(bundle, rerun)
        reasons += differing
        found.append(CheckedSubmission(file.name, bundle.plan.methods, reasons, doubts, missing))
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
    """Methods with nearly the same lists as another in the cells that both have."""
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
    """How many lists of shared cells are equal as far as both reach; empty below the share `COPIED`."""
    count = total = 0
    for key in own.keys() & other.keys():
        depth = min(own[key].shape[1], other[key].shape[1])
        count += int(np.all(own[key][:, :depth] == other[key][:, :depth], axis=1).sum())
        total += len(own[key])
    if not total or count < COPIED * total:
        return ""
    return "the lists" if count == total else f"{count} of {total} lists"


def _impossible_lists(bundle: Bundle, published: PublishedFolder) -> Iterator[str]:
    """Methods whose lists need knowledge of the answers."""
    labels = bundle.manifest.declared.labels
    for method, cells in _lists(bundle).items():
        rivals = _rivals(bundle, published, method)
        told = (_too_good(bundle, rivals, key, own) for key, own in cells.items())
        if (reason := next(filter(None, told), "")) or (labels == "none" and (reason := _knows_normals(bundle, cells))):
            yield f"{method}: {reason}"


def _too_good(bundle: Bundle, rivals: dict[str, Values], key: Key, own: NDArray[np.int64]) -> str:
    """The reason why the lists of a task are too good; empty if a published method comes near, or for few queries."""
    dataset, seed, rho = key
    qrels = bundle.qrels[dataset, seed]
    values = _ideal(own, qrels.query_labels, qrels.item_labels, qrels.item_levels <= rho)
    if len(values) < MIN_QUERIES or 1 - values.mean() > 1 / FEWER:
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
    """Methods far better on a dataset than any published one that reads no more labels."""
    for method in bundle.plan.methods:
        own = values_by_method(bundle.rows).get(method, {})
        queries = {key: len(bundle.qrels[key[0], key[1]].queries) for key in own}
        rivals = _rivals(bundle, published, method)
        yield from (f"{method}: {doubt}" for doubt in find_leaps(own, rivals, queries))


def find_leaps(own: Values, rivals: dict[str, Values], queries: dict[Key, int]) -> Iterator[str]:
    """Datasets and levels on which a method scores `HIGH` and its best rival far less.

    Args:
        own: scores of the method.
        rivals: scores by method; only methods with all tasks of a dataset and level count.
        queries: number of queries by task.
    """
    for dataset, rho in sorted({(key[0], key[2]) for key in own}):
        keys = [key for key in own if (key[0], key[2]) == (dataset, rho)]
        if sum(queries[key] for key in keys) < MIN_QUERIES:
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
    """Published methods that read no more labels than a method does, or its submission declares."""
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
    """The reason why a method seems to know normal windows: none among many wrong places; else empty."""
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
    """Published rows as a submission, which passes the same checks and stands in the same table."""
    folder = open_published(results.folder)
    plan = plan_of(results.manifest)
    rows = folder.read_scores()[1]
    manifest = state_run(results, Declared(name=OURS, authors="READ-Bench", trained_on=(), chosen_on=None), {})
    tasks = [(d, s) for d, s in plan.tasks() if f"{d}/seed-{s}" in results.manifest["tasks"]]
    return Bundle(manifest, plan, rows, pa.table({}), {task: folder.read_qrels(*task) for task in tasks})


COMPARED = "NDCG@10"
CLOSE = 0.01
"""Largest score difference of a task between machines, which may order nearly equal items differently."""


def rerun_sample(bundle: Bundle, tasks: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run each method again on `tasks` random tasks at all levels; returns differences, and what could not be run."""
    differing: list[str] = []
    missing: list[str] = []
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
    return tuple(differing), tuple(missing)


def _explain_missing(bundle: Bundle, method: str) -> str:
    """Why a method cannot be run here; empty if it can."""
    if method in bundle.manifest.models:
        return "it asks a language model"
    try:
        parse(method)
    except ReadbenchError as error:
        return f"it cannot be built here ({error}) Name its file: readbench --plugin FILE leaderboard --check"
    return ""


def _draw_tasks(bundle: Bundle, method: str, count: int) -> list[tuple[str, int]]:
    """Random tasks with scores; without a seed, so that nobody can predict them."""
    tasks = sorted({(row["dataset"], int(row["seed"])) for row in bundle.rows if _is_done(row, method)})
    chosen = np.random.default_rng().permutation(len(tasks))[:count]
    return [tasks[place] for place in sorted(chosen)]


def _is_done(row: dict[str, str], method: str) -> bool:
    return row["method"] == method and row["status"] == DONE


def _compare_task(bundle: Bundle, plan: Plan) -> tuple[list[str], list[str]]:
    """Differences of the scores of one method and task from the submission's, or why it could not be run."""
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
