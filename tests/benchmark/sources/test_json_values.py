"""Numbers out of JSON are those that were written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.sources._files import number_list, parse_json
from readbench.errors import DataError


@given(st.lists(st.floats() | st.integers() | st.none()))
def test_numbers_are_taken_one_by_one(values: list[Any]) -> None:
    expected = [math.nan if v is None or (isinstance(v, int) and abs(v) > 10**308) else float(v) for v in values]
    found = number_list("here", "x", values)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[finite], np.array(expected)[finite])
    assert not np.isfinite(found[~finite]).any()


@pytest.mark.parametrize(("values", "message"), [
    ("12", "x is no list of numbers"),
    ({"1": 2}, "x is no list of numbers"),
    ([1.0, "2"], "value 2 of x is '2', which is no number"),
    ([True], "value 1 of x is 'True', which is no number"),
    ([[1.0]], r"value 1 of x is '\[1.0\]', which is no number"),
])  # fmt: skip
def test_what_is_no_number_is_named_with_its_place(values: object, message: str) -> None:
    with pytest.raises(DataError, match=f"here: {message}"):
        number_list("here", "x", values)


def test_a_number_beyond_float64_is_a_gap() -> None:
    assert np.isnan(number_list("here", "x", [10**400])).all()


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(DataError, match=r"here: no JSON"):
        parse_json("here", text)
