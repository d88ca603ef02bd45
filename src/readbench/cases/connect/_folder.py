"""A folder of CSV, Excel or Parquet files that grows: new files, and new rows at the end of files.

```
folder:///data/plant?asset=pump        a column names the asset
folder:///data/plant?by=folder         /data/plant/PUMP/2025-12-31.csv
```

Options: `by` (`file`, `folder` or `none`: what names the asset where no column does), `pattern` (which files), and
those of tables: `time`, `asset`, `channel`, `value`, `unit`, `zone`, `channels`. What columns mean is found as in
every other table (`readbench.engine.signal_tables`). Of a text file that grew, the new rows are read under the old
header; a last row without an end, and a Parquet file that is still being written, wait until they are whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from readbench.cases.connect._protocol import (
    LATE_S,
    ChannelKey,
    PollingFollower,
    SampledChannel,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.cases.connect._tables import TABLE_OPTIONS, roles_of, split_table, understand
from readbench.common.deadlines import check_deadline
from readbench.common.tables import Limits, read_table
from readbench.errors import DataError, ReadbenchError, SourceMissingError, UsageError

ENDINGS = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".parquet")
GROWING = (".csv", ".tsv", ".txt")
HEAD = 16 * 2**10
"""Bytes of the beginning of a text file by which its layout is found again, beside the new rows."""
MOST_FILES = 10_000
MOST_BYTES = 512 * 2**20
"""Of one file that were not read yet."""


@dataclass
class _SeenFile:
    """What is known of a file: its size and date when it was read, its first and last time, and its channels."""

    size: int
    changed: int
    first: float
    last: float
    channels: dict[ChannelKey, str]


class FolderSource:
    """Files in a folder.

    Args:
        address: of the folder.
    """

    keeps_history = True

    def __init__(self, address: SourceAddress) -> None:
        address.check_options((*TABLE_OPTIONS, "by", "pattern"))
        self.address = address
        self._folder = Path(address.path)
        self._by = address.option("by", "none")
        if self._by not in {"file", "folder", "none"}:
            raise UsageError(f"The option 'by' of a folder is file, folder or none. Got {self._by[:40]!r}.")
        self._roles = roles_of(address)
        self._seen: dict[Path, _SeenFile] = {}

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """What its files hold."""
        self.read(float("inf"), float("inf"))
        found = {key: unit for own in self._seen.values() for key, unit in own.channels.items()}
        return [SourceChannel(name, asset, unit) for (asset, name), unit in sorted(found.items())]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002 - all readings are at hand
        """Readings of a range."""
        said: list[str] = []
        parts = (
            (key, own)
            for path in self._list()
            for key, own in self._read_file(path, start, said)
            if asset is None or key[0] == asset
        )
        joined = SourceReadings.join(((key, _cut(own, start, end)) for key, own in parts))
        inside = {key: own for key, own in joined.series.items() if len(own.times)}
        return SourceReadings(inside, (*joined.remarks, *said))

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        """What comes from a time on."""
        return PollingFollower(self, since, late_s)

    def close(self) -> None:
        """Nothing is open."""

    def _list(self) -> list[Path]:
        if not self._folder.is_dir():
            raise SourceMissingError(f"There is no folder {self._folder}. Correct the address {self.shown}.")
        pattern = self.address.option("pattern", "**/*")
        matching = (path for path in self._folder.glob(pattern) if path.suffix.lower() in ENDINGS and path.is_file())
        found = sorted(islice(matching, MOST_FILES + 1))
        if len(found) > MOST_FILES:
            raise DataError(
                f"{self._folder} holds more than {MOST_FILES:,} files. Name fewer: --option pattern=2025-*.csv"
            )
        return found

    def _read_file(self, path: Path, start: float, said: list[str]) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        """What a file holds from a time on, if it may hold any; more may come with it."""
        check_deadline()
        stat = path.stat()
        seen = self._seen.get(path)
        same = seen is not None and (seen.size, seen.changed) == (stat.st_size, stat.st_mtime_ns)
        if seen is not None and same and seen.last < start:
            return
        grew = seen is not None and not same and seen.size < stat.st_size and path.suffix.lower() in GROWING
        skip = seen.size if seen is not None and grew and seen.last <= start else 0
        try:
            if stat.st_size - skip > MOST_BYTES:
                raise DataError(f"it has more than {MOST_BYTES >> 20} MiB that were not read yet. Divide it.")
            content, size = _read_text(path, skip) if path.suffix.lower() in GROWING else (None, stat.st_size)
            if content is not None and not content.strip():
                return
            table = read_table(path if content is None else (path.name, content), Limits())
            parts = list(split_table(understand(table, self._roles), self._name(path), self.address.option("unit")))
        except (ReadbenchError, OSError) as error:
            said.append(f"{path.name} was left out: {error}")
            return
        times = [own.times for _, own in parts if len(own.times)]
        first, last = min((own[0] for own in times), default=start), max((own[-1] for own in times), default=start)
        before = seen if seen is not None and skip else None
        self._seen[path] = _SeenFile(
            size=size,
            changed=stat.st_mtime_ns if size == stat.st_size else 0,
            first=float(first if before is None else min(before.first, first)),
            last=float(last if before is None else max(before.last, last)),
            channels={key: own.unit for key, own in parts},
        )
        yield from parts

    def _name(self, path: Path) -> str:
        """The asset of a file, where no column names it."""
        if self._by == "none":
            return ""
        return path.name.split(".")[0] if self._by == "file" else path.parent.name


def _read_text(path: Path, skip: int) -> tuple[bytes, int]:
    """A text file without its last row, if that has no end, and how much of the file that is; `skip` leaves out rows.

    The beginning comes along, which tells the layout; its rows are older.
    """
    with path.open("rb") as file:
        head = b""
        if skip > 2 * HEAD:
            head = file.read(HEAD)
            head = head[: head.rfind(b"\n") + 1]
            file.seek(skip)
        rest = file.read()
        whole = rest[: rest.rfind(b"\n") + 1]
        return head + whole, file.tell() - len(rest) + len(whole)


def _cut(own: SampledChannel, start: float, end: float) -> SampledChannel:
    inside = (own.times >= start) & (own.times <= end)
    return SampledChannel(own.times[inside], own.values[inside], own.unit)
