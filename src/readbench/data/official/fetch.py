"""All official files of a source, into the data root."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from readbench.data.official.facts import Official, RemoteFile, with_sums
from readbench.data.official.transfer import PAUSE_S, transfer
from readbench.errors import DataError

DONE = ".fetched.json"
"""Which archives were unpacked; they are removed afterwards."""

Listener = Callable[[RemoteFile, int, int | None], None]
"""Called with a file, the bytes that are there, and how many there will be."""


def fetch(official: Official, folder: Path, listener: Listener | None = None, pause: float = PAUSE_S) -> int:
    """Fetch, check and unpack what is not there yet; returns the number of files that are there now.

    Args:
        official: what to fetch.
        folder: the folder of the source.
        listener: told about progress.
        pause: seconds before a second attempt.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = _read_done(folder)
    wanted = [file for file in official.files if file.path not in done]
    for file in _summed(official, wanted, folder, pause):
        target = folder / file.path
        transfer(file, target, _told(listener, file), pause)
        if file.unpack:
            unpack(target, folder)
            done = sorted({*done, file.path})
            (folder / DONE).write_text(json.dumps(done))
            target.unlink()
    return len(official.files)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive; members outside the folder, links and damaged ones are refused, files there are kept."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
            for member in members:
                _check_member(archive, member)
            for member in members:
                _unpack_member(opened, member, folder / member.filename)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise DataError(f"{archive}: cannot be unpacked ({error}). Remove it and fetch it again.") from error


def _unpack_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    if target.exists() and target.stat().st_size == member.file_size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    with opened.open(member) as packed, partial.open("wb") as out:
        shutil.copyfileobj(packed, out)
    partial.replace(target)


def _check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0] or stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"{archive}: {member.filename!r} would be written outside its folder. Nothing was unpacked.")


def _summed(official: Official, wanted: list[RemoteFile], folder: Path, pause: float) -> tuple[RemoteFile, ...]:
    """The files with the checksums that are published beside them."""
    if not official.sums or not wanted:
        return tuple(wanted)
    listed = folder / ".SHA256SUMS.txt"
    listed.unlink(missing_ok=True)
    transfer(RemoteFile(official.sums, listed.name), listed, pause=pause)
    return with_sums(tuple(wanted), listed.read_text(encoding="utf-8", errors="replace"))


def _read_done(folder: Path) -> list[str]:
    try:
        return [str(path) for path in json.loads((folder / DONE).read_text())]
    except (OSError, ValueError, TypeError):
        return []


def _told(listener: Listener | None, file: RemoteFile) -> Callable[[int, int | None], None] | None:
    if listener is None:
        return None
    return lambda done, total: listener(file, done, total)
