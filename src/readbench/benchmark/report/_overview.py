"""The first tables of a run (leaderboard, datasets, comparisons), remarks, and their output in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from readbench.benchmark.report._budgets import budget_table, curves
from readbench.benchmark.report._bundle import asked_models
from readbench.benchmark.report._methods import describe, mark_dataset, marks_of, under
from readbench.benchmark.report._origins import explain_marks, find_real
from readbench.benchmark.report._places import places_table, tell_untested
from readbench.benchmark.report._results import Leaderboard, LeaderboardRow, Results, dataset_scores, leaderboard
from readbench.benchmark.report._retained import retained_table
from readbench.benchmark.report._significance import (
    PairedComparison,
    bracket,
    comparisons,
    friedman_sentences,
    outcome,
    sentence,
)
from readbench.benchmark.report._statements import state_method
from readbench.benchmark.report._table import ReportTable, tell_number
from readbench.engine.llm import MARKED_ABOVE


def leaderboard_table(results: Results, board: Leaderboard) -> ReportTable:
    """Methods from best to worst: headline by level over all and over real datasets, mean rank, other metrics."""
    first = results.levels[0]
    others, real = list(board.rows[0].others), list(board.rows[0].real)
    header = ["Method", "Labels", *(f"ρ={rho}%" for rho in results.levels), *(f"real ρ={rho}%" for rho in real)]
    header += ["Rank", *others]
    rows = [
        [row.title, state_method(row.method).knowledge, *(tell_figure(row, rho, results) for rho in results.levels)]
        + [tell_number(row.real[rho].mean) for rho in real]
        + [tell_number(row.rank, 2), *(tell_number(figure.mean) for figure in row.others.values())]
        for row in board.rows
    ]
    several = len(results.seeds) > 1
    spread = f"mean ± standard deviation over {results.told_seeds}" if several else "one split seed"
    beside = " and ".join(filter(None, [", ".join(["rank", *others[:-1]]), *others[-1:]]))
    caption = f"{results.headline} over {describe(results)}, {spread}; {beside} at ρ={first}%"
    if any(row.datasets < len(results.datasets) for row in board.rows):
        caption += f"; (n of {len(results.datasets)}): over the n datasets that it has, so it has no rank"
    if real:
        caption += f"; real: over the real ones alone ({len(find_real(results.origins))})"
    return ReportTable("leaderboard", caption + under(results), header, rows)


def tell_figure(row: LeaderboardRow, rho: int, results: Results) -> str:
    """A mean, with the number of datasets if not all."""
    part = f" ({row.datasets} of {len(results.datasets)})" if 0 < row.datasets < len(results.datasets) else ""
    return str(row.headline[rho]) + part


def comparison_table(results: Results, compared: list[PairedComparison]) -> ReportTable:
    """Table of the best method against each other one, with outcomes."""
    turned = "" if results.metrics[results.headline].larger_is_better else " (less is better: differences are turned)"
    several, mixed = compared[0].over_datasets is not None, compared[0].over_real is not None
    tested = several and not np.isnan(compared[0].p_value)
    caption = (
        f"{results.title(compared[0].best)} minus the others, {results.headline}{turned} at ρ={results.levels[0]}%:"
        f" over all queries, and means over {describe(results)}; with 95 % paired bootstrap intervals"
        + ("; p: Wilcoxon over datasets, Holm" if tested else "")
        + under(results)
    )
    header = ["Other", "Difference", "over queries", "over split groups"]
    header += ["mean", "over datasets"] * several + ["real mean", "over real datasets"] * mixed
    header += ["p", "outcome"] if tested else ["outcome"]
    rows = [
        [
            results.title(c.other),
            f"{c.over_queries.mean:+.3f}",
            bracket(c.over_queries),
            bracket(c.over_groups) if c.over_groups else "one group",
            *(cell for own in (c.over_datasets, c.over_real) if own for cell in (f"{own.mean:+.3f}", bracket(own))),
            *([tell_number(c.p_value)] if tested else []),
            outcome(c),
        ]
        for c in compared
    ]
    return ReportTable("comparisons", caption, header, rows, labels=1)


def dataset_table(results: Results, board: Leaderboard) -> ReportTable:
    """Table of the headline by dataset at the first level, methods in leaderboard order."""
    first = results.levels[0]
    scores = dataset_scores(results, first)
    names = [mark_dataset(results, dataset) for dataset in results.datasets]
    rows = [[row.title, *map(tell_number, scores[:, results.methods.index(row.method)])] for row in board.rows]
    caption = f"{results.headline} per dataset at ρ={first}%" + under(results)
    return ReportTable("datasets", caption, ["Method", *names], rows, labels=1)


ANSWERS = ("questions", "given_up", "refusal", "truncated", "unreadable", "empty", "calls")
"""Counts of answers of language models in the table."""


def answer_table(results: Results) -> ReportTable | None:
    """Table of language models asked and answering by method, with failed cells; None without any."""
    rows = [
        [
            results.title(method),
            ", ".join(f"{own['provider']} {own['model']}" for own in models.asked),
            ", ".join(models.answered_by) or "not told",
            *(f"{models.usage.get(name, 0):g}" for name in ANSWERS),
            f"{models.usage.get('cost', 0):.2f}",
            f"{models.usage['spread'] / models.usage['sampled']:.2f}" if models.usage.get("sampled") else "-",
        ]
        for method, models in asked_models(results).items()
    ]
    caption = (
        "Questions to language models; given_up: without a readable answer; cost in dollars, where prices are set;"
        " spread: standard deviation of places or ratings over repeated answers"
    )
    header = ["Method", "Asked", "Answered by", *ANSWERS, "cost", "spread"]
    return ReportTable("answers", caption, header, rows, labels=3) if rows else None


def remarks(results: Results, board: Leaderboard) -> list[str]:
    """Remarks on the tables: tests, explanations of marks, failures, notes of the tasks."""
    lines = [*friedman_sentences(board), *tell_untested(results), *tell_missing(results)]
    lines += explain_marks(marks_of(results, dataset) for dataset in results.datasets)
    if any(share > MARKED_ABOVE for share in results.unanswered.values()):
        lines.append(
            "[! n% unanswered]: in its worst cell so many questions to the language model have no readable answer"
        )
    lines += [
        f"{results.title(method)}: {models.usage['other_model']:g} answers came from another model than was asked"
        f" ({', '.join(models.answered_by)})"
        for method, models in asked_models(results).items()
        if models.usage.get("other_model")
    ]
    lines += [f"{task}: {note}" for task, notes in results.manifest["notes"].items() for note in notes]
    return lines + _failures(results)


def tell_missing(results: Results) -> list[str]:
    """A sentence on planned cells that are not computed."""
    if not (missing := results.missing()):
        return []
    worst = ", ".join(f"{results.title(method)} {count}" for method, count in list(missing.items())[:5])
    more = f" and {len(missing) - 5} more methods" if len(missing) > 5 else ""
    return [f"{sum(missing.values())} cells are planned and not computed: {worst}{more}."]


def _failures(results: Results) -> list[str]:
    """One line per reason with the number of failed cells and the first of them."""
    cells: dict[str, list[str]] = {}
    for cell, reason in results.failures:
        cells.setdefault(reason, []).append(cell)
    return [f"{len(found)} cells {reason} (the first: {found[0]})" for reason, found in cells.items()]


STYLES = {"best": "bold", "second": "underline"}
"""Terminal styles of marked cells."""
MAX_ROWS = 50
"""Most rows of a table in a terminal."""


@dataclass(frozen=True)
class RunOverview:
    """First tables, remarks on them, and findings: sentences on the best method against each other one."""

    tables: list[ReportTable]
    remarks: list[str]
    findings: list[str]


@lru_cache(maxsize=2)
def overview(results: Results) -> RunOverview:
    """The overview of a run; cached, because its tests draw many resamples."""
    board = leaderboard(results)
    compared = comparisons(results, board)
    tables = [
        leaderboard_table(results, board),
        places_table(results),
        dataset_table(results, board),
        *map(budget_table, curves(results)),
        retained_table(results),
        comparison_table(results, compared) if compared else None,
        answer_table(results),
    ]
    findings = [sentence(results, one) for one in compared]
    return RunOverview([table for table in tables if table], remarks(results, board), findings)


def show_report(results: Results, console: Console) -> None:
    """Print the first tables and remarks."""
    first = overview(results)
    for table in first.tables:
        show_table(table, console, MAX_ROWS)
    for line in first.remarks:
        console.print(line, style="dim", highlight=False, markup=False)  # pip install 'readbench[extra]' is no markup


def show_table(table: ReportTable, console: Console, most: int | None = None) -> None:
    """Print a table or its first rows; a wide one in parts that each repeat the names."""
    rows, names = table.rows[:most], range(table.labels)
    for place, part in enumerate(_fit_columns(table, rows, console.width)):
        title = "" if place else table.caption
        view = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for c in (*names, *part):
            number = c >= table.labels and max((cell_len(row[c]) for row in rows), default=0) <= console.width // 2
            view.add_column(table.columns[c], justify="right" if number else "left", no_wrap=number, overflow="fold")
        for r, row in enumerate(rows):
            marks = {c: table.marks.get((r, c)) for c in (*names, *part)}
            view.add_row(*(Text(row[c], STYLES[mark] if mark else "") for c, mark in marks.items()))
        console.print(view)
    if most is not None and len(table.rows) > most:
        console.print(f"and {len(table.rows) - most} more, in {table.name}.csv", style="dim", highlight=False)


def _fit_columns(table: ReportTable, rows: list[list[str]], width: int) -> list[list[int]]:
    """Indices of number columns in parts that fit beside the names, which get at most half of the width."""
    gap = 3
    texts = [[title, *(row[c] for row in rows)] for c, title in enumerate(table.columns)]
    widest = [max(map(cell_len, column)) + gap for column in texts]
    left = width - min(sum(widest[: table.labels]), width // 2)
    parts: list[list[int]] = [[]]
    for c in range(table.labels, len(table.columns)):
        if parts[-1] and sum(widest[own] for own in parts[-1]) + widest[c] > left:
            parts.append([])
        parts[-1].append(c)
    return parts
