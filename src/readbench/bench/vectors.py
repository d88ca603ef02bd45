"""Exact vector search: on the processor beside faiss and a plain product of matrices, on a GPU beside the bus."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.bench.measure import Case, Contender
from readbench.retrieve.vectors import top_k

Floats = NDArray[np.float32]
WIDTH, QUERIES, K = 384, 100, 20


def vectors(threads: int, items: int = 300_000) -> Case:
    """Ours against the peers on so many threads."""
    asked, corpus = sample(items)
    peers = [Contender("numpy (BLAS)", lambda: brute_force(asked, corpus))]
    if find_spec("faiss"):
        peers.append(Contender("faiss flat, tuned", _faiss(asked, corpus, threads)))
    return Case(
        name="vectors",
        what=f"exact top {K} of {QUERIES} queries x {items} vectors of {WIDTH}, {threads} thread",
        ours=Contender("readbench", lambda: top_k(asked, corpus, K, threads=threads).indices),
        peers=tuple(peers),
        agree=np.testing.assert_array_equal,
        work=2.0 * QUERIES * items * WIDTH / 1e9,
        unit="GFLOP/s",
    )


def vectors_gpu(name: str, items: int = 2_000_000) -> Case:
    """Ours on a GPU against ours on one thread of the processor; the corpus lies in main memory.

    Args:
        name: of the GPU.
        items: vectors of the corpus.
    """
    from readbench.bench.roof_cuda import bytes_per_second  # noqa: PLC0415

    asked, corpus = sample(items)
    return Case(
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
