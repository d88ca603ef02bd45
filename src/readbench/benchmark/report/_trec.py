"""TREC files: relevance judgements and runs, for `trec_eval`, `ir_measures` and similar tools.

```
DATASET/seed-S/rho-R/qrels.txt      query 0 item relevance
DATASET/seed-S/rho-R/METHOD.run     query Q0 item place score method
```

These tools break ties by name, this benchmark by corpus order. The score in the file therefore counts places down; the
scores of the method are in `rankings/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from readbench.benchmark.report._results import Results
from readbench.benchmark.runs import Cell, Qrels, open_folder, plan_of
from readbench.common.files import write_atomically
from readbench.engine.windows import NORMAL


def write_trec(results: Results, folder: Path) -> list[Path]:
    """Write judgements and runs of all finished cells; returns the files."""
    held, files = open_folder(results.folder), dict[Path, None]()
    for cell in plan_of(results.manifest).cells():
        rows = held.read(cell)
        if rows is None:
            continue
        run = folder / held.cell_path(cell).relative_to(results.folder / "cells").with_suffix(".run")
        judged = folder / cell.dataset / f"seed-{cell.seed}" / f"rho-{cell.rho}" / "qrels.txt"
        if judged not in files:
            _write(judged, qrels_lines(held.read_qrels(cell.dataset, cell.seed), cell.rho))
        _write(run, run_lines(cell, rows))
        files |= dict.fromkeys([judged, run])
    return list(files)


def qrels_lines(qrels: Qrels, rho: int) -> Iterator[str]:
    """One line per relevant pair; a query without any has one irrelevant item, so that tools count it."""
    items, labels = qrels.at(rho)
    names = [token(item) for item in items]
    for query, label in zip(qrels.queries, qrels.query_labels, strict=True):
        found = np.flatnonzero((labels == label) & (label > NORMAL))
        for item in found:
            yield f"{token(query)} 0 {names[item]} 1"
        if not len(found):
            yield f"{token(query)} 0 {names[0]} 0"


def run_lines(cell: Cell, rows: pa.Table) -> Iterator[str]:
    """One line per place of each list."""
    for query, items in zip(rows["query"].to_pylist(), rows["items"].to_pylist(), strict=True):
        for place, item in enumerate(items, start=1):
            yield f"{token(query)} Q0 {token(item)} {place} {len(items) + 1 - place} {token(cell.method)}"


def token(text: str) -> str:
    """A name without white space, which separates the columns of TREC files.

    >>> token("run 3@128")
    'run%203@128'
    """
    return re.sub(r"[\s%]", lambda found: quote(found[0]), str(text))


def _write(path: Path, lines: Iterator[str]) -> None:
    with write_atomically(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
