"""HAI 21.03: a testbed of real control systems around a boiler, a turbine and water treatment, attacked fifty times.

Layout: `train1.csv` to `train3.csv` and `test1.csv` to `test5.csv`, plain or gzipped, in `hai/hai-21.03/` or `hai/`
itself, with commas or semicolons between fields. Columns: `time`, 79 tags, `attack` (0 or 1) and one such column per
process, which is not read. Written from the technical manual; not verified against the official files, none of which
was seen here. Other versions have other tags and attacks and are refused.

What the manual says ships beside this module: the tags (`hai/tags.txt`), the control loops (`hai/loops.csv`) and when
each of them was attacked (`hai/attacks.csv`).

The files mark when there is an attack but not which one. The k-th run of `attack` in a test file is the k-th attack
that the manual schedules for it; the number of runs, their starts and their durations are checked against the schedule.
An attack on two loops counts as one on the loop named first: together with a stride of a quarter window this gives the
number of windows in the benchmark's paper, which states neither.

A test file is cut half way between each two attacks, so that each attack is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import (
    Channel,
    CutSource,
    Protocol,
    Recording,
    read_info,
    read_shipped,
    read_shipped_rows,
    rows_before,
)
from readbench.benchmark.sources import _files
from readbench.benchmark.sources._episodes import Episode, runs, stretches
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

LOOPS = {row["loop"]: row["class"] for row in read_shipped_rows(__name__, "hai/loops.csv")}
"""The attacked control loops and the names of their classes, in order."""
TAGS = tuple(read_shipped(__name__, "hai/tags.txt").split())
"""The 79 data points of version 21.03."""


@dataclass(frozen=True)
class Attack:
    """One row of the schedule.

    Args:
        name: as the manual calls it.
        loops: attacked control loops; the first one is the class.
        start: to the minute, local time.
        duration: in seconds.
    """

    name: str
    loops: tuple[str, ...]
    start: str
    duration: int

    @property
    def label(self) -> int:
        """Class of the first attacked loop."""
        return list(LOOPS).index(self.loops[0]) + 1

    @property
    def start_seconds(self) -> float:
        """Scheduled minute in seconds since 1970, in the clock of the files."""
        return float(np.datetime64(self.start, "s").astype(np.int64))


def _attack(row: dict[str, str]) -> Attack:
    return Attack(row["name"], tuple(row["loops"].split("+")), row["start"], int(row["duration"]))


SCHEDULE = {
    file: tuple(_attack(row) for row in rows)
    for file, rows in groupby(read_shipped_rows(__name__, "hai/attacks.csv"), key=lambda row: row["file"])
}
"""Attacks of each test file in order of time."""


VERSION = 1
"""Raise when the same files give other recordings."""

LENGTH = 256
PART = 64 * LENGTH
"""Steps of one recording of a training file: always whole windows."""
START_TOLERANCE = 300.0
"""Seconds between an attack's first marked step and its scheduled minute."""
DURATION_TOLERANCE = 60
"""Seconds between an attack's marked and scheduled duration."""
TRAINING = ("train1", "train2", "train3")
PLACES = ("hai-21.03/", "")
PATTERNS = ("train[1-3]", "test[1-5]")

Table = dict[str, NDArray[np.float64]]


@SOURCES.register("hai", title="HAI")
class Hai(CutSource):
    """Attacks on six control loops of an industrial testbed, 79 tags once a second."""

    info = read_info(
        __name__,
        "hai",
        faults=tuple(LOOPS.values()),
        channels=tuple(Channel(tag) for tag in TAGS),
        length=LENGTH,
        normal_stride=LENGTH,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all files."""
        return _files.fingerprint_files(self._files(root).values(), "hai", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Test files attack by attack, then training files in parts of 4.5 hours."""
        files = self._files(root)
        for name in SCHEDULE:
            yield from _test_recordings(name, files[name])
        for name in TRAINING:
            yield from _training_recordings(name, files[name], self.info.protocol)

    def _files(self, root: Path | None) -> dict[str, Path]:
        """All eight files by name."""
        found = _files.find_files(self.info, root, [f"{place}{name}.csv" for place in PLACES for name in PATTERNS])
        files = _files.name_each(found, _files.plain_stem)
        _files.require_all(self.info, files, (*SCHEDULE, *TRAINING), ".csv")
        return files


def _test_recordings(name: str, path: Path) -> Iterator[Recording]:
    table = _files.read_csv(path, (*TAGS, "attack"), time="time", delimiter=_delimiter(path))
    _files.check_times(path, table["time"])
    values = _values(path, table)
    attacked = _attacked(path, table["attack"])
    for part in stretches(len(attacked), match_attacks(name, path, table["time"], attacked)):
        attack = part.episode.name if part.episode else name
        yield Recording(
            id=f"{name}/{attack}",
            values=values[:, part.start : part.stop],
            channels=TAGS,
            labels=part.labels(),
            group=attack,
            asset="testbed",
            start=float(table["time"][part.start]),
            rate=1.0,
        )


def _training_recordings(name: str, path: Path, protocol: Protocol) -> Iterator[Recording]:
    done, last, before = 0, np.empty(0), np.empty((len(TAGS), 0))
    for number, table in enumerate(
        _files.csv_parts(path, (*TAGS, "attack"), PART, time="time", delimiter=_delimiter(path))
    ):
        _files.check_times(path, np.append(last, table["time"]), first_row=done + 1 - len(last))
        attacked = _attacked(path, table["attack"], first_row=done + 1)
        _files.check_rows(path, ~attacked, "an attack, but training files have none", first_row=done + 1)
        values, labels = _values(path, table), np.zeros(len(table["time"]), np.int32)
        yield Recording(
            id=f"{name}/{number:02d}",
            values=values,
            channels=TAGS,
            labels=labels,
            group=name,
            asset="testbed",
            start=float(table["time"][0]),
            rate=1.0,
            before=before,
        )
        done, last = done + len(labels), table["time"][-1:]
        before = values[:, rows_before(labels, len(labels), protocol)]


def match_attacks(name: str, path: Path, times: NDArray[np.float64], attacked: NDArray[np.bool_]) -> list[Episode]:
    """The k-th run of attacked steps as the k-th scheduled attack; raises `DataError` where they do not agree.

    Args:
        name: of the test file in the schedule.
        path: named in errors.
        times: (T,) seconds since 1970.
        attacked: (T,) which steps are marked.
    """
    found, schedule = runs(attacked), SCHEDULE[name]
    if len(found) != len(schedule):
        raise DataError(
            f"{path}: {len(found)} attacks are marked, but version 21.03 has {len(schedule)} in {name}.csv. "
            "The file is incomplete or of another version: get it again."
        )
    episodes = []
    for (start, stop), attack in zip(found, schedule, strict=True):
        late = float(times[start]) - attack.start_seconds
        if abs(late) > START_TOLERANCE or abs(stop - start - attack.duration) > DURATION_TOLERANCE:
            raise DataError(
                f"{path}, row {start + 1}: an attack of {stop - start} s begins {late:+.0f} s from the start of "
                f"{attack.name}, which lasts {attack.duration} s. The file is of another version: get it again."
            )
        episodes.append(Episode(attack.name, attack.label, start, stop))
    return episodes


def _delimiter(path: Path) -> str:
    """The header tells: no tag has a semicolon in its name."""
    return ";" if any(";" in name for name in _files.csv_columns(path)) else ","


def _values(path: Path, table: Table) -> NDArray[np.float64]:
    """(79, T) readings; each tag has at least one."""
    values = np.stack([table[tag] for tag in TAGS])
    _files.check_columns(path, values, TAGS)
    return values


def _attacked(path: Path, marks: NDArray[np.float64], *, first_row: int = 1) -> NDArray[np.bool_]:
    """(T,) which steps are marked."""
    known = np.isin(marks, (0.0, 1.0))
    _files.check_rows(
        path, known, lambda row: f"'attack' is {marks[row]:g}, but only 0 and 1 have a meaning", first_row=first_row
    )
    return marks == 1.0
