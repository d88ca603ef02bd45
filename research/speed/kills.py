"""`python -m research.speed.kills`: a writer of cases is killed at random moments; nothing committed may be lost.

Each round a process adds cases and reports every finished call; it is killed with SIGKILL at a random moment. The
library is then opened as it was left: all reported cases must be there with their windows, batches whole.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from readbench.cases import Library
from research.speed.library import synthetic

ROUNDS, CALL, SHAPE = 20, 200, (8, 256)
LONGEST_S = 3.0


def main() -> None:
    """Kill and check, or be the writer that is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", metavar="LIBRARY", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write(given.write)
    with tempfile.TemporaryDirectory() as folder:
        kill_rounds(Path(folder) / "library", given.rounds)


def write(where: str) -> None:
    """Add cases until killed; each finished call is one line."""
    library = Library.open(where)
    start = len(library)
    sys.stdout.write("ready\n")
    for number in range(10_000):
        sys.stdout.flush()
        library.add(next(synthetic(CALL, SHAPE, seed=1000 + start + number)))
        sys.stdout.write("done\n")


def kill_rounds(where: Path, rounds: int) -> None:
    """Kill a writer again and again; raises at the first loss."""
    Library.create(where)
    rng = np.random.default_rng(0)
    for number in range(1, rounds + 1):
        before, moment = len(Library.open(where)), float(rng.uniform(0, LONGEST_S))
        reported = CALL * _killed(where, moment)
        library = Library.open(where)
        kept = len(library) - before
        library.snapshot().windows(range(len(library))).require_finite()
        sys.stdout.write(
            f"{number}: killed after {moment:.2f} s; {reported} reported, {kept} there, {len(library)} in all\n"
        )
        if kept < reported or kept % CALL:
            raise RuntimeError(f"{reported} cases were reported as added, {kept} are there.")


def _killed(where: Path, moment: float) -> int:
    """Calls that a writer reported before it was killed, some seconds after its start."""
    command = [sys.executable, "-m", "research.speed.kills", "--write", str(where)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: S603 - ourselves
        if writer.stdout is None:
            raise RuntimeError("the writer has no output")
        writer.stdout.readline()
        time.sleep(moment)
        writer.kill()
        return len(writer.stdout.read().splitlines())


if __name__ == "__main__":
    main()
