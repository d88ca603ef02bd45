"""NPPAD: runs are cut at the accident, and neither channels nor neighbours in severity give it away."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import Nppad
from readbench.benchmark.sources._nppad import ACCIDENTS, EVERY_CHANNEL, PLANT_CHANNELS
from readbench.engine.spec import build_source
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

Packer = Callable[[bytes], bytes]
PACKERS: list[Packer] = [bytes, gzip.compress]
SEVERITIES = (1, 2, 5, 11, 25)
HEADER = ["TIME", *(channel.name for channel in EVERY_CHANNEL)]
NAMING = {
    "WLR", "WBK", "WTRA", "WTRB", "WFLB", "MBK", "EBK", "HLW", "RBLK", "SGLK", "WLD", "RHRD",
}  # fmt: skip


def lines(seed: int, rows: int = 150, more: tuple[str, ...] = ()) -> list[str]:
    """A run whose readings tell seed, row and column."""
    table = [
        ",".join([f"{10 * row}", *(f"{seed + row}.{column:02d}" for column in range(len(HEADER) - 1 + len(more)))])
        for row in range(rows)
    ]
    return [",".join([*HEADER, *more]), *table]


def write(root: Path, *, inside: str = "Operation_csv_data/", ending: str = ".csv", pack: Packer = bytes) -> None:
    """Five severities of each type, as the dataset has them: rods that go in are below zero, some runs have more."""
    runs = {
        "MD/1": lines(900),
        "MD/2": lines(900),
        "Normal/1": lines(901, 200),
        "SLBOC/1": lines(900),
        "TT/1": lines(902),
    }
    for number, kind in enumerate(ACCIDENTS):
        for severity in SEVERITIES:
            more = ("WPCS", "WPMU", "WPFW") if kind == "SLBIC" else ()
            sign = "-" if kind == "RI" else ""
            runs[f"{kind}/{sign}{severity}"] = lines(1000 * number + severity, 150 + severity, more)
    runs["RI/-83"] = lines(1, 11)
    for name, table in runs.items():
        path = root / "nppad" / f"{inside}{name}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack("\n".join([*table, ""]).encode()))


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs in the official layout, for tests that only read."""
    root = tmp_path_factory.mktemp("official")
    write(root)
    return root


@pytest.fixture
def root(official: Path, tmp_path: Path) -> Path:
    copytree(official / "nppad", tmp_path / "nppad")
    return tmp_path


def read(root: Path, text: str = "nppad") -> dict[str, Recording]:
    return {recording.id: recording for recording in build_source(text).recordings(root)}


def test_odd_severities_of_ten_types_and_two_normal_runs_are_read(official: Path) -> None:
    found = {name: int(recording.labels[0]) for name, recording in read(official).items()}
    signs = {"RI": "-"}
    faults = {
        f"{kind}/{signs.get(kind, '')}{severity}": number
        for number, kind in enumerate(ACCIDENTS, start=1)
        for severity in (1, 5, 11, 25)
    }
    assert found == {**faults, "MD/1": 0, "Normal/1": 0}


def test_a_run_is_cut_at_the_accident_and_what_was_before_is_its_before(official: Path) -> None:
    recording = read(official)["LOCAC/5"]
    assert recording.values.shape == (84, 139)
    assert recording.before is not None
    np.testing.assert_array_equal(recording.before[0], 1005 + np.arange(11))
    np.testing.assert_array_equal(recording.values[0], 1005 + np.arange(11, 150))
    assert recording.start == 110.0
    assert recording.rate == 0.1


def test_channels_that_name_the_accident_are_there_on_request_only(official: Path) -> None:
    plant, every = read(official)["SLBIC/1"], read(official, "nppad(channels=every)")["SLBIC/1"]
    assert set(every.channels) - set(plant.channels) == NAMING
    assert (len(plant.channels), len(every.channels)) == (84, 96)
    rows = [every.channels.index(name) for name in plant.channels]
    np.testing.assert_array_equal(plant.values, every.values[rows])
    assert Nppad().fingerprint(official) != Nppad(channels="every").fingerprint(official)
    assert build_source("nppad(channels=every)").info.channels == EVERY_CHANNEL
    assert build_source("nppad").info.channels == PLANT_CHANNELS


def test_severities_of_one_ten_are_one_group_of_their_type_and_one_asset(official: Path) -> None:
    runs = read(official)
    assert runs["LOCA/1"].group == runs["LOCA/5"].group == "LOCA 0"
    assert runs["LOCA/11"].group == "LOCA 10"
    assert runs["RI/-25"].group == "RI 20"
    assert runs["RI/-25"].asset == runs["LR/25"].asset == "severity 20 to 29"
    assert runs["MD/1"].group == runs["Normal/1"].group


@pytest.mark.parametrize("rule", ["onset", "preceding"])
def test_windows_of_an_accident_bring_the_rows_before_it(official: Path, tmp_path: Path, rule: str) -> None:
    windows = build(f"nppad(before={rule})", official, tmp_path).windows
    of_run = [i for i in range(len(windows)) if windows.ids[i].startswith("LR/25@")]
    assert [windows.ids[i] for i in of_run] == ["LR/25@0", "LR/25@37", "LR/25@74"]
    firsts = []
    for i in of_run:
        before = windows[i].before
        assert before is not None
        assert before.shape == (84, 11)
        firsts.append(float(before[0, 0]) - 8025)
    assert firsts == ([0, 0, 0] if rule == "onset" else [0, 37, 74])


@pytest.mark.parametrize(("inside", "ending", "pack"), [("", ".csv", bytes), ("", ".csv.gz", gzip.compress)])
def test_other_places_and_gzipped_tables_give_the_same(
    official: Path, tmp_path: Path, inside: str, ending: str, pack: Packer
) -> None:
    write(tmp_path, inside=inside, ending=ending, pack=pack)
    one, two = read(official), read(tmp_path)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("name", ["LOCA", "RI", "MD", "Normal"])
def test_a_missing_type_is_named_with_where_to_get_it(root: Path, name: str) -> None:
    (root / "nppad/Operation_csv_data" / name).rename(root / "elsewhere")
    with pytest.raises(SourceMissingError, match=rf"no Operation_csv_data/{name}/.*github\.com/thu-inet"):
        read(root)


def test_odd_files_are_named(root: Path) -> None:
    odd = root / "nppad/Operation_csv_data/LOCA/Transient Report.csv"
    odd.write_text("\n".join(lines(1)))
    with pytest.raises(DataError, match=r"Transient Report\.csv: runs are named by their severity, as 25\.csv"):
        read(root)
    copy = root / "nppad/LOCA/5.csv"
    copy.parent.mkdir()
    odd.rename(copy)
    with pytest.raises(DataError, match=r"5\.csv: the same recording is in .*5\.csv"):
        read(root)


GOOD = "\n".join(lines(1))
DAMAGED = {
    "empty": ("", "Empty CSV file"),
    "header only": (GOOD.partition("\n")[0] + "\n", "no rows after the header"),
    "cut": ("\n".join(lines(1, 100)), "100 rows with 0 gaps, expected 150 rows"),
    "gap": (GOOD.replace("7.05", "", 1), "150 rows with 1 gaps"),
    "text": (GOOD.replace("7.05", "hot", 1), "invalid value 'hot'"),
    "no TAVG": (GOOD.replace("TAVG", "T", 1), "'TAVG' is not in the header"),
    "cut inside a row": (GOOD[:-300], "Expected 97 columns"),
    "time goes back": (GOOD.replace("\n40,", "\n20,"), "row 5: the time is missing or not later"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    (root / "nppad/Operation_csv_data/FLB/5.csv").write_text(content)
    with pytest.raises(DataError, match=rf"FLB/5\.csv.*{message}"):
        read(root)


def test_the_fingerprint_follows_contents_and_places_of_what_is_read(root: Path) -> None:
    folder = root / "nppad/Operation_csv_data"
    prints = [Nppad().fingerprint(root)]
    (folder / "FLB/2.csv").unlink()  # even: not read
    assert Nppad().fingerprint(root) == prints[0]
    (folder / "FLB/5.csv").rename(folder / "FLB/7.csv")
    prints.append(Nppad().fingerprint(root))
    (folder / "FLB/7.csv").write_text("\n".join(lines(7)))
    prints.append(Nppad().fingerprint(root))
    assert len(set(prints)) == 3


@given(at=st.integers(0, 9000), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_run_gives_a_recording_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int, packer: Packer
) -> None:
    path = tmp_path_factory.getbasetemp() / "LOCA" / "5.csv"
    path.parent.mkdir(exist_ok=True)
    content = packer(GOOD.encode())
    path.write_bytes(content[:at] + new + content[at + cut :])
    try:
        recording = Nppad()._recording(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert recording is None or recording.values.shape == (84, 139)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(official: Path, check: SourceCheck) -> None:
    check(Nppad(), official)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nppad")


def test_real_runs_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(Nppad(), real_data, cache).windows
    assert Counter(found.labels.tolist()) == {
        0: 152, 1: 150, 2: 150, 3: 153, 4: 150, 5: 165, 6: 150, 7: 150, 8: 123, 9: 150, 10: 153
    }  # fmt: skip
    faults = found[found.labels > 0]
    assert len({name.partition("@")[0] for name in faults.ids}) == 498
    assert len(set(faults.groups)) == 102
    assert found.context is not None
    assert found.context.has_before.all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_real_task_has_queries_of_all_types_and_says_that_normals_are_few(
    real_data: Path, cache: Path, seed: int
) -> None:
    task = compose_task(build(Nppad(), real_data, cache), seed=seed, settings=Composition())
    assert find_leaks(task).sound
    assert set(task.queries.labels) == set(range(1, 11))
    assert len(task.queries) == 100
    assert any("only 152 of 250 normal windows" in note for note in task.notes)


def test_what_names_an_accident_really_does(real_data: Path) -> None:
    wanted = {"LOCA/25": "WLR", "SGATR/25": "WTRA", "SGBTR/25": "WTRB", "FLB/25": "WFLB"}
    source = Nppad(channels="every")
    moving: dict[str, set[str]] = {}
    for path in source._runs(real_data):
        if path.name.startswith("25.csv"):
            recording = source._recording(path)
            assert recording is not None
            kind = recording.id
            moving[kind] = {name for name in wanted.values() if recording.values[recording.channels.index(name)].any()}
    assert {kind: names for kind, names in moving.items() if names} == {
        **{kind: {name} for kind, name in wanted.items()}, "LOCAC/25": {"WLR"}
    }  # fmt: skip


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Nppad(), real_data)
