"""ROAD's frames and extracted signals become labelled recordings of 664 channels at 100 Hz."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, load_task, windows_of
from readbench.benchmark.sources import Road
from readbench.benchmark.sources._road import CHANNELS, COLUMNS, PART, SIGNALS
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.benchmark.sources.road_files import (
    LOG,
    METADATA,
    NAME,
    SPEEDS,
    TABLE,
    drive,
    extraction,
    layout_table,
    log,
    untimed,
    write,
    write_layout,
    write_metadata,
)
from tests.damage import MANY, Damage, Outcomes, damaged, damages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log of 6 s with an attack from 2 s to 4 s."""
    write_layout(tmp_path)
    write_metadata(tmp_path, **{NAME: {"injection_interval": [2.0, 4.0], "elapsed_sec": 5.97}})
    write(tmp_path, f"attacks/{NAME}.log", log(drive()))
    return tmp_path


def read_all(root: Path) -> list[Recording]:
    recordings = list(Road().recordings(root))
    for recording in recordings:
        windows_of(recording, Road.info.protocol, Road.info.classes)
    return recordings


def values_of(recordings: list[Recording]) -> list[NDArray[np.floating[Any]]]:
    """All values of each recording but those of ids that are not on the bus."""
    return [recording.values[~np.isnan(recording.values)] for recording in recordings]


def counter(recording: Recording) -> list[float]:
    """The first signal of SPEEDS."""
    return recording.values[CHANNELS.index("0x6E0_1")].tolist()  # type: ignore[no-any-return]


def test_the_channels_are_the_664_signals_of_105_ids() -> None:
    assert (len(SIGNALS), len(CHANNELS), len(COLUMNS), SIGNALS[0x297]) == (105, 664, 22, 22)
    assert [channel.name for channel in Road.info.channels] == list(CHANNELS)
    assert CHANNELS[:4] == ("0x006_1", "0x006_2", "0x006_3", "0x00E_1")


def test_the_grid_holds_the_last_value_and_before_the_first_frame_the_first(root: Path) -> None:
    (recording,) = read_all(root)
    values = counter(recording)
    assert values[:9] == [0, 0, 0, 0, 0, 0, 0, 1, 1]  # frames at 0.02 s and 0.07 s
    assert len(values) == 598  # last frame at 5.97 s
    assert recording.step == 0.01


def test_an_id_that_is_not_on_the_bus_is_an_absent_channel(root: Path) -> None:
    (recording,) = read_all(root)
    absent = np.asarray(np.isnan(recording.values).all(axis=1))
    assert absent.sum() == 660
    assert not absent[CHANNELS.index("0x6E0_1")]


def test_steps_inside_the_interval_carry_the_family(root: Path) -> None:
    (recording,) = read_all(root)
    assert np.flatnonzero(recording.labels).tolist() == list(range(200, 401))
    assert {Road.info.classes[label] for label in recording.labels} == {"normal", "max speedometer attack"}
    assert (recording.group, recording.asset) == (NAME, "vehicle")


def test_ambient_captures_are_normal_and_accelerator_captures_abnormal_throughout(root: Path) -> None:
    write(root, "ambient/ambient_dyno_drive_basic_short.log", log(drive()))
    write(root, "attacks/accelerator_attack_drive_1.log", log(drive()))
    attack, ambient, _ = read_all(root)
    assert set(attack.labels.tolist()) == {Road.info.classes.index("accelerator attack")}
    assert set(ambient.labels.tolist()) == {0}


def test_of_two_variants_the_masquerade_is_used_and_fuzzing_is_left_out(root: Path) -> None:
    write(root, "attacks/fuzzing_attack_1.log", log(drive()))
    write_metadata(
        root,
        **{NAME: {"injection_interval": [2.0, 4.0]}},
        **{f"{NAME}_masquerade": {"injection_interval": [2.0, 4.0], "elapsed_sec": 5.97}},
    )
    write(root, f"attacks_untimed/{NAME}_masquerade.csv", untimed(drive(), 2.0, 4.0))
    (recording,) = read_all(root)
    assert (recording.id, recording.group) == (f"{NAME}_masquerade", NAME)


def test_an_extracted_table_gives_what_its_frames_give(root: Path, tmp_path: Path) -> None:
    frames = [frame for frame in drive() if frame[1] == SPEEDS]
    write(root, f"attacks/{NAME}.log", log(frames))
    official = tmp_path / "official"
    write_metadata(official, **{NAME: {"injection_interval": [2.0, 4.0]}})
    write(official, f"signal_extractions/ambient/{NAME}.csv.gz", gzip.compress(extraction(frames).encode()))
    (decoded,), (extracted,) = read_all(root), read_all(official)
    np.testing.assert_array_equal(decoded.values, extracted.values)
    np.testing.assert_array_equal(decoded.labels, extracted.labels)


def test_without_metadata_the_labels_of_an_extracted_table_tell_the_interval(tmp_path: Path) -> None:
    write(tmp_path, f"signal_extractions/attacks/{NAME}_masquerade.csv", extraction(drive(), 2.0, 4.0))
    (recording,) = read_all(tmp_path)
    steps = np.flatnonzero(recording.labels)
    assert (steps[0], steps[-1]) == (200, 395)  # injected frames at 2.02 s to 3.97 s, the first frame being at 0.02 s


def test_long_captures_come_in_parts_of_whole_windows(root: Path) -> None:
    write(root, f"attacks/{NAME}.log", log(drive(seconds=1.2 * PART / 100, every=5.0)))
    one, two = read_all(root)
    assert [one.id, two.id] == [f"{NAME}-00", f"{NAME}-01"]
    assert one.values.shape[1] == PART
    assert two.start == PART / 100
    assert counter(two)[0] == (PART / 100 - 0.02) // 5.0
    assert one.group == two.group


def test_a_partial_copy_says_what_it_lacks(root: Path) -> None:
    missing = Road().missing(root)
    assert len(missing) == 17
    assert "accelerator_attack_drive_1" in missing
    assert NAME not in missing
    assert missing[-1] == "12 ambient captures"


def test_the_fingerprint_follows_frames_layout_and_metadata(root: Path) -> None:
    seen = {Road().fingerprint(root)}
    write(root, f"attacks/{NAME}.log", log(drive(seconds=7)))
    seen.add(Road().fingerprint(root))
    write_metadata(root, **{NAME: {"injection_interval": [2.0, 5.0]}})
    seen.add(Road().fingerprint(root))
    write(root, "signal_extractions/DBC/signal_layout.csv", layout_table().replace(",0,1,motorola", ",7,1,motorola"))
    assert len(seen | {Road().fingerprint(root)}) == 4


BAD_FILES = {
    "empty log": (LOG, "", "the log is empty"),
    "truncated log": (LOG, log(drive())[:-9], "line 121 is b'.*expected"),
    "short payload": (LOG, "(1030000000.000000) can0 6E0#0011\n", "line 1 is"),
    "re-encoded log": (LOG, log(drive()).encode("utf-16"), "line 1 is"),
    "time going back": (LOG, log([*drive(), (3.0, 1, 0)]), r"steps by -2\.97\d+ s before frame 122"),
    "jump in time": (LOG, log([*drive(), (900.0, 1, 0)]), "before frame 122"),
    "another car": (LOG, log([(0.0, 0x001, 0), (1.0, 0x001, 0)]), "none of its CAN ids is one of ROAD's"),
    "attack after the end": (LOG, log(drive(seconds=1)), "begins at 2.0 s, after the end"),
    "layout of another version": (
        TABLE,
        layout_table().replace("\n3,", "\n4,").replace("\n6,", "\n7,"),
        "0 signals on",
    ),
    "layout with a bad line": (TABLE, layout_table().replace("motorola", "middle", 1), "line 2 does not describe"),
    "signal outside the payload": (TABLE, layout_table().replace(",0,1,m", ",60,20,m", 1), "does not fit into 64 bits"),
    "metadata not JSON": (METADATA, "{", "no JSON"),
    "metadata of another kind": (METADATA, "[1]", "expected one object per capture"),
    "interval of words": (METADATA, json.dumps({NAME: {"injection_interval": ["a", "b"]}}), "no time in seconds"),
    "interval backwards": (METADATA, json.dumps({NAME: {"injection_interval": [4, 2]}}), r"must be \[begin, end\]"),
    "group of numbers": (METADATA, json.dumps({NAME: {"capture_group": 3}}), "capture_group must be a name"),
    "no metadata of the capture": (METADATA, "{}", "no injection_interval"),
    "unknown capture": ("attacks/brake_attack_1.log", log(drive()), "not the name of an attack capture"),
    "two sources of signals": ("signal_extractions/ambient/x.csv", extraction(drive()), "but none of max_speedometer"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused(root: Path, name: str, content: str | bytes, message: str) -> None:
    write(root, name, content)
    with pytest.raises(DataError, match=message):
        read_all(root)


BAD_TABLES = {
    "empty": ("", "Empty CSV file"),
    "header only": (extraction([]), "no row with a signal of ROAD"),
    "other columns": (extraction(drive()).replace("Time", "Stamp"), "Time"),
    "text": (extraction(drive()).replace(",17.0,", ",warm,", 1), "warm"),
    "hexadecimal id": (
        extraction(drive()).replace(",1760,", ",6E0,"),
        "0x006 has more than 3 signals",
    ),  # read as 6 times ten to the 0
    "too many signals": (extraction(drive()).replace(",,", ",5.0,", 1), "0x6E0 has more than 4 signals"),
    "label 2": (extraction(drive()).replace("\n0,", "\n2,", 3), "row 2 has ID 1760.0 and Label 2.0"),
    "no attack": (extraction(drive()), "no injection_interval"),
    "no time": (extraction(drive()[:2]).replace("0.020000", ""), "the clock steps by nan"),
    "time going back": (extraction(drive()[::-1], 2.0, 4.0), "the clock steps by -"),
}


@pytest.mark.parametrize(("content", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_a_bad_extracted_table_is_refused_by_name(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path, f"signal_extractions/attacks/{NAME}.csv", content)
    with pytest.raises(DataError, match=message) as caught:
        read_all(tmp_path)
    assert str(path) in str(caught.value)


def test_a_capture_without_times_needs_its_metadata(root: Path) -> None:
    write(root, f"attacks_untimed/{NAME}_masquerade.csv", untimed(drive(), 2.0, 4.0))
    with pytest.raises(DataError, match="without times it needs elapsed_sec"):
        read_all(root)


def test_missing_files_are_named(root: Path, tmp_path: Path) -> None:
    (root / "road" / TABLE).unlink()
    with pytest.raises(SourceMissingError, match=r"logs need signal_extractions/DBC/anonymized\.dbc"):
        read_all(root)
    (tmp_path / "empty" / "road").mkdir(parents=True)
    with pytest.raises(SourceMissingError, match="Get the files from"):
        Road().fingerprint(tmp_path / "empty")


UNTIMED = f"attacks_untimed/{NAME}_masquerade.csv"
TARGETS = {
    LOG: log(drive(seconds=1)),
    UNTIMED: untimed(drive(seconds=1), 0.3, 0.6),
    METADATA: json.dumps(
        {f"{NAME}{v}": {"injection_interval": [0.3, 0.6], "elapsed_sec": 1.0} for v in ("", "_masquerade")}
    ),
    TABLE: layout_table(),
}


@pytest.mark.hypothesis  # of the examples inside it
def test_damage_of_any_kind_is_either_harmless_or_refused(tmp_path: Path) -> None:
    """The log and the capture without times, each beside the metadata and the table of signals."""
    roots = {name: tmp_path / ("untimed" if name == UNTIMED else "timed") for name in TARGETS}
    for root, recording in ((roots[LOG], LOG), (roots[UNTIMED], UNTIMED)):
        for name in (recording, METADATA, TABLE):
            write(root, name, TARGETS[name])
        assert len(read_all(root)) == 1
    outcomes = Outcomes()

    @settings(max_examples=MANY)
    @given(name=st.sampled_from(sorted(TARGETS)), damage=damages(5000))
    def read_damaged(name: str, damage: Damage) -> None:
        write(roots[name], name, damaged(TARGETS[name].encode(), damage))
        outcomes.note(lambda: values_of(read_all(roots[name])))
        write(roots[name], name, TARGETS[name])

    read_damaged()
    outcomes.check_both()


@pytest.mark.hypothesis  # of the examples inside it
def test_a_damaged_extracted_table_is_either_harmless_or_refused(tmp_path: Path) -> None:
    valid, name = extraction(drive(seconds=2), 0.3, 0.6).encode(), f"signal_extractions/attacks/{NAME}.csv"
    write(tmp_path, name, valid)
    assert len(read_all(tmp_path)) == 1
    outcomes = Outcomes()

    @settings(max_examples=MANY)
    @given(damages(5000, st.sampled_from(b"0123456789.,\n-eNa\xff")))
    def read_damaged(damage: Damage) -> None:
        write(tmp_path, name, damaged(valid, damage))
        outcomes.note(lambda: values_of(read_all(tmp_path)))

    read_damaged()
    outcomes.check_both()


def test_real_windows_per_capture_are_those_of_the_notes(real_data: Path) -> None:
    """By majority as noted; windows at the edges of an attack come in addition, by the coverage rule."""
    found = {}
    for recording in Road().recordings(real_data):
        steps = recording.labels[: len(recording.labels) // 256 * 256].reshape(-1, 256) > 0
        found[recording.group] = (int((steps.mean(axis=1) > 0.5).sum()), int(steps.any(axis=1).sum()))
    assert found == {
        "correlated_signal_attack_1": (8, 9),
        "correlated_signal_attack_2": (8, 9),
        "correlated_signal_attack_3": (4, 5),
        "max_engine_coolant_temp_attack": (1, 3),
        "max_speedometer_attack_2": (13, 13),
        "reverse_light_off_attack_1": (3, 4),
        "reverse_light_off_attack_2": (9, 10),
        "reverse_light_off_attack_3": (10, 10),
        "reverse_light_on_attack_1": (8, 9),
    }


def test_the_real_speedometer_jumps_when_it_is_attacked(real_data: Path) -> None:
    (recording,) = (r for r in Road().recordings(real_data) if r.group == NAME)
    speed = recording.values[CHANNELS.index("0x0D0_6")]
    assert np.median(speed[recording.labels == 0]) < 1000
    assert np.median(speed[recording.labels > 0]) > 16_000


def test_a_real_task_can_be_composed(real_data: Path, private_cache: Path) -> None:
    task = load_task(Road(), seed=0, root=real_data, cache=private_cache)
    sizes = [len(task.corpus_at(rho)) for rho in (0, 10, 20)]
    assert 50 <= sizes[0] < 72
    assert sizes[1:] == [round(sizes[0] / 0.9), round(sizes[0] / 0.8)]
    # Only these two families have several captures here; the others stay in the corpus.
    assert {task.info.classes[label] for label in task.queries.labels} == {
        "correlated signal attack",
        "reverse light off attack",
    }
    assert task.corpus.channel_counts.tolist() == [664] * len(task.corpus)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(check: SourceCheck, real_data: Path) -> None:
    check(Road(), real_data)


@pytest.mark.parametrize(("rule", "last"), [("onset", 399), ("preceding", PART - 1), ("none", None)])
def test_a_later_part_brings_what_was_before_it(root: Path, rule: Any, last: int | None) -> None:  # noqa: ANN401
    """The attack goes on from 4 s to the end of the second part."""
    write_metadata(root, **{NAME: {"injection_interval": [4.0, 1.2 * PART / 100], "elapsed_sec": 1.2 * PART / 100}})
    write(root, f"attacks/{NAME}.log", log(drive(seconds=1.2 * PART / 100, every=0.5)))
    source = Road(before=rule, before_steps=200)
    one, two = source.recordings(root)
    assert two.before is not None
    kept = two.before[CHANNELS.index("0x6E0_1")].tolist()
    assert kept == ([] if last is None else counter(one)[last - 199 : last + 1])


def test_every_real_attack_brings_ordinary_driving(real_data: Path, private_cache: Path) -> None:
    task = load_task("road", seed=0, root=real_data, cache=private_cache)
    assert task.queries.context is not None
    assert task.queries.context.has_before.all()
    assert set(task.queries.context.rates.tolist()) == {100.0}
