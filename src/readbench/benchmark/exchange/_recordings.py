"""Recordings from a user's tables: a source like any other, whose windows are built once, when it is imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from readbench.benchmark.protocol import NORMAL_CLASS, Channel, Recording, SourceInfo, write_windows_of
from readbench.benchmark.sources import fingerprint_files
from readbench.common.tables import TABLE_ENDINGS, Limits, read_table
from readbench.engine.window_tables import Roles, TableSeries, series_of
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import DataError


@dataclass(frozen=True)
class CaseFacts:
    """What a table of cases says about one file."""

    label: str = ""
    group: str = ""
    asset: str = ""


@dataclass(frozen=True)
class ImportedRecordings:
    """Tables of recordings.

    Args:
        info: facts; channels and faults are filled in by `surveyed`.
        files: the tables, in order.
        roles: what their columns mean.
        cases: of files that are one case each, what is known about them.
        normal: the label of normal operation.
        blank_is_normal: rows without a label are normal; otherwise nobody knows what they are.
        limits: most bytes, rows and columns of a table; None for the usual ones.
        labelled: steps per label, after `surveyed`.
        rows: rows of all tables, after `surveyed`.
    """

    info: SourceInfo
    files: tuple[Path, ...]
    roles: Roles
    cases: Mapping[Path, CaseFacts] = field(default_factory=dict)
    normal: str = "normal"
    blank_is_normal: bool = False
    limits: Limits | None = None
    labelled: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0

    def surveyed(self) -> ImportedRecordings:
        """The same with its channels, faults and counts filled in from the files, which are read once for this."""
        steps: Counter[str] = Counter()
        channels: dict[str, None] = {}
        rows = 0
        for _, series in self._series():
            codes, counts = np.unique(series.labels, return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                steps[self._name(series, code)] += count
            channels |= dict.fromkeys(series.channels)
            rows += len(series.labels)
        faults = tuple(sorted(set(steps) - {"", self.normal}))
        if not faults:
            raise DataError(
                f"No row has a fault: the labels are {', '.join(filter(None, steps)) or 'all empty'}. "
                f"Name the label column (--label), or the label of normal operation (--normal)."
            )
        if NORMAL_CLASS in faults:
            raise DataError(
                f"{NORMAL_CLASS!r} is a fault here, but it is the name of normal operation. Rename the label."
            )
        info = replace(self.info, channels=tuple(map(Channel, channels)), faults=faults)
        return replace(self, info=info, labelled=dict(sorted(steps.items())), rows=rows)

    def write(self, folder: Path) -> None:
        """Clean, cut and label all recordings into a folder of windows."""
        write_windows_of(self, None, folder)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the files and of how they are read."""
        del root
        return fingerprint_files(self.files, self.roles, self.normal, self.blank_is_normal)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the cases, file by file."""
        del root
        classes = {name: code for code, name in enumerate((self.normal, *self.info.faults))} | {"": UNLABELLED}
        for path, series in self._series():
            codes = [classes[self._name(series, code)] for code in range(len(series.names))]
            case = self.cases.get(path, CaseFacts())
            name = series.id if len(self.files) == 1 or self.cases else f"{path.stem}/{series.id}"
            yield Recording(
                id=name,
                values=series.values,
                channels=series.channels,
                labels=np.array([*codes, classes[self._name(series, UNLABELLED)]], np.int32)[series.labels],
                group=case.group or (series.group if self.roles.group else name),
                asset=case.asset or series.asset,
                start=series.start,
                step=series.step,
            )

    def _series(self) -> Iterator[tuple[Path, TableSeries]]:
        for path in self.files:
            for series in series_of(read_table(path, self.limits), self.roles):
                case = self.cases.get(path)
                yield path, _labelled(series, case) if case and not self.roles.label else series

    def _name(self, series: TableSeries, code: int) -> str:
        """The label behind a code, "" where nobody knows."""
        if code != UNLABELLED:
            return series.names[code]
        return self.normal if self.blank_is_normal else ""


def table_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The tables that paths mean: files themselves, and all tables in folders, sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            own = sorted(p for p in path.rglob("*") if p.is_file() and _is_table(p))
            if not own:
                raise DataError(f"{path}: no table in this folder. Tables end in {', '.join(TABLE_ENDINGS)}.")
            found += own
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"{path}: no such file or folder.")
    return tuple(dict.fromkeys(found))


def read_cases(path: Path, limits: Limits | None = None) -> dict[Path, CaseFacts]:
    """A table of cases: `file`, from its own folder on, and `label`, `group`, `asset` where they are known."""
    table = read_table(path, limits)
    codes, names = table.codes("file")
    texts = {column: _texts(table.codes(column)) for column in ("label", "group", "asset") if column in table.columns}
    cases: dict[Path, CaseFacts] = {}
    for row, code in enumerate(codes.tolist()):
        file = path.parent / names[code] if code >= 0 else None
        if file is None or file in cases or not file.is_file():
            what = (
                "names no file" if file is None else f"names {file} again" if file in cases else f"names no file {file}"
            )
            raise DataError(f"{path}, row {row + 1}: {what}. Each row needs a file of its own in column 'file'.")
        cases[file] = CaseFacts(**{column: column_texts[row] for column, column_texts in texts.items()})
    return cases


def _labelled(series: TableSeries, case: CaseFacts) -> TableSeries:
    """A whole series with the label of its case."""
    code = NORMAL if case.label else UNLABELLED  # the first and only name, or none
    return replace(
        series, labels=np.full(len(series.labels), code, np.int32), names=(case.label,) if case.label else ()
    )


def _texts(column: tuple[np.ndarray, tuple[str, ...]]) -> list[str]:
    codes, names = column
    return [names[code] if code >= 0 else "" for code in codes.tolist()]


def _is_table(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(TABLE_ENDINGS)
