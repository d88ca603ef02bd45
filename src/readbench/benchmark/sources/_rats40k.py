"""RATs40K: short windows of many public datasets, each with the kind of its anomaly as a language model saw it.

Layout: `RATs-Uni-TSImage_Reason.json` and `RATs-Multi-TSImage_Reason.json`, plain or gzipped, at any depth in
`rats40k/`. Each holds `TSAD_train` and `TSAD_test`, the dataset's own split, which map numbers to records; lists of
records are read as well, and records that are `null` are left out. Of a record are read `Observation` (in the
univariate file a list of numbers, in the other one a text such as `'flow': [1, 2]; 'speed': [3, 4]`), `Action` (the
kind of anomaly; its number is not used, because the two files number differently) and `Source` (where the window is
from). Not verified against the official files, none of which was seen here; written from the authors' code.

A file is read into memory as a whole, a few hundred megabytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, Recording, Side, read_info
from readbench.benchmark.sources._files import find_one, fingerprint_files, number_list, parse_json, read_text
from readbench.engine.preparation import is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

Variant = Literal["uni", "multi"]

FILES: dict[Variant, str] = {"uni": "RATs-Uni-TSImage_Reason.json", "multi": "RATs-Multi-TSImage_Reason.json"}
SIDES: dict[Side, str] = {"train": "TSAD_train", "test": "TSAD_test"}
NORMAL = "normal sequence"
KINDS: dict[Variant, tuple[str, ...]] = {
    "uni": (
        "point",
        "periodic change",
        "trend change",
        "change point",
        "distributional change",
        "amplitude",
        "pattern change",
        "sparse",
        "repeated value",
        "sudden flatline",
        "drift",
        "sudden spike",
        "continuous segment",
        "nonlinear pattern",
    ),
    "multi": (
        "covariance structure",
        "temporal dependency",
        "trend divergence",
        "local structural jump",
        "joint space",
        "principal component space",
        "collinearity shift",
    ),
}
"""Kinds of anomaly of each file, without the word anomaly; classes 1 to 21."""
CLASSES = {kind: number for number, kind in enumerate((*KINDS["uni"], *KINDS["multi"]), start=1)} | {NORMAL: 0}
VALUE = "value"
"""The channel of univariate windows."""

Series = dict[str, NDArray[np.float64]]


@SOURCES.register("rats40k", title="RATs40K")
class Rats40k:
    """Univariate and multivariate windows of 16 to 128 steps with 21 kinds of anomalies, in their own split."""

    info = read_info(
        __name__,
        "rats40k",
        faults=tuple(f"{kind} anomaly" for kind, number in CLASSES.items() if number),
        channels=(Channel(VALUE, description="of univariate windows; multivariate ones name their own channels"),),
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of both files."""
        return fingerprint_files(self._files(root).values(), "rats40k", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the windows: univariate before multivariate, train before test, as they stand in the files."""
        for variant, path in self._files(root).items():
            content = _read(path)
            for side in SIDES:
                for key, record in _records(path, content, side):
                    yield _recording(path, variant, side, key, record)

    def _files(self, root: Path | None) -> dict[Variant, Path]:
        return {variant: find_one(self.info, root, f"**/{name}", "windows are") for variant, name in FILES.items()}


def parse_channels(where: str, text: str) -> Series:
    """Channels of a text such as `'flow': [1, 2]; 'speed': [3, 4]`; raises `DataError` that says where.

    >>> {name: values.tolist() for name, values in parse_channels("", "'flow': [1, 2]; 'speed': [3, 4.5]").items()}
    {'flow': [1.0, 2.0], 'speed': [3.0, 4.5]}
    """
    try:
        literal = ast.parse("{" + text.replace("; ", ", ") + "}", mode="eval").body
        keys = literal.keys if isinstance(literal, ast.Dict) else []
        names = [None if key is None else ast.literal_eval(key) for key in keys]
        channels = ast.literal_eval(literal)
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(
            f"{where}: Observation does not read 'name': [...]; 'name': [...] ({type(error).__name__}). "
            "Get the file again."
        ) from error
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise DataError(f"{where}: the channels of Observation need names, each once. Get the file again.")
    return {name: number_list(where, "Observation", values) for name, values in channels.items()}


def _read(path: Path) -> dict[str, Any]:
    content = parse_json(str(path), read_text(path))
    lacking = [name for name in SIDES.values() if not isinstance(content, dict) or name not in content]
    if lacking:
        raise DataError(f"{path}: no {' and no '.join(lacking)} in it. Get the file again.")
    return dict(content)


def _records(path: Path, content: dict[str, Any], side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keys and records of one side; at least one."""
    records = content[SIDES[side]]
    pairs = list(records.items()) if isinstance(records, dict) else []
    if isinstance(records, list):
        pairs = [(str(number), record) for number, record in enumerate(records)]
    pairs = [(key, record) for key, record in pairs if record is not None]
    if not pairs:
        raise DataError(f"{path}: no records in {SIDES[side]}. The file is incomplete: get it again.")
    yield from pairs


def _recording(path: Path, variant: Variant, side: Side, key: str, record: object) -> Recording:
    where = f"{path}, {SIDES[side]}, record {key!r}"
    if not isinstance(record, dict) or "Observation" not in record or "Action" not in record:
        raise DataError(f"{where}: expected an object with Observation and Action. Get the file again.")
    series = _series(where, variant, record["Observation"])
    values = np.stack(list(series.values()))
    name = f"{variant}-{side}-{key}"
    return Recording(
        id=name,
        values=values,
        channels=tuple(series),
        labels=np.full(values.shape[1], _label(where, variant, record["Action"]), np.int32),
        group=name,
        asset=str(record.get("Source") or ""),
        side=side,
    )


def _series(where: str, variant: Variant, observation: object) -> Series:
    """Channels (T,) of one window, all of one length, with at least one reading."""
    if variant == "uni":
        series = {VALUE: number_list(where, "Observation", observation)}
    else:
        series = parse_channels(where, observation if isinstance(observation, str) else "")
    lengths = sorted({len(values) for values in series.values()})
    if len(lengths) > 1:
        raise DataError(f"{where}: its channels have {lengths[0]} to {lengths[-1]} values. Get the file again.")
    if not any(is_reading(values).any() for values in series.values()):
        raise DataError(f"{where}: Observation has no value at all. Remove the record, or get the file again.")
    return series


def _label(where: str, variant: Variant, action: object) -> int:
    kind = str(action).strip().lower().removesuffix(" anomaly")
    if kind not in (NORMAL, *KINDS[variant]):
        raise DataError(
            f"{where}: Action {str(action)[:60]!r} is none of {', '.join((NORMAL, *KINDS[variant]))}. "
            "The file is of another version: get it again."
        )
    return CLASSES[kind]
