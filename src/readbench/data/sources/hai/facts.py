"""Facts of HAI 21.03 from its technical manual: the tags, the control loops and when each of them was attacked.

They stand in `tags.txt`, `loops.csv` and `attacks.csv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from readbench.data.shipped import read_shipped, read_shipped_rows

LOOPS = {row["loop"]: row["class"] for row in read_shipped_rows(__name__, "loops.csv")}
"""The attacked control loops and the names of their classes, in order."""
TAGS = tuple(read_shipped(__name__, "tags.txt").split())
"""The 79 data points of version 21.03."""


@dataclass(frozen=True)
class Attack:
    """One row of the schedule.

    Args:
        name: as the manual calls it.
        loops: attacked control loops; the first one is the class.
        start: to the minute, local time.
        duration: in seconds.
    """

    name: str
    loops: tuple[str, ...]
    start: str
    duration: int

    @property
    def label(self) -> int:
        """Class of the first attacked loop."""
        return list(LOOPS).index(self.loops[0]) + 1

    @property
    def start_seconds(self) -> float:
        """Scheduled minute in seconds since 1970, in the clock of the files."""
        return float(np.datetime64(self.start, "s").astype(np.int64))


def _attack(row: dict[str, str]) -> Attack:
    return Attack(row["name"], tuple(row["loops"].split("+")), row["start"], int(row["duration"]))


SCHEDULE = {
    file: tuple(_attack(row) for row in rows)
    for file, rows in groupby(read_shipped_rows(__name__, "attacks.csv"), key=lambda row: row["file"])
}
"""Attacks of each test file in order of time."""
