"""What an order of labelling is worth, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from readbench.evaluate import Interval, mean_interval
from readbench.experiment.active import METRIC, RANDOM, TELLING, Learned
from readbench.experiment.plan import Cell
from readbench.plots import METHOD_COLOURS, REFERENCE_GREY, Line, lines
from readbench.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {TELLING: METHOD_COLOURS[0], RANDOM: REFERENCE_GREY}
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class Lesson:
    """How a method learned on one task."""

    cell: Cell
    learned: Learned


def active_table(lessons: Sequence[Lesson]) -> Table:
    """One row a dataset and order, its mean over the seeds; below, the means over the datasets."""
    counts = common_counts(lessons)
    datasets = list(dict.fromkeys(one.cell.dataset for one in lessons))
    rows = [
        [
            dataset,
            order,
            *(f"{i.mean:.3f}" for i in _intervals([x for x in lessons if x.cell.dataset == dataset], order)),
        ]
        for dataset in datasets
        for order in COLOURS
    ]
    if len(datasets) > 1:
        rows += [["mean", order, *(f"{i.mean:.3f}" for i in _intervals(lessons, order))] for order in COLOURS]
    return Table("active", _caption(lessons), ["Dataset", "Order", *map(str, counts)], rows)


def draw_active(lessons: Sequence[Lesson]) -> Figure:
    """Both orders over the number of labels, mean over the datasets, bands being intervals over recordings."""
    drawn = []
    for order, colour in COLOURS.items():
        found = _intervals(lessons, order)
        band = np.array([[i.low for i in found], [i.high for i in found]])
        drawn.append(Line(order, np.array([i.mean for i in found]), colour, reference=order == RANDOM, band=band))
    ticks = [str(count) for count in common_counts(lessons)]
    return lines(drawn, ticks, ("labelled cases", METRIC), _caption(lessons), "bands: 95 % intervals over recordings")


def common_counts(lessons: Sequence[Lesson]) -> list[int]:
    """Numbers of labels that every corpus has."""
    return sorted(set.intersection(*(set(one.learned.counts) for one in lessons)))


def _intervals(lessons: Sequence[Lesson], order: str) -> list[Interval]:
    """Mean over datasets of the queries of all seeds, after each number of labels."""
    strata = [one.cell.dataset for one in lessons for _ in one.learned.groups]
    clusters = [group for one in lessons for group in one.learned.groups]
    found = []
    for count in common_counts(lessons):
        parts = [one.learned.values[order][one.learned.counts.index(count)] for one in lessons]
        found.append(mean_interval(np.concatenate(parts), strata, clusters, seed=0, resamples=RESAMPLES))
    return found


def _caption(lessons: Sequence[Lesson]) -> str:
    datasets, seeds = ({getattr(one.cell, name) for one in lessons} for name in ("dataset", "seed"))
    first = lessons[0].cell
    return (
        f"{METRIC} at ρ={first.rho}% after so many labels, {len(datasets)} dataset{'s' if len(datasets) > 1 else ''},"
        f" {len(seeds)} split seed{'s' if len(seeds) > 1 else ''}"
    )
