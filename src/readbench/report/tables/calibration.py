"""Whether stated certainty holds, method by method."""

from __future__ import annotations

from readbench.report.results import Results
from readbench.report.stated import Stated, by_method, read_stated
from readbench.report.tables.coverage import describe, marked, under
from readbench.report.tables.table import Table

HEADER = ("Method", "Dataset", "ρ", "Queries", "Accuracy", "Stated", "p(true)", "ECE", "Floor")


def calibration_table(results: Results) -> Table | None:
    """One row a method, level and dataset, and one for all of them; None where no method has an opinion."""
    stated = read_stated(results)
    if not stated:
        return None
    rows: list[list[str]] = []
    rules: list[int] = []
    for method in dict.fromkeys(method for method, _, _ in stated):
        rules.append(len(rows))
        for rho in results.levels:
            own = {dataset: one for (m, level, dataset), one in stated.items() if (m, level) == (method, rho)}
            names = {marked(results, dataset): one for dataset, one in own.items()}
            if len(own) > 1:
                names["all"] = by_method(stated, rho)[method]
            rows += [[results.short_title(method), name, f"{rho}%", *_figures(one)] for name, one in names.items()]
    caption = (
        "Opinions on the fault type: share of right ones, mean stated probability of the most likely and of the true"
        " type, expected calibration error, and its floor: what honest probabilities would show with so many queries;"
        f" {describe(results)}, queries of all split seeds together"
    )
    return Table("calibration", caption + under(results), list(HEADER), rows, labels=3, rules=tuple(rules[1:]))


def _figures(stated: Stated) -> list[str]:
    values = (stated.correct.mean(), stated.confidence.mean(), stated.truth.mean(), stated.curve.error, stated.floor)
    return [str(len(stated.correct)), *(f"{value:.3f}" for value in values)]
