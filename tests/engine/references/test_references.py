from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.references._classifiers import _softmax
from readbench.engine.registry import RETRIEVERS
from readbench.engine.windows import WindowSet
from readbench.testing import sample_windows

METHODS = [
    pytest.param(text, marks=pytest.mark.skipif(bool(reason), reason=reason))
    for text in (
        "mr-hydra",
        "mr-hydra(posterior=softmax)",
        "mr-hydra(form=joint)",
        "mr-hydra(form=joint,posterior=softmax)",
        "rdst",
        "rdst(posterior=softmax)",
    )
    if (reason := RETRIEVERS.get(text.partition("(")[0]).unavailable()) is not None
]


def separable(count: int, seed: int, *, ragged: bool = False) -> WindowSet:
    """Windows whose class is their frequency."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    values = []
    for label in labels:
        length = int(rng.integers(40, 60)) if ragged else 48
        wave = np.sin((label + 1) * np.arange(length) / 3 + rng.uniform(0, 6))
        values.append(np.stack([wave, rng.standard_normal(length)]))
    return WindowSet.from_arrays(values, labels=labels, classes=("normal", "slow", "fast"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ragged", [False, True])
def test_items_of_the_query_s_class_come_first(method: str, ragged: bool) -> None:  # noqa: FBT001
    corpus, queries = separable(36, 0, ragged=ragged), separable(9, 1, ragged=ragged)
    scores = Method(method).fit(corpus, corpus[:0]).score(queries)
    first = corpus.labels[rank(scores, 1)[:, 0]]
    assert (first == queries.labels).mean() >= 0.8


@pytest.mark.parametrize("method", METHODS)
def test_items_without_label_come_last(method: str) -> None:
    corpus = separable(36, 0)
    corpus = WindowSet.from_arrays(
        [w.values for w in corpus], labels=np.where(np.arange(36) % 4 == 0, -1, corpus.labels)
    )
    order = rank(Method(method).fit(corpus, corpus[:0]).score(separable(3, 1)))
    assert (corpus.labels[order[:, -9:]] == -1).all()


@pytest.mark.parametrize("method", ["mr-hydra(drop_normals=true)", "rdst(drop_normals=true)"])
def test_dropped_normals_teach_nothing_and_come_last(method: str) -> None:
    pytest.importorskip("aeon", reason="needs the extra `supervised`")
    pytest.importorskip("torch", reason="needs the extra `supervised`")
    corpus, queries = separable(36, 0), separable(9, 1)
    faults = corpus.labels > 0
    scores = Method(method).fit(corpus, corpus[:0]).score(queries)
    assert (scores[:, ~faults] == -1).all()
    assert (scores[:, faults].max(axis=1) > 0).all()  # also of normal queries: every query has a most likely fault


@pytest.mark.parametrize("method", METHODS)
def test_one_class_leaves_the_order_alone(method: str) -> None:
    corpus = separable(12, 0)
    corpus = corpus[corpus.labels == 1]
    scores = Method(method).fit(corpus, corpus[:0]).score(separable(3, 1))
    assert (rank(scores) == np.arange(len(corpus))).all()


@pytest.mark.parametrize("method", METHODS)
def test_windows_shorter_than_the_convolutions_are_stretched(method: str) -> None:
    pytest.importorskip("aeon", reason="needs the extra `supervised`")
    pytest.importorskip("torch", reason="needs the extra `supervised`")
    corpus = sample_windows(8, length=8)
    assert Method(method).fit(corpus, corpus[:0]).score(corpus).shape == (8, 8)


def test_the_paper_s_posterior_is_the_mean_of_two_one_hot_members() -> None:
    pytest.importorskip("aeon", reason="needs the extra `supervised`")
    pytest.importorskip("torch", reason="needs the extra `supervised`")
    corpus = separable(36, 0)
    scores = Method("mr-hydra").fit(corpus, corpus[:0]).score(separable(9, 1))
    assert set(np.unique(scores).tolist()) <= {0.0, 0.5, 1.0}


def test_softmax_turns_one_decision_value_into_two_posteriors() -> None:
    posterior = _softmax(np.array([0.0, 100.0]), 2)
    np.testing.assert_allclose(posterior, [[0.5, 0.5], [0.0, 1.0]], atol=1e-12)
