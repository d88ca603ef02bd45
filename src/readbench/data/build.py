"""From a source to its windows on disk, cached by what they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from readbench.data.cut import windows_of
from readbench.data.recording import Recording, Side
from readbench.data.source import Source
from readbench.errors import DataError
from readbench.windows import WindowSet, WindowWriter, load_windows

PROTOCOL_VERSION = 1
"""Raise when cleaning, cutting or labelling change, so that cached windows are built again."""

Progress = Callable[[int, int], None]
"""Called after each recording with the numbers of recordings and windows so far."""


@dataclass(frozen=True, eq=False)
class Built:
    """All windows of a source, and the side of each group where the source has its own split."""

    windows: WindowSet
    sides: dict[str, Side]
    folder: Path


def build(source: Source, root: Path | None, cache: Path, progress: Progress | None = None) -> Built:
    """Windows of a source: from the cache, or built by streaming its recordings once.

    An interrupted build leaves nothing under the final name.

    Args:
        source: what to build.
        root: data root; not needed by simulated sources.
        cache: cache root.
        progress: called after each recording.
    """
    folder = cache / "windows" / f"{source.info.name}-{build_fingerprint(source, root)}"
    sides_file = folder / "sides.json"
    if not sides_file.exists():
        _write(source, root, folder, progress)
    return Built(load_windows(folder), json.loads(sides_file.read_text()), folder)


def build_fingerprint(source: Source, root: Path | None) -> str:
    """Hash of the source's files or version, and of its protocol."""
    info = source.info
    identity = (PROTOCOL_VERSION, info.name, source.fingerprint(root), repr(info.protocol), info.classes)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def _write(source: Source, root: Path | None, folder: Path, progress: Progress | None) -> None:
    info = source.info
    sides: dict[str, Side] = {}
    with WindowWriter(folder, info.classes) as writer:
        for count, recording in enumerate(source.recordings(root), start=1):
            windows = windows_of(recording, info.protocol, info.classes)
            if windows is not None:
                _note_side(sides, recording)
                writer.append(windows)
            if progress:
                progress(count, writer.count)
        if not writer.count:
            raise DataError(f"{info.name}: the recordings gave no labelled window. Check the files and the protocol.")
        writer.attach("sides.json", json.dumps(sides))


def _note_side(sides: dict[str, Side], recording: Recording) -> None:
    if recording.side is None:
        return
    if sides.setdefault(recording.group, recording.side) != recording.side:
        raise DataError(f"Group {recording.group!r} is on both sides of the source's own split.")
