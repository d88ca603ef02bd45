"""Exact search for the nearest vectors, in one pass over a corpus that may be larger than memory.

Vectors are rounded to small integers, whose inner products give an upper bound of each similarity at low cost. Only
vectors that may be among the k best are compared in double precision. The result is that of the full comparison for
any number of threads, and equal vectors get equal scores. On a GPU the bound is a product in single precision, and the
result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import Hits
from readbench.engine.devices import Device, pick_device
from readbench.engine.kernels.threads import Team
from readbench.engine.protocols import Metric, Scores, Vectors
from readbench.errors import NotFiniteError, ParameterError, UsageError

MOST_QUERIES = 512
"""Queries compared in one pass over the corpus: their codes should fit in the cache of a core."""
HEAP_ITEMS = 2**22
"""Largest number of queries times k in a pass; a thread needs 12 bytes for each."""
CENTRE_ROWS = 4096
"""Vectors whose mean is subtracted before rounding, which keeps precision where all are far from zero."""


def top_k(
    queries: Vectors,
    corpus: Vectors,
    k: int,
    metric: Metric = "euclidean",
    *,
    threads: int | None = None,
    device: Device = "cpu",
) -> Hits:
    """The k corpus vectors most similar to each query, best first; ties keep corpus order.

    Scores are cosines (0 with a vector of length zero) or negative Euclidean distances, computed in double precision
    and rounded once.

    Args:
        queries: (Q, D) float32.
        corpus: (N, D) float32, in rows (C order); memory-mapped is fine, it is read once per `MOST_QUERIES` queries.
        k: how many; all N where there are fewer.
        metric: `cosine` or `euclidean`.
        threads: default all that are available.
        device: `cuda` searches on a GPU, which needs the package torch: the corpus streams through it once. `auto`
            does so where there is one.

    Returns:
        Positions and scores (Q, min(k, N)).

    >>> corpus = np.array([[0, 1], [2, 0], [0, 3]], np.float32)
    >>> top_k(np.array([[0, 2]], np.float32), corpus, 2, "cosine").indices
    array([[0, 2]])
    """
    queries, corpus = _checked(queries, corpus, k)
    k = min(k, len(corpus))
    hits = Hits(np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32))
    if not hits.indices.size:
        return hits
    centre = _centre(corpus, metric)
    if device != "cpu" and pick_device(device, "top_k") != "cpu":
        return _on_gpu(queries, corpus, centre, k, metric, threads)
    batch = int(np.clip(HEAP_ITEMS // k, 1, MOST_QUERIES))
    with Team(threads) as team:
        for start in range(0, len(queries), batch):
            part = slice(start, start + batch)
            rounded = _Rounded.of(queries[part], centre, metric)
            hits.indices[part], hits.scores[part] = _search(rounded, corpus, k, team)
    return hits


def _checked(queries: Vectors, corpus: Vectors, k: int) -> tuple[Vectors, Vectors]:
    if k < 1:
        raise ParameterError(f"The 'k' parameter of top_k must be an int in the range [1, inf). Got {k} instead.")
    rows, items = (np.asarray(vectors) for vectors in (queries, corpus))
    matching = rows.shape[1:] == items.shape[1:] and 0 not in items.shape[1:]
    if rows.ndim != 2 or items.ndim != 2 or (len(rows) and len(items) and not matching):
        raise UsageError(f"Vectors must be matrices of equal width; got queries {rows.shape}, corpus {items.shape}.")
    rows, items = (np.ascontiguousarray(vectors, np.float32) for vectors in (rows, items))
    _require_finite(rows, "query")
    return rows, items


def _require_finite(vectors: Vectors, kind: str, offset: int = 0) -> None:
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise NotFiniteError(
            f"Vector {offset + int(bad.argmax())} of the {kind} vectors holds NaN or infinity."
            " The encoder that made it must return finite vectors."
        )


def _centre(corpus: Vectors, metric: Metric) -> Vectors:
    """(D,) subtracted from both sides before rounding; zeros for cosines."""
    if metric == "cosine":
        return np.zeros(corpus.shape[1], np.float32)
    head = corpus[:CENTRE_ROWS]
    _require_finite(head, "corpus")
    centre: Vectors = head.mean(axis=0, dtype=np.float64).astype(np.float32)
    return centre


@dataclass(frozen=True, eq=False)
class _Rounded:
    """Queries in the form that the kernels read.

    Args:
        vectors: (Q, D) as given.
        lengths: (Q,) of the shifted queries.
        centre: (D,) the shift.
        packed: their codes, from `pack_queries`.
        top: largest code.
        coarseness: largest share of a query that its codes leave out.
        tiles: (tiles, 3, QUERIES) flat; see `find_promising`.
        cosine: the metric.
    """

    vectors: Vectors
    lengths: NDArray[np.float64]
    centre: Vectors
    packed: NDArray[np.int32]
    top: int
    coarseness: float
    tiles: NDArray[np.float64]
    cosine: bool

    @classmethod
    def of(cls, queries: Vectors, centre: Vectors, metric: Metric) -> Self:
        """Round the queries, and measure the rounding error in double precision."""
        from readbench.engine.kernels.codes import largest_code, pack_queries  # noqa: PLC0415 - compiles

        shifted = queries.astype(np.float64) - centre
        lengths = np.linalg.norm(shifted, axis=1)
        if metric == "cosine":
            shifted /= np.where(lengths > 0, lengths, 1)[:, None]
        sizes = np.ones(len(queries)) if metric == "cosine" else lengths
        top = largest_code(queries.shape[1])
        steps = np.abs(shifted).max(axis=1, initial=0) / top
        codes = np.rint(shifted / np.where(steps > 0, steps, 1)[:, None])
        rest = np.linalg.norm(shifted - codes * steps[:, None], axis=1)
        share = np.divide(rest, sizes, out=np.zeros_like(rest), where=sizes > 0)
        return cls(
            vectors=queries,
            lengths=lengths,
            centre=centre,
            packed=pack_queries(codes.astype(np.int16)),
            top=top,
            coarseness=float(share.max()),
            tiles=_tiles(steps, sizes),
            cosine=metric == "cosine",
        )


def _tiles(steps: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(tiles, 3, QUERIES) flat: step, size, and what to reach: anything at first, and nothing in empty places."""
    from readbench.engine.kernels.codes import QUERIES  # noqa: PLC0415

    count = -(-len(steps) // QUERIES)
    numbers = np.zeros((3, count * QUERIES))
    numbers[2] = np.inf
    numbers[:, : len(steps)] = steps, sizes, np.full(len(steps), -np.inf)
    return np.ascontiguousarray(numbers.reshape(3, count, QUERIES).transpose(1, 0, 2)).ravel()


def _search(rounded: _Rounded, corpus: Vectors, k: int, team: Team) -> tuple[NDArray[np.int64], Scores]:
    """Each thread searches its share of the corpus; their results are merged."""
    found = team.each(lambda own: _scan(rounded, corpus, own.start, own.stop, k), team.shares(len(corpus)))
    items, scores = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    order = np.lexsort((items, -scores))[:, :k]
    return np.take_along_axis(items, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _scan(rounded: _Rounded, corpus: Vectors, first: int, last: int, k: int) -> tuple[NDArray[np.int64], Scores]:
    """The k best of corpus vectors [first, last), unordered; unused places score -inf."""
    from readbench.engine.kernels.codes import ROWS, pair_count  # noqa: PLC0415
    from readbench.engine.kernels.memory import BLOCK, allocate_aligned  # noqa: PLC0415
    from readbench.engine.kernels.nearest import scan  # noqa: PLC0415

    shape, pairs = (len(rounded.vectors), k), pair_count(corpus.shape[1])
    items, scores = np.full(shape, len(corpus), np.int64), np.full(shape, -np.inf, np.float32)
    scratch, panel = allocate_aligned(BLOCK * pairs + corpus.shape[1]), allocate_aligned(ROWS * pairs)
    scratch[:] = 0
    bad = scan(
        corpus,
        first,
        last,
        rounded.vectors,
        rounded.lengths,
        rounded.centre,
        rounded.cosine,
        rounded.packed,
        rounded.top,
        rounded.coarseness,
        rounded.tiles.copy(),
        scores,
        items,
        scratch,
        panel,
    )
    if bad >= 0:
        _refuse(corpus, bad)
    return items, scores


def _on_gpu(queries: Vectors, corpus: Vectors, centre: Vectors, k: int, metric: Metric, threads: int | None) -> Hits:
    from readbench.engine.kernels.vectors_cuda import UncomparableError, nearest  # noqa: PLC0415

    cosine = metric == "cosine"
    with Team(threads) as team:
        try:
            return Hits(*nearest(queries, corpus, centre, k, cosine=cosine, device="cuda", team=team))
        except UncomparableError as error:
            _refuse(corpus, error.position)


def _refuse(corpus: Vectors, bad: int) -> NoReturn:
    """Raise the error about a vector that cannot be compared."""
    _require_finite(corpus[bad : bad + 1], "corpus", bad)
    raise ParameterError(f"Vector {bad} of the corpus vectors is too large to be compared; scale the vectors.")
