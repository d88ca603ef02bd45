"""Ready-made tasks: windows already cut, and divided into corpus, queries and normals.

Three forms, all with the columns of `readbench.engine.window_tables`:

* an NPZ archive whose arrays begin with `corpus_`, `queries_` and `normals_`;
* a folder with `corpus.parquet` (or several files whose names begin with `corpus`), `queries.parquet` and
  `normals.parquet`;
* such a folder as `readbench data export` writes it, with `task.json`: facts, classes, origin and fingerprint.

Two further columns of the corpus: `level`, the lowest pollution level in percent that an item belongs to, and
`position`, its place in the corpus. Without levels, normals are drawn into the corpus as for any other dataset.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.exchange._imported import PARTS, PartSizes
from readbench.benchmark.protocol import (
    NORMAL_CLASS,
    TASK,
    Built,
    Channel,
    Composition,
    SourceInfo,
    compose_task,
    read_task_file,
    write_facts,
)
from readbench.engine.context import Context
from readbench.engine.window_files import WindowWriter
from readbench.engine.window_tables import Packed, read_packed
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet, concatenate
from readbench.errors import DataError, UsageError

NAMES = ("corpus", "queries", "normals")


@dataclass(frozen=True, eq=False)
class ReadyTask:
    """A ready-made task that was read and checked.

    Args:
        info: facts, with channels and faults.
        corpus: labelled windows, in order.
        queries: labelled faults.
        normals: normal windows; may be empty.
        lowest: (corpus,) lowest level of each item, or None.
        levels: pollution levels in percent.
        origin: dataset and seed of an exported task.
        fingerprint: expected fingerprint of an exported task.
    """

    info: SourceInfo
    corpus: WindowSet
    queries: WindowSet
    normals: WindowSet
    lowest: NDArray[np.int32] | None
    levels: tuple[int, ...]
    origin: tuple[str, int] | None
    fingerprint: str = ""

    def write(self, folder: Path) -> None:
        """All windows into one folder, and which is which."""
        sizes = PartSizes(
            corpus=len(self.corpus),
            queries=len(self.queries),
            normals=len(self.normals),
            lowest=None if self.lowest is None else tuple(self.lowest.tolist()),
            levels=self.levels,
            origin=self.origin,
        )
        with WindowWriter(folder, self.info.classes) as writer:
            for part in (self.corpus, self.queries, self.normals):
                writer.append(part)
        write_facts(folder / PARTS, sizes)


def read_ready_task(path: Path, info: SourceInfo, *, normal: str = "normal") -> ReadyTask:
    """Read a ready-made task from an archive or folder and check that it can be evaluated.

    Facts of an exported task replace those of `info` except the name; `normal` is the label of normal operation.
    """
    exported = read_task_file(path) if path.is_dir() else None
    classes, normal = (exported.info.classes, NORMAL_CLASS) if exported else ((), normal)
    packed = _read_folder(path, normal, classes) if path.is_dir() else _read_archive(path, normal)
    corpus, queries, normals = _one_vocabulary([part.windows for part in packed])
    corpus, lowest = _levels(path, corpus, packed[0])
    if lowest is None:
        normals = concatenate([normals, corpus[corpus.labels == NORMAL]])
        corpus = corpus[corpus.labels != NORMAL]
    levels = () if lowest is None else tuple(np.unique(lowest).tolist())
    found = ReadyTask(
        replace(exported.info, name=info.name) if exported else _facts(info, corpus, queries),
        corpus,
        queries,
        replace(normals, labels=np.full(len(normals), NORMAL, np.int32)),
        lowest,
        exported.levels if exported and lowest is not None else levels,
        exported.origin if exported else None,
        exported.fingerprint if exported else "",
    )
    _check(path, found, normals)
    return found


def check_unchanged(built: Built, found: ReadyTask) -> None:
    """Raise `DataError` where an exported task is no longer the one that was exported."""
    if not found.fingerprint:
        return
    task = compose_task(built, seed=0, settings=Composition(rho=found.levels))
    if task.fingerprint() != found.fingerprint:
        raise DataError(
            f"The task has fingerprint {task.fingerprint()}, but {found.fingerprint} was exported: its files were "
            f"changed. Get them again, or remove {TASK} to import them as a task of your own."
        )


def is_ready_task(path: Path) -> bool:
    """Whether a path is in one of the forms above."""
    if path.is_dir():
        return (path / "queries.parquet").is_file()
    return "queries_values" in _arrays(path)


def _arrays(path: Path) -> set[str]:
    """Names of the arrays in an archive; none where it is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return set()


def _read_folder(path: Path, normal: str, classes: Sequence[str]) -> list[Packed]:
    """Corpus, queries and normals of a folder of Parquet files."""
    files = [sorted(path.glob("corpus*.parquet")), [path / "queries.parquet"], sorted(path.glob("normals.parquet"))]
    if not files[0] or not files[1][0].is_file():
        raise DataError(f"{path}: a ready-made task needs corpus.parquet and queries.parquet.")
    parts = [
        _joined([read_packed(f, part=f"{name}_", normal=normal, classes=classes) for f in own])
        for name, own in zip(NAMES, files, strict=True)
        if own
    ]
    return parts if files[2] else [*parts, _none(parts[0])]


def _read_archive(path: Path, normal: str) -> list[Packed]:
    """The same of an NPZ archive."""
    if path.suffix != ".npz":
        raise UsageError(f"{path}: a ready-made task is a folder of Parquet files or an .npz archive.")
    known = [name for name in NAMES if f"{name}_values" in _arrays(path)]
    if not {"corpus", "queries"} <= set(known):
        raise DataError(f"{path}: a ready-made task needs the arrays corpus_values and queries_values.")
    parts = [read_packed(path, part=f"{name}_", normal=normal) for name in known]
    return parts if "normals" in known else [*parts, _none(parts[0])]


def _joined(parts: list[Packed]) -> Packed:
    """Files of one part, one after the other, with the columns that order a corpus."""
    if len(parts) == 1:
        return parts[0]
    columns = {}
    for name in ("level", "position"):
        if any(name in part.table.columns for part in parts):
            columns[name] = np.concatenate([part.table.numbers(name) for part in parts])
    windows = concatenate(_one_vocabulary([part.windows for part in parts]))
    return Packed(windows, replace(parts[0].table, data=pa.table(columns)))


def _none(like: Packed) -> Packed:
    return Packed(like.windows[:0], replace(like.table, data=like.table.data.slice(0, 0)))


def _one_vocabulary(sets: Sequence[WindowSet]) -> list[WindowSet]:
    """The same windows with one list of classes: normal, and all faults sorted, unless they share one already."""
    faults = sorted({name for windows in sets for name in windows.classes[1:]})
    if len({windows.classes for windows in sets}) == 1:
        faults = list(sets[0].classes[1:])
    if NORMAL_CLASS in faults:
        raise DataError(f"{NORMAL_CLASS!r} is a fault here, but it is the name of normal operation. Rename the label.")
    classes = (NORMAL_CLASS, *faults)
    code = {name: i for i, name in enumerate(classes)}
    renamed = []
    for windows in sets:
        codes = np.array([NORMAL, *(code[name] for name in windows.classes[1:]), UNLABELLED], np.int32)
        renamed.append(replace(windows, labels=codes[windows.labels], classes=classes))
    return renamed


def _levels(path: Path, corpus: WindowSet, packed: Packed) -> tuple[WindowSet, NDArray[np.int32] | None]:
    """The corpus in its order, and the lowest level of each item."""
    table = packed.table
    if "position" in table.columns:
        order = np.argsort(table.numbers("position"), kind="stable")
    else:
        order = np.arange(len(corpus))
    if "level" not in table.columns:
        return corpus[order], None
    lowest = table.numbers("level")[order]
    if not ((lowest >= 0) & (lowest < 100) & (lowest == np.floor(lowest))).all():
        raise DataError(f"{path}: 'level' must be whole percent from 0 to 99 in every row of the corpus.")
    return corpus[order], lowest.astype(np.int32)


def _facts(info: SourceInfo, corpus: WindowSet, queries: WindowSet) -> SourceInfo:
    units = {name: "" for windows in (corpus, queries) for own in windows.channel_sets for name in own}
    for windows in (corpus, queries):
        context = windows.context or Context.unknown(len(windows))
        for names, own in dict.fromkeys((windows.channels(i), context.units_of(i)) for i in range(len(windows))):
            units |= {name: units[name] or unit for name, unit in zip(names, own, strict=False)}  # `own` may be empty
    return replace(info, channels=tuple(map(Channel, units, units.values())), faults=corpus.classes[1:])


def _check(path: Path, found: ReadyTask, normals: WindowSet) -> None:
    """Raise `DataError` where a task cannot be evaluated, or is not what was exported."""
    corpus, queries = found.corpus, found.queries
    if (queries.labels <= NORMAL).any():
        raise DataError(f"{path}: query {_first(queries, queries.labels <= NORMAL)} has no fault for its label.")
    if (corpus.labels == UNLABELLED).any():
        raise DataError(f"{path}: corpus item {_first(corpus, corpus.labels == UNLABELLED)} has no label.")
    if (normals.labels > NORMAL).any():
        raise DataError(f"{path}: {_first(normals, normals.labels > NORMAL)} is among the normals but is a fault.")
    alone = ~np.isin(queries.labels, corpus.labels)
    if alone.any():
        raise DataError(f"{path}: query {_first(queries, alone)} has no corpus item with the same fault.")
    if len(set(corpus.ids.tolist())) < len(corpus):
        raise DataError(f"{path}: two items of the corpus have the same id.")
    shared = set(queries.ids.tolist()) & {*corpus.ids.tolist(), *normals.ids.tolist()}
    if shared:
        raise DataError(f"{path}: {min(shared)!r} is the id of a query and of a corpus item or normal.")
    for windows in (corpus, queries, normals):
        windows.require_finite()


def _first(windows: WindowSet, wrong: NDArray[np.bool_]) -> str:
    return repr(str(windows.ids[np.flatnonzero(wrong)[0]]))
