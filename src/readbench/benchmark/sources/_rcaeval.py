"""RCAEval: faults injected into three microservice applications, told by the metrics of all services.

Three collections, in `rcaeval/` at any depth, tables plain or gzipped; by default the first that is there is read:

* RE1, the one of the paper: `<system>/<service>_<fault>/<1..5>/data.csv` and `inject_time.txt` (a second since 1970).
  375 cases: 5 services x 5 faults x 5 repetitions of Online Boutique, Sock Shop and Train Ticket.
* RE2: the same tree with `simple_metrics.csv`, and `socket` as a sixth fault.
* Sock Shop 1 (from the RCD study): `<service>-<fault>/<1..5>/normal.csv` and `anomalous.csv`, recorded days apart. The
  first is the time before the second, for whoever knows when the fault began; nothing just precedes it.

Read here: all 50 cases of Sock Shop 1. Never seen working: RE1 and RE2, whose layout follows their own code. Not
verified against the official files.

Of RE1 and RE2 ten minutes on either side of the injection are used, as by the collection's own evaluation: two normal
and two faulty windows a case. All columns are kept under their names. The channels are those of all systems together,
so that every window has the same; a metric that a system does not have is an absent channel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.preparation import is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError, SourceMissingError

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
class InjectedCase:
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
class MetricTable:
    """Readings `values` (C, T) of the `channels` from `start` on (seconds since 1970), the fault from row `onset`."""

    channels: tuple[str, ...]
    values: NDArray[np.float64]
    start: float
    onset: int


def pattern(collection: Collection) -> str:
    """Where the cases of a collection lie, at any depth: `<service>_<fault>/<repetition>/`, with a hyphen in RCD's."""
    separator = "-" if collection == _HYPHENATED else "_"
    return f"**/*{separator}*/*/{TABLES[collection]}"


def cases_of(collection: Collection, paths: Iterable[Path]) -> list[InjectedCase]:
    """The cases behind these tables, sorted by group and repetition; each once."""
    found = _files.name_each(paths, lambda path: _case(collection, path).id, "case is")
    return [_case(collection, path) for _, path in sorted(found.items())]


def read_injected(path: Path) -> MetricTable:
    """A table that runs through the injection, ten minutes on either side of it."""
    table, injected = _read(path), _injection(path)
    onset = int(np.searchsorted(table.times, injected))
    if not 0 < onset < len(table.times):
        raise DataError(
            f"{path}: the injection at {injected:.0f} ({INJECTION}) is not inside its times "
            f"{table.times[0]:.0f} to {table.times[-1]:.0f}. One of the two files is of another case: get both again."
        )
    kept = slice(max(0, onset - KEPT), onset + KEPT)
    return MetricTable(table.channels, table.values[:, kept], float(table.times[kept][0]), onset - kept.start)


def read_one_sided(path: Path, *, faulty: bool) -> MetricTable:
    """A table that is normal or faulty throughout."""
    table = _read(path)
    return MetricTable(table.channels, table.values, float(table.times[0]), 0 if faulty else len(table.times))


def metric_names(path: Path) -> tuple[str, ...]:
    """The metrics of a table, by its header."""
    names = _files.csv_columns(path)
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
    columns = _files.read_csv(path, ("time", *channels))
    _files.check_times(path, columns["time"])
    values = np.stack([columns[name] for name in channels])
    if not is_reading(values).any():
        raise DataError(f"{path}: no metric has any reading. Get the file again.")
    return _Table(channels, columns["time"], values)


def _case(collection: Collection, path: Path) -> InjectedCase:
    repetition, folder, system = path.parent, path.parent.parent, path.parent.parent.parent
    service, _, fault = folder.name.rpartition("-" if collection == _HYPHENATED else "_")
    if fault not in FAULTS or not service or not repetition.name.isdecimal():
        raise DataError(
            f"{path}: a case lies in <service>_<fault>/<number>/ with a fault among {', '.join(FAULTS)}, not in "
            f"{folder.name}/{repetition.name}/. Move or remove it; collections of other faults (RE3) are not read."
        )
    name = _HYPHENATED if collection == _HYPHENATED else system.name
    return InjectedCase(name, service, FAULTS.index(fault) + 1, repetition.name, path)


def _injection(path: Path) -> float:
    note = _files.find_beside(RcaEval.info, path, INJECTION)
    text = _files.read_text(note).strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise DataError(f"{note}: {text[:40]!r} is no time in seconds since 1970. Get the file again.")
    return seconds


VERSION = 1
"""Raise when the same files give other recordings."""

ONE_GROUP_IN_FIFTEEN = 1 / 15
"""Each fault of RE1 has 15 groups (5 services of 3 systems); the paper's 50 queries are one group of each fault."""


@SOURCES.register("rcaeval", title="RCAEval")
@dataclass(eq=False)
class RcaEval(CutSource):
    """Resource and network faults in microservices, metrics of all services once a second.

    Args:
        collection: which of the collections to read; `auto` takes the first of `re1`, `re2` and `sock-shop-1` that is
            there.
    """

    collection: Literal["auto", "re1", "re2", "sock-shop-1"] = "auto"

    info = read_info(__name__, "rcaeval", test_share=ONE_GROUP_IN_FIFTEEN)

    def resolved(self, root: Path | None) -> RcaEval:
        """The source with the metrics of all cases under `root` as channels, sorted by name."""
        names = {name for path in self._tables(root) for name in metric_names(path)}
        source = replace(self)
        source.info = replace(self.info, channels=tuple(Channel(name) for name in sorted(names)))
        return source

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all tables and injection times, and of where they lie."""
        collection, cases = self._cases(root)
        tables = self._tables(root)
        injected = () if collection == "sock-shop-1" else cases
        notes = [_files.find_beside(self.info, case.path, INJECTION) for case in injected]
        return _files.fingerprint_files([*tables, *notes], "rcaeval", VERSION, collection, [case.id for case in cases])

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the cases by group and repetition; a case of Sock Shop 1 is two recordings."""
        info = self.info if self.info.channels else self.resolved(root).info
        axis = tuple(channel.name for channel in info.channels)
        collection, cases = self._cases(root)
        for case in cases:
            if collection == "sock-shop-1":
                normal = read_one_sided(_files.find_beside(RcaEval.info, case.path, NORMAL_TABLE), faulty=False)
                faulty = _recording(f"{case.id}/anomalous", case, read_one_sided(case.path, faulty=True), axis)
                usual = _recording(f"{case.id}/normal", case, normal, axis)
                yield usual
                yield replace(faulty, before=usual.values) if info.protocol.before == "onset" else faulty
            else:
                yield _recording(case.id, case, read_injected(case.path), axis)

    def _cases(self, root: Path | None) -> tuple[Collection, list[InjectedCase]]:
        """The collection to read, and its cases."""
        folder = _files.folder_of(self.info, root)
        wanted = [name for name in TABLES if self.collection in ("auto", name)]
        for collection in wanted:
            try:
                return collection, cases_of(collection, _files.find_files(self.info, root, [pattern(collection)]))
            except SourceMissingError:
                continue
        places = " or ".join(pattern(name).removeprefix("**/") for name in wanted)
        raise SourceMissingError(f"rcaeval: no {places} at any depth in {folder}. Get the files from {self.info.url}")

    def _tables(self, root: Path | None) -> list[Path]:
        collection, cases = self._cases(root)
        tables = [case.path for case in cases]
        two_sided = tables if collection == "sock-shop-1" else ()
        return [*tables, *(_files.find_beside(self.info, path, NORMAL_TABLE) for path in two_sided)]


def _recording(identity: str, case: InjectedCase, metrics: MetricTable, axis: tuple[str, ...]) -> Recording:
    """The metrics on the channels of all systems, the fault's label from its onset on."""
    steps = metrics.values.shape[1]
    values = np.full((len(axis), steps), np.nan)
    values[np.searchsorted(axis, metrics.channels)] = metrics.values
    labels = np.zeros(steps, np.int32)
    labels[metrics.onset :] = case.fault
    return Recording(
        id=identity,
        values=values,
        channels=axis,
        labels=labels,
        group=case.group,
        asset=case.system,
        start=metrics.start,
        rate=1.0,
    )
