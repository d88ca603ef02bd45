"""An encoder that reads a file, for tests in this process and in others."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from readbench.engine.abilities import Pretrained
from readbench.engine.protocols import Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet

WEIGHTS_VARIABLE = "READBENCH_TEST_WEIGHTS"


class Filed:
    """Means of the channels, turned by an angle that stands in a file."""

    metric: Metric = "cosine"
    corpus_dependent = False
    encoded: ClassVar[int] = 0

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        return self

    def encode(self, windows: WindowSet) -> Vectors:
        type(self).encoded += len(windows)
        power = float(self._text())
        return np.array([[1.0, abs(w.values.mean()) ** power] for w in windows], np.float32)

    def fingerprint(self) -> str:
        return f"filed-{self.weights_fingerprint()}"

    def weights_fingerprint(self) -> str:
        return hashlib.sha256(self._text().encode()).hexdigest()[:16]

    def _text(self) -> str:
        return Path(os.environ[WEIGHTS_VARIABLE]).read_text()


def register() -> None:
    """Make it known as `filed`."""
    ENCODERS.register("filed", title="Filed", family="embedder", abilities=(Pretrained,))(Filed)
