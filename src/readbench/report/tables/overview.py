"""The first tables of a report: leaderboard, datasets, comparisons, and what must be said beside them."""

from __future__ import annotations

import numpy as np

from readbench.report.leaderboard import Leaderboard, dataset_scores
from readbench.report.paired import Comparison
from readbench.report.results import Results
from readbench.report.significance import bracket, friedman_sentences, outcome
from readbench.report.tables.coverage import PARTIAL, SIMULATED, describe, marked, partial, under
from readbench.report.tables.table import Table


def leaderboard_table(results: Results, board: Leaderboard) -> Table:
    """Methods from best to worst: headline at each level, mean rank, other metrics at the first level."""
    first = results.levels[0]
    others = list(board.rows[0].others)
    header = ["Method", "Family", *(f"ρ={rho}%" for rho in results.levels), "Rank", *others]
    rows = [
        [row.title, row.family, *(str(row.headline[rho]) for rho in results.levels), _number(row.rank, 2)]
        + [_number(figure.mean) for figure in row.others.values()]
        for row in board.rows
    ]
    count = len(results.seeds)
    spread = f"mean ± standard deviation over {count} split seeds" if count > 1 else "one split seed"
    beside = " and ".join(filter(None, [", ".join(["rank", *others[:-1]]), *others[-1:]]))
    caption = f"{results.headline} over {describe(results)}, {spread}; {beside} at ρ={first}%"
    return Table("leaderboard", caption + under(results), header, rows)


def comparison_table(results: Results, compared: list[Comparison]) -> Table:
    """The best method against each other one, and what may be said of them."""
    turned = "" if results.metrics[results.headline].larger_is_better else " (less is better: differences are turned)"
    caption = (
        f"{results.title(compared[0].best)} minus the others, {results.headline}{turned} at ρ={results.levels[0]}% over"
        " all queries, with 95 % paired bootstrap intervals; p: Wilcoxon over datasets, Holm" + under(results)
    )
    several = compared[0].over_datasets is not None
    header = ["Other", "Difference", "over queries", "over split groups"]
    header += ["over datasets", "p", "outcome"] if several else ["outcome"]
    rows = [
        [
            results.title(c.other),
            f"{c.over_queries.mean:+.3f}",
            bracket(c.over_queries),
            bracket(c.over_groups) if c.over_groups else "one group",
            *([bracket(c.over_datasets)] if c.over_datasets else []),
            *([_number(c.p_value)] if several else []),
            outcome(c),
        ]
        for c in compared
    ]
    return Table("comparisons", caption, header, rows, labels=1)


def dataset_table(results: Results, board: Leaderboard) -> Table:
    """The headline metric per dataset at the first level, methods in leaderboard order."""
    first = results.levels[0]
    scores = dataset_scores(results, first)
    names = [marked(results, dataset) for dataset in results.datasets]
    rows = [[row.title, *map(_number, scores[:, results.methods.index(row.method)])] for row in board.rows]
    caption = f"{results.headline} per dataset at ρ={first}%" + under(results)
    return Table("datasets", caption, ["Method", *names], rows, labels=1)


def remarks(results: Results, board: Leaderboard) -> list[str]:
    """What must be said beside the tables: tests, what is simulated, what failed, notes of the tasks."""
    lines = friedman_sentences(board)
    if any(map(results.simulated, results.datasets)):
        lines.append(f"{SIMULATED} simulated data: these numbers say nothing about real plants.")
    if any(partial(results, dataset) for dataset in results.datasets):
        lines.append(
            f"{PARTIAL} partial data: official files are missing, or sizes or classes are not those of the paper; see"
            " the table `composition`."
        )
    lines += [f"{task}: {note}" for task, notes in results.manifest["notes"].items() for note in notes]
    return lines + _failures(results)


def _failures(results: Results) -> list[str]:
    """One line per reason, with how many cells it failed and the first of them."""
    cells: dict[str, list[str]] = {}
    for cell, reason in results.failures:
        cells.setdefault(reason, []).append(cell)
    return [f"{len(found)} cells {reason} (the first: {found[0]})" for reason, found in cells.items()]


def _number(value: float, digits: int = 3) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"
