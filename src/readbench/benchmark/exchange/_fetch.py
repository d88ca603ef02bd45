"""Download of the official files of a source into the data root.

`transfer` gets one file over HTTP by pooch, which checks it before it moves it to its place. The downloader given to
pooch resumes broken transfers: `NAME.part` holds the received bytes, `NAME.part.json` the version (ETag) of the file. A
server with another version, or without ranges, sends the file from its beginning.

`fetch` gets, checks and unpacks all missing files of a source.
"""

from __future__ import annotations

import json
import logging
import shutil
import stat
import time
import zipfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from readbench.benchmark.exchange._official import Official, RemoteFile, add_checksums
from readbench.common.files import open_atomic
from readbench.common.progress import SILENT, Progress
from readbench.errors import DataError
from readbench.version import __version__

if TYPE_CHECKING:
    from requests import Response


BLOCK = 2**18  # bytes
ATTEMPTS = 3
TIMEOUT_S = 60.0
PAUSE_S = 1.0
"""Seconds before the second attempt; twice that before the third."""
PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, HTTPStatus.TOO_MANY_REQUESTS}
"""Status codes after which another attempt may succeed."""


def transfer(file: RemoteFile, target: Path, progress: Progress = SILENT, pause: float = PAUSE_S) -> None:
    """Get one file into `target`, or check an existing one; `progress` counts bytes, `pause` is in seconds."""
    import pooch  # noqa: PLC0415 - slow to import

    if target.exists():
        _check(file, target)
        return
    if not file.url.startswith(("https://", "http://")):
        raise DataError(f"{file.url}: only http and https addresses are fetched.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    pooch.get_logger().setLevel(logging.WARNING)  # whoever wants to know is told by `progress`
    try:
        resuming = _Resuming(file, part, progress, pause)
        pooch.retrieve(file.url, file.checksum or None, target.name, target.parent, downloader=resuming)
    except ValueError as error:  # a wrong checksum; what came is removed by then
        raise DataError(f"{file.url} is not the official file. {error}") from error


@dataclass(frozen=True)
class _Resuming:
    """A downloader for pooch that receives the file into `part` in up to `ATTEMPTS` attempts."""

    file: RemoteFile
    part: Path
    progress: Progress
    pause: float

    def __call__(self, url: str, output_file: str, pooch: object) -> None:  # noqa: ARG002 - arguments as pooch gives them
        for attempt in range(ATTEMPTS):
            try:
                self._receive()
                break
            except OSError as error:  # those of requests are among them
                if attempt == ATTEMPTS - 1 or _is_final(error):
                    raise DataError(self._say_broken(error)) from error
                time.sleep(self.pause * (attempt + 1))
        _note(self.part).unlink(missing_ok=True)
        size = self.part.stat().st_size
        if self.file.size is not None and size != self.file.size:
            self.part.unlink()
            raise DataError(f"{url} is not the official file: {size:,} bytes instead of {self.file.size:,}.")
        self.part.replace(output_file)

    def _receive(self) -> None:
        """Receive the missing bytes, or the whole file if the server does not resume."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - slow to import

        what, done = f"fetching {self.file.path}", self.part.stat().st_size if self.part.exists() else 0
        with _ask(self.file.url, self.part, done) as answer:
            resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
            if not (resumed and answer.status_code == HTTPStatus.PARTIAL_CONTENT):
                resumed, done = False, 0
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length is not None else self.file.size
            _note(self.part).write_text(json.dumps({"etag": answer.headers.get("ETag", "")}))
            with self.part.open("ab" if resumed else "wb") as out:
                try:
                    # Not `iter_content`, which keeps back the last incomplete block of a connection that breaks.
                    while block := answer.raw.read(BLOCK, decode_content=False):
                        out.write(block)
                        done += len(block)
                        self.progress(what, done, total)
                except HTTPError as error:
                    raise ConnectionError(str(error)) from error
        if total is not None and done < total:
            raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")
        self.progress(what, done, done)

    def _say_broken(self, error: OSError) -> str:
        kept = self.part.stat().st_size if self.part.exists() else 0
        what_now = (
            f"{kept:,} bytes are kept: the same command goes on from there."
            if kept
            else "Check the address and the connection."
        )
        return f"{self.file.url} could not be fetched ({error}). {what_now}"


def _ask(url: str, part: Path, done: int) -> Response:
    """Request a file, or its missing bytes."""
    import requests  # noqa: PLC0415 - slow to import

    headers = {"User-Agent": f"readbench/{__version__}", "Accept-Encoding": "identity"}
    if done and (etag := _known_version(part)):
        headers |= {"Range": f"bytes={done}-", "If-Range": etag}
    answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S)
    if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # more is here than there: begin again
        part.unlink(missing_ok=True)
    if not answer.ok:
        answer.close()
        answer.raise_for_status()
    return answer


def _known_version(part: Path) -> str:
    """The strong ETag of the file that `part` begins; "" if unknown."""
    try:
        etag = str(json.loads(_note(part).read_text())["etag"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "" if etag.startswith("W/") else etag


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _is_final(error: OSError) -> bool:
    """True for errors that another attempt cannot mend."""
    from requests import HTTPError  # noqa: PLC0415 - slow to import

    if not isinstance(error, HTTPError) or error.response is None:
        return False
    return 400 <= error.response.status_code < 500 and error.response.status_code not in PASSING


def _check(file: RemoteFile, path: Path) -> None:
    """Raise `DataError` unless size and checksum, if known, are right."""
    from pooch import file_hash  # noqa: PLC0415 - slow to import

    what = f"{path} is there, but is not the official file. Remove it to fetch it again"
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise DataError(f"{what}: {size:,} bytes instead of {file.size:,}.")
    kind, _, expected = file.checksum.partition(":")
    if expected and (found := file_hash(str(path), alg=kind)) != expected:
        raise DataError(f"{what}: its {kind} is {found}, expected {expected}.")


DONE = ".fetched.json"
"""Which archives were unpacked; they are removed afterwards."""


def fetch(official: Official, folder: Path, progress: Progress = SILENT, pause: float = PAUSE_S) -> int:
    """Fetch, check and unpack the missing files into the folder of a source; returns the number of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    done = _read_done(folder)
    wanted = [file for file in official.files if file.path not in done]
    for file in _summed(official, wanted, folder, pause):
        target = folder / file.path
        transfer(file, target, progress, pause)
        if file.unpack:
            unpack_archive(target, folder)
            done = sorted({*done, file.path})
            (folder / DONE).write_text(json.dumps(done))
            target.unlink()
    return len(official.files)


def unpack_archive(archive: Path, folder: Path) -> None:
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
    with opened.open(member) as packed, open_atomic(target) as out:
        shutil.copyfileobj(packed, out)


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
    return add_checksums(tuple(wanted), listed.read_text(encoding="utf-8", errors="replace"))


def _read_done(folder: Path) -> list[str]:
    try:
        return [str(path) for path in json.loads((folder / DONE).read_text())]
    except (OSError, ValueError, TypeError):
        return []
