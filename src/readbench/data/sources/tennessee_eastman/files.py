"""The two published layouts of Tennessee Eastman simulation runs, read run by run and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.data.recording import Side
from readbench.data.source import SourceInfo
from readbench.data.sources.files import csv_blocks, find_files, plain_name, read_text
from readbench.data.sources.tennessee_eastman.facts import CHANNELS, FAULTS
from readbench.data.sources.tennessee_eastman.rdata import frame_blocks
from readbench.errors import DataError, SourceMissingError

NAMES = tuple(channel.name for channel in CHANNELS)
KEYS = ("faultNumber", "simulationRun", "sample")
COLUMNS = (*KEYS, *NAMES)
PLACES = ("", "*/")
"""Where files are looked for: in the folder of the source, and in any folder in it."""
TRAIN_LENGTH, TEST_LENGTH = 500, 960
TRAIN_ONSET, TEST_ONSET = 20, 160
"""Samples before the fault: one hour and eight hours at one sample in three minutes."""


@dataclass(frozen=True, eq=False)
class Run:
    """One simulation run: `values` (52, T), the disturbance (0 for none) and the samples before its onset."""

    side: Side
    fault: int
    number: int
    values: NDArray[np.float32]
    onset: int


@dataclass(frozen=True)
class Part:
    """One of the four tables of Rieth et al.: runs of `length` samples with the disturbance after `onset` of them."""

    stem: str
    side: Side
    faults: range
    length: int
    onset: int


_NONE, _ALL = range(1), range(1, len(FAULTS) + 1)
PARTS = (
    Part("TEP_FaultFree_Training", "train", _NONE, TRAIN_LENGTH, TRAIN_LENGTH),
    Part("TEP_Faulty_Training", "train", _ALL, TRAIN_LENGTH, TRAIN_ONSET),
    Part("TEP_FaultFree_Testing", "test", _NONE, TEST_LENGTH, TEST_LENGTH),
    Part("TEP_Faulty_Testing", "test", _ALL, TEST_LENGTH, TEST_ONSET),
)


def find_tables(info: SourceInfo, root: Path | None) -> list[tuple[Part, Path]]:
    """The four tables of Rieth et al., in any folder; where one is there as CSV and RData, the CSV."""
    return [(part, _find_table(info, root, part)) for part in PARTS]


def _find_table(info: SourceInfo, root: Path | None, part: Part) -> Path:
    paths = find_files(
        info, root, [f"{place}{part.stem}.{kind}" for place in PLACES for kind in ("csv", "[Rr][Dd]ata")]
    )
    tables = [path for path in paths if plain_name(path.name).endswith(".csv")] or paths
    if len(tables) > 1:
        raise DataError(f"{tables[0]}: the same table is in {tables[1]}. Keep one of the two.")
    return tables[0]


def table_runs(path: Path, part: Part) -> Iterator[Run]:
    """Stream the runs of one table; it must hold every run in one piece, sample after sample."""
    seen: set[tuple[int, int]] = set()
    for table in _in_runs(_blocks(path), part.length):
        first_row = len(seen) * part.length
        fault, number = _check_keys(path, table, part, first_row)
        _check_readings(path, table[:, len(KEYS) :], first_row)
        if (fault, number) in seen:
            raise DataError(f"{path}, row {first_row + 1}: run {number} of fault {fault} is there twice. {_AGAIN}")
        seen.add((fault, number))
        yield Run(part.side, fault, number, np.ascontiguousarray(table[:, len(KEYS) :].T), part.onset)
    if not seen:
        raise DataError(f"{path}: no rows. {_AGAIN}")


_AGAIN = "The file is incomplete or was changed: get it again."


def _blocks(path: Path) -> Iterator[NDArray[np.float32]]:
    """Blocks (rows, 55) of a table."""
    if plain_name(path.name).endswith(".csv"):
        for block in csv_blocks(path, COLUMNS):
            with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused below
                rows = np.stack([block[name] for name in COLUMNS], axis=1).astype(np.float32)
            yield rows
    else:
        yield from frame_blocks(path, COLUMNS)


def _in_runs(blocks: Iterable[NDArray[np.float32]], length: int) -> Iterator[NDArray[np.float32]]:
    """The same rows in tables (length, 55); the last one is shorter where rows are left over."""
    held = np.empty((0, len(COLUMNS)), np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        whole = len(held) - len(held) % length
        yield from held[:whole].reshape(-1, length, len(COLUMNS))
        held = held[whole:]
    if len(held):
        yield held


def _check_keys(path: Path, table: NDArray[np.float32], part: Part, first_row: int) -> tuple[int, int]:
    """Fault and run of a table that must be samples 1, 2, ... of one run."""
    if len(table) < part.length:
        raise DataError(
            f"{path}: ends at row {first_row + len(table)}, {len(table)} samples into a run of {part.length}. {_AGAIN}"
        )
    expected = np.tile(table[0, :3], (len(table), 1))
    expected[:, 2] = np.arange(1, len(table) + 1)
    wrong = np.flatnonzero((table[:, :3] != expected).any(axis=1))
    if wrong.size:
        found = ", ".join(f"{key} {value:g}" for key, value in zip(KEYS, table[wrong[0], :3], strict=True))
        raise DataError(
            f"{path}, row {first_row + wrong[0] + 1}: {found}, where sample {wrong[0] + 1} of a run of {part.length} "
            "should be. Sort the rows by faultNumber, simulationRun and sample, or get the file again."
        )
    fault, number = float(table[0, 0]), float(table[0, 1])
    if fault not in part.faults or not number.is_integer():
        raise DataError(
            f"{path}, row {first_row + 1}: faultNumber {fault:g}, simulationRun {number:g}; here faults are "
            f"{part.faults[0]} to {part.faults[-1]} and runs are counted. {_AGAIN}"
        )
    return int(fault), int(number)


def _check_readings(path: Path, readings: NDArray[np.float32] | NDArray[np.float64], first_row: int = 0) -> None:
    """A simulator leaves no gaps: every reading (rows, 52) is a number that float32 can hold."""
    wrong = np.argwhere(~(np.abs(readings) <= np.finfo(np.float32).max))
    if len(wrong):
        row, column = wrong[0]
        raise DataError(
            f"{path}, row {first_row + row + 1}: {NAMES[column]} is {readings[row, column]:g}, no reading. {_AGAIN}"
        )


_PUBLISHED = re.compile(r"d(?P<fault>\d\d)(?P<test>_te)?\.dat")


def find_single_runs(info: SourceInfo, root: Path | None) -> list[Path]:
    """`dNN.dat` and `dNN_te.dat` for NN = 00 to 20, in any folder; d21 holds a fault outside the twenty."""
    found: dict[str, Path] = {}
    for path in find_files(info, root, [f"{place}d[0-2][0-9]{test}.dat" for place in PLACES for test in ("", "_te")]):
        if (other := found.setdefault(plain_name(path.name), path)) != path:
            raise DataError(f"{path}: the same run is in {other}. Keep one of the two.")
    wanted = [f"d{fault:02d}{test}.dat" for test in ("", "_te") for fault in range(len(FAULTS) + 1)]
    if missing := [name for name in wanted if name not in found]:
        raise SourceMissingError(f"{info.name}: {', '.join(missing)} missing. Get the files from {info.url}")
    return [found[name] for name in wanted]


def single_run(path: Path) -> Run:
    """One file of Russell, Chiang and Braatz: rows of 52 numbers; `d00.dat` is stored with rows and columns swapped.

    Faulty training files start at the onset; testing files have eight normal hours before it.
    """
    match = _PUBLISHED.fullmatch(plain_name(path.name))
    if match is None:
        raise DataError(f"{path}: not named dNN.dat or dNN_te.dat.")
    fault = int(match["fault"])
    side: Side = "test" if match["test"] else "train"
    table = _numbers(path)
    if fault == 0 and side == "train" and len(table) == len(NAMES):
        table = table.T
    length = TEST_LENGTH if side == "test" else TRAIN_LENGTH - (TRAIN_ONSET if fault else 0)
    if table.shape != (length, len(NAMES)):
        raise DataError(f"{path}: {table.shape[0]} rows of {table.shape[1]} numbers, not {length} of 52. {_AGAIN}")
    _check_readings(path, table)
    onset = length if fault == 0 else TEST_ONSET if side == "test" else 0
    return Run(side, fault, 1, table.T.astype(np.float32), onset)


def _numbers(path: Path) -> NDArray[np.float64]:
    """(rows, numbers per row), between blanks."""
    rows: list[NDArray[np.float64]] = []
    for number, line in enumerate(read_text(path, "ascii").rstrip().splitlines(), start=1):
        try:
            rows.append(np.array(line.split(), np.float64))
        except ValueError as error:
            raise DataError(f"{path}, row {number}: {error}. {_AGAIN}") from error
        if len(rows[-1]) != len(rows[0]):
            raise DataError(f"{path}, row {number}: {len(rows[-1])} numbers, not {len(rows[0])} as before. {_AGAIN}")
    return np.array(rows, ndmin=2)
