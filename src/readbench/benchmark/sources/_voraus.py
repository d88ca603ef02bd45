"""voraus-AD: a robot arm that picks and places cans, anomalous in twelve ways.

Layout: `voraus-ad-dataset-100hz.parquet`, or any other one `.parquet` file of the same columns, in `voraus/`. One row
per time step, the rows of one recording together: `time` (seconds from the start of the recording), `sample` (number of
the recording), `anomaly`, `category` (0 to 11, 12 in normal operation), other columns about the recording, and 130
signals. Read row by row in batches, never as a whole. Not verified against the official file: read here was the small
file of the same columns that comes with the dataset's code.

Recordings last about as long as a window of the benchmark's paper, 1024 steps at 100 Hz; the paper does not say how
they are brought to that length. Here each is interpolated linearly onto 1024 points over its whole duration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, Recording, fill_missing, read_info
from readbench.benchmark.sources._files import check_times, find_one, fingerprint_files, numbers_of
from readbench.engine.preparation import is_reading, resample
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same file gives other recordings."""

LENGTH = 1024
BATCH = 8192
"""Rows read at a time."""
NORMAL_CATEGORY = 12
META = ("time", "sample", "anomaly", "category")
MACHINE = {"robot_voltage": "V", "robot_current": "A", "io_current": "A", "system_current": "A"}
PER_AXIS = (
    "target_position",
    "target_velocity",
    "target_acceleration",
    "target_torque",
    "computed_inertia",
    "computed_torque",
    "motor_position",
    "motor_velocity",
    "joint_position",
    "joint_velocity",
    "motor_torque",
    "torque_sensor_a",
    "torque_sensor_b",
    "motor_iq",
    "motor_id",
    "power_motor_el",
    "power_motor_mech",
    "power_load_mech",
    "motor_voltage",
    "supply_voltage",
    "brake_voltage",
)
CHANNELS = (
    *(Channel(name, unit, name.replace("_", " ")) for name, unit in MACHINE.items()),
    *(
        Channel(f"{name}_{axis}", "", f"{name.replace('_', ' ')} of axis {axis}")
        for axis in range(1, 7)
        for name in PER_AXIS
    ),
)
NAMES = tuple(channel.name for channel in CHANNELS)

Table = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Sample:
    """One recording of the file: its number, its first row (from 1), its columns (T,) each."""

    number: int
    first_row: int
    table: Table


@SOURCES.register("voraus", title="Voraus")
class Voraus:
    """Pick-and-place cycles of a robot arm with twelve kinds of anomalies, 130 signals, a recording a window."""

    info = read_info(__name__, "voraus", channels=CHANNELS, length=LENGTH)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of the file."""
        return fingerprint_files([self._file(root)], "voraus", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the recordings in the order of the file."""
        path = self._file(root)
        for sample in read_samples(path):
            yield _recording(path, sample)

    def _file(self, root: Path | None) -> Path:
        return find_one(self.info, root, "*.parquet", "recordings are")


def read_samples(path: Path) -> Iterator[Sample]:
    """The recordings of a file, one in memory at a time; the rows of each stand together."""
    done: set[int] = set()
    number, first_row, row = -1, 1, 1
    held: list[Table] = []
    for batch in _batches(path):
        numbers = _sample_numbers(path, batch["sample"], row)
        for start, stop in pairwise([0, *np.flatnonzero(np.diff(numbers)) + 1, len(numbers)]):
            if numbers[start] != number:
                if held:
                    yield Sample(number, first_row, _joined(held))
                number, first_row, held = int(numbers[start]), row + start, []
                _check_new(path, number, done, first_row)
            held.append({name: values[start:stop] for name, values in batch.items()})
        row += len(numbers)
    if not held:
        raise DataError(f"{path}: no rows. The file is incomplete: get it again.")
    yield Sample(number, first_row, _joined(held))


def _batches(path: Path) -> Iterator[Table]:
    """Columns in use, BATCH rows at a time."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            wrong = [name for name in (*META, *NAMES) if names.count(name) != 1]
            if wrong:
                raise DataError(
                    f"{path}: not one column {', '.join(wrong[:5])}{' ...' * (len(wrong) > 5)}. Get the file again."
                )
            for batch in file.iter_batches(BATCH, columns=[*META, *NAMES], use_threads=False):
                if batch.num_rows:
                    yield {name: numbers_of(batch.column(name)) for name in (*META, *NAMES)}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: {str(error).strip()}. The file is damaged or no parquet file: get it again."
        ) from error


def _joined(parts: list[Table]) -> Table:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _sample_numbers(path: Path, numbers: NDArray[np.float64], row: int) -> NDArray[np.int64]:
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < 1e9) & (numbers % 1 == 0)))
    if wrong.size:
        raise DataError(
            f"{path}, row {row + wrong[0]}: sample {numbers[wrong[0]]:g} is no number of a recording. "
            "Get the file again."
        )
    return numbers.astype(np.int64)


def _check_new(path: Path, number: int, done: set[int], row: int) -> None:
    if number in done:
        raise DataError(
            f"{path}, row {row}: more rows of sample {number} after those of another one. Sort the file by sample and "
            "time, or get it again."
        )
    done.add(number)


def _recording(path: Path, sample: Sample) -> Recording:
    where, table = f"{path}, sample {sample.number} (from row {sample.first_row})", sample.table
    check_times(path, table["time"], first_row=sample.first_row)
    label = _label(where, table)
    values = np.stack([table[name] for name in NAMES])
    if values.shape[1] < 2 or not is_reading(values).any():
        raise DataError(f"{where}: fewer than two rows, or no reading at all. Get the file again.")
    name = f"sample-{sample.number:04d}"
    raw = Recording(name, values, NAMES, np.full(values.shape[1], label, np.int32), group=name, asset="robot")
    return replace(
        raw,
        values=resample(fill_missing(raw).values.astype(np.float32), LENGTH),
        labels=np.full(LENGTH, label, np.int32),
        step=float(table["time"][-1] - table["time"][0]) / (LENGTH - 1),
    )


def _label(where: str, table: Table) -> int:
    """Class of a recording: its one category counted from 1, 0 in normal operation; `anomaly` says the same."""
    categories = np.unique(table["category"])
    if len(categories) != 1 or categories[0] not in range(NORMAL_CATEGORY + 1):
        found = ", ".join(f"{category:g}" for category in categories[:5])
        raise DataError(
            f"{where}: expected one category from 0 to {NORMAL_CATEGORY}, found {found}. Get the file again."
        )
    category = int(categories[0])
    if (table["anomaly"] != float(category != NORMAL_CATEGORY)).any():
        raise DataError(f"{where}: 'anomaly' contradicts category {category}. Get the file again.")
    return 0 if category == NORMAL_CATEGORY else category + 1
