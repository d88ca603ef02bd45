"""What each method costs, and finds, as the corpus grows to a million windows.

The study: every method on every size, one fresh process a cell, one file a finished cell.

How fast something grows with the corpus.

One cell of the study: a method on a corpus of one size, measured in the process that calls.

An encoder and DTW-I together: a shortlist that DTW-I ranks, and an exact DTW-I search that starts from the hits.

The shortlist is fast, but misses what the encoder misses: its recall of the exact answer says how often. The seeded
search gives the exact answer, and the hits only tell it early how near the best must be.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from readbench.benchmark.metrics import DEFAULT_METRIC, evaluate
from readbench.benchmark.runs import fingerprint_of
from readbench.benchmark.studies._scale_world import Material, World
from readbench.common.files import write_json
from readbench.common.processes import MemoryWatch, Tell, in_fresh_process
from readbench.engine.abilities import Hits
from readbench.engine.legs import conceal
from readbench.engine.method import FittedMethod, Method
from readbench.engine.retrievers import DtwIndependent
from readbench.engine.spec import parse
from readbench.engine.vectors import StoredVectors
from readbench.engine.windows import WindowSet
from readbench.errors import MethodError, ReadbenchError, UsageError


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """The p of values ~ size^p: slope of the straight line through their logarithms, by least squares.

    None where fewer than two sizes have a positive value.

    >>> exponent([10, 100, 1000], [3.0, 30.0, 300.0])
    1.0
    >>> exponent([10, 100], [5.0, 0.0]) is None
    True
    """
    known = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0]
    if len({size for size, _ in known}) < 2:
        return None
    x, y = np.log(np.array(known, np.float64)).T
    x -= x.mean()
    return round(float(x @ y / (x @ x)), 6)


VERSION = 1
"""Raised whenever something else is measured, so that stored results are not mixed."""
SCALE_METRIC = DEFAULT_METRIC
DEPTH = 20
"""Places that a search fills."""
WARM_UP, WARM_UP_ENCODED = 1000, 64
"""Windows that are searched, or encoded, beforehand, so that compiling and loading do not count."""


@dataclass(frozen=True)
class ScaleCell:
    """What is measured.

    Args:
        world: corpus, queries and normals.
        size: windows of the corpus.
        method: canonical text of one leg.
        version: of the code.
        vectors: folder where vectors of corpora are kept while they are needed.
        jobs: processes that encode.
        keep: leave the vectors for what comes next.
    """

    world: World
    size: int
    method: str
    version: str
    vectors: Path
    jobs: int = 1
    keep: bool = False

    @property
    def key(self) -> str:
        """Hash of all that the result depends on, the machine aside."""
        identity = (VERSION, self.world.key, self.world.queries, self.size, self.method, self.version)
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]

    def stored(self, tell: Tell) -> StoredVectors:
        """Where the vectors of its corpus are kept."""
        return StoredVectors(self.vectors / self.key, self.key, self.jobs, tell)


@dataclass(frozen=True)
class ScaleMeasurement:
    """What was found.

    Args:
        method: canonical text.
        size: windows of the corpus.
        queries: how many.
        ndcg: NDCG@10, mean over the queries.
        encode_s: vectors of the corpus, written to disk, and of the normals; 0 without an encoder.
        fit_s: all else before the first query.
        search_s: best 20 of all queries.
        memory_bytes: most memory of its own that the process had (memory-mapped files are not counted).
        disk_bytes: what a search reads: vectors, an index, or the values of the corpus.
    """

    method: str
    size: int
    queries: int
    ndcg: float
    encode_s: float
    fit_s: float
    search_s: float
    memory_bytes: float
    disk_bytes: int


def measure(cell: ScaleCell, tell: Tell) -> ScaleMeasurement:
    """Fit the method, search for all queries, and judge the lists.

    Labels are hidden from the method as in the benchmark, but the corpus stays on disk.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    material, method = cell.world.open(cell.size), single_leg(cell.method)
    corpus, queries, normals = material.corpus, material.queries, material.normals
    stored = cell.stored(tell)
    with threadpool_limits(1), MemoryWatch() as memory:  # our own threads work side by side, those of products do not
        tell("warming up", 0, cell.size)
        _warm_up_method(method, corpus, queries, normals)
        tell("fitting", 0, cell.size)
        began = time.perf_counter()
        fitted = method.fit(corpus, normals, in_place=True, stored=stored).prepare()
        ready = time.perf_counter()
        encode_s = fitted.encode_seconds
        tell("searching", 0, cell.size)
        searched = time.perf_counter()
        hits = fitted.search(queries, DEPTH)
        ended = time.perf_counter()
    index = fitted.index_bytes
    result = ScaleMeasurement(
        method=cell.method,
        size=len(corpus),
        queries=len(queries),
        ndcg=ndcg(hits, material),
        encode_s=encode_s,
        fit_s=max(0.0, ready - began - (encode_s - stored.earlier)),
        search_s=ended - searched,
        memory_bytes=memory.peak,
        disk_bytes=material.bytes if index is None else index,
    )
    if not cell.keep:
        stored.clear()
    return result


def single_leg(text: str) -> Method:
    """A method of one leg, which can be searched at any size."""
    method = Method(text)
    if len(method.legs) > 1 or method.rerankers:
        raise UsageError(f"{method} looks at whole lists. Name methods of one leg without rerankers.")
    if method.uses_labels:
        raise UsageError(f"{method} reads labels; the study measures retrieval without any.")
    return method


def ndcg(hits: Hits, material: Material) -> float:
    """NDCG@10 of lists of corpus positions, mean over the queries."""
    judged = evaluate(hits.indices, material.queries.labels, material.corpus.labels, [SCALE_METRIC])
    return float(judged.values[SCALE_METRIC].mean())


def _warm_up_method(method: Method, corpus: WindowSet, queries: WindowSet, normals: WindowSet) -> None:
    size = WARM_UP_ENCODED if method.legs[0].embeds else WARM_UP
    method.fit(corpus[:size], normals[:size], in_place=True).search(queries[:4], 1)


SHORTLISTS = (50, 100, 500, 1000, 5000)
"""Windows that DTW-I ranks."""
SEEDS = 100
"""Hits of the encoder that an exact search starts from."""
ROUNDS = 2
"""Times that the exact search is measured without and with seeds, in turn; the fastest counts."""


@dataclass(frozen=True)
class TwoStage:
    """What was found with a shortlist of one length.

    Args:
        method: canonical text of the encoder's leg.
        size: windows of the corpus.
        queries: how many.
        shortlist: windows that DTW-I ranks, M.
        recall_10: share of the 10 best of the exact search that are among the 10 best found.
        recall_20: the same of 20.
        ndcg: NDCG@10 of the shortlist as DTW-I ranks it.
        exact_ndcg: NDCG@10 of the exact search.
        shortlist_s: searching the vectors for the shortlist.
        rank_s: DTW-I on the shortlist.
        exact_s: exact DTW-I search of the whole corpus.
        seeds_s: searching the vectors for the hits that the seeded search starts from.
        seeded_s: exact search from there; the answer is the same.
    """

    method: str
    size: int
    queries: int
    shortlist: int
    recall_10: float
    recall_20: float
    ndcg: float
    exact_ndcg: float
    shortlist_s: float
    rank_s: float
    exact_s: float
    seeds_s: float
    seeded_s: float

    @property
    def saved(self) -> float:
        """Share of the exact search's time that seeds save where they are known already."""
        return 1 - self.seeded_s / self.exact_s

    @property
    def saved_in_all(self) -> float:
        """The same where they must be found first, the queries encoded for it."""
        return 1 - (self.seeds_s + self.seeded_s) / self.exact_s


def measure_two_stage(cell: ScaleCell, tell: Tell) -> list[TwoStage]:
    """Measure all shortlists that the corpus is long enough for."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    material = cell.world.open(cell.size)
    corpus, queries, normals = (
        conceal(part, in_place=True) for part in (material.corpus, material.queries, material.normals)
    )
    stored = cell.stored(tell)
    with threadpool_limits(1):
        tell("warming up", 0, cell.size)
        _warm_up_stages(corpus, queries)
        method = single_leg(cell.method)
        if not method.legs[0].embeds:
            raise UsageError(f"--two-stage takes an encoder, such as sonde. Got {cell.method}.")
        encoder = method.fit(corpus, normals, in_place=True, stored=stored).prepare()
        pair = _Pair(encoder, DtwIndependent().fit(corpus, normals), queries)
        tell("exact search", 0, cell.size)
        exact = pair.exact()
        found = []
        for length in (m for m in SHORTLISTS if m < len(corpus)):
            tell(f"shortlist of {length}", 0, cell.size)
            found.append(_judged(cell, material, pair.shortlist(length), exact, length))
    if not cell.keep:
        stored.clear()
    return found


@dataclass(frozen=True, eq=False)
class _Exact:
    """The exact answer, and how long it took to find it in both ways."""

    hits: Hits
    seconds: float
    seeds_s: float
    seeded_s: float


@dataclass(frozen=True, eq=False)
class _Shortlist:
    """The best of a shortlist, and how long it took to find and to rank it."""

    hits: Hits
    find_s: float
    rank_s: float


@dataclass(frozen=True, eq=False)
class _Pair:
    """Both methods, fitted, and what they are asked."""

    encoder: FittedMethod
    warping: DtwIndependent
    queries: WindowSet

    def exact(self) -> _Exact:
        """Search the whole corpus without and with seeds, in turn; both must find the same."""
        plain_s, seeded_s = [], []
        for _ in range(ROUNDS):
            seconds, plain = _timed(lambda: self.warping.search(self.queries, DEPTH))
            plain_s.append(seconds)
            seeds_s, seeds = _timed(lambda: self.encoder.search(self.queries, SEEDS))
            seconds, seeded = _timed(partial(self.warping.search, self.queries, DEPTH, seeds=seeds.indices))
            seeded_s.append(seconds)
            if not np.array_equal(plain.indices, seeded.indices) or not np.array_equal(plain.scores, seeded.scores):
                raise MethodError("dtw-i: the search with seeds found something else than the one without.")
        return _Exact(plain, min(plain_s), seeds_s, min(seeded_s))

    def shortlist(self, length: int) -> _Shortlist:
        """Rank so many hits of the encoder by DTW-I."""
        find_s, near = _timed(lambda: self.encoder.search(self.queries, length))
        rank_s, best = _timed(lambda: self.warping.among(self.queries, near.indices, DEPTH))
        return _Shortlist(best, find_s, rank_s)


def _judged(cell: ScaleCell, material: Material, short: _Shortlist, exact: _Exact, length: int) -> TwoStage:
    return TwoStage(
        method=cell.method,
        size=cell.size,
        queries=len(material.queries),
        shortlist=length,
        recall_10=recall(short.hits, exact.hits, 10),
        recall_20=recall(short.hits, exact.hits, 20),
        ndcg=ndcg(short.hits, material),
        exact_ndcg=ndcg(exact.hits, material),
        shortlist_s=short.find_s,
        rank_s=short.rank_s,
        exact_s=exact.seconds,
        seeds_s=exact.seeds_s,
        seeded_s=exact.seeded_s,
    )


def recall(found: Hits, exact: Hits, k: int) -> float:
    """Share of the k best of the exact lists that are among the k best found, mean over the queries."""
    both = zip(found.indices[:, :k], exact.indices[:, :k], strict=True)
    return float(np.mean([np.isin(right, own).mean() for own, right in both]))


def _timed(work: Callable[[], Hits]) -> tuple[float, Hits]:
    began = time.perf_counter()
    hits = work()
    return time.perf_counter() - began, hits


def _warm_up_stages(corpus: WindowSet, queries: WindowSet) -> None:
    warping = DtwIndependent().fit(corpus[:WARM_UP], corpus[:0])
    warping.among(queries[:4], np.arange(8)[None].repeat(4, axis=0), 2)
    warping.search(queries[:4], 1)


Rows = list[dict[str, Any]]
"""Fields of `ScaleMeasurement` or `TwoStage`."""
Work = Callable[[ScaleCell, Tell], Rows]


@dataclass(frozen=True)
class ScaleStudy:
    """What to measure.

    Args:
        world: corpus, queries and normals.
        sizes: windows of the corpora.
        methods: texts of one leg each.
        two_stage: text of the encoder that is measured together with DTW-I; "" for none.
        jobs: processes that simulate, and that encode.
    """

    world: World
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    two_stage: str = ""
    jobs: int = 1

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 100:
            raise UsageError("--sizes takes whole numbers from 100 on.")
        for method in (*self.methods, *self._shortlisting):
            single_leg(method)

    @property
    def windows(self) -> int:
        """Windows that all cells together search."""
        return sum(self.sizes) * (len(self.methods) + len(self._shortlisting))

    @property
    def _shortlisting(self) -> tuple[str, ...]:
        return (self.two_stage,) if self.two_stage else ()


@dataclass(frozen=True)
class Failure:
    """A cell without a result."""

    method: str
    size: int
    reason: str


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Args:
        measured: one a size and method, in the order of the study.
        two_stage: one a size and length of the shortlist.
        failures: what has no result.
        build_s: seconds that building the largest corpus took.
    """

    measured: tuple[ScaleMeasurement, ...]
    two_stage: tuple[TwoStage, ...]
    failures: tuple[Failure, ...]
    build_s: float


class ScaleListener:
    """Is told how a study goes; does nothing by itself."""

    def telling(self, what: str, done: int, total: int | None, /) -> None:
        """Something has come so far."""

    def begins(self, method: str, size: int) -> None:
        """A cell begins."""

    def ends(self, method: str, size: int) -> None:
        """A cell is done, or was already."""


def run_study(study: ScaleStudy, out: Path, listener: ScaleListener | None = None) -> Findings:
    """Measure what is not measured yet; a study that was killed goes on where it was.

    Args:
        study: what to measure.
        out: folder of the results. Vectors lie there too while they are needed.
        listener: told how it goes.
    """
    listener = listener or ScaleListener()
    build_s = study.world.build(study.sizes, study.jobs, listener.telling)
    measured, paired, failures = [], [], []
    for task in _tasks(study, out):
        listener.begins(task.title, task.cell.size)
        try:
            rows = _kept(task, listener.telling)
        except ReadbenchError as error:
            failures.append(Failure(task.title, task.cell.size, str(error)))
            rows = []
        if task.work is _alone:
            measured += [ScaleMeasurement(**row) for row in rows]
        else:
            paired += [TwoStage(**row) for row in rows]
        listener.ends(task.title, task.cell.size)
    return Findings(tuple(measured), tuple(paired), tuple(failures), build_s)


@dataclass(frozen=True)
class _Task:
    """A cell, what is measured there, and the file of the result."""

    title: str
    cell: ScaleCell
    work: Work
    file: Path


def _tasks(study: ScaleStudy, out: Path) -> Iterator[_Task]:
    """All methods on one size after the other, then the encoder with DTW-I."""
    shortlisting = str(parse(study.two_stage)) if study.two_stage else ""
    for size in study.sizes:
        names = [str(parse(method)) for method in study.methods]
        for method in dict.fromkeys([*names, shortlisting]):
            version = fingerprint_of(_alone, _paired, spec=parse(method) if method else None)
            cell = ScaleCell(study.world, size, method, version, out / "vectors", study.jobs)
            file = f"{re.sub(r'[^a-z0-9]+', '-', method).strip('-')}-{size}-{cell.key}.json"
            pair = out / "cells" / f"two-stage-{file}"
            if method in names:
                keep = method == shortlisting and not pair.exists()
                yield _Task(method, replace(cell, keep=keep), _alone, out / "cells" / file)
            if method and method == shortlisting:
                yield _Task(f"{method} with dtw-i", cell, _paired, pair)


def _kept(task: _Task, tell: Tell) -> Rows:
    """The result of a task: from its file, else measured in a fresh process."""
    if task.file.exists():
        rows: Rows = json.loads(task.file.read_text())
        return rows
    rows = in_fresh_process(task.work, task.cell, tell)
    task.file.parent.mkdir(parents=True, exist_ok=True)
    write_json(task.file, rows)
    return rows


def _alone(cell: ScaleCell, tell: Tell) -> Rows:
    return [asdict(measure(cell, tell))]


def _paired(cell: ScaleCell, tell: Tell) -> Rows:
    return [asdict(row) for row in measure_two_stage(cell, tell)]
