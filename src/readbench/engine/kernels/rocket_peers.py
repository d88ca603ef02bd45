"""MultiRocket and Hydra as aeon has them, behind the same two steps as our MiniRocket.

Tan, Dempster, Bergmeir and Webb, "MultiRocket" (2022); Dempster, Schmidt and Webb, "Hydra" (2023).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.errors import UsageError

Floats = NDArray[np.float32]
SHORTEST = 10
"""Both also look at the differences between neighbouring points, of which there must be nine."""
GROUP_FEATURES = 16
"""Features of a group of eight Hydra kernels at one dilation: a maximum and a minimum each."""


class MultiRocket:
    """Four statistics of each response, of the series and of its differences: eight features a kernel."""

    def __init__(self, features: int, seed: int) -> None:
        self.features, self.seed = features, seed

    def fit(self, windows: Floats) -> Self:
        """Draw kernels for windows (N, C, T)."""
        kind = _transformer("MultiRocket", "multi")
        self._model = kind(n_kernels=max(84, self.features // 8), n_jobs=1, random_state=self.seed)
        with _global_seed_kept():
            self._model.fit(_at_least_two(windows))
        return self

    def transform(self, windows: Floats) -> Floats:
        """(N, F) features."""
        with _global_seed_kept():
            return np.asarray(self._model.transform(windows), np.float32)

    def state(self) -> list[bytes]:
        """What was fitted, for a fingerprint."""
        parts = (*self._model.parameter, *self._model.parameter1)
        return [version("aeon").encode(), *(np.asarray(part).tobytes() for part in parts)]


class Hydra:
    """Groups of random kernels that compete for each point: who wins how often, and by how much."""

    def __init__(self, features: int, seed: int) -> None:
        self.features, self.seed = features, seed

    def fit(self, windows: Floats) -> Self:
        """Draw kernels for windows (N, C, T)."""
        torch = _package("torch", "hydra")
        dilations = int(np.log2((windows.shape[2] - 1) / 8)) + 1
        groups = max(2, self.features // (GROUP_FEATURES * dilations))
        kind = _transformer("HydraTransformer", "hydra")
        self._model = kind(n_groups=groups, n_jobs=1, random_state=self.seed, output_type="numpy")
        threads = torch.get_num_threads()
        with torch.random.fork_rng(devices=[]):
            self._model.fit(_at_least_two(windows))
        torch.set_num_threads(threads)
        return self

    def transform(self, windows: Floats) -> Floats:
        """(N, F) features."""
        with _package("torch", "hydra").inference_mode():
            return np.asarray(self._model.transform(windows), np.float32)

    def state(self) -> list[bytes]:
        """What was fitted, for a fingerprint."""
        network = self._model._hydra  # noqa: SLF001 - aeon keeps it nowhere else
        return [version("aeon").encode(), *(np.asarray(part).tobytes() for part in (network.W, *network.idx))]


def _transformer(name: str, kind: str) -> Any:  # noqa: ANN401 - an optional package
    _package("aeon", kind)
    return getattr(importlib.import_module("aeon.transformations.collection.convolution_based"), name)


def _package(name: str, kind: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"rocket(kind={kind}) needs {error.name}: pip install 'readbench[supervised]', or use kind=mini."
        ) from error


def _at_least_two(windows: Floats) -> Floats:
    """Aeon drops the axis of a single window."""
    return windows if len(windows) > 1 else np.repeat(windows, 2, axis=0)


@contextmanager
def _global_seed_kept() -> Iterator[None]:
    """Aeon seeds numpy's global generator; whoever else uses it should not notice."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
