"""A sample of a submission, computed again: lists that were not made by the method that they name give other scores.

A method can be run again where it is in the grammar here: its parts are the package's or come from a plug-in that was
named, it asks no language model, and its data are here. Nothing can be said of others: they are not reproduced.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from readbench.benchmark.report._bundle import Bundle
from readbench.benchmark.runs import DONE, Plan, open_folder, run
from readbench.engine.spec import build_source, parse
from readbench.errors import ReadbenchError

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
