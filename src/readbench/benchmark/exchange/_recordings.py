"""Recordings from a user's tables as a source; its windows are built once, at the import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import NORMAL_CLASS, Channel, Recording, SourceInfo, write_windows_of
from readbench.benchmark.sources import fingerprint_files
from readbench.common.tables import TABLE_ENDINGS, read_table
from readbench.common.times import SECONDS, TimeUnit
from readbench.engine.context import check_before
from readbench.engine.preparation import fill_gaps, is_reading
from readbench.engine.signal_tables import understand_table
from readbench.engine.window_tables import FACT_PREFIX, Roles, TableSeries, series_of
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import DataError, UnknownNameError

MIN_STEPS = 8
"""Fewest rows of a case for the remark that a column always rises."""


@dataclass(frozen=True)
class CaseFacts:
    """Facts about one file from a table of cases.

    Args:
        label: fault; "" if unknown.
        group: split group.
        asset: machine, well, patient.
        onset: begin of the fault in seconds, without times in rows; NaN if unknown.
        before: table with readings of the same asset in the time before.
        rate: samples per second; NaN if it follows from the times.
        facts: numbers known beforehand, by name.
    """

    label: str = ""
    group: str = ""
    asset: str = ""
    onset: float = float("nan")
    before: Path | None = None
    rate: float = float("nan")
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedRecordings:
    """Tables of recordings.

    Args:
        info: facts; `surveyed` fills in channels and faults.
        files: the tables, in order.
        roles: roles of their columns.
        cases: facts about files that are one case each.
        normal: label of normal operation.
        blank_is_normal: True if rows without a label are normal; otherwise they are unlabelled.
        labelled: steps per label, after `surveyed`.
        remarks: what was understood of the tables, after `surveyed`.
        rows: rows of all tables, after `surveyed`.
    """

    info: SourceInfo
    files: tuple[Path, ...]
    roles: Roles
    cases: Mapping[Path, CaseFacts] = field(default_factory=dict)
    normal: str = "normal"
    blank_is_normal: bool = False
    labelled: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    remarks: tuple[str, ...] = ()

    def surveyed(self) -> ImportedRecordings:
        """A copy with channels, faults and counts from the files."""
        steps: Counter[str] = Counter()
        channels: dict[str, str] = {}
        rows = 0
        remarks: dict[str, None] = {}
        columns = _Columns()
        for _, series in self._series(remarks):
            columns.see(series)
            codes, counts = np.unique(series.labels, return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                steps[self._name(series, code)] += count
            channels |= dict(zip(series.channels, series.units, strict=True))
            rows += len(series.labels) + (0 if series.before is None else series.before.shape[1])
        faults = tuple(sorted(set(steps) - {"", self.normal}))
        if not faults:
            raise DataError(
                f"No row has a fault: the labels are {', '.join(filter(None, steps)) or 'all empty'}. "
                f"Name the label column (--label), or the label of normal operation (--normal)."
            )
        if NORMAL_CLASS in faults:
            raise DataError(
                f"{NORMAL_CLASS!r} is a fault here, but it is the name of normal operation. Rename the label."
            )
        for name, _ in self.roles.units:
            if name not in channels:
                raise UnknownNameError("channel", name, tuple(channels))
        info = replace(self.info, channels=tuple(map(Channel, channels, channels.values())), faults=faults)
        told = (*remarks, *columns.remarks())
        return replace(self, info=info, labelled=dict(sorted(steps.items())), rows=rows, remarks=told)

    def write(self, folder: Path) -> None:
        """Clean, cut and label all recordings into a folder of windows."""
        write_windows_of(self, None, folder)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the files and of how they are read."""
        del root
        befores = [case.before for case in self.cases.values() if case.before is not None]
        return fingerprint_files((*self.files, *befores), self.roles, self.normal, self.blank_is_normal)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the cases, file by file."""
        del root
        classes = {name: code for code, name in enumerate((self.normal, *self.info.faults))} | {"": UNLABELLED}
        for path, series in self._series():
            codes = [classes[self._name(series, code)] for code in range(len(series.names))]
            case = self.cases.get(path, CaseFacts())
            name = series.id if len(self.files) == 1 or self.cases else f"{path.stem}/{series.id}"
            yield Recording(
                id=name,
                values=series.values,
                channels=series.channels,
                labels=np.array([*codes, classes[self._name(series, UNLABELLED)]], np.int32)[series.labels],
                group=case.group or (series.group if self.roles.group else name),
                asset=case.asset or series.asset,
                start=series.start,
                step=series.step,
                rate=series.rate,
                before=series.before,
                facts=series.facts,
            )

    def _series(self, remarks: dict[str, None] | None = None) -> Iterator[tuple[Path, TableSeries]]:
        """The series of all tables; adds remarks on them to `remarks`."""
        for path in self.files:
            case = self.cases.get(path)
            found = understand_table(read_table(path), self.roles)
            if remarks is not None:
                remarks |= dict.fromkeys(found.remarks)
            for series in series_of(found.table, found.roles, np.nan if case is None else case.onset):
                yield path, series if case is None else self._told(series, case)

    def _told(self, series: TableSeries, case: CaseFacts) -> TableSeries:
        """A series with the facts of its case."""
        series = series if self.roles.label else _labelled(series, case)
        series = replace(series, facts={**series.facts, **case.facts})
        if not np.isnan(case.rate):
            series = replace(series, rate=case.rate)
        return series if case.before is None else replace(series, before=self._before(series, case.before))

    def _before(self, series: TableSeries, path: Path) -> NDArray[np.float64]:
        """(C, T_b) readings of the time before from another table, in the channels of the window."""
        where = f"case {series.id} ({path})"
        if series.before is not None:
            raise DataError(f"The time before {where} is known twice. Give the onset, or a file, but not both.")
        roles = Roles(
            time=self.roles.time, channel=self.roles.channel, value=self.roles.value, time_unit=self.roles.time_unit
        )
        read = understand_table(read_table(path), roles)
        (found,) = series_of(read.table, read.roles)
        if absent := [name for name in series.channels if name not in found.channels]:
            raise DataError(f"The time before {where} lacks channel {absent[0]!r}. Give the same channels for both.")
        if found.stop >= series.start:
            raise DataError(
                f"The time before {where} ends at {found.stop:.15g} s and overlaps the window, which begins at "
                f"{series.start:.15g} s. Leave out the rows that both have."
            )
        values = found.values[[found.channels.index(name) for name in series.channels]]
        check_before(fill_gaps(values, is_reading(values)), series.channels, where)
        return values

    def _name(self, series: TableSeries, code: int) -> str:
        """The label of a code; "" if unknown."""
        if code != UNLABELLED:
            return series.names[code]
        return self.normal if self.blank_is_normal else ""


class _Columns:
    """Checks of the columns that became channels."""

    def __init__(self) -> None:
        self._read: dict[str, bool] = {}
        self._rising: dict[str, bool] = {}

    def see(self, series: TableSeries) -> None:
        """Look at the values of one case."""
        known = is_reading(series.values)
        with np.errstate(invalid="ignore"):
            steps = np.diff(series.values, axis=1)
        timeless = np.isnan(series.rate) and steps.shape[1] >= MIN_STEPS
        for row, name in enumerate(series.channels):
            self._read[name] = self._read.get(name, False) or bool(known[row].any())
            rises = timeless and bool(known[row].all()) and bool((steps[row] > 0).all())
            self._rising[name] = self._rising.get(name, True) and rises

    def remarks(self) -> list[str]:
        """Sentences on channels without readings and on those that may be a time."""
        empty = [name for name, read in self._read.items() if not read]
        rising = [name for name, rises in self._rising.items() if rises]
        return [
            *(
                f"Mind: {name!r} has no reading in any row. Leave it out: --channels names the others."
                for name in empty
            ),
            *(f"Mind: {name!r} rises with every row. If it is the time, say so: --time {name!r}." for name in rising),
        ]


def table_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Tables of paths: files themselves, and all tables in folders, sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            own = sorted(p for p in path.rglob("*") if p.is_file() and _is_table(p))
            if not own:
                raise DataError(f"{path}: no table in this folder. Tables end in {', '.join(TABLE_ENDINGS)}.")
            found += own
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"{path}: no such file or folder.")
    return tuple(dict.fromkeys(found))


def read_cases(path: Path, time_unit: TimeUnit = "s") -> dict[Path, CaseFacts]:
    """Read a table of cases: `file`, relative to the table, and columns named as in `CaseFacts` (`fact.speed` ...).

    Onsets that are numbers have the unit `time_unit`.
    """
    table = read_table(path)
    texts = {"file": _texts(table.codes("file"))}  # must be there
    for column in ("label", "group", "asset", "before"):
        texts[column] = _texts(table.codes(column)) if column in table.columns else [""] * table.rows
    unknown = np.full(table.rows, np.nan)
    onsets = table.seconds("onset", SECONDS.get(time_unit, 1.0)) if "onset" in table.columns else unknown
    rates = table.numbers("rate") if "rate" in table.columns else unknown
    facts = {
        name.removeprefix(FACT_PREFIX): table.numbers(name) for name in table.columns if name.startswith(FACT_PREFIX)
    }
    cases: dict[Path, CaseFacts] = {}
    for row in range(table.rows):
        file, before = (path.parent / name if (name := texts[column][row]) else None for column in ("file", "before"))
        if file is None or file in cases or not file.is_file():
            what = (
                "names no file" if file is None else f"names {file} again" if file in cases else f"names no file {file}"
            )
            raise DataError(f"{path}, row {row + 1}: {what}. Each row needs a file of its own in column 'file'.")
        if before is not None and not before.is_file():
            raise DataError(f"{path}, row {row + 1}: there is no file {before} for the time before. Correct the path.")
        if rates[row] <= 0:
            raise DataError(f"{path}, row {row + 1}: a rate is a positive number of samples a second.")
        cases[file] = CaseFacts(
            label=texts["label"][row],
            group=texts["group"][row],
            asset=texts["asset"][row],
            onset=float(onsets[row]),
            before=before,
            rate=float(rates[row]),
            facts={name: float(column[row]) for name, column in facts.items()},
        )
    return cases


def _labelled(series: TableSeries, case: CaseFacts) -> TableSeries:
    """A whole series with the label of its case."""
    code = NORMAL if case.label else UNLABELLED  # the first and only name, or none
    labels = np.full(len(series.labels), code, np.int32)
    return replace(series, labels=labels, names=(case.label,) if case.label else ())


def _texts(column: tuple[np.ndarray, tuple[str, ...]]) -> list[str]:
    codes, names = column
    return [names[code] if code >= 0 else "" for code in codes.tolist()]


def _is_table(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(TABLE_ENDINGS)
