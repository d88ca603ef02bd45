"""Figures of a report: the registry, which plug-ins may extend, and the figures of numbers.

A figure is a function of a study; it returns None if the run lacks its data. Figures of windows are in `_case_figures`.
`choose_methods` selects the methods of all figures. `figures` draws all that a run has data for, with its curves.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import MIN_DATASETS, NemenyiResult, nemenyi
from readbench.benchmark.report._budgets import CURVES, BudgetCurve, curves, draw_budgets
from readbench.benchmark.report._grid import TableStudy
from readbench.benchmark.report._methods import describe, mark_dataset
from readbench.benchmark.report._origins import count_origins
from readbench.benchmark.report._paper_tables import best_composed
from readbench.benchmark.report._results import by_method, dataset_scores, read_stated_probabilities
from readbench.benchmark.report._significance import ALPHA
from readbench.benchmark.runs import TIMES, read_costs
from readbench.common.calibration import Reliability
from readbench.common.plots import (
    FAMILY_COLOURS,
    FAULT,
    GRID_GREY,
    METHOD_COLOURS,
    REFERENCE_GREY,
    Line,
    colour_of,
    entitle,
    lines,
    marker_of,
    sheet,
    with_style,
)
from readbench.engine.registry import BUILT_IN, Catalogue, origin_of
from readbench.engine.spec import COMPOSED
from readbench.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes


Draw = Callable[[TableStudy], "Figure | None"]
FIGURE_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class FigureEntry:
    """A registered figure.

    Args:
        name: name of its files.
        factory: draws it from a study; returns None if the run lacks its data.
        shows: caption.
        needs: what a run must have for it.
        origin: "readbench", or the plug-in with its version.
    """

    name: str
    factory: Draw
    shows: str
    needs: str
    origin: str = BUILT_IN

    @property
    def aliases(self) -> tuple[str, ...]:
        """Empty: a figure has one name."""
        return ()


class FigureRegistry(Catalogue[FigureEntry]):
    """Figures by name: those of this package first, then those of plug-ins by origin."""

    def register(self, name: str, *, shows: str, needs: str) -> Callable[[Draw], Draw]:
        """Decorator that registers a function from a `TableStudy` to a figure or None, drawn in the common style.

        Args:
            name: name of its files.
            shows: caption below it.
            needs: what a run must have for it.
        """
        if not FIGURE_NAME.fullmatch(name) or name in {curve.name for curve in CURVES}:
            raise UsageError(f"{name!r} cannot name a figure: small letters, digits and hyphens, and no curve's name.")

        def decorate(draw: Draw) -> Draw:
            styled = with_style(draw)
            self._add(FigureEntry(name, styled, shows, needs, origin_of(draw)))
            return styled

        return decorate


FIGURES = FigureRegistry("figure", ("readbench.benchmark.report",))


def bases(study: TableStudy) -> list[str]:
    """Base retrievers with a value in every cell."""
    return _complete(study, study.methods.bases)


def choose_methods(study: TableStudy) -> list[str]:
    """Base retrievers, their normal-residual variants, the best composed, named systems, supervised references."""
    residual = [f"{text}+nr" for text in study.methods.residuals]
    best = [text] if (text := best_composed(study)) else []
    named = [text for text in COMPOSED.values() if text in study.results.methods]
    further = dict.fromkeys([*residual, *best, *named, *study.methods.references])
    return [*bases(study), *_complete(study, further)]


def _complete(study: TableStudy, texts: Iterable[str]) -> list[str]:
    complete = {study.results.methods[m] for m in study.results.complete()}
    return [text for text in texts if text in complete]


def _column_of(study: TableStudy, text: str) -> NDArray[np.float64]:
    """(datasets,) headline of a method at the first level, averaged over seeds."""
    column: NDArray[np.float64] = dataset_scores(study.results, study.results.levels[0])[
        :, study.results.methods.index(text)
    ]
    return column


def _entitle(figure: Figure, study: TableStudy, title: str) -> None:
    """Write a title with the first level and the datasets of the run above a figure."""
    entitle(figure, f"{title} at ρ={study.results.levels[0]}%, {describe(study.results)}")


def _rule(axis: Axes, which: Literal["x", "both"]) -> None:
    """Draw grid lines behind the data."""
    axis.grid(axis=which, color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)


def headline(study: TableStudy, text: str, rho: int | None = None) -> float:
    """Mean headline over datasets and seeds at a level, the first by default; NaN if a cell is missing."""
    results = study.results
    if text not in results.methods:
        return float("nan")
    level = results.levels[0] if rho is None else rho
    return float(np.mean(results.at(results.headline, level)[:, :, results.methods.index(text)]))


MIN_BOXES, MIN_SPREAD = 5, 3
"""Fewest datasets for quartiles, and for any spread over datasets."""


@FIGURES.register("radar", shows="The headline on each dataset, spokes grouped by domain", needs="three datasets")
def radar(study: TableStudy) -> Figure | None:
    """Base retrievers thin, each in its colour, the best composed method bold and black; None with few datasets."""
    results = study.results
    if len(results.datasets) < MIN_SPREAD:
        return None
    order = sorted(range(len(results.datasets)), key=lambda d: results.domain(results.datasets[d]))
    angles = np.linspace(0, 2 * np.pi, len(order), endpoint=False)
    figure = sheet(7.6, 6.4)
    axis = cast("PolarAxes", figure.add_subplot(projection="polar"))
    axis.set_theta_zero_location("N")
    axis.set_theta_direction(-1)
    for text in bases(study):
        _ring(axis, angles, _column_of(study, text)[order], study.methods.colour(text), 1.3)
    if best := best_composed(study):
        values = _column_of(study, best)[order]
        _ring(axis, angles, values, "black", 2.4)
        axis.fill(angles, values, color="black", alpha=0.05, linewidth=0)
    _spokes(axis, angles, [mark_dataset(results, results.datasets[d]) for d in order])
    _domains(axis, angles, [results.domain(results.datasets[d]) for d in order])
    _legend(figure, study, best)
    entitle(figure, f"{results.headline} on each dataset at ρ={results.levels[0]}%")
    return figure


def _ring(axis: PolarAxes, angles: NDArray[np.float64], values: NDArray[np.float64], colour: str, width: float) -> None:
    closed = np.append(angles, angles[:1]), np.append(values, values[:1])
    axis.plot(*closed, color=colour, linewidth=width, alpha=0.9, solid_joinstyle="round")


def _spokes(axis: PolarAxes, angles: NDArray[np.float64], names: list[str]) -> None:
    axis.set_xticks(angles, ["" for _ in names])
    axis.set_ylim(0, 1)
    axis.set_yticks([0.2, 0.4, 0.6, 0.8, 1.0], ["0.2", "0.4", "0.6", "0.8", ""], color=REFERENCE_GREY, fontsize=7)
    axis.set_rlabel_position(180 / len(names))
    axis.grid(color="#DDDDDD", linewidth=0.7)
    axis.spines["polar"].set_color("#BBBBBB")
    for angle, name in zip(angles, names, strict=True):
        _outside(axis, angle, 1.08, name, 8.5)


def _domains(axis: PolarAxes, angles: NDArray[np.float64], domains: list[str]) -> None:
    """An arc along the spokes of each domain, and its name outside."""
    margin = 0.36 * angles[1]
    for domain in dict.fromkeys(domains):
        own = angles[[d == domain for d in domains]]
        reach = np.linspace(own[0] - margin, own[-1] + margin, 60)
        axis.plot(reach, np.full(60, 1.0), color=REFERENCE_GREY, linewidth=4, solid_capstyle="butt", clip_on=False)
        _outside(axis, float(own.mean()), 1.44, fill(domain, 18), 8, color=REFERENCE_GREY, style="italic")


def _outside(axis: PolarAxes, angle: float, radius: float, text: str, size: float, **looks: Any) -> None:  # noqa: ANN401
    """Text that stands outwards from a point beyond the rim."""
    side = int(np.sign(np.round(np.sin(angle), 2)))
    axis.text(angle, radius, text, ha=("center", "left", "right")[side], va="center", fontsize=size, **looks)


def _legend(figure: Figure, study: TableStudy, best: str) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    handles = [
        Line2D([], [], color=study.methods.colour(text), label=study.results.title(text)) for text in bases(study)
    ]
    if best:
        handles.append(Line2D([], [], color="black", linewidth=2.4, label=study.results.title(best)))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)


FIELD = ("distance", "symbolic", "embedder")
"""Families of the band: no floors and no shortcut probes, as in the paper."""


@FIGURES.register(
    "robustness",
    shows="Normal-residual variants over pollution, against the band of all other base retrievers",
    needs="`readbench run --sweep nr`, two levels at least",
)
def robustness(study: TableStudy) -> Figure | None:
    """The headline over the levels; None with one level, without normal residuals or a field beside them."""
    levels = study.results.levels
    field = [text for text in bases(study) if study.methods.family(text) in FIELD]
    residual = [f"{text}+nr" for text in study.methods.residuals]
    if len(levels) < 2 or not residual or len(field) < 2:
        return None
    values = np.array([[headline(study, text, rho) for rho in levels] for text in field])
    band = np.stack([values.min(axis=0), values.max(axis=0)])
    drawn = [Line(f"mean of {len(field)} without NR", values.mean(axis=0), REFERENCE_GREY, reference=True, band=band)]
    for text in residual:
        scores = np.array([headline(study, text, rho) for rho in levels])
        drawn.append(Line(study.results.title(text), scores, study.methods.colour(text)))
    ticks = [f"{rho}%" for rho in levels]
    caption = f"Normal residuals under pollution, {describe(study.results)}"
    note = f"band: {', '.join(f for f in FAMILY_COLOURS if f in FIELD)} retrievers without NR, from lowest to highest"
    return lines(drawn, ticks, ("normal windows in the corpus", study.results.headline), caption, note)


@FIGURES.register("lift", shows="From each pool to the same reranked by GPC", needs="`readbench run --sweep rerank`")
def lift(study: TableStudy) -> Figure | None:
    """Arrows from pools to their GPC-reranked selves at the first level, lowest pool first; None without any."""
    pairs = [(headline(study, pool), headline(study, f"{pool}+gpc"), pool) for pool in study.methods.reranked]
    pairs = sorted(pair for pair in pairs if np.isfinite(pair[:2]).all())
    if not pairs:
        return None
    figure = sheet(6.4, 1.3 + 0.32 * len(pairs))
    axis = figure.subplots()
    for height, (base, lifted, _) in enumerate(pairs):
        _arrow(axis, height, base, lifted, better=bool(study.results.orient(np.array(lifted - base)) >= 0))
    axis.set_yticks(range(len(pairs)), [study.results.title(pool) for *_, pool in pairs])
    axis.set_ylim(-0.7, len(pairs) - 0.3)
    axis.update_datalim([(value, 0) for pair in pairs for value in pair[:2]])
    axis.autoscale_view(scaley=False)
    axis.margins(x=0.12)
    axis.set_xlabel(study.results.headline)
    _rule(axis, "x")
    _references(axis, study)
    entitle(
        figure, f"From each pool to the same reranked by GPC, ρ={study.results.levels[0]}%, {describe(study.results)}"
    )
    return figure


def _arrow(axis: Axes, height: int, base: float, lifted: float, *, better: bool) -> None:
    colour = colour_of("distance") if better else FAULT
    axis.plot(base, height, "o", color="white", markeredgecolor=colour, markersize=5, zorder=3)
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.8, "shrinkA": 3, "shrinkB": 0}
    axis.annotate("", (lifted, height), (base, height), arrowprops=style)
    axis.annotate(
        f"{lifted - base:+.3f}",
        (max(base, lifted), height),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def _references(axis: Axes, study: TableStudy) -> None:
    top = axis.get_ylim()[1]
    for text in study.methods.references:
        if np.isfinite(at := headline(study, text)):
            axis.axvline(at, color=REFERENCE_GREY, linestyle=(0, (4, 2)), linewidth=1.4, zorder=1)
            name = study.results.title(text)
            axis.annotate(name, (at, top), (0, 2), textcoords="offset points", ha="center", color=REFERENCE_GREY)


MIN_SECONDS = 1e-3
"""Shortest time that is drawn, in seconds."""
FEW_DECADES = 30
"""Ratio of the longest to the shortest time below which minor ticks are labelled."""
BESIDE, LETTER, LINE = 0.018, 0.0115, 0.045
"""Distance of a name from its point, width of a letter and height of a line, as shares of the axis."""


@FIGURES.register("runtime", shows="Accuracy against processor time, else wall time", needs="three methods")
def runtime(study: TableStudy) -> Figure | None:
    """Headline over time at the first level, log scale; None where there are less than three methods.

    Seconds of a processor where `readbench study cost` measured them, else those that the run took.
    """
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    costs = read_costs(study.results.folder)
    texts = [text for text in choose_methods(study) if study.methods.family(text) != "trivial"]
    texts = [text for text in texts if text in costs] if costs else texts
    if len(texts) < 3:
        return None
    times = [max(MIN_SECONDS, costs[text].cpu_s if costs else seconds(study, text)) for text in texts]
    scores = [headline(study, text) for text in texts]
    figure = sheet(7.2, 4.4)
    axis = figure.subplots()
    for text, time, score in zip(texts, times, scores, strict=True):
        family = study.methods.family(text)
        axis.scatter(time, score, s=42, color=study.methods.colour(text), marker=marker_of(family), zorder=3)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("{x:g}" if max(times) < FEW_DECADES * min(times) else NullFormatter())
    own = "seconds a task: encoding, fitting, scoring and reranking (median over tasks)"
    axis.set_xlabel(f"seconds of a processor ({next(iter(costs.values())).task})" if costs else own)
    axis.set_ylabel(study.results.headline)
    _rule(axis, "both")
    axis.margins(x=0.12, y=0.1)
    axis.autoscale_view()
    _names(axis, study, texts, times, scores)
    _entitle(figure, study, "Accuracy against runtime")
    return figure


def seconds(study: TableStudy, text: str) -> float:
    """Wall time of a method on one task in seconds: median over datasets and seeds, without compilation."""
    results = study.results
    stages = [results.at(name, results.levels[0])[:, :, results.methods.index(text)] for name in TIMES]
    return float(np.median(np.sum(stages, axis=0)))


def _names(axis: Axes, study: TableStudy, texts: list[str], times: list[float], scores: list[float]) -> None:
    """Each name right of its point, moved up or down where it would cover another, with a hair line to its point."""
    points = axis.transAxes.inverted().transform(axis.transData.transform(list(zip(times, scores, strict=True))))
    titles = [study.results.title(text) for text in texts]
    for title, point, height in zip(titles, points, clear_heights(points, list(map(len, titles))), strict=True):
        axis.annotate(
            title,
            point,
            (point[0] + BESIDE, height),
            "axes fraction",
            "axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
        )


def clear_heights(points: NDArray[np.float64], letters: list[int]) -> list[float]:
    """Heights of names of so many letters, right of points (N, 2) in shares of the axis, that do not overlap.

    >>> clear_heights(np.array([[0.1, 0.5], [0.1, 0.5]]), [3, 3])
    [0.5, 0.545]
    """
    taken = [(x - 0.01, x + 0.01, y) for x, y in points]
    heights: list[float] = []
    for (x, y), count in zip(points, letters, strict=True):
        left, right = x + BESIDE, x + BESIDE + count * LETTER
        wanted = (y + LINE * (step // 2 if step % 2 == 0 else -(step + 1) // 2) for step in range(2 * len(points)))
        free = (
            h
            for h in wanted
            if not any(left < end and begin < right and abs(h - at) < LINE for begin, end, at in taken)
        )
        heights.append(float(next(free, y)))
        taken.append((left, right, heights[-1]))
    return heights


@FIGURES.register("boxes", shows="How the scores of each method spread over the datasets", needs="three datasets")
def boxes(study: TableStudy) -> Figure | None:
    """One box a method, by median: solid the median, dashed the mean, dots the datasets; None with few datasets."""
    results = study.results
    if len(results.datasets) < MIN_SPREAD:
        return None
    texts = sorted(choose_methods(study), key=lambda text: float(np.median(_column_of(study, text))))
    columns = [_column_of(study, text) for text in texts]
    figure = sheet(7.2, 1.3 + 0.3 * len(texts))
    axis = figure.subplots()
    colours = [study.methods.colour(text) for text in texts]
    few = len(results.datasets) < MIN_BOXES
    (_draw_dots if few else _draw_boxes)(axis, columns, colours)
    axis.set_yticks(range(1, len(texts) + 1), [results.title(text) for text in texts])
    axis.set_xlabel(f"{results.headline}; {'bar: mean' if few else 'solid: median, dashed: mean'}, dots: datasets")
    _rule(axis, "x")
    _entitle(figure, study, "Spread over the datasets")
    return figure


def _draw_dots(axis: Axes, columns: list[NDArray[np.float64]], colours: list[str]) -> None:
    """Few datasets have no quartiles: their values, and the mean as a bar."""
    for height, (column, colour) in enumerate(zip(columns, colours, strict=True), start=1):
        axis.plot([column.min(), column.max()], [height] * 2, color=colour, linewidth=1.0, alpha=0.5, zorder=2)
        axis.plot(column, np.full(len(column), height), "o", color=colour, markersize=4.2, zorder=3)
        axis.plot([column.mean()] * 2, [height - 0.3, height + 0.3], color="black", linewidth=1.4, zorder=4)
    axis.set_ylim(0.4, len(columns) + 0.6)


def _draw_boxes(axis: Axes, columns: list[NDArray[np.float64]], colours: list[str]) -> None:
    drawn = axis.boxplot(
        columns,
        orientation="horizontal",
        showmeans=True,
        meanline=True,
        showfliers=False,
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black", "linewidth": 1.4},
        meanprops={"color": "black", "linestyle": (0, (2, 1.5)), "linewidth": 1.0},
    )
    for height, (patch, column, colour) in enumerate(zip(drawn["boxes"], columns, colours, strict=True), start=1):
        patch.set(facecolor=colour, alpha=0.35, edgecolor=colour)
        axis.plot(column, np.full(len(column), height), "o", color=colour, markersize=3.2, zorder=4)


BARS, STEP = -0.35, 0.28
"""Height of the first bar below the axis, and distance between bars."""


@FIGURES.register("ranks", shows="Critical-difference diagram", needs="three datasets and three methods")
def critical_difference_diagram(study: TableStudy) -> Figure | None:
    """Mean ranks at the first level of what other figures show too; None with few datasets or methods."""
    results, texts = study.results, choose_methods(study)
    if len(results.datasets) < MIN_DATASETS or len(texts) < 3:
        return None
    complete = results.complete().tolist()
    everyone = nemenyi(results.orient(dataset_scores(results, results.levels[0])[:, complete]), ALPHA)
    tested = _among(everyone, [complete.index(results.methods.index(text)) for text in texts])
    half = -(-len(texts) // 2)
    depth = BARS - STEP * (len(tested.cliques) + 1) - STEP * half
    figure = sheet(7.6, 0.9 - 0.75 * depth)
    axis = figure.subplots()
    axis.set_axis_off()
    count = len(complete)
    axis.set_xlim(count + 0.5, 0.5)
    axis.set_ylim(depth, 1.1)
    _scale(axis, count, tested.critical_difference)
    _bars(axis, tested)
    _stems(axis, study, texts, tested, count)
    entitle(figure, f"Mean ranks at ρ={results.levels[0]}% over {describe(results)}, {_verdict(tested)}")
    return figure


def _among(everyone: NemenyiResult, shown: list[int]) -> NemenyiResult:
    """The test of all methods, restricted to the shown ones."""
    overall = replace(everyone.friedman, mean_ranks=everyone.mean_ranks[shown])
    return replace(everyone, friedman=overall, different=everyone.different[np.ix_(shown, shown)])


def _verdict(tested: NemenyiResult) -> str:
    test = tested.friedman
    words = "bars join what Nemenyi's test cannot tell apart" if test.p_value <= ALPHA else "no difference shown"
    return f"Friedman p = {test.p_value:.2g} over {test.methods} methods: {words}"


def _scale(axis: Axes, methods: int, difference: float) -> None:
    axis.plot([1, methods], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, methods + 1, 1 + methods // 25):
        axis.plot([rank, rank], [0, 0.08], color="black", linewidth=1.0)
        axis.text(rank, 0.13, str(rank), ha="center", fontsize=8)
    axis.plot([1, min(1 + difference, methods)], [0.62, 0.62], color=REFERENCE_GREY, linewidth=2.0)
    note = f"critical difference {difference:.2f}" + (" (beyond the scale)" if 1 + difference > methods else "")
    axis.text(1 + min(difference, methods - 1) / 2, 0.72, note, ha="center", fontsize=8, color=REFERENCE_GREY)


def _bars(axis: Axes, tested: NemenyiResult) -> None:
    for number, clique in enumerate(tested.cliques):
        ranks = tested.mean_ranks[list(clique)]
        ends = [ranks.min() - 0.06, ranks.max() + 0.06]
        axis.plot(ends, [BARS + 0.1 - STEP * number] * 2, color="black", linewidth=3.6, solid_capstyle="butt")


def _stems(axis: Axes, study: TableStudy, texts: list[str], tested: NemenyiResult, count: int) -> None:
    """The better half is named on the right, the other on the left, best and worst highest."""
    order = np.argsort(tested.mean_ranks, kind="stable")
    half = -(-len(order) // 2)
    first = BARS - STEP * len(tested.cliques)
    for place, method in enumerate(order):
        rank, right = float(tested.mean_ranks[method]), place < half
        height = first - STEP * (place if right else len(order) - 1 - place)
        end = 0.6 if right else count + 0.4
        colour = study.methods.colour(texts[method])
        axis.plot([rank, rank, end], [0, height, height], color=colour, linewidth=1.1, zorder=1)
        axis.plot(rank, 0, "o", color=colour, markersize=3.5)
        axis.text(
            end,
            height,
            f" {study.results.title(texts[method])} ({rank:.2f}) ",
            ha="left" if right else "right",
            va="center",
            fontsize=8,
        )


MAX_PANELS, COLUMNS = 8, 4


@FIGURES.register(
    "reliability",
    shows="Stated against real certainty of methods with an opinion on the fault type",
    needs="`readbench run --suite flagship`",
)
def reliability_diagram(study: TableStudy) -> Figure | None:
    """Queries of all datasets and seeds at the first level; None where no method of the run has an opinion."""
    results = study.results
    rho = results.levels[0]
    known = read_stated_probabilities(results)
    panels = list(by_method(known, rho).items())[:MAX_PANELS]
    if not panels:
        return None
    on = {method: [d for m, level, d in known if (m, level) == (method, rho)] for method, _ in panels}
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = sheet(max(3.0 * columns, 4.4) + 0.4, 3.1 * rows + 0.6)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for axis, (method, stated) in zip(axes, panels, strict=False):
        count, total = len(on[method]), len(results.datasets)
        name = results.title(method) + (f" ({count} of {total} datasets)" if count < total else "")
        draw_curve(axis, f"{name}\nECE {stated.curve.error:.3f}, floor {stated.floor:.3f}", stated.curve)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.supxlabel("stated probability of the most likely fault type", fontsize=9)
    figure.supylabel("share of right answers", fontsize=9)
    origins = [origin for dataset, origin in results.origins.items() if any(dataset in own for own in on.values())]
    entitle(figure, f"Reliability at ρ={rho}%, {count_origins(origins)}")
    return figure


def draw_curve(axis: Axes, title: str, curve: Reliability) -> None:
    """One reliability curve: marks grow with the number of answers, the dashed line is honesty."""
    axis.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    axis.plot(curve.confidence, curve.accuracy, color=METHOD_COLOURS[0], linewidth=1.4, zorder=2)
    sizes = 36.0 * curve.count / curve.count.max()
    axis.scatter(curve.confidence, curve.accuracy, s=sizes, color=METHOD_COLOURS[0], alpha=0.75, linewidth=0, zorder=3)
    axis.set_title(title, fontweight="bold")
    axis.set_xlim(0, 1.03)
    axis.set_ylim(-0.03, 1.03)
    axis.set_aspect("equal")


@dataclass(frozen=True, eq=False)
class DrawnFigure:
    """A figure and the name of its files."""

    name: str
    figure: Figure


def figures(study: TableStudy) -> Iterator[DrawnFigure]:
    """All figures that a run, and those beside it, have something for, one at a time."""
    for entry in FIGURES:
        if figure := _draw(entry, study):
            yield DrawnFigure(entry.name, figure)
    for curve in all_curves(study):
        yield DrawnFigure(curve.name, draw_budgets(curve))


def _draw(entry: FigureEntry, study: TableStudy) -> Figure | None:
    """The figure; an error in one of a plug-in becomes a warning."""
    try:
        return entry.factory(study)
    except Exception as error:
        if entry.origin == BUILT_IN:
            raise
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"The figure {entry.name} of {entry.origin} could not be drawn: {reason}", stacklevel=2)
        return None


def figure_captions() -> dict[str, str]:
    """Name of its files -> what a figure shows."""
    return {entry.name: entry.shows for entry in FIGURES} | {curve.name: curve.shows for curve in CURVES}


def all_curves(study: TableStudy) -> list[BudgetCurve]:
    """Curves of all runs of a report; a UsageError if two have the same one."""
    found: dict[str, BudgetCurve] = {}
    for results in (study.results, *study.others):
        for curve in curves(results):
            if curve.name in found:
                raise UsageError(f"{results.folder} has the curve {curve.name!r}, as another run of this report has.")
            found[curve.name] = curve
    return list(found.values())


def absent_figures(names: Iterable[str]) -> dict[str, str]:
    """Figures of the catalogue that are not among the names, and what each needs."""
    present = set(names)
    wanted = {entry.name: entry.needs for entry in FIGURES} | {curve.name: curve.filled_by for curve in CURVES}
    return {name: filled_by for name, filled_by in wanted.items() if name not in present}
