"""Robot execution failures: forces and torques on the gripper of an assembly robot just after a failure was detected.

Layout: `lp1.data` to `lp5.data` (also with `.txt` at the end), plain or gzipped, in `robot_failures/`. Each example is
a line with its label and 15 lines of six integers; empty lines between examples. Read here: all 463 examples.

The five files are five learning problems with labels of their own, so a class is a problem together with a label;
`normal` and, in the third problem, `ok` are normal. Problems share examples: only 251 of the 463 are different, and
one may be a collision in one problem and a moved part in another. Copies form one group, so that none stands on both
sides of a split. Nothing else is known about which examples belong together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, Recording, read_info
from readbench.benchmark.sources._files import find_files, fingerprint_files, name_each, read_text, require_all
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

STEPS = 15
STEP = 0.315 / STEPS  # s
LARGEST = 10_000
"""Sensor readings are far smaller."""
NORMAL_LABELS = ("normal", "ok")
LABELS = {
    "lp1": {"collision": "collision", "fr_collision": "front collision", "obstruction": "obstruction"},
    "lp2": {
        "back_col": "back collision",
        "front_col": "front collision",
        "left_col": "collision to the left",
        "right_col": "collision to the right",
    },
    "lp3": {"lost": "lost", "moved": "moved", "slightly_moved": "slightly moved"},
    "lp4": {"collision": "collision", "obstruction": "obstruction"},
    "lp5": {
        "bottom_collision": "bottom collision",
        "bottom_obstruction": "bottom obstruction",
        "collision_in_part": "collision in part",
        "collision_in_tool": "collision in tool",
    },
}
"""Labels of the failures of each problem, and what they mean."""
PROBLEMS = {
    "lp1": "approach to grasp",
    "lp2": "transfer of a part",
    "lp3": "part after a failed transfer",
    "lp4": "approach to ungrasp",
    "lp5": "motion with a part",
}
CLASSES = {
    (problem, label): number
    for number, (problem, label) in enumerate(((p, label) for p in LABELS for label in LABELS[p]), start=1)
}
CHANNELS = tuple(
    Channel(f"{kind[0].upper()}{axis}", description=f"{kind} along or about {axis}")
    for kind in ("force", "torque")
    for axis in "xyz"
)
NAMES = tuple(channel.name for channel in CHANNELS)


@SOURCES.register("robot_failures", title="Robot failures")
class RobotFailures:
    """Failures of an assembly robot in five situations: six forces and torques over 0.3 s."""

    info = read_info(
        __name__,
        "robot_failures",
        faults=tuple(f"{PROBLEMS[problem]}: {LABELS[problem][label]}" for problem, label in CLASSES),
        channels=CHANNELS,
        length=STEPS,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all files."""
        return fingerprint_files(self._files(root).values(), "robot_failures", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the examples, problem by problem."""
        groups: dict[bytes, str] = {}
        for problem, path in self._files(root).items():
            for number, (label, values) in enumerate(read_examples(path, problem), start=1):
                name = f"{problem}-{number:03d}"
                yield Recording(
                    id=name,
                    values=values,
                    channels=NAMES,
                    labels=np.full(STEPS, label, np.int32),
                    group=groups.setdefault(values.tobytes(), name),
                    step=STEP,
                    rate=1 / STEP,
                )

    def _files(self, root: Path | None) -> dict[str, Path]:
        """The file of each problem, all five."""
        found = find_files(self.info, root, ["lp[1-5].data", "lp[1-5].data.txt"])
        files = name_each(found, lambda path: path.name.partition(".")[0], "examples are")
        require_all(self.info, files, LABELS, ".data")
        return files


def read_examples(path: Path, problem: str) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Class and readings (6, 15) of each example of a file; at least one."""
    lines = enumerate(read_text(path).splitlines(), start=1)
    blocks = groupby(lines, key=lambda line: bool(line[1].strip()))
    examples = [list(block) for filled, block in blocks if filled]
    if not examples:
        raise DataError(f"{path}: no examples in it. The file is empty: get it again.")
    for (number, label), *rows in examples:
        yield _class(path, number, problem, label.strip()), _readings(path, number, [text for _, text in rows])


def _class(path: Path, line: int, problem: str, label: str) -> int:
    if label in NORMAL_LABELS:
        return 0
    if (problem, label) not in CLASSES:
        raise DataError(
            f"{path}: line {line} is {label[:40]!r}, but a label must be there: one of "
            f"{', '.join((*NORMAL_LABELS, *LABELS[problem]))}. Get the file again."
        )
    return CLASSES[problem, label]


def _readings(path: Path, line: int, rows: list[str]) -> NDArray[np.float64]:
    try:
        values = np.array([[int(field) for field in row.split()] for row in rows], np.float64)
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"{path}: the example in line {line} is no table of integers ({error}). Get the file again."
        ) from error
    if values.shape != (STEPS, len(NAMES)) or np.abs(values).max() > LARGEST:
        raise DataError(
            f"{path}: the example in line {line} has readings of shape {values.shape}, expected {STEPS} lines of "
            f"{len(NAMES)} integers, none above {LARGEST}. Get the file again."
        )
    return np.ascontiguousarray(values.T)
