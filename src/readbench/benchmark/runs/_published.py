"""Published rows: the cells of many runs in one folder, small enough to keep beside the code.

```
README.md           what is here, what is planned and not computed, and the command that continues
run.json            plan, versions, fingerprints of tasks, code and packages by method
scores.csv          one row per computed cell, as in a run folder
fingerprints.csv    the fingerprint of each of these cells
lists/DATASET.parquet          one row per cell: the first places of the list of each query, as numbers of corpus items
tasks/DATASET/seed-S.parquet   ids and labels of queries and corpus, and the split groups of the queries
opinions.parquet    what methods with a calibrated opinion stated of each query
usage.csv           where language models ran: what they took
```

Per-query values are computed from lists and labels on demand. Reports read published rows and run folders alike
(`open_folder`). The folder contains no values of any series.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.benchmark.metrics import PerQuery, evaluate
from readbench.benchmark.runs._budget import ALL
from readbench.benchmark.runs._folder import (
    MANIFEST,
    OPINIONS,
    SCORES,
    USAGE,
    Filters,
    RunFolder,
    write_csv,
    write_table,
)
from readbench.benchmark.runs._merge import JOINED, RunPart, check_same_data, join_entries, plan_of
from readbench.benchmark.runs._opinions import OPINION
from readbench.benchmark.runs._plan import WHOLE, Cell, Plan
from readbench.benchmark.runs._runner import describe_method, tell_copies
from readbench.benchmark.runs._tables import (
    KEY,
    Qrels,
    cell_of,
    metric_columns,
    per_query_rows,
    ranking_rows,
    take_tasks_once,
)
from readbench.common.files import write_bytes
from readbench.engine.registry import BUILT_IN, METRICS
from readbench.errors import RunError, UnknownNameError, UsageError
from readbench.version import __version__

LISTS, FINGERPRINTS, ABOUT = "lists", "fingerprints.csv", "README.md"
GROUP = "group"
LIST_COLUMNS = pa.schema(
    [
        ("seed", pa.int32()),
        ("rho", pa.int32()),
        ("labels", pa.string()),
        ("method", pa.string()),
        ("items", pa.list_(pa.uint16())),
    ]
)
"""Columns of `lists/DATASET.parquet`; the places of all queries of a cell stand one after the other."""
LARGEST_CORPUS = 1 << 16


def open_folder(path: Path) -> RunFolder:
    """A run folder or published rows, by the content of a folder."""
    path = Path(path)
    if not (path / LISTS).is_dir():
        return RunFolder(path)
    manifest = path / MANIFEST
    return _keep_open(path, manifest.stat().st_mtime_ns if manifest.exists() else 0)


def open_published(path: Path) -> PublishedFolder:
    """Published rows; a `UsageError` for any other folder."""
    folder = open_folder(path)
    if not isinstance(folder, PublishedFolder):
        raise UsageError(f"{path} holds no published rows. Make them: readbench submit runs/... --rows {path}")
    return folder


@lru_cache(maxsize=4)
def _keep_open(path: Path, changed: int) -> PublishedFolder:  # noqa: ARG001 - what was written anew is opened anew
    """Published rows, cached with their lists."""
    return PublishedFolder(path)


def built_in_depth() -> int:
    """Places that any metric of the benchmark itself reads."""
    return max(metric.depth for metric in METRICS if metric.origin == BUILT_IN)


class PublishedFolder(RunFolder):
    """Reads published rows as if they were a run folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tasks: dict[tuple[str, int], tuple[Qrels, list[str]]] = {}
        self._lists: dict[str, dict[Cell, NDArray[np.int64]]] = {}

    @cached_property
    def plan(self) -> Plan:
        """Plan of all cells, computed or not."""
        return plan_of(self.read_manifest())

    @cached_property
    def fingerprints(self) -> dict[Cell, str]:
        """Fingerprint of each computed cell."""
        return {cell_of(row): row["fingerprint"] for row in self.read_csv(FINGERPRINTS)}

    def finished(self, cell: Cell) -> str:
        """Fingerprint of a cell; empty if it is not computed."""
        return self.fingerprints.get(cell, "")

    def read(self, cell: Cell) -> pa.Table | None:
        """Rows of a cell, one per query: metrics, first hits and lists; None if it is not computed."""
        judged = self._judge(cell)
        if judged is None:
            return None
        items = self.read_qrels(cell.dataset, cell.seed).items[self._of(cell.dataset)[cell]]
        columns = self._queries(cell) | {**judged.values, "predicted": judged.predicted}
        columns["items"] = pa.array(items.tolist(), pa.list_(pa.string()))
        columns["scores"] = pa.array([[float("nan")] * items.shape[1]] * len(items), pa.list_(pa.float32()))
        return pa.table(columns)

    def _queries(self, cell: Cell) -> dict[str, Any]:
        """Columns of the ids and split groups of the queries of a cell."""
        qrels, groups = self._task(cell.dataset, cell.seed)
        return {"query": pa.array(qrels.queries.tolist(), pa.string()), GROUP: pa.array(groups)}

    def read_per_query(self, filters: Filters) -> pa.Table:
        """Long rows of metrics by query, computed from lists and labels."""
        keys, rest = _part_filters(filters)
        named = [value for column, how, value in rest if (column, how) == ("metric", "=")]
        parts = []
        for cell in self._matching(keys):
            if (judged := self._judge(cell, named)) is None:
                continue
            names = named or list(judged.values)
            values = {name: judged.values[name] for name in names}
            parts.append(per_query_rows(cell, pa.table(self._queries(cell) | values), names))
        if not parts:
            raise RunError(f"{self.path} has no row for {filters}.")
        return pa.concat_tables(parts).unify_dictionaries()

    def holds_rankings(self, dataset: str) -> bool:
        """Whether there are lists of a dataset."""
        return self._lists_path(dataset).exists()

    def read_rankings(self, dataset: str, filters: Filters, columns: Sequence[str] | None = None) -> pa.Table:
        """Places of the lists of a dataset, cell after cell."""
        keys, rest = _part_filters(filters)
        cells = self._matching([*keys, ("dataset", "=", dataset)])
        rows = [ranking_rows(cell, table) for cell in cells if (table := self.read(cell)) is not None]
        found = pa.concat_tables(rows).unify_dictionaries()
        for column, how, value in rest:
            found = found.filter(_holds(found[column], how, value))
        return found.select(list(columns)) if columns else found

    def hash_rankings(self, datasets: Iterable[str], version: int) -> str:
        """Hash of the lists of some datasets, and of the version of what is made of them."""
        digest = hashlib.sha256(repr(version).encode())
        for dataset in datasets:
            digest.update(self._lists_path(dataset).read_bytes())
        return digest.hexdigest()

    def read_qrels(self, dataset: str, seed: int) -> Qrels:
        """The labels of a task."""
        return self._task(dataset, seed)[0]

    def places(self, cell: Cell) -> NDArray[np.int64]:
        """(Q, D) numbers of the items of a cell's lists, in the order of the task."""
        return self._of(cell.dataset)[cell]

    def groups(self, dataset: str, seed: int) -> list[str]:
        """Split group of each query of a task."""
        return self._task(dataset, seed)[1]

    def _judge(self, cell: Cell, metrics: Sequence[str] = ()) -> PerQuery | None:
        listed = self._of(cell.dataset).get(cell)
        if listed is None:
            return None
        qrels = self._task(cell.dataset, cell.seed)[0]
        here = qrels.item_levels <= cell.rho
        positions = (np.cumsum(here) - 1)[listed]
        return evaluate(positions, qrels.query_labels, qrels.item_labels[here], list(metrics) or _built_in())

    def _task(self, dataset: str, seed: int) -> tuple[Qrels, list[str]]:
        if (dataset, seed) not in self._tasks:
            table = pq.read_table(self.qrels_path(dataset, seed))
            groups = table[GROUP].to_pylist()
            found = Qrels.from_table(table)
            self._tasks[dataset, seed] = found, groups[: len(found.queries)]
        return self._tasks[dataset, seed]

    def _of(self, dataset: str) -> dict[Cell, NDArray[np.int64]]:
        """The lists of a dataset by cell, read once."""
        if dataset not in self._lists:
            found: dict[Cell, NDArray[np.int64]] = {}
            path = self._lists_path(dataset)
            for row in pq.read_table(path).to_pylist() if path.exists() else ():
                cell = cell_of(row | {"dataset": dataset})
                queries = len(self._task(dataset, cell.seed)[0].queries)
                found[cell] = np.array(row["items"], np.int64).reshape(queries, -1)
            self._lists[dataset] = found
        return self._lists[dataset]

    def _matching(self, filters: Filters) -> Iterator[Cell]:
        """Computed cells of the plan that a filter takes."""
        for cell in self.plan.cells():
            kept = all(_agrees(getattr(cell, column), how, value) for column, how, value in filters)
            if kept and cell in self.fingerprints:
                yield cell

    def _lists_path(self, dataset: str) -> Path:
        return self.path / LISTS / f"{dataset}.parquet"


def _built_in() -> list[str]:
    return [metric.name for metric in METRICS if metric.origin == BUILT_IN]


def _part_filters(filters: Filters) -> tuple[Filters, Filters]:
    """Conditions on the key of a cell, and the others."""
    return [one for one in filters if one[0] in KEY], [one for one in filters if one[0] not in KEY]


def _agrees(own: object, how: str, value: object) -> bool:
    if how == "=":
        return own == value
    if how == "in":
        return own in value  # type: ignore[operator]
    raise UsageError(f"Published rows are filtered by = and in. Got {how!r}.")


def _holds(column: pa.ChunkedArray, how: str, value: object) -> pa.ChunkedArray:
    compare = {"=": pc.equal, "<=": pc.less_equal, "<": pc.less, ">": pc.greater, ">=": pc.greater_equal}
    return compare[how](column.cast("string") if isinstance(value, str) else column, value)


# --- writing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishSummary:
    """Result of publishing.

    Args:
        folder: of the published rows.
        computed: number of computed cells.
        planned: number of planned cells.
        replaced: methods whose earlier rows were dropped, because other code, packages or weights computed them.
        size: bytes of all files.
    """

    folder: Path
    computed: int
    planned: int
    replaced: tuple[str, ...]
    size: int


PLANNED_ON = "planned_on"
"""Entry of `run.json`: method -> datasets, seeds and levels that it is planned on, if not all."""
PARTLY = {"datasets": "dataset", "seeds": "seed", "levels": "rho"}
"""Axes of a plan that a method may cover in part, and their fields of a cell."""
LEFT_OUT = "left_out"
"""Entry of `run.json`: method -> dataset -> why it is not planned there."""


def is_planned(cell: Cell, manifest: dict[str, Any]) -> bool:
    """True when a cell of published rows is planned."""
    axes = manifest.get(PLANNED_ON, {}).get(cell.method)
    here = axes is None or all(getattr(cell, name) in axes[axis] for axis, name in PARTLY.items())
    return here and cell.dataset not in manifest.get(LEFT_OUT, {}).get(cell.method, {})


def publish(
    folders: Sequence[Path],
    out: Path,
    planned: Sequence[str] = (),
    *,
    partly: bool = False,
    left_out: Mapping[str, Mapping[str, str]] | None = None,
) -> PublishSummary:
    """Add the finished cells of run folders to a folder of published rows.

    All must be on the same tasks. The rows of a method come from one state of code, packages and weights: if a later
    folder has another state, earlier rows of the method are dropped until they are computed again.

    Args:
        folders: run folders, parts of runs or published rows; later ones win.
        out: target folder; created if missing.
        planned: canonical texts of further methods that count as missing.
        partly: True to plan new methods only on the datasets, seeds and levels of their folders.
        left_out: method -> dataset -> why it is not planned there any more.
    """
    is_published = (Path(out) / LISTS).is_dir()
    if RunFolder(out).holds_run and not is_published:
        raise UsageError(f"{out} holds a run, which published rows would replace. Name another folder.")
    given = [*([out] if is_published else []), *folders]
    parts = [_open_part(path) for path in given]
    if not parts:
        raise UsageError("Name at least one run folder to publish.")
    _check_tasks(parts)
    plan, owners, replaced = _join_plans(parts), _find_owners(parts), _find_replaced(parts)
    plan = replace(plan, methods=tuple(dict.fromkeys([*plan.methods, *planned])))
    _check_left_out(left_out or {}, plan)
    chosen = {cell: own for cell in plan.cells() if (own := _choose(cell, parts, owners)) is not None}
    if not chosen:
        raise RunError(f"None of {', '.join(map(str, given))} has a finished cell.")
    held = {(cell.dataset, cell.seed): part.folder for cell, part in chosen.items()}
    plan = take_tasks_once(plan, {task: folder.read_qrels(*task) for task, folder in held.items()})
    chosen = {cell: chosen[cell] for cell in plan.cells() if cell in chosen}
    manifest = _join_manifests(plan, parts, owners) | {PLANNED_ON: _find_partly(plan, parts, planned, partly=partly)}
    manifest[LEFT_OUT] = _join_left_out([*(part.manifest for part in parts), {LEFT_OUT: left_out or {}}], chosen)
    folder = PublishedFolder(out)
    tasks = {(cell.dataset, cell.seed): (cell, part) for cell, part in chosen.items()}
    contents = [_write_lists(folder, dataset, chosen) for dataset in plan.datasets]
    for cell, part in tasks.values():
        _write_task(folder, part.folder, cell)
    for write in contents:
        write()
    for dataset, seed, _ in plan.copies:
        folder.qrels_path(dataset, seed).unlink(missing_ok=True)
    _write_rows(folder, chosen)
    _write_opinions(folder, chosen)
    _write_usage(folder, chosen)
    folder.write_manifest(manifest)
    missing = [cell for cell in plan.cells() if cell not in chosen and is_planned(cell, manifest)]
    write_bytes(folder.path / ABOUT, _about(plan, chosen, missing, manifest[LEFT_OUT]).encode())
    size = sum(file.stat().st_size for file in _own_files(folder.path))
    return PublishSummary(folder.path, len(chosen), len(chosen) + len(missing), replaced, size)


def _open_part(path: Path) -> RunPart:
    folder = open_folder(path)
    try:
        manifest = folder.read_manifest()
        return RunPart(folder, manifest, plan_of(manifest))
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} is not a run folder ({error}). Make one: readbench run --out {path}") from error


def _check_tasks(parts: Sequence[RunPart]) -> None:
    first = parts[0]
    for part in parts[1:]:
        same = replace(part.plan, datasets=first.plan.datasets, methods=first.plan.methods).composition
        if same != first.plan.composition:
            raise RunError(f"{part} and {first} compose their corpora differently: publish them into separate folders.")
    check_same_data(parts)


def _join_plans(parts: Sequence[RunPart]) -> Plan:
    """The smallest plan that holds all of them."""
    fields: dict[str, Any] = {
        name: tuple(dict.fromkeys(value for part in parts for value in getattr(part.plan, name)))
        for name in ("datasets", "methods", "seeds", "levels", "labels", "copies")
    }
    if fields["labels"] != (str(ALL),):
        raise UsageError("Rows under label budgets are not published with those of all labels: leave these runs out.")
    for name in ("seeds", "levels"):
        fields[name] = tuple(sorted(fields[name]))
    return replace(parts[0].plan, **fields)


def _find_partly(plan: Plan, parts: Sequence[RunPart], planned: Sequence[str], *, partly: bool) -> dict[str, Any]:
    """Method -> axes, of the methods that are planned on a part of the plan."""
    found: dict[str, dict[str, list[Any]]] = {}
    known = {m for part in parts if isinstance(part.folder, PublishedFolder) for m in part.plan.methods}
    for method in plan.methods:
        own = [part.manifest[PLANNED_ON][method] for part in parts if method in part.manifest.get(PLANNED_ON, {})]
        whole = method in planned or (method in known and not own) or (not partly and method not in known)
        if whole:
            continue
        runs = (part for part in parts if not isinstance(part.folder, PublishedFolder))
        own += [asdict(part.plan) for part in runs if method in part.plan.methods]
        axes = {axis: [v for v in getattr(plan, axis) if any(v in one[axis] for one in own)] for axis in PARTLY}
        if any(len(axes[axis]) < len(getattr(plan, axis)) for axis in PARTLY):
            found[method] = axes
    return found


def _check_left_out(left_out: Mapping[str, Mapping[str, str]], plan: Plan) -> None:
    for method, reasons in left_out.items():
        if method not in plan.methods:
            raise UnknownNameError("method of these rows", method, plan.methods)
        for dataset in reasons:
            if dataset not in plan.datasets:
                raise UnknownNameError("dataset of these rows", dataset, plan.datasets)


def _join_left_out(manifests: Sequence[dict[str, Any]], chosen: Iterable[Cell]) -> dict[str, dict[str, str]]:
    """What is left out in any of them and has no row."""
    there = {(cell.method, cell.dataset) for cell in chosen}
    found: dict[str, dict[str, str]] = {}
    for manifest in manifests:
        for method, reasons in manifest.get(LEFT_OUT, {}).items():
            own = {dataset: why for dataset, why in reasons.items() if (method, dataset) not in there}
            found[method] = found.get(method, {}) | own
    return {method: reasons for method, reasons in found.items() if reasons}


def _made_by(part: RunPart, method: str) -> object:
    return part.manifest.get("computed_by", {}).get(method)


def _find_owners(parts: Sequence[RunPart]) -> dict[str, object]:
    """Method -> what computed its rows: as the last part that has it says."""
    known = ((method, _made_by(part, method)) for part in parts for method in part.plan.methods)
    return {method: made_by for method, made_by in known if made_by is not None}


def _find_replaced(parts: Sequence[RunPart]) -> tuple[str, ...]:
    owners = _find_owners(parts)
    made = ((m, _made_by(part, m)) for part in parts for m in part.plan.methods)
    return tuple(dict.fromkeys(m for m, made_by in made if made_by is not None and made_by != owners[m]))


def _choose(cell: Cell, parts: Sequence[RunPart], owners: dict[str, object]) -> RunPart | None:
    """The last part that has a finished cell of the method's present state."""
    held = [
        part
        for part in parts
        if cell in part.cells and _made_by(part, cell.method) == owners.get(cell.method) and part.folder.finished(cell)
    ]
    fingerprints = {part.folder.finished(cell) for part in held}
    if len(fingerprints) > 1:
        names = ", ".join(map(str, held))
        raise RunError(f"{names} hold different results of {cell}. Run the older one again, it continues.")
    return held[-1] if held else None


def _join_manifests(plan: Plan, parts: Sequence[RunPart], owners: dict[str, object]) -> dict[str, Any]:
    names = (*JOINED, "datasets", "methods", "metrics")
    joined: dict[str, Any] = {name: join_entries([part.manifest for part in parts], name) for name in names}
    joined["metrics"] = {name: facts for name, facts in joined["metrics"].items() if facts["origin"] == BUILT_IN}
    for name in ("tasks", "sizes"):
        joined[name] = {task: own for task, own in joined[name].items() if task not in tell_copies(plan)}
    joined["notes"] = dict(sorted((joined["notes"] | tell_copies(plan)).items()))
    joined["methods"] = {m: joined["methods"].get(m) or describe_method(plan, m) for m in plan.methods}
    computed = hashlib.sha256(json.dumps(owners, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {
        "plan": asdict(plan),
        "composition": asdict(plan.composition),
        "code": f"{__version__}+{computed}",
        **joined,
        "machine": parts[-1].manifest["machine"],
        "executor": "published",
        "shard": str(WHOLE),
        "cells": {"computed": 0, "reused": 0, "failed": 0},
        "wall_s": 0.0,
    }


def _write_lists(folder: PublishedFolder, dataset: str, chosen: dict[Cell, RunPart]) -> Any:  # noqa: ANN401 - a function
    """Collect the lists of a dataset; the function that comes back writes them, once all are read."""
    depth = built_in_depth()
    rows: dict[str, list[Any]] = {name: [] for name in LIST_COLUMNS.names}
    numbers: dict[int, dict[str, int]] = {}
    for cell, part in chosen.items():
        if cell.dataset != dataset:
            continue
        if isinstance(part.folder, PublishedFolder):
            places = part.folder.places(cell)
        else:
            places = _number_items(part.folder, cell, numbers, depth)
        for name in ("seed", "rho", "labels", "method"):
            rows[name].append(getattr(cell, name))
        rows["items"].append(places.astype(np.uint16).ravel())
    table = pa.table(rows, schema=LIST_COLUMNS)

    def write() -> None:
        write_table(folder.path / LISTS / f"{dataset}.parquet", table, level=15, split=("items.list.element",))

    return write


def _number_items(folder: RunFolder, cell: Cell, numbers: dict[int, dict[str, int]], depth: int) -> NDArray[np.int64]:
    if cell.seed not in numbers:
        items = folder.read_qrels(cell.dataset, cell.seed).items.tolist()
        if len(items) > LARGEST_CORPUS:
            raise UsageError(
                f"{cell.dataset} has more than {LARGEST_CORPUS} corpus items: its lists are not published."
            )
        numbers[cell.seed] = {item: i for i, item in enumerate(items)}
    table = folder.read(cell)
    if table is None:
        raise RunError(f"{folder.path} has lost {cell}. Run it again, it continues.")
    own = numbers[cell.seed]
    return np.array([[own[item] for item in listed[:depth]] for listed in table["items"].to_pylist()], np.int64)


def _write_task(folder: PublishedFolder, held: RunFolder, cell: Cell) -> None:
    """Labels of the task of a cell, and the split groups of its queries."""
    dataset, seed = cell.dataset, cell.seed
    qrels = held.read_qrels(dataset, seed)
    if isinstance(held, PublishedFolder):
        groups = held.groups(dataset, seed)
    else:
        table = held.read(cell)
        groups = table[GROUP].to_pylist() if table is not None else []
    plain = qrels.table()
    column = pa.array([*groups, *([""] * len(qrels.items))], pa.string())
    write_table(folder.qrels_path(dataset, seed), plain.append_column(GROUP, column), level=15)


def _write_rows(folder: PublishedFolder, chosen: dict[Cell, RunPart]) -> None:
    """`scores.csv` with the metrics of the benchmark itself, and `fingerprints.csv`."""
    rows: dict[str, dict[Cell, dict[str, str]]] = {}
    for part in dict.fromkeys(chosen.values()):
        _, found = part.folder.read_scores()
        rows[str(part)] = {cell_of(row): row for row in found}
    built_in, scores, prints = set(_built_in()), [], []
    header: tuple[str, ...] = ()
    for cell, part in chosen.items():
        row = rows[str(part)][cell]
        dropped = {name for name in metric_columns(row) if name not in built_in}
        kept = {name: value for name, value in row.items() if name not in dropped}
        header = header or tuple(kept)
        scores.append(kept)
        key = {name: str(getattr(cell, name)) for name in KEY}
        prints.append(key | {"fingerprint": part.folder.finished(cell)})
    write_csv(folder.path / SCORES, header, scores)
    write_csv(folder.path / FINGERPRINTS, (*KEY, "fingerprint"), prints)


def _write_opinions(folder: PublishedFolder, chosen: dict[Cell, RunPart]) -> None:
    """What methods stated, to four digits."""
    tables = []
    for part in dict.fromkeys(chosen.values()):
        table = part.folder.read_opinions()
        if table is None:
            continue
        kept = table.filter(pa.array([chosen.get(cell_of(row)) is part for row in table.select(KEY).to_pylist()]))
        for place, (name, column) in enumerate(zip(kept.column_names, kept.columns, strict=True)):
            if name in ("dataset", "labels", "method", "query", GROUP):
                kept = kept.set_column(place, name, column.cast("string"))
            elif name in OPINION and pa.types.is_floating(column.type):
                kept = kept.set_column(place, name, pc.round(column.cast(pa.float64()), 4).cast(pa.float32()))
        tables.append(kept)
    if tables:
        write_table(folder.path / OPINIONS, pa.concat_tables(tables), level=15)


def _write_usage(folder: PublishedFolder, chosen: dict[Cell, RunPart]) -> None:
    """What language models took, as in a run folder; no file where none was asked."""
    parts = [part for part in dict.fromkeys(chosen.values()) if (part.folder.path / USAGE).exists()]
    rows = [(part, row) for part in parts for row in part.folder.read_csv(USAGE)]
    if kept := [row for part, row in rows if chosen.get(cell_of(row)) is part]:
        write_csv(folder.path / USAGE, tuple(kept[0]), kept)


def _about(
    plan: Plan, chosen: dict[Cell, Any], missing: Sequence[Cell], left_out: Mapping[str, Mapping[str, str]]
) -> str:
    """`README.md`: what is here and what is not."""
    total = len(chosen) + len(missing)
    what = (
        f"{len(chosen)} of {total} planned cells are computed: {len(plan.datasets)} datasets, {len(plan.seeds)} split"
        f" seeds, pollution levels {', '.join(map(str, plan.levels))} %, {len(plan.methods)} methods. Written by"
        " `readbench submit --rows`; every number can be computed again from the lists and labels in here. No values of"
        " any series are part of it. `docs/leaderboard.md` says how to read, compare and continue."
    )
    lines = ["# Published rows", "", what, ""]
    if plan.copies:
        copies = ", ".join(f"{dataset} {seed} as {earlier}" for dataset, seed, earlier in plan.copies)
        lines += [f"Split seeds that hold out the same as an earlier one are taken once: {copies}.", ""]
    if missing:
        by: dict[str, list[Cell]] = {}
        for cell in missing:
            by.setdefault(cell.method, []).append(cell)
        lines += ["## Planned, not computed", "", "| method | cells | datasets |", "|---|---:|---|"]
        for method, cells in by.items():
            names = ", ".join(dict.fromkeys(cell.dataset for cell in cells))
            lines.append(f"| {_quote(method)} | {len(cells)} | {names} |")
        lines.append("")
    if left_out:
        lines += ["## Left out", "", "| method | dataset | why |", "|---|---|---|"]
        lines += [f"| {_quote(m)} | {dataset} | {why} |" for m, own in left_out.items() for dataset, why in own.items()]
        lines.append("")
    return "\n".join(lines)


def _quote(method: str) -> str:
    """As a cell of a table shows it."""
    return f"`{method.replace('|', chr(92) + '|')}`"


def _own_files(folder: Path) -> Iterator[Path]:
    names = (ABOUT, MANIFEST, SCORES, FINGERPRINTS, OPINIONS, USAGE)
    yield from (folder / name for name in names if (folder / name).exists())
    for place in (LISTS, "tasks"):
        yield from (folder / place).rglob("*.parquet")
