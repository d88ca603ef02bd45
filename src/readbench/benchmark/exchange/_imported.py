"""Imported datasets, one folder each, which the registry finds.

```
NAME/dataset.json    format and SourceInfo
NAME/windows.json    the windows, as readbench.engine.window_files writes them
NAME/part-*.arrow
NAME/sides.json      sides of groups (none are known)
NAME/parts.json      of a ready-made task: which windows are corpus, queries and normals
```

A dataset is first written beside the others (`draft_dataset`), checked, and then moved to its place.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from readbench.benchmark.imported import FACTS, FAMILY
from readbench.benchmark.protocol import Built, Parts, Recording, SourceInfo, read_facts, write_facts
from readbench.common.files import exclusive, imported_root
from readbench.engine.registry import SOURCES
from readbench.engine.window_files import load_windows
from readbench.errors import DataError, UsageError

AGAIN = "Import the data again, or remove the folder."
PARTS = "parts.json"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Facts:
    """Content of `dataset.json`."""

    info: SourceInfo
    format: Literal[1] = 1


@dataclass(frozen=True)
class PartSizes:
    """Content of `parts.json`: numbers of windows of corpus, queries and normals in order; the rest as in `Parts`."""

    corpus: int
    queries: int
    normals: int
    lowest: tuple[int, ...] | None
    levels: tuple[int, ...]
    origin: tuple[str, int] | None

    def parts(self, windows: int) -> Parts:
        """Parts of that many windows."""
        sizes = (self.corpus, self.queries, self.normals)
        if min(sizes) < 0 or sum(sizes) != windows or len(self.lowest or ()) not in {0, self.corpus}:
            raise DataError(f"{PARTS}: the sizes {sizes} do not fit {windows} windows. {AGAIN}")
        corpus, queries, normals = np.split(np.arange(windows), np.cumsum(sizes)[:-1])
        lowest = None if self.lowest is None else np.array(self.lowest, np.int32)
        return Parts(corpus, queries, normals, lowest, self.levels, self.origin)


class Imported:
    """A dataset that a user imported, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def info(self) -> SourceInfo:
        """Typed facts."""
        return read_facts(self.folder / FACTS, Facts, AGAIN).info

    def built(self) -> Built:
        """Its windows."""
        windows, parts = load_windows(self.folder), None
        if (self.folder / PARTS).exists():
            parts = read_facts(self.folder / PARTS, PartSizes, AGAIN).parts(len(windows))
        return Built(self.info, windows, {}, self.folder, parts)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of every window."""
        del root
        return load_windows(self.folder).fingerprint()

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Each window as a recording; the original ones are not kept."""
        del root
        for window in load_windows(self.folder):
            labels = np.full(window.values.shape[1], window.label, np.int32)
            yield Recording(
                id=window.id,
                values=window.values,
                channels=window.channels,
                labels=labels,
                group=window.group,
                asset=window.asset,
                start=window.time,
                rate=window.rate,
                before=window.before,
                facts=window.facts,
            )


@dataclass(frozen=True)
class Draft:
    """A complete dataset that is not yet in its place."""

    source: Imported

    def keep(self, *, replace: bool = False) -> Imported:
        """Move it to its place; with `replace`, an existing one is removed afterwards."""
        name = self.source.info.name
        target = imported_root() / name
        with exclusive(imported_root() / ".lock"):
            check_name(name, replace=replace)
            if target.exists():
                target.replace(self.source.folder.parent / "before")
            self.source.folder.replace(target)
        return Imported(target)


@contextmanager
def draft_dataset(info: SourceInfo, write: Callable[[Path], None]) -> Iterator[Draft]:
    """Write a dataset beside the others; it is deleted at the end unless kept. `write` makes the folder of windows."""
    root = imported_root()
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=root, ignore_cleanup_errors=True) as place:
        folder = Path(place) / info.name
        write(folder)
        write_facts(folder / FACTS, Facts(info))
        yield Draft(Imported(folder))


def check_name(name: str, *, replace: bool) -> None:
    """Raise `UsageError` unless a dataset may be imported under this name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a dataset: use small letters, digits, '_' and '-', a letter first, 64 at most."
        )
    if name in SOURCES and SOURCES.get(name).family != FAMILY:
        raise UsageError(f"{name!r} is the name of a dataset of {SOURCES.get(name).origin}. Choose another.")
    if (imported_root() / name).exists() and not replace:
        raise UsageError(f"{name!r} is there already. Choose another name, or replace it with --replace.")
