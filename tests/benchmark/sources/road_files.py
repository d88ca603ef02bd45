"""Small files in ROAD's formats, for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from readbench.benchmark.sources._road import COLUMNS, SIGNALS

Frame = tuple[float, int, int]
"""Seconds, CAN id, payload."""
SPEEDS = 0x6E0
"""An id with four signals; in the layout of these tests each is 16 bits long."""
EPOCH = 1_030_000_000
NAME = "max_speedometer_attack_2"


def layout_table() -> str:
    """A signal_layout.csv with ROAD's number of signals on each id, one bit each, or 16 on SPEEDS."""
    lines = ["id_dec,id_hex,start_bit,length,byte_order,signed,kg_min,kg_max,in_range"]
    for number, count in SIGNALS.items():
        for k in range(count):
            start, length = (16 * k + 7, 16) if number == SPEEDS else (k, 1)
            lines.append(f"{number},{number:03X},{start},{length},motorola,0,0.0,1.0,1.0")
    return "\n".join([*lines, ""])


def write(root: Path, name: str, content: str | bytes) -> Path:
    path = root / "road" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_layout(root: Path) -> Path:
    return write(root, "signal_extractions/DBC/signal_layout.csv", layout_table())


def write_metadata(root: Path, **entries: dict[str, Any]) -> Path:
    return write(root, "attacks/capture_metadata.json", json.dumps(entries))


def drive(seconds: float = 6.0, every: float = 0.05) -> list[Frame]:
    """Frames of SPEEDS whose first signal counts the frames, after a filler frame of 0xFFF."""
    return [
        (0.0, 0xFFF, 0),
        *((0.02 + every * k, SPEEDS, k << 48 | k) for k in range(round(seconds / every))),
    ]


def log(frames: list[Frame]) -> str:
    return "".join(f"({EPOCH + time:.6f}) can0 {number:03X}#{word:016X}\n" for time, number, word in frames)


def untimed(frames: list[Frame], begin: float, end: float) -> str:
    rows = (
        [number, *word.to_bytes(8, "big"), float(number == SPEEDS and begin <= time <= end)]
        for time, number, word in frames
    )
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def extraction(frames: list[Frame], begin: float = 1.0, end: float = 0.0) -> str:
    """The official table of the same frames; SPEEDS has four values, the filler is left out."""
    lines = [",".join(["Label", "Time", "ID", *COLUMNS])]
    for time, number, word in frames:
        if number == SPEEDS:
            values = [str(float(word >> 48 - 16 * k & 0xFFFF)) for k in range(4)]
            fields = [str(int(begin <= time <= end)), f"{time:.6f}", str(number), *values]
            lines.append(",".join([*fields, *[""] * (len(COLUMNS) - 4)]))
    return "\n".join([*lines, ""])


LOG, TABLE = f"attacks/{NAME}.log", "signal_extractions/DBC/signal_layout.csv"
METADATA = "attacks/capture_metadata.json"
