"""Teams of threads: all of the work, once, in order, with its errors."""

from __future__ import annotations

import pytest

from readbench.engine.kernels.threads import Team, available_threads
from readbench.errors import ParameterError

sizes = pytest.mark.parametrize("size", [1, 2, 5])


@sizes
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_work_is_shared_without_gap_or_overlap(size: int, count: int) -> None:
    pieces: list[tuple[int, int]] = []
    with Team(size) as team:
        team.share(lambda first, last: pieces.append((first, last)), count)
    assert sorted(number for first, last in pieces for number in range(first, last)) == list(range(count))


@sizes
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_every_thread_has_one_share_of_about_the_same_size(size: int, count: int) -> None:
    shares = Team(size).shares(count)
    assert [number for own in shares for number in range(count)[own]] == list(range(count))
    lengths = [len(range(count)[own]) for own in shares]
    assert len(lengths) == min(size, count)
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


@sizes
def test_results_come_in_the_order_of_the_jobs(size: int) -> None:
    with Team(size) as team:
        assert team.each(lambda number: number**2, range(20)) == [number**2 for number in range(20)]


@sizes
def test_an_error_in_a_thread_reaches_the_caller(size: int) -> None:
    def work(first: int, _last: int) -> None:
        raise ValueError(first)

    with Team(size) as team, pytest.raises(ValueError, match="0"):
        team.share(work, 3)


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READBENCH_THREADS", raising=False)
    assert available_threads() >= 1
    monkeypatch.setenv("READBENCH_THREADS", "3")
    assert Team().size == 3
    monkeypatch.setenv("READBENCH_THREADS", "none")
    with pytest.raises(ParameterError, match="READBENCH_THREADS must be a whole number from 1 on"):
        available_threads()
