"""Submissions: a run packed into one file for a leaderboard, and the check of such a file.

A submission is a zip archive; the same run folder gives the same bytes:

```
bundle.json        what was run and by whom, fingerprints, versions, a checksum of each other file
scores.csv         the rows of the run with all metrics
rankings.parquet   the first places of every list, as numbers of corpus items
labels.parquet     ids and labels of queries and corpora
```

`read_bundle` recomputes every number from lists and labels.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import DataOrigin, tell_origin
from readbench.benchmark.report._results import Results
from readbench.benchmark.runs import (
    DONE,
    KEY,
    QRELS_COLUMNS as LABEL_COLUMNS,
    UNANSWERED,
    WHOLE,
    Cell,
    Plan,
    Qrels,
    RunFolder,
    cell_of,
    metric_columns,
    open_folder,
    plan_of,
    score_columns,
)
from readbench.common.files import write_bytes
from readbench.engine.llm import ANSWERED_BY
from readbench.engine.registry import BUILT_IN, METRIC_NAME, METRICS
from readbench.errors import DataError, ReadbenchError, RunError

SUFFIX = ".readbench.zip"
MANIFEST = "bundle.json"
FILES = ("scores.csv", "rankings.parquet", "labels.parquet")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Fixed date of the files in the archive, so that the same run gives the same bytes."""


class Declared(BaseModel):
    """Statements of the authors of a submission; None where they made none.

    Args:
        name: unique name of the submission.
        authors: who made the system.
        url: address of its description.
        trained_on: datasets of the benchmark that any part was trained on.
        chosen_on: datasets in sight when any setting was chosen.
        labels: labels it reads: none, those of a query's first hits, or all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[\w.-]{1,60}$")
    authors: str = ""
    url: str = ""
    trained_on: tuple[str, ...] | None = None
    chosen_on: tuple[str, ...] | None = None
    labels: Literal["none", "pool", "all"] | None = None


class MethodFacts(BaseModel):
    """Facts about a method at the time of its run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    family: str
    labels: tuple[str, ...]
    fingerprint: str


class AskedModels(BaseModel):
    """Language models of a method.

    Args:
        asked: provider, model, settings and prompts of each at the time of the run.
        answered_by: name of the model that answered -> number of answers.
        usage: counts of questions, failed answers by kind and tokens, and the cost in dollars.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: tuple[dict[str, Any], ...]
    answered_by: dict[str, int]
    usage: dict[str, float]


class BundleManifest(BaseModel):
    """The content of `bundle.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["readbench-bundle-1"] = "readbench-bundle-1"
    declared: Declared
    plan: dict[str, Any]
    origins: dict[str, DataOrigin]
    code: str
    methods: dict[str, MethodFacts]
    tasks: dict[str, str]
    versions: dict[str, str]
    files: dict[str, str]
    models: dict[str, AskedModels] = {}

    @model_validator(mode="before")
    @classmethod
    def _renew(cls, content: Any) -> Any:  # noqa: ANN401 - any JSON
        """Read the list of simulated datasets that earlier versions wrote."""
        names, plan = (content.get(key) if isinstance(content, dict) else None for key in ("simulated", "plan"))
        if not isinstance(names, list) or not isinstance(plan, dict) or not isinstance(plan.get("datasets"), list):
            return content
        kept = {name: value for name, value in content.items() if name != "simulated"}
        origins = {
            dataset: tell_origin(simulated=dataset in names, ours=dataset.startswith("sim_"))
            for dataset in plan["datasets"]
            if isinstance(dataset, str)
        }
        return kept | {"origins": origins}


@dataclass(frozen=True, eq=False)
class Bundle:
    """Content of a submission.

    Args:
        manifest: what was run and by whom.
        plan: plan of the run.
        rows: rows of `scores.csv` in plan order.
        lists: one row per query of each finished cell: key of the cell, `query` and `items` by number.
        qrels: relevance judgements by dataset and split seed.
        unchecked: metrics that are not installed here and were not recomputed.
    """

    manifest: BundleManifest
    plan: Plan
    rows: list[dict[str, str]]
    lists: pa.Table
    qrels: dict[tuple[str, int], Qrels]
    unchecked: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the submission."""
        return self.manifest.declared.name


Task = tuple[str, int]
"""Dataset and split seed."""
Identity = tuple[str, str]
"""Fingerprint of a task, and hash of its labels."""


def identify_task(qrels: Qrels) -> Identity:
    """Identity of a task; equal for two runs on the same task."""
    return qrels.fingerprint, hashlib.sha256(repr(qrels.table().to_pydict()).encode()).hexdigest()


def find_other_task(bundle: Bundle, right: Callable[[Task], Identity | None], whose: str) -> str:
    """Why a submission is not on the right tasks; empty if it is.

    Args:
        bundle: the submission.
        right: from a task to its identity, None if it is unknown.
        whose: name of the right tasks in the message.
    """
    for task, qrels in bundle.qrels.items():
        name, own, wanted = f"{task[0]} seed {task[1]}", identify_task(qrels), right(task)
        if wanted is None:
            return f"{name} is not a task of {whose}"
        if own[0] != wanted[0]:
            return f"it ran on other data: {name} is {own[0]} and not {wanted[0]}"
        if own[1] != wanted[1]:
            return f"its labels of {name} are not those of the task {own[0]}"
    return ""


def write_bundle(results: Results, declared: Declared, path: Path) -> Path:
    """Pack a run folder."""
    shard = results.manifest.get("shard", str(WHOLE))
    if shard != str(WHOLE):
        raise RunError(f"{results.folder} is part {shard} of a run: merge all parts first.")
    plan, folder = plan_of(results.manifest), open_folder(results.folder)
    tasks = {(d, s): folder.read_qrels(d, s) for d, s in plan.tasks()}
    depth = max(metric.depth for metric in results.metrics.values())
    contents = {
        "scores.csv": folder.copy_scores(),
        "rankings.parquet": _parquet(_rankings(plan, folder, tasks, depth)),
        "labels.parquet": _parquet(_labels(tasks)),
    }
    manifest = state_run(results, declared, {name: hashlib.sha256(part).hexdigest() for name, part in contents.items()})
    write_bytes(path, _zipped({MANIFEST: manifest.model_dump_json(indent=1).encode()} | contents))
    return path


def state_run(results: Results, declared: Declared, files: dict[str, str]) -> BundleManifest:
    """Manifest of a run: what was run and by whom, with the checksums of `files`."""
    kept = {name: results.manifest[name] for name in ("plan", "code", "methods", "tasks", "versions")}
    models = asked_models(results)
    return BundleManifest(declared=declared, files=files, origins=results.origins, models=models, **kept)


def asked_models(results: Results) -> dict[str, AskedModels]:
    """Language models by method, for methods that ask any."""
    computed = results.manifest.get("computed_by", {})
    return {
        method: AskedModels(
            asked=tuple(computed.get(method, {}).get("models", ())),
            answered_by={n.removeprefix(ANSWERED_BY): int(c) for n, c in used.items() if n.startswith(ANSWERED_BY)},
            usage={name: count for name, count in used.items() if not name.startswith(ANSWERED_BY)},
        )
        for method, used in open_folder(results.folder).read_usage().items()
    }


def _rankings(plan: Plan, folder: RunFolder, tasks: dict[tuple[str, int], Qrels], depth: int) -> pa.Table:
    """One row per query of each finished cell, lists cut at `depth`; queries and items are numbers in task order."""
    numbers = {
        task: ({q: i for i, q in enumerate(qrels.queries)}, {n: i for i, n in enumerate(qrels.items)})
        for task, qrels in tasks.items()
    }
    rows: dict[str, list[Any]] = {name: [] for name in (*KEY, "query", "items")}
    for cell in plan.cells():
        table = folder.read(cell)
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
    """Judgements of all tasks in one table."""
    parts = []
    for (dataset, seed), qrels in tasks.items():
        table = qrels.table().replace_schema_metadata(None)
        table = table.add_column(0, "seed", pa.array([seed] * len(table), pa.int32()))
        parts.append(table.add_column(0, "dataset", pa.array([dataset] * len(table))))
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


MAX_BYTES = 1 << 30
"""Largest unpacked content of an archive."""
MAX_ROWS = 20_000_000
"""Most rows of a table: a small file may hold many equal ones."""
TOLERANCE = 1e-6
"""Rounding of the rows, which have six decimals."""


def read_bundle(path: Path) -> Bundle:
    """Read and check a submission; a `DataError` says what is wrong with it."""
    try:
        bundle = _opened(path)
        _check_rows(bundle)
        _check_metrics(bundle)
    except DataError:
        raise
    except ReadbenchError as error:
        raise DataError(f"its content does not fit together: {error}") from error
    except (OSError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile, pa.ArrowException) as error:
        raise DataError(f"it cannot be read ({type(error).__name__}: {error})") from error
    return bundle


def _opened(path: Path) -> Bundle:
    contents = _unzipped(path)
    try:
        manifest = BundleManifest.model_validate_json(contents[MANIFEST])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{MANIFEST} is malformed at {where or 'its top'}: {first['msg']}") from error
    for name in FILES:
        if hashlib.sha256(contents[name]).hexdigest() != manifest.files.get(name):
            raise DataError(f"{name} is not the file that {MANIFEST} was written for (its checksum differs)")
    lists = _table(contents["rankings.parquet"])
    if lists.schema != LISTS:
        raise DataError(f"rankings.parquet has other columns than expected: {', '.join(lists.column_names)}")
    rows = list(csv.DictReader(io.StringIO(contents["scores.csv"].decode())))
    unchecked = tuple(name for name in metric_columns(rows[0] if rows else ()) if name not in METRICS)
    plan = plan_of({"plan": manifest.plan})
    return Bundle(manifest, plan, rows, lists, _qrels(contents, manifest, plan), unchecked)


def _unzipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        names = sorted(info.filename for info in infos)
        if names != sorted((MANIFEST, *FILES)):
            raise DataError(f"it holds {', '.join(names) or 'nothing'}; expected {', '.join((MANIFEST, *FILES))}")
        if sum(info.file_size for info in infos) > MAX_BYTES:
            raise DataError(f"it unpacks to more than {MAX_BYTES >> 20} MB")
        return {name: archive.read(name) for name in names}


def _table(content: bytes) -> pa.Table:
    file = pq.ParquetFile(pa.BufferReader(content))
    if file.metadata.num_rows > MAX_ROWS:
        raise DataError(f"a table has more than {MAX_ROWS} rows")
    # On this thread alone: one of Arrow's that still holds the bytes when Python ends would abort the process.
    return file.read(use_threads=False)


def _qrels(contents: dict[str, bytes], manifest: BundleManifest, plan: Plan) -> dict[tuple[str, int], Qrels]:
    """Labels of each task of the plan."""
    table = _table(contents["labels.parquet"])
    found = {}
    for dataset, seed in plan.tasks():
        own = table.filter(pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["seed"], seed)))
        fingerprint = manifest.tasks.get(f"{dataset}/seed-{seed}")
        if fingerprint is None or not len(own):
            raise DataError(f"{dataset} seed {seed} has no fingerprint or no labels")
        metadata = {"readbench": json.dumps({"fingerprint": fingerprint})}
        found[dataset, seed] = Qrels.from_table(own.select(LABEL_COLUMNS).replace_schema_metadata(metadata))
    return found


def _check_rows(bundle: Bundle) -> None:
    """Raise `DataError` unless the rows are the cells of the plan in its order."""
    header = tuple(bundle.rows[0]) if bundle.rows else ()
    metrics = metric_columns(header)
    built_in = tuple(metric.name for metric in METRICS if metric.origin == BUILT_IN)
    named = all(METRIC_NAME.fullmatch(name.partition("@")[0]) for name in metrics)
    complete = metrics[: len(built_in)] == built_in
    if header != score_columns(metrics, asked=UNANSWERED in header) or not complete or not named:
        raise DataError("scores.csv has no rows, or other columns than a run writes")
    cells = [str(cell_of(row)) for row in bundle.rows]
    plan, methods = bundle.plan, bundle.manifest.methods
    planned = [
        str(Cell(dataset, seed, rho, method, labels))
        for (dataset, seed), rho, method in product(plan.tasks(), plan.levels, plan.methods)
        for labels in methods[method].labels
    ]
    if cells != planned:
        odd = next((a, b) for a, b in zip([*cells, "nothing"], [*planned, "nothing"], strict=False) if a != b)
        raise DataError(f"scores.csv does not follow its plan: it has {odd[0]} where {odd[1]} is due")


def _check_metrics(bundle: Bundle) -> None:
    """Raise `DataError` unless the installed metrics of each finished row follow from its lists."""
    lists, names = lists_by_cell(bundle.lists), metric_columns(bundle.rows[0])
    names = tuple(name for name in names if name not in bundle.unchecked)
    for row in bundle.rows:
        cell = cell_of(row)
        if row["status"] != DONE:
            continue
        if cell not in lists:
            raise DataError(f"{cell} has scores but no lists")
        means = _means(bundle.qrels[cell.dataset, cell.seed], cell, lists[cell], names)
        for name, value in means.items():
            if not abs(float(row[name]) - value) <= TOLERANCE:
                raise DataError(
                    f"{name} of {cell} is {row[name]} in scores.csv, but its lists and labels give {value:.6f}"
                )


def _means(
    qrels: Qrels, cell: Cell, answered: tuple[list[int], list[list[int]]], metrics: tuple[str, ...]
) -> dict[str, float]:
    """Metrics of one cell, computed from its lists."""
    queries, lists = answered
    if sorted(queries) != list(range(len(qrels.queries))):
        raise DataError(f"{cell} does not answer each query once")
    here = qrels.item_levels <= cell.rho
    items = np.array(lists)
    if items.ndim != 2 or items.min() < 0 or items.max() >= len(here) or not here[items].all():
        raise DataError(f"a list of {cell} holds an item that is not in its corpus, or lists differ in length")
    positions = np.cumsum(here) - 1
    return evaluate(positions[items], qrels.query_labels[queries], qrels.item_labels[here], metrics).means()


def lists_by_cell(lists: pa.Table) -> dict[Cell, tuple[list[int], list[list[int]]]]:
    """Cell -> numbers of its queries, and the items of each list."""
    found: dict[Cell, tuple[list[int], list[list[int]]]] = {}
    for row in lists.to_pylist():
        queries, items = found.setdefault(cell_of(row), ([], []))
        queries.append(row["query"])
        items.append(row["items"])
    return found
