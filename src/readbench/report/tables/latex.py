"""A table as LaTeX: booktabs rules, the best bold, the second best underlined."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from readbench.report.tables.table import Table

WIDE = 10
"""Columns from which a table is scaled to the width of the text."""
MARKED = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "Δ": r"$\Delta$",
    "χ": r"$\chi$",
    "²": "$^2$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "≤": r"$\le$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
}
_TRANSLATION = str.maketrans(ESCAPED)


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it stands.

    >>> escape("road_100%")
    'road\\_100\\%'
    """
    return text.translate(_TRANSLATION)


def latex(table: Table) -> str:
    """A `table` environment that needs the packages booktabs and, where it is wide, graphicx."""
    body = "\n".join(_tabular(table))
    if len(table.header) >= WIDE:
        body = "\\resizebox{\\textwidth}{!}{%\n" + body + "%\n}"
    return (
        "\\begin{table}[t]\n\\centering\n\\scriptsize\n"
        f"\\caption{{{escape(table.caption)}.}}\n\\label{{tab:{table.name}}}\n{body}\n\\end{{table}}\n"
    )


def _tabular(table: Table) -> list[str]:
    alignment = "l" * table.labels + "r" * (len(table.header) - table.labels)
    rows = []
    for r, row in enumerate(table.rows):
        rows += [r"\addlinespace"] if r in table.rules else []
        rows.append(_line(_cell(table, r, c) for c in range(len(row))))
    header = [*_headings(table), _line(map(escape, table.header))]
    return [
        f"\\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *header,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _cell(table: Table, row: int, column: int) -> str:
    text, mark = escape(table.rows[row][column]), table.marks.get((row, column))
    return MARKED[mark] % text if mark else text


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _headings(table: Table) -> list[str]:
    """The headings that several columns share, each with a rule under it."""
    if not any(table.over):
        return []
    cells, rules, at = [], [], 1
    for title, group in groupby(table.over):
        width = len(list(group))
        cells.append(f"\\multicolumn{{{width}}}{{c}}{{{escape(title)}}}")
        rules += [f"\\cmidrule(lr){{{at}-{at + width - 1}}}"] if title else []
        at += width
    return [_line(cells), "".join(rules)]
