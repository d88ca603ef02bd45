"""The leaderboard of many submissions as tables, markdown, JSON and a page that needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from readbench.common import web
from readbench.report.standings import Standings
from readbench.report.tables import Table

NOTES = (
    "Every number was computed again from the lists and labels of its submission.",
    "A method without a place does not have every task. What a system was trained on is what its authors declared.",
)
SIMULATED_NOTE = "† simulated data: these numbers say nothing about real plants."


def standings_table(board: Standings) -> Table:
    """One row an entry: the headline at each level, other metrics at the first; partial ones have no place."""
    others = [metric.title for metric in board.others]
    header = ["Place", "Method", "Submission", *(f"ρ={rho}%" for rho in board.levels), *others, "Remarks"]
    rows = []
    for place, entry in zip(_places(board), board.entries, strict=True):
        names = [place, entry.title, ", ".join((entry.submission, *entry.also))]
        numbers = [*(entry.means[rho] for rho in board.levels), *entry.others.values()]
        rows.append([*names, *map(_number, numbers), "; ".join(entry.flags)])
    beside = f"; {', '.join(others)} at ρ={board.levels[0]}%" if others else ""
    caption = (
        f"{board.metric.name}, mean over datasets{beside}. Datasets: {len(board.datasets)};"
        f" submissions: {len(board.declared)}"
    )
    return Table("leaderboard", caption, header, rows, labels=3)


def by_dataset_table(board: Standings) -> Table:
    """One row an entry: the headline on each dataset."""
    datasets = [f"{name}†" if name in board.simulated else name for name in board.datasets]
    rows = [
        [place, entry.title, entry.submission, *(_number(entry.datasets[name]) for name in board.datasets)]
        for place, entry in zip(_places(board), board.entries, strict=True)
    ]
    caption = f"{board.metric.name} by dataset at ρ={board.levels[0]}%, mean over split seeds"
    return Table("datasets", caption, ["Place", "Method", "Submission", *datasets], rows, labels=3)


def rejected_table(board: Standings) -> Table:
    """Files that were not taken, and why."""
    rows = [[one.file, one.reason] for one in board.rejected]
    return Table("rejected", "Not taken", ["File", "Reason"], rows, labels=2)


def write_standings(board: Standings, folder: Path) -> list[Path]:
    """Write `index.html`, `leaderboard.md`, `leaderboard.json` and one CSV a table; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [standings_table(board), by_dataset_table(board)]
    refused = [rejected_table(board)] if board.rejected else []
    notes = "\n".join(f"- {note}" for note in _notes(board)) + "\n"
    contents = {
        "index.html": _page(tables, refused, _notes(board)),
        "leaderboard.md": "\n".join([*(table.markdown() for table in tables), notes, *(t.markdown() for t in refused)]),
        "leaderboard.json": json.dumps(_facts(board), indent=1) + "\n",
    }
    contents |= {f"{table.name}.csv": table.csv() for table in tables}
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in contents]


def _places(board: Standings) -> list[str]:
    return ["-" if entry.partial else str(place) for place, entry in enumerate(board.entries, start=1)]


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _notes(board: Standings) -> tuple[str, ...]:
    return (*NOTES, SIMULATED_NOTE) if board.simulated else NOTES


def _facts(board: Standings) -> dict[str, Any]:
    """Everything, for programs; JSON knows no NaN."""
    entries = [asdict(entry) for entry in board.entries]
    for entry in entries:
        for name in ("means", "datasets", "others"):
            entry[name] = {key: None if np.isnan(value) else value for key, value in entry[name].items()}
    return {
        "metric": asdict(board.metric),
        "entries": entries,
        "submissions": [declared.model_dump() for declared in board.declared],
        "rejected": [asdict(one) for one in board.rejected],
    }


def _page(tables: Sequence[Table], refused: Sequence[Table], notes: Sequence[str]) -> str:
    """One file without a reference to any other."""
    assets = files("readbench.report")
    theme, start, importmap = web.asset(web.THEME), web.asset("standings.js", assets), web.import_map(web.modules())
    return Template(web.asset("standings.html", assets)).substitute(
        policy=web.closed_policy(theme, importmap, start),
        style=web.asset("style.css"),
        theme=theme,
        importmap=importmap,
        tables="\n".join(map(_html, tables)),
        notes="".join(f"<li>{escape(note)}</li>" for note in notes),
        rejected="\n".join(map(_html, refused)),
        start=start,
    )


def _html(table: Table) -> str:
    """A table whose columns can be sorted; names and remarks stand left, numbers right."""
    words = {*table.header[: table.labels], "Remarks"}
    kinds = ["name" if title in words else "number" for title in table.header]
    head = "".join(
        f'<th scope="col" class="{kind}"><button type="button">{escape(title)}</button></th>'
        for kind, title in zip(kinds, table.header, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f'<td class="{k}">{escape(cell)}</td>' for k, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in table.rows
    )
    parts = f"<caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="frame {table.name}"><table>{parts}</table></div>'
