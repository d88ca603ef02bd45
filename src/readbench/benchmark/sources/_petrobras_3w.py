"""Petrobras 3W: undesirable events in offshore oil wells, real, simulated and drawn by hand.

Layout: `petrobras_3w/dataset/<0..9>/<instance>.parquet` (version 2 of the dataset) or `.csv` (version 1), also with
`data/` for `dataset/` or with the ten folders directly in `petrobras_3w/`; CSV files may be gzipped. Both
versions were read here: real instances of version 1 for classes 0, 1, 2 and 5 to 8, real and simulated ones of version
2 for classes 3, 4 and 9. Never seen working: the whole official dataset, hand-drawn instances, real ones of class 9.

The seven sensors that both versions have and that real wells record are read by name; what else version 2 holds is
left out. Four things need care:

* Labels: `class` is 0, the event's number in its steady phase, or 100 more during the transient before it. A row
  without class (the first hour of real instances in version 2, single rows in version 1) is not normal: it is removed.
* Sentinels: some sensors stand at impossible values. By default (rule `c`) a pressure must be above 0 and at most
  1e9 Pa, any reading at most 1e10 in size; the others are no readings. This leaves 2 to 7 sensors per instance, the
  range that the benchmark's paper states.
* Sensors that an instance never recorded are no channels, and rows with a gap in another sensor are left out.
* Clock change: two instances of class 0 run through the end of daylight saving time on 18 February 2017. Their clock
  goes back by one hour while the readings run on, so the order of the rows is right and is kept; sorting by time would
  mix two hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.benchmark.protocol import CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

Sentinels = Literal["c", "b", "a"]
Sensors = Literal["nominal", "most", "common"]
Table = dict[str, NDArray[np.float64]]

TRANSIENT = 100
EVENTS_WITH_TRANSIENT = (1, 2, 5, 6, 7, 8, 9)
ONSET_CODES = tuple((TRANSIENT + event, event) for event in EVENTS_WITH_TRANSIENT)
VOCABULARY = (*range(10), *(code for code, _ in ONSET_CODES))

FACTS = read_info(__name__, "petrobras_3w", onset_codes=ONSET_CODES)
NAMES = tuple(sensor.name for sensor in FACTS.channels)
KEPT: dict[Sensors, tuple[str, ...]] = {"nominal": NAMES, "most": ("P-TPT", "T-TPT", "P-MON-CKP"), "common": ("T-TPT",)}
"""Sensors to read: all seven, those that most wells have, the one that every well has (in the copy read here)."""
PRESSURES = np.array([sensor.unit == "Pa" for sensor in FACTS.channels])

LARGEST_READING = 1e10
LARGEST_PRESSURE = 1e9  # Pa
CLOCK_CHANGE = 3600.0  # s

_INSTANCE = re.compile(r"(?P<asset>WELL-\d+)_\d{14}|(?P<made>SIMULATED|DRAWN)_\d+")
_PLACES = ("dataset/", "data/", "")


@SOURCES.register("petrobras_3w", title="Petrobras 3W")
@dataclass(eq=False)
class Petrobras3W(CutSource):
    """Nine kinds of undesirable events in oil wells, 2 to 7 sensors per instance.

    Args:
        sentinels: which readings count as missing. `a`: larger than 1e10 in size. `b`: also pressures below 0 or above
            1e9 Pa. `c`: also pressures of exactly 0, at which dead sensors stand.
        sensors: `nominal`: all seven. `most`: three that 16 of 19 wells and more have. `common`: the one that all have.
            Which sensors a well has tells much of its faults; with fewer of them there is less to tell by.
    """

    sentinels: Sentinels = "c"
    sensors: Sensors = "nominal"

    info = FACTS

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents and places of all instances, and of the rule for sentinels."""
        files = self._files(root)
        names = [_files.short_name(path) for path in files]
        kept = () if self.sensors == "nominal" else KEPT[self.sensors]
        return _files.fingerprint_files(files, "petrobras_3w", VERSION, self.sentinels, names, *kept)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the instances, one file each, by class folder and name; unlabelled rows are already left out."""
        for path in self._files(root):
            yield self._recording(path)

    def _files(self, root: Path | None) -> list[Path]:
        patterns = [f"{place}[0-9]/*.{kind}" for place in _PLACES for kind in ("parquet", "csv")]
        files = _files.find_files(self.info, root, patterns)
        _files.check_unique(files)
        return files

    def _recording(self, path: Path) -> Recording:
        instance, asset = _files.short_name(path), _asset(path)
        columns = (*NAMES, "class")
        is_parquet = _files.plain_name(path.name).endswith(".parquet")
        table = _read_parquet(path, columns) if is_parquet else _files.read_csv(path, columns, time="timestamp")
        _files.check_times(path, table["timestamp"], clock_change=CLOCK_CHANGE)
        labelled = _labelled(path, table["class"])
        values = drop_sentinels(np.stack([table[name][labelled] for name in NAMES]), self.sentinels)
        kept = KEPT[self.sensors]
        return Recording(
            id=instance,
            values=values[[NAMES.index(name) for name in kept]],
            channels=kept,
            labels=table["class"][labelled].astype(np.int32),
            group=instance,
            asset=asset,
            start=float(table["timestamp"][labelled][0]),
            rate=1.0,
        )


def drop_sentinels(values: NDArray[np.float64], rule: Sentinels) -> NDArray[np.float64]:
    """Readings (7, T) with NaN where a sensor stands at an impossible value, by one of the three rules."""
    wrong = np.abs(values) > LARGEST_READING
    if rule in ("b", "c"):
        wrong |= PRESSURES[:, None] & ((values < 0) | (values > LARGEST_PRESSURE))
    if rule == "c":
        wrong |= PRESSURES[:, None] & (values == 0)
    return np.where(wrong, np.nan, values)


def _asset(path: Path) -> str:
    """The well of a real instance; all simulated instances are one asset, and so are all drawn ones."""
    match = _INSTANCE.fullmatch(_files.plain_stem(path))
    if match is None:
        raise DataError(
            f"{path}: instances are named WELL-<number>_<14 digits>, SIMULATED_<number> or DRAWN_<number>. "
            "Rename or remove the file."
        )
    return match["asset"] or match["made"].lower()


def _read_parquet(path: Path, columns: tuple[str, ...]) -> Table:
    """Columns of one instance, (rows,) each, NaN where there is nothing; `timestamp` in seconds since 1970."""
    try:
        with _files.open_binary(path) as file:
            # Instances are a few megabytes, and from memory a gzipped one is read like any other.
            content = pyarrow.parquet.ParquetFile(pa.BufferReader(file.read()))
            _check_columns(path, content.schema_arrow, columns)
            table = content.read(columns=[*columns, "timestamp"], use_threads=False)
        numbers: Table = {name: _files.numbers_of(table[name]) for name in (*columns, "timestamp")}
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: {str(error).strip()}. The file is damaged or no parquet file: get it again."
        ) from error
    if not table.num_rows:
        raise DataError(f"{path}: no rows. The file is incomplete: get it again.")
    return numbers


def _check_columns(path: Path, schema: pa.Schema, columns: tuple[str, ...]) -> None:
    wrong = [name for name in (*columns, "timestamp") if schema.names.count(name) != 1]
    if wrong:
        raise DataError(
            f"{path}: not one column {', '.join(wrong)}; it has {', '.join(schema.names)}. Get the file again."
        )
    if not pa.types.is_timestamp(schema.field("timestamp").type):
        raise DataError(f"{path}: 'timestamp' holds {schema.field('timestamp').type}, not times. Get the file again.")


def _labelled(path: Path, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) which rows have a class; any class must be one that the dataset defines."""
    labelled = ~np.isnan(codes)
    _files.check_rows(
        path,
        ~labelled | np.isin(codes, VOCABULARY),
        lambda row: f"class {codes[row]:g} is none of {', '.join(map(str, VOCABULARY))}",
        remedy="The file is damaged or of a newer version of the dataset.",
    )
    if not labelled.any():
        raise DataError(f"{path}: no row has a class. Get the file again, or remove it.")
    return labelled
