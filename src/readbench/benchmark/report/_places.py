"""Places of methods with confidence intervals and tie groups, ranked among methods that read the same labels.

Intervals are those of `readbench.benchmark.metrics.rank_methods`; the table also shows how many datasets would separate
a method from the first of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    MIN_DATASETS,
    ConfidenceInterval,
    RankedMethods,
    bootstrap_datasets,
    datasets_to_separate,
    rank_methods,
    smallest_adjusted_p,
)
from readbench.benchmark.report._methods import describe, under
from readbench.benchmark.report._results import Results, dataset_scores, metrics_beside
from readbench.benchmark.report._retained import retained_shares, tell_retained
from readbench.benchmark.report._significance import ALPHA, bracket, read_query_values
from readbench.benchmark.report._statements import LABEL_USES, LabelUse, MethodStatement, state_method
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import TIMES, open_folder, read_costs

MAX_TIED = 12
"""Number of tie groups that get a letter."""


@dataclass(frozen=True, eq=False)
class MethodPlace:
    """Place of one method among those that read the same labels.

    Args:
        method: canonical text.
        stated: labels that it reads and datasets that its settings were chosen on.
        mean: mean headline over datasets at the first level.
        low: best place in the interval.
        high: worst place in the interval.
        rivals: number of methods ranked together, with itself.
        tie: letters of its tie groups.
        behind: the first of its kind minus it, interval over datasets; None for the first or with few datasets.
        needed: number of datasets that would show that difference; None if unknown.
        others: further metric -> mean.
        seconds: wall time of a task: mean over datasets of the median over seeds and levels, all stages together.
        cpu_s: processor seconds of a task from scratch; None if not measured.
        dollars: cost of language models in all cells.
        gpu: True if its text asks for a GPU.
    """

    method: str
    stated: MethodStatement
    mean: float
    low: int
    high: int
    rivals: int
    tie: str
    behind: ConfidenceInterval | None
    needed: int | None
    others: dict[str, float]
    seconds: float
    cpu_s: float | None = None
    dollars: float = 0.0
    gpu: bool = False


@dataclass(frozen=True, eq=False)
class Places:
    """Places of a run at its first level by label use, best first; `over_datasets` if datasets were resampled."""

    rows: tuple[MethodPlace, ...]
    over_datasets: bool


@lru_cache(maxsize=4)
def place_methods(results: Results) -> Places:
    """Rank the methods with every cell among those that read the same labels."""
    complete = [results.methods[m] for m in results.complete()]
    rows: list[MethodPlace] = []
    over = False
    for use in LABEL_USES:
        own = [text for text in complete if state_method(text).labels == use]
        if own:
            ranked = _rank(results, own)
            over = ranked.over_datasets
            rows += _places(results, own, ranked)
    return Places(tuple(rows), over)


def _rank(results: Results, methods: Sequence[str]) -> RankedMethods:
    read = read_query_values(results, methods)
    names = np.array(read.datasets)
    groups = np.array(read.groups)
    here = [names == dataset for dataset in results.datasets]
    return rank_methods([read.values[:, own] for own in here], [groups[own].tolist() for own in here], seed=0)


def _places(results: Results, methods: Sequence[str], ranked: RankedMethods) -> list[MethodPlace]:
    scores = results.orient(dataset_scores(results, results.levels[0]))
    columns = [results.methods.index(text) for text in methods]
    order = sorted(range(len(methods)), key=lambda i: -scores[:, columns[i]].mean())
    first = scores[:, columns[order[0]]]
    beside = metrics_beside(results.metrics, results.headline)
    usage, costs = open_folder(results.folder).read_usage(), read_costs(results.folder)
    found = []
    for i in order:
        own: NDArray[np.float64] = scores[:, columns[i]]
        same = i == order[0] or len(own) < MIN_DATASETS
        found.append(
            MethodPlace(
                method=methods[i],
                stated=state_method(methods[i]),
                mean=float(results.orient(own).mean()),
                low=int(ranked.low[i]),
                high=int(ranked.high[i]),
                rivals=len(methods),
                tie=_letters(ranked.groups[i]),
                behind=None if same else bootstrap_datasets(first, own, seed=0),
                needed=None if same else datasets_to_separate(first - own),
                others={m.title: float(results.at(m.name, results.levels[0])[:, :, columns[i]].mean()) for m in beside},
                seconds=_seconds(results, columns[i]),
                cpu_s=costs[methods[i]].cpu_s if methods[i] in costs else None,
                dollars=usage.get(methods[i], {}).get("cost", 0.0),
                gpu="device=cuda" in methods[i],
            )
        )
    return found


def _seconds(results: Results, method: int) -> float:
    """Mean over datasets of the median over seeds and levels of all stages together."""
    times = np.sum([results.values[name][..., method] for name in TIMES], axis=0)
    return float(np.mean(np.median(times.reshape(len(times), -1), axis=1)))


def _letters(groups: Sequence[int]) -> str:
    named = "".join(chr(ord("a") + number) for number in groups if number < MAX_TIED)
    return named if len(named) == len(groups) else f"{named}…"


def places_table(results: Results, uses: Sequence[LabelUse] = LABEL_USES) -> ReportTable | None:
    """Table with one row per method, grouped by label use; None with fewer than two complete methods."""
    found = place_methods(results)
    rows = [row for row in found.rows if row.stated.labels in uses]
    if len(rows) < 2:
        return None
    beside = [name for name in rows[0].others if name.startswith("HR")]
    needs = any(row.needed for row in rows)
    retained, paid, gpu = retained_shares(results), any(row.dollars for row in rows), any(row.gpu for row in rows)
    header = ["Labels", "Method", "Normals", results.headline, *beside, "Place", "Tie", "Behind the first"]
    header += ["Datasets needed"] * needs + ["Unseen assets retain"] * bool(retained)
    measured = any(row.cpu_s is not None for row in rows)
    header += [CPU if measured else "Seconds", *(["Dollars"] * paid), *(["GPU"] * gpu), CHOSEN]
    sets = _letter_sets(found.rows)
    cells = []
    for row in rows:
        line = [row.stated.label_text, results.title(row.method), "known" if row.stated.normals else "-"]
        line += [f"{row.mean:.3f}", *(f"{row.others[name]:.3f}" for name in beside), tell_place(row), row.tie]
        line += [f"{row.behind.mean:+.3f} {bracket(row.behind)}" if row.behind else "-"]
        line += [tell_needed(row, len(results.datasets))] * needs
        line += [tell_retained(retained.get(row.method))] * bool(retained)
        line += [tell_seconds(row.cpu_s if measured else row.seconds)]
        line += [*([f"{row.dollars:.2f}"] * paid), *(["yes" if row.gpu else "-"] * gpu)]
        chosen = row.stated.chosen_on
        cells.append([*line, f"{len(chosen)} ({sets[chosen]})" if chosen else "none"])
    task = next((cost.task for cost in read_costs(results.folder).values()), "")
    caption = _caption(results, found, needs=needs)
    caption += "".join(f"; {name}: {words.format(task=task)}" for name, words in COLUMNS.items() if name in header)
    shown = {row.stated.chosen_on for row in rows}
    told = [f"({letter}) {_tell_set(names, results)}" for names, letter in sets.items() if names in shown]
    caption += (f": {'; '.join(told)}" if told else "") + under(results)
    return ReportTable("places", caption, header, cells, labels=3)


def _letter_sets(rows: Sequence[MethodPlace]) -> dict[tuple[str, ...], str]:
    """Letter of each set of datasets that settings were chosen on."""
    found = dict.fromkeys(row.stated.chosen_on for row in rows if row.stated.chosen_on)
    return {names: chr(ord("A") + number) for number, names in enumerate(found)}


def _tell_set(names: Sequence[str], results: Results) -> str:
    """Names of datasets, or of the missing ones if these are fewer."""
    others = [name for name in results.datasets if name not in names]
    if len(names) + len(others) == len(results.datasets) and len(others) < len(names):
        return f"all but {', '.join(others)}" if others else "all"
    return ", ".join(names)


CPU = "CPU seconds"
CHOSEN = "Chosen on"
COLUMNS = {
    "Unseen assets retain": "share of what is beyond chance that is left where whole assets are held out",
    "Seconds": "wall time of a task, mean over datasets of the median over splits and levels",
    CPU: "of one processor for one task, from nothing ({task})",
    "Dollars": "of language models, all cells together",
    CHOSEN: "how many datasets were in sight when settings were chosen",
}
"""Explanations of columns in the caption."""


def tell_seconds(seconds: float | None) -> str:
    """Seconds with three digits; a dash for None."""
    return "-" if seconds is None else f"{seconds:.3g}"


def tell_place(row: MethodPlace) -> str:
    """A place, or the ends of its interval."""
    return str(row.low) if row.low == row.high else f"{row.low} to {row.high}"


def tell_needed(row: MethodPlace, datasets: int) -> str:
    """Number of further datasets that would separate a method from the first of its kind."""
    if row.behind is None:
        return "-"
    if row.needed is None:
        return "over 1000"
    return "enough" if row.needed <= datasets else f"{row.needed - datasets} more"


def _caption(results: Results, found: Places, *, needs: bool) -> str:
    what = "datasets and split groups" if found.over_datasets else "split groups of these datasets"
    return (
        f"{results.headline} at ρ={results.levels[0]}% over {describe(results)}, like beside like. Place: 95 % interval"
        f" of the rank among methods that read the same labels, by a paired bootstrap over {what}; Tie: whoever is not"
        " surely behind the first of a letter has it"
        + ("; Datasets needed: to show the difference to the first with a chance of 80 %" if needs else "")
    )


def tell_untested(results: Results) -> list[str]:
    """Why p-values are omitted, if none below .05 is possible."""
    methods, datasets = len(results.complete()), len(results.datasets)
    pairs = methods * (methods - 1) // 2
    if methods < 2 or datasets < MIN_DATASETS or (least := smallest_adjusted_p(datasets, pairs)) <= ALPHA:
        return []
    why = f"with {datasets} datasets and {pairs} pairs of methods the smallest that Wilcoxon's test can give"
    return [f"No p-values: {why} after Holm's correction is {least:.2g}."]
