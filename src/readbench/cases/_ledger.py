"""The files of a LanceDB folder, and what they were when they were written.

Files of a table never change once they are there. So their sizes and hashes stand in a ledger, `files.log` in the
library's folder, small files whole: what was cut off, lost, changed or replaced since is found out and named, and a
small file is restored. A file that the ledger does not know, as of a killed writer, is entered by the next one.

A change counts when its files, their entries and the folders that list both are on the disk. The number of the newest
version of what nothing else tells stands once more in `heads.json`: a version that is lost together with its entry, as
when the end of both is restored from a backup, is missed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from readbench.common.files import sync, write_bytes, write_text

P = ParamSpec("P")
R = TypeVar("R")
LEDGER = "files.log"
HEADS = "heads.json"
PRIVATE = 0o600
"""Who may read the ledger, which holds copies of what the library says: its owner alone."""
DISPENSABLE = "vectors"
"""The table that can be computed again: it need not outlast a power cut."""
MOST_COPIED = 32768
"""Bytes of files that are kept whole in the ledger: descriptions of tables, single changes."""
PRECIOUS = ("journal", "naming")
"""Tables that nothing else tells: their files are kept whole up to a larger size."""
MOST_PRECIOUS = 2**26
_MAGIC = b"LANC"
_OLDEST_NUMBER = 2**64 - 1
_INDICES = 6
_VARINT = 0


@dataclass(frozen=True)
class KnownFile:
    """What a file was: its `path` in the folder, its size in bytes, and its hash."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class FileDamage:
    """A file that is not what it was: its `path` in the folder, and `what` became of it."""

    path: str
    what: str

    @property
    def table(self) -> str:
        """The table that it is a part of."""
        return self.path.partition(".lance/")[0]

    @property
    def kind(self) -> str:
        """`data`, `_versions` or `_indices`."""
        return self.path.split("/")[1]


def _alone(work: Callable[Concatenate[FileLedger, P], R]) -> Callable[Concatenate[FileLedger, P], R]:
    """One thread at a time."""

    @wraps(work)
    def locked(self: FileLedger, /, *given: P.args, **named: P.kwargs) -> R:
        with self._lock:
            return work(self, *given, **named)

    return locked


class FileLedger:
    """What the files of a library were when they were written; safe to use from several threads.

    Args:
        folder: of the library.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, KnownFile] = {}
        self._heads: dict[str, int] = {}
        self._read: tuple[int, int] = (0, 0)
        self._sound: set[KnownFile] = set()
        self._lock = RLock()

    @_alone
    def record(self, table: str) -> None:
        """Enter the files of a table that are not entered yet, and wait until they and their entries are on the disk.

        Where there is no room for the entries, the next writer makes them.
        """
        self.refresh()
        files = {path.relative_to(self.folder).as_posix(): path for path in list_files(self.folder, table)}
        new = {name: path for name, path in files.items() if name not in self._known}
        if not new:
            return
        durable = table != DISPENSABLE
        if durable:
            _sync_all(self.folder, new.values())
        try:
            _append(self.folder / LEDGER, b"".join(_line(name, path) for name, path in new.items()), durable=durable)
            self.accept(table)
        except OSError:
            return

    @_alone
    def accept(self, table: str) -> None:
        """Take the newest version of a table that is there for the newest that there was."""
        newest = find_newest(self.folder, table)
        if table in PRECIOUS and newest is not None:
            self._heads = _read_heads(self.folder) | {table: _version(newest.name)}
            write_text(self.folder / HEADS, json.dumps(self._heads), durable=True, mode=PRIVATE)

    @_alone
    def refresh(self) -> None:
        """Read what was entered since; where this user may not read it, nothing is known."""
        path = self.folder / LEDGER
        self._heads = _read_heads(self.folder)
        if not path.is_file():
            self._known, self._read = {}, (0, 0)
            return
        status = path.stat()
        inode, place = self._read
        if inode != status.st_ino or status.st_size < place:
            self._known, place = {}, 0
        with suppress(PermissionError):
            for end, entry in _entries(path, place):
                known = KnownFile(entry["path"], entry["size"], entry["digest"])
                self._known[known.path] = known
                place = end
        self._read = status.st_ino, place

    @_alone
    def find_lost_version(self, table: str, version: int) -> FileDamage | None:
        """The description of a table that is newer than the newest that is there."""
        names = [name for name in self._known if name.startswith(f"{table}.lance/_versions/")]
        names += [_name_version(table, self._heads[table])] if table in self._heads else []
        newest = max(names, key=_version, default=None)
        return FileDamage(newest, "is missing") if newest and _version(newest) > version else None

    @_alone
    def find_damage(self, table: str, *, again: bool = True) -> list[FileDamage]:
        """Files of a table that are not what they were.

        Args:
            table: its name.
            again: look at those, too, that were found sound before.
        """
        newest = find_newest(self.folder, table)
        lost = self.find_lost_version(table, 0 if newest is None else _version(newest.name))
        found = [lost] if lost and lost.path not in self._known else []
        for name in list_needed(self.folder, table, self._known):
            if not again and self._known[name] in self._sound:
                continue
            damage = _compare(self.folder, self._known[name])
            if damage:
                found.append(damage)
            else:
                self._sound.add(self._known[name])
        return found

    @_alone
    def restore(self, damage: FileDamage, aside: Path) -> bool:
        """Write a file anew from its copy, if there is one; what is in its place goes aside."""
        kept = [entry for _, entry in _entries(self.folder / LEDGER, 0) if entry["path"] == damage.path]
        if not kept or "copy" not in kept[-1]:
            return False
        path = self.folder / damage.path
        if path.is_file():
            write_bytes(aside / damage.path, path.read_bytes())
        write_bytes(path, zlib.decompress(base64.b64decode(kept[-1]["copy"])), durable=True)
        return True

    @_alone
    def forget(self, table: str = "") -> None:
        """Drop entries of files that are no longer there, as after merging, and all of a table that was made anew."""
        path, whole = self.folder / LEDGER, f"{table}.lance/"
        if path.is_file():
            known = {entry["path"]: entry for _, entry in _entries(path, 0)}
            kept = {
                name: entry
                for name, entry in known.items()
                if (self.folder / name).is_file() and not name.startswith(whole)
            }
            mode = path.stat().st_mode & 0o777
            write_bytes(path, b"".join(_pack(entry) for entry in kept.values()), durable=True, mode=mode)
            self.refresh()


def list_files(folder: Path, table: str) -> list[Path]:
    """The files that the newest version of a table stands on."""
    newest = find_newest(folder, table)
    if newest is None:
        return []
    described, indices = _describe(newest.read_bytes())
    own = folder / f"{table}.lance"
    data = [path for path in _iterate(own / "data") if path.name.encode() in described]
    used = [path for path in _iterate(own / "_indices") if _is_used(path.name, indices)]
    return [newest, *data, *(file for path in used for file in _iterate(path) if file.is_file())]


def list_needed(folder: Path, table: str, known: dict[str, KnownFile]) -> list[str]:
    """The same by name, of those that the ledger knows, whether they are there or not."""
    own = [name for name in known if name.startswith(f"{table}.lance/")]
    versions = [name for name in own if name.split("/")[1] == "_versions"]
    newest = max([*versions, *_newest_name(folder, table)], key=_version, default="")
    path = folder / newest
    described, indices = _describe(path.read_bytes() if newest and path.is_file() else b"")
    needed = [newest] if newest in known else []
    for name in own:
        parts = name.split("/")
        if (parts[1] == "data" and parts[2].encode() in described) or (
            parts[1] == "_indices" and _is_used(parts[2], indices)
        ):
            needed.append(name)
    return needed


def find_newest(folder: Path, table: str) -> Path | None:
    """The description of the newest version of a table that is there."""
    found = list((folder / f"{table}.lance" / "_versions").glob("*.manifest"))
    return max(found, key=lambda path: _version(path.name), default=None)


def _newest_name(folder: Path, table: str) -> list[str]:
    newest = find_newest(folder, table)
    return [] if newest is None else [newest.relative_to(folder).as_posix()]


def _version(name: str) -> int:
    """Of a description; names count down, in older tables up."""
    stem = name.rpartition("/")[2].partition(".")[0]
    number = int(stem) if stem.isdigit() else 0
    return _OLDEST_NUMBER - number if number >= 2**63 else number


def _name_version(table: str, version: int) -> str:
    """The description of a version, by its place in the folder."""
    return f"{table}.lance/_versions/{_OLDEST_NUMBER - version:020d}.manifest"


def _read_heads(folder: Path) -> dict[str, int]:
    """The newest version of each table that there was; nothing where that is unknown."""
    try:
        told = json.loads((folder / HEADS).read_bytes())
    except (OSError, ValueError):
        return {}
    return {table: told[table] for table in PRECIOUS if isinstance(told, dict) and isinstance(told.get(table), int)}


def _sync_all(folder: Path, files: Iterable[Path]) -> None:
    """Wait until files are on the disk, and the folders down to them."""
    folders = set[Path]()
    for path in files:
        sync(path)
        folders |= {own for own in path.parents if own.is_relative_to(folder)}
    for own in folders:
        sync(own)


def _append(path: Path, content: bytes, *, durable: bool) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE), "ab") as file:
        file.write(content)
    if durable:
        sync(path)


def _describe(content: bytes) -> tuple[bytes, bytes]:
    """The parts of a description that name data files and indices; beside them it tells of the last change.

    It ends with the place of its main part, a message of Protocol Buffers whose field 6 is the place of the indices;
    each part begins with its length.
    """
    if not content.endswith(_MAGIC):
        return b"", b""
    main = _part(content, int.from_bytes(content[-16:-8], "little"))
    place = next((value for number, value in _numbers(main) if number == _INDICES), None)
    return main, b"" if place is None else _part(content, place)


def _part(content: bytes, place: int) -> bytes:
    start = place + 4
    return content[start : start + int.from_bytes(content[place:start], "little")]


def _numbers(message: bytes) -> Iterator[tuple[int, int]]:
    """Number and value of the whole-number fields of a message; of one that is damaged, those before the damage."""
    stream = iter(message)
    try:
        while True:
            tag = _varint(stream)
            kind = tag & 7
            if kind == _VARINT:
                yield tag >> 3, _varint(stream)
            else:
                length = {1: 8, 5: 4}.get(kind) or _varint(stream)
                deque(islice(stream, length), maxlen=0)
    except StopIteration:
        return


def _varint(stream: Iterator[int]) -> int:
    value = shift = 0
    while True:
        byte = next(stream)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def _is_used(index: str, named: bytes) -> bool:
    try:
        return UUID(index).bytes in named
    except ValueError:
        return False


def _iterate(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _compare(folder: Path, known: KnownFile) -> FileDamage | None:
    path = folder / known.path
    if not path.is_file():
        return FileDamage(known.path, "is missing")
    size = path.stat().st_size
    if size == known.size and _hash(path) == known.digest:
        return None
    if size == known.size:
        return FileDamage(known.path, "has changed bytes")
    what = "is cut off or another file" if size < known.size else "is another file"
    return FileDamage(known.path, f"{what}: it has {size} bytes, not {known.size}")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _line(name: str, path: Path) -> bytes:
    size = path.stat().st_size
    entry: dict[str, Any] = {"path": name, "size": size, "digest": _hash(path)}
    if size <= (MOST_PRECIOUS if name.startswith(PRECIOUS) else MOST_COPIED):
        entry["copy"] = base64.b64encode(zlib.compress(path.read_bytes(), 1)).decode()
    return _pack(entry)


def _pack(entry: dict[str, Any]) -> bytes:
    """A line with its own sum: the ledger can be damaged, too."""
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _entries(path: Path, place: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """What is entered from a place on, and where each entry ends; lines that are damaged or not whole yet are none."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        file.seek(place)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            told, _, text = line[:-1].partition(b" ")
            if told == b"%08x" % zlib.crc32(text):
                yield place, json.loads(text)
