"""The study of opinions: calibration, prediction sets, and whether faults that the corpus lacks are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.benchmark.runs import (
    EVERY_LABEL,
    OPINION,
    Cell,
    Executor,
    Plan,
    Setting,
    StatedProbabilities,
    TaskOpinions,
    build_first,
    fingerprint_of,
    load_cell_task,
    take_once,
)
from readbench.benchmark.studies._study import Failure, Rows, Study, measure_results
from readbench.common.calibration import auroc, coverage, expected_calibration_error, false_alarm_rate
from readbench.common.progress import SILENT, Progress, within
from readbench.common.provenance import Root
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import VectorFolder, VectorStore
from readbench.engine.windows import NORMAL
from readbench.errors import UsageError

QUERIES = 1000
"""Most queries of a task: with the hundred of a run, chance alone makes a large calibration error."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How well queries of one fault type that the corpus lacks are told from the others.

    Args:
        fault: name of the type.
        novel: strangeness of its queries.
        known: strangeness of the others.
    """

    fault: str
    novel: NDArray[np.float64]
    known: NDArray[np.float64]

    @property
    def auroc(self) -> float:
        """Probability that a query of this type is stranger than another one."""
        return auroc(self.novel, self.known)

    @property
    def false_alarms(self) -> float:
        """Share of the others alarmed at a threshold that finds 95 % of this type."""
        return false_alarm_rate(self.novel, self.known)


@dataclass(frozen=True)
class Quality:
    """What opinions on one task are worth.

    Args:
        accuracy: share of queries whose most likely fault type is the true one.
        ece: expected calibration error of its probability, 15 bins of equal mass.
        coverage: share of prediction sets that hold the true fault type.
        set_size: mean size of the sets.
        alarms: share of queries called novel although the corpus has their fault type.
        auroc: of fault types held out, mean over the types; NaN where there is only one.
        false_alarms: share of known queries alarmed at a threshold that finds 95 % of the novel ones, likewise.
    """

    accuracy: float
    ece: float
    coverage: float
    set_size: float
    alarms: float
    auroc: float
    false_alarms: float


def quality(answers: TaskOpinions, held_out: list[HeldOut]) -> Quality:
    """Figures of the opinions on one task."""
    sets = [opinion.candidates for opinion in answers.opinions]
    return Quality(
        accuracy=float(answers.stated.correct.mean()),
        ece=expected_calibration_error(answers.stated.confidence, answers.stated.correct),
        coverage=coverage(sets, answers.labels),
        set_size=float(np.mean([len(own) for own in sets])),
        alarms=float(np.mean([opinion.novel for opinion in answers.opinions])),
        auroc=_mean([fault.auroc for fault in held_out]),
        false_alarms=_mean([fault.false_alarms for fault in held_out]),
    )


def form_opinions(task: Task, rho: int, method: MethodSpec, cache: Path, progress: Progress = SILENT) -> TaskOpinions:
    """Opinions of a method on the queries of a task, from all labels of the corpus at one level.

    Args:
        task: with all labels.
        rho: pollution level in percent.
        method: one that ends with `+verdict`.
        cache: cache root.
        progress: told how far encodings have come.
    """
    own = require_opinions(method, VectorFolder(cache), progress)
    said = own.fit(task.corpus_at(rho), task.normals).ask(task.queries).opinions()
    if said is None:
        raise UsageError(f"{method} has nothing to learn from: no case of {task.info.name} has a label.")
    return TaskOpinions(task.queries.labels, said)


def novel_faults(task: Task, rho: int, method: MethodSpec, cache: Path, progress: Progress = SILENT) -> list[HeldOut]:
    """Each fault type with queries held out of the corpus in turn; arguments as of `form_opinions`."""
    found = []
    for label in held_out_faults(task):
        answers = form_opinions(leave_out_fault(task, label), rho, method, cache, progress)
        novel = answers.labels == label
        found.append(HeldOut(task.corpus.classes[label], answers.strangeness[novel], answers.strangeness[~novel]))
    return found


def held_out_faults(task: Task) -> list[int]:
    """Labels of the fault types that can be held out: those of queries, where others are left to compare with."""
    asked: list[int] = np.unique(task.queries.labels).tolist()
    return asked if len(asked) > 1 else []


def leave_out_fault(task: Task, label: int) -> Task:
    """The task with a corpus that has never seen a fault type; channels are scaled by the faults that are left."""
    kept = task.corpus.labels != label
    place = np.cumsum(kept) - 1
    corpus = task.corpus[np.flatnonzero(kept)]
    return replace(
        task,
        corpus=corpus.with_stats(ChannelStats.of(corpus[corpus.labels > NORMAL])),
        levels={rho: place[items[kept[items]]] for rho, items in task.levels.items()},
    )


def require_opinions(
    method: MethodSpec | str, vectors: VectorStore | None = None, progress: Progress = SILENT
) -> Method:
    """A method that forms opinions from the whole corpus, or an error that says how to write one."""
    own = Method(method, vectors=vectors, progress=progress)
    if own.opinion_former is None:
        raise UsageError(
            f"{own} has no opinion on the fault type: end the method with +verdict, over the whole corpus"
            " (without pool=)."
        )
    return own


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


@dataclass(frozen=True, eq=False)
class OpinionQuality:
    """The opinions of one method on one task at one level, what they are worth, and the fault types held out."""

    cell: Cell
    answers: StatedProbabilities
    quality: Quality
    held_out: tuple[HeldOut, ...] = ()

    @classmethod
    def of(cls, cell: Cell, row: dict[str, Any]) -> Self:
        """From the row that `measure_opinions` keeps."""
        stated = StatedProbabilities(*(np.array(row[name]) for name in OPINION))
        held_out = [HeldOut(own["fault"], np.array(own["novel"]), np.array(own["known"])) for own in row["held_out"]]
        return cls(cell, stated, Quality(**row["quality"]), tuple(held_out))


def measure_opinions(
    plan: Plan,
    out: Path,
    *,
    novelty: bool = True,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[OpinionQuality], Sequence[Failure]]:
    """Measure the opinions of the one method of a plan; finished cells in the folder are kept.

    Args:
        plan: datasets, split seeds and levels, one method, all labels.
        out: folder of the study.
        novelty: hold out fault types too, with a fit for each of them.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    if len(plan.methods) != 1 or plan.labels != EVERY_LABEL:
        raise UsageError("Opinions are measured for one method with all labels: give one --methods, no label budget.")
    require_opinions(plan.methods[0])
    own = Setting.of(plan, out, root, cache)
    setting = replace(own, composition=replace(plan.composition, query_cap=QUERIES))
    build_first(plan.datasets, setting, progress)
    identify = partial(identify_cell, setting=setting, roots=(form_opinions, novel_faults, quality), also=novelty)
    measure = partial(measure_cell, setting=setting, novelty=novelty)
    cells = list(take_once(plan, setting).cells())
    return measure_results(Study(cells, identify, measure), OpinionQuality.of, out, executor, progress)


def identify_cell(cell: Cell, setting: Setting, roots: tuple[Root, ...], also: object = None) -> str:
    """Fingerprint of a method on a task at one level, measured by some functions."""
    _, task = load_cell_task(cell.dataset, cell.seed, setting)
    method = require_opinions(cell.method)
    return fingerprint_of(*roots, spec=method.spec, also=(task, cell.rho, *method.content_keys, also))


def measure_cell(cell: Cell, progress: Progress, setting: Setting, *, novelty: bool) -> Rows:
    """In a worker: one row with what was stated, what it is worth, and how strange the fault types held out were."""
    task, _ = load_cell_task(cell.dataset, cell.seed, setting)
    spec, encoding = require_opinions(cell.method).spec, within(progress, "encoding")
    answers = form_opinions(task, cell.rho, spec, setting.cache, encoding)
    held_out = novel_faults(task, cell.rho, spec, setting.cache, encoding) if novelty else []
    stated = {name: getattr(answers.stated, name).tolist() for name in OPINION}
    kept = [{"fault": own.fault, "novel": own.novel.tolist(), "known": own.known.tolist()} for own in held_out]
    return [stated | {"quality": asdict(quality(answers, held_out)), "held_out": kept}]
