"""An encoder and DTW-I together: a shortlist that DTW-I ranks, and an exact DTW-I search that starts from the hits.

The shortlist is fast, but misses what the encoder misses: its recall of the exact answer says how often. The seeded
search gives the exact answer, and the hits only tell it early how near the best must be.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from readbench.errors import MethodError, UsageError
from readbench.pipeline import FittedMethod, conceal
from readbench.processes import Tell
from readbench.retrieve import Hits
from readbench.retrieve.dtw import DtwIndependent
from readbench.scale.cell import DEPTH, WARM_UP, Cell, ndcg, single_leg
from readbench.scale.world import Material
from readbench.windows import WindowSet

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


def measure_two_stage(cell: Cell, tell: Tell) -> list[TwoStage]:
    """Measure all shortlists that the corpus is long enough for."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    material = cell.world.open(cell.size)
    corpus, queries, normals = (
        conceal(part, in_place=True) for part in (material.corpus, material.queries, material.normals)
    )
    stored = cell.stored(tell)
    with threadpool_limits(1):
        tell("warming up", 0, cell.size)
        _warm_up(corpus, queries)
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


def _judged(cell: Cell, material: Material, short: _Shortlist, exact: _Exact, length: int) -> TwoStage:
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


def _warm_up(corpus: WindowSet, queries: WindowSet) -> None:
    warping = DtwIndependent().fit(corpus[:WARM_UP], corpus[:0])
    warping.among(queries[:4], np.arange(8)[None].repeat(4, axis=0), 2)
    warping.search(queries[:4], 1)
