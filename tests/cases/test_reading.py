"""Files that come in: what is right is read, what is hostile is refused, and the library is as it was."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.cases import Library, ToldContext, export_library, import_library, windows_from
from readbench.common.tables import Limits
from readbench.engine.window_tables import Roles
from readbench.errors import DataError, ReadbenchError, UsageError
from tests.cases.samples import FAST, normals, windows
from tests.damage import Outcomes

CSV = b"t,pressure,flow,run\n0,1,5,A\n10,2,6,A\n20,3,7,A\n0,9,9,B\n10,8,8,B\n"
TIGHT = Limits(max_bytes=100_000, max_rows=1000, max_columns=50)


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def test_a_table_becomes_windows() -> None:
    found = windows_from(("a.csv", CSV), Roles(time="t", case="run"))
    assert found.ids.tolist() == ["A", "B"]
    assert found.channels(0) == ("pressure", "flow")
    assert found.values(1).tolist() == [[9, 8], [9, 8]]


@pytest.mark.parametrize(
    ("roles", "interval", "expected"),
    [
        (Roles(time="t", case="run"), (10.0, 20.0), [[2, 3], [8]]),
        (Roles(time="t", case="run"), (None, 5.0), [[1], [9]]),
        (Roles(), (1.0, 2.0), [[2, 3]]),
    ],
)
def test_an_interval_is_cut_out(
    roles: Roles, interval: tuple[float | None, float | None], expected: list[list[float]]
) -> None:
    found = windows_from(("a.csv", CSV), roles, interval)
    row = found.channels(0).index("pressure")
    assert [found.values(i)[row].tolist() for i in range(len(found))] == expected


def test_an_interval_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="no row lies between 50"):
        windows_from(("a.csv", CSV), Roles(time="t", case="run"), (50.0, 60.0))


def test_data_frames_are_tables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [0.0, 1.0], "flow": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "f.parquet")
    for source in (frame, pa.table(frame), tmp_path / "f.parquet"):
        assert windows_from(source, Roles(time="t")).values(0).tolist() == [[1, 2]]
    with pytest.raises(DataError, match="got int"):
        windows_from(5)


def test_windows_that_are_cut_already_are_taken_as_they_are() -> None:
    content = npz(values=np.ones((2, 3, 4)), label=np.array(["leak", ""]))
    found = windows_from(("w.npz", content))
    assert (len(found), found.values(0).shape, found.labels.tolist()) == (2, (3, 4), [1, -1])
    with pytest.raises(DataError, match="an interval and an onset are for tables"):
        windows_from(("w.npz", content), interval=(0, 1))
    with pytest.raises(DataError, match="an interval and an onset are for tables"):
        windows_from(("w.npz", content), told=ToldContext(onset="1"))


def test_pickle_is_never_read(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "exploded",)

    content = npz(values=np.array([Bomb()], object))
    with pytest.raises(DataError):
        windows_from(("w.npz", content))
    assert not (tmp_path / "exploded").exists()


def test_large_files_are_refused_before_they_are_unpacked() -> None:
    bomb = npz(values=np.zeros((1, 1, 1)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", bytes(10_000_000))
    for content in (file.getvalue(), bomb + bytes(200_000)):
        with pytest.raises(DataError):
            windows_from(("w.npz", content), limits=TIGHT)
    wide = ",".join(f"c{i}" for i in range(60)).encode()
    with pytest.raises(DataError, match="columns"):
        windows_from(("w.csv", wide + b"\n"), limits=TIGHT)


def parquet(frame: dict[str, list[Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(frame), sink)
    return sink.getvalue()


SEEDS = {
    "a.csv": CSV,
    "a.npz": npz(values=np.ones((2, 1, 4)), channels=np.array(["flow"])),
    "a.parquet": parquet({"t": [0.0, 1.0], "flow": [1.0, 2.0]}),
    "b.parquet": parquet(
        {"values": [[1.0, 2.0]], "channels": [["flow"]], "length": [2], "label": ["leak"], "tags": ['["a"]']}
    ),
}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library.create(tmp_path_factory.mktemp("fuzz") / "l")
    library.add(windows(3))
    return library


def damage(content: bytearray, data: st.DataObject) -> None:
    """Up to four times, change a byte, cut the end off or insert some bytes."""
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if kind == "flip":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(max_size=20))
        elif place:
            del content[place:]


@pytest.mark.hypothesis  # of the examples inside it
def test_a_damaged_file_is_read_or_refused_in_one_sentence(fuzzed: Library) -> None:
    before, outcomes = fuzzed.history(), Outcomes()

    def search(name: str, content: bytes) -> list[NDArray[np.float32]]:
        found = windows_from((name, content), limits=TIGHT)
        answers = fuzzed.search_many(found, method="euclidean")
        assert len(answers) == len(found) > 0
        return [np.array([hit.score for hit in answer.hits], np.float32) for answer in answers]

    @settings(max_examples=120)
    @given(name=st.sampled_from(sorted(SEEDS)), data=st.data())
    def search_damaged(name: str, data: st.DataObject) -> None:
        content = bytearray(SEEDS[name])
        damage(content, data)
        outcomes.note(lambda: search(name, bytes(content)), ReadbenchError)
        assert fuzzed.history() == before

    search_damaged()
    outcomes.check_both()


@settings(max_examples=60)
@given(name=st.sampled_from([".csv", ".npz", ".parquet", ".exe", ""]), content=st.binary(max_size=300))
def test_rubbish_is_refused_or_some_windows(name: str, content: bytes) -> None:
    try:
        found = windows_from((f"x{name}", content), limits=TIGHT)
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
    else:
        assert name == ".csv", "only text can be right by chance"
        assert len(found)


def test_a_library_survives_export_and_import(library: Library, tmp_path: Path) -> None:
    library.edit("w0", notes="Ersetzt: Dichtung, „links“", tags=("a", "b"), links=("https://x.y/z",), time=5.0)
    library.label("w1", None)
    library.reject("w2", like="w0")
    assert export_library(library, tmp_path / "out.parquet") == 22
    other = Library.create(tmp_path / "other")
    assert import_library(other, tmp_path / "out.parquet") == 22
    unchanged = [case.model_copy(update={"changed": 0.0}) for case in other.cases()]
    assert [case.model_copy(update={"group": case.group, "changed": 0.0}) for case in library.cases()] == unchanged
    assert other.stats().normal_assets == library.stats().normal_assets
    asked = windows(1, seed=4)
    ours, theirs = (each.search(asked, method=FAST) for each in (library, other))
    assert [hit.score for hit in ours.hits] == [hit.score for hit in theirs.hits]
    assert ours.faults == theirs.faults


def test_an_import_cannot_bring_in_anything_but_texts(library: Library, tmp_path: Path) -> None:
    export_library(library, tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    place = table.column_names.index("tags")
    for tags in ('{"a": 1}', "[1]", "__import__('os')", '["../../etc", 5]'):
        wrong = table.set_column(place, "tags", pa.array([tags] * len(table)))
        pq.write_table(wrong, tmp_path / "wrong.parquet")
        other = Library.create(tmp_path / f"other {hash(tags)}")
        with pytest.raises(DataError, match="JSON list"):
            import_library(other, tmp_path / "wrong.parquet")
        assert len(other) == 0
        assert not other.history()


def test_an_import_is_taken_whole_or_not_at_all(library: Library, tmp_path: Path) -> None:
    export_library(library, tmp_path / "out.parquet")
    other = Library.create(tmp_path / "other")
    other.add(windows(12)[11:])
    with pytest.raises(UsageError, match="'w11' already"):
        import_library(other, tmp_path / "out.parquet")
    assert (len(other), len(other.normals()), len(other.history())) == (1, 0, 1)


def test_names_are_never_paths(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "inner" / "l")
    library.add_one(np.ones((1, 4)), ["../../x"], id="../../escape", label="../../leak", asset="/etc/passwd")
    library.add_normals(normals(2))
    export_library(library, tmp_path / "inner" / "out.parquet")
    import_library(Library.create(tmp_path / "inner" / "m"), tmp_path / "inner" / "out.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in (tmp_path / "inner").iterdir()} == {"l", "m", "out.parquet"}


def test_an_empty_library_has_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises((DataError, UsageError), match="empty"):
        export_library(Library.create(tmp_path / "l"), tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()
