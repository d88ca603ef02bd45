"""Names of the release before this one; they work with a warning, and go in the next."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Self

from readbench.common.progress import SILENT, Progress
from readbench.engine.method import FittedMethod, Method
from readbench.engine.protocols import Scores
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet


class System:
    """What `Method` was called: `Method(text).fit(corpus, normals).rank(queries)` takes its place."""

    def __init__(self, method: MethodSpec | str, cache: Path | None = None, encoding: Progress = SILENT) -> None:
        warnings.warn("System is now Method: Method(...).fit(...).rank(...).", DeprecationWarning, stacklevel=2)
        self._method = Method(method, vectors=VectorFolder(cache) if cache else None, progress=encoding)
        self._fitted: FittedMethod | None = None

    @property
    def spec(self) -> MethodSpec:
        """The method's spec."""
        return self._method.spec

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Fit all legs."""
        self._fitted = self._method.fit(corpus, normals).prepare()
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) scores of the whole method."""
        if self._fitted is None:
            raise RuntimeError("Call fit before score.")
        return self._fitted.score(queries)
