"""ITU/KDDI 5G core: failures that were injected into three emulated 5G core networks, polled every ten seconds.

Layout: `<recording>_data.txt`, `<recording>_label.txt` and `relate_only_dataset/<recording>.txt`, plain or gzipped, in
`itu_5gc/` or in folders below it, such as `ap_data/` of the official repository. Recordings are `01_a_train`,
`01_a_test`, `01_c_train`, `01_c_test`, `02_b_train` and `02_b_test`; those whose data are there are read. The numbers
are the extract of a team of the challenge, 33 a poll; the original files of 73 GB are not read. Read here: the three
test recordings and `02_b_train`. Never seen: the data of `01_a_train` and `01_c_train`. The folder `only_ac_13` holds
some of their failures without a row around them and is not read.

A row of the data is a poll, without header; the k-th line without a comma in `relate_only_dataset` is its time. The
team left out two polls after each start and stop of a failure. Five things need care:

* Octets are counted since the previous row, so that a row after polls that were left out has a burst: they are given
  as ln(1 + octets). The first row of a recording holds absolute counts and the row after a pause of more than a minute
  those of the pause; both are left out.
* A failure has 4 to 6 rows. Its window are 5 rows before it and 11 from its first row on, the same for every class.
* Six rows after a failure count as neither normal nor faulty. So do rows in which an interface is down although they
  are labelled normal: an hour and a half of `01_a_test`, in which five failures were injected.
* The extract reads another interface of `amf` in network b: its interface-down failures do not show. Failures of that
  class in which no interface is down are left out, as are those whose five rows before are not normal.
* The injector serves the networks in turn, and each failure stands alone: it is a group, with the normal rows ahead of
  it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import BeforeSource, Channel, Cuts, Recording, read_info, rows_before
from readbench.benchmark.sources import _files
from readbench.benchmark.sources._episodes import runs
from readbench.engine.registry import SOURCES
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

STEP = 10.0  # s
PAUSE = 60.0  # s
"""Longest time between two rows in which polls were merely left out."""
LENGTH, AHEAD = 16, 5
"""Rows of a window, and how many of them are before the failure."""
MARGIN = 6
"""Rows before and after a failure in which no normal window lies; those after it have no label."""
BEFORE = 32
"""Rows of the time before, five minutes."""

NODES = ("udm", "amf", "ausf")
INTERFACES = tuple(f"{node} interface down" for node in NODES)
OCTETS = tuple(f"{node} {way}-octets" for way in ("in", "out") for node in NODES)
CHANNELS = (
    *(Channel(name, "", "0 up, 1 down") for name in INTERFACES),
    *(Channel(name, "ln(1 + octets)", "since the previous row") for name in OCTETS),
    *(
        Channel(f"{node} core {core} {kind}", unit, f"{kind} share of the processor")
        for node in NODES
        for core in range(2)
        for kind, unit in (("user", "%"), ("system", "%"), ("idle", ""))
    ),
    *(
        channel
        for node in NODES
        for channel in (
            Channel(f"{node} memory critical", "", "0 healthy, 1 critical"),
            Channel(f"{node} memory used", "", "share of the memory"),
        )
    ),
)
"""As the columns of the data; idle processor and used memory are 0 to 1."""
NAMES = tuple(channel.name for channel in CHANNELS)
FAULTS = ("bridge without interface", "interface down", "packet loss", "memory stress", "processor overload")
"""Codes 1 to 5: bridge-delif, interface-down, interface-loss-start, memory-stress-start, vcpu-overload-start."""
INTERFACE_DOWN = 2

_RECORDING = re.compile(r"(0\d_[abc]_(?:train|test))_data\.txt")
_POLL = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\.json")


@SOURCES.register("itu_5gc", title="ITU 5G core")
@dataclass(eq=False)
class Itu5gc(BeforeSource):
    """Five kinds of failures in three 5G core networks, one window each.

    Args:
        doubtful: also use failures that do not show in the data, or whose rows before are not normal.
    """

    doubtful: bool = False

    info = read_info(__name__, "itu_5gc", faults=FAULTS, channels=CHANNELS, length=LENGTH, before_steps=BEFORE)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of data, labels and times of all recordings, and of which failures are used."""
        files = [file for one in self._recordings(root) for file in (one.data, one.labels, one.times)]
        return _files.fingerprint_files(files, "itu_5gc", VERSION, self.doubtful)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the failures with the normal rows ahead of each, recording by recording."""
        for one in self._recordings(root):
            yield from self._failures(one, *read_rows(one))

    def _recordings(self, root: Path | None) -> list[RecordingFiles]:
        found = _files.name_each(_files.find_files(self.info, root, ["**/0[0-9]_[abc]_*_data.txt"]), _recording_name)
        return [RecordingFiles.beside(name, path) for name, path in sorted(found.items())]

    def _failures(
        self, one: RecordingFiles, values: NDArray[np.float64], labels: NDArray[np.int32], times: NDArray[np.float64]
    ) -> Iterator[Recording]:
        """A recording for each failure: the rows since the window of the failure before, until its own window ends."""
        failures = [span for label in range(1, len(FAULTS) + 1) for span in runs(labels == label)]
        marked = mark_rows(values, labels)
        begin = 0
        for number, (first, stop) in enumerate([*sorted(failures), (len(labels), len(labels))]):
            end = min(first - AHEAD + LENGTH, len(labels))
            begin = max(0, min(begin, first - AHEAD))
            rows = slice(begin, end)
            cuts = cut_failure(values[:, rows], marked[rows], (first - begin, stop - begin), doubtful=self.doubtful)
            before = values[:, rows_before(marked, begin, self.info.protocol)]
            if end > begin:
                yield Recording(
                    id=f"{one.name}/{number:04d}",
                    values=values[:, rows],
                    channels=NAMES,
                    labels=marked[rows],
                    group=f"{one.name}/{number:04d}",
                    asset=one.network,
                    start=float(times[begin]),
                    step=STEP,
                    cuts=cuts,
                    rate=1 / STEP,
                    before=before,
                )
            begin = end


def _recording_name(data: Path) -> str:
    match = _RECORDING.fullmatch(_files.plain_name(data.name))
    if match is None:
        raise DataError(f"{data}: the name is not that of a recording, such as 01_a_test_data.txt. Remove it.")
    return match[1]


@dataclass(frozen=True)
class RecordingFiles:
    """The three files of a recording, its name and its network."""

    name: str
    network: str
    data: Path
    labels: Path
    times: Path

    @classmethod
    def beside(cls, name: str, data: Path) -> Self:
        """The other files by the place of the data; the network is the second part of the name."""
        info, labels, times = Itu5gc.info, f"{name}_label.txt", f"relate_only_dataset/{name}.txt"
        return cls(
            name,
            name.split("_")[1],
            data,
            _files.find_beside(info, data, labels),
            _files.find_beside(info, data, times),
        )


def read_rows(one: RecordingFiles) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
    """Readings (33, T), labels (T,) and times (T,) of a recording, without rows that count more than ten seconds."""
    table = _files.read_csv(one.data, NAMES, delimiter=" ", header=NAMES)
    codes = _files.read_csv(one.labels, ["label"], header=["label"])["label"]
    times = read_times(one.times)
    values = np.stack([table[name] for name in NAMES])
    if not values.shape[1] == len(codes) == len(times):
        raise DataError(
            f"{one.data}: {values.shape[1]} rows, but {len(codes)} labels in {one.labels.name} and {len(times)} times "
            f"in {one.times}. Get the three files again."
        )
    known = np.isin(codes, range(len(FAULTS) + 1))
    _files.check_rows(
        one.labels, known, lambda row: f"the label is {codes[row]:g}, but only 0 to {len(FAULTS)} have a meaning"
    )
    octets = values[len(INTERFACES) : len(INTERFACES) + len(OCTETS)]
    octets[:] = np.log1p(np.where(octets < 0, np.nan, octets))  # a counter that was set back tells nothing
    kept = np.diff(times, prepend=-np.inf) <= PAUSE
    return values[:, kept], codes[kept].astype(np.int32), times[kept]


def read_times(path: Path) -> NDArray[np.float64]:
    """(T,) times of the polls in seconds since 1970; lines with a comma are events."""
    polls = [(row, line) for row, line in enumerate(_files.read_text(path).split(), start=1) if "," not in line]
    stamps = []
    for row, line in polls:
        if (match := _POLL.fullmatch(line)) is None:
            raise DataError(
                f"{path}, line {row}: {line[:40]!r} is no time of a poll (20210204204420.json). Get it again."
            )
        year, month, day, hour, minute, second = match.groups()
        stamps.append(f"{year}-{month}-{day}T{hour}:{minute}:{second}")
    try:
        times = np.array(stamps, "datetime64[s]").astype(np.float64)
    except ValueError as error:
        raise DataError(f"{path}: a poll has no possible time ({error}). Get the file again.") from error
    _files.check_times(path, times)
    return times


def mark_rows(values: NDArray[np.float64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """(T,) labels without those of rows just after a failure, and of normal rows in which an interface is down."""
    normal = labels == NORMAL
    marked = np.where(normal & (values[: len(INTERFACES)] > 0).any(axis=0), UNLABELLED, labels).astype(np.int32)
    for _, stop in runs(~normal):
        after = slice(stop, stop + MARGIN)
        marked[after] = np.where(normal[after], UNLABELLED, marked[after])
    return marked


def cut_failure(
    values: NDArray[np.float64], labels: NDArray[np.int32], failure: tuple[int, int], *, doubtful: bool
) -> Cuts:
    """The window of a failure, if it is to be used, and normal windows without overlap ahead of it.

    Args:
        values: (33, T) rows until the window of the failure ends.
        labels: (T,) of the rows.
        failure: its first row and one past its last; both T where there is none.
        doubtful: use it in any case.
    """
    first, stop = failure
    start = first - AHEAD
    starts, found = [], []
    if start >= 0 and start + LENGTH <= len(labels):
        shows = labels[first] != INTERFACE_DOWN or bool((values[: len(INTERFACES), first:stop] > 0).any())
        if doubtful or (shows and bool((labels[start:first] == NORMAL).all())):
            starts, found = [start], [int(labels[first])]
    last = len(labels) if first == len(labels) else max(0, first - MARGIN)
    for begin, end in runs(labels[:last] == NORMAL):
        own = range(begin, end - LENGTH + 1, LENGTH)
        starts += own
        found += [NORMAL] * len(own)
    return Cuts(np.array(starts, np.intp), np.array(found, np.int32))
