"""MATLAB files are read as scipy reads them, and nothing damaged passes or crashes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy.io import loadmat, savemat

from readbench.benchmark.sources._matlab import MatValue, number_array, read_mat
from readbench.errors import DataError
from tests.damage import MANY, Damage, Outcomes, damaged, damages

KINDS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
GOOD = {"x": np.arange(6.0).reshape(3, 2), "s": {"rate": 25, "load": "270", "deeper": {"y": np.ones(3, np.int16)}}}


def mat(variables: dict[str, Any], *, packed: bool = False) -> bytes:
    buffer = BytesIO()
    savemat(buffer, variables, do_compression=packed)
    return buffer.getvalue()


def read(folder: Path, content: bytes) -> dict[str, MatValue]:
    path = folder / "file.mat"
    path.write_bytes(content)
    return read_mat(path)


def number_arrays(value: MatValue) -> Iterator[NDArray[np.float64]]:
    """All arrays of numbers in a value, however deep."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from number_arrays(inner)
    elif isinstance(value, np.ndarray):
        yield np.nan_to_num(value.astype(np.float64))


@settings(max_examples=MANY)
@given(
    value=st.sampled_from(KINDS).flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(max_dims=3, min_side=0))),
    packed=st.booleans(),
)
def test_arrays_are_what_scipy_reads(
    tmp_path_factory: pytest.TempPathFactory, value: NDArray[np.generic], *, packed: bool
) -> None:
    content = mat({"value": value, "other": 1.0}, packed=packed)
    found = read(tmp_path_factory.getbasetemp(), content)
    assert list(found) == ["value", "other"]
    own, theirs = found["value"], loadmat(BytesIO(content))["value"]
    assert isinstance(own, np.ndarray)
    assert own.shape == theirs.shape
    np.testing.assert_array_equal(own, theirs)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_structs_and_text_are_read(tmp_path: Path, pack: Any, *, packed: bool) -> None:  # noqa: ANN401
    struct = read(tmp_path, pack(mat(GOOD, packed=packed)))["s"]
    assert isinstance(struct, dict)
    assert struct["load"] == "270"
    assert number_array("rate", struct["rate"], 1).tolist() == [25]
    deeper = struct["deeper"]
    assert isinstance(deeper, dict)
    assert number_array("y", deeper["y"], 1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_cells_keep_their_place(tmp_path: Path, *, packed: bool) -> None:
    table = np.empty((2, 3), object)
    for place in np.ndindex(table.shape):
        table[place] = f"{place}" if sum(place) % 2 else np.full((1, 4), sum(place))
    table[1, 2] = {"inner": np.zeros((0, 0))}
    cells = read(tmp_path, mat({"cells": table}, packed=packed))["cells"]
    assert isinstance(cells, np.ndarray)
    assert cells.shape == (2, 3)
    assert cells[0, 1] == "(0, 1)"
    assert cells[1, 1].tolist() == [[2, 2, 2, 2]]
    assert cells[1, 2]["inner"].size == 0


def test_what_is_not_used_is_left_open(tmp_path: Path) -> None:
    found = read(tmp_path, mat({"complex": np.array([1j]), "x": 3.0}))
    assert found["complex"] is None
    assert number_array("x", found["x"], 1).tolist() == [3.0]


@pytest.mark.parametrize(
    "content",
    [b"", b"MATLAB", bytes(200), mat(GOOD)[:124] + b"\x00\x02IM" + bytes(64), b"\x89HDF\r\n" * 90],
    ids=["empty", "short", "zeros", "7.3", "other"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"file\.mat: no MATLAB file of version 5 to 7"):
        read(tmp_path, content)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, *, packed: bool) -> None:
    whole = mat({"x": np.arange(50.0)}, packed=packed)
    for length in range(129, len(whole)):
        with pytest.raises(DataError, match=r"file\.mat: .*damaged or incomplete"):
            read(tmp_path, whole[:length])


@pytest.mark.parametrize("packed", [False, True])
def test_a_changed_file_is_read_or_refused(tmp_path: Path, *, packed: bool) -> None:
    content, outcomes = mat(GOOD, packed=packed), Outcomes()

    @settings(max_examples=5 * MANY)
    @given(damage=damages(len(content)))
    def try_damage(damage: Damage) -> None:
        outcomes.note(lambda: list(number_arrays(dict(read(tmp_path, damaged(content, damage))))))

    try_damage()
    outcomes.check_both()


@pytest.mark.parametrize(
    ("value", "dimensions", "message"),
    [
        (None, 1, "is no vector"),
        ("text", 1, "is no vector"),
        (np.ones((2, 2)), 1, "is no vector"),
        (np.ones((1, 0)), 1, "is no vector"),
        (np.ones((2, 2, 2)), 2, "is no matrix"),
        (np.array([[np.nan, 1.0]]), 1, "not finite"),
        (np.array([[1e300, 1.0]]), 2, "too large"),
    ],
)
def test_what_is_no_array_of_readings_is_refused(value: MatValue, dimensions: int, message: str) -> None:
    with pytest.raises(DataError, match=f"file: field 'x' .*{message}"):
        number_array("file: field 'x'", value, dimensions)
