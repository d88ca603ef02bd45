"""What each method costs, and finds, as the corpus grows to a million windows: one fresh process a cell.

An encoder and DTW-I together: a shortlist that DTW-I ranks, and an exact DTW-I search that starts from the hits.

The shortlist is fast, but misses what the encoder misses: its recall of the exact answer says how often. The seeded
search gives the exact answer, and the hits only tell it early how near the best must be.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from readbench.benchmark.metrics import DEFAULT_METRIC, evaluate
from readbench.benchmark.runs import fingerprint_of
from readbench.common.processes import MemoryWatch, in_fresh_process
from readbench.common.progress import SILENT, Progress, during, each
from readbench.common.sharing import one_thread_for_products
from readbench.engine.abilities import Hits
from readbench.engine.legs import conceal
from readbench.engine.method import FittedMethod, Method
from readbench.engine.retrievers import DtwIndependent
from readbench.engine.spec import parse
from readbench.engine.vectors import StoredVectors
from readbench.engine.windows import WindowSet
from readbench.errors import MethodError, UsageError
from readbench.studies import Failure, Row, measure_cells
from research.scale.world import Material, World


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
        vectors: folder where vectors of corpora are kept while they are needed.
        jobs: processes that encode.
        keep: leave the vectors for what comes next.
        two_stage: the leg is an encoder that is measured together with DTW-I.
    """

    world: World
    size: int
    method: str
    vectors: Path
    jobs: int = 1
    keep: bool = False
    two_stage: bool = False

    def __str__(self) -> str:
        return f"{self.method}{' with dtw-i' if self.two_stage else ''} at {self.size:,}"

    @property
    def key(self) -> str:
        """Hash of corpus, queries, method and code, by which vectors are kept."""
        also = (self.world.key, self.world.queries, self.size)
        return fingerprint_of(measure, measure_two_stage, spec=parse(self.method), also=also)

    def stored(self, progress: Progress) -> StoredVectors:
        """Where the vectors of its corpus are kept."""
        return StoredVectors(self.vectors / self.key, self.key, self.jobs, progress)


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


def measure(cell: ScaleCell, progress: Progress) -> ScaleMeasurement:
    """Fit the method, search for all queries, and judge the lists.

    Labels are hidden from the method as in the benchmark, but the corpus stays on disk.
    """
    material, method = cell.world.open(cell.size), single_leg(cell.method)
    corpus, queries, normals = material.corpus, material.queries, material.normals
    stored = cell.stored(progress)
    with (
        one_thread_for_products(),
        MemoryWatch() as memory,
    ):  # our own threads work side by side, those of products do not
        with during(progress, "warming up"):
            _warm_up_method(method, corpus, queries, normals)
        with during(progress, "fitting"):
            began = time.perf_counter()
            fitted = method.fit(corpus, normals, in_place=True, stored=stored).prepare()
            ready = time.perf_counter()
        encode_s = fitted.encode_seconds
        with during(progress, "searching"):
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


def measure_two_stage(cell: ScaleCell, progress: Progress) -> list[TwoStage]:
    """Measure all shortlists that the corpus is long enough for."""
    material = cell.world.open(cell.size)
    corpus, queries, normals = (
        conceal(part, in_place=True) for part in (material.corpus, material.queries, material.normals)
    )
    stored = cell.stored(progress)
    with one_thread_for_products():
        with during(progress, "warming up"):
            _warm_up_stages(corpus, queries)
        method = single_leg(cell.method)
        if not method.legs[0].embeds:
            raise UsageError(f"--two-stage takes an encoder, such as sonde. Got {cell.method}.")
        encoder = method.fit(corpus, normals, in_place=True, stored=stored).prepare()
        pair = _Pair(encoder, DtwIndependent().fit(corpus, normals), queries)
        with during(progress, "exact search"):
            exact = pair.exact()
        lengths = [m for m in SHORTLISTS if m < len(corpus)]
        found = [
            _judge(cell, material, pair.shortlist(length), exact, length)
            for length in each(lengths, "shortlists", progress)
        ]
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


def _judge(cell: ScaleCell, material: Material, short: _Shortlist, exact: _Exact, length: int) -> TwoStage:
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
        for method in (*self.methods, *((self.two_stage,) if self.two_stage else ())):
            single_leg(method)

    def cells(self, vectors: Path) -> list[ScaleCell]:
        """All methods on one size after the other, the encoder of two stages followed by both stages.

        Args:
            vectors: folder where vectors of corpora are kept while they are needed.
        """
        shortlisting = str(parse(self.two_stage)) if self.two_stage else ""
        names = [str(parse(method)) for method in self.methods]
        found = []
        for size in self.sizes:
            for method in dict.fromkeys([*names, *([shortlisting] if shortlisting else [])]):
                cell = ScaleCell(self.world, size, method, vectors, self.jobs)
                if method in names:
                    found.append(replace(cell, keep=method == shortlisting))
                if method == shortlisting:
                    found.append(replace(cell, two_stage=True))
        return found


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


def measure_scale(study: ScaleStudy, out: Path, progress: Progress = SILENT) -> Findings:
    """Measure what is not measured yet, one cell after the other: side by side they would slow each other down.

    Args:
        study: what to measure.
        out: folder of the study. Vectors lie there too while they are needed.
        progress: told how far it has come.
    """
    build_s = study.world.build(study.sizes, study.jobs, progress)
    vectors = out.absolute() / "vectors"
    ended = measure_cells(study.cells(vectors), identify_cell, measure_cell, out, progress=progress)
    failures = tuple(Failure(str(cell), one.failure) for cell, one in ended.items() if one.failure)
    if not failures:
        shutil.rmtree(vectors, ignore_errors=True)
    alone = [ScaleMeasurement(**row) for cell, one in ended.items() for row in one.rows if not cell.two_stage]
    paired = [TwoStage(**row) for cell, one in ended.items() for row in one.rows if cell.two_stage]
    return Findings(tuple(alone), tuple(paired), failures, build_s)


def identify_cell(cell: ScaleCell) -> str:
    """Fingerprint of all that a result depends on, the machine aside."""
    return f"{cell.key} two stages" if cell.two_stage else cell.key


def measure_cell(cell: ScaleCell, progress: Progress) -> list[Row]:
    """Measure a cell in a fresh process, so that nothing before it counts for its time and memory."""
    return in_fresh_process(measure_here, cell, progress)


def measure_here(cell: ScaleCell, progress: Progress) -> list[Row]:
    """In that process: one row, or one a length of the shortlist."""
    if cell.two_stage:
        return [asdict(row) for row in measure_two_stage(cell, progress)]
    return [asdict(measure(cell, progress))]
