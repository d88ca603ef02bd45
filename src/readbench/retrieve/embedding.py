"""Retrieval in the space of an encoder."""

from __future__ import annotations

import time
from typing import Self

import numpy as np

from readbench.abilities import OnDevice
from readbench.encoders import Encoder, Metric, Vectors, VectorStore, encode_missing, unit
from readbench.encoders.cache import Role, Told
from readbench.encoders.devices import device_of
from readbench.retrieve.base import Hits, Scores
from readbench.retrieve.euclidean import euclidean_distances
from readbench.retrieve.residual import Transform
from readbench.retrieve.stored import StoredVectors
from readbench.retrieve.vectors import top_k
from readbench.windows import WindowSet


class EmbeddingRetriever:
    """Compares windows by the vectors of an encoder, after its transforms.

    Args:
        encoder: from window to vector.
        transforms: applied in order; the last one's metric counts.
        vectors: where vectors are kept; None computes them each time.
        stored: where those of a corpus that is too large for memory are kept, as they are compared; then they pass
            the store by.
        device: the encoder again, where it can run on a GPU: vectors are searched where it runs.
        told: told how far an encoding has come.
    """

    uses_labels = False

    def __init__(
        self,
        encoder: Encoder,
        transforms: tuple[Transform, ...] = (),
        vectors: VectorStore | None = None,
        stored: StoredVectors | None = None,
        *,
        device: OnDevice | None = None,
        told: Told | None = None,
    ) -> None:
        self.encoder = encoder
        self.transforms = transforms
        self.vectors = vectors
        self.stored = stored
        self.device = device
        self.told = told
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
        self.encoder.fit(corpus, normals)
        vectors = self._encode(corpus[:0] if self.stored else corpus, "corpus")  # those of a large corpus come last
        reference = self._encode(normals, "corpus") if self.transforms and len(normals) else vectors[:0]
        for transform in self.transforms:
            vectors = transform.fit(reference).apply(vectors)
            reference = transform.apply(reference)
        self.vectors_ = self._fill(self.stored, corpus) if self.stored else vectors
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) cosine similarities or negative Euclidean distances."""
        vectors = self.represent(queries)
        if self.metric == "cosine":
            return unit(vectors) @ unit(self.vectors_).T
        return np.negative(euclidean_distances(vectors, self.vectors_))

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k most similar of the corpus for each query, in bounded memory; scores in double precision, rounded."""
        return top_k(self.represent(queries), self.vectors_, k, self.metric, device=device_of(self.device))

    def represent(self, windows: WindowSet) -> Vectors:
        """(N, D) vectors of windows as they are compared."""
        vectors = self._encode(windows, "queries")
        for transform in self.transforms:
            vectors = transform.apply(vectors)
        return vectors

    def _fill(self, stored: StoredVectors, corpus: WindowSet) -> Vectors:
        alike = EmbeddingRetriever(self.encoder, self.transforms)  # what other processes need of this
        vectors = stored.filled(corpus, alike.represent)
        self.encode_seconds += stored.seconds
        return vectors

    def _encode(self, windows: WindowSet, role: Role) -> Vectors:
        began = time.perf_counter()
        if self.vectors is not None and self.vectors.keeps(self.encoder, role):
            vectors = encode_missing(self.vectors, self.encoder, windows, self.told)
        else:
            vectors = self.encoder.encode(windows)
        self.encode_seconds += time.perf_counter() - began
        return vectors
