"""Opinions on the fault type: calibration, prediction sets, and whether faults that the corpus lacks are noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.benchmark.report import MARKS, ReportTable, count_origins, draw_curve, find_origins
from readbench.benchmark.runs import (
    OPINION,
    Setting,
    StatedProbabilities,
    TaskOpinions,
    datasets_at_hand,
    load_cell_task,
)
from readbench.common.calibration import (
    Reliability,
    auroc,
    coverage,
    detection_rate,
    expected_calibration_error,
    false_alarm_rate,
)
from readbench.common.plots import METHOD_COLOURS, NORMAL_GREY, REFERENCE_GREY, entitle, with_style
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import Method
from readbench.engine.parameters import Parameter
from readbench.engine.preparation import ChannelStats
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import VectorFolder, VectorStore
from readbench.engine.windows import NORMAL
from readbench.errors import UsageError
from readbench.studies._study import STUDIES, Grid, Row, Study, StudyCell, make_panels, once

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
class OpinionQuality:
    """The opinions of one method on one task at one level, what they are worth, and the fault types held out."""

    cell: StudyCell
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


def split_at(dataset: str, method: str, grid: Grid) -> list[StudyCell]:
    """A cell a seed and level, of splits as the setting says."""
    seeds = grid.seeds_of(dataset, grid["split_by"])
    return [StudyCell(dataset, method, seed, rho) for seed in seeds for rho in grid.levels]


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row: what was stated, what it is worth, and how strange the fault types held out were."""
    setting = _setting(grid)
    task, _ = load_cell_task(cell.dataset, cell.seed, setting)
    spec, encoding = require_opinions(cell.method).spec, within(progress, "encoding")
    answers = form_opinions(task, cell.rho, spec, setting.cache, encoding)
    held_out = novel_faults(task, cell.rho, spec, setting.cache, encoding) if grid["novelty"] else []
    stated = {name: getattr(answers.stated, name).tolist() for name in OPINION}
    kept = [{"fault": own.fault, "novel": own.novel.tolist(), "known": own.known.tolist()} for own in held_out]
    return [stated | {"quality": asdict(quality(answers, held_out)), "held_out": kept}]


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The task, and whether fault types are held out."""
    return load_cell_task(cell.dataset, cell.seed, _setting(grid))[1], grid["novelty"]


def _setting(grid: Grid) -> Setting:
    return grid.setting(query_cap=QUERIES, split_by=grid["split_by"])


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
    levels = sorted({one.cell.rho for one in measured})
    datasets = once(one.cell.dataset for one in measured)
    origins = find_origins(datasets)
    rows, means = [], []
    for rho in levels:
        own = [_figures(measured, dataset, rho) for dataset in datasets]
        rows += [[d + MARKS[origins[d]], str(rho), *map(_number, line)] for d, line in zip(datasets, own, strict=True)]
        means.append(
            [
                f"mean of {count_origins(origins.values())}",
                str(rho),
                *(_number(_mean_of(column)) for column in zip(*own, strict=True)),
            ]
        )
    seeds = len({one.cell.seed for one in measured})
    caption = f"Opinions of {measured[0].cell.method}, mean over {seeds} split seed{'s' if seeds > 1 else ''}"
    caption += "; ECE, and its floor for honest probabilities, of the queries of all seeds together"
    return ReportTable("opinions", caption, ["Dataset", "ρ", *COLUMNS], rows + (means if len(datasets) > 1 else []))


def _figures(measured: Sequence[OpinionQuality], dataset: str, rho: int) -> list[float]:
    own = [one for one in measured if (one.cell.dataset, one.cell.rho) == (dataset, rho)]
    accuracy, _, *others = map(_mean_of, zip(*(astuple(one.quality) for one in own), strict=True))
    stated = StatedProbabilities.together(one.answers for one in own)
    return [accuracy, expected_calibration_error(stated.confidence, stated.correct), stated.floor, *others]


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def novelty_table(measured: Sequence[OpinionQuality]) -> ReportTable:
    """One row a dataset, level and fault type held out, means over the seeds in which it has queries."""
    rows = []
    origins = find_origins({one.cell.dataset for one in measured})
    for (dataset, rho, fault), own in _by_fault(measured).items():
        figures = [np.mean([one.auroc for one in own]), np.mean([one.false_alarms for one in own])]
        queries = sum(len(one.novel) for one in own)
        name = dataset + MARKS[origins[dataset]]
        rows.append([name, fault, str(rho), str(queries), *(f"{value:.3f}" for value in figures)])
    caption = f"Fault types held out of the corpus of {measured[0].cell.method}: are their queries called new?"
    return ReportTable("novelty", caption, ["Dataset", "Held out", "ρ", "queries", "AUROC", "FPR95"], rows)


def _by_fault(measured: Sequence[OpinionQuality]) -> dict[tuple[str, int, str], list[HeldOut]]:
    found: dict[tuple[str, int, str], list[HeldOut]] = {}
    for one in measured:
        for held in one.held_out:
            found.setdefault((one.cell.dataset, one.cell.rho, held.fault), []).append(held)
    return found


@with_style
def draw_reliability(measured: Sequence[OpinionQuality]) -> Figure:
    """Stated against real certainty at the lowest level: one panel a dataset, and one for all of them together."""
    rho = min(one.cell.rho for one in measured)
    curves = _curves([one for one in measured if one.cell.rho == rho])
    figure, axes = make_panels(len(curves), 2.5, 2.5)
    for axis, (title, curve) in zip(axes, curves.items(), strict=True):
        draw_curve(axis, f"{title}: ECE {curve.error:.3f}", curve)
    entitle(figure, f"Reliability at ρ={rho}%, queries of all split seeds together")
    figure.supxlabel("stated probability", fontsize=9)
    figure.supylabel("share of right answers", fontsize=9)
    return figure


def _curves(measured: Sequence[OpinionQuality]) -> dict[str, Reliability]:
    """Curves by title: of each dataset over all seeds, and of all where there are several."""
    by_dataset: dict[str, list[StatedProbabilities]] = {}
    for one in measured:
        by_dataset.setdefault(one.cell.dataset, []).append(one.answers)
    if len(by_dataset) > 1:
        by_dataset["all"] = [one.answers for one in measured]
    return {title: StatedProbabilities.together(own).curve for title, own in by_dataset.items()}


@with_style
def draw_novelty(measured: Sequence[OpinionQuality]) -> Figure | None:
    """Detection over false alarms at the lowest level: a panel a dataset; None where nothing could be held out.

    Thin lines are fault types, the thick one is their mean.
    """
    rho = min(one.cell.rho for one in measured)
    panels: dict[str, list[HeldOut]] = {}
    for one in measured:
        if one.cell.rho == rho and one.held_out:
            panels.setdefault(one.cell.dataset, []).extend(one.held_out)
    if not panels:
        return None
    figure, axes = make_panels(len(panels), 2.5, 2.6)
    for axis, (dataset, own) in zip(axes, panels.items(), strict=True):
        draw_detection(axis, dataset, own)
    entitle(figure, f"New faults at ρ={rho}%: types held out, and mean")
    figure.supxlabel("share of known faults called new", fontsize=9)
    figure.supylabel("share of new faults found", fontsize=9)
    return figure


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


def show_tables(measured: Sequence[OpinionQuality]) -> list[ReportTable]:
    """Opinions, and novelty where fault types were held out."""
    held_out = [novelty_table(measured)] if any(one.held_out for one in measured) else []
    return [opinion_table(measured), *held_out]


def draw_figures(measured: Sequence[OpinionQuality]) -> Mapping[str, Figure | None]:
    """The reliability diagram and the detection curves."""
    return {"reliability": draw_reliability(measured), "novelty": draw_novelty(measured)}


STUDIES.register(
    Study(
        name="opinions",
        aliases=("novel",),
        summary="Calibration and prediction sets of opinions on the fault type, and whether new faults are noticed.",
        measure=measure_cell,
        depends=depends_on,
        cells=split_at,
        complete=check_methods,
        read=OpinionQuality.of,
        tables=show_tables,
        figures=draw_figures,
        datasets=datasets_at_hand,
        methods=("flagship",),
        single=("methods",),
        settings=(
            Parameter("split_by", str, "group", choices=("group", "asset")),
            Parameter("novelty", bool, default=True),
        ),
    )
)
