"""The cases of RCAEval: which are there, what was injected, and their metrics on either side of the injection."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.data.sources.files import check_times, csv_columns, read_csv, read_text
from readbench.errors import DataError
from readbench.windows.gaps import is_reading

Collection = Literal["re1", "re2", "sock-shop-1"]

FAULTS = ("cpu", "mem", "disk", "delay", "loss", "socket")
"""What was injected, by the last part of a case's name; `socket` is in RE2 only."""
TABLES: dict[Collection, str] = {"re1": "data.csv", "re2": "simple_metrics.csv", "sock-shop-1": "anomalous.csv"}
"""The file that every case of a collection has; collections in order of preference."""
NORMAL_TABLE = "normal.csv"
INJECTION = "inject_time.txt"
KEPT = 600
"""Rows kept on either side of the injection: ten minutes."""

_HYPHENATED: Collection = "sock-shop-1"


@dataclass(frozen=True)
class Case:
    """One repetition of one fault injected into one service.

    Args:
        system: the application, by the name of its folder.
        service: what was attacked.
        fault: class index.
        repetition: number, as its folder is called.
        path: its table of metrics, with the fault in it.
    """

    system: str
    service: str
    fault: int
    repetition: str
    path: Path

    @property
    def group(self) -> str:
        """Service and fault: all repetitions stand on one side of a split."""
        return f"{self.system}/{self.service}_{FAULTS[self.fault - 1]}"

    @property
    def id(self) -> str:
        """Unique among the cases."""
        return f"{self.group}/{self.repetition}"


@dataclass(frozen=True, eq=False)
class Metrics:
    """Readings `values` (C, T) of the `channels` from `start` on (seconds since 1970), the fault from row `onset`."""

    channels: tuple[str, ...]
    values: NDArray[np.float64]
    start: float
    onset: int


def pattern(collection: Collection) -> str:
    """Where the cases of a collection lie, at any depth: `<service>_<fault>/<repetition>/`, with a hyphen in RCD's."""
    separator = "-" if collection == _HYPHENATED else "_"
    return f"**/*{separator}*/*/{TABLES[collection]}"


def cases_of(collection: Collection, paths: Iterable[Path]) -> list[Case]:
    """The cases behind these tables, sorted by group and repetition; each once."""
    cases: dict[str, Case] = {}
    for path in paths:
        case = _case(collection, path)
        if (other := cases.setdefault(case.id, case)) != case:
            raise DataError(f"{path}: the same case is in {other.path.parent}. Keep one of the two.")
    return [cases[name] for name in sorted(cases)]


def read_injected(path: Path) -> Metrics:
    """A table that runs through the injection, ten minutes on either side of it."""
    table, injected = _read(path), _injection(path)
    onset = int(np.searchsorted(table.times, injected))
    if not 0 < onset < len(table.times):
        raise DataError(
            f"{path}: the injection at {injected:.0f} ({INJECTION}) is not inside its times "
            f"{table.times[0]:.0f} to {table.times[-1]:.0f}. One of the two files is of another case: get both again."
        )
    kept = slice(max(0, onset - KEPT), onset + KEPT)
    return Metrics(table.channels, table.values[:, kept], float(table.times[kept][0]), onset - kept.start)


def read_one_sided(path: Path, *, faulty: bool) -> Metrics:
    """A table that is normal or faulty throughout."""
    table = _read(path)
    return Metrics(table.channels, table.values, float(table.times[0]), 0 if faulty else len(table.times))


def sibling(path: Path, name: str) -> Path:
    """Another file of the same case, plain or gzipped."""
    for candidate in (path.with_name(name), path.with_name(f"{name}.gz")):
        if candidate.is_file():
            return candidate
    raise DataError(f"{path}: there is no {name} beside it. The case is incomplete: get it again.")


def metric_names(path: Path) -> tuple[str, ...]:
    """The metrics of a table, by its header."""
    names = csv_columns(path)
    if "time" not in names or len(names) < 2 or not all(names):
        raise DataError(
            f"{path}: expected the column 'time' and at least one metric, found {', '.join(names)[:200]}. "
            "Get the file again."
        )
    return tuple(name for name in names if name != "time")


@dataclass(frozen=True, eq=False)
class _Table:
    channels: tuple[str, ...]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


def _read(path: Path) -> _Table:
    channels = metric_names(path)
    columns = read_csv(path, ("time", *channels))
    check_times(path, columns["time"])
    values = np.stack([columns[name] for name in channels])
    if not is_reading(values).any():
        raise DataError(f"{path}: no metric has any reading. Get the file again.")
    return _Table(channels, columns["time"], values)


def _case(collection: Collection, path: Path) -> Case:
    repetition, folder, system = path.parent, path.parent.parent, path.parent.parent.parent
    service, _, fault = folder.name.rpartition("-" if collection == _HYPHENATED else "_")
    if fault not in FAULTS or not service or not repetition.name.isdecimal():
        raise DataError(
            f"{path}: a case lies in <service>_<fault>/<number>/ with a fault among {', '.join(FAULTS)}, not in "
            f"{folder.name}/{repetition.name}/. Move or remove it; collections of other faults (RE3) are not read."
        )
    name = _HYPHENATED if collection == _HYPHENATED else system.name
    return Case(name, service, FAULTS.index(fault) + 1, repetition.name, path)


def _injection(path: Path) -> float:
    note = sibling(path, INJECTION)
    text = read_text(note).strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise DataError(f"{note}: {text[:40]!r} is no time in seconds since 1970. Get the file again.")
    return seconds
