"""Retrieval in the space of an encoder."""

from __future__ import annotations

import time
from typing import Self

import numpy as np

from readbench.encoders import EmbeddingCache, Encoder, Metric, Pretrained, Vectors, unit
from readbench.retrieve.base import Scores
from readbench.retrieve.euclidean import euclidean_distances
from readbench.retrieve.residual import Transform
from readbench.windows import WindowSet


class EmbeddingRetriever:
    """Compares windows by the vectors of an encoder, after its transforms.

    Args:
        encoder: from window to vector.
        transforms: applied in order; the last one's metric counts.
        cache: where vectors are filed; None computes them each time.
    """

    uses_labels = False

    def __init__(self, encoder: Encoder, transforms: tuple[Transform, ...], cache: EmbeddingCache | None) -> None:
        self.encoder = encoder
        self.transforms = transforms
        self.cache = cache
        self.encode_seconds = 0.0

    @property
    def corpus_dependent(self) -> bool:
        """Whether the vectors depend on the corpus."""
        return self.encoder.corpus_dependent

    @property
    def content_key(self) -> str:
        """Hash of the files that the encoder reads; empty where it reads none."""
        return self.encoder.weights_fingerprint() if isinstance(self.encoder, Pretrained) else ""

    @property
    def metric(self) -> Metric:
        """How vectors are compared."""
        return self.transforms[-1].metric if self.transforms else self.encoder.metric

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Encode the corpus, and the normals where a transform needs them."""
        self.encoder.fit(corpus, normals)
        vectors = self._encode(corpus)
        reference = self._encode(normals) if self.transforms and len(normals) else vectors[:0]
        for transform in self.transforms:
            vectors = transform.fit(reference).apply(vectors)
            reference = transform.apply(reference)
        self.vectors_ = vectors
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) cosine similarities or negative Euclidean distances."""
        vectors = self.represent(queries)
        if self.metric == "cosine":
            return unit(vectors) @ unit(self.vectors_).T
        return np.negative(euclidean_distances(vectors, self.vectors_))

    def represent(self, windows: WindowSet) -> Vectors:
        """(N, D) vectors of windows as they are compared."""
        vectors = self._encode(windows)
        for transform in self.transforms:
            vectors = transform.apply(vectors)
        return vectors

    def _encode(self, windows: WindowSet) -> Vectors:
        began = time.perf_counter()
        vectors = self.cache.encode(self.encoder, windows) if self.cache else self.encoder.encode(windows)
        self.encode_seconds += time.perf_counter() - began
        return vectors
