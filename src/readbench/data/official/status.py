"""What of a source's official data is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readbench.data.official.facts import OFFICIAL, Extent
from readbench.data.source import SourceInfo
from readbench.data.sources.files import plain_name

State = Literal["complete", "partial", "absent", "unknown", "simulated", "imported"]


@dataclass(frozen=True)
class Status:
    """How much of a source is there.

    Args:
        info: the source.
        state: `complete`, `partial`, `absent`; `unknown` where files are there but nobody said how many to expect.
        found: what was found, or what is missing, in words.
        folder: where the files belong.
        fetchable: `readbench data fetch` can get them.
    """

    info: SourceInfo
    state: State
    found: str
    folder: Path | None
    fetchable: bool


def status_of(info: SourceInfo, root: Path | None) -> Status:
    """Look into the folder of a source; files are counted, not opened."""
    official = OFFICIAL.get(info.name)
    folder = None if root is None else root / info.name
    fetchable = bool(official and official.files)
    if info.simulated:
        return Status(info, "simulated", "made when it is needed", None, fetchable=False)
    if folder is None or not folder.is_dir() or not any(folder.iterdir()):
        found = f"no folder {info.name}/ under the data root" if root else "no data root: set READBENCH_DATA or --root"
        return Status(info, "absent", found, folder, fetchable)
    if official is None or not official.extents:
        return Status(info, "unknown", "files are there; the official number is not known", folder, fetchable)
    counts = [(extent, _count(folder, extent)) for extent in official.extents]
    whole = next((extent for extent, count in counts if extent.whole and count >= extent.count), None)
    if whole is not None:
        return Status(info, "complete", f"{whole.count} {whole.what}", folder, fetchable)
    state: State = "partial" if any(count for _, count in counts) else "absent"
    found = ", ".join(f"{count} of {extent.count} {extent.what}" for extent, count in counts)
    return Status(info, state, found, folder, fetchable)


def _count(folder: Path, extent: Extent) -> int:
    """Files of a copy, plain or gzipped; one that is there in both forms counts once."""
    found = {
        plain_name(path.relative_to(folder).as_posix())
        for pattern in extent.patterns
        for path in (*folder.glob(pattern), *folder.glob(f"{pattern}.gz"))
    }
    return len(found)
