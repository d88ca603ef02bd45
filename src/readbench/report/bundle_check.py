"""Reading a submission without believing it: every number in it is computed again from its lists and labels."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from readbench.errors import DataError, ReadbenchError
from readbench.evaluate import evaluate
from readbench.experiment.merge import plan_of
from readbench.experiment.plan import Cell
from readbench.experiment.qrels import COLUMNS as LABEL_COLUMNS
from readbench.experiment.qrels import Qrels
from readbench.experiment.store import DONE, metric_columns, score_columns
from readbench.registry import BUILT_IN, METRIC_NAME, METRICS
from readbench.report.bundle import FILES, LISTS, MANIFEST, Bundle, BundleManifest

MOST_BYTES = 1 << 30
"""Largest content of an archive, unpacked."""
MOST_ROWS = 20_000_000
"""Most rows of a table: a small file may hold many that are alike."""
TOLERANCE = 1e-6
"""Rows are written with six decimals."""


def read_bundle(path: Path) -> Bundle:
    """Read and check a submission; what is wrong with it is said in a `DataError`."""
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
    return Bundle(manifest, plan_of({"plan": manifest.plan}), rows, lists, _qrels(contents, manifest), unchecked)


def _unzipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        names = sorted(info.filename for info in infos)
        if names != sorted((MANIFEST, *FILES)):
            raise DataError(f"it holds {', '.join(names) or 'nothing'}; expected {', '.join((MANIFEST, *FILES))}")
        if sum(info.file_size for info in infos) > MOST_BYTES:
            raise DataError(f"it unpacks to more than {MOST_BYTES >> 20} MB")
        return {name: archive.read(name) for name in names}


def _table(content: bytes) -> pa.Table:
    file = pq.ParquetFile(io.BytesIO(content))
    if file.metadata.num_rows > MOST_ROWS:
        raise DataError(f"a table has more than {MOST_ROWS} rows")
    return file.read()


def _qrels(contents: dict[str, bytes], manifest: BundleManifest) -> dict[tuple[str, int], Qrels]:
    """Labels of each task of the plan."""
    table = _table(contents["labels.parquet"])
    found = {}
    for dataset in manifest.plan["datasets"]:
        for seed in manifest.plan["seeds"]:
            own = table.filter(pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["seed"], seed)))
            fingerprint = manifest.tasks.get(f"{dataset}/seed-{seed}")
            if fingerprint is None or not len(own):
                raise DataError(f"{dataset} seed {seed} has no fingerprint or no labels")
            metadata = {"readbench": json.dumps({"fingerprint": fingerprint})}
            found[dataset, seed] = Qrels.from_table(own.select(LABEL_COLUMNS).replace_schema_metadata(metadata))
    return found


def _check_rows(bundle: Bundle) -> None:
    """One row for each cell of the plan, in its order; the budgets of a method are those it ran under."""
    header = tuple(bundle.rows[0]) if bundle.rows else ()
    metrics = metric_columns(header)
    built_in = tuple(metric.name for metric in METRICS if metric.origin == BUILT_IN)
    named = all(METRIC_NAME.fullmatch(name.partition("@")[0]) for name in metrics)
    if header != score_columns(metrics) or metrics[: len(built_in)] != built_in or not named:
        raise DataError("scores.csv has no rows, or other columns than a run writes")
    cells = [str(_cell(row)) for row in bundle.rows]
    plan, methods = bundle.plan, bundle.manifest.methods
    planned = [
        str(Cell(dataset, seed, rho, method, labels))
        for dataset, seed, rho, method in product(plan.datasets, plan.seeds, plan.levels, plan.methods)
        for labels in methods[method].labels
    ]
    if cells != planned:
        odd = next((a, b) for a, b in zip([*cells, "nothing"], [*planned, "nothing"], strict=False) if a != b)
        raise DataError(f"scores.csv does not follow its plan: it has {odd[0]} where {odd[1]} is due")


def _check_metrics(bundle: Bundle) -> None:
    """The metrics of each finished row are those of its lists, as far as they are installed."""
    lists, names = _by_cell(bundle.lists), metric_columns(bundle.rows[0])
    names = tuple(name for name in names if name not in bundle.unchecked)
    for row in bundle.rows:
        cell = _cell(row)
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


def _by_cell(lists: pa.Table) -> dict[Cell, tuple[list[int], list[list[int]]]]:
    found: dict[Cell, tuple[list[int], list[list[int]]]] = {}
    for row in lists.to_pylist():
        queries, items = found.setdefault(_cell(row), ([], []))
        queries.append(row["query"])
        items.append(row["items"])
    return found


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(row["dataset"], int(row["seed"]), int(row["rho"]), row["method"], row["labels"])
