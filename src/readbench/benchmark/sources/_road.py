"""ROAD: attacks on the CAN bus of a car on a dynamometer, and ordinary driving.

Two layouts are read, plain or gzipped, in `road/` or a folder below it.

* Official signal extractions, `signal_extractions/{attacks,ambient}/*.csv`, with `metadata.json` or
  `attacks/capture_metadata.json`. Written from their description, these files were never seen working, nor were
  ambient and accelerator captures in any form.
* Frames, where there are no extractions: `{attacks,ambient}/*.log` (candump), and `attacks_untimed/*.csv`, copies of
  captures that have lost their times (`read_untimed`). Signals are decoded with `signal_extractions/DBC/anonymized.dbc`
  (never seen working) or else `signal_layout.csv`, which numbers the signals of an id by their start bit: channels of
  one numbering need not be those of the other.

From either come the same 664 signals, one value per signal and time. Every id is put on a 100 Hz grid: its last value,
before its first frame the first one. An id that is not on the bus is an absent channel. `Road().missing(root)` lists
what a partial copy lacks. Fuzzing captures are not used: they have no extracted signals and are none of the six
families.

Bits of a payload are numbered as in a DBC file: bit b is bit b % 8 (0 the lowest) of byte b // 8. A Motorola signal
starts at its highest bit and runs on through the following bytes, an Intel signal starts at its lowest bit.

The reader of DBC files is our own, with `cantools` as the oracle of its tests: it takes 40 lines, where cantools 45
would add 7 packages to a plain installation, and reads a layout of 664 signals in 4 ms against 39 ms, after 0.15 s of
import.

In reading order: frames and the signals inside their payloads; which captures are there, in which form, and what was
attacked in them when; from tables or frames to signals; the source.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Protocol, Recording, read_info, rows_before
from readbench.benchmark.sources import _files
from readbench.engine.preparation import is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError, SourceMissingError

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
class DbcSignal:
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


Layout = dict[int, tuple[DbcSignal, ...]]
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


def decode(payloads: NDArray[np.uint64], signals: tuple[DbcSignal, ...]) -> NDArray[np.float32]:
    """Values (S, F) of S signals in F payloads.

    >>> word = np.array([0x12_34_00_00_00_00_00_80], np.uint64)
    >>> signals = (DbcSignal(7, 16), DbcSignal(63, 8, signed=True), DbcSignal(8, 4, motorola=False))
    >>> decode(word, signals).ravel().tolist()
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
    with _files.open_binary(path) as file:
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
        with _files.open_binary(path) as file:
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
    layout: dict[int, list[tuple[int, DbcSignal]]] = {}
    message: list[tuple[int, DbcSignal]] = []
    for number, line in enumerate(_files.read_text(path, "cp1252").splitlines(), start=1):
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
    layout: dict[int, list[DbcSignal]] = {}
    for number, row in enumerate(csv.DictReader(_files.read_text(path).splitlines()), start=2):
        try:
            motorola = {"motorola": True, "intel": False}[row["byte_order"]]
            signal = DbcSignal(int(row["start_bit"]), int(row["length"]), motorola, signed=bool(int(row["signed"])))
            layout.setdefault(int(row["id_dec"]), []).append(_fitting(path, number, signal))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: line {number} does not describe a signal ({error}).") from error
    return {number: tuple(signals) for number, signals in sorted(layout.items())}


def _dbc_signal(path: Path, number: int, line: str) -> tuple[int, DbcSignal]:
    """Number in its name (0 where there is none) and place of a signal; `@0` is Motorola, `-` is signed."""
    match = _SIGNAL.match(line)
    if match is None:
        raise DataError(f"{path}: line {number} is no plain signal: {line!r}. Multiplexed ones are not read.")
    name, start, length, order, sign, scale, offset = match.groups()
    signal = DbcSignal(int(start), int(length), order == "0", sign == "-", float(scale), float(offset))
    named = re.match(r"Signal_(\d+)", name)
    return int(named[1]) if named else 0, _fitting(path, number, signal)


def _fitting(path: Path, number: int, signal: DbcSignal) -> DbcSignal:
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


Form = Literal["signals", "log", "untimed"]

FAMILIES = (
    "accelerator",
    "correlated_signal",
    "max_engine_coolant_temp",
    "max_speedometer",
    "reverse_light_off",
    "reverse_light_on",
)
WHOLE = "accelerator"
"""The family whose captures are abnormal from begin to end: the car was compromised before, nothing is injected."""
LEFT_OUT = "fuzzing"
"""Random frames on all ids: published as a log only, without extracted signals, and no class here."""
OFFICIAL = (
    *(f"accelerator_attack_{gear}_{number}" for gear in ("drive", "reverse") for number in (1, 2)),
    *(f"correlated_signal_attack_{number}" for number in (1, 2, 3)),
    "max_engine_coolant_temp_attack",
    *(f"max_speedometer_attack_{number}" for number in (1, 2, 3)),
    *(f"reverse_light_{state}_attack_{number}" for state in ("off", "on") for number in (1, 2, 3)),
)
"""The 17 attack captures of the six families."""
PATTERNS: dict[Form, tuple[str, ...]] = {
    "signals": ("**/signal_extractions/attacks/*.csv", "**/signal_extractions/ambient/*.csv"),
    "log": ("**/attacks/*.log", "**/ambient/*.log"),
    "untimed": ("**/attacks_untimed/*.csv",),
}
"""Where captures lie, the best form first."""

_ATTACK = re.compile(rf"({'|'.join((*FAMILIES, LEFT_OUT))})_attack(_drive|_reverse)?(_\d+)?(_masquerade)?")
_MASQUERADE = "_masquerade"


@dataclass(frozen=True)
class Capture:
    """One recorded drive.

    Args:
        name: as its file is called.
        family: of the attack; "" for ambient driving.
        group: the capture that it is a variant of.
        form: signals already extracted, a log with times, or frames without.
        path: its file.
        interval: begin and end of the attack in seconds since the start, where known.
        elapsed: length in seconds, where known.
    """

    name: str
    family: str
    group: str
    form: Form
    path: Path
    interval: tuple[float, float] | None = None
    elapsed: float | None = None


def choose_captures(files: Iterable[tuple[Form, Path]], metadata: dict[str, dict[str, Any]]) -> list[Capture]:
    """One capture per group, sorted by group: the masquerade variant where there is one, in its best form.

    In a masquerade, the frames that the attacker displaces are removed; otherwise both are on the bus and the signal
    flickers. The two variants share all other frames, so only one of them may be used. Extracted signals may be
    scaled, so they are never mixed with decoded frames.
    """
    chosen: dict[str, Capture] = {}
    for form, path in files:
        capture = _capture(form, path, metadata)
        if capture.family == LEFT_OUT:
            continue
        chosen[capture.group] = min(chosen.get(capture.group, capture), capture, key=_preference)
    extracted = [capture for capture in chosen.values() if capture.form == "signals"]
    frames = sorted(capture.name for capture in chosen.values() if capture.form != "signals")
    if extracted and frames:
        raise DataError(
            f"{extracted[0].path.parent} holds extracted signals, but none of {', '.join(frames)}. Complete "
            "signal_extractions/, or remove its CSV files, so that all captures are decoded from their frames."
        )
    return [chosen[group] for group in sorted(chosen)]


def read_metadata(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """What capture_metadata.json (or metadata.json) files say, by capture; later files go before earlier ones."""
    merged: dict[str, dict[str, Any]] = {}
    for path in paths:
        content = _files.parse_json(str(path), _files.read_text(path))
        if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
            raise DataError(f"{path}: expected one object per capture, by name. Get the file again.")
        merged.update(content)
    return merged


def _capture(form: Form, path: Path, metadata: dict[str, dict[str, Any]]) -> Capture:
    name = _files.plain_stem(path)
    entry = metadata.get(name, {})
    match = _ATTACK.fullmatch(name)
    if not match and path.parent.name != "ambient":
        raise DataError(f"{path}: not the name of an attack capture; they are called {', '.join(OFFICIAL[::4])} ...")
    group = entry.get("capture_group", name.removesuffix(_MASQUERADE))
    if not isinstance(group, str):
        raise DataError(f"Metadata of {name}: capture_group must be a name, got {group!r}.")
    return Capture(
        name=name,
        family=match[1] if match else "",
        group=group,
        form=form,
        path=path,
        interval=_interval(name, entry.get("injection_interval")),
        elapsed=_seconds(name, entry.get("elapsed_sec")),
    )


def _preference(capture: Capture) -> tuple[bool, int]:
    return not capture.name.endswith(_MASQUERADE), list(PATTERNS).index(capture.form)


def _interval(name: str, value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2:
        begin, end = (_seconds(name, item) for item in value)
        if begin is not None and end is not None and begin <= end:
            return begin, end
    raise DataError(f"Metadata of {name}: injection_interval must be [begin, end] in seconds, got {value!r}.")


def _seconds(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6:
        return float(value)
    raise DataError(f"Metadata of {name}: {value!r} is no time in seconds since the start of the capture.")


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
    for block in _files.csv_blocks(path, ("Label", "Time", "ID", *COLUMNS)):
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


VERSION = 1
"""Raise when the recordings change although the files do not."""
RATE = 100
"""Grid points per second."""
LENGTH = 256
PART = 64 * LENGTH
"""Steps of one recording: a long capture is given piece by piece, always whole windows."""
AMBIENT_CAPTURES = 12


@SOURCES.register("road", title="ROAD")
class Road(CutSource):
    """Masquerade and accelerator attacks on the CAN bus of a car, decoded into signals at 100 Hz."""

    info = read_info(
        __name__,
        "road",
        faults=tuple(f"{family.replace('_', ' ')} attack" for family in FAMILIES),
        channels=tuple(Channel(name, description=f"signal {name[6:]} of CAN id {name[:5]}") for name in CHANNELS),
        length=LENGTH,
        stride=LENGTH,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the captures in use, their metadata and the layout of signals."""
        captures = [capture.path for capture in self._captures(root)]
        return _files.fingerprint_files([*captures, *self._metadata(root), *self._layout_files(root)], VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """The captures in the order of their groups, each as one recording per 164 s."""
        captures = self._captures(root)
        decoded = any(capture.form != "signals" for capture in captures)
        layout = self._layout(root) if decoded else {}
        for capture in captures:
            if capture.form == "signals":
                drive = read_extraction(capture.path)
            else:
                drive = decode_frames(capture.path, _frames(capture), layout)
            yield from _recordings(capture, drive, self.info.protocol)

    def missing(self, root: Path | None) -> tuple[str, ...]:
        """What a partial copy lacks: attack captures by name, and how many of the ambient ones."""
        captures = self._captures(root)
        groups = {capture.group for capture in captures}
        lacking = [name for name in OFFICIAL if name not in groups]
        ambient = AMBIENT_CAPTURES - sum(not capture.family for capture in captures)
        return (*lacking, *([f"{ambient} ambient captures"] if ambient > 0 else []))

    def _captures(self, root: Path | None) -> list[Capture]:
        folder = _files.folder_of(self.info, root)
        files = [(form, path) for form, patterns in PATTERNS.items() for path in self._optional(root, *patterns)]
        captures = choose_captures(files, read_metadata(self._metadata(root)))
        if not captures:
            raise SourceMissingError(
                f"road: no signal extraction or log of an attack or ambient capture in {folder}. "
                f"Get the files from {self.info.url}"
            )
        return captures

    def _metadata(self, root: Path | None) -> list[Path]:
        return [*self._optional(root, "**/metadata.json"), *self._optional(root, "**/capture_metadata.json")]

    def _layout_files(self, root: Path | None) -> list[Path]:
        dbc = self._optional(root, "**/anonymized.dbc")
        return dbc or self._optional(root, "**/signal_layout.csv")

    def _layout(self, root: Path | None) -> Layout:
        files = self._layout_files(root)
        if not files:
            raise SourceMissingError(
                "road: logs need signal_extractions/DBC/anonymized.dbc to be decoded, and it is not there. "
                f"Get it from {self.info.url}"
            )
        layout = read_dbc(files[0]) if ".dbc" in files[0].name else read_layout(files[0])
        for number in sorted(SIGNALS | layout):
            found, known = len(layout.get(number, ())), SIGNALS.get(number, 0)
            if found != known:
                raise DataError(f"{files[0]}: {found} signals on id 0x{number:03X}, but ROAD has {known} there.")
        return layout

    def _optional(self, root: Path | None, *patterns: str) -> list[Path]:
        try:
            return _files.find_files(self.info, root, patterns)
        except SourceMissingError:
            return []


def _recordings(capture: Capture, drive: Drive, protocol: Protocol) -> Iterator[Recording]:
    """The capture on its grid, labelled, in parts of whole windows; each part brings what was before it."""
    grid = np.arange(int(round(drive.elapsed * RATE, 4)) + 1) / RATE
    label, (begin, end) = _attack(capture, drive)
    labels = np.where((grid >= begin) & (grid <= end), label, 0).astype(np.int32)
    for number, first in enumerate(range(0, len(grid), PART)):
        yield Recording(
            id=capture.name if len(grid) <= PART else f"{capture.name}-{number:02d}",
            values=drive.at(grid[first : first + PART]),
            channels=CHANNELS,
            labels=labels[first : first + PART],
            group=capture.group,
            asset="vehicle",
            start=first / RATE,
            step=1 / RATE,
            rate=RATE,
            before=drive.at(grid[rows_before(labels, first, protocol)]),
        )


def _attack(capture: Capture, drive: Drive) -> tuple[int, tuple[float, float]]:
    """Class of the attack, its begin and its end in seconds."""
    if not capture.family:
        return 0, (0.0, 0.0)
    label = FAMILIES.index(capture.family) + 1
    if capture.family == WHOLE:
        return label, (0.0, drive.elapsed)
    interval = capture.interval or drive.injected
    if interval is None:
        raise DataError(f"{capture.path}: no injection_interval for {capture.name}. Add capture_metadata.json to it.")
    if interval[0] > drive.elapsed:
        raise DataError(
            f"{capture.path}: the attack begins at {interval[0]} s, after the end at {drive.elapsed:.3f} s."
        )
    return label, interval


def _frames(capture: Capture) -> Frames:
    if capture.form == "log":
        return read_log(capture.path)
    if capture.interval is None or capture.elapsed is None or not capture.interval[1] <= capture.elapsed:
        raise DataError(
            f"{capture.path}: without times it needs elapsed_sec and, inside it, injection_interval of {capture.name} "
            "in capture_metadata.json."
        )
    return read_untimed(capture.path, capture.interval, capture.elapsed)
