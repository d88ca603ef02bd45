"""MR-Hydra and RDST (aeon) as rankers: an item scores the query's posterior probability of the item's class.

Both see windows scaled per channel by the corpus and aligned to one grid (the longest length of the corpus, at least
20 steps; missing channels zero). Their classes are the labels of the corpus, including normal unless normals are
dropped. Items without label and dropped normals score below all others. With one class in the corpus all items score
alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import ScalesWindows
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Normalisation, Scaler, channel_axis, dense
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet

Posterior = Literal["onehot", "softmax"]
Form = Literal["mean", "joint"]
MIN_LENGTH = 20
"""Minimum timesteps of MultiRocket's convolutions; shorter windows are interpolated to this length."""


class _Reference:
    """Fits classifiers on the labelled corpus and ranks by their mean posterior."""

    uses_labels = True
    corpus_dependent = True
    norm: Normalisation
    posterior: Posterior
    drop_normals: bool

    def members(self) -> list[Any]:
        """Unfitted classifiers whose posteriors are averaged with equal weight."""
        raise TypeError("a reference names its members")

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Train on the labelled items of the corpus."""
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        self.axis_, self.length_ = channel_axis(corpus), max(int(corpus.lengths.max()), MIN_LENGTH)
        self.labels_ = corpus.labels
        known = np.flatnonzero(corpus.labels > NORMAL if self.drop_normals else corpus.labels != UNLABELLED)
        self.classes_ = np.unique(corpus.labels[known])
        self.fitted_: list[Any] = []
        if len(self.classes_) > 1:
            windows = self._grid(corpus[known])
            with _quiet():
                self.fitted_ = [member.fit(windows, corpus.labels[known]) for member in self.members()]
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) posterior of each item's class; -1 for items without label and dropped normals."""
        scores = np.full((len(queries), len(self.labels_)), -1.0, np.float32)
        posterior = self.posteriors(queries)
        for column, label in enumerate(self.classes_):
            scores[:, self.labels_ == label] = posterior[:, column : column + 1]
        return scores

    def posteriors(self, queries: WindowSet) -> NDArray[np.float64]:
        """(Q, K) mean posterior over the classes of the corpus."""
        if not self.fitted_:
            return np.ones((len(queries), len(self.classes_)))
        windows = self._grid(queries)
        with _quiet():
            members = [self._posterior(member, windows) for member in self.fitted_]
        mean: NDArray[np.float64] = np.mean(members, axis=0)
        return mean

    def _posterior(self, member: Any, windows: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
        if self.posterior == "onehot":
            return np.asarray(member.predict_proba(windows), np.float64)
        return _softmax(_decision(member, windows), len(self.classes_))

    def _grid(self, windows: WindowSet) -> NDArray[np.float64]:
        return dense(self.scale_(windows), channels=self.axis_, length=self.length_).astype(np.float64)


@RETRIEVERS.register(
    "mr-hydra",
    title="MR-Hydra",
    family="supervised",
    requires=("aeon", "torch"),
    extra="supervised",
    abilities=(ScalesWindows,),
)
@dataclass(eq=False)
class MrHydra(_Reference):
    """MultiRocket and Hydra trained on the labelled corpus.

    Args:
        norm: scaling of the windows.
        posterior: `onehot` as aeon's classifiers give (the paper's row), or a softmax of the ridge's decision values.
        form: mean of both posteriors (the paper's row), or one ridge on the features of both (aeon's
            MultiRocketHydraClassifier).
        drop_normals: exclude known normals from training and rank them last; otherwise normal is a class (the paper's
            row).
        seed: of the random kernels.
    """

    norm: Normalisation = "channel"
    posterior: Posterior = "onehot"
    form: Form = "mean"
    drop_normals: bool = False
    seed: Annotated[int, ParameterRange(0)] = 0

    def members(self) -> list[Any]:
        """MultiRocket and Hydra with aeon's defaults, separate or joined."""
        from aeon.classification import convolution_based as aeon  # noqa: PLC0415

        if self.form == "joint":
            return [aeon.MultiRocketHydraClassifier(random_state=self.seed)]
        return [aeon.MultiRocketClassifier(random_state=self.seed), aeon.HydraClassifier(random_state=self.seed)]


@RETRIEVERS.register(
    "rdst", title="RDST", family="supervised", requires=("aeon",), extra="supervised", abilities=(ScalesWindows,)
)
@dataclass(eq=False)
class Rdst(_Reference):
    """Random dilated shapelets trained on the labelled corpus.

    Args:
        norm: scaling of the windows.
        posterior: `onehot` as aeon's classifier gives (the paper's row), or a softmax of the ridge's decision values.
        drop_normals: exclude known normals from training and rank them last; otherwise normal is a class (the paper's
            row).
        seed: of the shapelets.
    """

    norm: Normalisation = "channel"
    posterior: Posterior = "onehot"
    drop_normals: bool = False
    seed: Annotated[int, ParameterRange(0)] = 0

    def members(self) -> list[Any]:
        """RDST with aeon's defaults."""
        from aeon.classification.shapelet_based import RDSTClassifier  # noqa: PLC0415

        return [RDSTClassifier(random_state=self.seed)]


_QUIET = Lock()
"""Warning filters are global to the process: one thread at a time changes them."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress aeon's warnings about constant channels and flat ridges; both are expected and give finite answers."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _decision(member: Any, windows: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    """Decision values of the ridge inside an aeon classifier."""
    if hasattr(member, "_transform_hydra"):
        return _joint_decision(member, windows)
    if hasattr(member, "transformer_"):
        return np.asarray(member.estimator_.decision_function(member.transformer_.transform(windows)), np.float64)
    pipeline = member.pipeline_ if hasattr(member, "pipeline_") else member.clf_
    return np.asarray(pipeline.decision_function(windows), np.float64)


def _joint_decision(member: Any, windows: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    """Decision values of aeon's MultiRocketHydraClassifier, whose parts are private."""
    hydra = member._scale_hydra.transform(member._transform_hydra.transform(windows))  # noqa: SLF001
    rocket = member._scale_multirocket.transform(member._transform_multirocket.transform(windows))  # noqa: SLF001
    return np.asarray(member.classifier.decision_function(np.concatenate((hydra, rocket), axis=1)), np.float64)


def _softmax(values: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """(Q, K) posteriors; a binary decision value becomes two columns."""
    table = np.column_stack([-values, values]) if classes == 2 and values.ndim == 1 else values
    shifted = np.exp(table - table.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = shifted / shifted.sum(axis=1, keepdims=True)
    return result
