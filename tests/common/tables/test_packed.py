"""Windows in one file, as rows of Parquet and as arrays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from readbench.common.tables import Limits
from readbench.engine.context import Context
from readbench.engine.window_tables import read_packed, read_windows, write_windows
from readbench.engine.windows import WindowSet
from readbench.errors import DataError


def ragged(n: int, seed: int = 0) -> WindowSet:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, 5, (n, 2))
    return WindowSet.from_arrays(
        [rng.normal(size=shape) for shape in shapes],
        channels=[tuple(f"c{c}" for c in range(count)) for count, _ in shapes],
        labels=rng.integers(-1, 3, n),
        classes=("normal", "leak", "a break"),
        ids=[f"w{i}" for i in range(n)],
        groups=[f"g{i // 2}" for i in range(n)],
        assets=[["", "pump"][i % 2] for i in range(n)],
        times=rng.normal(size=n),
        spans=rng.integers(0, 3, (n, 2)),
    )


def with_context(windows: WindowSet, seed: int = 0) -> WindowSet:
    """The same; neighbours with as many channels share a `before`, and some windows bring nothing."""
    rng = np.random.default_rng(seed)
    shared = {count: rng.normal(size=(count, 3)).astype(np.float32) for count in range(1, 5)}
    counts = windows.channel_counts.tolist()
    brings = rng.random(len(windows)) < 0.7
    context = Context.of(
        len(windows),
        befores=[shared[count] if own else None for count, own in zip(counts, brings, strict=True)],
        rates=np.where(brings, rng.integers(1, 100, len(windows)) / 3, np.nan),
        units=[("bar",) + ("",) * (count - 1) if own else () for count, own in zip(counts, brings, strict=True)],
        facts=[{"speed": float(rng.normal()), "load": 2.0} if own else {} for own in brings],
    )
    return windows.with_context(context)


@given(n=st.integers(1, 12), seed=st.integers(0, 50))
def test_parquet_keeps_context(n: int, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    windows = with_context(ragged(n, seed), seed)
    path = tmp_path_factory.mktemp("packed") / "w.parquet"
    write_windows(windows, path)
    again = read_windows(path, classes=windows.classes)
    assert again.fingerprint() == windows.fingerprint()
    if windows.context is not None and again.context is not None:
        assert len(again.context.befores) == len(windows.context.compact().befores)


def test_without_context_no_column_is_written_for_it(tmp_path: Path) -> None:
    write_windows(ragged(3), tmp_path / "w.parquet")
    assert pq.read_schema(tmp_path / "w.parquet").names[-1] == "span_stop"


def test_a_part_of_a_set_has_the_columns_of_the_whole(tmp_path: Path) -> None:
    windows = with_context(ragged(12))
    for name, part in (("all", windows), ("none", windows[:0])):
        write_windows(part, tmp_path / f"{name}.parquet")
    assert pq.read_schema(tmp_path / "all.parquet") == pq.read_schema(tmp_path / "none.parquet")


@given(n=st.integers(1, 12), seed=st.integers(0, 50))
def test_parquet_keeps_everything(n: int, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    windows = ragged(n, seed)
    path = tmp_path_factory.mktemp("packed") / "w.parquet"
    write_windows(windows, path, level=pa.array(range(n)))
    packed = read_packed(path, classes=windows.classes)
    assert packed.windows.fingerprint() == windows.fingerprint()
    assert packed.table.numbers("level").tolist() == list(range(n))


def test_many_windows_come_in_several_row_groups(tmp_path: Path) -> None:
    windows = ragged(700)
    write_windows(windows, tmp_path / "w.parquet")
    assert read_windows(tmp_path / "w.parquet", classes=windows.classes).fingerprint() == windows.fingerprint()


def archive(**arrays: Any) -> tuple[str, bytes]:  # noqa: ANN401
    file = io.BytesIO()
    np.savez(file, **arrays)
    return "w.npz", file.getvalue()


def test_arrays_become_windows() -> None:
    given = archive(
        channels=["p", "q"],
        corpus_values=np.arange(12).reshape(2, 2, 3),
        corpus_length=[3, 2],
        corpus_label=["leak", "ok"],
        corpus_asset=["A", ""],
        queries_values=np.zeros((1, 2, 3)),
    )
    windows = read_windows(given, part="corpus_", normal="ok")
    assert windows.classes == ("ok", "leak")
    assert windows.channels(0) == ("p", "q")
    assert windows.values(1).tolist() == [[6, 7], [9, 10]]
    assert windows.assets.tolist() == ["A", ""]
    assert windows.groups.tolist() == windows.ids.tolist() == ["corpus_0", "corpus_1"]
    assert len(read_windows(given, part="queries_")) == 1


def test_arrays_bring_context() -> None:
    before = np.stack([np.full((2, 4), 7.0), np.full((2, 4), 7.0), np.arange(8.0).reshape(2, 4)])
    given = archive(
        channels=["p", "q"],
        units=["bar", ""],
        corpus_values=np.zeros((3, 2, 3)),
        corpus_before=before,
        corpus_before_length=[2, 2, 0],
        corpus_rate=50.0,
        **{"corpus_fact.speed": [29.5, np.nan, 30.0]},
    )
    windows = read_windows(given, part="corpus_")
    assert windows.context is not None
    assert len(windows.context.befores) == 1
    first, second, third = windows
    assert first.before is not None
    assert first.before is second.before
    assert first.before.tolist() == [[7, 7], [7, 7]]
    assert third.before is None
    assert (first.rate, first.units, first.facts, second.facts) == (50.0, ("bar", ""), {"speed": 29.5}, {})


def test_one_channel_needs_no_axis() -> None:
    assert read_windows(archive(values=np.zeros((4, 9))))[0].values.shape == (1, 9)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros(3)}, "no array values"),
        ({"values": np.zeros(3)}, "shape (windows, channels, steps)"),
        ({"values": np.array([[["a"]]])}, "must be numbers"),
        ({"values": np.zeros((2, 1, 3)), "label": ["x"]}, "but there are 2 windows"),
        ({"values": np.zeros((2, 1, 3)), "length": [1, 4]}, "from 1 to 3"),
        ({"values": np.zeros((2, 1, 3)), "id": ["x", "x"]}, "a unique id"),
        ({"values": np.zeros((2, 2, 3)), "channels": ["x", "x"]}, "distinct names"),
        ({"values": np.zeros((2, 2, 3)), "before": np.zeros((2, 1, 3))}, "'before' must be numbers of shape (2, 2,"),
        ({"values": np.zeros((1, 1, 3)), "before": [[[np.nan]]]}, "has a gap in channel 'ch0'"),
        ({"values": np.zeros((1, 1, 3)), "before": [[[1.0]]], "before_length": [2]}, "from 0 to 1"),
        ({"values": np.zeros((2, 1, 3)), "rate": [1.0, 0.0]}, "row 2: a rate is a positive number"),
        ({"values": np.zeros((2, 1, 3)), "units": ["K", "K"]}, "'units' has shape (2,), but there are 1 channels"),
        ({"values": np.zeros((2, 1, 3)), "fact.speed": ["fast", "1"]}, "'fast' in column 'fact.speed' is no number"),
    ],
)
def test_wrong_arrays_are_refused(arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        read_windows(archive(**arrays))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"values": [1.0]}, "a list in every row"),
        ({"values": [[1.0]]}, "need a column 'channels'"),
        ({"values": [[1.0], None], "channels": [["a"], ["a"]]}, "a list in every row"),
        ({"values": [[1.0, 2.0, 3.0]], "channels": [["a", "b"]]}, "row 1: 3 values"),
        ({"values": [[1.0, 2.0]], "channels": [["a"]], "length": [3]}, "not its length"),
        ({"values": [[1.0, 2.0]], "channels": [["a", "a"]]}, "distinct names"),
        ({"values": [[1.0, 2.0]], "channels": [[b"a", b"b"]]}, "distinct names"),
        ({"values": [[1.0, 2.0]], "channels": [[1, 2]]}, "distinct names"),
        ({"values": [["x"]], "channels": [["a"]]}, "'values' holds no numbers"),
        ({"values": [[1.0, 2.0]], "channels": [["a", "b"]], "before": [[1.0]]}, "row 1: the time before has 1 values"),
        ({"values": [[1.0]], "channels": [["a"]], "before": [[1.0]], "before_length": [2]}, "or not its length"),
        ({"values": [[1.0]], "channels": [["a"]], "before": [[None]]}, "has a gap in channel 'a'"),
        ({"values": [[1.0]], "channels": [["a"]], "before": [["x"]]}, "'before' holds no numbers"),
        ({"values": [[1.0]], "channels": [["a"]], "before": [1.0]}, "'before' must hold lists"),
        ({"values": [[1.0]], "channels": [["a"]], "units": [["K", "K"]]}, "2 units for 1 channels"),
        ({"values": [[1.0]], "channels": [["a"]], "units": ["K"]}, "'units' must hold a list"),
    ],
)
def test_wrong_rows_are_refused(columns: dict[str, Any], message: str) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    with pytest.raises(DataError) as error:
        read_windows(("w.parquet", file.getvalue()))
    assert message in str(error.value)


def test_a_label_outside_the_given_classes_is_refused() -> None:
    with pytest.raises(DataError, match="label 'leak' is not one of the classes"):
        read_windows(archive(values=np.zeros((1, 1, 2)), label=["leak"]), classes=("normal",))


def test_limits_hold() -> None:
    with pytest.raises(DataError, match="more than the"):
        read_windows(archive(values=np.zeros((10, 10, 100))), limits=Limits(max_bytes=10_000))


def test_other_files_are_refused() -> None:
    with pytest.raises(DataError, match=r"are read from \.parquet and \.npz"):
        read_windows(("w.csv", b"a\n1\n"))
