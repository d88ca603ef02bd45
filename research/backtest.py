"""Whether a library keeps its word on the histories of datasets: `python -m research.backtest`.

The train side of a dataset becomes a library (`readbench cases init --demo` makes the same), a few windows of each
recording at most, and its cases are replayed in time order, each asked of those before it (`readbench cases backtest`).
Recordings without dates come in the random order of the task.

Beside the difference of stated and realised precision stands what chance alone makes of it: the mean size of the
difference if every statement were exactly true, cases of one recording being right or wrong together.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition, load_task
from readbench.cases import DEFAULT_METHOD, Backtest, Library, replay_history
from readbench.engine.windows import NORMAL, WindowSet
from research.odd_windows import tell

SOURCES = ("sim_tanks(difficulty=0.5)", "sim_service", "skab", "dbsherlock", "itu_5gc", "petrobras_3w", "mit_bih")
CASES, NORMALS = 240, 300
DRAWS = 2000
OF_A_RECORDING = 3
"""Most windows of one recording: an incident is one or a few cases, not fifty."""


def thin_recordings(windows: WindowSet, most: int, count: int) -> NDArray[np.intp]:
    """Positions of at most `count` windows, in their order, and of at most `most` of each recording."""
    seen: dict[str, int] = {}
    chosen = []
    for at, group in enumerate(windows.groups.tolist()):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= most:
            chosen.append(at)
    return np.array(chosen[:count], np.intp)


def build_history(source: str, seed: int, folder: Path, cases: int = CASES, normals: int = NORMALS) -> Library:
    """The library of a source's train side."""
    task = load_task(source, seed, settings=Composition(corpus_cap=None, query_cap=1, normals_cap=normals, rho=(0,)))
    corpus = task.corpus_at(0)
    faults = corpus[np.flatnonzero(corpus.labels > NORMAL)]
    library = Library.create(folder / f"{source.split('(', maxsplit=1)[0]}-{seed}")
    library.add_normals(task.normals)
    library.add(replace(faults[thin_recordings(faults, OF_A_RECORDING, cases)], stats=None))
    return library


def estimate_chance(found: Backtest, seed: int = 0) -> float:
    """Mean size of stated less realised precision where all that is stated is true; NaN where no fault was named."""
    told = found.told()
    if not told:
        return float("nan")
    stated = np.array([own.probability for own in told])
    recordings = np.unique([own.case.recording for own in told], return_inverse=True)[1]
    luck = np.random.default_rng(seed).random((DRAWS, recordings.max() + 1))
    return float(np.abs(stated.mean() - (luck[:, recordings] < stated).mean(axis=1)).mean())


def describe(source: str, found: Backtest) -> str:
    """One line on a history."""
    new, known = found.new, found.known
    gap = f"gap {found.gap:+.3f} (by chance {estimate_chance(found):.3f})"
    return (
        f"{source:26} {len(found.cases):4} cases, named {found.coverage():.2f}, stated {found.stated():.3f},"
        f" realised {found.realised():.3f}, {gap}, ECE {found.error:.3f}; first case right {found.first_right:.2f};"
        f" new {len(new)}, called {sum(own.novel for own in new)}; known called new"
        f" {sum(own.novel for own in known)}; wrong {len(found.misled)}, called normal {len(found.reassured)}"
    )


def main() -> None:
    """Print a line for each history, and the mean difference of stated and realised precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default=DEFAULT_METHOD)
    parser.add_argument("--datasets", default=",".join(SOURCES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--normals", type=int, default=NORMALS)
    parser.add_argument("--keep", type=Path, help="folder for each back-test as JSON")
    given = parser.parse_args()
    gaps, chances = [], []
    with TemporaryDirectory() as folder:
        for source in given.datasets.split(","):
            found = replay_history(
                build_history(source, given.seed, Path(folder), given.cases, given.normals), method=given.method
            )
            tell(describe(source, found))
            if found.told():
                gaps.append(found.gap)
                chances.append(estimate_chance(found))
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                name = f"{source.split('(', maxsplit=1)[0]}-{given.seed}.json"
                (given.keep / name).write_text(found.model_dump_json(indent=1))
    size, chance = np.mean(np.abs(gaps)), np.mean(chances)
    tell(f"stated less realised precision: mean {np.mean(gaps):+.3f}, mean size {size:.3f}, by chance {chance:.3f}")


if __name__ == "__main__":
    main()
