"""Shortcut probes look at what they say and at nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.context import Context
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet

LEVELS = np.array([0.0, 0.0, 10.0, 10.0])
"""Operating points of four windows."""
RIPPLE = np.resize([1.0, -1.0], (1, 64))


def lifted(by: float) -> WindowSet:
    """Windows of which every second one lies above the time before it."""
    befores = [level + RIPPLE for level in LEVELS]
    values = [before + by * (i % 2) for i, before in enumerate(befores)]
    return WindowSet.from_arrays(values, channels=("p",), context=Context.of(4, befores=befores))


def nearest(method: str, queries: WindowSet, corpus: WindowSet) -> list[int]:
    return Method(method).fit(corpus).rank(queries, k=1).order[:, 0].tolist()


def test_levels_find_the_operating_point_and_departures_the_fault() -> None:
    corpus, queries = lifted(3.0), lifted(2.5)
    for probe in ("stats", "before-level"):
        assert [hit // 2 for hit in nearest(probe, queries, corpus)] == [0, 0, 1, 1]
    other = corpus[[2, 3]]  # the operating point of the first two queries is not among the cases
    assert nearest("stats(norm=before)", queries[[0, 1]], other) == [0, 1]
    assert nearest("stats", queries[[0, 1]], other) == [0, 0]


def test_stats_do_not_see_the_time_before_unless_asked() -> None:
    corpus, queries = lifted(3.0), lifted(2.5)
    bare = [windows.with_context(None) for windows in (corpus, queries)]
    seen = Method("stats").fit(corpus).score(queries)
    np.testing.assert_array_equal(seen, Method("stats").fit(bare[0]).score(bare[1]))
    asked = Method("stats(norm=before)").fit(corpus).score(queries)
    assert not np.array_equal(asked, Method("stats(norm=before)").fit(bare[0]).score(bare[1]))


def test_the_time_before_alone_is_compared_by_hand() -> None:
    befores = [[[0.0, 2.0]], [[4.0, 6.0]], None]  # means 1 and 5, deviations 1 and 1
    corpus = WindowSet.from_arrays(np.zeros((3, 1, 4)), context=Context.of(3, befores=befores))
    found = Method("before-level").fit(corpus).score(corpus)
    # scaled means -1, 1 and, absent, 0; deviations never vary; 1, 1 and 0 for being there
    expected = [[0, 2, np.sqrt(2)], [2, 0, np.sqrt(2)], [np.sqrt(2), np.sqrt(2), 0]]
    np.testing.assert_allclose(found, np.negative(expected), rtol=1e-6)


def test_the_time_before_alone_sees_nothing_of_the_window() -> None:
    corpus = lifted(3.0)
    other = WindowSet.from_arrays(np.ones((4, 1, 9)), channels=("p",), context=corpus.context)
    probe = Method("before-level").fit(corpus)
    np.testing.assert_array_equal(probe.score(corpus), probe.score(other))


@pytest.mark.parametrize("method", ["before-level", "stats(norm=before)"])
def test_windows_without_any_time_before_are_ranked_all_the_same(method: str) -> None:
    corpus = lifted(3.0).with_context(None)
    assert np.isfinite(Method(method).fit(corpus, corpus).score(corpus)).all()


def test_channels_that_only_some_windows_have_count_as_present_or_absent() -> None:
    context = Context.of(2, befores=[[[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]]])
    corpus = WindowSet.from_arrays([np.zeros((1, 3)), np.zeros((2, 3))], channels=[("p",), ("p", "T")], context=context)
    scores = Method("before-level").fit(corpus).score(corpus)
    np.testing.assert_allclose(scores, [[0, -1], [-1, 0]])
