"""A comparison by DTW ends when its time is over, not when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from readbench.common.deadlines import Deadline, set_deadline
from readbench.engine.kernels import dtw_corpus
from readbench.engine.kernels.dtw import LANES
from readbench.engine.retrievers import DtwIndependent
from readbench.engine.windows import WindowSet
from readbench.errors import OverdueError

TILES = 12


@pytest.fixture
def windows() -> WindowSet:
    return WindowSet.from_arrays(np.random.default_rng(0).standard_normal((TILES * LANES, 2, 20)))


@pytest.fixture
def count_scans(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], None]], list[int]]:
    """Calls a function with the number of each piece that is compared."""

    def watch(told: Callable[[int], None]) -> list[int]:
        calls = list[int]()
        scan: Any = dtw_corpus.scan

        def counted(*given: object) -> None:
            calls.append(len(calls))
            told(len(calls))
            scan(*given)

        monkeypatch.setattr(dtw_corpus, "scan", counted)
        return calls

    return watch


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_comparison_ends_inside(
    windows: WindowSet,
    count_scans: Callable[[Callable[[int], None]], list[int]],
    monkeypatch: pytest.MonkeyPatch,
    threads: str,
) -> None:
    monkeypatch.setattr(dtw_corpus, "MOST_CELLS", 1)
    monkeypatch.setenv("READBENCH_THREADS", threads)
    deadline = Deadline(time.monotonic() + 600)

    def end(number: int) -> None:
        if number == 3:
            deadline.at = time.monotonic() - 1

    calls = count_scans(end)
    retriever = DtwIndependent().fit(windows, windows[:0])
    with set_deadline(deadline), pytest.raises(OverdueError, match="Ask for less"):
        retriever.score(windows[:1])
    assert 3 <= len(calls) < 3 + int(threads)


def test_looks_at_the_clock_change_no_bit(windows: WindowSet, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = DtwIndependent().fit(windows, windows[:0])
    whole = retriever.score(windows[:3])
    monkeypatch.setattr(dtw_corpus, "MOST_CELLS", 1)
    np.testing.assert_array_equal(retriever.score(windows[:3]), whole)


def test_long_comparisons_are_cut_into_short_ones(
    count_scans: Callable[[Callable[[int], None]], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READBENCH_THREADS", "1")
    calls = count_scans(lambda _: None)
    corpus = WindowSet.from_arrays(np.zeros((8 * LANES, 1, 256), np.float32))
    query = WindowSet.from_arrays(np.zeros((1, 1, 40_000)))
    DtwIndependent().fit(corpus, corpus[:0]).score(query)
    assert len(calls) > 1
