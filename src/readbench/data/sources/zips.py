"""Zip archives of one file, whole or in parts (`name.z01`, `name.z02`, ... and `name.zip` last).

Python reads whole archives only. In parts put one after another, places are still counted from the beginning of the
part they are in; with these numbers set right, the joined archive is a whole one.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import IO

from readbench.errors import DataError

_END = struct.Struct("<4s4H2LH")
"""End of the central directory: mark, this part, part of the directory, entries here and in all, size, place, rest."""
_END_MARK = b"PK\x05\x06"
_ENTRY = struct.Struct("<4s6H3L5H2L")
"""Entry of the central directory; at 10, 11 and 12 the lengths behind it, at 13 its part, at 16 its place."""
_ENTRY_MARK = b"PK\x01\x02"
_ENCRYPTED = 1


def is_zip(path: Path) -> bool:
    """Whether a file is a zip archive by its name."""
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
