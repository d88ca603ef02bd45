"""What is measured: one function per job, each with the peers that are installed.

Peers follow their own conventions; what is set here makes them compute the same thing (see docs/performance.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.bench.measure import Case, Contender
from readbench.ranking import rank
from readbench.windows import WindowSet

T, RADIUS = 256, 26


def cases(threads: int) -> dict[str, Callable[[], Case]]:
    """The jobs by name; building one makes its data."""
    known: dict[str, Callable[[], Case]] = {
        "dtw": lambda: dtw(threads),
        "dtw-batch": lambda: dtw(threads, queries=20),
        "dtw-threads": dtw_threads,
        "dtw-search": lambda: dtw_search(threads),
        "dtw-search-noise": lambda: dtw_search(threads, items=1000, noise=True),
        "sbd-d": sbd,
        "bm25": bm25,
        "vectors": lambda: _vectors(threads),
        "gpc": gpc,
        "answer": _answer,
    }
    return known | ({"dtw-gpu": dtw_gpu, "vectors-gpu": _vectors_gpu} if gpu() else {})


def gpu() -> str:
    """Name of the GPU that torch can use; empty where there is none."""
    if not find_spec("torch"):
        return ""
    import torch  # noqa: PLC0415 - slow to import

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def walks(count: int, channels: int, seed: int, length: int = T) -> NDArray[np.float32]:
    """(count, channels, length) z-normalised random walks."""
    steps = np.random.default_rng(seed).standard_normal((count, channels, length))
    series = steps.cumsum(axis=2)
    series -= series.mean(axis=2, keepdims=True)
    scaled: NDArray[np.float32] = (series / series.std(axis=2, keepdims=True)).astype(np.float32)
    return scaled


def white_noise(count: int, channels: int, seed: int, length: int = T) -> NDArray[np.float32]:
    """(count, channels, length) independent numbers."""
    return np.random.default_rng(seed).standard_normal((count, channels, length), np.float32)


def band_cells(length: int = T, radius: int = RADIUS) -> int:
    """Cells of the cost matrix inside the band."""
    rows = np.arange(length)
    return int((np.minimum(rows + radius, length - 1) - np.maximum(rows - radius, 0) + 1).sum())


def dtw(threads: int, items: int = 1000, queries: int = 1) -> Case:
    """DTW of queries against 1000 series."""
    corpus, query = walks(items, 1, 0), walks(queries, 1, 1)
    peers = []
    if find_spec("aeon"):
        from aeon.distances import pairwise_distance  # noqa: PLC0415

        window = (RADIUS + 0.5) / T  # aeon rounds the share down
        wide, one = corpus.astype(np.float64), query.astype(np.float64)
        peers.append(Contender("aeon", lambda: pairwise_distance(one, wide, method="dtw", window=window)))
    if find_spec("dtaidistance"):
        from dtaidistance.dtw import distance_fast  # noqa: PLC0415

        series, asked = corpus[:, 0].astype(np.float64), query[:, 0].astype(np.float64)
        peers.append(
            Contender(
                "dtaidistance",
                lambda: np.array([[distance_fast(q, s, window=RADIUS + 1) ** 2 for s in series] for q in asked]),
            )
        )
    return Case(
        name="dtw" if queries == 1 else "dtw-batch",
        what=f"DTW of {queries} queries x {items} series, T={T}, radius {RADIUS}, {threads} thread",
        ours=Contender("readbench", _warping(corpus, query, threads)),
        peers=tuple(peers),
        agree=_close(1e-4),
        work=band_cells() * items * queries / 1e9,
        unit="Gcell/s",
        roof=_cell_roof(threads),
    )


def dtw_threads(items: int = 4000) -> Case:
    """Our DTW on one thread against two."""
    corpus, queries = walks(items, 1, 0), walks(8, 1, 1)
    return Case(
        name="dtw-threads",
        what=f"DTW of 8 queries x {items} series on two threads; the peer is ours on one",
        ours=Contender("readbench, 2 threads", _warping(corpus, queries, 2)),
        peers=(Contender("readbench, 1 thread", _warping(corpus, queries, 1)),),
        agree=np.testing.assert_array_equal,
        work=band_cells() * items * 8 / 1e9,
        unit="Gcell/s",
        roof=_cell_roof(2),
    )


def dtw_gpu(items: int = 10_000, queries: int = 64, channels: int = 8) -> Case:
    """Our DTW-I on a GPU against ours on one thread of the processor."""
    from readbench.bench.roof_cuda import cells_per_second  # noqa: PLC0415
    from readbench.retrieve.dtw import DtwIndependent  # noqa: PLC0415

    corpus, asked = _windows(walks(items, channels, 0)), _windows(walks(queries, channels, 1))
    there = DtwIndependent(norm="none", device="cuda").fit(corpus, corpus[:0])
    here = DtwIndependent(norm="none").fit(corpus, corpus[:0])
    return Case(
        name="dtw-gpu",
        what=f"DTW-I of {queries} queries x {items} windows, C={channels}, T={T}, on {gpu()}; the peer is one thread",
        ours=Contender("readbench, device=cuda", lambda: np.negative(there.score(asked))),
        peers=(Contender("readbench, device=cpu", _on(1, lambda: np.negative(here.score(asked)))),),
        agree=_close(1e-4),
        work=band_cells() * items * queries * channels / 1e9,
        unit="Gcell/s",
        roof=lambda: cells_per_second() / 1e9,
    )


def dtw_search(threads: int, items: int = 4000, queries: int = 20, *, noise: bool = False) -> Case:
    """Our exact search for the nearest 20 against our full scan, on walks or on noise, where no bound helps."""
    from readbench.retrieve.dtw import DtwIndependent  # noqa: PLC0415

    make, kind = (white_noise, "noise") if noise else (walks, "walks")
    corpus, asked = _windows(make(items, 2, 0)), _windows(make(queries, 2, 1))
    retriever = DtwIndependent(norm="none").fit(corpus, corpus[:0])
    return Case(
        name="dtw-search-noise" if noise else "dtw-search",
        what=f"DTW-I top 20 of {queries} queries x {items} windows of {kind}, C=2, T={T}; the peer is our full scan",
        ours=Contender("readbench, search", _on(threads, lambda: retriever.search(asked, 20).indices)),
        peers=(Contender("readbench, full scan", _on(threads, lambda: rank(retriever.score(asked), 20))),),
        agree=np.testing.assert_array_equal,
        work=float(queries),
        unit="query/s",
    )


def sbd(items: int = 256, queries: int = 100, channels: int = 32) -> Case:
    """SBD with one shared lag."""
    from readbench.retrieve.sbd import DependentShapeBased  # noqa: PLC0415

    corpus, asked = walks(items, channels, 0), walks(queries, channels, 1)
    retriever = DependentShapeBased(norm="none")
    retriever.fit(_windows(corpus), _windows(corpus)[:0])
    wanted = _windows(asked)
    peers = []
    if find_spec("tslearn"):
        peers.append(Contender("tslearn", _tslearn(asked, corpus)))
    return Case(
        name="sbd-d",
        what=f"SBD-D of {queries} queries x {items} windows, C={channels}, T={T}",
        ours=Contender("readbench", _on(1, lambda: -retriever.score(wanted))),
        peers=tuple(peers),
        agree=_close(1e-4),
        work=queries * items / 1e3,
        unit="kpair/s",
    )


def bm25(items: int = 5000, queries: int = 100, words: int = 20, channels: int = 32) -> Case:
    """BM25 search over channel words."""
    from readbench.retrieve.bags import Bags  # noqa: PLC0415
    from readbench.retrieve.bm25 import Bm25  # noqa: PLC0415

    rng = np.random.default_rng(0)
    size = 4**6
    tokens = rng.zipf(1.3, (items + queries, channels, words)) % size + np.arange(channels)[:, None] * size
    flat = tokens.reshape(items + queries, -1)
    bags = Bags.of(flat, channels * size)
    index, asked = Bm25(idf="plus1").fit(bags[:items], fields=1), bags[items:]
    peers = [Contender("bm25s (numba)", _bm25s(flat, items))] if find_spec("bm25s") else []
    return Case(
        name="bm25",
        what=f"BM25 top 20 of {queries} queries x {items} documents of {words * channels} words, idf=plus1",
        ours=Contender("readbench", lambda: index.search(asked, 20).scores),
        peers=tuple(peers),
        agree=_close(1e-3),
        work=float(queries),
        unit="query/s",
    )


def gpc(queries: int = 100, width: int = 384, classes: int = 5) -> Case:
    """The GPC reranker on pools of 20."""
    from readbench.bench.pools import random_pool, sklearn_probabilities  # noqa: PLC0415
    from readbench.rerank.gpc import GaussianProcess  # noqa: PLC0415

    pool = random_pool(queries, width, classes)
    reranker = GaussianProcess()
    return Case(
        name="gpc",
        what=f"GPC reranking of {queries} pools of 20, D={width}, up to {classes} classes, PCA included",
        ours=Contender("readbench", lambda: reranker.rerank(pool)),
        peers=(Contender("scikit-learn", lambda: sklearn_probabilities(pool)),),
        agree=_close(1e-6),
        work=float(queries),
        unit="query/s",
    )


def _vectors(threads: int) -> Case:
    from readbench.bench.vectors import vectors  # noqa: PLC0415 - slow to import

    return vectors(threads)


def _vectors_gpu() -> Case:
    from readbench.bench.vectors import vectors_gpu  # noqa: PLC0415 - slow to import

    return vectors_gpu(gpu())


def _answer() -> Case:
    from readbench.bench.answers import answer  # noqa: PLC0415 - slow to import

    return answer()


def _windows(values: NDArray[np.float32]) -> WindowSet:
    return WindowSet.from_arrays(values)


def _warping(corpus: NDArray[np.float32], queries: NDArray[np.float32], threads: int) -> Callable[[], Any]:
    from readbench.retrieve.dtw import DtwIndependent  # noqa: PLC0415

    retriever = DtwIndependent(norm="none").fit(_windows(corpus), _windows(corpus)[:0])
    asked = _windows(queries)
    return _on(threads, lambda: np.negative(retriever.score(asked)))


def _on(threads: int, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work, with our kernels on so many threads."""

    def run() -> Any:  # noqa: ANN401 - what the work returns
        with _threads(threads):
            return work()

    return run


def _cell_roof(threads: int) -> Callable[[], float]:
    from readbench.bench.roof import cells_per_second  # noqa: PLC0415 - compiles

    return lambda: cells_per_second(threads) / 1e9


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Our kernels on so many threads."""
    before = os.environ.get("READBENCH_THREADS")
    os.environ["READBENCH_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["READBENCH_THREADS"]
        else:
            os.environ["READBENCH_THREADS"] = before


def _tslearn(asked: NDArray[np.float32], corpus: NDArray[np.float32]) -> Callable[[], Any]:
    from tslearn.metrics.cycc import cdist_normalized_cc  # noqa: PLC0415

    left, right = (np.ascontiguousarray(a.transpose(0, 2, 1).astype(np.float64)) for a in (asked, corpus))
    norms = [np.linalg.norm(a, axis=(1, 2)) for a in (left, right)]
    return lambda: 1.0 - cdist_normalized_cc(left, right, norms[0], norms[1], self_similarity=False)


def _bm25s(tokens: NDArray[np.int64], items: int) -> Callable[[], Any]:
    import bm25s  # noqa: PLC0415

    texts = [[str(t) for t in row] for row in tokens]
    index = bm25s.BM25(method="lucene", idf_method="lucene", k1=1.5, b=0.75, backend="numba")
    index.index(texts[:items], show_progress=False)
    asked = texts[items:]
    return lambda: index.retrieve(asked, k=20, show_progress=False, n_threads=1).scores * 2.5


def _close(tolerance: float) -> Callable[[Any, Any], None]:
    return lambda ours, other: np.testing.assert_allclose(
        np.asarray(ours, float), np.asarray(other, float), rtol=tolerance, atol=tolerance
    )
