"""The 664 signals of ROAD: from extracted tables or frames to one value per signal and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.data.sources.files import csv_blocks
from readbench.data.sources.road.can import Frames, Layout, decode, steady_clock
from readbench.errors import DataError
from readbench.windows.gaps import is_reading

_COUNTS = """
006:3 00E:3 025:4 033:7 03A:1 03C:2 03D:5 041:3 075:3 0A7:9 0BA:8 0C0:3 0CC:8 0D0:7 0D7:5 0F1:5 0F4:4 0F8:7 0FD:2 107:9
125:7 12C:7 130:6 153:13 162:7 193:3 19C:5 1A4:3 1AA:4 1C4:9 1CA:3 1D6:14 1E5:3 207:11 20E:4 21D:9 230:4 239:5 26E:10
273:2 274:16 277:5 280:5 28B:2 295:2 297:22 2A3:12 2A4:5 2AB:3 2B4:9 2B7:2 2C1:8 2D2:8 2D7:3 2E1:2 2E2:7 30A:9 32D:11
345:7 354:4 366:6 371:2 3A2:6 3B9:3 3C1:5 3E4:5 407:13 419:8 430:8 434:5 464:6 497:2 498:5 4C9:9 4CB:1 4E7:2 4EE:11
4FD:10 51B:15 522:4 533:1 55C:9 576:4 577:2 580:3 585:13 5AF:15 5B3:5 5E1:6 5E8:10 5FD:2 618:4 636:5 655:9 65C:8 662:2
66C:9 671:2 67D:8 684:6 69D:17 69E:6 6D7:8 6E0:4 6FC:11
"""
SIGNALS: dict[int, int] = {int(pair.split(":")[0], 16): int(pair.split(":")[1]) for pair in _COUNTS.split()}
"""CAN id -> number of its signals: 664 on 105 ids."""
CHANNELS = tuple(f"0x{number:03X}_{signal}" for number, count in SIGNALS.items() for signal in range(1, count + 1))
COLUMNS = tuple(f"Signal_{signal}_of_ID" for signal in range(1, max(SIGNALS.values()) + 1))
"""Signal columns of an extracted table."""


@dataclass(frozen=True, eq=False)
class Track:
    """What one id sends: times (F,) in seconds since the start, never going back, and values (S, F)."""

    times: NDArray[np.float64]
    values: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Drive:
    """The tracks of a capture by id, its length in seconds, and begin and end of the frames labelled as attack."""

    tracks: dict[int, Track]
    elapsed: float
    injected: tuple[float, float] | None = None

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float32]:
        """(664, G) last value of every signal at G times.

        Before the first frame of an id stands its first value; an id that is never on the bus is NaN.
        """
        rows = []
        for number, count in SIGNALS.items():
            if track := self.tracks.get(number):
                last = np.searchsorted(track.times, times, side="right") - 1
                rows.append(track.values[:, np.maximum(last, 0)])
            else:
                rows.append(np.full((count, len(times)), np.nan, np.float32))
        return np.concatenate(rows)


def decode_frames(path: Path, frames: Frames, layout: Layout) -> Drive:
    """Decode the frames of a capture; ids without signals, such as the filler 0xFFF, tell nothing."""
    tracks = {
        number: Track(times, decode(payloads, layout[number]))
        for number, times, payloads in frames.by_id()
        if number in layout
    }
    if not tracks:
        raise DataError(f"{path}: none of its CAN ids is one of ROAD's. Is it a log of another car?")
    return Drive(tracks, float(frames.times[-1]))


def read_extraction(path: Path) -> Drive:
    """Read an official table: Label, Time, ID (decimal), then as many columns filled as the id has signals."""
    times, injected = [], []
    pieces: dict[int, list[tuple[NDArray[np.intp], NDArray[np.float32]]]] = {}
    done = 0
    for block in csv_blocks(path, ("Label", "Time", "ID", *COLUMNS)):
        for number, rows, values in _by_id(path, block, done):
            pieces.setdefault(number, []).append((done + rows, values))
        times.append(block["Time"])
        injected.append(block["Label"] == 1)
        done += len(block["ID"])
    if not pieces:
        raise DataError(f"{path}: no row with a signal of ROAD. The file is incomplete or of another kind.")
    clock = steady_clock(path, np.concatenate(times))
    tracks = {
        number: Track(clock[np.concatenate([rows for rows, _ in parts])], np.concatenate([v for _, v in parts], axis=1))
        for number, parts in pieces.items()
    }
    attack = clock[np.concatenate(injected)]
    return Drive(tracks, float(clock[-1]), (float(attack[0]), float(attack[-1])) if attack.size else None)


def _by_id(
    path: Path, block: dict[str, NDArray[np.float64]], done: int
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float32]]]:
    """Rows and values (S, rows) of each id in a block that follows on `done` rows."""
    ids = block["ID"]
    wrong = ~((ids >= 0) & (ids < 0x1000) & (ids == np.floor(ids))) | ~np.isin(block["Label"], (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{path}: row {done + row + 2} has ID {ids[row]} and Label {block['Label'][row]}; expected a CAN id in "
            "decimal, and 0 or 1."
        )
    table = np.stack([block[column] for column in COLUMNS])
    readings = np.where(is_reading(table), table, np.nan).astype(np.float32)
    order = np.argsort(ids, kind="stable")
    numbers, starts = np.unique(ids[order], return_index=True)
    for number, rows in zip(numbers.astype(int).tolist(), np.split(order, starts[1:]), strict=True):
        count = SIGNALS.get(number, 0)
        if not np.isnan(readings[count:, rows]).all():
            raise DataError(f"{path}: id 0x{number:03X} has more than {count} signals. The file is of another version.")
        if count:
            yield number, rows, readings[:count, rows]
