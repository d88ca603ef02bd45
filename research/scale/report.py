"""Full corpora as a table and a picture: what methods find and cost as the corpus grows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from readbench.benchmark.report import ReportTable
from readbench.common.files import write_text
from readbench.common.plots import GRID_GREY, METHOD_COLOURS, entitle, save, sheet, with_style
from readbench.engine.spec import MethodSpec, parse
from research.scale.measuring import SCALE_METRIC, Findings, ScaleMeasurement, TwoStage, exponent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Figures = Callable[[ScaleMeasurement], float]
GROWING: dict[str, Figures] = {
    "search": lambda one: one.search_s,
    "fit": lambda one: one.encode_s + one.fit_s,
    "memory": lambda one: one.memory_bytes,
    "disk": lambda one: one.disk_bytes,
}
"""What grows with the corpus."""
LEAST_S = 0.01
"""Seconds below which a time says nothing about growth."""
FEW_DECADES = 300
"""Ratio of the largest to the smallest value below which ticks between powers of ten are named too."""
RUNNING = ("device", "batch")
"""Parameters that say how a method runs, not what it finds."""
NONE = "–"


def write_scale(findings: Findings, source: str, folder: Path) -> list[Path]:
    """Write tables and pictures of a study; returns the files."""
    files = {"scale.csv": rows_csv(findings.measured), "scale.md": _page(findings, source)}
    if findings.two_stage:
        files["two-stage.csv"] = rows_csv(findings.two_stage)
        files["two-stage.md"] = two_stage_table(findings.two_stage, source).markdown()
    for name, text in files.items():
        write_text(folder / name, text)
    drawn = []
    if findings.measured:
        figure = draw_scale(findings.measured, source)
        drawn = [folder / f"scale.{suffix}" for suffix in ("svg", "png")]
        for path in drawn:
            save(figure, path)
    return [*(folder / name for name in files), *drawn]


def rows_csv(rows: Sequence[ScaleMeasurement] | Sequence[TwoStage]) -> str:
    """All figures, unrounded, one row each."""
    text = io.StringIO()
    if rows:
        table = csv.DictWriter(text, list(asdict(rows[0])), lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in rows)
    return text.getvalue()


def measured_tables(measured: Sequence[ScaleMeasurement], source: str) -> list[ReportTable]:
    """Those that there is something for."""
    if not measured:
        return []
    growth = growth_table(measured)
    return [scale_table(measured, source), *([growth] if growth else [])]


def scale_table(measured: Sequence[ScaleMeasurement], source: str) -> ReportTable:
    """One row a method and size, with what the search found and took."""
    header = ["Method", "Windows", SCALE_METRIC, "Encode s", "Fit s", "Search s", "Memory GB", "Disk GB"]
    rows = [
        [
            title(one.method),
            f"{one.size:,}",
            f"{one.ndcg:.3f}",
            _seconds(one.encode_s) if one.encode_s else NONE,
            _seconds(one.fit_s),
            _seconds(one.search_s),
            f"{one.memory_bytes / 1e9:.2f}",
            _gigabytes(one.disk_bytes),
        ]
        for method in _methods(measured)
        for one in _of(measured, method)
    ]
    starts = [sum(len(_of(measured, m)) for m in _methods(measured)[:i]) for i in range(1, len(_methods(measured)))]
    queries = measured[0].queries
    caption = f"Full corpora of {source} (simulated, faults only): best 20 of each of {queries} queries"
    return ReportTable("scale", caption, header, rows, labels=1, rules=tuple(starts))


def growth_table(measured: Sequence[ScaleMeasurement]) -> ReportTable | None:
    """The metric at the smallest and largest corpus, and the exponents of growth between them; None for one size."""
    sizes = sorted({one.size for one in measured})
    if len(sizes) < 2:
        return None
    header = [
        "Method",
        f"{SCALE_METRIC} at {sizes[0]:,}",
        f"at {sizes[-1]:,}",
        "Δ",
        *(f"{name} ~ N^" for name in GROWING),
    ]
    rows = []
    for method in _methods(measured):
        own = _of(measured, method)
        first, last = own[0].ndcg, own[-1].ndcg
        grown = [_exponent(own, figure) for figure in GROWING.values()]
        rows.append([title(method), f"{first:.3f}", f"{last:.3f}", f"{last - first:+.3f}", *grown])
    return ReportTable("growth", "Growth with the corpus (fit includes encoding)", header, rows, labels=1)


def two_stage_table(rows: Sequence[TwoStage], source: str) -> ReportTable:
    """One row a size and length of the shortlist, then what seeds save of the exact search."""
    header = ["Windows", "Shortlist", "R@10", "R@20", SCALE_METRIC, "Find s", "Rank s"]
    header += ["Exact s", "Seeds s", "Seeded s", "Saved", "In all"]
    cells = [
        [
            f"{one.size:,}",
            f"{one.shortlist:,}",
            f"{one.recall_10:.3f}",
            f"{one.recall_20:.3f}",
            f"{one.ndcg:.3f}",
            _seconds(one.shortlist_s),
            _seconds(one.rank_s),
            _seconds(one.exact_s),
            _seconds(one.seeds_s),
            _seconds(one.seeded_s),
            f"{one.saved:.0%}",
            f"{one.saved_in_all:.0%}",
        ]
        for one in rows
    ]
    exact = ", ".join(f"{ndcg:.3f} at {size:,}" for size, ndcg in {one.size: one.exact_ndcg for one in rows}.items())
    caption = (
        f"Recall (R) of the exact DTW-I search of {source} ({SCALE_METRIC} {exact}) by a shortlist of"
        f" {title(rows[0].method)} that DTW-I ranks;"
        " the exact search from seeds, and the time they save, without and with the search for them"
    )
    return ReportTable("two-stage", caption, header, cells, labels=0)


@with_style
def draw_scale(measured: Sequence[ScaleMeasurement], source: str) -> Figure:
    """The metric, search time and memory over the size of the corpus, one line a method."""
    figure = sheet(10.5, 3.7)
    axes = figure.subplots(1, 3)
    panels: list[tuple[str, Figures]] = [
        (SCALE_METRIC, lambda one: one.ndcg),
        ("search, seconds", lambda one: one.search_s),
        ("own memory, GB", lambda one: one.memory_bytes / 1e9),
    ]
    for axis, (label, value) in zip(axes, panels, strict=True):
        _panel(axis, measured, value)
        axis.set_title(label)
        if label != SCALE_METRIC:
            _decades(axis)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False)
    queries = measured[0].queries
    entitle(figure, f"Full corpora of {source} (simulated): best 20 of each of {queries} queries")
    return figure


def title(method: str) -> str:
    """Name of a method in tables; where it runs stands behind it instead of among its parameters.

    >>> title("dtw-i(band=0.2,device=cuda)")
    'DTW-I(band=0.2) on GPU'
    """
    leg = parse(method).legs[0]
    parameters = dict(leg.stage.parameters)
    kept = tuple((name, value) for name, value in parameters.items() if name not in RUNNING)
    own = replace(leg, stage=replace(leg.stage, parameters=kept))
    return MethodSpec((own,)).title + (" on GPU" if parameters.get("device") == "cuda" else "")


def _panel(axis: Axes, measured: Sequence[ScaleMeasurement], value: Figures) -> None:
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    for method, colour, marker in zip(_methods(measured), cycle(METHOD_COLOURS), cycle("osD^vPX"), strict=False):
        own = _of(measured, method)
        points = [one.size for one in own], [value(one) for one in own]
        axis.plot(*points, color=colour, marker=marker, markersize=5, linewidth=1.8, label=title(method))
    sizes = sorted({one.size for one in measured})
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("windows in the corpus")
    axis.grid(color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)


def _decades(axis: Axes) -> None:
    """A logarithmic axis with few, plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > FEW_DECADES * low else (1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())


def _page(findings: Findings, source: str) -> str:
    """The tables, and what they lack."""
    parts = [table.markdown() for table in measured_tables(findings.measured, source)]
    parts.append(f"Building the largest corpus took {_seconds(findings.build_s)} s.\n")
    if findings.failures:
        parts.append("**Not measured**\n")
        parts += [f"* {one.cell}: {one.reason}" for one in findings.failures]
    return "\n".join(parts).rstrip() + "\n"


def _methods(measured: Sequence[ScaleMeasurement]) -> list[str]:
    return list(dict.fromkeys(one.method for one in measured))


def _of(measured: Sequence[ScaleMeasurement], method: str) -> list[ScaleMeasurement]:
    """Those of a method, from the smallest corpus to the largest."""
    return sorted((one for one in measured if one.method == method), key=lambda one: one.size)


def _exponent(own: Sequence[ScaleMeasurement], figure: Figures) -> str:
    values = [figure(one) for one in own]
    power = exponent([one.size for one in own], [value if value >= LEAST_S else 0.0 for value in values])
    return NONE if power is None else f"{power:.2f}"


def _seconds(value: float) -> str:
    """Three digits that say something.

    >>> _seconds(0.01234), _seconds(12.34), _seconds(1234.5)
    ('0.012', '12.3', '1234')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f}" if value >= 1e9 else f"{value / 1e9:.3f}"
