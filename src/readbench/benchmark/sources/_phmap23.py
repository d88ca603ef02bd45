"""PHM Asia-Pacific 2023: the propulsion system of a spacecraft, simulated, with stuck valves and bubbles in its pipes.

Layout: `dataset/train/data/Case001.csv` to `Case177.csv` with `dataset/train/labels.xlsx`, and
`dataset/test/data/Case178.csv` to `Case223.csv` with the published truth `testing/answer.csv`; also without the folder
`dataset`, tables plain or gzipped. Read here: all 223 cases, with pressures rounded to 9 decimals.

Each case is one firing of 1.2 s: four valves open and shut three times. The fault is there from the first row on. Four
things need care:

* Copies: three cases of the test part repeat cases of the training part reading by reading, and one repeats another of
  the test part. Whatever repeats an earlier case is left out. Two more pairs are near copies; they share a group.
* Unknown anomalies: they start at 3 MPa, all other cases at 2 MPa, so that one reading finds them. They are no class.
  Their steps are not labelled, and no window is cut from them.
* The first row is the state at rest, the same in all other cases. It is left out.
* Nothing precedes a firing. Who knows when the fault began also knows how this spacecraft fires when it is well: the
  time before a case is the mean of the other normal cases of its spacecraft, row by row.

The opening of a valve is part of the truth and is not read.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.registry import SOURCES
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

ROWS = 1201
STEP = 0.001  # s
VALVES = ("SV1", "SV2", "SV3", "SV4")
BUBBLES = ("BP1", "BP2", "BP3", "BP4", "BP5", "BP6", "BP7", "BV1")
PLACES = (*VALVES, *BUBBLES)
"""Where a fault can be; classes 1 to 12 in this order."""
SHARED_GROUPS = {186: 159, 197: 160}
"""Near copies: the same bubble in the same spacecraft once more."""
CHANNELS = tuple(Channel(f"P{k}", "MPa", f"pressure at place {k} of the piping") for k in range(1, 8))
NAMES = tuple(channel.name for channel in CHANNELS)
TRUTHS = {"train": ("dataset/train/labels.xlsx", "train/labels.xlsx"), "test": ("testing/answer.csv", "answer.csv")}
"""Where the truth of each part of the challenge may lie."""
LARGEST_ANSWER = 1000
ANSWERS = ("Spacecraft No.", "ID", "task1", "task2", "task3", "task4")

_CASE = re.compile(r"Case(\d{3})")
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@dataclass(frozen=True)
class PropulsionTruth:
    """Class index of a case (UNLABELLED for an unknown anomaly), and its spacecraft."""

    label: int
    craft: int


@SOURCES.register("phmap23", title="PHMAP23")
class Phmap23(CutSource):
    """Stuck valves and bubbles in the propulsion of four spacecraft, seven pressures over three cycles."""

    info = read_info(
        __name__,
        "phmap23",
        faults=(
            *(f"valve {place} opens in part only" for place in VALVES),
            *(f"bubble at {place}" for place in BUBBLES),
        ),
        channels=CHANNELS,
        length=ROWS - 1,
        stride=ROWS - 1,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all cases and of both tables of the truth."""
        cases = self._cases(root)
        truths = self._truth_files(root, cases)
        return _files.fingerprint_files([*cases.values(), *truths], "phmap23", VERSION, list(cases))

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the cases by number, copies left out."""
        files = self._cases(root)
        truths = self._truths(root, files)
        for number, path in files.items():
            if number not in truths:
                raise DataError(f"{path}: the tables of the truth have no case {number}. Get them again.")
        cases = _drop_copies({number: read_case(path) for number, path in files.items()})
        usual = _Usual.of(cases, truths) if self.info.protocol.before == "onset" else None
        for number, values in cases.items():
            truth = truths[number]
            yield Recording(
                id=f"Case{number:03d}",
                values=values,
                channels=NAMES,
                labels=np.full(values.shape[1], truth.label, np.int32),
                group=f"Case{SHARED_GROUPS.get(number, number):03d}",
                asset=f"spacecraft {truth.craft}",
                step=STEP,
                rate=1 / STEP,
                before=None if usual is None else usual.of_others(values, truth),
            )

    def _cases(self, root: Path | None) -> dict[int, Path]:
        """File of each case by its number."""
        parts = [f"{place}{part}/data/Case*.csv" for place in ("dataset/", "") for part in ("train", "test")]
        paths = _files.find_files(self.info, root, parts)
        _files.check_unique(paths)
        cases: dict[int, Path] = {}
        for path in paths:
            match = _CASE.fullmatch(_files.plain_stem(path))
            if match is None:
                raise DataError(f"{path}: cases are named Case001.csv to Case223.csv. Rename or remove the file.")
            cases[int(match[1])] = path
        return dict(sorted(cases.items()))

    def _truth_files(self, root: Path | None, cases: Mapping[int, Path]) -> list[Path]:
        """Tables of the truth, one for each part of the challenge that is there."""
        parts = {path.parent.parent.name for path in cases.values()}
        return [_files.find_files(self.info, root, TRUTHS[part])[0] for part in sorted(parts, reverse=True)]

    def _truths(self, root: Path | None, cases: Mapping[int, Path]) -> dict[int, PropulsionTruth]:
        truths: dict[int, PropulsionTruth] = {}
        for path in self._truth_files(root, cases):
            is_sheet = _files.plain_name(path.name).endswith(".xlsx")
            truths |= read_labels(path) if is_sheet else read_answers(path)
        return truths


def read_case(path: Path) -> NDArray[np.float64]:
    """(7, 1200) pressures of a firing, without the row at rest."""
    table = _files.read_csv(path, ("TIME", *NAMES))
    _files.check_times(path, table["TIME"])
    values = np.stack([table[name] for name in NAMES])
    _files.check_complete(path, values, ROWS)
    return np.ascontiguousarray(values[:, 1:])


def read_labels(path: Path) -> dict[int, PropulsionTruth]:
    """The truth of the training part, by case."""
    truths = {}
    for row in read_sheet(path):
        number = _whole(path, row, "Case#")
        marked = [place for place in VALVES if _whole(path, row, place) < 100]
        marked += [place for place in BUBBLES if row.get(place) == "Yes"]
        if len(marked) > 1 or bool(marked) == (row.get("Condition") == "Normal"):
            raise DataError(
                f"{path}: case {number} is {row.get('Condition', 'without condition')} with faults at "
                f"{', '.join(marked) or 'no place'}. The table is damaged: get it again."
            )
        label = PLACES.index(marked[0]) + 1 if marked else NORMAL
        truths[number] = PropulsionTruth(label, _whole(path, row, "Spacecraft#"))
    return truths


def read_answers(path: Path) -> dict[int, PropulsionTruth]:
    """The published truth of the test part, by case."""
    table = _files.read_csv(path, ANSWERS)
    rows = np.stack([table[name] for name in ANSWERS], axis=1)
    _files.check_rows(path, (np.abs(rows) <= LARGEST_ANSWER).all(axis=1), "a number is missing or too large")
    truths = {}
    for craft, number, abnormal, kind, bubble, valve in rows.astype(int).tolist():
        labels = {
            (0, 0): NORMAL,
            (1, 1): UNLABELLED,
            (1, 2): len(VALVES) + bubble if 1 <= bubble <= len(BUBBLES) else None,
            (1, 3): valve if 1 <= valve <= len(VALVES) else None,
        }
        label = labels.get((abnormal, kind))
        if label is None:
            raise DataError(
                f"{path}: case {number} has tasks {abnormal}, {kind}, {bubble}, {valve}, which have no meaning. "
                "Get the file again."
            )
        truths[number] = PropulsionTruth(label, craft)
    return truths


def read_sheet(path: Path) -> list[dict[str, str]]:
    """Rows of the first sheet of an Office Open XML workbook, by column, below a header of two rows.

    A column is called as its cell in the second row says, or else as the one in the first row.
    """
    try:
        with _files.open_binary(path) as file:
            content = BytesIO(file.read())
        with zipfile.ZipFile(content) as book:
            words = [_text(item) for item in _parse(book, "xl/sharedStrings.xml").iter(f"{_SHEET}si")]
            rows = [_cells(row, words) for row in _parse(book, "xl/worksheets/sheet1.xml").iter(f"{_SHEET}row")]
    except (ET.ParseError, EOFError, LookupError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path}: no workbook ({error}). The file is damaged or of another kind: get it again."
        ) from error
    if len(rows) < 3:
        raise DataError(f"{path}: {len(rows)} rows, expected a header of two rows and cases. Get the file again.")
    names = rows[0] | rows[1]
    records = [{names[column]: text for column, text in row.items() if column in names} for row in rows[2:]]
    return [record for record in records if record]


def _parse(book: zipfile.ZipFile, name: str) -> ET.Element:
    if book.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name} is packed in an unusual way")
    return ET.fromstring(book.read(name))  # noqa: S314 - expat refuses texts that blow up


def _text(item: ET.Element) -> str:
    """Text of a shared string, plain or in runs; how it is pronounced is left out."""
    return "".join(part.text or "" for part in (*item.findall(f"{_SHEET}t"), *item.findall(f"{_SHEET}r/{_SHEET}t")))


def _cells(row: ET.Element, words: list[str]) -> dict[str, str]:
    """Texts of the cells that have one, by the letter of their column."""
    cells = {}
    for cell in row.iter(f"{_SHEET}c"):
        value = cell.findtext(f"{_SHEET}v", "")
        if value:
            cells[cell.get("r", "").rstrip("0123456789")] = words[int(value)] if cell.get("t") == "s" else value
    return cells


def _whole(path: Path, row: Mapping[str, str], column: str) -> int:
    try:
        return int(float(row[column]))
    except (KeyError, OverflowError, ValueError) as error:
        raise DataError(
            f"{path}: the row of case {row.get('Case#', '?')} has no number under {column!r} ({error}). "
            "The table is damaged: get it again."
        ) from error


def _drop_copies(cases: Mapping[int, NDArray[np.float64]]) -> dict[int, NDArray[np.float64]]:
    """Cases without those that repeat an earlier one reading by reading."""
    first: dict[bytes, int] = {}
    return {n: values for n, values in cases.items() if first.setdefault(values.tobytes(), n) == n}


@dataclass(frozen=True, eq=False)
class _Usual:
    """Sum of the normal cases of each spacecraft, and how many they are."""

    sums: dict[int, NDArray[np.float64]]
    counts: dict[int, int]

    @classmethod
    def of(cls, cases: Mapping[int, NDArray[np.float64]], truths: Mapping[int, PropulsionTruth]) -> _Usual:
        normals = [(truths[n].craft, values) for n, values in cases.items() if truths[n].label == NORMAL]
        crafts = {craft for craft, _ in normals}
        sums = {own: np.sum([values for craft, values in normals if craft == own], axis=0) for own in crafts}
        return cls(sums, {own: sum(craft == own for craft, _ in normals) for own in crafts})

    def of_others(self, values: NDArray[np.float64], truth: PropulsionTruth) -> NDArray[np.float64] | None:
        """(7, 1200) mean of the normal cases of the same spacecraft, this one left out; None where there is none."""
        own = truth.label == NORMAL
        count = self.counts.get(truth.craft, 0) - own
        if count < 1:
            return None
        return np.asarray((self.sums[truth.craft] - own * values) / count)
