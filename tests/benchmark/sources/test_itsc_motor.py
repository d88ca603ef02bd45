"""Recordings of the motor are read whole, their starts do not tell the faulty phase, and nothing damaged passes."""

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

from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import ItscMotor
from readbench.benchmark.sources._itsc_motor import CONDITIONS, LENGTH, read_currents
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

STEPS = 1000
Struct = dict[str, Any]


def currents(condition: str, repetition: int, steps: int = STEPS) -> NDArray[np.float64]:
    """Three phases at 60 Hz; a faulty recording begins where its own phase does, as the published ones."""
    angles = -2 * np.pi / 3 * np.arange(3)
    phase = "ABC".find(condition[0])
    start = repetition if phase < 0 else np.pi / 2 - angles[phase]
    steps_60_hz = 2 * np.pi * 60 * np.arange(steps)[:, None] / 1000
    waves: NDArray[np.float64] = np.sin(steps_60_hz + start + angles)
    return waves * np.where(np.arange(3) == phase, 3.5, 2.8) + 1e-3 * repetition


def published(steps: int = STEPS) -> Struct:
    return {
        f"ITSC_{condition}": {f"Repetition{number:02d}": currents(condition, number, steps) for number in range(1, 6)}
        for condition in reversed(CONDITIONS)
    }


def mat(struct: Struct, *, packed: bool = True) -> bytes:
    buffer = BytesIO()
    savemat(buffer, {"itsc": struct}, do_compression=packed)
    return buffer.getvalue()


def put(root: Path, content: bytes, name: str = "dataset/Data_ITSC.mat") -> Path:
    path = root / "itsc_motor" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, mat(published()))
    return tmp_path


def read(root: Path, source: ItscMotor | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or ItscMotor()).recordings(root)}


def test_fields_say_what_a_recording_is(root: Path) -> None:
    recordings = read(root)
    assert list(recordings)[:6] == ["HLT/1", "HLT/2", "HLT/3", "HLT/4", "HLT/5", "A10/1"]
    recording = recordings["B30/4"]
    assert set(recording.labels.tolist()) == {7}
    assert ItscMotor.info.classes[7] == "phase B, 30 % shorted"
    assert (recording.group, recording.asset, recording.rate) == ("B30/4", "motor", 1000.0)
    assert recording.before is None
    np.testing.assert_array_equal(recording.values, currents("B30", 4).T)


def test_recordings_that_do_not_show_what_they_say_are_left_out_unless_asked_for(root: Path) -> None:
    kept, usual = read(root, ItscMotor(doubtful="kept")), read(root)
    assert kept.keys() - usual.keys() == {"A10/2", "A10/5", "B10/5", "B20/2", "B20/5"}
    assert len(kept) == 65


def test_a_repetition_is_held_out_whole_when_asked_for(root: Path) -> None:
    groups = {recording.group for recording in ItscMotor(group="repetition").recordings(root)}
    assert groups == {f"repetition-{number}" for number in range(1, 6)}


def start_angles(recording: Recording) -> NDArray[np.complex128]:
    """(W,) angle of phase A where each window of a recording begins, as a number of length one."""
    assert recording.cuts is not None
    wave = np.exp(-2j * np.pi * 60 * np.arange(LENGTH) / 1000)
    spins = np.array([(recording.values[0, s : s + LENGTH] * wave).sum() for s in recording.cuts.starts])
    return spins / np.abs(spins)


def mean_angle(recordings: dict[str, Recording], phase: str) -> complex:
    own = [start_angles(recording) for name, recording in recordings.items() if name.startswith(phase)]
    return complex(np.concatenate(own).mean())


@pytest.mark.parametrize("phase", "ABC")
def test_random_starts_hide_the_angle_at_which_the_authors_cut(root: Path, phase: str) -> None:
    assert abs(mean_angle(read(root, ItscMotor(starts="crop")), phase)) > 0.99
    assert abs(mean_angle(read(root), phase)) < 0.3


def test_starts_repeat_and_are_each_recording_s_own(root: Path) -> None:
    starts = {name: tuple(r.cuts.starts.tolist()) for name, r in read(root).items() if r.cuts}
    assert starts == {name: tuple(r.cuts.starts.tolist()) for name, r in read(root).items() if r.cuts}
    assert len(set(starts.values())) == len(starts) == 60
    assert Counter(map(len, starts.values())) == {4: 55, 24: 5}


def test_a_gzipped_file_elsewhere_gives_the_same(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    put(other, gzip.compress(mat(published(), packed=False)), "ITSC-main/deeper/Data_ITSC.mat.gz")
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    put(tmp_path, b"", "dataset/Cropped_Signals_SF.zip")
    with pytest.raises(SourceMissingError, match=r"no \*\*/Data_ITSC\.mat .*github\.com/ibarram/ITSC"):
        read(tmp_path)


def test_a_file_that_is_there_twice_is_refused(root: Path) -> None:
    put(root, b"", "Data_ITSC.mat")
    with pytest.raises(DataError, match=r"Data_ITSC\.mat: the same file is in .* Keep one"):
        read(root)


def changed(change: Callable[[Struct], object]) -> bytes:
    struct = published()
    change(struct)
    return mat(struct)


def make_gap(struct: Struct) -> None:
    struct["ITSC_C20"]["Repetition03"][7, 1] = np.nan


DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no MATLAB file of version 5 to 7"),
    "cut off": (mat(published())[:-500], "damaged or incomplete"),
    "no struct": (mat(np.ones(3)), "there is no struct 'itsc'"),  # type: ignore[arg-type]
    "a condition less": (changed(lambda s: s.pop("ITSC_B20")), "condition ITSC_B20 is missing"),
    "a condition more": (changed(lambda s: s.update(ITSC_D10=1)), "condition ITSC_D10 is missing, or not one of"),
    "no repetitions": (changed(lambda s: s.update(ITSC_A10=1)), "ITSC_A10 has no repetitions"),
    "other fields": (changed(lambda s: s["ITSC_A10"].update(mean=1)), "ITSC_A10 has a field that is not called"),
    "two phases": (
        changed(lambda s: s["ITSC_A10"].update(Repetition01=np.ones((1000, 2)))),
        "ITSC_A10, repetition 1 has 2 columns",
    ),
    "short": (mat(published(steps=999)), "HLT, repetition 1 has 999 samples, fewer than 1000"),
    "text": (
        changed(lambda s: s["ITSC_A10"].update(Repetition01="lost")),
        "ITSC_A10, repetition 1 is no matrix of numbers",
    ),
    "gap": (changed(make_gap), "ITSC_C20, repetition 3 has numbers that are not finite"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    put(root, content)
    with pytest.raises(DataError, match=rf"Data_ITSC\.mat: .*{message}"):
        read(root)


def test_a_changed_file_gives_currents_or_a_data_error(tmp_path: Path) -> None:
    content, path, outcomes = mat(published(steps=4), packed=False), tmp_path / "Data_ITSC.mat", Outcomes()

    @settings(max_examples=MANY)
    @given(damage=damages(len(content)))
    def try_damage(damage: Damage) -> None:
        path.write_bytes(damaged(content, damage))
        outcomes.note(lambda: [values for _, _, values in read_currents(path)])

    try_damage()
    outcomes.check_both()


def test_the_fingerprint_follows_the_file_and_the_parameters(root: Path) -> None:
    sources = [ItscMotor(), ItscMotor(starts="crop"), ItscMotor(doubtful="kept"), ItscMotor(group="repetition")]
    prints = [source.fingerprint(root) for source in sources]
    put(root, mat(published(steps=1001)))
    prints.append(ItscMotor().fingerprint(root))
    assert len(set(prints)) == 5


def find_by_angle(windows: WindowSet) -> float:
    """Share of faulty windows whose nearest neighbour in start angle, of another recording, has their faulty phase."""
    faulty = windows[windows.labels > 0]
    wave = np.exp(-2j * np.pi * 60 * np.arange(LENGTH) / 1000)
    spins = np.array([(faulty.values(i)[0] * wave).sum() for i in range(len(faulty))])
    angles = spins / np.abs(spins)
    distance = np.abs(angles[:, None] - angles)
    distance[faulty.groups[:, None] == faulty.groups] = np.inf
    phases = (faulty.labels - 1) // 4
    return float((phases[distance.argmin(axis=1)] == phases).mean())


def test_real_windows_are_the_known_ones_and_their_starts_tell_nothing(real_data: Path, tmp_path: Path) -> None:
    cropped = build(ItscMotor(starts="crop", doubtful="kept"), real_data, tmp_path / "crop").windows
    assert Counter(cropped.labels.tolist()) == dict.fromkeys(range(13), 20)
    assert find_by_angle(cropped) == 1.0
    usual = build(ItscMotor(), real_data, tmp_path / "usual").windows
    assert Counter(usual.labels.tolist()) == {0: 120} | dict.fromkeys(range(1, 13), 20) | {1: 12, 5: 16, 6: 12}
    assert find_by_angle(usual) < 0.45


def test_a_real_task_has_queries_of_all_kinds(real_data: Path, tmp_path: Path) -> None:
    task = compose_task(build(ItscMotor(), real_data, tmp_path), seed=0, settings=Composition())
    assert Counter(task.queries.labels.tolist()) == dict.fromkeys(range(1, 13), 4)
    assert not task.notes


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(ItscMotor(), real_data)
