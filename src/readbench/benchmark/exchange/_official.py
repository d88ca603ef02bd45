"""Official data of each source: files, addresses, and how much of them is present.

The facts are in `official.toml`, long lists of files in `files/SOURCE.txt`: SHA-256, bytes and path, with `-` for
unknown. Checksums there were computed from the files of the commits that the addresses name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from readbench.benchmark.protocol import SourceInfo, read_shipped
from readbench.benchmark.sources import plain_name

Facts = Iterable[dict[str, Any]]
"""Tables of `official.toml`."""
_FACTS, _UNKNOWN = "official.toml", "-"


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch.

    Args:
        url: address.
        path: path in the folder of the source.
        size: bytes; None if unknown.
        checksum: `sha256:...` or `md5:...`; "" if unknown.
        unpack: True for a zip archive to unpack.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str = ""
    unpack: bool = False


@dataclass(frozen=True)
class Extent:
    """A complete copy: `count` files (`what`) matching any pattern, with at least `least_bytes` together.

    If it is not `whole`, all of them are still only a part of the source.
    """

    patterns: tuple[str, ...]
    count: int
    what: str
    whole: bool = True
    least_bytes: int = 0


@dataclass(frozen=True)
class Official:
    """The official data of one source.

    Args:
        extents: layouts of a complete copy; one is enough.
        files: files that can be fetched without a login.
        sums: address of a published list of SHA-256 sums for files without a checksum.
        steps: instructions for a manual download; `{folder}` is the target.
    """

    extents: tuple[Extent, ...]
    files: tuple[RemoteFile, ...] = ()
    sums: str = ""
    steps: str = ""


def add_checksums(files: tuple[RemoteFile, ...], listed: str) -> tuple[RemoteFile, ...]:
    """The same files with the checksums of a published list, `digest  path` a line."""
    digests = {
        path.strip().lstrip("*"): digest for digest, _, path in (row.partition(" ") for row in listed.splitlines())
    }
    return tuple(
        replace(file, checksum=f"sha256:{digests[file.path]}") if file.path in digests and not file.checksum else file
        for file in files
    )


def _official(
    name: str, *, extents: Facts = (), files: Facts = (), listed_below: str = "", sums: str = "", steps: str = ""
) -> Official:
    """The facts of one source; `listed_below` is the address of the files in its list."""
    return Official(
        extents=tuple(Extent(**{**extent, "patterns": tuple(extent["patterns"])}) for extent in extents),
        files=_listed(name, listed_below) if listed_below else tuple(RemoteFile(**file) for file in files),
        sums=sums,
        steps=steps,
    )


def _listed(name: str, address: str) -> tuple[RemoteFile, ...]:
    """Files of a list, below an address."""
    rows = (line.split(" ", 2) for line in read_shipped(__name__, f"files/{name}.txt").splitlines())
    return tuple(
        RemoteFile(
            f"{address}/{path}",
            path,
            None if size == _UNKNOWN else int(size),
            "" if digest == _UNKNOWN else f"sha256:{digest}",
        )
        for digest, size, path in rows
    )


OFFICIAL = {name: _official(name, **facts) for name, facts in tomllib.loads(read_shipped(__name__, _FACTS)).items()}
"""By the name of the source."""


State = Literal["complete", "partial", "absent", "unknown", "simulated", "imported"]


@dataclass(frozen=True)
class Status:
    """How much of a source is present.

    Args:
        info: the source.
        state: `complete`, `partial`, `absent`; `unknown` for files without a known number.
        found: what was found or is missing, in words.
        folder: folder of the files.
        fetchable: True if `readbench data fetch` can get them.
    """

    info: SourceInfo
    state: State
    found: str
    folder: Path | None
    fetchable: bool


def status_of(info: SourceInfo, root: Path | None) -> Status:
    """State of the folder of a source by number and size of its files, which are not opened."""
    official = OFFICIAL.get(info.name)
    folder = None if root is None else root / info.name
    fetchable = bool(official and official.files)
    if info.generated:
        return Status(info, "simulated", "made when it is needed", None, fetchable=False)
    if folder is None or not folder.is_dir() or not any(folder.iterdir()):
        found = f"no folder {info.name}/ under the data root" if root else "no data root: set READBENCH_DATA or --root"
        return Status(info, "absent", found, folder, fetchable)
    if official is None or not official.extents:
        return Status(info, "unknown", "files are there; the official number is not known", folder, fetchable)
    measured = [(extent, *_measure(folder, extent)) for extent in official.extents]
    for extent, count, size in measured:
        if extent.whole and count >= extent.count and size >= extent.least_bytes:
            return Status(info, "complete", f"{extent.count} {extent.what}", folder, fetchable)
    state: State = "partial" if any(count for _, count, _ in measured) else "absent"
    found = ", ".join(_tell_found(*one) for one in measured)
    return Status(info, state, found, folder, fetchable)


def _measure(folder: Path, extent: Extent) -> tuple[int, int]:
    """Files of a copy, plain or gzipped, and their bytes; one that is there in both forms counts once."""
    found = {
        plain_name(path.relative_to(folder).as_posix()): path.stat().st_size
        for pattern in extent.patterns
        for path in (*folder.glob(pattern), *folder.glob(f"{pattern}.gz"))
    }
    return len(found), sum(found.values())


def _tell_found(extent: Extent, count: int, size: int) -> str:
    small = count >= extent.count and size < extent.least_bytes
    shortened = f" ({size / 1e6:.0f} MB, where the official ones have over {extent.least_bytes / 1e6:.0f})"
    return f"{count} of {extent.count} {extent.what}" + shortened * small
