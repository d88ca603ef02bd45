"""Comparisons as tables, markdown and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from readbench.evaluate import Interval
from readbench.report.compare import ALL_DATASETS, Compared, Flip, Side
from readbench.report.site.links import case_link
from readbench.report.tables import Table

SHOWN_FLIPS = 20
"""Flipped queries in markdown, those with the largest difference; JSON has all."""
PAGE = Path("report") / "index.html"
"""Where `readbench report` puts the page of a run, in its folder."""


def difference_table(compared: Sequence[Compared]) -> Table:
    """One row for each pair of methods and dataset; a single pair is named in the caption alone."""
    rows = []
    for pair in compared:
        names = [_pair(pair)] if len(compared) > 1 else []
        for row in pair.differences:
            numbers = [str(row.queries), f"{row.first:.3f}", f"{row.second:.3f}", f"{row.over_queries.mean:+.3f}"]
            words = [_interval(row.interval), _flipped(pair, row.dataset), row.outcome]
            rows.append([*names, _dataset(pair, row.dataset), *numbers, *words])
    labels = ["Method", "Dataset"] if len(compared) > 1 else ["Dataset"]
    header = [*labels, "Queries", "First", "Second", "Change", "interval", "hits", "Outcome"]
    return Table("compare", _caption(compared), header, rows, labels=len(labels))


def markdown(compared: Sequence[Compared], folder: Path) -> str:
    """The table, then the flipped queries of each pair with links into the case browser, relative to a folder."""
    parts = [difference_table(compared).markdown(), *(_flip_list(pair, folder) for pair in compared if pair.flips)]
    left_out = dict.fromkeys(line for pair in compared for line in pair.left_out)
    if left_out:
        parts.append("Left out: " + "; ".join(left_out) + ".\n")
    return "\n".join(parts)


def as_json(compared: Sequence[Compared], folder: Path) -> str:
    """Everything, for programs."""
    return json.dumps([_facts(pair, folder) for pair in compared], indent=1) + "\n"


def links(pair: Compared, flip: Flip, folder: Path) -> list[str]:
    """Addresses of a query in the case browser: one page of one run, or one page of each of two."""
    first, second = pair.first, pair.second
    if first.results.folder == second.results.folder:
        return [_link(first, flip, first.method, second.method, folder)]
    return [_link(side, flip, side.method, side.method, folder) for side in (first, second)]


def _link(side: Side, flip: Flip, first: str, second: str, folder: Path) -> str:
    page = Path(os.path.relpath(side.results.folder / PAGE, folder)).as_posix()
    return page + case_link(flip.dataset, flip.seed, flip.rho, flip.query, first, second)


def _flip_list(pair: Compared, folder: Path) -> str:
    gained = sum(flip.gained for flip in pair.flips)
    lost = len(pair.flips) - gained
    lines = [f"**{_pair(pair)}: the first hit became right for {gained} queries, wrong for {lost}**\n"]
    for flip in pair.flips[:SHOWN_FLIPS]:
        where = links(pair, flip, folder)
        names = ["both lists"] if len(where) == 1 else ["first", "second"]
        seen = ", ".join(f"[{name}]({link})" for name, link in zip(names, where, strict=True))
        change = "right" if flip.gained else "wrong"
        lines.append(
            f"- {flip.dataset} seed {flip.seed} `{flip.query}`: {change} now,"
            f" {pair.metric} {flip.difference:+.3f} ({seen})"
        )
    if len(pair.flips) > SHOWN_FLIPS:
        lines.append(f"- and {len(pair.flips) - SHOWN_FLIPS} more")
    return "\n".join(lines) + "\n"


def _facts(pair: Compared, folder: Path) -> dict[str, Any]:
    return {
        "first": {"run": str(pair.first.results.folder), "method": pair.first.method},
        "second": {"run": str(pair.second.results.folder), "method": pair.second.method},
        "metric": pair.metric,
        "rho": pair.rho,
        "differences": [asdict(row) | {"outcome": row.outcome} for row in pair.differences],
        "flips": [asdict(flip) | {"links": links(pair, flip, folder)} for flip in pair.flips],
        "left_out": list(pair.left_out),
    }


def _caption(compared: Sequence[Compared]) -> str:
    one = compared[0]
    first, second = (side.results.folder for side in (one.first, one.second))
    runs = f"in {first}" if first == second else f"in {second} against {first}"
    what = _pair(one) if len(compared) == 1 else "methods"
    return (
        f"{what} {runs}, {one.metric} at ρ={one.rho}%; 95 % paired bootstrap intervals over split groups, not corrected"
        " for the number of rows; hits: first hits that became right / wrong"
    )


def _pair(pair: Compared) -> str:
    one, two = pair.first.title, pair.second.title
    return one if one == two else f"{two} − {one}"


def _dataset(pair: Compared, dataset: str) -> str:
    simulated = dataset != ALL_DATASETS and pair.first.results.simulated(dataset)
    return f"{dataset}†" if simulated else dataset


def _flipped(pair: Compared, dataset: str) -> str:
    own = [flip.gained for flip in pair.flips if dataset in (ALL_DATASETS, flip.dataset)]
    return f"{sum(own)}/{len(own) - sum(own)}"


def _interval(interval: Interval) -> str:
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"
