"""`Table`: named columns as a user's file has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from readbench.errors import DataError, UnknownNameError


@dataclass(frozen=True, eq=False)
class Table:
    """A user's table: `name` of its file for errors, and `data`, an Arrow table.

    >>> table = Table("a.csv", pa.table({"speed": [1, None], "fault": ["leak", ""]}))
    >>> table.numbers("speed").tolist(), table.codes("fault")[1]
    ([1.0, nan], ('leak',))
    """

    name: str
    data: pa.Table

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.data.column_names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the columns that hold numbers, or nothing at all."""
        return tuple(field.name for field in self.data.schema if _is_number(field.type))

    def numbers(self, column: str) -> NDArray[np.float64]:
        """(rows,) a column as numbers, NaN where there is none; a text in it is an error that names its row."""
        values = self._column(column)
        if not _is_number(values.type):
            values = self._parsed(column, values)
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)

    def seconds(self, column: str, unit: float = 1.0) -> NDArray[np.float64]:
        """(rows,) a column of times in seconds: numbers of `unit` seconds, or dates, then counted from 1970."""
        values = self._column(column)
        if not pa.types.is_timestamp(values.type) and not pa.types.is_date(values.type):
            return self.numbers(column) * unit
        micros = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / 1e6, np.float64)

    def codes(self, column: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """A column as texts: (rows,) index of each row's text, -1 where it is empty, and the texts as they appear.

        Whole numbers lose their decimals, so that `1.0` and `1` are one text.
        """
        values = self._column(column)
        if not pa.types.is_dictionary(values.type):
            values = pc.dictionary_encode(_texts(values))
        encoded = values.unify_dictionaries().combine_chunks()
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        texts = _texts(encoded.dictionary).to_pylist()  # once per text, however often it is repeated
        used, first = np.unique(indices, return_index=True)
        present = [texts[code] for code in used[np.argsort(first)] if code >= 0 and texts[code] is not None]
        names = tuple(dict.fromkeys(present))
        position = {name: code for code, name in enumerate(names)}
        codes = np.array([*(position.get(text, -1) for text in texts), -1], np.int32)  # -1 picks the last
        return codes[indices], names

    def _column(self, column: str) -> pa.ChunkedArray:
        if column not in self.data.column_names:
            raise UnknownNameError(f"column of {self.name}", column, self.columns)
        return self.data[column]

    def _parsed(self, column: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column that is not numeric as a whole, text by text."""
        texts = _texts(values)
        try:
            return texts.cast(pa.float64())
        except pa.ArrowInvalid:
            row, text = next((i, t) for i, t in enumerate(texts.to_pylist()) if t is not None and not _reads(t))
            raise DataError(
                f"{self.name}, row {row + 1}: {text[:40]!r} in column {column!r} is no number. Correct it, or leave "
                "the column out."
            ) from None


def _is_number(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    )


def _texts(values: Any) -> Any:  # noqa: ANN401 - an Arrow array, whole or in chunks
    """A column as trimmed texts, null where there is none."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        whole = pc.all(pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))).as_py()
        values = values.cast(pa.int64()) if whole else values
    try:
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"A column of {values.type} cannot be read as text ({error}).") from error
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _reads(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
