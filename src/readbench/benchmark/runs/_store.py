"""The folder of a run: results of cells, rankings and relevance judgments.

The run folder: one small file per finished cell, and the tables made from them.

```
cells/DATASET/seed-S/rho-R/METHOD.parquet   written whole as soon as the cell ends: what resuming relies on;
                    under a label budget in a folder labels-BUDGET below rho-R
scores.csv          one row per cell in plan order; a failed cell has its reason in `status`
scores_mean.csv     mean and standard deviation over the split seeds
per_query.parquet   long rows: dataset, seed, rho, labels, method, query, group, metric, value
opinions.parquet    where methods have a calibrated opinion on the fault type: one row a query, columns of `OPINION`
rankings/DATASET.parquet   top-100 lists
gallery.parquet     queries and the windows found for them, as a case browser draws them (`benchmark/runs/_gallery.py`)
usage.csv           where language models ran: calls, tokens, dollars and failures of their answers, one row each
tasks/DATASET/seed-S.parquet   ids and labels of queries and corpus: what metrics can be computed from again
run.json            plan, versions, fingerprints, machine, wall time, facts about the metrics
```

Which metrics a run has is said by its cells: those of plug-ins come after those of the benchmark, and stay where the
plug-in is not installed any more. A cell without a metric that others have leaves its column empty.

Everything but the time columns of `scores.csv` and `run.json` is a function of plan, data and code: the same bytes,
whatever was interrupted and whoever computed which cell. A long table names the cells that it was made of, and is not
written again while they stay the same.

Which item is relevant to which query: what metrics are computed from again, without the data.

The run folder keeps one small file a task, `tasks/DATASET/seed-S.parquet`: ids and labels of its queries and corpus.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.benchmark.metrics import metric_order
from readbench.benchmark.protocol import Task
from readbench.benchmark.runs._budget import ALL
from readbench.benchmark.runs._cells import Outcome
from readbench.benchmark.runs._opinions import OPINION
from readbench.benchmark.runs._plan import Cell, Plan
from readbench.common.files import write_atomically, write_bytes
from readbench.engine.legs import STAGES
from readbench.engine.registry import METRICS
from readbench.errors import RunError

KEY = ("dataset", "seed", "rho", "labels", "method")
TIMES = tuple(f"{stage}_s" for stage in STAGES)
BEFORE, AFTER = (*KEY, "queries"), (*TIMES, "status")
"""Columns of `scores.csv` before and after those of the metrics."""
DONE = "ok"
FORMAT = 1
"""Raised whenever the same cells make other tables."""
LISTS = ("items", "scores")
BESIDE = ("query", "group", "predicted", *LISTS, *OPINION)
"""Columns of a cell's file that are no metric."""

Rows = Callable[[Cell, pa.Table], pa.Table]


def score_columns(metrics: Iterable[str]) -> tuple[str, ...]:
    """The header of `scores.csv` for these metrics."""
    return (*BEFORE, *metrics, *AFTER)


def metric_columns(header: Iterable[str]) -> tuple[str, ...]:
    """The metrics among the columns of `scores.csv`."""
    return tuple(name for name in header if name not in {*BEFORE, *AFTER})


class RunStore:
    """Reads and writes one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._summaries: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def path(self, cell: Cell) -> Path:
        """Where a cell's file is."""
        slug = re.sub(r"[^\w.+|-]", "_", cell.method).replace("|", "_")[:80]
        unique = hashlib.sha256(cell.method.encode()).hexdigest()[:8]
        level = self.folder / "cells" / cell.dataset / f"seed-{cell.seed}" / f"rho-{cell.rho}"
        place = level if cell.labels == str(ALL) else level / f"labels-{cell.labels}"
        return place / f"{slug}-{unique}.parquet"

    def save(self, outcome: Outcome) -> None:
        """Write a cell's file whole, or not at all."""
        with write_atomically(self.path(outcome.cell)) as partial:
            pq.write_table(_cell_table(outcome), partial, compression="zstd")

    def finished(self, cell: Cell) -> str:
        """Fingerprint of a stored, successful cell; empty where there is none."""
        summary = self._summary(cell)
        return summary["fingerprint"] if summary and summary["status"] == DONE else ""

    def read(self, cell: Cell) -> pa.Table | None:
        """The rows of a cell, one a query; None where it is missing or failed."""
        path = self.path(cell)
        table = pq.read_table(path) if path.exists() else None
        return table if table is not None and len(table) else None

    def write_tables(self, plan: Plan) -> None:
        """Write all tables from the cells that are there; one that is already made of them stays."""
        self.write_scores(plan)
        cells = list(plan.cells())
        metrics = self._metrics(cells)
        self._write_long("per_query.parquet", cells, metrics, lambda cell, table: _per_query(cell, table, metrics))
        self._write_long("opinions.parquet", [cell for cell in cells if self._opined(cell)], OPINION, _opinions)
        for dataset in plan.datasets:
            own = [cell for cell in cells if cell.dataset == dataset]
            self._write_long(f"rankings/{dataset}.parquet", own, LISTS, _rankings)
        if usage := [row for cell in cells for row in self._usage(cell)]:
            write_bytes(self.folder / "usage.csv", _csv((*KEY, "what", "value"), usage))

    def write_scores(self, plan: Plan) -> None:
        """Write `scores.csv` and `scores_mean.csv`."""
        rows = [row for cell in plan.cells() if (row := self._row(cell))]
        found = dict.fromkeys(name for row in rows for name in metric_columns(row))
        metrics = metric_order(found or METRICS.names())
        write_bytes(self.folder / "scores.csv", _csv(score_columns(metrics), rows))
        write_bytes(self.folder / "scores_mean.csv", _csv(*_mean_rows(rows, metrics)))

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write `run.json`, with what must be known of the metrics where they are not installed."""
        facts = {metric.name: metric.facts() for metric in METRICS} | manifest.get("metrics", {})
        write_bytes(self.folder / "run.json", json.dumps(manifest | {"metrics": facts}, indent=1).encode() + b"\n")

    def _row(self, cell: Cell) -> dict[str, str] | None:
        summary = self._summary(cell)
        if not summary:
            return None
        row = {name: str(getattr(cell, name)) for name in KEY}
        row |= {"queries": str(summary["queries"]), "status": summary["status"]}
        row |= {name: f"{value:.6f}" for name, value in summary["means"].items()}
        return row | {f"{stage}_s": f"{value:.4f}" for stage, value in summary["seconds"].items()}

    def _usage(self, cell: Cell) -> list[dict[str, str]]:
        used = self._summary(cell).get("usage", {})
        key = {name: str(getattr(cell, name)) for name in KEY}
        return [key | {"what": what, "value": f"{value:g}"} for what, value in sorted(used.items())]

    def _metrics(self, cells: Iterable[Cell]) -> list[str]:
        """Per-query metrics of any finished cell, in the order of columns."""
        held = (self._summary(cell)["columns"] for cell in cells if self.finished(cell))
        return metric_order(dict.fromkeys(name for own in held for name in own if name not in BESIDE))

    def _opined(self, cell: Cell) -> bool:
        return bool(self._summary(cell).get("opinions"))

    def _summary(self, cell: Cell) -> dict[str, Any]:
        """What a cell's file says of itself, read once; empty where there is none."""
        path = self.path(cell)
        try:
            found = path.stat()
        except FileNotFoundError:
            return {}
        version = (found.st_mtime_ns, found.st_ino)
        known = self._summaries.get(path)
        if known is None or known[0] != version:
            known = self._summaries[path] = (version, _described(path))
        return known[1]

    def _write_long(self, name: str, cells: Sequence[Cell], columns: Sequence[str], rows: Rows) -> None:
        """Write the long rows of all finished cells, those of one corpus a row group; no file where there are none.

        Args:
            name: of the file.
            cells: in plan order.
            columns: of a cell's table, beside query and group.
            rows: from a cell and these columns to long rows.
        """
        path, made_of = self.folder / name, [cell for cell in cells if self.finished(cell)]
        origin = self._origin(made_of)
        if not made_of:
            path.unlink(missing_ok=True)
        elif not path.exists() or _metadata(pq.read_schema(path)).get("origin") != origin:
            wanted = ["query", "group", *columns]
            parts = (
                pa.concat_tables([rows(cell, self._columns(cell, wanted)) for cell in own]).unify_dictionaries()
                for _, own in groupby(made_of, key=lambda cell: (cell.dataset, cell.seed, cell.rho))
            )
            _write_groups(path, parts, {"origin": origin})

    def _columns(self, cell: Cell, names: list[str]) -> pa.Table:
        """Some columns of a cell, those it has; threads cost more than they save on so small a file."""
        held = self._summary(cell)["columns"]
        return pq.read_table(self.path(cell), columns=[name for name in names if name in held], use_threads=False)

    def _origin(self, cells: Iterable[Cell]) -> str:
        """Hash of what a long table is made of."""
        digest = hashlib.sha256(repr(FORMAT).encode())
        for cell in cells:
            digest.update(f"{cell} {self.finished(cell)}\n".encode())
        return digest.hexdigest()


def _per_query(cell: Cell, table: pa.Table, metrics: Sequence[str]) -> pa.Table:
    """All metrics of each query; NaN where the cell has no such column, so that every query has as many rows."""
    n, missing = len(table), np.full(len(table), np.nan)
    held = set(table.column_names)
    values = np.column_stack([table[name].to_numpy() if name in held else missing for name in metrics])
    return pa.table(
        {
            **_key_columns(cell, n * len(metrics)),
            "query": _repeat(table["query"], len(metrics)),
            "group": _repeat(table["group"], len(metrics)),
            "metric": pa.array(list(metrics) * n).dictionary_encode(),
            "value": values.ravel(),
        }
    )


def _opinions(cell: Cell, table: pa.Table) -> pa.Table:
    own = {name: table[name] for name in OPINION}
    return pa.table({**_key_columns(cell, len(table)), "query": table["query"], "group": table["group"], **own})


def _rankings(cell: Cell, table: pa.Table) -> pa.Table:
    depth = len(table["items"][0])
    return pa.table(
        {
            **_key_columns(cell, len(table) * depth),
            "query": _repeat(table["query"], depth),
            "place": pa.array(np.tile(np.arange(1, depth + 1, dtype=np.int32), len(table))),
            "item": table["items"].combine_chunks().flatten().dictionary_encode(),
            "score": table["scores"].combine_chunks().flatten(),
        }
    )


def _cell_table(outcome: Outcome) -> pa.Table:
    columns: dict[str, Any] = {
        "query": pa.array(outcome.queries, pa.string()),
        "group": pa.array(outcome.groups, pa.string()),
    }
    means: dict[str, float] = {}
    if outcome.per_query is not None and outcome.ranking is not None and outcome.scores is not None:
        columns |= outcome.per_query.values
        columns["predicted"] = outcome.per_query.predicted
        columns["items"] = pa.array(outcome.ranking.tolist(), pa.list_(pa.string()))
        columns["scores"] = pa.array(list(outcome.scores), pa.list_(pa.float32()))
        means = outcome.per_query.means()
    if outcome.opinions is not None:
        stated = outcome.opinions.stated
        columns |= {name: getattr(stated, name) for name in OPINION}
    summary = {
        "fingerprint": outcome.fingerprint,
        "queries": len(outcome.queries),
        "means": means,
        "seconds": outcome.seconds,
        "usage": outcome.usage,
        "opinions": outcome.opinions is not None,
        "status": f"failed: {outcome.failure}" if outcome.failure else DONE,
    }
    return pa.table(columns).replace_schema_metadata({"readbench": json.dumps(summary)})


def _metadata(schema: pa.Schema) -> dict[str, Any]:
    """What a file says of itself."""
    content: dict[str, Any] = json.loads((schema.metadata or {}).get(b"readbench", b"{}"))
    return content


def _described(path: Path) -> dict[str, Any]:
    """What a cell's file says of itself, and the columns that it has."""
    schema = pq.read_schema(path)
    return _metadata(schema) | {"columns": schema.names}


def _mean_rows(rows: list[dict[str, str]], metrics: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Header and rows of `scores_mean.csv`; a mean is that of the seeds which have the metric."""
    names = tuple(name for name in KEY if name != "seed")
    header = (*names, "seeds", *(f"{c}{suffix}" for c in metrics for suffix in ("", "_sd")))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["status"] == DONE:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    means = []
    for key, members in groups.items():
        mean = dict(zip(names, key, strict=True)) | {"seeds": str(len(members))}
        for column in metrics:
            values = np.array([float(member[column]) for member in members if column in member])
            if not len(values):
                continue
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


def _write_groups(path: Path, parts: Iterator[pa.Table], metadata: dict[str, str]) -> None:
    """Write tables of one schema as row groups of one file, one in memory at a time; whole or not at all."""
    first = next(parts)
    schema = first.schema.with_metadata({"readbench": json.dumps(metadata)})
    with write_atomically(path) as partial, pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for part in chain([first], parts):
            writer.write_table(part.replace_schema_metadata(schema.metadata), row_group_size=len(part))


QUERY = -1
"""Stands for the level of a query: it is in no corpus."""
QRELS_COLUMNS = ("id", "label", "level")


@dataclass(frozen=True, eq=False)
class Qrels:
    """Ids and labels of one task.

    Args:
        fingerprint: of the task.
        queries: (Q,) ids.
        query_labels: (Q,) fault types.
        items: (N,) ids of the largest corpus, in its order.
        item_labels: (N,) fault types.
        item_levels: (N,) lowest pollution level in percent whose corpus holds the item.
    """

    fingerprint: str
    queries: NDArray[Any]
    query_labels: NDArray[np.int32]
    items: NDArray[Any]
    item_labels: NDArray[np.int32]
    item_levels: NDArray[np.int32]

    @classmethod
    def of(cls, task: Task, fingerprint: str) -> Qrels:
        """Those of a task."""
        levels = np.empty(len(task.corpus), np.int32)
        for rho in sorted(task.levels, reverse=True):
            levels[task.levels[rho]] = rho
        queries, corpus = task.queries, task.corpus
        return cls(fingerprint, queries.ids, queries.labels, corpus.ids, corpus.labels, levels)

    def at(self, rho: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Ids and labels of the corpus of one level."""
        here = self.item_levels <= rho
        return self.items[here], self.item_labels[here]

    def table(self) -> pa.Table:
        """Queries, then items; the fingerprint is in the metadata."""
        levels = np.full(len(self.queries), QUERY, np.int32)
        columns = [
            pa.array([*self.queries.tolist(), *self.items.tolist()], pa.string()),
            np.concatenate([self.query_labels, self.item_labels]).astype(np.int32),
            np.concatenate([levels, self.item_levels]),
        ]
        table = pa.table(dict(zip(QRELS_COLUMNS, columns, strict=True)))
        return table.replace_schema_metadata({"readbench": json.dumps({"fingerprint": self.fingerprint})})

    @classmethod
    def from_table(cls, table: pa.Table) -> Qrels:
        """Inverse of `table`."""
        ids, labels, levels = (table[name].to_numpy() for name in QRELS_COLUMNS)
        query = levels == QUERY
        fingerprint = json.loads(table.schema.metadata[b"readbench"])["fingerprint"]
        return cls(fingerprint, ids[query], labels[query], ids[~query], labels[~query], levels[~query])


def qrels_path(folder: Path, dataset: str, seed: int) -> Path:
    """Where the file of a task is in a run folder."""
    return folder / "tasks" / dataset / f"seed-{seed}.parquet"


def keep_qrels(folder: Path, dataset: str, task: Task, fingerprint: str) -> None:
    """Write the file of a task, whole or not at all, unless it is there."""
    path = qrels_path(folder, dataset, task.seed)
    if path.exists() and _fingerprint(path) == fingerprint:
        return
    with write_atomically(path) as partial:
        pq.write_table(Qrels.of(task, fingerprint).table(), partial, compression="zstd")


def read_qrels(folder: Path, dataset: str, seed: int) -> Qrels:
    """Read the file of a task from a run folder."""
    path = qrels_path(folder, dataset, seed)
    if not path.exists():
        raise RunError(
            f"{folder} does not hold the labels of {dataset} seed {seed} ({path.name} is missing). Run the same command"
            " again: finished cells are kept."
        )
    return Qrels.from_table(pq.read_table(path))


def _fingerprint(path: Path) -> str:
    return str(json.loads(pq.read_schema(path).metadata[b"readbench"])["fingerprint"])
