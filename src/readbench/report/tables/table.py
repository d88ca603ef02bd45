"""One table as plain cells, and as markdown or CSV; LaTeX is in `latex`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Mark = Literal["best", "second"]
MARKDOWN = {"best": "**{}**", "second": "<ins>{}</ins>"}
"""How marked cells look; GitHub underlines what is inserted."""


@dataclass(frozen=True)
class Table:
    """A caption, a header and rows of text; the first `labels` columns are names, the others numbers.

    Args:
        name: of its files.
        caption: what it shows, over which data.
        header: title of each column.
        rows: texts, as many in each as there are columns.
        labels: how many of the first columns are names.
        over: what stands over each column where several share a heading; empty without such headings.
        marks: (row, column) -> best or second best.
        rules: rows that begin a new block.
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
        """Full title of each column, with what stands over it."""
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


def _piped(text: str) -> str:
    """A bar inside a cell does not end it."""
    return text.replace("|", "\\|")
