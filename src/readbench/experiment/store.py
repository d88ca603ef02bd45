"""The run folder: one small file per finished cell, and the tables made from them.

```
cells/DATASET/seed-S/rho-R/METHOD.parquet   written whole as soon as the cell ends: what resuming relies on;
                    under a label budget in a folder labels-BUDGET below rho-R
scores.csv          one row per cell in plan order; a failed cell has its reason in `status`
scores_mean.csv     mean and standard deviation over the split seeds
per_query.parquet   long rows: dataset, seed, rho, labels, method, query, group, metric, value
rankings/DATASET.parquet   top-100 lists
gallery.parquet     queries and the windows found for them, as a case browser draws them (`experiment/gallery.py`)
usage.csv           where language models ran: calls, tokens, dollars and failures of their answers, one row each
tasks/DATASET/seed-S.parquet   ids and labels of queries and corpus: what metrics can be computed from again
run.json            plan, versions, fingerprints, machine, wall time
```

Everything but the time columns of `scores.csv` and `run.json` is a function of plan, data and code: the same bytes,
whatever was interrupted and whoever computed which cell.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from readbench.evaluate import MACRO_F1, METRICS
from readbench.experiment.budget import ALL
from readbench.experiment.cells import STAGES, Outcome
from readbench.experiment.plan import Cell, Plan

KEY = ("dataset", "seed", "rho", "labels", "method")
COLUMNS = (*METRICS, MACRO_F1)
TIMES = tuple(f"{stage}_s" for stage in STAGES)
HEADER = (*KEY, "queries", *COLUMNS, *TIMES, "status")
DONE = "ok"


class RunStore:
    """Reads and writes one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Where a cell's file is."""
        slug = re.sub(r"[^\w.+|-]", "_", cell.method).replace("|", "_")[:80]
        unique = hashlib.sha256(cell.method.encode()).hexdigest()[:8]
        level = self.folder / "cells" / cell.dataset / f"seed-{cell.seed}" / f"rho-{cell.rho}"
        place = level if cell.labels == str(ALL) else level / f"labels-{cell.labels}"
        return place / f"{slug}-{unique}.parquet"

    def save(self, outcome: Outcome) -> None:
        """Write a cell's file whole, or not at all."""
        path = self.path(outcome.cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        pq.write_table(_cell_table(outcome), partial, compression="zstd")
        partial.replace(path)

    def finished(self, cell: Cell) -> str:
        """Fingerprint of a stored, successful cell; empty where there is none."""
        path = self.path(cell)
        if not path.exists():
            return ""
        summary = _summary(pq.read_schema(path))
        return summary["fingerprint"] if summary["status"] == DONE else ""

    def read(self, cell: Cell) -> pa.Table | None:
        """The rows of a cell, one a query; None where it is missing or failed."""
        path = self.path(cell)
        table = pq.read_table(path) if path.exists() else None
        return table if table is not None and len(table) else None

    def write_tables(self, plan: Plan) -> None:
        """Write all tables from the cells that are there."""
        self.write_scores(plan)
        _atomic(self.folder / "per_query.parquet", _parquet(self._per_query(plan)))
        for dataset in plan.datasets:
            table = self._rankings(cell for cell in plan.cells() if cell.dataset == dataset)
            if table is not None:
                _atomic(self.folder / "rankings" / f"{dataset}.parquet", _parquet(table))
        if usage := [row for cell in plan.cells() for row in self._usage(cell)]:
            _atomic(self.folder / "usage.csv", _csv((*KEY, "what", "value"), usage))

    def write_scores(self, plan: Plan) -> None:
        """Write `scores.csv` and `scores_mean.csv`."""
        rows = [row for cell in plan.cells() if (row := self._row(cell))]
        _atomic(self.folder / "scores.csv", _csv(HEADER, rows))
        _atomic(self.folder / "scores_mean.csv", _csv(*_mean_rows(rows)))

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write `run.json`."""
        _atomic(self.folder / "run.json", json.dumps(manifest, indent=1).encode() + b"\n")

    def _row(self, cell: Cell) -> dict[str, str] | None:
        path = self.path(cell)
        if not path.exists():
            return None
        summary = _summary(pq.read_schema(path))
        row = {name: str(getattr(cell, name)) for name in KEY}
        row |= {"queries": str(summary["queries"]), "status": summary["status"]}
        row |= {name: f"{value:.6f}" for name, value in summary["means"].items()}
        return row | {f"{stage}_s": f"{value:.4f}" for stage, value in summary["seconds"].items()}

    def _usage(self, cell: Cell) -> list[dict[str, str]]:
        path = self.path(cell)
        used = _summary(pq.read_schema(path)).get("usage", {}) if path.exists() else {}
        key = {name: str(getattr(cell, name)) for name in KEY}
        return [key | {"what": what, "value": f"{value:g}"} for what, value in sorted(used.items())]

    def _per_query(self, plan: Plan) -> pa.Table:
        parts = []
        for cell, table in self._tables(plan.cells()):
            n = len(table)
            values = np.column_stack([table[name].to_numpy() for name in METRICS])
            parts.append(
                pa.table(
                    {
                        **_key_columns(cell, n * len(METRICS)),
                        "query": _repeat(table["query"], len(METRICS)),
                        "group": _repeat(table["group"], len(METRICS)),
                        "metric": pa.array(list(METRICS) * n).dictionary_encode(),
                        "value": values.ravel(),
                    }
                )
            )
        return pa.concat_tables(parts).unify_dictionaries() if parts else pa.table({})

    def _rankings(self, cells: Iterable[Cell]) -> pa.Table | None:
        parts = []
        for cell, table in self._tables(cells):
            depth = len(table["items"][0])
            parts.append(
                pa.table(
                    {
                        **_key_columns(cell, len(table) * depth),
                        "query": _repeat(table["query"], depth),
                        "place": pa.array(np.tile(np.arange(1, depth + 1, dtype=np.int32), len(table))),
                        "item": table["items"].combine_chunks().flatten().dictionary_encode(),
                        "score": table["scores"].combine_chunks().flatten(),
                    }
                )
            )
        return pa.concat_tables(parts).unify_dictionaries() if parts else None

    def _tables(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, pa.Table]]:
        for cell in cells:
            table = self.read(cell)
            if table is not None:
                yield cell, table


def _cell_table(outcome: Outcome) -> pa.Table:
    columns: dict[str, Any] = {
        "query": pa.array(outcome.queries, pa.string()),
        "group": pa.array(outcome.groups, pa.string()),
    }
    means: dict[str, float] = {}
    if outcome.per_query is not None and outcome.ranking is not None and outcome.scores is not None:
        columns |= {name: outcome.per_query.values[name] for name in METRICS}
        columns["predicted"] = outcome.per_query.predicted
        columns["items"] = pa.array(outcome.ranking.tolist(), pa.list_(pa.string()))
        columns["scores"] = pa.array(list(outcome.scores), pa.list_(pa.float32()))
        means = outcome.per_query.means()
    summary = {
        "fingerprint": outcome.fingerprint,
        "queries": len(outcome.queries),
        "means": means,
        "seconds": outcome.seconds,
        "usage": outcome.usage,
        "status": f"failed: {outcome.failure}" if outcome.failure else DONE,
    }
    return pa.table(columns).replace_schema_metadata({"readbench": json.dumps(summary)})


def _summary(schema: pa.Schema) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(schema.metadata[b"readbench"])
    return summary


def _mean_rows(rows: list[dict[str, str]]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    names = tuple(name for name in KEY if name != "seed")
    header = (*names, "seeds", *(f"{c}{suffix}" for c in COLUMNS for suffix in ("", "_sd")))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["status"] == DONE:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    means = []
    for key, members in groups.items():
        mean = dict(zip(names, key, strict=True)) | {"seeds": str(len(members))}
        for column in COLUMNS:
            values = np.array([float(member[column]) for member in members])
            mean[column] = f"{values.mean():.6f}"
            mean[f"{column}_sd"] = f"{values.std(ddof=1) if len(values) > 1 else 0.0:.6f}"
        means.append(mean)
    return header, means


def _key_columns(cell: Cell, n: int) -> dict[str, Any]:
    return {
        "dataset": pa.array([cell.dataset] * n).dictionary_encode(),
        "seed": np.full(n, cell.seed, np.int32),
        "rho": np.full(n, cell.rho, np.int32),
        "labels": pa.array([cell.labels] * n).dictionary_encode(),
        "method": pa.array([cell.method] * n).dictionary_encode(),
    }


def _repeat(column: pa.ChunkedArray, times: int) -> pa.DictionaryArray:
    values = column.combine_chunks().dictionary_encode()
    return values.take(pa.array(np.repeat(np.arange(len(values)), times)))


def _csv(header: Iterable[str], rows: Iterable[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(header), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _atomic(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
