"""How often normal windows are given a named fault, and faults called normal: `python -m research.normal_operation`.

The normal recordings of a source are in three parts; each is kept out of the library in turn and asked about, so that
every normal window is asked about once. Faults are the questions of the source's test side, asked each time. Beside
the shares of answers above one half stand how many recordings of normals the library had, and how often no fault could
have been named at all: where "normal operation" left alone, the likeliest fault would have had one half or less.

How many faults are called normal is also told by what the answers state: one that gives normal operation p is about a
fault with probability 1 - p. `state_missed` adds these up, normal windows and faults being asked about as often as the
library takes for granted (`UNFILED`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from readbench.cases import NORMAL_OPERATION, UNLIKE, Answer
from readbench.cases._normal import UNFILED
from readbench.engine.windows import WindowSet
from research.odd_windows import METHOD, PARTS, SOURCES, Site, build_site, tell

MOST_ASKED = 100
LIKELY = 0.5


def share_of(answer: Answer, label: str) -> float:
    """The probability of an option; 0 where it is none."""
    return next((option.probability for option in answer.faults if option.label == label), 0.0)


def likeliest_fault(answer: Answer) -> float:
    """The probability of the likeliest known fault."""
    named = (option.probability for option in answer.faults if option.label not in {UNLIKE, NORMAL_OPERATION})
    return max(named, default=0.0)


def name_fault(answer: Answer) -> bool:
    """Whether an answer gives a named fault more than half."""
    return likeliest_fault(answer) > LIKELY


def call_normal(answer: Answer) -> bool:
    """Whether an answer gives normal operation more than half."""
    return share_of(answer, NORMAL_OPERATION) > LIKELY


def state_missed(normals: Sequence[Answer], faults: Sequence[Answer]) -> float:
    """Share of faults that are called normal, by what the answers themselves state."""

    def wrong(answers: Sequence[Answer]) -> float:
        called = [share_of(own, NORMAL_OPERATION) for own in answers if call_normal(own)]
        return sum(1.0 - share for share in called) / len(answers)

    return wrong(faults) + UNFILED * wrong(normals)


def could_name(answer: Answer) -> bool:
    """Whether it would give a named fault more than half if normal operation were no option."""
    return likeliest_fault(answer) > LIKELY * (1.0 - share_of(answer, NORMAL_OPERATION))


@dataclass(frozen=True)
class Asked:
    """Answers of one library to normal windows of recordings that it lacks, and to faults."""

    recordings: int
    normals: list[Answer]
    faults: list[Answer]


def ask_site(site: Site, method: str) -> Asked:
    """Ask a library about both."""

    def ask(windows: WindowSet) -> list[Answer]:
        step = max(1, len(windows) // MOST_ASKED)
        return site.library.search_many(windows[::step], method=method, k=1)

    recordings = len(np.unique(site.library.snapshot().normals.groups.tolist()))
    return Asked(recordings, ask(site.normals), ask(site.questions))


def describe(source: str, asked: Sequence[Asked]) -> str:
    """One line on a source: shares over the answers of all its libraries."""

    def share(of: Callable[[Answer], bool], answers: Sequence[Answer]) -> str:
        return f"{np.mean([of(own) for own in answers]):.3f}"

    normals = [answer for own in asked for answer in own.normals]
    faults = [answer for own in asked for answer in own.faults]
    parts = ", ".join(share(name_fault, own.normals) for own in asked)
    return (
        f"{source:26} {'/'.join(str(own.recordings) for own in asked)} recordings of normals;"
        f" {len(normals)} normals: a named fault {share(name_fault, normals)} ({parts}), normal"
        f" {share(call_normal, normals)}; {len(faults)} faults: a named fault {share(name_fault, faults)} of"
        f" {share(could_name, faults)} possible, normal {share(call_normal, faults)} of"
        f" {state_missed(normals, faults):.3f} stated"
    )


def main() -> None:
    """Print shares of answers above one half, for each source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default=METHOD, help="any method of the grammar that ends with +verdict")
    parser.add_argument("--datasets", default=",".join(SOURCES))
    parser.add_argument("--parts", type=int, default=PARTS, help="how many of the three parts are kept out in turn")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for source in given.datasets.split(","):
            parts = range(min(given.parts, PARTS))
            tell(
                describe(source, [ask_site(build_site(source, Path(folder), part=own), given.method) for own in parts])
            )


if __name__ == "__main__":
    main()
