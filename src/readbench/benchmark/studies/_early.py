"""Early retrieval: what a method knows 0, 1/16, 1/8, ... of a window after the onset, and when it would speak up.

The onsets of the held-out side are asked about as they grow (`readbench.benchmark.protocol.compose_onsets`), and so are
normal windows of that side. A method *answers* with a fault type and with how firm it is:

* one with an opinion: the likeliest type, and its probability; not firm where the window is called novel;
* any other: the type of the first hit, and how many of the first ten share it; equal ones by the score of the first
  hit. A normal window as the first hit is no answer.

It *gives notice* where it is firmer than all but 5 % of one half of the normal windows; the other half, of other
recordings, says how often it gives notice although nothing happened.

*After a detector* it is asked as `cases watch` asks: only about windows that depart from normal operation
(`readbench.engine.departures`, learned from the normals of the same asset at hand, or where those are too few, of all),
and it gives notice only where it is as firm as a watch wants it, `FIRM`. At most 5 % of the normal windows may be given
notice here, too: the detector's limit is the one that it states for that, and a higher firmness is asked for where more
than those pass both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import OnsetTask, build, build_onsets, compose_onsets, find_source
from readbench.benchmark.runs import (
    EVERY_LABEL,
    Executor,
    Plan,
    Setting,
    Setup,
    build_first,
    fingerprint_of,
    rank_level,
)
from readbench.benchmark.studies._study import Failure, Rows, SeededCell, Study, measure_results
from readbench.common.progress import SILENT, Progress, within
from readbench.common.provenance import Root
from readbench.common.times import DAY_S
from readbench.engine.departures import DepartureDetector
from readbench.engine.method import Method, Ranking
from readbench.engine.registry import METRICS
from readbench.engine.spec import parse
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError, UsageError

EARLY_METRICS = ("NDCG@10", "P@1")
FALSE_NOTICES = 0.05
"""Share of normal windows that may be given notice of a fault."""
FIRST = 10
"""Hits whose agreement says how firm a method without an opinion is."""
FEWEST_QUIET = 10
"""Normal windows that a threshold needs, and as many again to see what it does; without them no notice is counted."""
FIRM = 0.7
"""Probability, or share of the first hits, from which a watch takes a belief for firm."""
MOST_LEARNED = 400
"""Normal windows that a detector learns from."""
Way = Literal["asked", "after a detector"]
"""Whether a method is asked about all windows, or only about those that a detector finds to depart."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlyResult:
    """What a method said of O onsets at S shares of a window's length.

    Args:
        cell: where.
        rho: pollution level in percent.
        way: how notices come about; all else is the same.
        simulated: whether the source is.
        shares: (S,) ends of the windows after the onset.
        scores: (2, S, O) `EARLY_METRICS`.
        right: (S, O) whether the answer names the fault.
        notice: (S, O) whether it is firm; never where too few normal windows are at hand.
        false_notices: share of the normal windows, other than those of the threshold, that notice is given of; NaN
            where they are too few.
        quiet: how many these are.
        groups: (O,) recordings.
        faults: (O,) fault types.
    """

    cell: SeededCell
    rho: int
    way: Way
    simulated: bool
    shares: Floats
    scores: Floats
    right: NDArray[np.bool_]
    notice: NDArray[np.bool_]
    false_notices: float
    quiet: int
    groups: NDArray[np.str_]
    faults: NDArray[np.str_]

    @classmethod
    def of(cls, cell: SeededCell, row: dict[str, Any]) -> Self:
        """From a row that `measure_early` keeps."""
        return cls(
            cell,
            row["rho"],
            row["way"],
            find_source(cell.dataset).info.simulated,
            np.array(row["shares"]),
            np.array(row["scores"]),
            np.array(row["right"], bool),
            np.array(row["notice"], bool),
            float("nan") if row["false_notices"] is None else row["false_notices"],
            row["quiet"],
            np.array(row["groups"]),
            np.array(row["faults"]),
        )

    @property
    def first_right(self) -> Floats:
        """(O,) share of a window after which the first right and firm answer comes; infinite where none does."""
        return _first(self.right & self.notice, self.shares)

    @property
    def first_notice(self) -> Floats:
        """(O,) the same of the first firm answer, right or wrong."""
        return _first(self.notice, self.shares)

    @property
    def noticed_right(self) -> float:
        """Of the onsets that are given notice of, the share whose first notice names the fault."""
        told = self.notice.any(axis=0)
        first = self.notice.argmax(axis=0)
        return float(self.right[first, np.arange(len(first))][told].mean()) if told.any() else float("nan")


def _first(happens: NDArray[np.bool_], shares: Floats) -> Floats:
    return np.where(happens.any(axis=0), shares[happens.argmax(axis=0)], np.inf)


def measure_early(
    plan: Plan,
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[EarlyResult], Sequence[Failure]]:
    """Ask about growing windows; finished cells in the folder are kept.

    Args:
        plan: datasets, split seeds, levels and methods, all labels.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    if plan.labels != EVERY_LABEL:
        raise UsageError("Early retrieval knows all labels: leave out budgets.")
    setting, failures, usable = Setting.of(plan, out, root, cache), list[Failure](), list[str]()
    build_first(plan.datasets, setting, progress)
    for dataset in plan.datasets:
        try:
            build_onsets(find_source(dataset), setting.root, setting.cache, progress)
            usable.append(dataset)
        except (DataError, OSError) as error:
            failures.append(Failure(dataset, str(error)))
    cells = [SeededCell(name, method, seed) for method in plan.methods for name in usable for seed in plan.seeds]
    levels = tuple(plan.levels)
    identify = partial(identify_cell, setting=setting, levels=levels)
    measure = partial(measure_cell, setting=setting, levels=levels)
    results, failed = measure_results(Study(cells, identify, measure), EarlyResult.of, out, executor, progress)
    return results, (*failures, *failed)


@lru_cache(maxsize=2)
def _load(dataset: str, seed: int, setting: Setting) -> tuple[OnsetTask, Setup, NDArray[np.bool_] | None]:
    """The growing windows of a dataset, and which of them depart; the last ones stay in memory."""
    source = find_source(dataset)
    built = build(source, setting.root, setting.cache)
    onsets = build_onsets(source, setting.root, setting.cache)
    own = compose_onsets(built, onsets, seed=seed, settings=setting.composition)
    return own, Setup.of(own.task, setting.cache), find_departures(own)


def identify_cell(cell: SeededCell, setting: Setting, levels: tuple[int, ...]) -> str:
    """Fingerprint of the windows, and of a method on them."""
    own, setup, _ = _load(cell.dataset, cell.seed, setting)
    method = Method(cell.method)
    judges: list[Root] = [METRICS.get(name).factory for name in EARLY_METRICS]
    also = (setup.fingerprint, own.shares, own.onsets, own.calibrated.tolist(), levels, *method.content_keys)
    return fingerprint_of(rank_level, judge_early, find_departures, *judges, spec=method.spec, also=also)


def measure_cell(cell: SeededCell, progress: Progress, setting: Setting, levels: tuple[int, ...]) -> Rows:
    """In a worker: a row a level, and one more where a detector could be learned."""
    own, setup, departs = _load(cell.dataset, cell.seed, setting)
    method = setup.method(parse(cell.method), within(progress, "encoding"))
    return [row for rho in levels for row in judge_early(own, rho, rank_level(setup, method, rho), departs)]


def judge_early(own: OnsetTask, rho: int, ranking: Ranking, departs: NDArray[np.bool_] | None) -> Rows:
    """The rows of one level."""
    task, shares, onsets = own.task, len(own.shares), own.onsets
    growing, corpus = shares * onsets, task.corpus_at(rho).labels
    asked = task.queries.labels[:growing]
    values = evaluate(ranking.order[:growing], asked, corpus, EARLY_METRICS).values
    answers, firmness = read_answers(ranking, corpus)
    common = {
        "rho": rho,
        "shares": list(own.shares),
        "scores": [values[metric].reshape(shares, onsets).tolist() for metric in EARLY_METRICS],
        "right": (answers[:growing] == asked).reshape(shares, onsets).tolist(),
        "quiet": int((~own.calibrated).sum()),
        "groups": task.queries.groups[:onsets].tolist(),
        "faults": [task.queries.classes[label] for label in asked[:onsets]],
    }
    ways: dict[Way, Floats] = {"asked": firmness}
    if departs is not None:
        least = FIRM if ranking.opinions is not None else FIRM * FIRST
        ways["after a detector"] = np.where(departs & (firmness >= least), firmness, 0.0)
    return [common | {"way": way} | _give_notice(own, firm, growing) for way, firm in ways.items()]


def _give_notice(own: OnsetTask, firmness: Floats, growing: int) -> dict[str, Any]:
    quiet, calibrated = firmness[growing:], own.calibrated
    enough = min(calibrated.sum(), (~calibrated).sum()) >= FEWEST_QUIET
    threshold = set_threshold(quiet[calibrated]) if enough else np.inf
    return {
        "notice": (firmness[:growing] > threshold).reshape(len(own.shares), own.onsets).tolist(),
        "false_notices": float((quiet[~calibrated] > threshold).mean()) if enough else None,
    }


def find_departures(own: OnsetTask) -> NDArray[np.bool_] | None:
    """(Q,) which windows depart from normal operation; None where too little of that is known to learn it.

    A window whose channels no normals have is not watched, and so does not depart.
    """
    queries, normals = own.task.queries, own.task.normals
    known: dict[tuple[str, tuple[str, ...]], DepartureDetector | None] = {}
    found = np.zeros(len(queries), bool)
    for i, window in enumerate(queries):
        for asset in (window.asset, ""):
            key = asset, window.channels
            if key not in known:
                known[key] = _learn_normal(normals, *key, steps=window.values.shape[1])
            if detector := known[key]:
                found[i] = bool((detector.scores(window.values)[0] > 1.0).any())
                break
    return found if any(known.values()) else None


def _learn_normal(normals: WindowSet, asset: str, channels: tuple[str, ...], steps: int) -> DepartureDetector | None:
    """What is normal of an asset, or of all; None where that are too few windows."""
    chosen = [own for own in normals if own.channels == channels and asset in {"", own.asset}][:MOST_LEARNED]
    stated = FALSE_NOTICES * DAY_S / steps  # with a step of a second, a share of windows is so many a day
    try:
        return DepartureDetector.fit(
            [own.values for own in chosen], channels, window=steps, step_s=1.0, false_alarms_a_day=stated
        )
    except DataError:
        return None


def read_answers(ranking: Ranking, corpus: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
    """(Q,) fault types that a method names, and how firm it is, larger being firmer; 0 where it names none.

    Args:
        ranking: of Q queries.
        corpus: (N,) labels of the items.
    """
    if ranking.opinions is not None:
        answers = np.array([opinion.label for opinion in ranking.opinions], np.int32)
        firm = np.array([0.0 if opinion.novel else opinion.confidence for opinion in ranking.opinions])
    else:
        hits = corpus[ranking.order[:, :FIRST]]
        answers = hits[:, 0]
        best = np.take_along_axis(ranking.scores, ranking.order[:, :1], axis=1)[:, 0]
        firm = (hits == hits[:, :1]).sum(axis=1) + 0.5 + 0.5 * best / (1.0 + np.abs(best))  # equal ones by the score
    return answers, np.where(answers == NORMAL, 0.0, firm)


def set_threshold(quiet: Floats) -> float:
    """The least firmness that at most `FALSE_NOTICES` of quiet windows exceed; a new one exceeds it as rarely.

    >>> set_threshold(np.arange(100.0))
    95.0
    """
    allowed = int(FALSE_NOTICES * (len(quiet) + 1))
    return float(np.sort(quiet)[len(quiet) - allowed]) if allowed else float(quiet.max())
