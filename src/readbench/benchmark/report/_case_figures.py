"""Figures of windows from the gallery of a run.

Fault signatures by domain, fault types by dataset, and a pair of hits for which shape misleads (`look_alike`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.report._figures import FIGURES
from readbench.benchmark.report._gallery import DEPTH, GalleryWindow, read_gallery
from readbench.benchmark.report._grid import TableStudy
from readbench.benchmark.runs import open_folder
from readbench.common.plots import Panel, draw_panel, entitle, gallery, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WINDOWS = "a dataset whose licence lets its windows be shown"
SMOOTH = 0.02
"""Roughness that is added to that of curves, so that smooth ones count alike."""


@dataclass(frozen=True, eq=False)
class LookAlike:
    """A query with two hits whose shapes mislead.

    Args:
        dataset: name.
        channel: most separating channel of the query's fault.
        query: the query.
        relevant: hit with its fault and another shape.
        wrong: hit with another fault and a similar shape.
        clarity: larger for a clearer contrast of moving, smooth curves.
    """

    dataset: str
    channel: str
    query: GalleryWindow
    relevant: GalleryWindow
    wrong: GalleryWindow
    clarity: float


def look_alike(
    study: TableStudy, dataset: str, exhibits: list[GalleryWindow], telling: Mapping[str, str]
) -> LookAlike | None:
    """The clearest case among the first hits of all methods at the first level; None without any.

    Args:
        study: the run.
        dataset: one of its datasets.
        exhibits: its drawable windows under the first split seed.
        telling: fault type -> channel to draw.
    """
    windows = {one.window: one for one in exhibits}
    found = []
    for query, hits in _hits(study, dataset):
        asked = windows.get(query)
        if asked is not None and asked.label in telling:
            known = [windows[hit] for hit in hits if hit in windows]
            found.append(_pair(dataset, telling[asked.label], asked, known))
    return max(filter(None, found), key=lambda pair: pair.clarity, default=None)


def _hits(study: TableStudy, dataset: str) -> Iterator[tuple[str, list[str]]]:
    """Each query with its first hits under any method, sorted by name."""
    results = study.results
    wanted = [("seed", "=", results.seeds[0]), ("rho", "=", results.levels[0]), ("place", "<=", DEPTH)]
    table = open_folder(results.folder).read_rankings(dataset, wanted, ["query", "item"])
    found: dict[str, set[str]] = {}
    for query, item in zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True):
        found.setdefault(query, set()).add(item)
    for query in sorted(found):
        yield query, sorted(found[query])


def _pair(dataset: str, channel: str, query: GalleryWindow, hits: list[GalleryWindow]) -> LookAlike | None:
    comparable = [one for one in hits if channel in one.channels and points(one) == points(query)]
    relevant = [one for one in comparable if one.label == query.label]
    wrong = [one for one in comparable if one.label not in {query.label, "normal"}]
    if channel not in query.channels or not relevant or not wrong:
        return None
    shape = trace(query, channel)
    distances = {one.window: float(np.sqrt(np.mean((shape - trace(one, channel)) ** 2))) for one in (*relevant, *wrong)}
    far = max(relevant, key=lambda one: distances[one.window])
    near = min(wrong, key=lambda one: distances[one.window])
    lead = distances[far.window] - distances[near.window]
    if lead <= 0:
        return None
    share = lead / (distances[far.window] + distances[near.window])
    curves = [trace(one, channel) for one in (query, far, near)]
    roughness = max(_roughness(curve) for curve in curves)
    return LookAlike(dataset, channel, query, far, near, share * _movement(curves) / (SMOOTH + roughness))


def _movement(curves: list[NDArray[np.float32]]) -> float:
    """Range of the flattest curve over the range of all."""
    return min(float(np.ptp(curve)) for curve in curves) / max(float(np.ptp(np.concatenate(curves))), 1e-30)


def _roughness(values: NDArray[np.float32]) -> float:
    """Mean absolute step over the range; 1 for a constant."""
    reach = float(np.ptp(values))
    return float(np.abs(np.diff(values)).mean()) / reach if reach > 0 else 1.0


def points(one: GalleryWindow) -> int:
    """Points per channel of a sketch; 0 without one."""
    return 0 if one.drawn is None else one.drawn.codes.shape[1]


def trace(one: GalleryWindow, channel: str) -> NDArray[np.float32]:
    """(P,) one channel of a sketch; empty without one."""
    if one.drawn is None:
        return np.zeros(0, np.float32)
    values: NDArray[np.float32] = one.drawn.values()[one.channels.index(channel)].astype(np.float32)
    return values


NORMAL = "normal"
MAX_DOMAINS, MAX_FAULTS, MAX_DATASETS = 4, 6, 12
"""Most panels of the strip; most columns and rows of the fault types."""


@dataclass(frozen=True, eq=False)
class _Task:
    """The drawable windows of one dataset under the first split seed."""

    dataset: str
    exhibits: list[GalleryWindow]
    telling: dict[str, str]
    units: dict[str, str]

    def faults(self) -> list[str]:
        """Fault types among the queries, in the order of the classes."""
        asked = {one.label for one in self.exhibits if one.query}
        return [label for label in self.telling if label in asked and label != NORMAL]

    def panel(self, label: str) -> Panel | None:
        """A typical query of a fault type on its most separating moving channel, with the nearest normal window."""
        asked = [one for one in self.exhibits if one.query and one.label == label]
        channels = dict.fromkeys([self.telling[label], *(name for one in asked for name in one.channels)])
        channel = next((name for name in channels if any(_moves(one, name) for one in asked)), "")
        if not channel:
            return None
        found = _typical([one for one in asked if _moves(one, channel)], channel)
        normals = [trace(one, channel) for one in self.exhibits if one.label == NORMAL and channel in one.channels]
        fault = trace(found, channel)
        unit = self.units.get(channel, "")
        return Panel(
            title=label,
            channel=f"{channel} ({unit})" if unit else channel,
            fault=fault,
            span=found.span,
            normal=min(normals, key=lambda one: abs(float(one.mean() - fault.mean())), default=None),
            steps=found.length,
        )


@FIGURES.register("fault-strip", shows="Fault signatures by domain, the faulty span shaded", needs=WINDOWS)
def fault_strip(study: TableStudy) -> Figure | None:
    """One fault signature per domain with its span shaded; None without a gallery."""
    panels: dict[str, Panel] = {}
    for task in _tasks(study):
        domain = study.results.domain(task.dataset)
        drawn = {label: panel for label in task.faults() if (panel := task.panel(label))}
        if not drawn or domain in panels:
            continue
        label = next((label for label, panel in drawn.items() if panel.span[0] > 0), next(iter(drawn)))
        panels[domain] = replace(drawn[label], title=f"{domain}: {label} ({task.dataset})", normal=None)
    chosen = list(panels.values())[:MAX_DOMAINS]
    return gallery(chosen, "Fault signatures, the faulty span shaded", columns=2) if chosen else None


@FIGURES.register("fault-types", shows="Fault types by dataset, each against a normal window", needs=WINDOWS)
def fault_types(study: TableStudy) -> Figure | None:
    """One row per dataset with a window of each fault type in red and a normal one dark; None without a gallery."""
    rows = []
    for task in _tasks(study):
        panels = [panel for label in task.faults()[:MAX_FAULTS] if (panel := task.panel(label))]
        rows += [(task.dataset, panels)] if panels else []
    rows = rows[:MAX_DATASETS]
    if not rows:
        return None
    width = max(len(panels) for _, panels in rows)
    figure = sheet(0.6 + 2.1 * width, 0.5 + 1.35 * len(rows))
    grid = figure.subplots(len(rows), width, squeeze=False)
    for axes, (dataset, panels) in zip(grid, rows, strict=True):
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(axes, panels, strict=False):
            _small_panel(axis, panel)
        axes[0].set_ylabel(dataset, fontsize=8, fontweight="bold")
    figure.supxlabel("step of the window", fontsize=8)
    entitle(figure, "Fault types: a window of each in red, a normal one dark")
    return figure


@FIGURES.register(
    "fault-against-shape",
    shows="A relevant hit that looks different beside a wrong one that looks alike",
    needs=WINDOWS,
)
def fault_against_shape(study: TableStudy) -> Figure | None:
    """A relevant hit that looks different beside a wrong one that looks alike; None without such a pair."""
    found = [pair for task in _tasks(study) if (pair := look_alike(study, task.dataset, task.exhibits, task.telling))]
    if not found:
        return None
    shown = max(found, key=lambda pair: pair.clarity)
    figure = sheet(8.4, 2.6)
    axes = figure.subplots(1, 3, sharey=True)
    texts = ("Query", "Relevant, looks different", "Wrong, looks alike")
    for axis, text, one in zip(axes, texts, (shown.query, shown.relevant, shown.wrong), strict=True):
        _against_query(axis, shown, one)
        axis.set_title(f"{text}\n{fill(one.label, 34)}", fontweight="bold")
    axes[0].set_ylabel(shown.channel, fontsize=8)
    entitle(figure, f"Relevance is the fault, not the shape ({shown.dataset}); dark: the query again")
    return figure


def _tasks(study: TableStudy) -> Iterator[_Task]:
    """Tasks of the gallery with drawable windows, in plan order."""
    found = read_gallery(study.results.folder)
    if found is None:
        return
    seed = study.results.seeds[0]
    for dataset in study.results.datasets:
        exhibits = [one for one in found.exhibits.get((dataset, seed), []) if one.drawn is not None]
        if exhibits:
            facts = found.facts[dataset]
            telling = {label: own["telling"] for label, own in facts["tasks"][str(seed)].items() if own["telling"]}
            yield _Task(dataset, exhibits, telling, facts["units"])


def _moves(one: GalleryWindow, channel: str) -> bool:
    return channel in one.channels and float(np.ptp(trace(one, channel))) > 0


def _typical(windows: list[GalleryWindow], channel: str) -> GalleryWindow:
    """The window with the median range, among those that show the onset if any."""
    chosen = [one for one in windows if 0 < one.span[0] < one.span[1]] or windows
    ranges = np.array([np.ptp(trace(one, channel)) for one in chosen])
    return chosen[int(np.argmin(np.abs(ranges - np.median(ranges))))]


def _small_panel(axis: Axes, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    draw_panel(axis, panel)
    axis.set_title(fill(panel.title, 26), fontsize=7, fontweight="normal")
    axis.set(yticks=[], ylabel="", xlabel="")
    axis.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    axis.tick_params(labelsize=6, pad=1)


def _against_query(axis: Axes, shown: LookAlike, one: GalleryWindow) -> None:
    again = None if one is shown.query else trace(shown.query, shown.channel)
    draw_panel(axis, Panel("", "", trace(one, shown.channel), one.span, again, one.length))
    axis.set_ylabel("")
