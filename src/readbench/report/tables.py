"""Tables of a run, once as plain cells, then as terminal text, markdown or CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from readbench.experiment.budget import ALL, parse_budget
from readbench.report.leaderboard import HEADLINE, Leaderboard, dataset_scores
from readbench.report.paired import Comparison
from readbench.report.results import Results

SIMULATED = "†"
"""Marks simulated datasets in tables."""


@dataclass(frozen=True)
class Table:
    """A caption, a header and rows of text; the first `labels` columns are names, the others numbers."""

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    labels: int = 2

    def markdown(self) -> str:
        """GitHub markdown with the caption above."""
        rule = ["---"] * self.labels + ["---:"] * (len(self.header) - self.labels)
        lines = [" | ".join(cells) for cells in (self.header, rule, *self.rows)]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n"

    def csv(self) -> str:
        """Comma-separated, header first."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()


def leaderboard_table(results: Results, board: Leaderboard) -> Table:
    """Methods from best to worst: headline at each level, mean rank, other metrics at the first level."""
    first = results.levels[0]
    header = ["Method", "Family", *(f"ρ={rho}%" for rho in results.levels), "Rank", "P@10", "HR@10", "F1"]
    rows = [
        [row.title, row.family, *(str(row.headline[rho]) for rho in results.levels), _number(row.rank, 2)]
        + [_number(figure.mean) for figure in row.others.values()]
        for row in board.rows
    ]
    count = len(results.seeds)
    spread = f"mean ± standard deviation over {count} split seeds" if count > 1 else "one split seed"
    caption = f"{HEADLINE} over {describe(results)}, {spread}; rank, P@10, HR@10 and macro-F1 at ρ={first}%"
    return Table("leaderboard", caption + _under(results), header, rows)


def comparison_table(results: Results, board: Leaderboard, compared: list[Comparison]) -> Table:
    """The best method against each other one."""
    caption = (
        f"{board.rows[0].title} minus the others, {HEADLINE} at ρ={results.levels[0]}% over all queries,"
        " with 95 % paired bootstrap intervals; p: Wilcoxon over datasets, Holm" + _under(results)
    )
    header = ["Other", "Difference", "over queries", "over split groups", "p"]
    rows = [
        [results.title(c.other), f"{c.over_queries.mean:+.3f}"]
        + [f"[{interval.low:+.3f}, {interval.high:+.3f}]" for interval in (c.over_queries, c.over_groups)]
        + [_number(c.p_value)]
        for c in compared
    ]
    return Table("comparisons", caption, header, rows, labels=1)


def dataset_table(results: Results, board: Leaderboard) -> Table:
    """The headline metric per dataset at the first level, methods in leaderboard order."""
    first = results.levels[0]
    scores = dataset_scores(results, first)
    names = [f"{d}{SIMULATED}" if results.simulated(d) else d for d in results.datasets]
    rows = [[row.title, *map(_number, scores[:, results.methods.index(row.method)])] for row in board.rows]
    caption = f"{HEADLINE} per dataset at ρ={first}%" + _under(results)
    return Table("datasets", caption, ["Method", *names], rows, labels=1)


def remarks(results: Results, board: Leaderboard) -> list[str]:
    """What must be said beside the tables: tests, what is simulated, what failed, notes of the tasks."""
    lines = []
    for s in board.significance:
        verdict = "methods differ" if s.test.p_value < 0.05 else "no difference detected"
        lines.append(
            f"ρ={s.rho}%: Friedman χ² = {s.test.statistic:.2f}, p = {s.test.p_value:.2g} over"
            f" {len(results.datasets)} datasets ({verdict});"
            f" Nemenyi critical difference of mean ranks = {s.critical_difference:.2f}"
        )
    if not board.significance:
        lines.append("Too few datasets or methods for Friedman and Nemenyi (3 of each are needed).")
    if any(map(results.simulated, results.datasets)):
        lines.append(f"{SIMULATED} simulated data: these numbers say nothing about real plants.")
    lines += [f"{task}: {note}" for task, notes in results.manifest["notes"].items() for note in notes]
    return lines + _failures(results)


def _failures(results: Results) -> list[str]:
    """One line per reason, with how many cells it failed and the first of them."""
    cells: dict[str, list[str]] = {}
    for cell, reason in results.failures:
        cells.setdefault(reason, []).append(cell)
    return [f"{len(found)} cells {reason} (the first: {found[0]})" for reason, found in cells.items()]


def describe(results: Results) -> str:
    """How many datasets of which kind."""
    simulated = sum(map(results.simulated, results.datasets))
    total = len(results.datasets)
    kind = "simulated " if simulated == total else ""
    mixed = f", {simulated} of them simulated" if 0 < simulated < total else ""
    return f"{total} {kind}dataset{'s' if total > 1 else ''}{mixed}"


def _under(results: Results) -> str:
    """Which label budget a table shows, where it is not all labels."""
    last = parse_budget(results.labels[-1])
    return "" if last == ALL else f"; with {last.words}"


def _number(value: float, digits: int = 3) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"
