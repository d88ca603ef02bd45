"""Opinions as a table and as a reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from readbench.evaluate import Reliability, calibration_floor, expected_calibration_error, reliability
from readbench.experiment.opinions import Answers, HeldOut, Quality
from readbench.experiment.plan import Cell
from readbench.plots import METHOD_COLOURS, REFERENCE_GREY, entitle, sheet, styled
from readbench.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("accuracy", "ECE", "floor", "coverage", "set size", "alarms", "AUROC", "FPR95")
"""Headings of the fields of `Quality`, in order; ECE is followed by what honest probabilities would show."""
LARGEST_MARK = 36.0


@dataclass(frozen=True, eq=False)
class Measured:
    """The opinions of one method on one task at one level, what they are worth, and the fault types held out."""

    cell: Cell
    answers: Answers
    quality: Quality
    held_out: tuple[HeldOut, ...] = ()


def opinion_table(measured: Sequence[Measured]) -> Table:
    """One row a dataset and level, its mean over the seeds; below, the mean over the datasets of each level."""
    levels = sorted({one.cell.rho for one in measured})
    datasets = list(dict.fromkeys(one.cell.dataset for one in measured))
    rows, means = [], []
    for rho in levels:
        own = [_figures(measured, dataset, rho) for dataset in datasets]
        rows += [[dataset, str(rho), *map(_number, line)] for dataset, line in zip(datasets, own, strict=True)]
        means.append(["mean", str(rho), *map(_number, _mean(own))])
    seeds = len({one.cell.seed for one in measured})
    caption = f"Opinions of {measured[0].cell.method}, mean over {seeds} split seed{'s' if seeds > 1 else ''}"
    caption += "; ECE, and its floor for honest probabilities, of the queries of all seeds together"
    return Table("opinions", caption, ["Dataset", "ρ", *COLUMNS], rows + (means if len(datasets) > 1 else []))


@styled
def draw_reliability(measured: Sequence[Measured]) -> Figure:
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


def _curves(measured: Sequence[Measured]) -> dict[str, Reliability]:
    """Curves by title: of each dataset over all seeds, and of all where there are several."""
    by_dataset: dict[str, list[Answers]] = {}
    for one in measured:
        by_dataset.setdefault(one.cell.dataset, []).append(one.answers)
    if len(by_dataset) > 1:
        by_dataset["all"] = [one.answers for one in measured]
    return {
        title: reliability(
            np.concatenate([answers.confidence for answers in own]),
            np.concatenate([answers.correct for answers in own]),
        )
        for title, own in by_dataset.items()
    }


def _figures(measured: Sequence[Measured], dataset: str, rho: int) -> list[float]:
    own = [one for one in measured if (one.cell.dataset, one.cell.rho) == (dataset, rho)]
    accuracy, _, *others = _mean([list(astuple(one.quality)) for one in own])
    confidence = np.concatenate([one.answers.confidence for one in own])
    correct = np.concatenate([one.answers.correct for one in own])
    error = expected_calibration_error(confidence, correct)
    return [accuracy, error, calibration_floor(confidence, seed=0), *others]


def _mean(rows: list[list[float]]) -> list[float]:
    """Column means of what is known; NaN where nothing is."""
    columns = [[value for value in column if not np.isnan(value)] for column in zip(*rows, strict=True)]
    return [float(np.mean(known)) if known else float("nan") for known in columns]


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"
