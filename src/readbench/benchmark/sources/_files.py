"""Shared by the readers of sources: finding files, zip archives, CSV and JSON, checks that name file and row.

Zip archives hold one file, whole or in parts (`name.z01`, `name.z02`, ... and `name.zip` last). Python reads whole
archives only. In parts put one after another, places are still counted from the beginning of the part they are in; with
these numbers set right, the joined archive is a whole one.

In reading order: zip archives; finding, opening and fingerprinting the files of a source; values out of CSV and JSON.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, TypedDict, Unpack
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from readbench.benchmark.protocol import SourceInfo
from readbench.engine.preparation import is_reading
from readbench.errors import DataError, SourceMissingError

_END = struct.Struct("<4s4H2LH")
"""End of the central directory: mark, this part, part of the directory, entries here and in all, size, place, rest."""
_END_MARK = b"PK\x05\x06"
_ENTRY = struct.Struct("<4s6H3L5H2L")
"""Entry of the central directory; at 10, 11 and 12 the lengths behind it, at 13 its part, at 16 its place."""
_ENTRY_MARK = b"PK\x01\x02"
_ENCRYPTED = 1
AGAIN = "Get the file again."


def is_zip(path: Path) -> bool:
    """True for a name that ends in `.zip`."""
    return path.suffix == ".zip"


@contextmanager
def open_member(path: Path) -> Iterator[IO[bytes]]:
    """Open the one file inside an archive for reading; what is damaged raises `DataError` or `zipfile.BadZipFile`."""
    parts = parts_of(path)
    whole = path if len(parts) == 1 else BytesIO(_joined(path, parts))
    with zipfile.ZipFile(whole) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise DataError(f"{path}: {len(members)} files inside, expected one. Get the archive again.")
        packed = members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if packed or members[0].flag_bits & _ENCRYPTED:
            raise DataError(f"{path}: {members[0].filename} is encrypted or packed in an unusual way. Unpack it.")
        with archive.open(members[0]) as file:
            yield file


def parts_of(path: Path) -> list[Path]:
    """The parts of an archive in order, `path` itself last."""
    earlier = sorted(path.parent.glob(f"{path.stem}.z[0-9][0-9]"))
    for number, part in enumerate(earlier, start=1):
        if part.suffix != f".z{number:02d}":
            raise DataError(f"{path}: its part {path.stem}.z{number:02d} is missing. Get all parts again.")
    return [*earlier, path]


def _joined(path: Path, parts: list[Path]) -> bytearray:
    """All parts as one whole archive."""
    contents = [part.read_bytes() for part in parts]
    begins = [0, *accumulate(len(content) for content in contents[:-1])]
    joined = bytearray().join(contents)
    end = joined.rfind(_END_MARK)
    try:
        mark, number, directory_part, _, entries, size, place, rest = _END.unpack_from(joined, end)
        if number + 1 != len(parts):
            raise DataError(
                f"{path}: {number + 1} parts make the archive, {len(parts)} are there. Get all parts again."
            )
        directory = begins[directory_part] + place
        _END.pack_into(joined, end, mark, 0, 0, entries, entries, size, directory, rest)
        for _ in range(entries):
            directory += _set_right(joined, directory, begins)
    except (struct.error, IndexError) as error:
        raise zipfile.BadZipFile(f"no directory at the end of the last part: {error}") from error
    return joined


def _set_right(joined: bytearray, place: int, begins: list[int]) -> int:
    """Count the place of one entry from the beginning of the first part; returns the length of the entry."""
    fields = list(_ENTRY.unpack_from(joined, place))
    if fields[0] != _ENTRY_MARK:
        raise zipfile.BadZipFile("bad mark in the directory")
    fields[16] += begins[fields[13]]
    fields[13] = 0
    _ENTRY.pack_into(joined, place, *fields)
    return _ENTRY.size + sum(fields[10:13])


_GZIP = b"\x1f\x8b"


def folder_of(info: SourceInfo, root: Path | None) -> Path:
    """The folder of a source under the data root, or an error that says where to put the files."""
    if root is None:
        raise SourceMissingError(
            f"{info.name}: no data root. Set READBENCH_DATA (or --root) to a folder that holds {info.name}/; "
            f"get the files from {info.url}"
        )
    folder = root / info.name
    if not folder.is_dir():
        raise SourceMissingError(f"{info.name}: {folder} is not there. Put the files there; get them from {info.url}")
    return folder


def find_files(info: SourceInfo, root: Path | None, patterns: Iterable[str]) -> list[Path]:
    """Files of a source that match any of the glob patterns (each also with `.gz`), sorted; at least one.

    Where a file is there both plain and gzipped, the plain one is taken.
    """
    folder = folder_of(info, root)
    found: dict[str, Path] = {}
    wanted = list(patterns)
    for pattern in wanted:
        for path in (*folder.glob(f"{pattern}.gz"), *folder.glob(pattern)):
            if path.is_file():
                found[plain_name(path.relative_to(folder).as_posix())] = path
    if not found:
        raise SourceMissingError(f"{info.name}: no {' or '.join(wanted)} in {folder}. Get the files from {info.url}")
    return [found[name] for name in sorted(found)]


def plain_name(name: str) -> str:
    """A file name without `.gz`.

    >>> plain_name("d00.dat.gz")
    'd00.dat'
    """
    return name.removesuffix(".gz")


def short_name(path: Path) -> str:
    """Folder and name of a file without its endings.

    >>> short_name(Path("data/skab/valve1/3.csv.gz"))
    'valve1/3'
    """
    return f"{path.parent.name}/{plain_stem(path)}"


def name_each(paths: Iterable[Path], name: Callable[[Path], str], what: str = "recording is") -> dict[str, Path]:
    """Files by the name of their content; raises `DataError` for two of one name, which could straddle a split.

    `what` names the content in the error, with a verb.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if (other := found.setdefault(name(path), path)) != path:
            raise DataError(f"{path}: the same {what} in {other}. Keep one of the two.")
    return found


def require_all(info: SourceInfo, found: Mapping[str, Path], wanted: Iterable[str], ending: str) -> None:
    """Raise `SourceMissingError` unless all wanted files were found; errors name them with their ending."""
    if lacking := [f"{name}{ending}" for name in wanted if name not in found]:
        folder = next(iter(found.values())).parent
        raise SourceMissingError(f"{info.name}: no {', '.join(lacking)} in {folder}. Get the files from {info.url}")


def find_beside(info: SourceInfo, path: Path, name: str) -> Path:
    """Another file in the same folder, plain or gzipped."""
    plain = path.parent / name
    for candidate in (plain, plain.with_name(f"{plain.name}.gz")):
        if candidate.is_file():
            return candidate
    raise SourceMissingError(f"{path}: there is no {name} beside it. Get the files from {info.url}")


def check_unique(paths: Iterable[Path]) -> None:
    """Raise `DataError` where two files have one short name."""
    name_each(paths, short_name)


def find_one(info: SourceInfo, root: Path | None, pattern: str, what: str) -> Path:
    """The only file of a source that matches a pattern; where there are two, the error says `what` they hold."""
    found = find_files(info, root, [pattern])
    name_each(found, lambda _: "", what)
    return found[0]


def plain_stem(path: Path) -> str:
    """A file name without its endings, such as `.csv.gz`."""
    return Path(plain_name(path.name)).stem


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, gzipped or plain by its content, or the one file inside a zip archive.

    A broken one raises `DataError` with its name.
    """
    try:
        if is_zip(path):
            with open_member(path) as member:
                yield member
            return
        with path.open("rb") as raw:
            start = raw.read(2)
            raw.seek(0)
            if start == _GZIP:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield unpacked  # type: ignore[misc]  # GzipFile reads like any binary file
            else:
                yield raw
    except (BadZipFile, EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read ({error}). The file is damaged or incomplete: get it again."
        ) from error


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The whole text of a small file, gzipped or plain."""
    with open_binary(path) as file:
        content = file.read()
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not {encoding} text (byte {error.start}). The file was re-encoded or is of another kind."
        ) from error


def csv_columns(path: Path) -> tuple[str, ...]:
    """Names in the header of a CSV file, gzipped or plain; all different."""
    with open_binary(path) as file:
        line = file.readline()
    try:
        names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: the header is no text ({error}). The file is damaged: get it again.") from error
    twice = sorted({name for name in names if names.count(name) > 1})
    if not any(names) or twice:
        what = f"the header names {twice[0]!r} twice" if twice else "no header"
        raise DataError(f"{path}: {what}. The file is empty or damaged: get it again.")
    return tuple(names)


class CsvForm(TypedDict, total=False):
    """Options of `csv_blocks`, which explains them."""

    time: str
    delimiter: str
    header: Sequence[str]
    time_format: str
    gaps: Sequence[str]


def read_csv(path: Path, columns: Iterable[str], **form: Unpack[CsvForm]) -> dict[str, NDArray[np.float64]]:
    """The named columns of a small CSV file as numbers, (rows,) each; as `csv_blocks`, and at least one row."""
    blocks = list(csv_blocks(path, columns, **form))
    if not any(values.size for block in blocks for values in block.values()):
        raise DataError(f"{path}: no rows after the header. The file is incomplete: get it again.")
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def csv_blocks(
    path: Path,
    columns: Iterable[str],
    *,
    time: str = "",
    delimiter: str = ",",
    header: Sequence[str] = (),
    time_format: str = "",
    gaps: Sequence[str] = (),
) -> Iterator[dict[str, NDArray[np.float64]]]:
    """Stream the named columns of a CSV file, gzipped or plain, a few thousand rows at a time.

    Args:
        path: file with a header, unless `header` stands in for it.
        columns: names of columns with numbers; an empty field is NaN.
        time: name of a column with ISO 8601 times, given as seconds since 1970.
        delimiter: between fields.
        header: names of all columns of a file that has none.
        time_format: of the times where it is another one, as `strptime` has it.
        gaps: further texts in place of a number that mean that there is none.
    """
    kinds = dict.fromkeys(columns, pa.float64()) | ({time: pa.timestamp("us")} if time else {})
    convert = pyarrow.csv.ConvertOptions(column_types=kinds, include_columns=list(kinds))
    convert.null_values = [*convert.null_values, *gaps]
    convert.timestamp_parsers = [time_format] if time_format else convert.timestamp_parsers
    try:
        with open_binary(path) as file:
            reader = pyarrow.csv.open_csv(
                file,
                # Without threads, so that errors name the row.
                read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=list(header)),
                parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
                convert_options=convert,
            )
            for batch in reader:
                yield {name: numbers_of(batch.column(name)) for name in kinds}
    except pa.ArrowException as error:
        what = str(error).replace("in include_columns does not exist in CSV file", "is not in the header")
        what = what.replace("Row #", "line ").strip()
        raise DataError(
            f"{path}: {what}. The file is damaged, re-encoded or of another version: get it again."
        ) from error


def csv_parts(
    path: Path, columns: Iterable[str], rows: int, **form: Unpack[CsvForm]
) -> Iterator[dict[str, NDArray[np.float64]]]:
    """The same columns as `csv_blocks`, in parts of exactly `rows` rows, the last one shorter; at least one row."""
    held: dict[str, NDArray[np.float64]] = {}
    done = 0
    for block in csv_blocks(path, columns, **form):
        held = {name: np.concatenate([held.get(name, values[:0]), values]) for name, values in block.items()}
        while len(next(iter(held.values()))) >= rows:
            yield {name: values[:rows] for name, values in held.items()}
            held = {name: values[rows:] for name, values in held.items()}
            done += rows
    if any(values.size for values in held.values()):
        yield held
    elif not done:
        raise DataError(f"{path}: no rows after the header. The file is incomplete: get it again.")


def numbers_of(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """(rows,) an Arrow column as float64, NaN where there is nothing; times in seconds since 1970.

    >>> numbers_of(pa.array([1, None, 3])).tolist()
    [1.0, nan, 3.0]
    """
    unit = 1.0
    if pa.types.is_timestamp(column.type):
        column, unit = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()), 1e6
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / unit, np.float64)


def check_rows(
    path: Path,
    good: NDArray[np.bool_] | np.bool_,
    what: str | Callable[[int], str],
    *,
    first_row: int = 1,
    remedy: str = AGAIN,
) -> None:
    """Raise `DataError` about the first row that is not good.

    Args:
        path: named in the error.
        good: (rows,) which rows are as they should be.
        what: what is wrong with the row, or a function that says so of a position.
        first_row: number of the first row.
        remedy: what the reader of the error can do.
    """
    wrong = np.flatnonzero(~good)
    if wrong.size:
        found = what if isinstance(what, str) else what(int(wrong[0]))
        raise DataError(f"{path}, row {wrong[0] + first_row}: {found}. {remedy}")


def check_columns(path: Path, values: NDArray[np.float64], names: Sequence[str]) -> None:
    """Raise `DataError` unless each of the columns (C, rows) has a reading."""
    empty = np.flatnonzero(~is_reading(values).any(axis=1))
    if empty.size:
        raise DataError(f"{path}: column {names[empty[0]]!r} has no reading at all. {AGAIN}")


def check_complete(path: Path, values: NDArray[np.float64], rows: int) -> None:
    """Raise `DataError` unless the columns (C, T) have so many rows without a gap."""
    if values.shape[1] != rows or not np.isfinite(values).all():
        raise DataError(
            f"{path}: {values.shape[1]} rows with {int((~np.isfinite(values)).sum())} gaps, expected {rows} rows "
            "without any. The file is incomplete: get it again."
        )


def check_times(path: Path, times: NDArray[np.float64], *, clock_change: float = 0.0, first_row: int = 1) -> None:
    """Raise `DataError` unless every row has a time that is later than in the row before.

    Args:
        path: named in the error.
        times: (rows,) seconds.
        clock_change: seconds by which the clock may go back between two rows at most a minute apart.
        first_row: number of the first row, for the error.
    """
    steps = np.diff(times, prepend=-np.inf)
    put_back = (steps < 0) & (steps + clock_change > 0) & (steps + clock_change <= 60)
    remedy = "Sort the rows by time, remove repeated ones, or get the file again."
    what = "the time is missing or not later than in the row before"
    check_rows(path, (steps > 0) | put_back, what, first_row=first_row, remedy=remedy)


def fingerprint_files(paths: Iterable[Path], *extra: object) -> str:
    """Hash of names and contents; gzipped or plain makes no difference to what is read, but is another fingerprint."""
    digest = hashlib.sha256(repr(extra).encode())
    for path in paths:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def parse_json(where: str, text: str | bytes) -> Any:  # noqa: ANN401 - JSON may hold anything
    """What a JSON text says; raises `DataError` where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error}). It is incomplete or damaged: get the file again.") from error


def number_list(where: str, name: str, values: object) -> NDArray[np.float64]:
    """(T,) a list of numbers; null is a gap, and so is a number that float64 cannot hold.

    >>> number_list("file, line 1", "RSRP", [1, None, 2.5]).tolist()
    [1.0, nan, 2.5]
    """
    if not isinstance(values, list):
        raise DataError(f"{where}: {name} is no list of numbers. Get the file again.")
    if set(map(type, values)) == {float}:
        return np.array(values, np.float64)
    numbers = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise DataError(
                f"{where}: value {place + 1} of {name} is {str(value)[:40]!r}, which is no number. Get the file again."
            )
        if value is not None and abs(value) <= sys.float_info.max:
            numbers[place] = value
    return numbers
