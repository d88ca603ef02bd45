"""Damage to a library: one sentence that names the file, everything else still there, and repaired what can be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cases import Library, _ledger as ledger_module, check_library, export_library
from readbench.cases._ledger import LEDGER, FileLedger, list_files
from readbench.cases._store import open_store
from readbench.cli import app
from readbench.errors import DamageError, StoreError
from tests.cases.postgres import PostgresServer
from tests.cases.samples import CHANNELS, filled, windows

METHOD = "raw|dtw-i"
DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "missing": lambda _: None,
    "flipped": lambda content: _flip(content, len(content) // 3),
    "foreign": lambda content: b"PK\x03\x04 another file altogether" * (1 + len(content) // 20),
}
FILES = {
    "journal": ("_versions", "data", "_indices"),
    "windows": ("_versions", "data", "_indices"),
    "contexts": ("_versions", "data"),
    "vectors": ("_versions", "data"),
    "naming": ("_versions", "data"),
}
COPIED = 20
"""Bytes of the largest file that is kept whole, where a test wants none to be."""


def _flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def make(where: Path) -> Library:
    """A library with something in every table."""
    library = filled(where)
    library.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    before = windows(1, seed=8).values(0)
    library.add_one(windows(1, seed=7).values(0), CHANNELS, id="ctx", before=before, facts={"load": 3.0})
    library.edit("w0", notes="Replaced the bearing.")
    library.find("bearing")
    library.search(windows(1, seed=3), method=METHOD)
    library.store.optimise()
    library.add(windows(2, seed=11, prefix="late"))
    return library


def told(where: Path | str) -> list[object]:
    """All that a library answers."""
    library = Library.open(where)
    hits = [(hit.case.id, hit.score) for hit in library.search(windows(1, seed=3), method=METHOD).hits]
    found = [case.id for case in library.find("bearing")]
    shown = [library.details(case.id) for case in library.cases()]
    return [hits, found, shown, library.naming().aliases, library.history()]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that nobody changes."""
    where = tmp_path_factory.mktemp("check") / "library"
    make(where)
    told(where)  # all vectors are there
    return where


@pytest.fixture(scope="module")
def answers(sample: Path) -> list[object]:
    """What it says."""
    return told(sample)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without copies of its files, as a large one is."""
    where = tmp_path_factory.mktemp("bare") / "library"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "MOST_COPIED", COPIED)
        patch.setattr(ledger_module, "MOST_PRECIOUS", COPIED)
        make(where)
        told(where)
    return where


def hurt(sample: Path, where: Path, table: str, kind: str, how: str) -> str:
    """A copy with a damaged file; which one it is."""
    shutil.copytree(sample, where)
    file = next(path for path in list_files(where, table) if kind in path.parts)
    content = DAMAGES[how](file.read_bytes())
    file.unlink() if content is None else file.write_bytes(content)
    return file.relative_to(where).as_posix()


KINDS = [(table, kind) for table, kinds in FILES.items() for kind in kinds]
TABLE = [(*own, list(DAMAGES)[place % len(DAMAGES)]) for place, own in enumerate(KINDS)]
"""Every kind of file of every table is damaged, each way three times."""


@pytest.mark.parametrize(("table", "kind", "how"), TABLE)
def test_each_damaged_file_is_named_and_restored(
    sample: Path, answers: list[object], tmp_path: Path, table: str, kind: str, how: str
) -> None:
    where = tmp_path / "library"
    file = hurt(sample, where, table, kind, how)
    found = check_library(where).findings
    assert file in found[0].what
    assert not found[0].done
    assert all(own.done for own in check_library(where, repair=True).findings)
    assert check_library(where).findings == ()
    assert told(where) == answers


@pytest.mark.parametrize(("table", "kind", "how"), [own for own in TABLE if own[1] == "data"])
def test_what_is_damaged_is_one_sentence(
    sample: Path, answers: list[object], tmp_path: Path, table: str, kind: str, how: str
) -> None:
    where = tmp_path / "library"
    file = hurt(sample, where, table, kind, how)
    if table == "vectors":
        assert told(where) == answers, "what can be computed again is"
        return
    with pytest.raises(StoreError) as error:
        told(where)
    assert f"{where}/{file} " in str(error.value)
    assert f"`readbench cases check {where}`" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "how"),
    [
        ("journal", "truncated"),
        ("windows", "missing"),
        ("windows", "flipped"),
        ("contexts", "foreign"),
        ("naming", "truncated"),
    ],
)
def test_without_a_copy_only_what_was_in_the_file_is_lost(bare: Path, tmp_path: Path, table: str, how: str) -> None:
    where = tmp_path / "library"
    file = hurt(bare, where, table, "data", how)
    before, all_cases = Library.open(bare), {case.id for case in Library.open(bare).cases()}
    repaired = check_library(where, repair=True).findings
    assert file in repaired[0].what
    assert (where / "damaged").is_dir(), "what was replaced is kept"
    library = Library.open(where)
    left = {case.id for case in library.cases()}
    if table in ("contexts", "naming"):
        assert left == all_cases
    else:
        assert left <= all_cases
        assert {"w1", "late0"} & left, "the other file's cases are there"
    export_library(library, tmp_path / "rest.parquet")
    library.add(windows(2, seed=30, prefix="new"))
    if table == "windows":
        for name in all_cases - left:  # the same window is taken again
            own = before.window(name)
            assert library.add(own.with_context(None), [before.case(name)]) == [name]
            assert library.window(name).values(0).tolist() == own.values(0).tolist()
    assert all(own.done or "journal" in own.what for own in check_library(where).findings)


def test_a_lost_table_comes_back_from_its_copies(sample: Path, answers: list[object], tmp_path: Path) -> None:
    where = tmp_path / "library"
    for table in ("journal", "windows"):
        shutil.copytree(sample, where)
        shutil.rmtree(where / f"{table}.lance")
        with pytest.raises(StoreError, match=rf"{table}\.lance is missing"):
            Library.open(where)
        check_library(where, repair=True)
        assert told(where) == answers
        shutil.rmtree(where)


def test_a_damaged_ledger_harms_nobody(sample: Path, answers: list[object], tmp_path: Path) -> None:
    where = tmp_path / "library"
    shutil.copytree(sample, where)
    content = (where / LEDGER).read_bytes()
    (where / LEDGER).write_bytes(_flip(content, 50)[:-30] + b"\n\xff not JSON\n")
    assert told(where) == answers
    (where / LEDGER).unlink()
    assert told(where) == answers
    Library.open(where).label("w3", "noise")
    ledger = FileLedger(where)
    ledger.refresh()
    assert ledger.find_damage("journal") == []
    assert check_library(where).findings == ()


def test_unreadable_data_that_no_ledger_knows_lose_no_case_that_is_well(bare: Path, tmp_path: Path) -> None:
    where = tmp_path / "library"
    hurt(bare, where, "windows", "data", "truncated")
    (where / LEDGER).unlink()
    assert "windows.lance cannot be read" in check_library(where).findings[0].what
    check_library(where, repair=True)
    library = Library.open(where)
    assert 0 < len(library) < 15
    assert library.snapshot().windows(range(len(library))).ids.tolist() == [case.id for case in library.cases()]


def test_the_command_says_it_and_fails_while_damage_is_left(sample: Path, tmp_path: Path) -> None:
    where = tmp_path / "library"
    file = hurt(sample, where, "windows", "data", "flipped")
    words = ["cases", "check", str(where)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert f"{file} has changed bytes." in done.output
    repaired = CliRunner().invoke(app, [*words, "--repair"])
    assert repaired.exit_code == 0
    assert "Restored from its copy." in repaired.output
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).output)["findings"] == []
    assert "odd" in CliRunner().invoke(app, [*words, "w1"]).output
    assert CliRunner().invoke(app, [*words, "w1", "--repair"]).exit_code


def test_damage_in_a_database_is_found_and_the_rest_kept(postgres: PostgresServer) -> None:
    address = postgres.new()
    library = make_in(address)
    schema = address.rpartition("=")[2]
    bad = library.snapshot().state.cases["w3"].digest
    flip = "SET {0} = set_byte({0}, 9, 77)".format
    postgres.ask(f"UPDATE {schema}.windows {flip('readings')} WHERE digest = '{bad}'")
    postgres.ask(f"UPDATE {schema}.vectors {flip('vector')}")
    postgres.ask(f"TRUNCATE {schema}.contexts")
    with pytest.raises(DamageError, match=f"The window {bad} of .* is damaged"):
        Library.open(address).window("w3")
    found = check_library(address).findings
    assert [own.what.split(" of ")[0] for own in found] == ["1 windows", "1 contexts"]
    check_library(address, repair=True)
    again = Library.open(address)
    assert {case.id for case in library.cases()} == {case.id for case in again.cases()}
    assert "w3" not in {case.id for case in again.cases()}
    assert again.history()[-1].author == "cases check --repair"
    assert again.details("ctx").before == 0
    again.search(windows(1, seed=3), method=METHOD)
    assert again._engine.vectors.encoded == len(again), "damaged vectors are computed again"
    assert [own for own in check_library(address).findings if not own.done] == []


def make_in(address: str) -> Library:
    library = filled(address)
    library.add_one(windows(1, seed=7).values(0), CHANNELS, id="ctx", before=windows(1, seed=8).values(0))
    library.search(windows(1, seed=3), method=METHOD)
    return library


def test_a_server_that_goes_away_during_a_repair_costs_no_case(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.new()
    filled(address)

    def lose(*_: object) -> None:
        raise StoreError("The connection was lost.")

    monkeypatch.setattr("readbench.cases._postgres.PostgresStore.windows", lose)
    assert "lost" in check_library(address, repair=True).findings[-1].what
    monkeypatch.undo()
    assert len(Library.open(address)) == 12


FILL = """
import resource, sys
from readbench.cases import Library
from readbench.errors import StoreError
from tests.cases.samples import windows
own = Library.open(sys.argv[1])
for limit in (1, 3000, 20_000, 60_000):
    len(own)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        own.add(windows(400, seed=5, prefix="x"))
    except StoreError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    where = tmp_path / "library"
    filled(where)
    done = subprocess.run([sys.executable, "-c", FILL, str(where)], capture_output=True, text=True, check=True)
    said = "cannot be written: a file would become too large. Nothing of this change is kept."
    assert done.stdout.count(said) == len(done.stdout.splitlines()) == 4
    library = Library.open(where)
    assert len(library) == 12
    assert check_library(where).findings == ()
    library.add(windows(3, seed=5, prefix="x"))
    assert open_store(where).journal().num_rows == 10 + 12 + 3
