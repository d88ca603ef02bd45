"""Reports of opinions, of novelty and of active learning, each as a table and as a picture.

* Opinions: what they are worth, and a reliability diagram.
* Novelty: whether faults that the corpus lacks are noticed; fault types are held out in turn.
* Active learning: what an order of labelling is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np

from readbench.benchmark.metrics import ConfidenceInterval, mean_interval
from readbench.benchmark.report._origins import MARKS, count_origins, find_origins
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import StatedProbabilities
from readbench.benchmark.studies import LEARNING_METRIC, RANDOM, TELLING, HeldOut, LearningCurve, OpinionQuality
from readbench.common.calibration import Reliability, detection_rate, expected_calibration_error
from readbench.common.plots import (
    METHOD_COLOURS,
    NORMAL_GREY,
    REFERENCE_GREY,
    STYLE,
    Line,
    entitle,
    lines,
    sheet,
    with_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMNS = ("accuracy", "ECE", "floor", "coverage", "set size", "alarms", "AUROC", "FPR95")
"""Headings of the fields of `Quality`, in order; ECE is followed by what honest probabilities would show."""
LARGEST_MARK = 36.0


def opinion_table(measured: Sequence[OpinionQuality]) -> ReportTable:
    """One row a dataset and level, its mean over the seeds; below, the mean over the datasets of each level."""
    levels = sorted({one.cell.rho for one in measured})
    datasets = list(dict.fromkeys(one.cell.dataset for one in measured))
    origins = find_origins(datasets)
    rows, means = [], []
    for rho in levels:
        own = [_figures(measured, dataset, rho) for dataset in datasets]
        rows += [[d + MARKS[origins[d]], str(rho), *map(_number, line)] for d, line in zip(datasets, own, strict=True)]
        means.append([f"mean of {count_origins(origins.values())}", str(rho), *map(_number, _mean(own))])
    seeds = len({one.cell.seed for one in measured})
    caption = f"Opinions of {measured[0].cell.method}, mean over {seeds} split seed{'s' if seeds > 1 else ''}"
    caption += "; ECE, and its floor for honest probabilities, of the queries of all seeds together"
    return ReportTable("opinions", caption, ["Dataset", "ρ", *COLUMNS], rows + (means if len(datasets) > 1 else []))


@with_style
def draw_reliability(measured: Sequence[OpinionQuality]) -> Figure:
    """Stated against real certainty at the lowest level: one panel a dataset, and one for all of them together."""
    rho = min(one.cell.rho for one in measured)
    curves = _curves([one for one in measured if one.cell.rho == rho])
    columns = min(4, len(curves))
    rows = -(-len(curves) // columns)
    figure = sheet(2.5 * columns + 0.4, 2.5 * rows + 0.6)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for axis, (title, curve) in zip(axes, curves.items(), strict=False):
        draw_curve(axis, f"{title}: ECE {curve.error:.3f}", curve)
    for axis in axes[len(curves) :]:
        axis.set_axis_off()
    entitle(figure, f"Reliability at ρ={rho}%, queries of all split seeds together")
    figure.supxlabel("stated probability", fontsize=9)
    figure.supylabel("share of right answers", fontsize=9)
    return figure


def draw_curve(axis: Axes, title: str, curve: Reliability) -> None:
    """One reliability curve: marks grow with the number of answers, the dashed line is honesty."""
    axis.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    axis.plot(curve.confidence, curve.accuracy, color=METHOD_COLOURS[0], linewidth=1.4, zorder=2)
    sizes = LARGEST_MARK * curve.count / curve.count.max()
    axis.scatter(curve.confidence, curve.accuracy, s=sizes, color=METHOD_COLOURS[0], alpha=0.75, linewidth=0, zorder=3)
    axis.set_title(title, fontweight="bold")
    axis.set_xlim(0, 1.03)
    axis.set_ylim(-0.03, 1.03)
    axis.set_aspect("equal")


def _curves(measured: Sequence[OpinionQuality]) -> dict[str, Reliability]:
    """Curves by title: of each dataset over all seeds, and of all where there are several."""
    by_dataset: dict[str, list[StatedProbabilities]] = {}
    for one in measured:
        by_dataset.setdefault(one.cell.dataset, []).append(one.answers)
    if len(by_dataset) > 1:
        by_dataset["all"] = [one.answers for one in measured]
    return {title: StatedProbabilities.together(own).curve for title, own in by_dataset.items()}


def _figures(measured: Sequence[OpinionQuality], dataset: str, rho: int) -> list[float]:
    own = [one for one in measured if (one.cell.dataset, one.cell.rho) == (dataset, rho)]
    accuracy, _, *others = _mean([list(astuple(one.quality)) for one in own])
    stated = StatedProbabilities.together(one.answers for one in own)
    return [accuracy, expected_calibration_error(stated.confidence, stated.correct), stated.floor, *others]


def _mean(rows: list[list[float]]) -> list[float]:
    """Column means of what is known; NaN where nothing is."""
    columns = [[value for value in column if not np.isnan(value)] for column in zip(*rows, strict=True)]
    return [float(np.mean(known)) if known else float("nan") for known in columns]


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


RATES = np.linspace(0.0, 1.0, 201)
"""False-alarm rates at which curves are averaged."""


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


def draw_novelty(measured: Sequence[OpinionQuality]) -> Figure | None:
    """Detection over false alarms at the lowest level: a panel a dataset; None where nothing could be held out.

    Thin lines are fault types, the thick one is their mean.
    """
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    rho = min(one.cell.rho for one in measured)
    panels: dict[str, list[HeldOut]] = {}
    for one in measured:
        if one.cell.rho == rho and one.held_out:
            panels.setdefault(one.cell.dataset, []).extend(one.held_out)
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.5 * columns + 0.4, 2.6 * rows + 0.7), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
        for axis, (dataset, own) in zip(axes, panels.items(), strict=False):
            draw_detection(axis, dataset, own)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        title = f"New faults at ρ={rho}%: types held out, and mean"
        figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
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


def _by_fault(measured: Sequence[OpinionQuality]) -> dict[tuple[str, int, str], list[HeldOut]]:
    found: dict[tuple[str, int, str], list[HeldOut]] = {}
    for one in measured:
        for held in one.held_out:
            found.setdefault((one.cell.dataset, one.cell.rho, held.fault), []).append(held)
    return found


COLOURS = {TELLING: METHOD_COLOURS[0], RANDOM: REFERENCE_GREY}
RESAMPLES = 2000


def active_table(lessons: Sequence[LearningCurve]) -> ReportTable:
    """One row a dataset and order, its mean over the seeds; below, the means over the datasets."""
    counts = common_counts(lessons)
    datasets = list(dict.fromkeys(one.cell.dataset for one in lessons))
    origins = find_origins(datasets)
    rows = [
        [
            dataset + MARKS[origins[dataset]],
            order,
            *(f"{i.mean:.3f}" for i in _intervals([x for x in lessons if x.cell.dataset == dataset], order)),
        ]
        for dataset in datasets
        for order in COLOURS
    ]
    if len(datasets) > 1:
        mean = f"mean of {count_origins(origins.values())}"
        rows += [[mean, order, *(f"{i.mean:.3f}" for i in _intervals(lessons, order))] for order in COLOURS]
    return ReportTable("active", _caption(lessons), ["Dataset", "Order", *map(str, counts)], rows)


def draw_active(lessons: Sequence[LearningCurve]) -> Figure:
    """Both orders over the number of labels, mean over the datasets, bands being intervals over recordings."""
    drawn = []
    for order, colour in COLOURS.items():
        found = _intervals(lessons, order)
        band = np.array([[i.low for i in found], [i.high for i in found]])
        drawn.append(Line(order, np.array([i.mean for i in found]), colour, reference=order == RANDOM, band=band))
    ticks = [str(count) for count in common_counts(lessons)]
    return lines(
        drawn, ticks, ("labelled cases", LEARNING_METRIC), _caption(lessons), "bands: 95 % intervals over recordings"
    )


def common_counts(lessons: Sequence[LearningCurve]) -> list[int]:
    """Numbers of labels that every corpus has."""
    return sorted(set.intersection(*(set(one.learned.counts) for one in lessons)))


def _intervals(lessons: Sequence[LearningCurve], order: str) -> list[ConfidenceInterval]:
    """Mean over datasets of the queries of all seeds, after each number of labels."""
    strata = [one.cell.dataset for one in lessons for _ in one.learned.groups]
    clusters = [group for one in lessons for group in one.learned.groups]
    found = []
    for count in common_counts(lessons):
        parts = [one.learned.values[order][one.learned.counts.index(count)] for one in lessons]
        found.append(mean_interval(np.concatenate(parts), strata, clusters, seed=0, resamples=RESAMPLES))
    return found


def _caption(lessons: Sequence[LearningCurve]) -> str:
    datasets, seeds = ({getattr(one.cell, name) for one in lessons} for name in ("dataset", "seed"))
    first = lessons[0].cell
    return (
        f"{LEARNING_METRIC} at ρ={first.rho}% after so many labels,"
        f" {len(datasets)} dataset{'s' if len(datasets) > 1 else ''},"
        f" {len(seeds)} split seed{'s' if len(seeds) > 1 else ''}"
    )
