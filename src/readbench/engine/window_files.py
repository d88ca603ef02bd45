"""WindowSets on disk: a folder of memory-mapped Arrow files and a small JSON file.

```
part-00000.arrow   one row per window: values (C * T floats, channel after channel), length, channel_set, label, id,
...                group, asset, time, span; uncompressed Arrow IPC, so that values are used in place
context-00000.arrow   one row per window of the part, if any has context: before (a row of the next file, or -1),
                   rate, units (an entry of `unit_sets`, or -1), facts (in the order of `fact_names`)
before-00000.arrow    one row per distinct `before`: values (C * T_b floats) and length
windows.json       format version, class names, channel names, units, names of facts, number of windows and parts
```

Writing streams: memory holds one part. The folder appears under its name only when it is complete; until then it is
`NAME.partial`, with a journal from which an interrupted writer continues.
"""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.common.files import write_json
from readbench.engine.context import ABSENT, Context, join_contexts
from readbench.engine.windows import WindowSet, concatenate, strings
from readbench.errors import DataError

FORMAT = 2
READABLE = (1, FORMAT)
"""Format 1 has no context."""
PART_BYTES = 64 * 2**20
"""Bytes of values collected in memory before a part is written."""
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
        ("span_start", pa.int32()),
        ("span_stop", pa.int32()),
    ]
)
_CONTEXT = pa.schema(
    [("before", pa.int32()), ("rate", pa.float64()), ("units", pa.int32()), ("facts", pa.list_(pa.float64()))]
)
_BEFORES = pa.schema([("values", pa.large_list(pa.float32())), ("length", pa.int32())])


class WindowWriter:
    """Writes windows to a folder as a stream; `folder` appears only when the writer closes without error.

    `mark` is the caller's position in its input and is stored with every part. After a kill or Ctrl-C, a new writer for
    the same folder opens with the last stored mark, from which the caller continues. Any other error removes the
    partial folder. The caller makes sure that a folder has one writer at a time.

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
        self.mark = 0
        self._parts = 0
        self._channel_sets: dict[tuple[str, ...], int] = {}
        self._unit_sets: dict[tuple[str, ...], int] = {}
        self._fact_names: dict[str, int] = {}
        self._pending: list[WindowSet] = []
        self._pending_bytes = 0

    def __enter__(self) -> Self:
        self._partial = self.folder.with_name(f"{self.folder.name}.partial")
        if not self._resume():
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        except Exception:
            shutil.rmtree(self._partial, ignore_errors=True)
            raise
        if kind is not None and issubclass(kind, Exception):
            shutil.rmtree(self._partial, ignore_errors=True)

    def append(self, windows: WindowSet) -> None:
        """Add windows at the end; they are written in parts."""
        if windows.classes not in ((), self.classes):
            raise DataError(f"Windows with classes {windows.classes} do not belong in a file of {self.classes}.")
        if not len(windows):
            return
        self.count += len(windows)
        self._pending.append(windows)
        self._pending_bytes += 4 * int((windows.channel_counts.astype(np.int64) * windows.lengths).sum())
        self._pending_bytes += sum(before.nbytes for before in windows.context.befores) if windows.context else 0

    def checkpoint(self, mark: int) -> None:
        """Record that all input up to `mark` is appended; write a part if enough is pending."""
        self.mark = mark
        if self._pending_bytes >= PART_BYTES:
            self._flush()
            write_json(self._partial / "journal.json", self._state())

    def attach(self, name: str, content: object) -> None:
        """Add a small JSON file, which appears together with the windows."""
        write_json(self._partial / name, content)

    def _flush(self) -> None:
        if self._pending:
            windows = concatenate(self._pending)
            sizes = np.cumsum(windows.channel_counts.astype(np.int64) * windows.lengths * 4)
            cuts = np.searchsorted(sizes, np.arange(PART_BYTES, sizes[-1], PART_BYTES)) + 1
            for start, stop in pairwise(np.unique([0, *cuts, len(windows)]).tolist()):
                self._write_part(windows[start:stop])
        self._pending, self._pending_bytes = [], 0

    def _write_part(self, windows: WindowSet) -> None:
        windows = windows.compact()
        _write_file(self._partial / part_name(self._parts), self._batch(windows))
        context = None if windows.context is None else windows.context.without_lent().compact()
        if context is not None and context.known:
            _write_file(self._partial / part_name(self._parts, "context"), self._context_batch(context))
            _write_file(self._partial / part_name(self._parts, "before"), _before_batch(context))
        self._parts += 1

    def _finish(self) -> None:
        self._flush()
        write_json(self._partial / "windows.json", self._state())
        (self._partial / "journal.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._partial.replace(self.folder)

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "classes": self.classes,
            "channel_sets": list(self._channel_sets),
            "unit_sets": list(self._unit_sets),
            "fact_names": list(self._fact_names),
            "windows": self.count,
            "parts": self._parts,
            "mark": self.mark,
        }

    def _resume(self) -> bool:
        """Read the journal of an interrupted writer with the same classes, if it left a mark."""
        try:
            state = json.loads((self._partial / "journal.json").read_text())
        except (OSError, ValueError):
            return False
        if state["format"] != FORMAT or tuple(state["classes"]) != self.classes or not state["mark"]:
            return False
        self.count, self.mark, self._parts = state["windows"], state["mark"], state["parts"]
        self._channel_sets = {tuple(names): i for i, names in enumerate(state["channel_sets"])}
        self._unit_sets = {tuple(units): i for i, units in enumerate(state["unit_sets"])}
        self._fact_names = {name: i for i, name in enumerate(state["fact_names"])}
        return True

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
            pa.array(windows.spans[:, 0], pa.int32()),
            pa.array(windows.spans[:, 1], pa.int32()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _context_batch(self, context: Context) -> pa.RecordBatch:
        codes = [self._unit_sets.setdefault(units, len(self._unit_sets)) for units in context.unit_sets]
        places = [self._fact_names.setdefault(name, len(self._fact_names)) for name in context.fact_names]
        facts = np.full((len(context), len(self._fact_names)), np.nan)
        facts[:, places] = context.facts
        columns = [
            pa.array(context.before, pa.int32()),
            pa.array(context.rates, pa.float64()),
            pa.array(np.array([*codes, ABSENT], np.int32)[context.unit_set], pa.int32()),
            pa.array(facts.tolist(), pa.list_(pa.float64())),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_CONTEXT)


def save_windows(windows: WindowSet, folder: Path) -> None:
    """Write a complete set."""
    with WindowWriter(folder, windows.classes) as writer:
        writer.append(windows)


def load_windows(folder: Path) -> WindowSet:
    """Open a folder written by `WindowWriter`; values stay on disk until they are read."""
    folder = Path(folder)
    try:
        meta = json.loads((folder / "windows.json").read_text())
        if meta["format"] not in READABLE:
            raise DataError(f"{folder} has format {meta['format']}, this version reads {READABLE}. Build it again.")
        batches = [_open_part(folder / part_name(i)) for i in range(meta["parts"])]
        table = pa.Table.from_batches(batches, schema=_SCHEMA)
        count = meta["windows"]
        if len(table) != count:
            raise DataError(f"{folder} holds {len(table)} windows, but should hold {count}. Build it again.")
        contexts = [(batch.num_rows, _read_context(folder, i, batch, meta)) for i, batch in enumerate(batches)]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid) as error:
        raise DataError(f"{folder} is not a complete set of windows ({error}). Build it again.") from error
    return WindowSet(
        chunks=tuple(batch.column(0).values.to_numpy(zero_copy_only=True) for batch in batches),
        chunk=np.repeat(np.arange(len(batches), dtype=np.int32), [batch.num_rows for batch in batches]),
        offset=_joined([batch.column(0).offsets.to_numpy()[:-1] for batch in batches]),
        lengths=table["length"].to_numpy(),
        channel_set=table["channel_set"].to_numpy(),
        channel_sets=tuple(tuple(names) for names in meta["channel_sets"]),
        labels=table["label"].to_numpy(),
        classes=tuple(meta["classes"]),
        ids=strings(table["id"].to_pylist(), count),
        groups=strings(table["group"].to_pylist(), count),
        assets=strings(table["asset"].to_pylist(), count),
        times=table["time"].to_numpy(),
        spans=np.column_stack([table["span_start"].to_numpy(), table["span_stop"].to_numpy()]),
        context=join_contexts(contexts) if contexts else None,
    )


def part_name(number: int, kind: str = "part") -> str:
    """File name of a part, or of its context or time before."""
    return f"{kind}-{number:05d}.arrow"


def _write_file(path: Path, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_file(str(path), batch.schema) as sink:
        sink.write_batch(batch)


def _before_batch(context: Context) -> pa.RecordBatch:
    sizes = [before.size for before in context.befores]
    flat = np.concatenate([before.ravel() for before in context.befores]) if sizes else np.empty(0, np.float32)
    columns = [
        pa.LargeListArray.from_arrays(pa.array(np.cumsum([0, *sizes]), pa.int64()), pa.array(flat)),
        pa.array([before.shape[1] for before in context.befores], pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_BEFORES)


def _read_context(folder: Path, part: int, windows: pa.RecordBatch, meta: dict[str, Any]) -> Context | None:
    """The context of a part, memory-mapped; None if it has none."""
    path = folder / part_name(part, "context")
    if not path.exists():
        return None
    rows, matrices = _open_part(path), _open_part(folder / part_name(part, "before"))
    if rows.num_rows != windows.num_rows:
        raise DataError(f"{path} holds the context of {rows.num_rows} windows, not of {windows.num_rows}.")
    flat, ends = matrices.column(0).values.to_numpy(zero_copy_only=True), matrices.column(0).offsets.to_numpy()
    lengths = matrices.column(1).to_numpy()
    names = tuple(meta["fact_names"])
    facts = np.full((len(windows), len(names)), np.nan)
    for row, given in enumerate(rows.column(3).to_pylist()):
        facts[row, : len(given)] = given
    return Context(
        befores=tuple(
            flat[start:stop].reshape(-1, length)
            for start, stop, length in zip(ends[:-1], ends[1:], lengths, strict=True)
        ),
        before=rows.column(0).to_numpy(),
        rates=rows.column(1).to_numpy(),
        unit_sets=tuple(tuple(units) for units in meta["unit_sets"]),
        unit_set=rows.column(2).to_numpy(),
        fact_names=names,
        facts=facts,
        lent=np.zeros(len(windows), bool),
    )


def _open_part(path: Path) -> pa.RecordBatch:
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
