"""Opinions on the fault type: calibration, prediction sets, and whether faults that the corpus lacks are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.benchmark.report import ReportTable, draw_curve
from readbench.benchmark.runs import OPINION, StatedProbabilities, TaskOpinions, datasets_at_hand
from readbench.common.calibration import (
    auroc,
    coverage,
    detection_rate,
    expected_calibration_error,
    false_alarm_rate,
)
from readbench.common.plots import METHOD_COLOURS, NORMAL_GREY, REFERENCE_GREY
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import Method
from readbench.engine.parameters import Parameter
from readbench.engine.preparation import ChannelStats
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import VectorFolder, VectorStore
from readbench.engine.windows import NORMAL
from readbench.errors import UsageError
from readbench.studies._study import (
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    count_seeds,
    depends_on_task,
    draw_panels,
    group_by,
    mark_origins,
    tell,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
QUERIES = 1000
"""Most queries of a task: with the hundred of a run, chance alone makes a large calibration error."""
COLUMNS = ("accuracy", "ECE", "floor", "coverage", "set size", "alarms", "AUROC", "FPR95")
"""Headings of the fields of `Quality`, in order; ECE is followed by what honest probabilities would show."""
RATES = np.linspace(0.0, 1.0, 201)
"""False-alarm rates at which curves are averaged."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How well queries of one fault type that the corpus lacks are told from the others.

    Args:
        fault: name of the type.
        novel: strangeness of its queries.
        known: strangeness of the others.
    """

    fault: str
    novel: Floats
    known: Floats

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


@dataclass(frozen=True, eq=False)
class OpinionQuality(Measured):
    """The opinions of one method on one task at one level, what they are worth, and the fault types held out."""

    answers: StatedProbabilities
    quality: Quality
    held_out: tuple[HeldOut, ...] = ()

    @classmethod
    def of(cls, cell: StudyCell, row: Row) -> Self:
        """From a row."""
        stated = StatedProbabilities(*(np.array(row[name]) for name in OPINION))
        held_out = [HeldOut(own["fault"], np.array(own["novel"]), np.array(own["known"])) for own in row["held_out"]]
        return cls(cell, stated, Quality(**row["quality"]), tuple(held_out))


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


def check_methods(grid: Grid) -> Grid:
    """The grid, where its methods have opinions."""
    for method in grid.methods:
        require_opinions(method)
    return grid


def compose_tasks(grid: Grid) -> Grid:
    """The grid, where its methods have opinions, with many queries and splits as the setting says."""
    return check_methods(grid).composed(query_cap=QUERIES, split_by=grid["split_by"])


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row: what was stated, what it is worth, and how strange the fault types held out were."""
    asked = grid.task(cell), cell.rho, require_opinions(cell.method).spec, grid.setting().cache
    answers = form_opinions(*asked, within(progress, "encoding"))
    held_out = novel_faults(*asked, within(progress, "encoding")) if grid["novelty"] else []
    stated = {name: getattr(answers.stated, name).tolist() for name in OPINION}
    kept = [{"fault": own.fault, "novel": own.novel.tolist(), "known": own.known.tolist()} for own in held_out]
    return [stated | {"quality": asdict(quality(answers, held_out)), "held_out": kept}]


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The task, and whether fault types are held out."""
    return depends_on_task(cell, grid), grid["novelty"]


def quality(answers: TaskOpinions, held_out: list[HeldOut]) -> Quality:
    """Figures of the opinions on one task."""
    sets = [opinion.candidates for opinion in answers.opinions]
    return Quality(
        accuracy=float(answers.stated.correct.mean()),
        ece=expected_calibration_error(answers.stated.confidence, answers.stated.correct),
        coverage=coverage(sets, answers.labels),
        set_size=float(np.mean([len(own) for own in sets])),
        alarms=float(np.mean([opinion.novel for opinion in answers.opinions])),
        auroc=_mean_of([fault.auroc for fault in held_out]),
        false_alarms=_mean_of([fault.false_alarms for fault in held_out]),
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


def _mean_of(values: Sequence[float]) -> float:
    """Of what is known; NaN where nothing is."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def opinion_table(measured: Sequence[OpinionQuality]) -> ReportTable:
    """One row a dataset and level, its mean over the seeds; below, the mean over the datasets of each level."""
    by_dataset = group_by(lambda one: one.cell.dataset, measured)
    names, mean = mark_origins(by_dataset)
    rows, means = [], []
    for rho in sorted({one.cell.rho for one in measured}):
        blocks = [[one for one in own if one.cell.rho == rho] for own in by_dataset.values()]
        figures = {name: _figures(own) for name, own in zip(names, blocks, strict=True) if own}
        rows += [[name, str(rho), *tell(line, "-")] for name, line in figures.items()]
        if 1 < len(figures) == len(names):
            means.append([mean, str(rho), *tell(map(_mean_of, zip(*figures.values(), strict=True)), "-")])
    caption = f"Opinions of {measured[0].cell.method}, mean over {count_seeds(measured)}"
    caption += "; ECE, and its floor for honest probabilities, of the queries of all seeds together"
    return ReportTable("opinions", caption, ["Dataset", "ρ", *COLUMNS], rows + means)


def _figures(measured: Sequence[OpinionQuality]) -> list[float]:
    accuracy, _, *others = map(_mean_of, zip(*(astuple(one.quality) for one in measured), strict=True))
    stated = StatedProbabilities.together(one.answers for one in measured)
    return [accuracy, expected_calibration_error(stated.confidence, stated.correct), stated.floor, *others]


def novelty_table(measured: Sequence[OpinionQuality]) -> ReportTable | None:
    """One row a dataset, level and fault type held out, means over the seeds in which it has queries."""
    held_out = [(one.cell, held) for one in measured for held in one.held_out]
    rows = []
    for (dataset, rho, fault), own in group_by(lambda pair: (*_place(pair[0]), pair[1].fault), held_out).items():
        figures = [np.mean([one.auroc for _, one in own]), np.mean([one.false_alarms for _, one in own])]
        queries = sum(len(one.novel) for _, one in own)
        rows.append([*mark_origins([dataset])[0], fault, str(rho), str(queries), *tell(figures)])
    caption = f"Fault types held out of the corpus of {measured[0].cell.method}: are their queries called new?"
    header = ["Dataset", "Held out", "ρ", "queries", "AUROC", "FPR95"]
    return ReportTable("novelty", caption, header, rows) if rows else None


def _place(cell: StudyCell) -> tuple[str, int]:
    return cell.dataset, cell.rho


def draw_reliability(measured: Sequence[OpinionQuality]) -> Figure:
    """Stated against real certainty at the lowest level: one panel a dataset, and one for all of them together."""
    rho, chosen = _at_lowest_level(measured)
    parts = {dataset: [one.answers for one in own] for dataset, own in chosen.items()}
    if len(parts) > 1:
        parts["all"] = [answers for own in parts.values() for answers in own]
    title = f"Reliability at ρ={rho}%, queries of all split seeds together"
    return draw_panels(parts, _draw_reliability, (2.5, 2.5), title, ("stated probability", "share of right answers"))


def _draw_reliability(axis: Axes, title: str, answers: Sequence[StatedProbabilities]) -> None:
    curve = StatedProbabilities.together(answers).curve
    draw_curve(axis, f"{title}: ECE {curve.error:.3f}", curve)


def _at_lowest_level(measured: Sequence[OpinionQuality]) -> tuple[int, dict[str, list[OpinionQuality]]]:
    """That level, and its results by dataset."""
    rho = min(one.cell.rho for one in measured)
    return rho, group_by(lambda one: one.cell.dataset, (one for one in measured if one.cell.rho == rho))


def draw_novelty(measured: Sequence[OpinionQuality]) -> Figure | None:
    """Detection over false alarms at the lowest level: a panel a dataset; None where nothing could be held out.

    Thin lines are fault types, the thick one is their mean.
    """
    rho, chosen = _at_lowest_level(measured)
    panels = {dataset: [held for one in own for held in one.held_out] for dataset, own in chosen.items()}
    panels = {dataset: held for dataset, held in panels.items() if held}
    if not panels:
        return None
    labels = "share of known faults called new", "share of new faults found"
    return draw_panels(panels, draw_detection, (2.5, 2.6), f"New faults at ρ={rho}%: types held out, and mean", labels)


def draw_detection(axis: Axes, title: str, held_out: Sequence[HeldOut]) -> None:
    """The curves of one dataset; the dashed line is chance."""
    curves = np.array([detection_rate(one.novel, one.known, RATES) for one in held_out])
    axis.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    for curve in curves:
        axis.step(RATES, curve, where="post", color=NORMAL_GREY, linewidth=0.5, alpha=0.5, zorder=2)
    axis.step(RATES, curves.mean(axis=0), where="post", color=METHOD_COLOURS[0], linewidth=2.0, zorder=3)
    axis.set_title(f"{title}: AUROC {np.mean([one.auroc for one in held_out]):.2f}", fontweight="bold")
    axis.set_xlim(0, 1.01)
    axis.set_ylim(0, 1.01)
    axis.set_aspect("equal")


STUDIES.register(
    Study(
        name="opinions",
        aliases=("novel",),
        summary="Calibration and prediction sets of opinions on the fault type, and whether new faults are noticed.",
        measure=measure_cell,
        depends=depends_on,
        complete=compose_tasks,
        result=OpinionQuality,
        tables=(opinion_table, novelty_table),
        figures={"reliability": draw_reliability, "novelty": draw_novelty},
        datasets=datasets_at_hand,
        methods=("flagship",),
        single=("methods",),
        settings=(
            Parameter("split_by", str, "group", choices=("group", "asset")),
            Parameter("novelty", bool, default=True),
        ),
    )
)
