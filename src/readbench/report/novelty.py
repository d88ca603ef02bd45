"""Whether faults that the corpus lacks are noticed: fault types held out in turn, as a table and as curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from readbench.evaluate import detection_rate
from readbench.experiment.opinions import HeldOut
from readbench.plots import METHOD_COLOURS, NORMAL_GREY, REFERENCE_GREY, STYLE
from readbench.report.opinions import Measured
from readbench.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATES = np.linspace(0.0, 1.0, 201)
"""False-alarm rates at which curves are averaged."""


def novelty_table(measured: Sequence[Measured]) -> Table:
    """One row a dataset, level and fault type held out, means over the seeds in which it has queries."""
    rows = []
    for (dataset, rho, fault), own in _by_fault(measured).items():
        figures = [np.mean([one.auroc for one in own]), np.mean([one.false_alarms for one in own])]
        queries = sum(len(one.novel) for one in own)
        rows.append([dataset, fault, str(rho), str(queries), *(f"{value:.3f}" for value in figures)])
    caption = f"Fault types held out of the corpus of {measured[0].cell.method}: are their queries called new?"
    return Table("novelty", caption, ["Dataset", "Held out", "ρ", "queries", "AUROC", "FPR95"], rows)


def draw_novelty(measured: Sequence[Measured]) -> Figure | None:
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


def _by_fault(measured: Sequence[Measured]) -> dict[tuple[str, int, str], list[HeldOut]]:
    found: dict[tuple[str, int, str], list[HeldOut]] = {}
    for one in measured:
        for held in one.held_out:
            found.setdefault((one.cell.dataset, one.cell.rho, held.fault), []).append(held)
    return found
