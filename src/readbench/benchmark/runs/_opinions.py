"""How good opinions are: whether stated certainty holds, prediction sets cover the truth, and new faults are noticed.

A new fault is one that the corpus has never seen: a whole fault type is taken out of it, encoders are fitted on what is
left, and the queries of that type are compared with all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.common.calibration import auroc, coverage, expected_calibration_error, false_alarm_rate
from readbench.common.progress import SILENT, Progress
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.rerankers import Opinion
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import VectorFolder, VectorStore
from readbench.engine.windows import NORMAL
from readbench.errors import UsageError


@dataclass(frozen=True, eq=False)
class TaskOpinions:
    """Opinions on all queries of a task, and the truth.

    Args:
        labels: (Q,) true fault types.
        opinions: one a query.
    """

    labels: NDArray[np.int32]
    opinions: list[Opinion]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(Q,) probability of the most likely fault type."""
        return np.array([opinion.confidence for opinion in self.opinions])

    @property
    def correct(self) -> NDArray[np.bool_]:
        """(Q,) whether the most likely fault type is the true one."""
        return np.array([opinion.label for opinion in self.opinions]) == self.labels

    @property
    def truth(self) -> NDArray[np.float64]:
        """(Q,) probability of the true fault type; 0 where no case has it."""
        pairs = zip(self.opinions, self.labels, strict=True)
        return np.array([opinion.posterior[opinion.classes == label].sum() for opinion, label in pairs])

    @property
    def strangeness(self) -> NDArray[np.float64]:
        """(Q,) strangeness."""
        return np.array([opinion.strangeness for opinion in self.opinions])


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
        accuracy=float(answers.correct.mean()),
        ece=expected_calibration_error(answers.confidence, answers.correct),
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
