"""Early retrieval as tables and as a picture: what is known how soon after the onset.

```
early.csv            every dataset, level and method: NDCG@10 and P@1 by the time since the onset
early-notices.csv    when the first right and firm answer comes, and how often notice is given of nothing
early.md             both
early.svg, early.png means over datasets, the right notices so far, and a panel a dataset
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import SHARES
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import WITH_NORMALS
from readbench.benchmark.studies import EARLY_METRICS, FALSE_NOTICES, EarlyResult, Way
from readbench.common.plots import GRID_GREY, METHOD_COLOURS, REFERENCE_GREY, entitle, save, sheet, with_style
from readbench.engine.spec import parse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
SIMULATED_MARK = "†"
FLOOR = "random"
AFTER = "detector, then "
"""What stands before the name of a method that is asked only about departures."""
BRIEF = (0.0, 1 / 8, 1 / 2, 1.0)
"""Times that have room on a terminal."""
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
Blocks = dict[tuple[str, int, str], list[EarlyResult]]


def early_blocks(measured: Sequence[EarlyResult], way: Way = "asked") -> Blocks:
    """Results of all seeds by dataset, level and method, in the order of the study."""
    found: Blocks = {}
    for one in (own for own in measured if own.way == way):
        found.setdefault((one.cell.dataset, one.rho, one.cell.method), []).append(one)
    datasets, methods = (_once(getattr(one.cell, name) for one in measured) for name in ("dataset", "method"))
    order = sorted(found, key=lambda key: (datasets.index(key[0]), key[1], methods.index(key[2])))
    return {key: found[key] for key in order}


def early_table(measured: Sequence[EarlyResult], *, brief: bool = False) -> ReportTable:
    """One row a dataset, level and method: both metrics by the time since the onset; means over datasets first.

    Args:
        measured: of all datasets.
        brief: at few times only, for a terminal.
    """
    rows, rules, at = [], [], [i for i, share in enumerate(SHARES) if not brief or share in BRIEF]
    for rho, method in _once_pairs(measured):
        means = [mean_course(measured, rho, method, metric)[at] for metric in range(len(EARLY_METRICS))]
        count = len(_whole_blocks(measured, rho, method))
        rows.append([f"mean of {count}", str(rho), early_title(method), "", *_numbers(np.concatenate(means))])
    last = ("", -1)
    for (dataset, rho, method), block in early_blocks(measured).items():
        if (dataset, rho) != last:
            rules.append(len(rows))
            last = dataset, rho
        onsets = sum(one.scores.shape[2] for one in block)
        figures = [_at_all(block, metric)[at] for metric in range(len(EARLY_METRICS))]
        rows.append([_marked(block[0]), str(rho), early_title(method), str(onsets), *_numbers(np.concatenate(figures))])
    caption = (
        "Early retrieval: windows of one length T that end so long after the onset of a fault, in shares of T; at 0"
        f" nothing has happened yet, and only chance and shortcuts can score. {SIMULATED_MARK} simulated"
    )
    times = [_fraction(SHARES[i]) for i in at]
    header = ["Dataset", "ρ", "Method", "Onsets", *times, *times]
    over = ("", "", "", "", *(metric for metric in EARLY_METRICS for _ in times))
    return ReportTable("early", caption, header, rows, labels=3, over=over, rules=tuple(rules))


def notice_table(measured: Sequence[EarlyResult]) -> ReportTable:
    """One row a dataset, level and method: when notice is given, whether it is right, and how often of nothing."""
    rows: list[list[str]] = []
    rules, last = [], ("", -1)
    later = early_blocks(measured, "after a detector")
    for key, block in early_blocks(measured).items():
        dataset, rho, method = key
        if (dataset, rho) != last:
            rules.append(len(rows))
            last = dataset, rho
        rows.append([_marked(block[0]), str(rho), early_title(method), *_notices(block)])
        if key in later:
            rows.append([_marked(block[0]), str(rho), f"{AFTER}{early_title(method)}", *_notices(later[key])])
    caption = (
        f"Notices, where {FALSE_NOTICES:.0%} of normal windows may be given one: how often that happens to normal"
        " windows of other recordings, and to windows that end at the onset; of the onsets, the share whose fault is"
        " rightly and firmly named within T/8, T/2 and T; the median time to the first right and firm answer, in shares"
        f" of T (over T where fewer than half get one); of first notices, the share that is right. {AFTER.strip()}:"
        f" asked only where a detector sees a departure, as a watch does. {SIMULATED_MARK} simulated; blank where too"
        " few normal windows are held out"
    )
    header = [
        "Dataset",
        "ρ",
        "Method",
        "Onsets",
        "False",
        "At onset",
        "by T/8",
        "by T/2",
        "by T",
        "Median",
        "Right",
    ]
    return ReportTable("early-notices", caption, header, rows, labels=3, rules=tuple(rules[1:]))


def _notices(block: Sequence[EarlyResult]) -> list[str]:
    first = np.concatenate([one.first_right for one in block])
    rates = [one.false_notices for one in block if not np.isnan(one.false_notices)]
    onsets = [str(len(first))]
    if not rates:
        return [*onsets, *([""] * 7)]
    early = np.concatenate([one.notice[0] for one in block])
    middle = float(np.median(first))
    shares = [float((first <= limit).mean()) for limit in (1 / 8, 1 / 2, 1.0)]
    right = [one.noticed_right for one in block if not np.isnan(one.noticed_right)]
    return [
        *onsets,
        *_numbers([float(np.mean(rates)), float(early.mean()), *shares]),
        _fraction(middle) if np.isfinite(middle) else ">1",
        *_numbers([float(np.mean(right)) if right else float("nan")]),
    ]


def mean_course(measured: Sequence[EarlyResult], rho: int, method: str, metric: int) -> Floats:
    """(S,) mean over the datasets of a method that reach all times, each counting the same."""
    return _mean([_at_all(block, metric) for block in _whole_blocks(measured, rho, method)])


def right_course(measured: Sequence[EarlyResult], rho: int, method: str) -> Floats:
    """(S,) the share of onsets that are rightly and firmly named by then, a mean over datasets."""
    courses = []
    for block in _whole_blocks(measured, rho, method):
        if not np.isnan(block[0].false_notices):
            first = np.concatenate([one.first_right for one in block])
            courses.append(np.array([(first <= share).mean() for share in SHARES]))
    return _mean(courses)


def _whole_blocks(measured: Sequence[EarlyResult], rho: int, method: str) -> list[list[EarlyResult]]:
    """Those of a method on datasets that reach all times: a mean over others would jump where one ends."""
    blocks = [block for (_, level, own), block in early_blocks(measured).items() if (level, own) == (rho, method)]
    return [block for block in blocks if len(block[0].shares) == len(SHARES)]


def _mean(courses: list[Floats]) -> Floats:
    return np.mean(courses, axis=0) if courses else np.full(len(SHARES), np.nan)


def _at_all(block: Sequence[EarlyResult], metric: int) -> Floats:
    """(S,) a metric at all shares, NaN at those that the source does not reach."""
    own = np.concatenate([one.scores[metric] for one in block], axis=1).mean(axis=1)
    return np.concatenate([own, np.full(len(SHARES) - len(own), np.nan)])


@with_style
def draw_early(measured: Sequence[EarlyResult], rho: int | None = None) -> Figure:
    """Means over datasets, right notices so far, and NDCG@10 of each dataset, at one level (the highest)."""
    rho = max(one.rho for one in measured) if rho is None else rho
    chosen = [one for one in measured if one.rho == rho]
    methods, datasets = _once(one.cell.method for one in chosen), _once(one.cell.dataset for one in chosen)
    complete = [name for name in datasets if all((name, rho, method) in early_blocks(chosen) for method in methods)]
    common = [one for one in chosen if one.cell.dataset in complete]
    count = max((len(_whole_blocks(common, rho, method)) for method in methods), default=0)
    columns = min((5, 4, 6), key=lambda count: -len(datasets) % count) if len(datasets) > 5 else len(datasets)
    rows = -(-len(datasets) // columns)  # the fewest empty places
    figure = sheet(9.6, 3.6 + 1.75 * rows)
    parts = figure.subfigures(2, 1, height_ratios=[3.0, 1.75 * rows], squeeze=False)
    above, below = parts[0, 0], parts[1, 0]
    left, right = above.subplots(1, 2)
    small = np.atleast_1d(below.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    styles = _styles(methods)
    for method in methods:
        _draw(left, mean_course(common, rho, method, 0), styles[method], early_title(method))
        _draw(right, right_course(common, rho, method), styles[method])
        for axis, name in zip(small, datasets, strict=False):
            if (name, rho, method) in early_blocks(chosen):
                _draw(axis, _at_all(early_blocks(chosen)[name, rho, method], 0), styles[method], size=2.5)
    left.set_title(f"NDCG@10, mean of {count} datasets" if count > 1 else "NDCG@10")
    right.set_title(f"Rightly and firmly named so far (false notices {FALSE_NOTICES:.0%})")
    for axis, name in zip(small, datasets, strict=False):
        block = next(own for (own_name, _, _), own in early_blocks(chosen).items() if own_name == name)
        axis.set_title(f"{_marked(block[0])}, {sum(one.scores.shape[2] for one in block)} onsets", fontsize=8)
    for axis in (left, right, *small[: len(datasets)]):
        _dress(axis)
    for place, axis in enumerate(small[: len(datasets)]):
        axis.tick_params(labelbottom=place + columns >= len(datasets))
    for axis in small[len(datasets) :]:
        axis.set_axis_off()
    for axis in (left, right):
        axis.set_xlabel("time since the onset, in window lengths")
    below.supxlabel("time since the onset, in window lengths", fontsize=8)
    below.supylabel("NDCG@10", fontsize=8)
    above.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=min(4, len(methods)), frameon=False
    )
    entitle(figure, f"How soon after the onset is the right case found? ρ={rho}%")
    return figure


Style = dict[str, object]


def _styles(methods: Sequence[str]) -> dict[str, Style]:
    """One colour and marker a method; chance is a grey dashed line."""
    others = [method for method in methods if method != FLOOR]
    found: dict[str, Style] = {FLOOR: {"color": REFERENCE_GREY, "linestyle": (0, (4, 2)), "linewidth": 1.2}}
    for method, colour, marker in zip(others, cycle(METHOD_COLOURS), cycle("osD^vP*"), strict=False):
        found[method] = {"color": colour, "marker": marker, "linewidth": 1.6}
    return found


def _draw(axis: Axes, values: Floats, style: Style, title: str = "", size: float = 4.5) -> None:
    axis.plot(SHARES, values, markersize=size, label=title or None, **style)  # type: ignore[arg-type]


def _dress(axis: Axes) -> None:
    axis.set_ylim(0, 1)
    axis.set_xticks(TICKS, ["0", "¼", "½", "¾", "1"])
    axis.grid(axis="y", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    axis.tick_params(labelsize=8)


def write_early(measured: Sequence[EarlyResult], folder: Path) -> list[str]:
    """Write tables, the page and the picture; their names."""
    tables = early_table(measured), notice_table(measured)
    written = ["early.md"]
    (folder / written[0]).write_text("\n".join(table.markdown() for table in tables))
    for table in tables:
        written.append(f"{table.name}.csv")
        (folder / written[-1]).write_text(table.csv())
    figure = draw_early(measured)
    for suffix in ("svg", "png"):
        written.append(f"early.{suffix}")
        save(figure, folder / written[-1])
    return written


def early_title(method: str) -> str:
    """Name of a method in tables."""
    return "Flagship, normal a class" if parse(method) == parse(WITH_NORMALS) else parse(method).title


def _marked(one: EarlyResult) -> str:
    return f"{one.cell.dataset}{SIMULATED_MARK if one.simulated else ''}"


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _once_pairs(measured: Sequence[EarlyResult]) -> list[tuple[int, str]]:
    methods = _once(one.cell.method for one in measured)
    return [(rho, method) for rho in sorted({one.rho for one in measured}) for method in methods]


def _numbers(values: Iterable[float]) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.3f}" for value in values]


def _fraction(share: float) -> str:
    """A share as people write it.

    >>> _fraction(0.0625), _fraction(1.0)
    ('1/16', '1')
    """
    return str(Fraction(share).limit_denominator(32))
