"""Memory for vectors: where it begins, and how squares of it are turned."""

from __future__ import annotations

import numpy as np
import pytest
from numba import carray, njit
from numpy.typing import NDArray

from readbench.engine.kernels.memory import BLOCK, allocate_aligned, floats_at, transpose_block

Floats = NDArray[np.float32]


@pytest.mark.parametrize("size", [1, 15, 16, 1000])
def test_buffers_begin_on_a_cache_line(size: int) -> None:
    buffer = allocate_aligned(size)
    assert buffer.shape == (size,)
    assert buffer.ctypes.data % 64 == 0


def test_a_block_is_turned_and_nothing_beside_it_is_written() -> None:
    @njit  # type: ignore[untyped-decorator]
    def turn(source: Floats, target: Floats) -> None:
        transpose_block(source, 2, 21, target, 5, 18)

    source = np.arange(2 + 21 * BLOCK, dtype=np.float32)
    target, expected = np.zeros((2, 5 + 18 * BLOCK), np.float32)
    for i in range(BLOCK):
        for j in range(BLOCK):
            expected[5 + 18 * j + i] = source[2 + 21 * i + j]
    turn(source, target)
    np.testing.assert_array_equal(target, expected)


def test_values_are_read_where_they_lie() -> None:
    @njit  # type: ignore[untyped-decorator]
    def total(address: int) -> float:
        return carray(floats_at(address), 3).sum()

    values = np.array([1, 2, 4], np.float32)
    assert total(values.ctypes.data) == 7
