"""Tennessee Eastman process: a simulated chemical plant under twenty disturbances.

Two layouts, in `tennessee_eastman/` or a folder in it:

* Rieth et al. 2017: `TEP_FaultFree_Training`, `TEP_Faulty_Training`, `TEP_FaultFree_Testing` and `TEP_Faulty_Testing`,
  each as `.RData` (as published) or `.csv` (plain or gzipped), with the columns faultNumber, simulationRun, sample,
  xmeas_1 to xmeas_41 and xmv_1 to xmv_11. CSV tables are read run by run. An `.RData` table stores column after column:
  it goes through a temporary file of 4 bytes per number (2 GB for the largest one) in the system's temporary folder,
  never through memory as a whole. Read here: CSV tables of this layout from own runs of the same simulator, the same
  tables as RData, and small RData files written by R. Never seen working: the published files themselves. Where
  `SEEDS.csv` lies beside the tables, they are such runs of our own, and every table marks them as simulated by us.
* Russell, Chiang and Braatz 2000: `d00.dat` to `d20.dat` and `d00_te.dat` to `d20_te.dat`, one run per fault and side,
  plain or gzipped; all read here. `d21` holds a fault outside the twenty and is left out.

A fault's label starts at its onset; neither layout marks the transient after it apart. After a shutdown of the plant
the published runs repeat their last state to the end (fault 6 always, 18 often).

Variables (`tennessee_eastman/channels.csv`) and disturbances (`tennessee_eastman/faults.csv`) are those of Downs and
Vogel 1993, A plant-wide industrial process control problem, Computers & Chemical Engineering 17(3):245-255: tables of
the manipulated variables, of the continuous and sampled measurements, and of the process disturbances. The twelfth
manipulated variable, the agitator speed, is constant in the published data and left out of them.

`frame_blocks` reads the numbers of a data frame from an R workspace (`.RData`) in bounded memory. The format is R's own
serialisation, versions 2 and 3, in XDR byte order ("R Internals", section "Serialization Formats"), compressed by gzip,
bzip2 or xz, or not at all. A data frame stores the names of its columns last. So every vector of numbers goes to the
temporary file as it comes, and the wanted ones are read back from there. Only what a data frame of numbers needs is
understood: numbers, strings, lists, symbols, and the wrapped or computed vectors of newer versions of R (of the latter
no numbers).
"""

from __future__ import annotations

import bz2
import lzma
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Recording, Side, SourceInfo, read_info, read_shipped_rows
from readbench.benchmark.sources import _files
from readbench.engine.parameters import ParameterRange
from readbench.engine.registry import SOURCES
from readbench.errors import DataError, SourceMissingError

CHANNELS = tuple(
    Channel(row["name"], row["unit"], row["description"])
    for row in read_shipped_rows(__name__, "tennessee_eastman/channels.csv")
)
"""52 channels, named as in the published tables."""
FAULTS = tuple(row["name"] for row in read_shipped_rows(__name__, "tennessee_eastman/faults.csv"))
"""Disturbances IDV(1) to IDV(20); fault k is class k."""


SYMBOL, PAIRS, TEXT = 1, 2, 9
LOGICALS, INTEGERS, REALS, TEXTS, ITEMS, POINTER = 10, 13, 14, 16, 19, 22
ALTERNATIVE, NOTHING, REFERENCE = 238, 254, 255
"""Type codes of the format that are understood."""
HAS_ATTRIBUTES, HAS_TAG = 0x200, 0x400
Dtype = np.dtype[np.int32] | np.dtype[np.float64]
DTYPES: dict[int, Dtype] = {LOGICALS: np.dtype(">i4"), INTEGERS: np.dtype(">i4"), REALS: np.dtype(">f8")}
NO_INTEGER = -(2**31)
CHUNK = 1 << 16
DEEPEST = 32


def frame_blocks(path: Path, columns: tuple[str, ...], rows: int = CHUNK) -> Iterator[NDArray[np.float32]]:
    """Stream a data frame: blocks (at most `rows`, len(columns)), NaN where R has NA.

    It is the first data frame in the workspace that has all the columns, whatever it is called there. Needs a
    temporary file of 4 bytes per number of the whole workspace, and memory for one block.
    """
    with tempfile.TemporaryFile() as spool:
        with _unpacked(path) as stream:
            vectors = _Workspace(path, stream, spool).columns(columns)
        for first in range(0, vectors[0].length, rows):
            yield np.stack([_part(spool, vector, first, rows) for vector in vectors], axis=1)


def _part(spool: IO[bytes], vector: Vector, first: int, rows: int) -> NDArray[np.float32]:
    spool.seek(4 * (vector.start + first))
    return np.frombuffer(spool.read(4 * min(rows, vector.length - first)), np.float32)


@dataclass(frozen=True)
class Vector:
    """Numbers in the temporary file: the place of the first, and how many."""

    start: int
    length: int


@dataclass(frozen=True)
class Listed:
    """An R list; a data frame is one whose items are its columns."""

    items: list[object]
    names: list[str]


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    with _files.open_binary(path) as file:
        start = file.read(6)
        file.seek(0)
        try:
            with ExitStack() as stack:
                if start.startswith(b"BZh"):
                    yield stack.enter_context(bz2.BZ2File(file))
                elif start == b"\xfd7zXZ\0":
                    yield stack.enter_context(lzma.LZMAFile(file))
                else:
                    yield file
        except lzma.LZMAError as error:
            raise DataError(f"{path}: cannot be unpacked ({error}). The file is damaged: get it again.") from error


class _Workspace:
    """Reads one workspace from front to back."""

    def __init__(self, path: Path, stream: IO[bytes], spool: IO[bytes]) -> None:
        self._path, self._stream, self._spool = path, stream, spool
        self._spooled = 0
        self._depth = 0
        self._symbols: list[str] = []

    def columns(self, names: tuple[str, ...]) -> list[Vector]:
        """The named columns, all of one length, of the first data frame that has them."""
        self._header()
        saved = self._item()
        frames = [value for _, value in saved if isinstance(value, Listed)] if isinstance(saved, list) else []
        for frame in frames:
            found = dict(zip(frame.names, frame.items, strict=False))
            if set(names) <= set(found):
                vectors = [item for name in names if isinstance(item := found[name], Vector)]
                if len(vectors) < len(names) or len({vector.length for vector in vectors}) > 1:
                    raise self._broken("the columns of the data frame are not all numbers of one length")
                return vectors
        raise self._broken(f"no data frame with the columns {names[0]}, {names[1]} ... {names[-1]}")

    def _header(self) -> None:
        magic = self._read(7)
        if magic not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise self._broken("not a binary R workspace as R's save() writes it")
        version, _, _ = self._integer(), self._integer(), self._integer()
        if version not in (2, 3):
            raise self._broken(f"version {version} of the format is not known")
        if version == 3:
            self._read(self._length())  # name of the text encoding

    def _item(self) -> object:
        return self._value(self._integer())

    def _value(self, flags: int) -> object:
        """The item that these flags announce, with its attributes."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._broken("lists are nested too deeply")
        value = self._pairs(flags) if flags & 0xFF == PAIRS else self._bare(flags)
        self._depth -= 1
        return value

    def _bare(self, flags: int) -> object:
        kind = flags & 0xFF
        if kind == NOTHING:
            return None
        if kind == SYMBOL:
            self._symbols.append(str(self._item()))
            return self._symbols[-1]
        if kind == REFERENCE:
            return self._referred((flags >> 8) or self._integer())
        if kind == TEXT:
            length = self._integer()
            return self._read(length).decode("utf-8", "replace") if length >= 0 else ""
        if kind == ALTERNATIVE:
            return self._alternative()
        value = self._content(kind)
        names = self._names() if flags & HAS_ATTRIBUTES else []
        return Listed(value, names) if isinstance(value, list) else value

    def _content(self, kind: int) -> Vector | list[object] | None:
        if kind in DTYPES:
            return self._numbers(DTYPES[kind])
        if kind in (TEXTS, ITEMS):
            return [self._item() for _ in range(self._length())]
        if kind == POINTER:  # data tables carry one to themselves
            self._symbols.append("")
            self._item()
            self._item()
            return None
        raise self._broken(f"holds an R object of type {kind}, which no data frame of numbers has")

    def _names(self) -> list[str]:
        """The attribute `names`; other attributes are read over."""
        attributes = self._item()
        for tag, value in attributes if isinstance(attributes, list) else ():
            if tag == "names" and isinstance(value, Listed):
                return [str(name) for name in value.items]
        return []

    def _pairs(self, flags: int) -> list[tuple[str, object]]:
        """Tags and values of a pair list, which may end in something else than nothing."""
        pairs: list[tuple[str, object]] = []
        while flags & 0xFF == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self._item()
            tag = str(self._item()) if flags & HAS_TAG else ""
            pairs.append((tag, self._item()))
            flags = self._integer()
        if flags & 0xFF != NOTHING:
            pairs.append(("", self._value(flags)))
        return pairs

    def _alternative(self) -> object:
        """A vector in one of R's alternative forms: wrapped ones are opened, computed ones have no numbers to read."""
        form, state, _ = self._item(), self._item(), self._item()
        name = str(form[0][1]) if isinstance(form, list) and form else ""
        if not name.startswith("wrap_"):
            return None
        if isinstance(state, Listed) and state.items:
            return state.items[0]
        return state[0][1] if isinstance(state, list) and state else None

    def _numbers(self, dtype: Dtype) -> Vector:
        """Copy a vector to the temporary file as float32."""
        start, length = self._spooled, self._length()
        for first in range(0, length, CHUNK):
            count = min(CHUNK, length - first)
            raw = np.frombuffer(self._read(count * dtype.itemsize), dtype)
            with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold is infinite
                numbers = raw.astype(np.float32)
            if dtype.kind == "i":
                numbers[raw == NO_INTEGER] = np.nan
            self._store(numbers.tobytes())
        self._spooled += length
        return Vector(start, length)

    def _store(self, content: bytes) -> None:
        try:
            self._spool.write(content)
            self._spool.flush()
        except OSError as error:
            raise DataError(
                f"{self._path}: no room for its numbers in {tempfile.gettempdir()} ({error}). "
                "Set TMPDIR to a folder with more."
            ) from error

    def _referred(self, number: int) -> str:
        if not 1 <= number <= len(self._symbols):
            raise self._broken(f"refers to symbol {number} of {len(self._symbols)}")
        return self._symbols[number - 1]

    def _length(self) -> int:
        length = self._integer()
        if length == -1:  # a long vector
            length = (self._integer() << 32) + (self._integer() & 0xFFFFFFFF)
        if length < 0:
            raise self._broken(f"a vector of length {length}")
        return length

    def _integer(self) -> int:
        return int.from_bytes(self._read(4), "big", signed=True)

    def _read(self, count: int) -> bytes:
        content = self._stream.read(count)
        if len(content) < count:
            raise self._broken("ends too early")
        return content

    def _broken(self, what: str) -> DataError:
        return DataError(f"{self._path}: {what}. The file is incomplete, damaged or of another kind: get it again.")


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
class RunTable:
    """One of the four tables of Rieth et al.: runs of `length` samples with the disturbance after `onset` of them."""

    stem: str
    side: Side
    faults: range
    length: int
    onset: int


_NONE, _ALL = range(1), range(1, len(FAULTS) + 1)
PARTS = (
    RunTable("TEP_FaultFree_Training", "train", _NONE, TRAIN_LENGTH, TRAIN_LENGTH),
    RunTable("TEP_Faulty_Training", "train", _ALL, TRAIN_LENGTH, TRAIN_ONSET),
    RunTable("TEP_FaultFree_Testing", "test", _NONE, TEST_LENGTH, TEST_LENGTH),
    RunTable("TEP_Faulty_Testing", "test", _ALL, TEST_LENGTH, TEST_ONSET),
)


def find_tables(info: SourceInfo, root: Path | None) -> list[tuple[RunTable, Path]]:
    """The four tables of Rieth et al., in any folder; where one is there as CSV and RData, the CSV."""
    return [(part, _find_table(info, root, part)) for part in PARTS]


def _find_table(info: SourceInfo, root: Path | None, part: RunTable) -> Path:
    paths = _files.find_files(
        info, root, [f"{place}{part.stem}.{kind}" for place in PLACES for kind in ("csv", "[Rr][Dd]ata")]
    )
    tables = [path for path in paths if _files.plain_name(path.name).endswith(".csv")] or paths
    return _files.name_each(tables, lambda _: part.stem, "table is")[part.stem]


def table_runs(path: Path, part: RunTable) -> Iterator[Run]:
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
    if _files.plain_name(path.name).endswith(".csv"):
        for block in _files.csv_blocks(path, COLUMNS):
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


def _check_keys(path: Path, table: NDArray[np.float32], part: RunTable, first_row: int) -> tuple[int, int]:
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
    patterns = [f"{place}d[0-2][0-9]{test}.dat" for place in PLACES for test in ("", "_te")]
    found = _files.name_each(
        _files.find_files(info, root, patterns), lambda path: _files.plain_name(path.name), "run is"
    )
    wanted = [f"d{fault:02d}{test}.dat" for test in ("", "_te") for fault in range(len(FAULTS) + 1)]
    if missing := [name for name in wanted if name not in found]:
        raise SourceMissingError(f"{info.name}: {', '.join(missing)} missing. Get the files from {info.url}")
    return [found[name] for name in wanted]


def single_run(path: Path) -> Run:
    """One file of Russell, Chiang and Braatz: rows of 52 numbers; `d00.dat` is stored with rows and columns swapped.

    Faulty training files start at the onset; testing files have eight normal hours before it.
    """
    match = _PUBLISHED.fullmatch(_files.plain_name(path.name))
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
    for number, line in enumerate(_files.read_text(path, "ascii").rstrip().splitlines(), start=1):
        try:
            rows.append(np.array(line.split(), np.float64))
        except ValueError as error:
            raise DataError(f"{path}, row {number}: {error}. {_AGAIN}") from error
        if len(rows[-1]) != len(rows[0]):
            raise DataError(f"{path}, row {number}: {len(rows[-1])} numbers, not {len(rows[0])} as before. {_AGAIN}")
    return np.array(rows, ndmin=2)


VERSION = 1
"""Raise when the same files give other recordings."""

SEEDS = "SEEDS.csv"
"""Start values of the random generator, one a run. They lie beside tables of own runs only: the published have none."""
Layout = Literal["auto", "rieth", "braatz"]
SAMPLING = 180.0  # s


@SOURCES.register("tennessee_eastman", title="Tennessee Eastman")
@dataclass(eq=False)
class TennesseeEastman(CutSource):
    """Simulated chemical plant, 52 channels, 20 disturbances; training runs make the corpus, testing runs the queries.

    Args:
        layout: `rieth` (many runs per fault), `braatz` (one), or `auto`: `rieth` where any of its tables is there.
        runs: simulation runs with a number above this are left out; all are read by default. The published tables have
            500 per fault and side, which make about 14 GB of windows.
    """

    layout: Layout = "auto"
    runs: Annotated[int | None, ParameterRange(1)] = None

    info = read_info(__name__, "tennessee_eastman", faults=FAULTS, channels=CHANNELS, before_least=TRAIN_ONSET)

    def substituted(self, root: Path | None) -> bool:
        """Whether the tables that are read come from own runs of the simulator."""
        return self._has_tables(root) and any(
            (path.parent / SEEDS).is_file() for _, path in find_tables(self.info, root)
        )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of the files of the layout that is read, and of the limit on runs."""
        if self._has_tables(root):
            files = [path for _, path in find_tables(self.info, root)]
        else:
            files = find_single_runs(self.info, root)
        return _files.fingerprint_files(files, "tennessee_eastman", VERSION, self.runs)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the runs: training before testing, as they stand in the files."""
        runs = self._table_runs(root) if self._has_tables(root) else map(single_run, find_single_runs(self.info, root))
        for run in runs:
            if self.runs is None or run.number <= self.runs:
                yield _recording(run)

    def _has_tables(self, root: Path | None) -> bool:
        """Whether the layout of Rieth et al. is the one to read; a part of it that is missing is missed later."""
        if self.layout != "auto":
            return self.layout == "rieth"
        folder = _files.folder_of(self.info, root)
        return any(path for place in PLACES for path in folder.glob(f"{place}TEP_Fault*"))

    def _table_runs(self, root: Path | None) -> Iterator[Run]:
        for part, path in find_tables(self.info, root):
            yield from table_runs(path, part)


def _recording(run: Run) -> Recording:
    name = f"{run.side}/fault-{run.fault:02d}/run-{run.number:03d}"
    labels = np.zeros(run.values.shape[1], np.int32)
    labels[run.onset :] = run.fault
    return Recording(
        id=name,
        values=run.values,
        channels=NAMES,
        labels=labels,
        group=name,
        step=SAMPLING,
        side=run.side,
        rate=1 / SAMPLING,
    )
