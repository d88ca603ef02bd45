"""Import of a table of incidents: each row cuts one case out of a recording.

```
start,end,label,asset,note
2025-12-31 14:02,2025-12-31 14:20,seal leak,pump 2,Seal replaced.
```

`start` and `end` are dates or seconds by the clock of the recording. Optional columns: `recording` (file name, if
several cover the time), `onset` (earlier rows become context), `name`, `tags` and `links`; case does not matter. Other
columns are ignored and reported. A row that fails is reported and does not stop the others. Incidents already in the
library are skipped, so that a table can grow and be imported again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.cases._bulk import join_windows
from readbench.cases._intake import check_case, format_time, parse_onset, parse_time, prepare_windows
from readbench.cases._library import Library
from readbench.cases._models import Case, Remark
from readbench.common.progress import SILENT, Progress
from readbench.common.tables import Limits, Table, read_table
from readbench.engine.signal_tables import SignalTable, understand_table
from readbench.engine.window_tables import Roles, TableSeries, series_of, window_set
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, ReadbenchError, UnknownNameError

_SPAN = ("start", "end")
_TEXTS = ("label", "asset", "note", "notes", "recording", "onset", "name", "tags", "links")


@dataclass(frozen=True)
class IncidentReport:
    """Result of an import of incidents.

    Args:
        added: names of the new cases.
        known: names of cases that the library had already.
        failed: failed rows, numbered from 1, with the reason.
        remarks: remarks on table and recordings.
        odd: oddities of each new case.
    """

    added: tuple[str, ...]
    known: tuple[str, ...]
    failed: tuple[tuple[int, str], ...]
    remarks: tuple[str, ...]
    odd: tuple[tuple[Remark, ...], ...] = ()


def add_incidents(
    library: Library,
    incidents: Path,
    recordings: Sequence[Path],
    roles: Roles | None = None,
    *,
    limits: Limits | None = None,
    progress: Progress = SILENT,
) -> IncidentReport:
    """Add the incidents of a table as cases.

    Args:
        library: library to add to.
        incidents: table of incidents.
        recordings: tables with the signals.
        roles: column roles of the recordings.
        limits: largest number of bytes, rows and columns.
        progress: called while recordings are read and incidents cut.
    """
    listed = _List.of(read_table(incidents, limits))
    sources = []
    for place, path in enumerate(recordings):
        progress("reading recordings", place, len(recordings))
        sources.append(_Source(path, understand_table(read_table(path, limits), roles or Roles())))
    taken: dict[str, tuple[Case, WindowSet]] = {}
    known: list[str] = []
    failed: list[tuple[int, str]] = []
    there = {case.id for case in library.cases()}
    for row in range(listed.table.rows):
        progress("cutting incidents", row, listed.table.rows)
        try:
            case, source, span, onset = listed.incident(row, sources)
            if case.id in there:
                known.append(case.id)
            elif case.id in taken:
                raise DataError(f"it is the same incident as another row, {case.id!r}. Give it a different name.")
            else:
                taken[case.id] = check_case(case), prepare_windows(source.cut(span, onset))
        except ReadbenchError as error:
            failed.append((row + 1, str(error)))
    progress("cutting incidents", listed.table.rows, listed.table.rows)
    odd: list[tuple[Remark, ...]] = []
    if taken:
        cases, parts = zip(*taken.values(), strict=True)
        windows = join_windows(parts)
        odd = library.check_many(windows, exact=False)
        library.add(windows, list(cases), progress=progress)
    remarks = dict.fromkeys([*listed.remarks, *(remark for source in sources for remark in source.found.remarks)])
    return IncidentReport(tuple(taken), tuple(known), tuple(failed), tuple(remarks), tuple(odd))


@dataclass(frozen=True, eq=False)
class _Source:
    """A recording, with its rows in order of time."""

    path: Path
    found: SignalTable

    def __post_init__(self) -> None:
        if not self.found.roles.time:
            raise DataError(f"{self.path}: no time column was found, so no incident can be cut. Give it: --time COLUMN")

    @cached_property
    def order(self) -> NDArray[np.intp]:
        return np.argsort(self.found.table.numbers(self.found.roles.time), kind="stable")

    @cached_property
    def times(self) -> NDArray[np.float64]:
        return self.found.table.numbers(self.found.roles.time)[self.order]

    @cached_property
    def assets(self) -> tuple[NDArray[np.int32], tuple[str, ...]] | None:
        column = self.found.roles.asset
        return self.found.table.codes(column) if column else None

    def covers(self, span: tuple[float, float], asset: str) -> bool:
        """True if the recording has rows of the asset within the span."""
        inside = bool(self.times[0] <= span[1] and self.times[-1] >= span[0])
        return inside and (self.assets is None or not asset or asset in self.assets[1])

    def cut(self, span: tuple[float, float], onset: str) -> WindowSet:
        """Cut the window of a span; with an onset, earlier rows become context."""
        first, last = np.searchsorted(self.times, span[0], "left"), np.searchsorted(self.times, span[1], "right")
        rows = np.sort(self.order[first:last])
        table, roles, zone = self.found.table, self.found.roles, self.found.zone
        if len(rows) < 2:
            ends = [format_time(float(end), zone) for end in (self.times[0], self.times[-1])]
            raise DataError(f"{self.path.name} has {len(rows)} rows in that time; it goes from {ends[0]} to {ends[1]}.")
        part = Table(table.name, table.data.take(pa.array(rows)))
        begun = parse_onset(onset, float(self.times[first]), zone)
        if onset and not span[0] < begun <= span[1]:
            raise DataError(f"the onset {onset} is not between start and end.")
        series: list[TableSeries] = series_of(part, roles, begun)
        if len(series) != 1:
            raise DataError(f"{len(series)} cases of {self.path.name} lie in that time. Leave the column of cases out.")
        return window_set(series)


@dataclass(frozen=True, eq=False)
class _List:
    """The table of incidents, with normalised column names."""

    table: Table
    remarks: tuple[str, ...]
    _starts: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Table) -> _List:
        """Normalise the columns of a table."""
        plain = [name.strip().casefold() for name in given.columns]
        for column in _SPAN:
            if column not in plain:
                raise UnknownNameError(f"column of {given.name}", column, given.columns)
        known = {name: column for name, column in zip(plain, given.columns, strict=True) if name in (*_SPAN, *_TEXTS)}
        left = [name for name in given.columns if name not in known.values()]
        remarks = (f"Columns of {given.name} that were left out: {', '.join(left)}.",) if left else ()
        data = given.data.select(list(known.values())).rename_columns(list(known))
        return cls(replace(given, data=data), remarks)

    def incident(self, row: int, sources: list[_Source]) -> tuple[Case, _Source, tuple[float, float], str]:
        """Case, recording, span and onset of a row."""
        texts = {name: self._text(name, row) for name in _TEXTS}
        named = [source for source in sources if texts["recording"] in {"", source.path.name, source.path.stem}]
        if not named:
            raise DataError(f"there is no recording {texts['recording']!r}. Give its file, too.")
        spans = {source.path: self._span(row, source.found.zone) for source in named}
        matching = [source for source in named if source.covers(spans[source.path], texts["asset"])]
        if len(matching) > 1 and texts["asset"]:
            matching = [
                recording for recording in matching if recording.path.stem.casefold() == texts["asset"].casefold()
            ] or matching
        if len(matching) != 1:
            names = ", ".join(source.path.name for source in (matching or named)[:5])
            what = "it lies in several recordings" if matching else "no recording has this time"
            raise DataError(f"{what}: {names}. Name its file in a column 'recording', or correct the time.")
        source, span = matching[0], spans[matching[0].path]
        when = format_time(span[0], source.found.zone).removesuffix(" s")
        case = Case(
            id=texts["name"] or f"{texts['asset'] or source.path.stem} {when}",
            label=texts["label"] or None,
            asset=texts["asset"],
            time=span[0],
            end=span[1],
            zone=source.found.zone,
            notes=texts["note"] or texts["notes"],
            tags=_split(texts["tags"]),
            links=_split(texts["links"]),
        )
        return case, source, span, texts["onset"]

    def _span(self, row: int, zone: str) -> tuple[float, float]:
        """Start and end of a row in a time zone; the date format is inferred from all rows."""
        if zone not in self._starts:
            self._starts[zone] = (self._column("start", zone), self._column("end", zone))
        found = []
        for name, column in zip(_SPAN, self._starts[zone], strict=True):
            time = float(column[row])
            if np.isnan(time):
                time = parse_time(self._text(name, row), zone) or np.nan
            if np.isnan(time):
                raise DataError(f"there is no {name}. Give a date or seconds.")
            found.append(time)
        start, end = found
        if end <= start:
            raise DataError(f"it ends ({self._text('end', row)}) before it starts ({self._text('start', row)}).")
        return start, end

    def _column(self, name: str, zone: str) -> NDArray[np.float64]:
        found = self.table.times(name, "auto", zone)
        return np.full(self.table.rows, np.nan) if found is None else found.seconds

    def _text(self, column: str, row: int) -> str:
        if column not in self.table.columns:
            return ""
        value = self.table.data[column][row].as_py()
        return "" if value is None else str(value).strip()


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())
