"""A submission: one small file with everything that a leaderboard needs to trust a run.

A zip archive, the same bytes whenever it is made from the same run folder:

```
bundle.json        what was run and by whom, fingerprints, versions, a checksum of each other file
scores.csv         the rows of the run, with all its metrics
rankings.parquet   the first places of every list, as numbers of corpus items
labels.parquet     ids and labels of queries and corpora, from which the rows are computed again
```
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from readbench.errors import RunError
from readbench.experiment.merge import plan_of
from readbench.experiment.plan import Plan
from readbench.experiment.qrels import Qrels, read_qrels
from readbench.experiment.shard import WHOLE
from readbench.experiment.store import KEY, RunStore
from readbench.report.results import Results

SUFFIX = ".readbench.zip"
MANIFEST = "bundle.json"
FILES = ("scores.csv", "rankings.parquet", "labels.parquet")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of the files in the archive: none of the real one, so that the same run gives the same bytes."""


class Declared(BaseModel):
    """What the people who submit say about their system.

    Args:
        name: of the submission; each on a leaderboard has its own.
        authors: who made the system.
        url: where to read about it.
        trained_on: datasets of the benchmark that any part was trained or chosen on; None where nothing was said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[\w.-]{1,60}$")
    authors: str = ""
    url: str = ""
    trained_on: tuple[str, ...] | None = None


class MethodFacts(BaseModel):
    """A method as its run knew it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    family: str
    labels: tuple[str, ...]
    fingerprint: str


class BundleManifest(BaseModel):
    """The content of `bundle.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["readbench-bundle-1"] = "readbench-bundle-1"
    declared: Declared
    plan: dict[str, Any]
    simulated: tuple[str, ...]
    code: str
    methods: dict[str, MethodFacts]
    tasks: dict[str, str]
    versions: dict[str, str]
    files: dict[str, str]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A submission that was read.

    Args:
        manifest: what was run and by whom.
        plan: the plan of the run.
        rows: of `scores.csv`, in plan order.
        lists: one row a query of each finished cell: the key of the cell, `query` and `items` by number.
        qrels: by dataset and split seed.
        unchecked: metrics that could not be computed again, because they are not installed.
    """

    manifest: BundleManifest
    plan: Plan
    rows: list[dict[str, str]]
    lists: pa.Table
    qrels: dict[tuple[str, int], Qrels]
    unchecked: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the submission."""
        return self.manifest.declared.name


def write_bundle(results: Results, declared: Declared, path: Path) -> Path:
    """Pack a run folder."""
    shard = results.manifest.get("shard", str(WHOLE))
    if shard != str(WHOLE):
        raise RunError(f"{results.folder} is part {shard} of a run: merge all parts first.")
    plan = plan_of(results.manifest)
    tasks = {(d, s): read_qrels(results.folder, d, s) for d in plan.datasets for s in plan.seeds}
    depth = max(metric.depth for metric in results.metrics.values())
    contents = {
        "scores.csv": (results.folder / "scores.csv").read_bytes(),
        "rankings.parquet": _parquet(_rankings(plan, RunStore(results.folder), tasks, depth)),
        "labels.parquet": _parquet(_labels(tasks)),
    }
    own = {name: results.manifest[name] for name in ("plan", "simulated", "code", "methods", "tasks", "versions")}
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    manifest = BundleManifest(declared=declared, files=files, **own)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_zipped({MANIFEST: manifest.model_dump_json(indent=1).encode()} | contents))
    return path


def _rankings(plan: Plan, store: RunStore, tasks: dict[tuple[str, int], Qrels], depth: int) -> pa.Table:
    """One row for each query of each finished cell; queries and items are numbers in the task's order.

    Lists are as long as any metric of the run reads.
    """
    numbers = {
        task: ({q: i for i, q in enumerate(qrels.queries)}, {n: i for i, n in enumerate(qrels.items)})
        for task, qrels in tasks.items()
    }
    rows: dict[str, list[Any]] = {name: [] for name in (*KEY, "query", "items")}
    for cell in plan.cells():
        table = store.read(cell)
        if table is None:
            continue
        queries, items = numbers[cell.dataset, cell.seed]
        for name in KEY:
            rows[name] += [getattr(cell, name)] * len(table)
        rows["query"] += [queries[query] for query in table["query"].to_pylist()]
        rows["items"] += [[items[item] for item in listed[:depth]] for listed in table["items"].to_pylist()]
    return pa.table(rows, schema=LISTS)


LISTS = pa.schema(
    [
        ("dataset", pa.dictionary(pa.int32(), pa.string())),
        ("seed", pa.int32()),
        ("rho", pa.int32()),
        ("labels", pa.dictionary(pa.int32(), pa.string())),
        ("method", pa.dictionary(pa.int32(), pa.string())),
        ("query", pa.int32()),
        ("items", pa.list_(pa.int32())),
    ]
)
"""Columns of `rankings.parquet`."""


def _labels(tasks: dict[tuple[str, int], Qrels]) -> pa.Table:
    """The tables of all tasks, one after the other."""
    parts = []
    for (dataset, seed), qrels in tasks.items():
        table = qrels.table().replace_schema_metadata(None)
        keys = {"dataset": pa.array([dataset] * len(table)), "seed": pa.array([seed] * len(table), pa.int32())}
        parts.append(pa.table(keys | {name: table[name] for name in table.column_names}))
    return pa.concat_tables(parts)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=9)
    return sink.getvalue()


def _zipped(contents: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED, 9)
    return sink.getvalue()
