"""CTSR: the UCR archive as one retrieval task, in which every class of every dataset is a class.

Read are `<Dataset>_TRAIN` and `<Dataset>_TEST` files, `.tsv` as in `UCRArchive_2018/<Dataset>/`, plain or gzipped, in
`ctsr/` itself or one folder below it. The archive's second copy of datasets with gaps, in a folder whose name begins
with `Missing_value`, is left alone: gaps are handled here. A dataset may lack one of its two files. `.ts` (aeon,
sktime) and `.txt` files are read where there is no `.tsv`; of the official layouts, only 108 of the 128 `.tsv`
datasets were seen working.

All are text files of labelled univariate series:

* `.tsv` and `.txt`: one series per line, its label (an integer) first, tabs or spaces between; `NaN` pads short series
  at the end and marks gaps inside, so that all lines of a file have as many fields.
* `.ts`: comments (`#`) and directives (`@`), then `@data` and per line `value,value,...:label`; `?` or `NaN` is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, fill_missing, read_info
from readbench.benchmark.sources._files import find_files, fingerprint_files, plain_name, read_text
from readbench.engine.preparation import is_reading, resample
from readbench.engine.registry import SOURCES
from readbench.errors import DataError, SourceMissingError

SUFFIXES = (".tsv", ".ts", ".txt")
"""Preferred first, where a set of series is there in several forms."""

Row = tuple[int, str, str]
"""Line number from 1, label, values as text."""


@dataclass(frozen=True, eq=False)
class ArchiveSeries:
    """One line of a file: its number (from 1), its label, its values (T,), which may have gaps but not at the end."""

    line: int
    label: str
    values: NDArray[np.float64]


def read_labels(path: Path) -> set[str]:
    """All labels of a file, without its values."""
    return {label for _, label, _ in _rows(path)}


def read_series(path: Path) -> Iterator[ArchiveSeries]:
    """The series of a file, in its order."""
    separator = _separator(path)
    width = 0
    for line, label, text in _rows(path):
        values = _values(path, line, text.split(separator))
        if separator != "," and len(values) != (width := width or len(values)):
            raise DataError(
                f"{path}: line {line} has {len(values)} values, the first one {width}. Short series are padded with "
                "NaN: the file is incomplete or of another kind, get it again."
            )
        read = np.flatnonzero(is_reading(values))
        if not read.size:
            raise DataError(f"{path}: the series in line {line} has no value. Remove the line, or get the file again.")
        yield ArchiveSeries(line, label, values[: read[-1] + 1])


def label_order(label: str) -> tuple[float, str]:
    """Sorts labels as numbers, and those that are none after them by name.

    >>> sorted(["10", "2", "-1", "walking"], key=label_order)
    ['-1', '2', '10', 'walking']
    """
    try:
        return int(label), ""
    except ValueError:
        return float("inf"), label


def _rows(path: Path) -> Iterator[Row]:
    """Every line that holds a series; at least one."""
    lines = enumerate(read_text(path).splitlines(), start=1)
    filled = ((number, line.strip()) for number, line in lines)
    filled = ((number, line) for number, line in filled if line)
    row = None
    for row in _ts_rows(path, filled) if _separator(path) == "," else _table_rows(path, filled):
        yield row
    if row is None:
        raise DataError(f"{path}: no series in it. The file is empty or incomplete: get it again.")


def _table_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    separator = _separator(path)
    for number, line in lines:
        label, text = (*line.split(separator, 1), "")[:2]
        integer = _integer(label)
        if integer is None:
            raise DataError(
                f"{path}: line {number} starts with {label[:40]!r}, but an integer class label must be there."
            )
        yield number, integer, text


def _ts_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    for _, line in lines:
        if line.lower() == "@data":
            break
        if not line.startswith(("#", "@")):
            raise DataError(f"{path}: {line[:40]!r} stands before the line @data. This is no .ts file.")
    for number, line in lines:
        text, colon, label = line.rpartition(":")
        label = label.strip()
        if not colon or not label or ":" in text:
            raise DataError(
                f"{path}: line {number} should read value,value,...:label. Files without labels or with several "
                "channels cannot be used here."
            )
        yield number, _integer(label) or label, text


def _separator(path: Path) -> str | None:
    """What stands between values; None for any white space."""
    return {".ts": ",", ".tsv": "\t"}.get(Path(plain_name(path.name)).suffix)


def _integer(label: str) -> str | None:
    """A label that is an integer, in its shortest form; None for any other."""
    try:
        number = float(label)
    except ValueError:
        return None
    return str(int(number)) if number.is_integer() else None


def _values(path: Path, line: int, fields: list[str]) -> NDArray[np.float64]:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        return np.array([_value(path, line, column, field) for column, field in enumerate(fields, start=1)])


def _value(path: Path, line: int, column: int, field: str) -> float:
    if field.strip() == "?":
        return float("nan")
    try:
        return float(field)
    except ValueError as error:
        raise DataError(
            f"{path}: value {column} of line {line} is {field[:40]!r}, which is no number. Get the file again."
        ) from error


VERSION = 1
"""Raise when the recordings change although the files do not."""
LENGTH = 512
SIDES = ("TRAIN", "TEST")


@SOURCES.register("ctsr", title="CTSR")
class Ctsr:
    """Series of the UCR archive; a class is a dataset together with one of its labels.

    The class names depend on which datasets are there: `resolved` gives the source with all of them.
    """

    info = read_info(__name__, "ctsr", length=LENGTH)

    _only = ""

    def only(self, dataset: str) -> Ctsr:
        """The source with one dataset of the archive alone."""
        source = Ctsr()
        source._only = dataset
        return source

    def divided(self, root: Path | None) -> list[str]:
        """Names of the datasets under `root` that have both sides."""
        names = [_dataset(path) for path in self._files(root)]
        return [name for name in dict.fromkeys(names) if names.count(name) == len(SIDES)]

    def resolved(self, root: Path | None) -> Ctsr:
        """The source with the classes of the datasets under `root`: by name of dataset, then by label as a number."""
        labels: dict[str, set[str]] = {}
        for path in self._files(root):
            labels.setdefault(_dataset(path), set()).update(read_labels(path))
        faults = [
            _class_name(dataset, label) for dataset in labels for label in sorted(labels[dataset], key=label_order)
        ]
        source = self.only(self._only)
        source.info = replace(self.info, faults=tuple(faults))
        return source

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all files."""
        return fingerprint_files(self._files(root), VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """One recording per series, dataset after dataset, train before test."""
        classes = self.info.classes if self.info.faults else self.resolved(root).info.classes
        codes = {name: code for code, name in enumerate(classes)}
        for path in self._files(root):
            for series in read_series(path):
                name = _class_name(_dataset(path), series.label)
                if name not in codes:
                    raise DataError(f"{path}: class {name!r} in line {series.line} is new. Resolve the source again.")
                yield _recording(path, series, codes[name])

    def _files(self, root: Path | None) -> list[Path]:
        """One file per dataset and side, sorted by dataset, train first."""
        patterns = [f"{folder}/*_{side}{s}" for folder in ("*", "*/*") for side in SIDES for s in SUFFIXES]
        chosen: dict[tuple[str, int], Path] = {}
        for path in sorted(find_files(self.info, root, patterns), key=_preference):
            name = Path(plain_name(path.name)).stem
            if path.parent.parent.name.startswith("Missing_value") or _dataset(path) != name.rpartition("_")[0]:
                continue
            if self._only and _dataset(path) != self._only:
                continue
            key = (_dataset(path), SIDES.index(name.rpartition("_")[2]))
            if (other := chosen.setdefault(key, path)) != path and other.parent != path.parent:
                raise DataError(f"{path.parent}: dataset {key[0]} is also in {other.parent}. Keep one of the two.")
        if not chosen:
            raise SourceMissingError(
                f"ctsr: no <Dataset>/<Dataset>_TRAIN.tsv below {root}/ctsr. Get the files from {self.info.url}"
            )
        return [chosen[key] for key in sorted(chosen)]


def _recording(path: Path, series: ArchiveSeries, label: int) -> Recording:
    """The series without gaps, on 512 points; its id says where it stands."""
    name = f"{Path(plain_name(path.name)).stem}:{series.line}"
    values = series.values[None]
    raw = Recording(name, values, ("value",), np.full(values.shape[1], label, np.int32), group=name)
    grid = resample(fill_missing(raw).values.astype(np.float32), LENGTH)
    return replace(raw, values=grid, labels=np.full(LENGTH, label, np.int32))


def _dataset(path: Path) -> str:
    return path.parent.name


def _class_name(dataset: str, label: str) -> str:
    return f"{dataset} / {label}"


def _preference(path: Path) -> tuple[int, str]:
    return SUFFIXES.index(Path(plain_name(path.name)).suffix), path.as_posix()
