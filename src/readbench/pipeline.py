"""From a method's spec to something that runs: the one place where methods meet windows.

Both the benchmark and the case library run methods through `System`. It is also the gate: what a method sees of the
queries, and of a corpus whose labels it may not use, is stripped here and nowhere else.
"""

from __future__ import annotations

from typing import Self

from readbench.errors import MethodError
from readbench.registry import RETRIEVERS
from readbench.retrieve import Retriever, Scores, checked_scores
from readbench.spec import MethodSpec, parse
from readbench.windows import WindowSet


class System:
    """A runnable method.

    >>> import numpy as np
    >>> corpus = WindowSet.from_arrays(np.arange(12.0).reshape(3, 1, 4))
    >>> System("euclidean(norm=none)").fit(corpus, corpus[:0]).score(corpus[1:2]).argmax()
    np.int64(1)
    """

    def __init__(self, method: MethodSpec | str) -> None:
        self.spec = parse(method) if isinstance(method, str) else method
        self._retriever = _build(self.spec)

    @property
    def uses_labels(self) -> bool:
        """Whether it reads corpus labels."""
        return self._retriever.uses_labels

    @property
    def corpus_dependent(self) -> bool:
        """Whether it must be fitted anew when the corpus grows."""
        return self._retriever.corpus_dependent

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Fit on what the method may see of the corpus and the normals."""
        if not len(corpus):
            raise MethodError(f"{self.spec}: the corpus is empty.")
        for windows in (corpus, normals):
            windows.require_finite()
        if not self.uses_labels:
            corpus, normals = corpus.anonymous(), normals.anonymous()
        self._items = len(corpus)
        self._retriever.fit(corpus, normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) checked scores; the method sees nothing of the queries but their values and channel names."""
        queries.require_finite()
        scores = self._retriever.score(queries.anonymous())
        return checked_scores(scores, len(queries), self._items, str(self.spec))


def _build(spec: MethodSpec) -> Retriever:
    leg = spec.legs[0]
    retriever: Retriever = RETRIEVERS.get(leg.stage.name).build(**dict(leg.stage.parameters))
    return retriever
