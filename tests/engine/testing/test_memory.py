"""Unwritten memory shows inside and nowhere else, and compiled code goes on working."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from readbench.engine.room import allocate
from readbench.engine.testing import unwritten_memory_shown
from readbench.engine.testing._memory import shows_unwritten_memory


def test_arrays_that_nobody_wrote_are_full_of_what_no_computation_means() -> None:
    with unwritten_memory_shown():
        assert np.isnan(np.empty((2, 3))).all()
        assert np.isnan(np.empty_like(np.zeros(3, np.float32))).all()
        assert np.isnan(allocate(4)).all()
        assert (np.empty(3, np.int32) == np.iinfo(np.int32).max).all()
        assert np.empty(2, np.bool_).all()
        assert np.isnat(np.empty(2, "M8[s]")).all()
        pairs = np.empty(2, [("place", np.int64), ("weight", np.float32)])
        assert np.isnan(pairs["weight"]).all()
        assert (pairs["place"] > 10**18).all()
        assert np.empty(2, object).tolist() == [None, None]


@pytest.mark.usefixtures("private_cache")
def test_code_that_is_compiled_inside_works() -> None:
    with unwritten_memory_shown():

        @njit  # type: ignore[untyped-decorator]
        def double(values: np.ndarray) -> np.ndarray:
            out = np.empty_like(values)
            out[:] = 2 * values
            return out

        assert double(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_a_check_finds_a_row_that_is_not_written() -> None:
    def leaves_a_row_out(_method: str) -> None:
        rows = np.empty((2, 2))
        rows[0] = 1
        assert np.isfinite(rows).all()

    check = shows_unwritten_memory(leaves_a_row_out)
    assert check.__name__ == "leaves_a_row_out"
    with pytest.raises(AssertionError):
        check("euclidean")
