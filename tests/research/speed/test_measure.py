"""Measuring: answers first, then medians of paired ratios and shares."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from readbench.errors import MethodError
from research.speed.measure import Contender, Contest, measure


def job(*, peer: float = 1.0, roof: list[float] | None = None) -> Contest:
    """Ours answers 1; six units of work."""
    rates = None if roof is None else iter(roof)
    return Contest(
        name="job",
        what="a job",
        ours=Contender("ours", lambda: 1.0),
        peers=(Contender("peer", lambda: peer),),
        agree=np.testing.assert_equal,
        work=6.0,
        unit="things/s",
        roof=None if rates is None else lambda: next(rates),
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds in which ours takes 1, 2 and 3 seconds, the peer 4, 4 and 30."""
    taken: Iterator[float] = iter([1, 4, 2, 4, 3, 30])
    monkeypatch.setattr(sys.modules["research.speed.measure"], "_timed", lambda _contender: next(taken))


@pytest.mark.usefixtures("clock")
def test_ratios_and_shares_are_taken_within_a_round() -> None:
    ours, peer = (result := measure(job(roof=[12, 6, 4]), repeats=3)).timings
    assert (ours.seconds, ours.rate, ours.ratio) == (2, 3, 1)
    assert (peer.seconds, peer.rate, peer.ratio) == (4, 1.5, 4)
    assert result.roof == 6
    assert ours.share_of_roof == 0.5  # of 6/12, 3/6 and 2/4
    assert peer.share_of_roof == pytest.approx(0.125)  # of 1.5/12, 1.5/6 and 0.2/4


@pytest.mark.usefixtures("clock")
def test_without_a_roof_there_is_no_share() -> None:
    result = measure(job(), repeats=3)
    assert result.roof is None
    assert [timing.share_of_roof for timing in result.timings] == [None, None]


def test_another_answer_is_not_measured() -> None:
    with pytest.raises(MethodError, match="job: peer gives another answer than ours"):
        measure(job(peer=2.0), repeats=1)
