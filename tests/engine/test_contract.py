"""The contract suite over everything registered, and the gate between methods and what they must not see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from readbench.benchmark.protocol import Source
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Scores
from readbench.engine.registry import ENCODERS, METRICS, RETRIEVERS, SOURCES
from readbench.engine.testing._retrievers import other_knowledge_leaves_no_trace, threads_do_not_meet
from readbench.engine.windows import WindowSet
from readbench.testing import (
    ENCODER_CHECKS,
    METRIC_CHECKS,
    RETRIEVER_CHECKS,
    SOURCE_CHECKS,
    EncoderCheck,
    MetricCheck,
    RetrieverCheck,
    SourceCheck,
    reachable,
)

VARIANTS = ("euclidean(norm=none)", "euclidean(norm=window)", "euclidean(align=position)")
METHODS = [
    pytest.param(text, marks=pytest.mark.skipif(bool(reason), reason=reason))
    for text in (*RETRIEVERS.names(), *VARIANTS)
    if (reason := RETRIEVERS.get(text.partition("(")[0]).unavailable()) is not None
]
ENCODERS_AT_HAND = [
    pytest.param(text, marks=pytest.mark.skipif(bool(reason), reason=reason))
    for text in ("raw", "raw(norm=window)", "rocket(features=84)", "ts2vec(steps=2)")
    if (reason := ENCODERS.get(text.partition("(")[0]).unavailable()) is not None
]
"""Those without pretrained weights; encoders around a network are checked with small ones of their own."""
COMPOSED = (
    "euclidean|ws|dtw-i",
    "rocket(features=84)+nr|rrf|sbd-d+gpc",
    "euclidean+majvote",
    "rocket(features=84)|ws|departure+verdict(views=pooled)",
    "rocket(features=84)|ws|departure+verdict(views=pooled,spread=0.3)",
    "departure+verdict(views=pooled)",
)
"""Methods of several parts, which have states to meet in."""
GENERATED = [entry.name for entry in SOURCES if entry.build().info.generated]


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_contract(method: str, check: RetrieverCheck) -> None:
    check(method)


@pytest.mark.parametrize("check", [other_knowledge_leaves_no_trace, threads_do_not_meet])
@pytest.mark.parametrize("method", COMPOSED)
def test_every_composition_gives_each_who_asks_the_same(method: str, check: RetrieverCheck) -> None:
    check(method)


@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("encoder", ENCODERS_AT_HAND)
def test_every_encoder_keeps_the_contract(encoder: str, check: EncoderCheck) -> None:
    check(encoder)


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", METRICS.names())
def test_every_metric_keeps_the_contract(metric: str, check: MetricCheck) -> None:
    check(metric)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", GENERATED)
def test_every_generated_source_keeps_the_contract(name: str, check: SourceCheck) -> None:
    source: Source = SOURCES.get(name).build()
    check(source, None)


class LeavesQueriesLyingAbout:
    """Between two steps of scoring, its queries are where the next ones will be."""

    uses_labels = False
    corpus_dependent = False

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002 - part of the protocol
        self.size = len(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        self.queries = queries
        time.sleep(0.001)
        return np.tile(np.float32(self.queries.lengths[:, None]), self.size)


def test_a_method_in_which_threads_meet_is_found() -> None:
    RETRIEVERS.register("lying-about")(LeavesQueriesLyingAbout)
    try:
        other_knowledge_leaves_no_trace("lying-about")
        with pytest.raises(AssertionError):
            threads_do_not_meet("lying-about")
    finally:
        del RETRIEVERS._entries["lying-about"]


class Spy:
    """Keeps everything it is given, to be searched afterwards."""

    def __init__(self, *, uses_labels: bool) -> None:
        self.uses_labels = uses_labels
        self.corpus_dependent = True
        self.given: list[WindowSet] = []

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        self.corpus = (corpus, normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        self.queries = queries
        return np.zeros((len(queries), len(self.corpus[0])), np.float32)


SECRET_LABEL, SECRET_TIME = 7_654_321, 1.23456789e9
SECRET_NAMES = ("secret class", "secret group", "secret asset", "secret id")


def secret_windows() -> WindowSet:
    """Windows whose every fact can be recognised; queries and corpus share one buffer, as in a task."""
    return WindowSet.from_arrays(
        np.random.default_rng(0).standard_normal((6, 2, 16)),
        labels=[SECRET_LABEL] * 6,
        classes=("normal", "secret class"),
        ids=[f"secret id {i}" for i in range(6)],
        groups=["secret group"] * 6,
        assets=["secret asset"] * 6,
        times=[SECRET_TIME] * 6,
    )


def secrets_in(*roots: object) -> set[str]:
    """Names of the secrets that can be reached."""
    found: set[str] = set()
    for item in reachable(*roots):
        if isinstance(item, str | bytes):
            text = item if isinstance(item, str) else item.decode(errors="ignore")
            found |= {name for name in SECRET_NAMES if name in text}
        elif isinstance(item, int | float) and item in (SECRET_LABEL, SECRET_TIME):
            found.add("label" if item == SECRET_LABEL else "time")
        elif isinstance(item, np.ndarray) and item.dtype.kind in "if":
            found |= {"label"} if (item == SECRET_LABEL).any() else set()
            found |= {"time"} if (item == SECRET_TIME).any() else set()
    return found


@contextmanager
def registered(*, uses_labels: bool) -> Iterator[Spy]:
    """A spy that is the retriever `spy`."""
    spy = Spy(uses_labels=uses_labels)
    RETRIEVERS.register("spy")(lambda: spy)
    try:
        yield spy
    finally:
        del RETRIEVERS._entries["spy"]


def spied(*, uses_labels: bool) -> Spy:
    windows = secret_windows()
    stats = ChannelStats.of(windows)
    with registered(uses_labels=uses_labels) as spy:
        Method("spy").fit(windows[:4].with_stats(stats), windows[:1]).score(windows[4:])
    return spy


def test_the_search_for_secrets_finds_them_where_they_are() -> None:
    assert secrets_in(secret_windows()) == {*SECRET_NAMES, "label", "time"}


@pytest.mark.parametrize("uses_labels", [True, False])
def test_nothing_about_a_query_but_its_values_can_be_reached(uses_labels: bool) -> None:  # noqa: FBT001
    assert secrets_in(spied(uses_labels=uses_labels).queries) == set()


def test_a_query_does_not_lead_to_the_windows_beside_it() -> None:
    queries = spied(uses_labels=False).queries
    assert sum(array.size for array in reachable(queries) if isinstance(array, np.ndarray) and array.ndim == 1) < 6 * 32


def test_a_label_free_method_cannot_reach_anything_but_values_of_the_corpus() -> None:
    assert secrets_in(spied(uses_labels=False).corpus) == set()


def test_a_label_aware_method_sees_the_labels_of_the_corpus() -> None:
    assert {"label", "secret class"} <= secrets_in(spied(uses_labels=True).corpus)


def test_a_method_with_wrong_scores_is_told_so() -> None:
    windows = secret_windows()
    with registered(uses_labels=False) as spy:
        fitted = Method("spy").fit(windows[:4])
        spy.score = lambda queries: np.full((len(queries), 4), np.nan, np.float32)  # type: ignore[method-assign]
        with pytest.raises(Exception, match="spy returned nan for query 0 and corpus item 0"):
            fitted.score(windows[4:])
        spy.score = lambda queries: np.zeros((len(queries), 3), np.float32)  # type: ignore[method-assign]
        with pytest.raises(Exception, match=r"shape \(2, 3\); expected \(2, 4\)"):
            fitted.score(windows[4:])


def test_real_data_are_read_only_from_the_variable(real_data: Path) -> None:
    assert real_data.is_dir()
