"""One file over HTTP: resumed where it broke off, checked, and only then put into its place.

`NAME.part` holds what has come so far and `NAME.part.json` the version (ETag) of the file it belongs to. A server that
has another version by now, or cannot go on in the middle, sends the file from its beginning.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import readbench
from readbench.data.official.facts import RemoteFile
from readbench.errors import DataError

BLOCK = 2**18  # bytes
_PARTIAL = http.client.PARTIAL_CONTENT
ATTEMPTS = 3
TIMEOUT_S = 60.0
PAUSE_S = 1.0
"""Before the second attempt; the third waits twice as long."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there, and how many there will be."""


def transfer(file: RemoteFile, target: Path, progress: Progress | None = None, pause: float = PAUSE_S) -> None:
    """Get one file. What is at `target` already is checked and kept.

    Args:
        file: what to get.
        target: where it belongs.
        progress: called after each block.
        pause: seconds before a second attempt.
    """
    if target.exists():
        _check(file, target, f"{target} is there, but is not the official file. Remove it to fetch it again.")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    for attempt in range(ATTEMPTS):
        try:
            _receive(file, part, progress)
            break
        except (urllib.error.HTTPError, _StillIncompleteError, OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS - 1 or _is_final(error):
                raise DataError(_broken(file, part, error)) from error
            time.sleep(pause * (attempt + 1))
    try:
        _check(file, part, f"{file.url} is not the official file")
    except DataError:
        part.unlink()
        _note(part).unlink(missing_ok=True)
        raise
    part.replace(target)
    _note(part).unlink(missing_ok=True)


class _StillIncompleteError(Exception):
    """The connection ended before the file did."""


def _receive(file: RemoteFile, part: Path, progress: Progress | None) -> None:
    done = part.stat().st_size if part.exists() else 0
    with _open(file, part, done) as answer:
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {done}-") and answer.status == _PARTIAL
        if not resumed:
            done = 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length is not None else file.size
        _note(part).write_text(json.dumps({"etag": answer.headers.get("ETag", "")}))
        with part.open("ab" if resumed else "wb") as out:
            while block := answer.read(BLOCK):
                out.write(block)
                done += len(block)
                if progress:
                    progress(done, total)
    if total is not None and done < total:
        raise _StillIncompleteError(f"the connection ended after {done:,} of {total:,} bytes")


def _open(file: RemoteFile, part: Path, done: int) -> http.client.HTTPResponse:
    """Ask for the file, or for what is still missing of it."""
    if not file.url.startswith(("https://", "http://")):
        raise DataError(f"{file.url}: only http and https addresses are fetched.")
    headers = {"User-Agent": f"readbench/{readbench.__version__}", "Accept-Encoding": "identity"}
    if done and (etag := _known_version(part)):
        headers |= {"Range": f"bytes={done}-", "If-Range": etag}
    request = urllib.request.Request(file.url, headers=headers)  # noqa: S310 - checked above
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:  # more is here than there: begin again
            part.unlink(missing_ok=True)
        raise
    return answer


def _known_version(part: Path) -> str:
    """The strong ETag of what `part` is the beginning of; "" where it cannot be told."""
    try:
        etag = str(json.loads(_note(part).read_text())["etag"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "" if etag.startswith("W/") else etag


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _is_final(error: Exception) -> bool:
    """Asking again will not help."""
    return isinstance(error, urllib.error.HTTPError) and 400 <= error.code < 500 and error.code not in {408, 416, 429}


def _broken(file: RemoteFile, part: Path, error: Exception) -> str:
    kept = f"{part.stat().st_size:,} bytes are kept: the same command goes on from there." if part.exists() else ""
    return f"{file.url} could not be fetched ({error}). {kept or 'Check the address and the connection.'}"


def _check(file: RemoteFile, path: Path, what: str) -> None:
    """Raise `DataError` unless size and checksum, where known, are right."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise DataError(f"{what}: {size:,} bytes instead of {file.size:,}.")
    kind, _, expected = file.checksum.partition(":")
    if not expected:
        return
    with path.open("rb") as content:
        found = hashlib.file_digest(content, kind).hexdigest()
    if found != expected:
        raise DataError(f"{what}: its {kind} is {found}, expected {expected}.")
