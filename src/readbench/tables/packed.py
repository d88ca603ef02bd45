"""Windows that are already cut, many in one file: a row of a Parquet file each, or arrays of an NPZ archive.

```
Parquet column    NPZ array           meaning
values            values (N, C, T)    readings; in Parquet a list of C * T numbers, channel after channel
channels          channels (C,)       names of the channels; in Parquet a list per row
length            length (N,)         timesteps T of a window; in NPZ the steps after it are padding
label             label (N,)          fault, or the name of normal operation; empty where nobody knows
id or _id         id (N,)             unique name; default the number of the row
group             group (N,)          what must not straddle a split; default the id
asset             asset (N,)          machine, well, patient ...
time              time (N,)           seconds
span_start, span_stop   (N,)          first and one past the last faulty step
```

Only `values` and, in Parquet, `channels` must be there. Other columns are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.errors import DataError
from readbench.tables.arrays import Arrays, read_arrays
from readbench.tables.limits import Given, Limits, open_given
from readbench.tables.read import read_parquet
from readbench.tables.table import Table
from readbench.windows import UNLABELLED, WindowSet
from readbench.windows.container import strings

ROW_GROUP = 256
"""Windows written together."""


@dataclass(frozen=True, eq=False)
class Packed:
    """`windows` of a file, and `table` with a row for each and all flat columns."""

    windows: WindowSet
    table: Table


def read_windows(
    given: Given, *, part: str = "", normal: str = "normal", classes: Sequence[str] = (), limits: Limits | None = None
) -> WindowSet:
    """The windows of a Parquet or NPZ file in the layout above.

    Args:
        given: path, or name and content.
        part: what the names of the arrays of this set begin with in an archive of several (`corpus_`), and ids that
            are only numbers.
        normal: the label of normal operation.
        classes: class names, normal first, where they are known; default `normal` and the labels in the file, sorted.
        limits: most bytes, rows and columns.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, values=np.zeros((2, 3, 4)), label=["leak", "normal"])
    >>> windows = read_windows(("a.npz", file.getvalue()))
    >>> windows.classes, windows.labels.tolist(), windows.values(0).shape
    (('normal', 'leak'), [1, 0], (3, 4))
    """
    return read_packed(given, part=part, normal=normal, classes=classes, limits=limits).windows


def read_packed(
    given: Given, *, part: str = "", normal: str = "normal", classes: Sequence[str] = (), limits: Limits | None = None
) -> Packed:
    """The same, with the flat columns beside the windows."""
    limits = limits or Limits()
    name, file = open_given(given, limits)
    ending = PurePath(name).suffix.lower()
    if ending == ".parquet":
        return _Rows(name, read_parquet(name, file, limits), part).packed(normal, classes)
    if ending == ".npz":
        arrays = read_arrays(name, file, limits, (part, "channels") if part else ("",))
        return _Arrays(name, arrays, part).packed(normal, classes)
    raise DataError(f"{name}: windows are read from .parquet and .npz. Save them as one of these.")


def write_windows(windows: WindowSet, path: Path, **columns: pa.Array) -> None:
    """Write a Parquet file in the layout above, with further columns (N,) beside; whole, or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "w.parquet"
    >>> write_windows(WindowSet.from_arrays([np.ones((1, 3))]), path)
    >>> read_windows(path)[0].values.tolist()
    [[1.0, 1.0, 1.0]]
    """
    partial = path.with_name(f"{path.name}.partial")
    with pyarrow.parquet.ParquetWriter(partial, _schema(columns), compression="zstd") as writer:
        for start in range(0, len(windows), ROW_GROUP):
            block = windows[start : start + ROW_GROUP]
            further = [column[start : start + ROW_GROUP] for column in columns.values()]
            writer.write_table(pa.table([*_columns(block), *further], schema=_schema(columns)))
    partial.replace(path)


def _schema(columns: dict[str, pa.Array]) -> pa.Schema:
    return pa.schema(
        [
            ("_id", pa.string()),
            ("values", pa.list_(pa.float32())),
            ("channels", pa.list_(pa.string())),
            ("length", pa.int32()),
            ("label", pa.string()),
            ("group", pa.string()),
            ("asset", pa.string()),
            ("time", pa.float64()),
            ("span_start", pa.int32()),
            ("span_stop", pa.int32()),
            *((name, column.type) for name, column in columns.items()),
        ]
    )


def _columns(windows: WindowSet) -> list[pa.Array]:
    own = windows.compact()
    ends = np.append(own.offset, own.chunks[0].size)
    labels = [windows.classes[label] if label != UNLABELLED else None for label in windows.labels]
    return [
        pa.array(windows.ids.tolist(), pa.string()),
        pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(own.chunks[0])),
        pa.array([windows.channels(i) for i in range(len(windows))], pa.list_(pa.string())),
        pa.array(windows.lengths, pa.int32()),
        pa.array(labels, pa.string()),
        pa.array(windows.groups.tolist(), pa.string()),
        pa.array(windows.assets.tolist(), pa.string()),
        pa.array(windows.times, pa.float64()),
        pa.array(windows.spans[:, 0], pa.int32()),
        pa.array(windows.spans[:, 1], pa.int32()),
    ]


@dataclass(frozen=True, eq=False)
class _Values:
    """The values of all windows and where each has its own, as in `WindowSet`."""

    flat: NDArray[np.float32]
    offset: NDArray[np.int64]
    lengths: NDArray[np.int32]
    channel_set: NDArray[np.int32]
    channel_sets: tuple[tuple[str, ...], ...]


class _Rows:
    """A Parquet file with a row per window."""

    def __init__(self, name: str, data: pa.Table, part: str) -> None:
        self.name, self.data, self.part = name, data, part

    def packed(self, normal: str, classes: Sequence[str]) -> Packed:
        values, channels = self._lists("values"), self._lists("channels")
        offsets = values.offsets.to_numpy().astype(np.int64)
        names = [tuple(own) for own in channels.to_pylist()]
        sets = tuple(dict.fromkeys(names))
        position = {own: i for i, own in enumerate(sets)}
        flat = [field.name for field in self.data.schema if not pa.types.is_nested(field.type)]
        table = Table(self.name, self.data.select(flat))
        counts = np.array([len(own) for own in names], np.int64)
        lengths = self._lengths(table, np.diff(offsets), counts)
        if wrong := next((own for own in sets if len(set(own)) != len(own) or None in own), None):
            raise DataError(f"{self.name}: the channels of a window need distinct names. Got {wrong}.")
        laid = _Values(
            flat=self._floats(values.values),
            offset=offsets[:-1],
            lengths=lengths,
            channel_set=np.array([position[own] for own in names], np.int32),
            channel_sets=sets,
        )
        return Packed(_windows(table, laid, _ids(table, self.part), _vocabulary(table, normal, classes)), table)

    def _lists(self, column: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        found = self.data[column] if column in self.data.column_names else None
        kinds = (pa.types.is_list, pa.types.is_large_list)
        if found is None or not any(test(found.type) for test in kinds) or found.null_count:
            raise DataError(
                f"{self.name}: windows need a column {column!r} with a list in every row. Columns: "
                f"{', '.join(self.data.column_names)[:300]}."
            )
        whole = found.combine_chunks()
        return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole

    def _floats(self, values: pa.Array) -> NDArray[np.float32]:
        try:
            return np.asarray(values.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False), np.float32)
        except pa.ArrowException as error:
            raise DataError(f"{self.name}: 'values' holds no numbers ({error}).") from error

    def _lengths(self, table: Table, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int32]:
        given = table.numbers("length") if "length" in table.columns else sizes / np.maximum(counts, 1)
        wrong = np.flatnonzero((np.floor(given) * counts != sizes) | (sizes == 0))
        if wrong.size:
            row = wrong[0]
            raise DataError(
                f"{self.name}, row {row + 1}: {sizes[row]} values are no whole number of steps of {counts[row]} "
                "channels, or not its length."
            )
        return given.astype(np.int32)


class _Arrays:
    """An NPZ archive with an array per column."""

    def __init__(self, name: str, arrays: Arrays, part: str) -> None:
        self.name, self.part = name, part
        self.own = {key.removeprefix(part): array for key, array in arrays.items() if key.startswith(part)}
        self.channels = self.own.pop("channels", arrays.get("channels"))
        if "values" not in self.own:
            raise DataError(f"{name}: no array {part}values. Arrays: {', '.join(arrays)[:300] or 'none'}.")
        self.values = self.own.pop("values")

    def packed(self, normal: str, classes: Sequence[str]) -> Packed:
        values = self._cube()
        n, count, steps = values.shape
        table = self._table(n)
        lengths = table.numbers("length") if "length" in table.columns else np.full(n, steps)
        if not ((lengths >= 1) & (lengths <= steps) & (lengths == np.floor(lengths))).all():
            raise DataError(f"{self.name}: 'length' must be whole numbers from 1 to {steps}.")
        flat = [own[:, : int(length)].ravel() for own, length in zip(values, lengths, strict=True)]
        laid = _Values(
            flat=np.concatenate(flat).astype(np.float32),
            offset=np.concatenate([[0], np.cumsum(lengths * count)[:-1]]).astype(np.int64),
            lengths=lengths.astype(np.int32),
            channel_set=np.zeros(n, np.int32),
            channel_sets=(self._channels(count),),
        )
        return Packed(_windows(table, laid, _ids(table, self.part), _vocabulary(table, normal, classes)), table)

    def _cube(self) -> NDArray[Any]:
        values = self.values[:, None, :] if self.values.ndim == 2 else self.values
        if values.ndim != 3 or 0 in values.shape or values.dtype.kind not in "fiub":
            raise DataError(
                f"{self.name}: 'values' must be numbers of shape (windows, channels, steps). Got {self.values.dtype} "
                f"of shape {self.values.shape}."
            )
        return values

    def _table(self, n: int) -> Table:
        wrong = next((key for key, array in self.own.items() if array.shape != (n,)), None)
        if wrong is not None:
            raise DataError(f"{self.name}: {wrong!r} has shape {self.own[wrong].shape}, but there are {n} windows.")
        try:
            columns = {key: pa.array(array) for key, array in self.own.items()}
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"{self.name}: cannot be read as columns ({error}). Use numbers and texts.") from error
        return Table(self.name, pa.table(columns or {"row": pa.array(np.arange(n))}))

    def _channels(self, count: int) -> tuple[str, ...]:
        names = [f"ch{c}" for c in range(count)] if self.channels is None else [str(c) for c in self.channels.ravel()]
        if len(names) != count or len(set(names)) != count:
            raise DataError(f"{self.name}: {count} channels need as many distinct names. Got {names[:10]}.")
        return tuple(names)


def _vocabulary(table: Table, normal: str, classes: Sequence[str]) -> tuple[str, ...]:
    if classes:
        return tuple(classes)
    names = table.codes("label")[1] if "label" in table.columns else ()
    return (normal, *sorted(set(names) - {normal}))


def _windows(table: Table, values: _Values, ids: list[str], vocabulary: tuple[str, ...]) -> WindowSet:
    n = table.rows
    if len(set(ids)) != n or "" in ids:
        raise DataError(f"{table.name}: every window needs an id of its own; some are empty or there twice.")
    groups = _texts(table, "group")
    return WindowSet(
        chunks=(values.flat,),
        chunk=np.zeros(n, np.int32),
        offset=values.offset,
        lengths=values.lengths,
        channel_set=values.channel_set,
        channel_sets=values.channel_sets,
        labels=_labels(table, vocabulary),
        classes=vocabulary,
        ids=strings(ids, n),
        groups=strings([group or own for group, own in zip(groups, ids, strict=True)], n),
        assets=strings(_texts(table, "asset"), n),
        times=table.seconds("time") if "time" in table.columns else np.full(n, np.nan),
        spans=np.column_stack([_steps(table, "span_start"), _steps(table, "span_stop")]),
    )


def _ids(table: Table, part: str) -> list[str]:
    name = next((column for column in ("id", "_id") if column in table.columns), "")
    return _texts(table, name) if name else [f"{part}{i}" for i in range(table.rows)]


def _labels(table: Table, classes: tuple[str, ...]) -> NDArray[np.int32]:
    if "label" not in table.columns:
        return np.full(table.rows, UNLABELLED, np.int32)
    codes, names = table.codes("label")
    unknown = [name for name in names if name not in classes]
    if unknown:
        raise DataError(f"{table.name}: label {unknown[0]!r} is not one of the classes {', '.join(classes)[:300]}.")
    places = np.array([*(classes.index(name) for name in names), UNLABELLED], np.int32)  # -1 picks the last
    return places[codes]


def _texts(table: Table, column: str) -> list[str]:
    """A column of texts, "" where there is none."""
    if column not in table.columns:
        return [""] * table.rows
    codes, names = table.codes(column)
    return [names[code] if code >= 0 else "" for code in codes]


def _steps(table: Table, column: str) -> NDArray[np.int32]:
    if column not in table.columns:
        return np.zeros(table.rows, np.int32)
    steps = table.numbers(column)
    if not (np.isfinite(steps) & (np.abs(steps) < 2**31)).all():
        raise DataError(f"{table.name}: column {column!r} must hold steps in every row.")
    return steps.astype(np.int32)
