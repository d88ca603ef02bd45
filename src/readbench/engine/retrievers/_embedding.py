"""Retrieval in the space of an encoder, and the normal residual that takes common operation out of its vectors.

The normal residual is what a window's embedding is beyond what normal operation would explain:
r(u) = û - mean of the k normal embeddings nearest to û, renormalised; two windows are compared by the cosine of their
residuals (Eq. 3 of the paper). A fault is thus a departure from the normals near the same operating point; with
`reference=before`, from the time before the window, where it brings one.
"""

from __future__ import annotations

import time
from copy import copy
from typing import Annotated, Literal, Protocol, Self

import numpy as np

from readbench.common.progress import SILENT, Progress
from readbench.engine.abilities import Hits, OnDevice, UsesContext
from readbench.engine.context import ABSENT
from readbench.engine.devices import device_of
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Encoder, Metric, Scores, Vectors, unit_vectors
from readbench.engine.ranking import rank
from readbench.engine.registry import TRANSFORMS
from readbench.engine.retrievers._euclidean import euclidean_distances
from readbench.engine.retrievers._vector_search import top_k
from readbench.engine.vectors import Role, StoredVectors, VectorStore, encode_missing
from readbench.engine.windows import WindowSet, cut_befores

BLOCK = 512
"""Vectors compared with the pool at a time."""
STRETCHES = 8
"""Latest stretches of the time before a window whose vectors say what is usual."""


class Transform(Protocol):
    """Changes embeddings in the light of normal ones."""

    @property
    def metric(self) -> Metric:
        """How the results are compared."""
        ...

    def fit(self, normals: Vectors) -> Self:
        """Learn from the embeddings of normal windows (M, D); M may be 0."""
        ...

    def apply(self, vectors: Vectors) -> Vectors:
        """(N, D) transformed embeddings."""
        ...


class ContextualTransform(Transform, Protocol):
    """One that also takes what is usual for each window; it declares the ability `UsesContext`."""

    @property
    def uses_context(self) -> bool:
        """Whether it does, with the parameters it has."""
        ...

    def apply_beside(self, vectors: Vectors, usual: Vectors) -> Vectors:
        """(N, D) transformed embeddings.

        Args:
            vectors: (N, D).
            usual: (N, D) unit embeddings of the time before each window; rows of NaN where there is none.
        """
        ...


@TRANSFORMS.register("nr", title="NR", positional="k", abilities=(UsesContext,))
class NormalResidual:
    """Departure from the k nearest normal embeddings, or from the time before the window.

    With fewer than k normals in the pool all of them are used; with none the residual is the unit embedding itself. A
    window that is in the pool is never its own neighbour. A residual of length zero stays zero, with cosine 0 to all.

    Args:
        k: nearest normals.
        reference: `normals`; or `before`: the mean embedding of the time before, and the normals where there is none.
    """

    metric: Metric = "cosine"

    def __init__(
        self, k: Annotated[int, ParameterRange(1)] = 30, reference: Literal["normals", "before"] = "normals"
    ) -> None:
        self.k = k
        self.reference = reference

    @property
    def uses_context(self) -> bool:
        """Whether the time before the windows is the reference."""
        return self.reference == "before"

    def fit(self, normals: Vectors) -> Self:
        """Keep the unit embeddings of the pool."""
        self.pool_ = unit_vectors(normals)
        return self

    def apply(self, vectors: Vectors) -> Vectors:
        """(N, D) unit residuals."""
        units = unit_vectors(vectors)
        if not len(self.pool_):
            return units
        out = np.empty_like(units)

        def work(start: int) -> None:
            rows = units[start : start + BLOCK]
            out[start : start + BLOCK] = unit_vectors(rows - self._expected(rows))

        with Team() as team:
            team.each(work, range(0, len(units), BLOCK))
        return out

    def apply_beside(self, vectors: Vectors, usual: Vectors) -> Vectors:
        """(N, D) unit residuals against what is usual for each window; against the pool where that is unknown."""
        known = np.isfinite(usual).all(axis=1)
        out = np.empty_like(vectors, dtype=np.float32)
        out[known] = unit_vectors(unit_vectors(vectors[known]) - usual[known])
        out[~known] = self.apply(vectors[~known])
        return out

    def _expected(self, rows: Vectors) -> Vectors:
        """(B, D) mean of the nearest normals of each row."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        similarity = rows @ self.pool_.T
        # A window of the pool would be its own nearest normal. Products find the few that may be equal, since those of
        # equal rows are 1 up to rounding; the numbers themselves decide.
        for row, normal in np.argwhere(similarity > 1 - 1e-5):
            if np.array_equal(rows[row], self.pool_[normal]):
                similarity[row, normal] = -np.inf
        nearest = rank(similarity, min(self.k, len(self.pool_)))
        kept = np.isfinite(np.take_along_axis(similarity, nearest, axis=1))  # in a small pool it is among them
        # As a sparse product, the sums need no copy (B, k, D) of the neighbours.
        first = np.arange(len(rows) + 1) * nearest.shape[1]
        chosen = csr_array((kept.ravel().astype(np.float32), nearest.ravel(), first), shape=similarity.shape)
        expected: Vectors = (chosen @ self.pool_ / np.maximum(kept.sum(axis=1, keepdims=True), 1)).astype(np.float32)
        return expected


class EmbeddingRetriever:
    """Compares windows by the vectors of an encoder, after its transforms.

    Args:
        encoder: from window to vector.
        transforms: applied in order; the last one's metric counts.
        contextual: those of them that take what is usual for each window.
        shown_context: whether the encoder sees the context of windows, and not only the transforms.
        vectors: where vectors are kept; None computes them each time.
        stored: where those of a corpus that is too large for memory are kept, as they are compared; then they pass
            the store by.
        device: the encoder again, where it can run on a GPU: vectors are searched where it runs.
        progress: told how far an encoding has come.
        what: what it is told is done.
    """

    uses_labels = False

    def __init__(  # noqa: PLR0913 - what a leg injects
        self,
        encoder: Encoder,
        transforms: tuple[Transform, ...] = (),
        vectors: VectorStore | None = None,
        stored: StoredVectors | None = None,
        *,
        contextual: tuple[ContextualTransform, ...] = (),
        shown_context: bool = True,
        device: OnDevice | None = None,
        progress: Progress = SILENT,
        what: str = "encoding",
    ) -> None:
        self.encoder = encoder
        self.transforms = transforms
        self.contextual = contextual
        self.shown_context = shown_context
        self.vectors = vectors
        self.stored = stored
        self.device = device
        self.progress, self.what = progress, what
        self.encode_seconds = 0.0

    @property
    def corpus_dependent(self) -> bool:
        """Whether the vectors depend on the corpus."""
        return self.encoder.corpus_dependent

    @property
    def metric(self) -> Metric:
        """How vectors are compared."""
        return self.transforms[-1].metric if self.transforms else self.encoder.metric

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Encode the corpus, and the normals where a transform needs them."""
        shown = (corpus, normals) if self.shown_context else (corpus.with_context(None), normals.with_context(None))
        self.encoder.fit(*shown)
        vectors = self._encode(corpus[:0] if self.stored else corpus, "corpus")  # those of a large corpus come last
        reference = self._encode(normals, "corpus") if self.transforms and len(normals) else vectors[:0]
        for transform in self.transforms:
            transform.fit(reference)
            vectors, reference = self._apply(transform, vectors, corpus), self._apply(transform, reference, normals)
        self.vectors_ = self._fill(self.stored, corpus) if self.stored else vectors
        self._units: Vectors | None = None
        return self

    @property
    def units(self) -> Vectors:
        """(N, D) the vectors of the corpus with length one; made once, but for a corpus that is too large for it."""
        if self.stored:
            return unit_vectors(self.vectors_)
        if self._units is None:
            self._units = unit_vectors(self.vectors_)
        return self._units

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) cosine similarities or negative Euclidean distances."""
        return self.compare(self.represent(queries))

    def compare(self, vectors: Vectors) -> Scores:
        """(Q, N) the same of vectors (Q, D) that represent queries."""
        if self.metric == "cosine":
            return unit_vectors(vectors) @ self.units.T
        return np.negative(euclidean_distances(vectors, self.vectors_))

    def grow(self, more: WindowSet) -> Self:
        """The same encoder and transforms with the vectors of more windows behind those of the corpus."""
        vectors = self._encode(more, "corpus")
        for transform in self.transforms:
            vectors = self._apply(transform, vectors, more)
        grown = copy(self)
        units = np.concatenate([self.units, unit_vectors(vectors)])
        vars(grown).update(vectors_=np.concatenate([self.vectors_, vectors]), _units=units)
        return grown

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k most similar of the corpus for each query, in bounded memory; scores in double precision, rounded."""
        return top_k(self.represent(queries), self.vectors_, k, self.metric, device=device_of(self.device))

    def represent(self, windows: WindowSet) -> Vectors:
        """(N, D) vectors of windows as they are compared."""
        vectors = self._encode(windows, "queries")
        for transform in self.transforms:
            vectors = self._apply(transform, vectors, windows)
        return vectors

    def _fill(self, stored: StoredVectors, corpus: WindowSet) -> Vectors:
        alike = EmbeddingRetriever(  # what other processes need of this
            self.encoder, self.transforms, contextual=self.contextual, shown_context=self.shown_context
        )
        vectors = stored.fill(corpus, alike.represent)
        self.encode_seconds += stored.seconds
        return vectors

    def _apply(self, transform: Transform, vectors: Vectors, windows: WindowSet) -> Vectors:
        contextual = next((own for own in self.contextual if own is transform), None)
        if contextual is None or not len(vectors):
            return transform.apply(vectors)
        return contextual.apply_beside(vectors, self._usual(windows))

    def _usual(self, windows: WindowSet) -> Vectors:
        """(N, D) mean unit vector of the time before each window; NaN where there is none."""
        stretches, of, of_window = cut_befores(windows, STRETCHES)
        if not len(stretches):
            return np.full((len(windows), 1), np.nan, np.float32)
        units = unit_vectors(self._encode(stretches, "corpus"))
        means = np.stack([units[of == k].mean(axis=0) for k in range(int(of[-1]) + 1)])
        usual = np.full((len(windows), units.shape[1]), np.nan, np.float32)
        has = of_window != ABSENT
        usual[has] = means[of_window[has]]
        return usual

    def _encode(self, windows: WindowSet, role: Role) -> Vectors:
        began = time.perf_counter()
        windows = windows if self.shown_context else windows.with_context(None)
        if self.vectors is not None and self.vectors.keeps(self.encoder, role):
            vectors = encode_missing(self.vectors, self.encoder, windows, self.progress, what=self.what)
        else:
            vectors = self.encoder.encode(windows)
        self.encode_seconds += time.perf_counter() - began
        return vectors
