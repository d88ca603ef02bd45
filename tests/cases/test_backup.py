"""Export and import carry everything, to the byte; what cannot be taken changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from readbench.cases import Case, Library, export_library, import_library, sign_changes
from readbench.cli import app
from readbench.errors import DataError, ReadbenchError, UsageError
from tests.cases.samples import CHANNELS, normals, windows


@pytest.fixture
def full(tmp_path: Path) -> Library:
    """A library in which everything occurs that one can hold."""
    library = Library.create(tmp_path / "full")
    raw = windows(2, seed=4, labelled=False, prefix="4500")
    library.add(raw, [Case(id="4500123"), Case(id="0007", label="normal", asset="pump 9")])
    library.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    library.name_channel("speed", "rpm")
    library.add_normals(normals(3))
    library.add(windows(4))
    with sign_changes("shift desk"):
        library.edit("w0", notes="Seal\nreplaced. \u00fc", tags=("a", "b,c"), links=("https://x.example/1",))
        library.edit("w1", label=None, rejected=("leak", "noise"), time=1.7e9, end=1.7e9 + 60, zone="Europe/Berlin")
    values = windows(1, seed=7).values(0)
    library.add_one(
        values, ["PT-101 [kPa]", *CHANNELS[1:]], id="42", before=values[:, :8], rate=0.5, facts={"load": 3.0}
    )
    library.add_one(values, CHANNELS, id="43", units=("bar", "", "rpm"), group="recording 1", facts={"speed": 29.5})
    library.delete(["w2"])
    library.edit("w3", notes="taken back")
    library.undo()
    return library


def told(library: Library) -> list[object]:
    """All that a library tells, but when it was told."""
    cases = [case.model_dump(exclude={"changed"}) for case in library.cases()]
    shown = [library.details(case.id).model_dump(exclude={"case"}) for case in library.cases()]
    return [cases, shown, library.naming().aliases, [str(own) for own in library.normals().ids]]


def test_everything_comes_back_and_a_second_round_is_the_same_bytes(full: Library, where: str, tmp_path: Path) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    export_library(full, one)
    moved = Library.create(where)
    assert import_library(moved, one) == 3 + 7
    assert told(moved) == told(full)
    assert {"0007", "4500123", "42"} <= {case.id for case in moved.cases()}
    export_library(moved, two)
    assert one.read_bytes() == two.read_bytes()


def test_the_history_comes_too_where_it_is_asked_for(full: Library, where: str, tmp_path: Path) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    assert CliRunner().invoke(app, ["cases", "export", str(tmp_path / "full"), str(one), "--history"]).exit_code == 0
    moved = Library.create(where)
    import_library(moved, one)
    assert moved.history() == full.history()
    assert moved.cases() == full.cases(), "with the times of changes"
    assert Library.open(where, as_of=6).case("w3") == Library.open(tmp_path / "full", as_of=6).case("w3")
    assert moved.undo().what == full.undo().what == "delete"
    assert moved.case("w2").model_dump(exclude={"changed"}) == full.case("w2").model_dump(exclude={"changed"})
    moved.redo()
    full.redo()
    again = Library.create(tmp_path / "again")
    import_library(again, one)
    export_library(again, two, history=True)
    assert one.read_bytes() == two.read_bytes()
    with pytest.raises(UsageError, match="goes into an empty library"):
        import_library(again, one)


def test_what_cannot_be_taken_changes_nothing(full: Library, tmp_path: Path) -> None:
    file = tmp_path / "1.parquet"
    export_library(full, file)
    with pytest.raises(UsageError, match="There is a case 'n0' already"):
        import_library(full, file)
    other = Library.create(tmp_path / "other")
    other.name_channel("pressure", "psi")
    with pytest.raises(UsageError, match="'pressure' in bar there, but here it is 'pressure' in psi"):
        import_library(other, file)
    assert (len(other), len(other.naming().aliases), other.history()) == (0, 1, [])


@pytest.mark.parametrize("key", ["readbench.journal", "readbench.naming"])
@pytest.mark.parametrize("text", ["{", "1", '["x"]', '{"a": 1}', '[{"step": 7}]', '{"a": {"name": "b", "unit": "x"}}'])
def test_metadata_that_somebody_changed_are_refused(tmp_path: Path, key: str, text: str) -> None:
    source = Library.create(tmp_path / "source")
    source.add(windows(1))
    export_library(source, tmp_path / "1.parquet", history=key.endswith("journal"))
    table = pq.read_table(tmp_path / "1.parquet")
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, key.encode(): text}), tmp_path / "2.parquet")
    other = Library.create(tmp_path / "other")
    with pytest.raises(ReadbenchError):
        import_library(other, tmp_path / "2.parquet")
    assert len(other) == 0


def test_a_history_without_its_windows_is_refused(full: Library, tmp_path: Path) -> None:
    export_library(full, tmp_path / "1.parquet", history=True)
    table = pq.read_table(tmp_path / "1.parquet")
    assert len(json.loads(table.schema.metadata[b"readbench.journal"])) == len(full.store.journal())
    pq.write_table(table.slice(1), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="that is not in it"):
        import_library(Library.create(tmp_path / "other"), tmp_path / "2.parquet")
