"""The run folder: one small file per finished cell, and the tables made from them.

```
cells/DATASET/seed-S/rho-R/METHOD.parquet   written whole as soon as the cell ends: what resuming relies on;
                    under a label budget in a folder labels-BUDGET below rho-R
scores.csv          one row per cell in plan order; a failed cell has its reason in `status`
scores_mean.csv     mean and standard deviation over the split seeds
per_query.parquet   long rows: dataset, seed, rho, labels, method, query, group, metric, value
opinions.parquet    where methods have a calibrated opinion on the fault type: one row a query, columns of `OPINION`
rankings/DATASET.parquet   top-100 lists
gallery.parquet     queries and the windows found for them, as a case browser draws them: a report makes and
                    keeps it, for machines without the data
usage.csv           where language models ran: calls, tokens, dollars and failures of their answers, one row each
llm/                what they were asked and what they answered, a file a question: with it the same run needs no model
tasks/DATASET/seed-S.parquet   ids and labels of queries and corpus: what metrics can be computed from again
run.json            plan, versions, fingerprints, machine, wall time, facts about the metrics
```

The cells determine the metrics of a run; those of plug-ins come last and stay when the plug-in is removed. A cell
without a metric has an empty column.

Everything but the time columns of `scores.csv` and `run.json` follows from plan, data and code to the byte. A long
table names its cells and is not written again while they are unchanged.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from readbench.benchmark.metrics import metric_order
from readbench.benchmark.protocol import Task
from readbench.benchmark.runs._budget import ALL
from readbench.benchmark.runs._cells import Outcome
from readbench.benchmark.runs._opinions import OPINION
from readbench.benchmark.runs._plan import Cell, Plan
from readbench.benchmark.runs._tables import (
    BESIDE,
    DONE,
    KEY,
    LISTS,
    UNANSWERED,
    Qrels,
    cell_table,
    mean_rows,
    metric_columns,
    opinion_rows,
    per_query_rows,
    ranking_rows,
    score_columns,
)
from readbench.common.files import write_atomically, write_bytes
from readbench.engine.llm import unanswered_share
from readbench.engine.registry import METRICS
from readbench.errors import RunError

FORMAT = 1
"""Version of the tables; raise it when the same cells give other tables."""
SCORES, MANIFEST, USAGE, TRANSCRIPTS = "scores.csv", "run.json", "usage.csv", "llm"
PER_QUERY, OPINIONS, GALLERY = "per_query.parquet", "opinions.parquet", "gallery.parquet"

Rows = Callable[[Cell, pa.Table], pa.Table]
Filters = list[tuple[str, str, Any]]
"""Conditions on columns that all must hold."""


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._summaries: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def cell_path(self, cell: Cell) -> Path:
        """Where a cell's file is."""
        slug = re.sub(r"[^\w.+|-]", "_", cell.method).replace("|", "_")[:80]
        unique = hashlib.sha256(cell.method.encode()).hexdigest()[:8]
        level = self.path / "cells" / cell.dataset / f"seed-{cell.seed}" / f"rho-{cell.rho}"
        place = level if cell.labels == str(ALL) else level / f"labels-{cell.labels}"
        return place / f"{slug}-{unique}.parquet"

    def save(self, outcome: Outcome) -> None:
        """Write a cell's file whole, or not at all."""
        write_table(self.cell_path(outcome.cell), cell_table(outcome))

    def finished(self, cell: Cell) -> str:
        """Fingerprint of a stored, successful cell; empty without one."""
        summary = self._summary(cell)
        return summary["fingerprint"] if summary and summary["status"] == DONE else ""

    def read(self, cell: Cell) -> pa.Table | None:
        """Rows of a cell, one per query; None if it is missing or failed."""
        path = self.cell_path(cell)
        table = _read_table(path) if path.exists() else None
        return table if table is not None and len(table) else None

    def write_tables(self, plan: Plan) -> None:
        """Write all tables from the stored cells, unless they are up to date."""
        self.write_scores(plan)
        cells = list(plan.cells())
        metrics = self._metrics(cells)
        self._write_long(PER_QUERY, cells, metrics, lambda cell, table: per_query_rows(cell, table, metrics))
        self._write_long(OPINIONS, [cell for cell in cells if self._opined(cell)], OPINION, opinion_rows)
        for dataset in plan.datasets:
            own = [cell for cell in cells if cell.dataset == dataset]
            self._write_long(_ranking_name(dataset), own, LISTS, ranking_rows)
        if usage := [row for cell in cells for row in self._usage(cell)]:
            write_bytes(self.path / USAGE, _csv((*KEY, "what", "value"), usage))

    def write_scores(self, plan: Plan) -> None:
        """Write `scores.csv` and `scores_mean.csv`."""
        rows = [row for cell in plan.cells() if (row := self._row(cell))]
        found = dict.fromkeys(name for row in rows for name in metric_columns(row))
        metrics = metric_order(found or METRICS.names())
        asked = any(UNANSWERED in row for row in rows)
        write_bytes(self.path / SCORES, _csv(score_columns(metrics, asked=asked), rows))
        write_bytes(self.path / "scores_mean.csv", _csv(*mean_rows(rows, metrics)))

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write `run.json`, with facts about the metrics for readers without their plug-ins."""
        facts = {metric.name: metric.facts() for metric in METRICS} | manifest.get("metrics", {})
        write_bytes(self.path / MANIFEST, json.dumps(manifest | {"metrics": facts}, indent=1).encode() + b"\n")

    def read_manifest(self) -> dict[str, Any]:
        """Content of `run.json`; OSError or ValueError if it cannot be read."""
        manifest = json.loads((self.path / MANIFEST).read_text())
        if not isinstance(manifest, dict) or not isinstance(manifest.get("plan", {}), dict):
            raise ValueError(f"{MANIFEST} does not tell of a run")  # noqa: TRY004 - as JSON that cannot be read
        return manifest

    @property
    def holds_run(self) -> bool:
        """True when a run has written here."""
        return (self.path / MANIFEST).exists()

    def read_scores(self) -> tuple[tuple[str, ...], list[dict[str, str]]]:
        """Header and rows of `scores.csv`."""
        with (self.path / SCORES).open(newline="") as file:
            reader = csv.DictReader(file)
            return tuple(reader.fieldnames or ()), list(reader)

    def read_csv(self, name: str) -> list[dict[str, str]]:
        """Rows of another table of the folder."""
        with (self.path / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def read_usage(self) -> dict[str, dict[str, float]]:
        """Method -> calls, tokens and cost of its language models, summed over cells; empty without any."""
        found: dict[str, dict[str, float]] = {}
        for row in self.read_csv(USAGE) if (self.path / USAGE).exists() else ():
            used = found.setdefault(row["method"], {})
            used[row["what"]] = used.get(row["what"], 0.0) + float(row["value"])
        return found

    def copy_scores(self) -> bytes:
        """`scores.csv` as it is."""
        return (self.path / SCORES).read_bytes()

    def read_per_query(self, filters: Filters) -> pa.Table:
        """Long rows of all metrics of some queries, cell after cell."""
        return _read_table(self.path / PER_QUERY, filters=filters)

    def read_opinions(self) -> pa.Table | None:
        """Stated probabilities of the queries; None without any, or for old runs."""
        path = self.path / OPINIONS
        return _read_table(path) if path.exists() else None

    def holds_rankings(self, dataset: str) -> bool:
        """True when there are lists of a dataset."""
        return (self.path / _ranking_name(dataset)).exists()

    def read_rankings(self, dataset: str, filters: Filters, columns: Sequence[str] | None = None) -> pa.Table:
        """Places of the lists of a dataset, cell after cell."""
        return _read_table(self.path / _ranking_name(dataset), columns=columns, filters=filters)

    def hash_rankings(self, datasets: Iterable[str], version: int) -> str:
        """Hash of the lists of some datasets and of a version."""
        digest = hashlib.sha256(repr(version).encode())
        for dataset in datasets:
            digest.update(dataset.encode())
            digest.update((self.path / _ranking_name(dataset)).read_bytes())
        return digest.hexdigest()

    def keep_qrels(self, dataset: str, task: Task, fingerprint: str) -> None:
        """Write the labels of a task unless they are stored."""
        path = self.qrels_path(dataset, task.seed)
        if _describe_file(path).get("fingerprint") != fingerprint:
            write_table(path, Qrels.of(task, fingerprint).table())

    def read_qrels(self, dataset: str, seed: int) -> Qrels:
        """The labels of a task."""
        path = self.qrels_path(dataset, seed)
        if not path.exists():
            raise RunError(
                f"{self.path} does not hold the labels of {dataset} seed {seed} ({path.name} is missing). Run the same"
                " command again: finished cells are kept."
            )
        return Qrels.from_table(_read_table(path))

    def write_gallery(self, table: pa.Table, facts: dict[str, Any]) -> None:
        """Write the windows of the case browser, with facts as metadata."""
        write_table(self.path / GALLERY, table.replace_schema_metadata({"readbench": json.dumps(facts)}))

    def read_gallery(self) -> tuple[pa.Table, dict[str, Any]] | None:
        """Windows of the case browser and facts; None if they cannot be read."""
        try:
            table = pq.read_table(self.path / GALLERY)
            return table, json.loads(table.schema.metadata[b"readbench"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def take(self, other: RunFolder, cell: Cell) -> None:
        """Copy a cell and the labels of its task from another folder; existing files stay."""
        _copy(other.cell_path(cell), self.cell_path(cell))
        _copy(other.qrels_path(cell.dataset, cell.seed), self.qrels_path(cell.dataset, cell.seed))

    def qrels_path(self, dataset: str, seed: int) -> Path:
        """Path of the labels of a task."""
        return self.path / "tasks" / dataset / f"seed-{seed}.parquet"

    def _row(self, cell: Cell) -> dict[str, str] | None:
        summary = self._summary(cell)
        if not summary:
            return None
        row = {name: str(getattr(cell, name)) for name in KEY}
        row |= {"queries": str(summary["queries"]), "status": summary["status"]}
        row |= {name: f"{value:.6f}" for name, value in summary["means"].items()}
        used = summary.get("usage", {})
        row |= {UNANSWERED: f"{unanswered_share(used):.4f}"} if used else {}
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
        """Metadata of a cell's file, cached; empty without a file."""
        path = self.cell_path(cell)
        try:
            found = path.stat()
        except FileNotFoundError:
            return {}
        version = (found.st_mtime_ns, found.st_ino)
        known = self._summaries.get(path)
        if known is None or known[0] != version:
            known = self._summaries[path] = (version, _describe_file(path))
        return known[1]

    def _write_long(self, name: str, cells: Sequence[Cell], columns: Sequence[str], rows: Rows) -> None:
        """Write the long rows of all finished cells, one row group per corpus; no file without cells.

        Args:
            name: file name.
            cells: cells in plan order.
            columns: columns of a cell's table that `rows` reads, beside query and group.
            rows: from a cell and these columns to long rows.
        """
        path, made_of = self.path / name, [cell for cell in cells if self.finished(cell)]
        origin = self._origin(made_of)
        if not made_of:
            path.unlink(missing_ok=True)
        elif _describe_file(path).get("origin") != origin:
            wanted = ["query", "group", *columns]
            parts = (
                pa.concat_tables([rows(cell, self._columns(cell, wanted)) for cell in own]).unify_dictionaries()
                for _, own in groupby(made_of, key=lambda cell: (cell.dataset, cell.seed, cell.rho))
            )
            _write_groups(path, parts, {"origin": origin})

    def _columns(self, cell: Cell, names: list[str]) -> pa.Table:
        """The existing ones of these columns of a cell; one thread, since the file is small."""
        held = self._summary(cell)["columns"]
        wanted = [name for name in names if name in held]
        return _read_table(self.cell_path(cell), columns=wanted, use_threads=False)

    def _origin(self, cells: Iterable[Cell]) -> str:
        """Hash of the cells of a long table."""
        digest = hashlib.sha256(repr(FORMAT).encode())
        for cell in cells:
            digest.update(f"{cell} {self.finished(cell)}\n".encode())
        return digest.hexdigest()


def _describe_file(path: Path) -> dict[str, Any]:
    """Metadata and columns of a file; empty if it is missing or damaged, so that it is made again."""
    try:
        schema = pq.read_schema(path)
        return {**json.loads((schema.metadata or {}).get(b"readbench", b"{}")), "columns": schema.names}
    except (OSError, ValueError):  # pyarrow's own errors are of these
        return {}


def _read_table(path: Path, **options: Any) -> pa.Table:  # noqa: ANN401 - those of pyarrow
    """A table; `RunError` if it is missing or damaged."""
    try:
        return pq.read_table(path, **options)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = "is missing" if not path.exists() else "is damaged"
        raise RunError(
            f"{path} {reason}. Start the run again with the same command: what is finished is kept, and this is made"
            " again."
        ) from error


def _csv(header: Iterable[str], rows: Iterable[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(header), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write_csv(path: Path, header: Iterable[str], rows: Iterable[dict[str, str]]) -> None:
    """Write rows atomically."""
    write_bytes(path, _csv(header, rows))


def _ranking_name(dataset: str) -> str:
    return f"rankings/{dataset}.parquet"


def write_table(path: Path, table: pa.Table, *, level: int | None = None, split: Sequence[str] = ()) -> None:
    """Write a table atomically with a zstd level; `split` names numeric columns with byte-stream-split encoding."""
    own = {"column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT"), "use_dictionary": False} if split else {}
    with write_atomically(path) as partial:
        pq.write_table(table, partial, compression="zstd", compression_level=level, **own)


def _write_groups(path: Path, parts: Iterator[pa.Table], metadata: dict[str, str]) -> None:
    """Write tables of one schema as row groups of one file atomically, one in memory at a time."""
    first = next(parts)
    schema = first.schema.with_metadata({"readbench": json.dumps(metadata)})
    with write_atomically(path) as partial, pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for part in chain([first], parts):
            writer.write_table(part.replace_schema_metadata(schema.metadata), row_group_size=len(part))


def _copy(source: Path, target: Path) -> None:
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
