"""What of a source is there: complete, partial, absent."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from readbench.benchmark.exchange import OFFICIAL, Status, status_of
from readbench.benchmark.protocol import PAPER_COMPOSITION, Source
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source


def status(name: str, root: Path | None) -> Status:
    source: Source = build_source(name)
    return status_of(source.info, root)


def test_nothing_is_there(tmp_path: Path) -> None:
    assert status("skab", None).found == "no data root: set READBENCH_DATA or --root"
    assert status("skab", tmp_path).state == "absent"
    (tmp_path / "skab").mkdir()
    assert status("skab", tmp_path).state == "absent"


def test_a_copy_grows_from_partial_to_complete(tmp_path: Path) -> None:
    folder = tmp_path / "robot_failures"
    folder.mkdir()
    for number in range(1, 5):
        (folder / f"lp{number}.data").write_bytes(b"x")
    assert (status("robot_failures", tmp_path).state, status("robot_failures", tmp_path).found) == (
        "partial",
        "4 of 5 files",
    )
    (folder / "lp4.data.gz").write_bytes(gzip.compress(b"x"))  # the same file once more
    assert status("robot_failures", tmp_path).state == "partial"
    (folder / "lp5.data.gz").write_bytes(gzip.compress(b"x"))
    assert status("robot_failures", tmp_path).state == "complete"


def test_all_of_a_part_is_still_a_part(tmp_path: Path) -> None:
    for number in range(50):
        case = tmp_path / "rcaeval" / "carts-cpu" / str(number)
        case.mkdir(parents=True)
        (case / "anomalous.csv").write_bytes(b"x")
    assert status("rcaeval", tmp_path).state == "partial"
    assert "50 of 50 cases of Sock Shop 1" in status("rcaeval", tmp_path).found


def test_files_that_are_too_small_are_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tennessee_eastman"
    folder.mkdir()
    for table in ("Faulty", "FaultFree"):
        for side in ("Training", "Testing"):
            (folder / f"TEP_{table}_{side}.csv").write_bytes(b"x" * 250)
    found = status("tennessee_eastman", tmp_path)
    assert found.state == "partial"
    assert "4 of 4 tables as Rieth et al. have them (0 MB, where the official ones have over 1000)" in found.found
    small = replace(OFFICIAL["tennessee_eastman"].extents[0], least_bytes=1000)
    monkeypatch.setitem(OFFICIAL, "tennessee_eastman", replace(OFFICIAL["tennessee_eastman"], extents=(small,)))
    assert status("tennessee_eastman", tmp_path).state == "complete"


def test_generated_data_need_no_files() -> None:
    assert status("sim_tanks", None).state == "simulated"


def test_what_others_simulated_comes_as_files(tmp_path: Path) -> None:
    theirs = replace(build_source("skab").info, simulated=True)
    assert not theirs.generated
    assert status_of(theirs, tmp_path).state == "absent"


MEASURED = ("skab", "robot_failures", "dbsherlock", "itu_5gc", "haizhe_auv", "bearings", "itsc_motor", "lbnl_ahu")
"""Real sources beside those of the paper."""


@pytest.mark.parametrize("name", [*PAPER_COMPOSITION, *MEASURED, "phmap23", "nppad"])
def test_every_real_source_is_known(name: str) -> None:
    assert name in OFFICIAL


def test_real_copies_are_counted(real_data: Path) -> None:
    assert status("skab", real_data).state == "complete"
    assert status("robot_failures", real_data).state == "complete"
    assert status("dbsherlock", real_data).state == "complete"
    assert status("haizhe_auv", real_data).state == "complete"
    assert "4 of 6 recordings" in status("itu_5gc", real_data).found
    assert status("tennessee_eastman", real_data).state == "partial"
    assert status("petrobras_3w", real_data).state == "partial"
    assert "78 of 2228 instances" in status("petrobras_3w", real_data).found


def test_which_sources_were_verified() -> None:
    verified = {entry.name for entry in SOURCES if entry.build().info.verified and not entry.build().info.generated}
    assert verified == {
        "ctsr", "mit_bih", "petrobras_3w", "road", "tennessee_eastman", "phmap23", "nppad", *MEASURED,
    }  # fmt: skip
    for entry in SOURCES:
        info = entry.build().info
        assert info.verified == ("Not verified" not in info.description)
