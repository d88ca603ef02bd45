"""NPZ archives, array by array: sizes are checked before anything is unpacked, and objects (pickles) are refused."""

from __future__ import annotations

import math
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.errors import DataError
from readbench.tables.limits import Limits

Arrays = dict[str, NDArray[Any]]


def read_arrays(name: str, file: pa.NativeFile, limits: Limits, prefixes: tuple[str, ...] = ("",)) -> Arrays:
    """The arrays of an archive by name, all or those whose names begin with one of the prefixes."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if member.filename.startswith(prefixes)]
            limits.check_columns(name, len(members))
            limits.check_bytes(name, sum(member.file_size for member in members))
            return {member.filename.removesuffix(".npy"): _read_member(name, archive, member) for member in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DataError(f"{name}: no NPZ that can be read ({error}). Write it again with numpy.savez.") from error


def _read_member(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        shape, fortran, kind = _read_header(file, version)
        if kind.hasobject:
            raise DataError(
                f"{name}: {member.filename} holds Python objects, which are never read. Write numbers or texts with a "
                "fixed width (dtype 'U')."
            )
        size = math.prod(shape) * kind.itemsize
        if size > member.file_size:  # before memory is asked for
            raise ValueError(f"{member.filename} is shorter than its shape {shape} says")
        content = file.read(size)
    array = np.frombuffer(content, kind, math.prod(shape))
    return array.reshape(shape, order="F" if fortran else "C")


def _read_header(file: IO[bytes], version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)  # type: ignore[no-untyped-call,no-any-return]
