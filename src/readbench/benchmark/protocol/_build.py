"""From a source to its windows on disk, cached by what they depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol as Interface, runtime_checkable

from readbench.benchmark.protocol._compose import Parts
from readbench.benchmark.protocol._cut import windows_of
from readbench.benchmark.protocol._source import Recording, Resolvable, Seekable, Side, Source, SourceInfo
from readbench.common.files import cache_root, data_root, digest, exclusive
from readbench.common.progress import SILENT, Progress
from readbench.common.provenance import Root, trace_code
from readbench.engine.spec import build_source
from readbench.engine.window_files import FORMAT, WindowWriter, load_windows
from readbench.engine.windows import WindowSet
from readbench.errors import DataError

BESIDE = ("readbench.engine.registry",)
"""Modules that sources use, but that have no influence on their windows."""


@dataclass(frozen=True, eq=False)
class Built:
    """All windows of a source.

    Args:
        info: its facts.
        windows: the windows.
        sides: the side of each group where the source has its own split.
        folder: where they lie.
        parts: of a ready-made task, which windows are corpus, queries and normals.
    """

    info: SourceInfo
    windows: WindowSet
    sides: dict[str, Side]
    folder: Path
    parts: Parts | None = None


@runtime_checkable
class Prebuilt(Interface):
    """A source whose windows are on disk already, as what a user imported."""

    def built(self) -> Built:
        """Open them."""
        ...


@runtime_checkable
class Counted(Interface):
    """A source that knows how many recordings it has."""

    runs: int


def find_source(source: Source | str) -> Source:
    """The source that a text of the grammar names, such as `sim_tanks(difficulty=2)`; a source is itself."""
    if not isinstance(source, str):
        return source
    found: Source = build_source(source)
    return found


def build(
    source: Source | str, root: Path | None = None, cache: Path | None = None, progress: Progress = SILENT
) -> Built:
    """Windows of a source: from the cache, or built by streaming its recordings once.

    Nothing appears under the final name until it is complete. A build that was killed goes on where it was.

    Args:
        source: what to build: a source, or a text of the grammar.
        root: data root, `READBENCH_DATA` by default; not needed by simulated sources.
        cache: cache root; that of the user by default.
        progress: told after each recording.
    """
    source, root, cache = find_source(source), data_root(root), cache or cache_root()
    if isinstance(source, Prebuilt):
        return source.built()
    if isinstance(source, Resolvable):
        source = source.resolved(root)
    folder = cache / "windows" / f"{source.info.name}-{build_fingerprint(source, root)}"
    if built := _open(source.info, folder):
        return built
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if built := _open(source.info, folder):  # another process was faster
            return built
        write_windows_of(source, root, folder, progress)
    return _load(source.info, folder)


def _open(info: SourceInfo, folder: Path) -> Built | None:
    """What is in the cache; None where nothing is, or where it is damaged and must be built again."""
    try:
        return _load(info, folder)
    except (DataError, OSError, ValueError):
        return None


def _load(info: SourceInfo, folder: Path) -> Built:
    return Built(info, load_windows(folder), json.loads((folder / "sides.json").read_text()), folder)


def build_fingerprint(source: Source, root: Path | None) -> str:
    """Hash of the source's files or version, of its protocol, and of the code that reads, cleans, cuts and labels."""
    info = source.info
    code = trace_code(builders_of(source), BESIDE).digest
    identity = (FORMAT, info.name, source.fingerprint(root), repr(info.protocol), info.classes, code)
    return digest(*identity)


def builders_of(source: Source) -> tuple[Root, ...]:
    """What makes the windows of a source."""
    return type(source), write_windows_of


def write_windows_of(source: Source, root: Path | None, folder: Path, progress: Progress = SILENT) -> None:
    """Stream the recordings of a source once and write their windows into a folder."""
    info = source.info
    what, total = f"building {info.name}", source.runs if isinstance(source, Counted) else None
    sides: dict[str, Side] = {}
    units = {channel.name: channel.unit for channel in info.channels}
    with WindowWriter(folder, info.classes) as writer:
        number = done = writer.mark
        progress(what, done, total)
        for number, recording in _numbered(source, root, done):
            _note_side(sides, recording)
            if number <= done:
                continue
            windows = windows_of(recording, info.protocol, info.classes, units)
            if windows is not None:
                writer.append(windows)
            writer.checkpoint(number)
            progress(what, number, total)
        progress(what, number, number)
        if not writer.count:
            raise DataError(f"{info.name}: the recordings gave no labelled window. Check the files and the protocol.")
        writer.attach("sides.json", sides)


def _numbered(source: Source, root: Path | None, done: int) -> Iterator[tuple[int, Recording]]:
    """Recordings with their number, counted from 1; those already done are left out where the source can seek.

    A native split is read through: the sides of what is done are known from the recordings only.
    """
    if isinstance(source, Seekable) and not source.info.protocol.native_split:
        return enumerate(source.recordings_from(done), start=done + 1)
    return enumerate(source.recordings(root), start=1)


def _note_side(sides: dict[str, Side], recording: Recording) -> None:
    if recording.side is None:
        return
    if sides.setdefault(recording.group, recording.side) != recording.side:
        raise DataError(f"Group {recording.group!r} is on both sides of the source's own split.")
