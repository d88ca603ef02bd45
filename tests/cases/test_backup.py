"""Export and import carry everything, to the byte; what cannot be taken changes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from readbench.cases import Case, Library, export_library, import_library, sign_changes
from readbench.cases._store import context_digests
from readbench.cli import app
from readbench.engine.vectors import window_digests
from readbench.engine.window_tables import read_windows
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


def change_history(library: Library, path: Path, column: str, value: object, **row: object) -> None:
    """An export with its history, in which somebody changed what the first window holds, and its row."""
    export_library(library, path, history=True)
    table = pq.read_table(path)
    about = table.schema.metadata
    values = table[column].to_pylist() if column in table.column_names else [None] * len(table)
    kind = table.schema.field(column).type if column in table.column_names else pa.float64()
    table = table.drop_columns([column] if column in table.column_names else [])
    table = table.append_column(column, pa.array([value, *values[1:]], kind)).replace_schema_metadata(about)
    pq.write_table(table, path)
    rows = json.loads(about[b"readbench.journal"])
    windows = read_windows(path)
    filed, contexts = window_digests(windows.with_context(None)), context_digests(windows)
    old = rows[0]["digest"]
    for own in rows:
        own.update({"digest": filed[0], "context": contexts[0]} if own["digest"] == old else {})
    rows[0] |= row
    pq.write_table(table.replace_schema_metadata({**about, b"readbench.journal": json.dumps(rows)}), path)


@pytest.mark.parametrize(
    ("column", "value", "row", "words"),
    [
        ("values", [float("inf"), *[1.0] * 9], {}, "has gaps, or readings of 1e+30"),
        ("values", [3e38, *[1.0] * 9], {}, "has gaps, or readings of 1e+30"),
        ("channels", ["a" * 501, "b"], {}, "more than 500 characters"),
        ("rate", 1e300, {}, "positive number of samples a second"),
        ("time", 5.0, {"what": "bogus"}, "holds a change 'bogus'"),
    ],
)
def test_what_a_history_brings_is_looked_at_as_all_else(
    tmp_path: Path, column: str, value: object, row: dict[str, object], words: str
) -> None:
    source = Library.create(tmp_path / "source")
    source.add([np.arange(10.0).reshape(2, 5), np.ones((2, 5))], labels=["leak", None])
    change_history(source, tmp_path / "1.parquet", column, value, **row)
    other = Library.create(tmp_path / "other")
    with pytest.raises(ReadbenchError, match=re.escape(words)):
        import_library(other, tmp_path / "1.parquet")
    assert (len(other), other.history()) == (0, [])
