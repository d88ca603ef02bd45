"""Contests of our kernels with the peers that are installed: what is measured, one function per job.

Peers follow their own conventions; what is set here makes them compute the same thing (see docs/performance.md).

In reading order: distances and words (`dtw`, `sbd`, `bm25`); pools for the GPC job, and scikit-learn's way through
them; exact vector search, on the processor beside faiss and a plain product of matrices, on a GPU beside the bus; and
what a case library does all day, answer about one window.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.engine.devices import name_gpu
from readbench.engine.encoders._sonde import find_shipped_weights
from readbench.engine.method import Knowledge, Method
from readbench.engine.protocols import Pool, View
from readbench.engine.ranking import rank
from readbench.engine.retrievers import top_k
from readbench.engine.windows import UNLABELLED, WindowSet
from research.speed.arithmetic import multiply_adds
from research.speed.measure import Contender, Contest

T, RADIUS = 256, 26


def cases(threads: int) -> dict[str, Callable[[], Contest]]:
    """The jobs by name; building one makes its data."""
    known: dict[str, Callable[[], Contest]] = {
        "dtw": lambda: dtw(threads),
        "dtw-batch": lambda: dtw(threads, queries=20),
        "dtw-threads": dtw_threads,
        "dtw-search": lambda: dtw_search(threads),
        "dtw-search-noise": lambda: dtw_search(threads, items=1000, noise=True),
        "sbd-d": sbd,
        "bm25": bm25,
        "vectors": lambda: vectors(threads),
        "encode": lambda: encode(threads),
        "gpc": gpc,
        "answer": answer,
    }
    return known | ({"dtw-gpu": dtw_gpu, "vectors-gpu": lambda: vectors_gpu(name_gpu())} if name_gpu() else {})


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


def dtw(threads: int, items: int = 1000, queries: int = 1) -> Contest:
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
    return Contest(
        name="dtw" if queries == 1 else "dtw-batch",
        what=f"DTW of {queries} queries x {items} series, T={T}, radius {RADIUS}, {threads} thread",
        ours=Contender("readbench", _warping(corpus, query, threads)),
        peers=tuple(peers),
        agree=_close(1e-4),
        work=band_cells() * items * queries / 1e9,
        unit="Gcell/s",
        roof=_cell_roof(threads),
    )


def dtw_threads(items: int = 4000) -> Contest:
    """Our DTW on one thread against two."""
    corpus, queries = walks(items, 1, 0), walks(8, 1, 1)
    return Contest(
        name="dtw-threads",
        what=f"DTW of 8 queries x {items} series on two threads; the peer is ours on one",
        ours=Contender("readbench, 2 threads", _warping(corpus, queries, 2)),
        peers=(Contender("readbench, 1 thread", _warping(corpus, queries, 1)),),
        agree=np.testing.assert_array_equal,
        work=band_cells() * items * 8 / 1e9,
        unit="Gcell/s",
        roof=_cell_roof(2),
    )


def dtw_gpu(items: int = 10_000, queries: int = 64, channels: int = 8) -> Contest:
    """Our DTW-I on a GPU against ours on one thread of the processor."""
    from readbench.engine.retrievers import DtwIndependent  # noqa: PLC0415
    from research.speed.roof import cuda_cells_per_second  # noqa: PLC0415

    corpus, asked = _windows(walks(items, channels, 0)), _windows(walks(queries, channels, 1))
    there = DtwIndependent(norm="none", device="cuda").fit(corpus, corpus[:0])
    here = DtwIndependent(norm="none").fit(corpus, corpus[:0])
    return Contest(
        name="dtw-gpu",
        what=f"DTW-I of {queries} queries x {items} windows, C={channels}, T={T}, on {name_gpu()}; peer: one thread",
        ours=Contender("readbench, device=cuda", lambda: np.negative(there.score(asked))),
        peers=(Contender("readbench, device=cpu", _on(1, lambda: np.negative(here.score(asked)))),),
        agree=_close(1e-4),
        work=band_cells() * items * queries * channels / 1e9,
        unit="Gcell/s",
        roof=lambda: cuda_cells_per_second() / 1e9,
    )


def dtw_search(threads: int, items: int = 4000, queries: int = 20, *, noise: bool = False) -> Contest:
    """Our exact search for the nearest 20 against our full scan, on walks or on noise, where no bound helps."""
    from readbench.engine.retrievers import DtwIndependent  # noqa: PLC0415

    make, kind = (white_noise, "noise") if noise else (walks, "walks")
    corpus, asked = _windows(make(items, 2, 0)), _windows(make(queries, 2, 1))
    retriever = DtwIndependent(norm="none").fit(corpus, corpus[:0])
    return Contest(
        name="dtw-search-noise" if noise else "dtw-search",
        what=f"DTW-I top 20 of {queries} queries x {items} windows of {kind}, C=2, T={T}; the peer is our full scan",
        ours=Contender("readbench, search", _on(threads, lambda: retriever.search(asked, 20).indices)),
        peers=(Contender("readbench, full scan", _on(threads, lambda: rank(retriever.score(asked), 20))),),
        agree=np.testing.assert_array_equal,
        work=float(queries),
        unit="query/s",
    )


def sbd(items: int = 256, queries: int = 100, channels: int = 32) -> Contest:
    """SBD with one shared lag."""
    from readbench.engine.retrievers import DependentShapeBased  # noqa: PLC0415

    corpus, asked = walks(items, channels, 0), walks(queries, channels, 1)
    retriever = DependentShapeBased(norm="none")
    retriever.fit(_windows(corpus), _windows(corpus)[:0])
    wanted = _windows(asked)
    peers = []
    if find_spec("tslearn"):
        peers.append(Contender("tslearn", _tslearn(asked, corpus)))
    return Contest(
        name="sbd-d",
        what=f"SBD-D of {queries} queries x {items} windows, C={channels}, T={T}",
        ours=Contender("readbench", _on(1, lambda: -retriever.score(wanted))),
        peers=tuple(peers),
        agree=_close(1e-4),
        work=queries * items / 1e3,
        unit="kpair/s",
    )


def bm25(items: int = 5000, queries: int = 100, words: int = 20, channels: int = 32) -> Contest:
    """BM25 search over channel words."""
    from readbench.engine.retrievers import Bags, Bm25  # noqa: PLC0415

    rng = np.random.default_rng(0)
    size = 4**6
    tokens = rng.zipf(1.3, (items + queries, channels, words)) % size + np.arange(channels)[:, None] * size
    flat = tokens.reshape(items + queries, -1)
    bags = Bags.of(flat, channels * size)
    index, asked = Bm25(idf="plus1").fit(bags[:items], fields=1), bags[items:]
    peers = [Contender("bm25s (numba)", _bm25s(flat, items))] if find_spec("bm25s") else []
    return Contest(
        name="bm25",
        what=f"BM25 top 20 of {queries} queries x {items} documents of {words * channels} words, idf=plus1",
        ours=Contender("readbench", lambda: index.search(asked, 20).scores),
        peers=tuple(peers),
        agree=_close(1e-3),
        work=float(queries),
        unit="query/s",
    )


def gpc(queries: int = 100, width: int = 384, classes: int = 5) -> Contest:
    """The GPC reranker on pools of 20."""
    from readbench.engine.rerankers import GaussianProcess  # noqa: PLC0415

    pool = random_pool(queries, width, classes)
    reranker = GaussianProcess()
    return Contest(
        name="gpc",
        what=f"GPC reranking of {queries} pools of 20, D={width}, up to {classes} classes, PCA included",
        ours=Contender("readbench", lambda: reranker.rerank(pool)),
        peers=(Contender("scikit-learn", lambda: sklearn_probabilities(pool)),),
        agree=_close(1e-6),
        work=float(queries),
        unit="query/s",
    )


def encode(threads: int, items: int = 200, channels: int = 4) -> Contest:
    """Windows to vectors by the shipped networks, beside MiniRocket."""
    from readbench.engine.encoders import Rocket, Sonde  # noqa: PLC0415

    windows = _windows(walks(items, channels, seed=0))
    encoders: dict[str, Sonde | Rocket] = {
        "sonde(size=small)": Sonde(size="small", reference="none"),
        "sonde": Sonde(reference="none"),
        "rocket": Rocket(),
    }
    ours, *peers = (
        Contender(name, _on(threads, partial(encoder.fit(windows, windows[:0]).encode, windows)))
        for name, encoder in encoders.items()
    )
    return Contest(
        name="encode",
        what=f"vectors of {items} windows of {channels} channels and {T} points, without normal operation",
        ours=ours,
        peers=tuple(peers),
        agree=_as_many,
        work=float(items * channels),
        unit="channel/s",
        roof=_encoding_roof(threads),
    )


def _encoding_roof(threads: int) -> Callable[[], float]:
    from research.speed.roof import products_per_second  # noqa: PLC0415 - compiles

    return lambda: products_per_second(threads) / multiply_adds(find_shipped_weights("small"))


def _as_many(peer: Any, ours: Any) -> None:  # noqa: ANN401 - arrays
    """Encoders give vectors of their own; each window has one, and all are numbers."""
    assert len(peer) == len(ours)  # noqa: S101 - what `agree` promises
    assert np.isfinite(peer).all()  # noqa: S101


def _windows(values: NDArray[np.float32]) -> WindowSet:
    return WindowSet.from_arrays(values)


def _warping(corpus: NDArray[np.float32], queries: NDArray[np.float32], threads: int) -> Callable[[], Any]:
    from readbench.engine.retrievers import DtwIndependent  # noqa: PLC0415

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
    from research.speed.roof import cells_per_second  # noqa: PLC0415 - compiles

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


DEPTH = 20


def random_pool(queries: int, width: int, classes: int, items: int = 1000, seed: int = 0) -> Pool:
    """Clouds around one centre per class, and the nearest 20 items of each query."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, width)) * 0.35 * 64 / width
    labels = rng.integers(1, classes + 1, items).astype(np.int32)
    vectors = (centres[labels - 1] + rng.standard_normal((items, width))).astype(np.float32)
    asked = (centres[rng.integers(0, classes, queries)] + rng.standard_normal((queries, width))).astype(np.float32)
    scores = asked @ vectors.T - (vectors**2).sum(axis=1) / 2
    top = rank(scores, DEPTH)
    best = np.take_along_axis(scores, top, axis=1)
    known = np.broadcast_to(labels, (queries, items))
    return Pool(top, best, (View(asked, vectors),), known, np.arange(items), lambda: vectors @ vectors.T)


def sklearn_probabilities(pool: Pool) -> NDArray[np.float64]:
    """(Q, K) probability that each candidate shares its query's class, one query after the other."""
    from sklearn.decomposition import PCA  # noqa: PLC0415
    from sklearn.gaussian_process import GaussianProcessClassifier  # noqa: PLC0415

    kernel = _laplacian()
    rows = []
    for candidates, query, labels, base in zip(pool.candidates, pool.queries, pool.labels, pool.scores, strict=True):
        if len(np.unique(labels)) < 2:
            rows.append(base.astype(np.float64))
            continue
        points = np.vstack([pool.items[candidates], query[None]]).astype(np.float64)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        points = PCA(0.95, svd_solver="full").fit_transform(points)
        fitted = GaussianProcessClassifier(kernel, optimizer=None).fit(points[:-1], labels)
        chance = dict(zip(fitted.classes_.tolist(), fitted.predict_proba(points[-1:])[0], strict=True))
        rows.append(np.array([chance[label] for label in labels.tolist()]))
    return np.stack(rows)


def _laplacian() -> Any:  # noqa: ANN401 - a scikit-learn kernel
    from scipy.spatial.distance import cdist  # noqa: PLC0415
    from sklearn.gaussian_process.kernels import Kernel, NormalizedKernelMixin, StationaryKernelMixin  # noqa: PLC0415

    class Laplacian(StationaryKernelMixin, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
        """exp(-|x - y|_1) with fixed length scale."""

        def __init__(self) -> None:
            """No parameters; scikit-learn reads them from here."""

        def __call__(self, left: Any, right: Any = None, eval_gradient: bool = False) -> Any:  # noqa: ANN401, ARG002, FBT001, FBT002
            return np.exp(-cdist(left, left if right is None else right, "cityblock"))

    return Laplacian()


Floats = NDArray[np.float32]
WIDTH, QUERIES, K = 384, 100, 20


def vectors(threads: int, items: int = 300_000) -> Contest:
    """Ours against the peers on so many threads."""
    asked, corpus = sample(items)
    peers = [Contender("numpy (BLAS)", lambda: brute_force(asked, corpus))]
    if find_spec("faiss"):
        peers.append(Contender("faiss flat, tuned", _faiss(asked, corpus, threads)))
    return Contest(
        name="vectors",
        what=f"exact top {K} of {QUERIES} queries x {items} vectors of {WIDTH}, {threads} thread",
        ours=Contender("readbench", lambda: top_k(asked, corpus, K, threads=threads).indices),
        peers=tuple(peers),
        agree=np.testing.assert_array_equal,
        work=2.0 * QUERIES * items * WIDTH / 1e9,
        unit="GFLOP/s",
    )


def vectors_gpu(name: str, items: int = 2_000_000) -> Contest:
    """Ours on a GPU against ours on one thread of the processor; the corpus lies in main memory.

    Args:
        name: of the GPU.
        items: vectors of the corpus.
    """
    from research.speed.roof import bytes_per_second  # noqa: PLC0415

    asked, corpus = sample(items)
    return Contest(
        name="vectors-gpu",
        what=f"exact top {K} of {QUERIES} queries x {items} vectors of {WIDTH}, on {name}; the peer is one thread",
        ours=Contender("readbench, device=cuda", lambda: top_k(asked, corpus, K, device="cuda").indices),
        peers=(Contender("readbench, device=cpu", lambda: top_k(asked, corpus, K, threads=1).indices),),
        agree=np.testing.assert_array_equal,
        work=corpus.nbytes / 1e9,
        unit="GB/s",
        roof=lambda: bytes_per_second() / 1e9,
    )


def sample(items: int) -> tuple[Floats, Floats]:
    """Queries and a corpus of random vectors."""
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((items, WIDTH), np.float32)
    return rng.standard_normal((QUERIES, WIDTH), np.float32), corpus


def brute_force(asked: Floats, corpus: Floats, k: int = K) -> NDArray[np.int64]:
    """(Q, k) nearest vectors as one writes it down: all products at once, twice as many as asked for in full."""
    squares = np.einsum("nd,nd->n", corpus, corpus)
    near = squares - 2 * (asked @ corpus.T)
    rough = np.argpartition(near, 2 * k, axis=1)[:, : 2 * k]
    gaps = asked[:, None].astype(np.float64) - corpus[rough]
    order = np.argsort(np.einsum("qkd,qkd->qk", gaps, gaps), axis=1)[:, :k]
    return np.take_along_axis(rough, order, axis=1)


def _faiss(asked: Floats, corpus: Floats, threads: int) -> Callable[[], Any]:
    import faiss  # noqa: PLC0415

    faiss.cvar.distance_compute_blas_threshold = 20  # its default is four times slower at this size
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(corpus.shape[1])
    index.add(corpus)
    return lambda: index.search(asked, K)[1]


METHOD = "raw|ws(alpha=0.7)|raw(norm=window)|ws(alpha=0.7)|dtw-i+verdict"
"""The flagship's shape, with vectors that cost nothing in the place of its encoders."""
CLASSES, CHANNELS, LENGTH, NOISE = 8, 8, 256, 8.0


def answer(cases: int = 1000) -> Contest:
    """One window against a library of cases, after the encoder: three legs, fusion, posterior and order."""
    library, query = library_of(cases), library_of(1, seed=1)
    fitted = Method(METHOD).fit(library).prepare()
    anew = Knowledge(library.labels)

    def from_scratch() -> NDArray[np.int64]:
        fitted.lesson(Knowledge(np.full(cases, UNLABELLED, np.int32)))  # what was learned is forgotten
        return fitted.rank(query, knowledge=anew).order[0]

    return Contest(
        name="answer",
        what=f"one window against {cases} cases after the encoder, C={CHANNELS}, T={LENGTH}, with DTW-I and verdict;"
        " the peer learns from all labels anew",
        ours=Contender("readbench, fitted", lambda: fitted.rank(query).order[0]),
        peers=(Contender("readbench, from scratch", from_scratch),),
        agree=np.testing.assert_array_equal,
        work=1.0,
        unit="query/s",
    )


def library_of(cases: int, seed: int = 0) -> WindowSet:
    """Cases of several fault types, each with a shape of its own under noise, four to a recording."""
    shapes = np.random.default_rng(0).standard_normal((CLASSES, CHANNELS, LENGTH)).cumsum(axis=2) / LENGTH**0.5
    rng = np.random.default_rng([seed, 1])
    labels = rng.integers(1, CLASSES + 1, cases)
    values = shapes[labels - 1] + NOISE * rng.standard_normal((cases, CHANNELS, LENGTH))
    names = ("normal", *(f"fault {number}" for number in range(1, CLASSES + 1)))
    groups = [str(number) for number in np.arange(cases) // 4]
    return WindowSet.from_arrays(values, labels=labels, classes=names, groups=groups)
