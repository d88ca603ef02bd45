"""The table of all reports, as markdown, CSV, HTML and LaTeX, and a page of tables.

LaTeX (`latex`) has booktabs rules, the best bold, the second best underlined.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape as escape_html
from importlib.resources import files
from itertools import groupby
from typing import Literal

from readbench.common import web

Mark = Literal["best", "second"]
MARKDOWN = {"best": "**{}**", "second": "<ins>{}</ins>"}
"""Markdown of marked cells; GitHub underlines inserted text."""


@dataclass(frozen=True)
class ReportTable:
    """A table of text cells.

    Args:
        name: name of its files.
        caption: what it shows, over which data.
        header: column titles.
        rows: cells, one per column in each row.
        labels: number of leading columns that are names; the others are numbers.
        over: shared heading above each column; empty without shared headings.
        marks: (row, column) -> best or second best.
        rules: indices of rows that begin a new block.
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    labels: int = 2
    over: tuple[str, ...] = ()
    marks: Mapping[tuple[int, int], Mark] = field(default_factory=dict)
    rules: tuple[int, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Title of each column with its shared heading."""
        over = self.over or ("",) * len(self.header)
        return [f"{above} {title}".strip() for above, title in zip(over, self.header, strict=True)]

    def markdown(self) -> str:
        """GitHub markdown with the caption above."""
        rule = ["---"] * self.labels + ["---:"] * (len(self.header) - self.labels)
        cells = [[self._marked(r, c) for c in range(len(row))] for r, row in enumerate(self.rows)]
        lines = [" | ".join(line) for line in ([_piped(title) for title in self.columns], rule, *cells)]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n"

    def csv(self) -> str:
        """Comma-separated, header first, without marks."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()

    def _marked(self, row: int, column: int) -> str:
        text = _piped(self.rows[row][column])
        mark = self.marks.get((row, column))
        return MARKDOWN[mark].format(text) if mark else text


def tell_number(value: float, digits: int = 3) -> str:
    """A number with its decimals; a dash for NaN."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def tell_values(value: object) -> str:
    """A value, or several with slashes between them."""
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def bullets(lines: Iterable[str]) -> list[str]:
    """A markdown list as one text; nothing without lines."""
    listed = [f"- {line}\n" for line in lines]
    return ["".join(listed)] if listed else []


def _piped(text: str) -> str:
    """Text with escaped bars, which would end the cell."""
    return text.replace("|", "\\|")


def html_table(table: ReportTable) -> str:
    """HTML of a table in a frame with its name as class; headings are buttons."""
    words = {*table.header[: table.labels], "Remarks"}
    kinds = ["name" if title in words else "number" for title in table.header]
    head = "".join(
        f'<th scope="col" class="{k}"><button type="button">{escape_html(title)}</button></th>'
        for k, title in zip(kinds, table.header, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{k}">{escape_html(cell)}</td>' for k, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    parts = f"<caption>{escape_html(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="frame {table.name}"><table>{parts}</table></div>'


def tables_page(kind: str, title: str, body: str) -> str:
    """A page of one file with sortable tables (`html_table`): `kind` beside the brand, window title, HTML body."""
    folder = files("readbench.benchmark.report")
    brand = f'<span class="brand">READ-Bench <small>{kind}</small></span>'
    head = f'<header id="top">{brand}<button type="button" id="theme"></button></header>'
    style, start = (web.asset(name, folder) for name in ("tables.css", "tables.js"))
    return web.closed_page(title, style, f"{head}\n<main>\n{body}\n</main>", start)


WIDE = 10
"""Number of columns from which a table is scaled to the text width."""
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
    "§": r"$^\S$",
    "¶": r"$^\P$",
}
_TRANSLATION = str.maketrans(ESCAPED)


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it stands.

    >>> escape("road_100%")
    'road\\_100\\%'
    """
    return text.translate(_TRANSLATION)


def latex(table: ReportTable) -> str:
    """A `table` environment that needs the packages booktabs and, where it is wide, graphicx."""
    body = "\n".join(_tabular(table))
    if len(table.header) >= WIDE:
        body = "\\resizebox{\\textwidth}{!}{%\n" + body + "%\n}"
    return (
        "\\begin{table}[t]\n\\centering\n\\scriptsize\n"
        f"\\caption{{{escape(table.caption)}.}}\n\\label{{tab:{table.name}}}\n{body}\n\\end{{table}}\n"
    )


def _tabular(table: ReportTable) -> list[str]:
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


def _cell(table: ReportTable, row: int, column: int) -> str:
    text, mark = escape(table.rows[row][column]), table.marks.get((row, column))
    return MARKED[mark] % text if mark else text


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _headings(table: ReportTable) -> list[str]:
    """Header lines of shared headings, each with a rule below."""
    if not any(table.over):
        return []
    cells, rules, at = [], [], 1
    for title, group in groupby(table.over):
        width = len(list(group))
        cells.append(f"\\multicolumn{{{width}}}{{c}}{{{escape(title)}}}")
        rules += [f"\\cmidrule(lr){{{at}-{at + width - 1}}}"] if title else []
        at += width
    return [_line(cells), "".join(rules)]
