"""Blocks are read and sent ahead of their use, in order, and none overwrites another."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.kernels.sending import AHEAD, Lane, Transfer, prefetch

torch = pytest.importorskip("torch", reason="device=cuda needs torch")
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
DEVICES = ("cpu", pytest.param("cuda", marks=GPU))


def test_results_come_in_order_and_no_more_than_a_few_before_they_are_asked_for() -> None:
    begun: list[int] = []

    def work(job: int) -> int:
        begun.append(job)
        return job

    for number, job in enumerate(prefetch(work, range(20))):
        assert job == number
        assert len(begun) <= number + 1 + AHEAD
    assert begun == list(range(20))


def test_an_error_reaches_who_asks_for_its_result() -> None:
    results = prefetch(lambda job: 1 // job, [2, 1, 0, 3])
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sizes", [(3, 5, 2, 8, 1, 8, 7), (40_000,) * 30])
def test_numbers_arrive_as_they_were_when_sent(device: str, sizes: tuple[int, ...]) -> None:
    lane = Lane(device)

    def send(number: int) -> Transfer:
        lane.buffer(sizes[number])[:] = number
        return lane.send()

    for number, sent in enumerate([send(number) for number in range(len(sizes))]):
        np.testing.assert_array_equal(sent.arrived().cpu(), np.full(sizes[number], number, np.float32))


def test_memory_is_taken_once_for_blocks_of_one_size() -> None:
    lane = Lane("cpu")
    places = set()
    for size in [7] * (3 * AHEAD):
        places.add(lane.buffer(size).ctypes.data)
        lane.send()
    assert len(places) == AHEAD
