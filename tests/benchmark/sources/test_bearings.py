"""Bearing recordings of four rigs are read by their names, and nothing damaged passes."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.io import savemat

from readbench.benchmark.protocol import BeforeRule, Built, Composition, Recording, Source, build, compose_task
from readbench.benchmark.sources import Bearings
from readbench.benchmark.sources._bearings import RATIOS, Vibration, read_hit, read_mfpt, read_uestc, resample_to_common
from readbench.benchmark.sources._matlab import MatValue, read_mat
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

Variables = dict[str, Any]
OWN, MFS, UESTC, MFPT = "HIT-SM/Self-built dataset", "HIT-SM/SpectraQuest MFS dataset", "UESTC/Data", "MFPT"


def noise(points: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((points, 1))


def hit(points: int = 600) -> Variables:
    return {"VarName6": noise(points) + 5}


def uestc(points: int = 240) -> Variables:
    marks = {"Datacount": points, "Linecount": 1, "StartTime": "19-23 00:0000:00:00:000"}
    return {"Data": noise(points), "SampleFrequency": 20000, **marks}


def mfpt(points: int = 600, rate: int = 48828, load: str = "270") -> Variables:
    return {"bearing": {"sr": rate, "gs": noise(points), "load": load, "rate": 25}, "BPFO": 81.125}


FILES: dict[str, Variables] = {
    **{f"{folder}/{name}_600.mat": hit() for folder in (OWN, MFS) for name in ("IR2", "IR8", "OR5", "Normal")},
    f"{OWN}/IR2_900.mat": hit(),
    **{f"{UESTC}/{kind}_800/{kind}_800_{part}.mat": uestc() for kind in "NIOB" for part in (1, 2)},
    f"{MFPT}/train_data/InnerRaceFault_vload_1.mat": mfpt(load="0"),
    f"{MFPT}/test_data/OuterRaceFault_vload_7.mat": mfpt(load="300"),
    f"{MFPT}/test_data/OuterRaceFault_1.mat": mfpt(1200, 97656),
    f"{MFPT}/train_data/baseline_1.mat": mfpt(1200, 97656),
    f"{MFPT}/train_data/baseline_2.mat": mfpt(1200, 97656),
}


def mat(variables: Variables, *, packed: bool = True) -> bytes:
    buffer = BytesIO()
    savemat(buffer, variables, do_compression=packed)
    return buffer.getvalue()


def put(root: Path, name: str, content: Variables | bytes) -> Path:
    path = root / "bearings" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else mat(content))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, variables in FILES.items():
        put(tmp_path, name, variables)
    return tmp_path


def read(root: Path, source: Source | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or Bearings()).recordings(root)}


@pytest.mark.parametrize(
    ("name", "fault", "rig", "group", "facts"),
    [
        ("HIT-self/IR2_600", 1, "HIT-self", "IR2_600", {"speed": 10.0, "rolling_elements": 9}),
        ("HIT-MFS/OR5_600", 2, "HIT-MFS", "OR5_600", {"speed": 10.0, "rolling_elements": 9}),
        ("HIT-MFS/Normal_600", 0, "HIT-MFS", "Normal_600", {"speed": 10.0, "rolling_elements": 9}),
        ("UESTC/B_800_2", 3, "UESTC", "B_800", {"speed": 800 / 60, "rolling_elements": 8, "load": 0.0}),
        ("UESTC/N_800_1", 0, "UESTC", "N_800", {"speed": 800 / 60, "rolling_elements": 8, "load": 0.0}),
        ("MFPT/InnerRaceFault_vload_1", 1, "MFPT", "InnerRaceFault_vload_1",
         {"speed": 25.0, "rolling_elements": 8, "load": 0.0}),
        ("MFPT/OuterRaceFault_1", 2, "MFPT", "OuterRaceFault_1",
         {"speed": 25.0, "rolling_elements": 8, "load": 270 * 4.448222}),
        ("MFPT/baseline_2", 0, "MFPT", "baseline", {"speed": 25.0, "rolling_elements": 8, "load": 270 * 4.448222}),
    ],
)  # fmt: skip
def test_names_say_what_a_file_is(
    root: Path, name: str, fault: int, rig: str, group: str, facts: dict[str, float]
) -> None:
    recording = read(root)[name]
    assert set(recording.labels.tolist()) == {fault}
    assert (recording.asset, recording.group) == (rig, f"{rig}/{group}")
    assert recording.facts == pytest.approx(facts)
    assert recording.rate == 20000


def test_the_severity_of_a_fault_is_no_fact(root: Path) -> None:
    recordings = read(root)
    assert recordings["HIT-self/IR2_600"].facts == recordings["HIT-self/IR8_600"].facts


def test_a_bearing_is_held_out_at_all_its_speeds(root: Path) -> None:
    groups = {name: recording.group for name, recording in read(root, Bearings(group="bearing")).items()}
    assert groups["HIT-self/IR2_600"] == groups["HIT-self/IR2_900"] != groups["HIT-self/IR8_600"]
    assert groups["UESTC/I_800_1"] == "UESTC/I"
    assert groups["MFPT/OuterRaceFault_1"] == groups["MFPT/OuterRaceFault_vload_7"]


@pytest.mark.parametrize("rate", RATIOS)
def test_a_tone_keeps_its_frequency_at_the_common_rate(rate: int) -> None:
    tone = np.sin(2 * np.pi * 3000 * np.arange(rate) / rate)
    common = resample_to_common(tone, rate)
    assert len(common) == pytest.approx(20000, abs=1)
    frequencies = np.fft.rfftfreq(len(common), 1 / 20000)
    assert frequencies[np.abs(np.fft.rfft(common)).argmax()] == pytest.approx(3000, abs=1.5)
    assert common.std() == pytest.approx(tone.std(), rel=0.01)


def test_what_the_common_rate_cannot_hold_leaves_no_alias() -> None:
    tone = np.sin(2 * np.pi * 15000 * np.arange(51200) / 51200)
    assert np.abs(resample_to_common(tone, 51200)[500:-500]).max() < 0.01


def test_the_level_is_removed_unless_it_is_asked_for(root: Path) -> None:
    without, kept = read(root)["HIT-self/IR2_600"].values, read(root, Bearings(level="kept"))["HIT-self/IR2_600"].values
    assert (without.mean(), without.std()) == pytest.approx((0.0, 1.0), abs=1e-9)
    assert kept.mean() == pytest.approx(5, abs=0.2)


def test_the_time_before_is_the_normal_recording_of_the_same_rig_and_speed(root: Path) -> None:
    recordings = read(root)
    before = recordings["UESTC/B_800_2"].before
    assert before is not None
    np.testing.assert_array_equal(before, recordings["UESTC/N_800_1"].values)
    own = recordings["HIT-self/IR2_600"].before
    assert own is not None
    np.testing.assert_array_equal(own, recordings["HIT-self/Normal_600"].values)
    assert recordings["HIT-self/IR2_900"].before is None
    assert recordings["UESTC/N_800_2"].before is None


@pytest.mark.parametrize("rule", ["preceding", "none"])
def test_another_rule_lends_no_normal_recording(root: Path, rule: BeforeRule) -> None:
    assert all(recording.before is None for recording in read(root, Bearings(before=rule)).values())


def test_gzipped_files_and_other_folders_give_the_same(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for name, variables in FILES.items():
        put(other, f"deeper/{name}.gz", gzip.compress(mat(variables, packed=False)))
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("folder", [OWN, MFS, UESTC, MFPT])
def test_a_missing_rig_is_named_with_where_to_get_it(root: Path, folder: str) -> None:
    (root / "bearings" / folder).rename(root / "elsewhere")
    with pytest.raises(SourceMissingError, match=r"bearings: no \*\*/.* Get the files from https://github\.com/hitwzc"):
        read(root)


@pytest.mark.parametrize(
    "name", [f"{OWN}/IR3_600.mat", f"{MFS}/IR2_700.mat", f"{UESTC}/B_800_x.mat", f"{MFPT}/baseline_.mat"]
)
def test_a_file_of_unknown_kind_is_refused(root: Path, name: str) -> None:
    path = put(root, name, hit())
    with pytest.raises(DataError, match=rf"{path.name}: files of .* are called .* Remove the file"):
        read(root)


def test_a_recording_that_is_there_twice_is_refused(root: Path) -> None:
    put(root, "MFPT/2 - copy/OuterRaceFault_1.mat", mfpt())
    with pytest.raises(DataError, match=r"OuterRaceFault_1\.mat: the same recording is in .* Keep one"):
        read(root)


INNER, BALL, OUTER = f"{OWN}/IR2_600.mat", f"{UESTC}/B_800/B_800_1.mat", f"{MFPT}/test_data/OuterRaceFault_1.mat"
DAMAGED: dict[str, tuple[str, Variables | bytes, str]] = {
    "empty": (INNER, b"", "no MATLAB file of version 5"),
    "text": (INNER, b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n" * 9, "no MATLAB file of version 5"),
    "cut off": (INNER, mat(hit())[:-300], "The file is damaged or incomplete"),
    "cut gzip": (INNER, gzip.compress(mat(hit()))[:-20], "damaged or incomplete"),
    "two variables": (INNER, {**hit(), "more": noise(3)}, "2 variables, expected one"),
    "matrix": (INNER, {"V0": np.ones((5, 4))}, "variable 'V0' is no vector of numbers"),
    "words": (INNER, {"V0": "vibration"}, "variable 'V0' is no vector of numbers"),
    "gap": (INNER, {"V0": np.array([[1.0], [np.nan], [2.0]])}, "variable 'V0' has numbers that are not finite"),
    "flat": (INNER, {"V0": np.ones((600, 1))}, "the readings never move"),
    "no data": (BALL, {"SampleFrequency": 20000}, "variable 'Data' is no vector"),
    "no rate": (BALL, {"Data": noise(240)}, "'SampleFrequency' is 'None', no number"),
    "other rate": (BALL, {**uestc(), "SampleFrequency": 12000}, "sampled at 12000 Hz, but files of these rigs"),
    "no struct": (OUTER, hit(), "there is no struct 'bearing'"),
    "no readings": (OUTER, {"bearing": {"sr": 97656, "load": "0", "rate": 25}}, "field 'gs' is no vector"),
    "no load": (OUTER, mfpt(load="much"), "'load' is 'much', no number"),
    "standing": (OUTER, {"bearing": {**mfpt()["bearing"], "rate": 0}}, "the shaft stands still"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    place, content, message = DAMAGED[name]
    path = put(root, place, content)
    with pytest.raises(DataError, match=rf"{path.name}: .*{message}"):
        read(root)


def test_the_fingerprint_follows_contents_names_and_parameters(root: Path) -> None:
    prints = [Bearings().fingerprint(root), Bearings(level="kept").fingerprint(root)]
    prints.append(Bearings(group="bearing").fingerprint(root))
    put(root, f"{OWN}/OR2_600.mat", hit())
    prints.append(Bearings().fingerprint(root))
    put(root, f"{OWN}/OR2_600.mat", hit(601))
    prints.append(Bearings().fingerprint(root))
    assert len(set(prints)) == 5


READERS: dict[Callable[[Path, dict[str, MatValue]], Vibration], Variables] = {
    read_hit: hit(40),
    read_uestc: uestc(40),
    read_mfpt: mfpt(40),
}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize("packed", [False, True])
def test_a_changed_file_gives_readings_or_a_data_error(
    tmp_path: Path, reader: Callable[[Path, dict[str, MatValue]], Vibration], *, packed: bool
) -> None:
    content, path, outcomes = mat(READERS[reader], packed=packed), tmp_path / "file.mat", Outcomes()

    @settings(max_examples=MANY)
    @given(damage=damages(len(content)))
    def try_damage(damage: Damage) -> None:
        path.write_bytes(damaged(content, damage))
        outcomes.note(lambda: [reader(path, read_mat(path)).readings])

    try_damage()
    assert outcomes["refused"]
    if not packed:  # a packed file carries a checksum: hardly any change is harmless
        outcomes.check_both()


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bearings")


def windows(real_data: Path, folder: Path) -> Built:
    return build(Bearings(), real_data, folder)


def test_real_recordings_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder).windows
    counts = Counter(zip(found.assets.tolist(), found.labels.tolist(), strict=True))
    assert {pair: count for pair, count in counts.items() if pair[1]} == {
        ("HIT-self", 1): 54, ("HIT-self", 2): 54, ("HIT-MFS", 1): 54, ("HIT-MFS", 2): 54,
        ("UESTC", 1): 120, ("UESTC", 2): 120, ("UESTC", 3): 120, ("MFPT", 1): 49, ("MFPT", 2): 49,
    }  # fmt: skip
    assert {pair[0]: count for pair, count in counts.items() if not pair[1]} == {
        "HIT-self": 33, "HIT-MFS": 33, "UESTC": 220, "MFPT": 3
    }  # fmt: skip
    assert len(set(found.groups)) == 21 + 21 + 16 + 14 + 1


def test_a_real_task_has_queries_of_all_kinds_and_rigs(real_data: Path, built_folder: Path) -> None:
    task = compose_task(windows(real_data, built_folder), seed=0, settings=Composition())
    assert len(task.queries) == 100
    assert set(task.queries.labels) == {1, 2, 3}
    assert task.queries.context is not None
    assert task.queries.context.has_before.all()
    assert not task.notes


def test_other_rigs_can_be_searched_for_all_but_ball_faults(real_data: Path, built_folder: Path) -> None:
    task = compose_task(windows(real_data, built_folder), seed=0, settings=Composition(split_by="asset"))
    assert not set(task.queries.assets) & set(task.corpus_at(0).assets)
    assert set(task.queries.labels) == {1, 2}


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Bearings(), real_data)
