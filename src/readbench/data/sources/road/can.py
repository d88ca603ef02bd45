"""CAN frames: candump logs, bare frame tables without times, and the signals inside the payloads.

Bits are numbered as in a DBC file: bit b is bit b % 8 (0 the lowest) of byte b // 8. A Motorola signal starts at its
highest bit and runs on through the following bytes, an Intel signal starts at its lowest bit.

The reader of DBC files is our own, with `cantools` as the oracle of its tests: it takes 40 lines, where cantools 45
would add 7 packages to a plain installation, and reads a layout of 664 signals in 4 ms against 39 ms, after 0.15 s of
import.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from readbench.data.sources.files import open_binary, read_text
from readbench.errors import DataError

MAX_STEP_BACK = 0.01
"""Seconds by which a clock may step back; it is then held. More is an error."""
MAX_GAP = 60.0
"""Longest silence in seconds; the bus is never silent for longer than milliseconds."""
BLOCK = 4 * 2**20
"""Bytes of a log parsed at a time."""
LARGEST = 1e38
"""Windows are float32."""

_HEX = np.full(256, 255, np.uint8)
for _digits in (b"0123456789ABCDEF", b"0123456789abcdef"):
    _HEX[np.frombuffer(_digits, np.uint8)] = np.arange(16)
_DIGITS = np.r_[1:11, 12:18]
_TENS = 10 ** np.arange(len(_DIGITS) - 1, -1, -1, dtype=np.int64)
_SHORTEST = len("(1030000000.000000) c 162#00080003EA11F4CE")

_MESSAGE = re.compile(r"BO_\s+(\d+)\s+\w+\s*:")
_NUMBER = r"\s*([+-]?\d+\.?\d*(?:[eE][+-]?\d+)?)\s*"
_SIGNAL = re.compile(rf"SG_\s+(\w+)\s*:\s*(\d{{1,2}})\|(\d{{1,2}})@([01])([+-])\s*\({_NUMBER},{_NUMBER}\)")


@dataclass(frozen=True)
class Signal:
    """Where a signal lies in the 64 bits of a payload; value = scale * raw integer + offset."""

    start: int
    length: int
    motorola: bool = True
    signed: bool = False
    scale: float = 1.0
    offset: float = 0.0

    @property
    def shift(self) -> int:
        """Places to the lowest bit: of the payload as a big-endian word (Motorola) or little-endian word (Intel)."""
        if self.motorola:
            return 64 - (8 * (self.start // 8) + 7 - self.start % 8) - self.length
        return self.start

    @property
    def fits(self) -> bool:
        """Whether it lies inside the payload, and its values inside what a window can hold."""
        inside = self.length > 0 and 0 <= self.start < 64 and 0 <= self.shift <= 64 - self.length
        return inside and abs(self.scale) * 2.0**self.length + abs(self.offset) < LARGEST


Layout = dict[int, tuple[Signal, ...]]
"""Signals of each CAN id, in the order of their numbers."""


@dataclass(frozen=True, eq=False)
class Frames:
    """F frames: seconds since the first (F,), CAN ids (F,), payloads (F,) as big-endian words."""

    times: NDArray[np.float64]
    ids: NDArray[np.int64]
    payloads: NDArray[np.uint64]

    def by_id(self) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.uint64]]]:
        """Times and payloads of each id, ids ascending."""
        order = np.argsort(self.ids, kind="stable")
        ids, first = np.unique(self.ids[order], return_index=True)
        for number, rows in zip(ids.tolist(), np.split(order, first[1:]), strict=True):
            yield number, self.times[rows], self.payloads[rows]


def decode(payloads: NDArray[np.uint64], signals: tuple[Signal, ...]) -> NDArray[np.float32]:
    """Values (S, F) of S signals in F payloads.

    >>> word = np.array([0x12_34_00_00_00_00_00_80], np.uint64)
    >>> decode(word, (Signal(7, 16), Signal(63, 8, signed=True), Signal(8, 4, motorola=False))).ravel().tolist()
    [4660.0, -128.0, 4.0]
    """
    little = payloads.byteswap()
    values = np.empty((len(signals), len(payloads)), np.float32)
    for row, signal in zip(values, signals, strict=True):
        word = payloads if signal.motorola else little
        raw = word << np.uint64(64 - signal.length - signal.shift)
        integer = raw.view(np.int64) if signal.signed else raw
        row[:] = (integer >> (64 - signal.length)) * signal.scale + signal.offset
    return values


def read_log(path: Path) -> Frames:
    """Frames of a candump log: lines such as `(1030000000.000000) can0 162#00080003EA11F4CE`."""
    parts = []
    line = 1
    with open_binary(path) as file:
        rest = b""
        while block := file.read(BLOCK):
            whole, newline, rest = (rest + block).rpartition(b"\n")
            if newline:
                parts.append(_parse_log(path, whole + newline, line))
                line += len(parts[-1][0])
    if rest:
        parts.append(_parse_log(path, rest + b"\n", line))
    if not parts:
        raise DataError(f"{path}: the log is empty. Get the file again.")
    micros, ids, payloads = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Frames(steady_clock(path, (micros - micros[0]) / 1e6), ids, payloads)


def read_untimed(path: Path, interval: tuple[float, float], elapsed: float) -> Frames:
    """Frames of a table without times: CAN id, eight bytes, label (1 during the attack), all decimal, no header.

    Times follow from the place in the table, linearly through the start of the capture, the first and the last frame
    labelled 1 (the ends of the attack) and the last frame.

    Args:
        path: CSV file.
        interval: begin and end of the attack, in seconds since the start.
        elapsed: length of the capture in seconds.
    """
    types = {"id": pa.int64()} | {f"byte{i}": pa.uint8() for i in range(8)} | {"label": pa.float64()}
    try:
        with open_binary(path) as file:
            table = pyarrow.csv.read_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(column_names=list(types), use_threads=False),
                convert_options=pyarrow.csv.ConvertOptions(column_types=types, null_values=[]),
            )
    except pa.ArrowException as error:
        raise DataError(f"{path}: {str(error).strip()}. Expected id, 8 bytes and a label in each line.") from error
    columns = {name: table[name].to_numpy() for name in types}
    injected = np.flatnonzero(columns["label"] == 1)
    other = np.flatnonzero((columns["label"] != 1) & (columns["label"] != 0))
    if other.size or not injected.size:
        what = f"label {columns['label'][other[0]]} in line {other[0] + 1}" if other.size else "no frame labelled 1"
        raise DataError(f"{path}: {what}. Labels are 0 and, during the attack, 1.")
    frames, known = np.unique([0, injected[0], injected[-1], len(table) - 1], return_index=True)
    times = np.interp(np.arange(len(table)), frames, np.array([0.0, *interval, elapsed])[known])
    payloads = np.stack([columns[f"byte{i}"] for i in range(8)], axis=1).view(">u8").ravel().astype(np.uint64)
    return Frames(steady_clock(path, times), columns["id"], payloads)


def steady_clock(path: Path, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times since the first frame, never going back; a large step back or a long silence raises `DataError`."""
    times = np.round(times - times[0], 6)  # microseconds, as logged: a frame on a grid point belongs to it
    steps = np.diff(times, prepend=0.0)
    wrong = np.flatnonzero(~((steps >= -MAX_STEP_BACK) & (steps <= MAX_GAP)))
    if wrong.size:
        raise DataError(
            f"{path}: the clock steps by {steps[wrong[0]]:.6f} s before frame {wrong[0] + 1}. Frames must be in the "
            "order of time, without long gaps: get the file again."
        )
    steady: NDArray[np.float64] = np.maximum.accumulate(times)
    return steady


def read_dbc(path: Path) -> Layout:
    """Signals of a DBC file; numbered by names such as `Signal_3_of_ID` where they have them, else as they stand."""
    layout: dict[int, list[tuple[int, Signal]]] = {}
    message: list[tuple[int, Signal]] = []
    for number, line in enumerate(read_text(path, "cp1252").splitlines(), start=1):
        if head := _MESSAGE.match(line.strip()):
            message = layout.setdefault(int(head[1]), [])
        elif line.strip().startswith("SG_ "):
            message.append(_dbc_signal(path, number, line.strip()))
    return {
        number: tuple(signal for _, signal in sorted(signals, key=lambda pair: pair[0]))
        for number, signals in sorted(layout.items())
        if signals and number < 0x800
    }


def read_layout(path: Path) -> Layout:
    """Signals of a CSV table: `id_dec`, `start_bit`, `length`, `byte_order` (motorola or intel), `signed` (0 or 1)."""
    layout: dict[int, list[Signal]] = {}
    for number, row in enumerate(csv.DictReader(read_text(path).splitlines()), start=2):
        try:
            motorola = {"motorola": True, "intel": False}[row["byte_order"]]
            signal = Signal(int(row["start_bit"]), int(row["length"]), motorola, signed=bool(int(row["signed"])))
            layout.setdefault(int(row["id_dec"]), []).append(_fitting(path, number, signal))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: line {number} does not describe a signal ({error}).") from error
    return {number: tuple(signals) for number, signals in sorted(layout.items())}


def _dbc_signal(path: Path, number: int, line: str) -> tuple[int, Signal]:
    """Number in its name (0 where there is none) and place of a signal; `@0` is Motorola, `-` is signed."""
    match = _SIGNAL.match(line)
    if match is None:
        raise DataError(f"{path}: line {number} is no plain signal: {line!r}. Multiplexed ones are not read.")
    name, start, length, order, sign, scale, offset = match.groups()
    signal = Signal(int(start), int(length), order == "0", sign == "-", float(scale), float(offset))
    named = re.match(r"Signal_(\d+)", name)
    return int(named[1]) if named else 0, _fitting(path, number, signal)


def _fitting(path: Path, number: int, signal: Signal) -> Signal:
    if not signal.fits:
        raise DataError(f"{path}: the signal in line {number} does not fit into 64 bits: {signal}.")
    return signal


def _parse_log(
    path: Path, text: bytes, first_line: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Microseconds, ids and payloads of whole lines; the stamp is read from the left, the frame from the right."""
    chars = np.frombuffer(text.replace(b"\r\n", b"\n"), np.uint8)
    ends = np.flatnonzero(chars == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    good = ends - starts >= _SHORTEST
    count = len(ends) if good.all() else int(good.argmin())
    stamp = chars[starts[:count, None] + np.arange(19)]
    frame = chars[ends[:count, None] + np.arange(-21, 0)]
    digits = stamp[:, _DIGITS] - ord("0")
    nibbles = _HEX[np.delete(frame, (0, 4), axis=1)]
    marks = np.column_stack([stamp[:, [0, 11, 18]], frame[:, [0, 4]]]) == np.frombuffer(b"(.) #", np.uint8)
    good[:count] = marks.all(axis=1) & (digits < 10).all(axis=1) & (nibbles < 16).all(axis=1)
    if not good.all():
        bad = int(good.argmin())
        line = text.split(b"\n")[bad][:60]
        raise DataError(
            f"{path}: line {first_line + bad} is {line!r}, expected "
            "'(seconds.microseconds) interface ID#payload' with 3 and 16 hexadecimal digits. Get the file again."
        )
    octets = nibbles[:, 3::2] << 4 | nibbles[:, 4::2]
    payloads = np.ascontiguousarray(octets).view(">u8").ravel().astype(np.uint64)
    return digits @ _TENS, nibbles[:, :3] @ np.array([256, 16, 1]), payloads
