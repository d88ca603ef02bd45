"""A case library of any size: how fast it takes cases in, how long a search lasts, what it needs.

`python -m research.speed.library --cases 100000 --queries 20 --folder bench` prints it as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from readbench.cases import DEFAULT_METHOD, Answer, Case, Library, encode_cases
from readbench.cli.progress import Terminal
from readbench.common.files import cache_root
from readbench.common.processes import MemoryWatch, in_fresh_process
from readbench.common.progress import SILENT, Progress, each
from readbench.engine.legs import conceal
from readbench.engine.method import Method
from readbench.engine.protocols import Scores
from readbench.engine.ranking import rank
from readbench.engine.spec import parse
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError

FAULTS = 20
PER_CALL = 10_000
LABELLED = 0.5
"""Share of the cases that have a label."""
NEW_CASES = 5
SETTLED_S = 20.0
EXACT = 20
"""Places of the exact ranking that a shortlist should hold."""
STREAMED = 2048
"""Cases that are compared with all queries at a time."""


@dataclass(frozen=True)
class LibraryResult:
    """What was measured; processor time changes little on a busy machine, wall time much.

    Args:
        cases: in the library.
        shape: channels and steps of a case.
        method: that was searched with.
        ingest_per_s: cases added in a second.
        ingest_cpu_per_s: cases added in a second of processor time.
        open_s: opening the library and reading what is known of all cases.
        open_cpu_s: processor time of that.
        first_search_s: the first one, which encodes what has to be.
        first_search_cpu_s: processor time of that.
        search_p50_s: median over the queries, the first time each is asked.
        search_p95_s: 95th percentile, likewise.
        search_cpu_s: median processor time of those.
        again_p50_s: median of the same queries asked again, when all vectors are there.
        again_p95_s: 95th percentile, likewise.
        again_cpu_s: median processor time of those.
        added_p50_s: median of a search after a case came in.
        next_s: time to suggest which cases to label next, the first time it is asked.
        next_cpu_s: processor time of that.
        reopened_s: opening the library again and the first search then, in a new process, when vectors are filed.
        reopened_cpu_s: processor time of that.
        recall: share of the 20 nearest of all cases that the method compared; None where it was not measured.
        compared: cases that the method compared.
        right: share of queries whose most likely fault is theirs.
        peak_gigabytes: most memory of the process while it searched.
        disk_gigabytes: the library's folder.
    """

    cases: int
    shape: tuple[int, int]
    method: str
    ingest_per_s: float
    ingest_cpu_per_s: float
    open_s: float
    open_cpu_s: float
    first_search_s: float
    first_search_cpu_s: float
    search_p50_s: float
    search_p95_s: float
    search_cpu_s: float
    again_p50_s: float
    again_p95_s: float
    again_cpu_s: float
    added_p50_s: float
    next_s: float
    next_cpu_s: float
    reopened_s: float
    reopened_cpu_s: float
    recall: float | None
    compared: int
    right: float
    peak_gigabytes: float
    disk_gigabytes: float


@dataclass(frozen=True)
class LibraryPlan:
    """What is measured.

    Args:
        cases: of the library.
        method: that is searched with.
        queries: windows that are asked about, one after the other.
        shape: channels and steps of a case.
        encode: encode all cases ahead, as `readbench cases optimise --warm` does; else those that
            the queries need, when they do.
        recall: queries for which all cases are compared; 0 leaves that out.
    """

    cases: int
    method: str
    queries: int = 20
    shape: tuple[int, int] = (8, 256)
    encode: bool = False
    recall: int = 0


def measure_library(
    where: Path, plan: LibraryPlan, *, keep: bool = False, progress: Progress = SILENT
) -> LibraryResult:
    """Make a library of synthetic faults at a folder, search it, and remove it.

    Args:
        where: folder; a library that was begun there is gone on with.
        plan: what is measured.
        keep: leave the library.
        progress: told how far it has come.
    """
    taken = fill_library(where, plan, progress)
    if plan.encode:
        encode_cases(Library.open(where).snapshot(), parse(plan.method), progress=progress)
    asked = next(synthetic(plan.queries + 1, plan.shape, seed=2))
    opened, first, once, again, added, suggested = (Clock() for _ in range(6))
    with MemoryWatch() as memory:
        with opened:
            library = Library.open(where, background=True)
            len(library)
        # Encoding ahead would share the processors with what is measured.
        vars(library)["_encoded_ahead"].add(str(parse(plan.method)))
        _searched(library, asked[:1], plan.method, first, progress)
        answers = _searched(library, asked[1:], plan.method, once, progress)
        _searched(library, asked[1:], plan.method, again, progress)
        for number, window in enumerate(asked[1 : NEW_CASES + 1].blocks(1)):
            name = library.add(window, [Case(id=f"new-{number}")])[0]
            _searched(library, window, plan.method, added, progress)
            library.delete([name])
        library.settle(SETTLED_S)  # a large one may go on encoding ahead
        with suggested:
            library.next_to_label(method=plan.method)
    reopened = in_fresh_process(_reopen, (where, plan), progress)
    recall = measure_recall(library, plan, progress) if plan.recall else None
    disk = library.store.size()
    if not keep:
        shutil.rmtree(where)
    right = [answer.faults[0].label == name for answer, name in zip(answers, _names(asked[1:]), strict=True)]
    return LibraryResult(
        cases=plan.cases,
        shape=plan.shape,
        method=plan.method,
        ingest_per_s=len(taken.wall) and PER_CALL * len(taken.wall) / sum(taken.wall),
        ingest_cpu_per_s=len(taken.cpu) and PER_CALL * len(taken.cpu) / sum(taken.cpu),
        open_s=opened.wall[0],
        open_cpu_s=opened.cpu[0],
        first_search_s=first.wall[0],
        first_search_cpu_s=first.cpu[0],
        search_p50_s=float(np.median(once.wall)),
        search_p95_s=float(np.quantile(once.wall, 0.95)),
        search_cpu_s=float(np.median(once.cpu)),
        again_p50_s=float(np.median(again.wall)),
        again_p95_s=float(np.quantile(again.wall, 0.95)),
        again_cpu_s=float(np.median(again.cpu)),
        added_p50_s=float(np.median(added.wall)),
        next_s=suggested.wall[0],
        next_cpu_s=suggested.cpu[0],
        reopened_s=reopened.wall[0],
        reopened_cpu_s=reopened.cpu[0],
        recall=recall,
        compared=answers[0].compared,
        right=float(np.mean(right)),
        peak_gigabytes=memory.peak / 1e9,
        disk_gigabytes=disk / 1e9,
    )


def fill_library(where: Path, plan: LibraryPlan, progress: Progress = SILENT) -> Clock:
    """Bring a library to its size; returns what the cases took that were added now."""
    library = Library.open(where) if where.exists() else Library.create(where)
    if not library.stats().normals:
        library.add_normals(next(synthetic(200, plan.shape, seed=1, fault=False)))
    taken, start = Clock(), 0
    for block in synthetic(plan.cases, plan.shape):
        progress("adding cases", start, plan.cases)
        known = min(max(len(library) - start, 0), len(block))
        if known < len(block):
            with taken:
                library.add(block[known:])
        start += len(block)
    progress("adding cases", plan.cases, plan.cases)
    if taken.wall:
        with library.store.writing():  # as `readbench cases optimise` does after many changes
            library.store.optimise()
    return taken


def _reopen(given: tuple[Path, LibraryPlan], progress: Progress) -> Clock:
    """In a process of its own: open a library whose vectors are filed, and ask the first question."""
    where, plan = given
    asked, clock = next(synthetic(plan.queries + 1, plan.shape, seed=2)), Clock()
    with clock:
        Library.open(where, progress=progress, background=True).search(asked[1:2], method=plan.method)
    return clock


def measure_recall(library: Library, plan: LibraryPlan, progress: Progress = SILENT) -> float:
    """The share of the first `EXACT` cases by the retrieval of a method, on all cases, that a search compares.

    Legs are fitted on the first cases, as the shortlist is. Cases are compared with all queries block by block, so that
    no more of them is in memory.
    """
    snapshot, asked = library.snapshot(), next(synthetic(plan.queries + 1, plan.shape, seed=2))[1 : plan.recall + 1]
    first = snapshot.searched(snapshot.first).with_stats(snapshot.reference)
    fitted = Method(parse(plan.method), vectors=library.vectors).fit(first, snapshot.normals).prepare()
    queries, parts = conceal(asked), list[list[Scores]]()
    for start in each(range(0, len(snapshot), STREAMED), "comparing all cases", progress):
        some = conceal(snapshot.searched(range(start, min(start + STREAMED, len(snapshot)))))
        grown = [leg.grow(some) for leg in fitted.legs]
        parts.append([leg.score(queries)[:, len(first) :] for leg in grown if leg])
    scores = fitted.method.combine([np.concatenate(own, axis=1) for own in zip(*parts, strict=True)])
    compared = [library.list_compared(window) for window in asked.blocks(1)]
    shares = [np.isin(own, found).mean() for own, found in zip(rank(scores, EXACT), compared, strict=True)]
    return float(np.mean(shares))


class Clock:
    """Wall and processor seconds of each `with` block."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> Self:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall.append(time.perf_counter() - self._began[0])
        self.cpu.append(time.process_time() - self._began[1])


def synthetic(count: int, shape: tuple[int, int], *, seed: int = 0, fault: bool = True) -> Iterator[WindowSet]:
    """Blocks of windows: noise with memory, and for each fault its own movement of a few channels, at some strength."""
    shapes = np.random.default_rng(7).normal(size=(FAULTS, *shape)).cumsum(axis=2) / np.sqrt(shape[1])
    shapes *= np.random.default_rng(8).random((FAULTS, shape[0], 1)) < 0.4
    rng = np.random.default_rng(seed)
    for start in range(0, count, PER_CALL):
        own = min(PER_CALL, count - start)
        types = rng.integers(0, FAULTS, own)
        values = rng.normal(size=(own, *shape)).astype(np.float32)
        values[:, :, 1:] += 0.7 * values[:, :, :-1]
        if fault:
            values += rng.uniform(2, 6, (own, 1, 1)) * shapes[types]
        known = rng.random(own) < (LABELLED if seed == 0 else 1.0)
        yield WindowSet.from_arrays(
            values,
            channels=tuple(f"sensor {c}" for c in range(shape[0])),
            labels=np.where(known, types + 1, -1) if fault else np.zeros(own, np.int32),
            classes=("normal", *(f"fault {t}" for t in range(FAULTS))),
            ids=[f"{seed}-{start + i}" for i in range(own)],
        )


def _names(windows: WindowSet) -> list[str]:
    return [windows.classes[label] for label in windows.labels]


def _searched(library: Library, asked: WindowSet, method: str, clock: Clock, progress: Progress) -> list[Answer]:
    """An answer to each window, and the time it took."""
    answers = []
    for window in each(list(asked.blocks(1)), "searches", progress):
        with clock:
            answers.append(library.search(window, method=method))
    return answers


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a library of synthetic cases, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m research.speed.library", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="cases of 8 channels of 256 steps")
    parser.add_argument("--queries", type=int, default=20, help="searches")
    parser.add_argument("--methods", default=DEFAULT_METHOD, help="what the library answers by")
    parser.add_argument("--folder", type=Path, help="keep the library there, and go on with it; else it is removed")
    parser.add_argument("--encode", action="store_true", help="encode all cases ahead")
    parser.add_argument("--recall", type=int, default=0, help="searches for which all cases are compared; slow")
    asked = parser.parse_args(arguments)
    where = asked.folder or cache_root() / "bench-library"
    if asked.folder is None and where.exists():
        raise UsageError(f"{where} is left from a measurement that was interrupted. Remove it first.")
    recall = min(asked.recall, asked.queries)
    plan = LibraryPlan(asked.cases, asked.methods, asked.queries, encode=asked.encode, recall=recall)
    with Terminal() as progress:
        measured = asdict(measure_library(where, plan, keep=asked.folder is not None, progress=progress))
    if math.isnan(measured["peak_gigabytes"]):
        measured["peak_gigabytes"] = None  # the system does not tell, and NaN is no JSON
    print(json.dumps(measured, indent=1))  # noqa: T201 - this is the output


if __name__ == "__main__":
    main()
