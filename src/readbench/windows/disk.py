"""WindowSets on disk: a folder with one Arrow file, memory-mapped on reading, and a small JSON beside it.

```
windows.arrow   one row per window: values (C * T floats, channel after channel), length, channel_set, label, id,
                group, asset, time; uncompressed Arrow IPC, so that values are used in place
windows.json    format version, class names, channel names, number of windows
```

Writing streams: memory holds one batch. The folder appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.errors import DataError
from readbench.windows.container import WindowSet, concatenate, strings

FORMAT = 1
_BATCH_BYTES = 32 * 2**20
_PARTIAL = ".partial-"
_SCHEMA = pa.schema(
    [
        ("values", pa.large_list(pa.float32())),
        ("length", pa.int32()),
        ("channel_set", pa.int32()),
        ("label", pa.int32()),
        ("id", pa.string()),
        ("group", pa.string()),
        ("asset", pa.string()),
        ("time", pa.float64()),
    ]
)


class WindowWriter:
    """Stream windows into a folder; nothing is visible at `folder` until the writer closes without error.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "set"
    >>> with WindowWriter(folder, classes=("normal", "leak")) as writer:
    ...     writer.append(WindowSet.from_arrays([np.ones((2, 4))], labels=[1], classes=("normal", "leak")))
    >>> load_windows(folder)[0].label
    1
    """

    def __init__(self, folder: Path, classes: tuple[str, ...]) -> None:
        self.folder = Path(folder)
        self.classes = classes
        self.count = 0
        self._channel_sets: dict[tuple[str, ...], int] = {}
        self._pending: list[WindowSet] = []
        self._pending_bytes = 0

    def __enter__(self) -> Self:
        _remove_abandoned(self.folder)
        self._partial = self.folder.with_name(f"{self.folder.name}{_PARTIAL}{os.getpid()}")
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)
        self._sink = pa.ipc.new_file(str(self._partial / "windows.arrow"), _SCHEMA)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._sink:
                if kind is None:
                    self._flush()
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)

    def _publish(self) -> None:
        meta = {
            "format": FORMAT,
            "classes": self.classes,
            "channel_sets": list(self._channel_sets),
            "windows": self.count,
        }
        (self._partial / "windows.json").write_text(json.dumps(meta, indent=1))
        shutil.rmtree(self.folder, ignore_errors=True)
        self._partial.replace(self.folder)

    def append(self, windows: WindowSet) -> None:
        """Add windows at the end; they are written once enough have come together."""
        if windows.classes not in ((), self.classes):
            raise DataError(f"Windows with classes {windows.classes} do not belong in a file of {self.classes}.")
        if not len(windows):
            return
        self.count += len(windows)
        size = 4 * windows.channel_counts.astype(np.int64) * windows.lengths
        cuts = np.flatnonzero(np.diff(size.cumsum() // _BATCH_BYTES)) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(windows)]):
            self._pending.append(windows[start:stop])
            self._pending_bytes += int(size[start:stop].sum())
            if self._pending_bytes >= _BATCH_BYTES:
                self._flush()

    def attach(self, name: str, text: str) -> None:
        """Add a small text file to the folder; it appears together with the windows."""
        (self._partial / name).write_text(text)

    def _flush(self) -> None:
        if self._pending:
            windows = concatenate(self._pending).compact()
            self._sink.write_batch(self._batch(windows))
        self._pending, self._pending_bytes = [], 0

    def _batch(self, windows: WindowSet) -> pa.RecordBatch:
        codes = np.array(
            [self._channel_sets.setdefault(names, len(self._channel_sets)) for names in windows.channel_sets],
            dtype=np.int32,
        )
        ends = np.append(windows.offset, windows.chunks[0].size)
        columns = [
            pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(windows.chunks[0])),
            pa.array(windows.lengths, pa.int32()),
            pa.array(codes[windows.channel_set], pa.int32()),
            pa.array(windows.labels, pa.int32()),
            pa.array(windows.ids.tolist(), pa.string()),
            pa.array(windows.groups.tolist(), pa.string()),
            pa.array(windows.assets.tolist(), pa.string()),
            pa.array(windows.times, pa.float64()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _remove_abandoned(folder: Path) -> None:
    """Clear what writers that no longer live left behind."""
    for partial in folder.parent.glob(f"{folder.name}{_PARTIAL}*"):
        try:
            os.kill(int(partial.name.rpartition("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(partial, ignore_errors=True)
        except (PermissionError, ValueError):
            continue


def save_windows(windows: WindowSet, folder: Path) -> None:
    """Write a whole set at once."""
    with WindowWriter(folder, windows.classes) as writer:
        writer.append(windows)


def load_windows(folder: Path) -> WindowSet:
    """Open a folder written by `WindowWriter`; values stay on disk until they are touched."""
    folder = Path(folder)
    try:
        meta = json.loads((folder / "windows.json").read_text())
        version, classes, channel_sets, promised = (
            meta[key] for key in ("format", "classes", "channel_sets", "windows")
        )
        reader = pa.ipc.open_file(pa.memory_map(str(folder / "windows.arrow")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder} is not a complete set of windows ({error}). Build it again.") from error
    if version != FORMAT:
        raise DataError(f"{folder} has format {version}, this version reads {FORMAT}. Build it again.")
    batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    table = pa.Table.from_batches(batches, schema=_SCHEMA)
    rows = [batch.num_rows for batch in batches]
    count = len(table)
    if count != promised:
        raise DataError(f"{folder} holds {count} windows, but was written with {promised}. Build it again.")
    return WindowSet(
        chunks=tuple(batch.column(0).values.to_numpy(zero_copy_only=True) for batch in batches),
        chunk=np.repeat(np.arange(len(batches), dtype=np.int32), rows),
        offset=_joined([batch.column(0).offsets.to_numpy()[:-1] for batch in batches], np.int64),
        lengths=table["length"].to_numpy(),
        channel_set=table["channel_set"].to_numpy(),
        channel_sets=tuple(tuple(names) for names in channel_sets),
        labels=table["label"].to_numpy(),
        classes=tuple(classes),
        ids=strings(table["id"].to_pylist(), count),
        groups=strings(table["group"].to_pylist(), count),
        assets=strings(table["asset"].to_pylist(), count),
        times=table["time"].to_numpy(),
    )


def _joined(parts: list[NDArray[np.int64]], dtype: type[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
