"""Imported datasets are found by name, kept whole, and never lost to a bad import."""

from __future__ import annotations

from pathlib import Path

import pytest

from readbench.benchmark.exchange import Imported, ImportedRecordings, check_name, draft_dataset
from readbench.benchmark.protocol import Source, load_task
from readbench.common.files import imported_root
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source
from readbench.errors import DataError, UnknownNameError, UsageError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.benchmark.exchange.tables import rows, write_wide
from tests.benchmark.exchange.test_measured import INFO, ROLES


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path / "imported"))


@pytest.fixture
def source(tmp_path: Path) -> ImportedRecordings:
    return ImportedRecordings(INFO, (write_wide(tmp_path / "runs.csv", rows()),), ROLES).surveyed()


def keep(source: ImportedRecordings, *, replace: bool = False) -> Imported:
    with draft_dataset(source.info, source.write) as made:
        return made.keep(replace=replace)


def test_a_kept_dataset_is_found_by_name(source: ImportedRecordings, private_cache: Path) -> None:
    assert "mine" not in SOURCES
    keep(source)
    assert "mine" in SOURCES
    found: Source = build_source("mine")
    assert found.info == source.info
    task = load_task(found, seed=0, cache=private_cache)
    assert task.info.name == "mine"
    with pytest.raises(UnknownNameError, match="Did you mean 'mine'"):
        build_source("mines")


def test_an_imported_folder_never_hides_a_built_in_dataset(source: ImportedRecordings) -> None:
    keep(source).folder.rename(imported_root() / "skab")
    assert SOURCES.get("skab").origin == "readbench"
    assert SOURCES.names().count("skab") == 1


def test_what_is_not_kept_leaves_nothing(source: ImportedRecordings) -> None:
    with draft_dataset(source.info, source.write) as made:
        assert made.source.folder.is_dir()
        assert "mine" not in SOURCES
    assert list(imported_root().iterdir()) == []


def test_a_name_is_taken_once_unless_replaced(source: ImportedRecordings) -> None:
    before = keep(source).fingerprint(None)
    with pytest.raises(UsageError, match="is there already"):
        keep(source)
    assert build_source("mine").fingerprint(None) == before
    keep(source, replace=True)
    assert [path.name for path in imported_root().iterdir() if path.is_dir()] == ["mine"]


def test_an_import_that_fails_keeps_what_was_there(source: ImportedRecordings) -> None:
    before = keep(source).fingerprint(None)

    def broken(folder: Path) -> None:
        source.write(folder)
        raise DataError("the disk went away")

    with pytest.raises(DataError, match="went away"), draft_dataset(source.info, broken):
        pass
    assert build_source("mine").fingerprint(None) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("skab", "is the name of a dataset of readbench"),
        ("Mine", "is no name for a dataset"),
        ("../mine", "is no name for a dataset"),
        ("", "is no name for a dataset"),
    ],
)
def test_names_that_cannot_be_had(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_name(name, replace=True)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"format": 9, "info": {}}', '{"format": 1, "info": {"name": "x"}}', "[]"]
)
def test_damaged_facts_say_what_to_do(source: ImportedRecordings, content: str) -> None:
    folder = keep(source).folder
    (folder / "dataset.json").write_text(content)
    with pytest.raises(DataError, match="Import the data again, or remove the folder"):
        _ = build_source("mine").info


def test_damaged_parts_say_what_to_do(source: ImportedRecordings) -> None:
    folder = keep(source).folder
    (folder / "parts.json").write_text('{"corpus": 3}')
    with pytest.raises(DataError, match="Import the data again"):
        build_source("mine").built()


@pytest.mark.parametrize("check", SOURCE_CHECKS[1:], ids=lambda check: check.__name__)
def test_an_imported_source_keeps_the_contract(source: ImportedRecordings, check: SourceCheck) -> None:
    check(keep(source), None)
