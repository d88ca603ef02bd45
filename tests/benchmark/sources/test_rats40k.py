"""RATs40K windows are read with their channels and their own split, and nothing damaged passes."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Recording
from readbench.benchmark.sources import Rats40k
from readbench.benchmark.sources._rats40k import KINDS, parse_channels
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

UNI, MULTI = "RATs-Uni-TSImage_Reason.json", "RATs-Multi-TSImage_Reason.json"
PACKERS = [bytes, gzip.compress]
Content = dict[str, Any]


def record(observation: object, action: str) -> Content:
    label = "Normal" if action.startswith("Normal") else "Anomaly"
    extra = {"Source": "AIOPS", "FigurePath": "figures/1.png", "Thought": "It rises; then falls.", "ActionID": 1}
    return {"Observation": observation, "Action": action, "Label": label, **extra}


def uni_side(each: int) -> Content:
    actions = ["Normal Sequence", "Point Anomaly", "Sudden Spike Anomaly"]
    return {str(k): record([k + 0.5, 2, 3.25] * (8 + k), actions[k % 3]) for k in range(3 * each)} | {"99": None}


def multi_side(each: int) -> Content:
    actions = ["Normal Sequence", "Covariance Structure Anomaly", "Joint Space Anomaly"]
    text = "'flow, in': {0}; 'speed': {1}; 'load': {1}"
    return {
        str(k): record(text.format([k / 2] * 16, [float(step) for step in range(16)]), actions[k % 3])
        for k in range(3 * each)
    }


def good() -> dict[str, Content]:
    return {
        UNI: {"TSAD_train": uni_side(40), "TSAD_test": uni_side(2)},
        MULTI: {"TSAD_train": multi_side(20), "TSAD_test": multi_side(2)},
    }


def write(root: Path, contents: dict[str, Content]) -> None:
    folder = root / "rats40k"
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, good())
    return tmp_path


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in Rats40k().recordings(root)}


def test_the_class_is_the_action_and_the_side_the_file_s_own(root: Path) -> None:
    recordings = read(root)
    classes = Rats40k.info.classes
    assert classes[recordings["uni-train-1"].labels[0]] == "point anomaly"
    assert classes[recordings["uni-test-2"].labels[0]] == "sudden spike anomaly"
    assert classes[recordings["multi-train-2"].labels[0]] == "joint space anomaly"
    assert classes[recordings["multi-test-0"].labels[0]] == "normal"
    assert {recording.id.split("-")[1]: recording.side for recording in recordings.values()} == {
        "train": "train",
        "test": "test",
    }
    assert len(classes) == 1 + len(KINDS["uni"]) + len(KINDS["multi"]) == 22


def test_windows_keep_their_own_channels_and_lengths(root: Path) -> None:
    recordings = read(root)
    assert recordings["uni-train-3"].channels == ("value",)
    assert recordings["uni-train-3"].values.tolist() == [[3.5, 2, 3.25] * 11]
    assert recordings["multi-train-4"].channels == ("flow, in", "speed", "load")
    assert recordings["multi-train-4"].values.tolist() == [[2.0] * 16, [*range(16)], [*range(16)]]
    assert recordings["multi-train-4"].asset == "AIOPS"


def test_empty_records_are_left_out_and_lists_are_read_like_objects(root: Path) -> None:
    before = read(root)
    assert not any(name.endswith("-99") for name in before)
    contents = good()
    contents[UNI]["TSAD_train"] = list(contents[UNI]["TSAD_train"].values())
    write(root, contents)
    after = read(root)
    assert list(after) == list(before)
    assert all(after[name].values.tobytes() == before[name].values.tobytes() for name in before)


@given(
    st.dictionaries(
        st.text("abc _,:'\"[]{}", min_size=1, max_size=8),
        st.lists(st.floats(-1e6, 1e6) | st.integers(-99, 99), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
def test_channels_are_parsed_as_the_authors_code_does(channels: dict[str, list[float]]) -> None:
    text = "; ".join(f"{name!r}: {values!r}" for name, values in channels.items())
    official = ast.literal_eval("{" + text.replace("; ", ", ") + "}")
    found = parse_channels("here", text)
    assert {name: values.tolist() for name, values in found.items()} == official


def test_both_files_are_needed_and_named_with_where_to_get_them(root: Path) -> None:
    (root / "rats40k" / MULTI).unlink()
    with pytest.raises(SourceMissingError, match=r"no \*\*/RATs-Multi-TSImage_Reason\.json in .*huggingface"):
        read(root)


def test_a_file_that_is_there_twice_is_refused(root: Path) -> None:
    (root / "rats40k/copy").mkdir()
    (root / "rats40k/copy" / UNI).write_text("{}")
    with pytest.raises(DataError, match=r"Reason\.json: the same windows are in"):
        read(root)


OBSERVATIONS: dict[str, tuple[str, object, str]] = {
    "text in numbers": (UNI, [1.0, "two"], "value 2 of Observation is 'two'"),
    "truth in numbers": (UNI, [True], "value 1 of Observation is 'True'"),
    "no list": (UNI, 7, "no list of numbers"),
    "huge": (UNI, [10**400], "has no value at all"),
    "empty": (UNI, [], "has no value at all"),
    "gaps only": (UNI, [None, float("nan")], "has no value at all"),
    "list where text is due": (MULTI, [1.0], "channels of Observation need names"),
    "cut": (MULTI, "'flow': [1, 2]; 'speed': [3", "does not read 'name'"),
    "no names": (MULTI, "1: [1, 2]", "channels of Observation need names"),
    "no channels": (MULTI, "", "channels of Observation need names"),
    "same name twice": (MULTI, "'a': [1]; 'a': [2]", "channels of Observation need names, each once"),
    "unequal": (MULTI, "'a': [1, 2]; 'b': [2]", "its channels have 1 to 2 values"),
    "a call": (MULTI, "'a': open('x')", "does not read 'name'.*ValueError"),
    "unpacking": (MULTI, "**{'a': [1]}", "does not read 'name'"),
}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_a_damaged_observation_is_named_with_its_record(root: Path, name: str) -> None:
    file, observation, message = OBSERVATIONS[name]
    contents = good()
    contents[file]["TSAD_test"]["4"]["Observation"] = observation
    write(root, contents)
    with pytest.raises(DataError, match=rf"Reason\.json, TSAD_test, record '4': .*{message}"):
        read(root)


@pytest.mark.parametrize("action", ["Joint Space Anomaly", "Anomaly", "", "Point"])
def test_a_kind_that_the_file_does_not_have_is_refused(root: Path, action: str) -> None:
    contents = good()
    contents[UNI]["TSAD_train"]["5"]["Action"] = action
    write(root, contents)
    if action == "Point":
        assert read(root)["uni-train-5"].labels[0] == 1
        return
    with pytest.raises(DataError, match=r"TSAD_train, record '5': Action .* is none of normal sequence, point"):
        read(root)


DAMAGED = {
    "empty": ("", "no JSON"),
    "cut": (json.dumps(good()[UNI])[:-40], "no JSON"),
    "list": ("[]", "no TSAD_train and no TSAD_test in it"),
    "one side": (json.dumps({"TSAD_train": uni_side(1)}), "no TSAD_test in it"),
    "no records": (json.dumps({"TSAD_train": {"1": None}, "TSAD_test": {}}), "no records in TSAD_train"),
    "number": (json.dumps({"TSAD_train": 5, "TSAD_test": {}}), "no records in TSAD_train"),
    "record": (json.dumps({"TSAD_train": {"7": [1]}, "TSAD_test": {}}), "record '7': expected an object with"),
    "nested": ("[" * 100_000, "no JSON"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    text, message = DAMAGED[name]
    (root / "rats40k" / UNI).write_text(text)
    with pytest.raises(DataError, match=rf"RATs-Uni-TSImage_Reason\.json.*{message}"):
        read(root)


def test_the_fingerprint_follows_the_contents(root: Path) -> None:
    before = Rats40k().fingerprint(root)
    contents = good()
    contents[MULTI]["TSAD_train"]["1"]["Action"] = "Joint Space Anomaly"
    write(root, contents)
    assert Rats40k().fingerprint(root) != before


@given(at=st.floats(0, 1), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_file_gives_recordings_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: float, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    root = tmp_path_factory.getbasetemp()
    small = {"TSAD_train": multi_side(1), "TSAD_test": multi_side(1)}
    write(root, {UNI: {"TSAD_train": uni_side(1), "TSAD_test": uni_side(1)}})
    content = packer(json.dumps(small).encode())
    place = int(at * len(content))
    path = root / "rats40k" / MULTI
    path.write_bytes(content[:place] + new + content[place + cut :])
    try:
        found = read(root)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(r.values.shape == (len(r.channels), len(r.labels)) for r in found.values())


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(Rats40k(), root)


def test_gaps_are_kept_as_missing_readings(root: Path) -> None:
    contents = good()
    contents[UNI]["TSAD_train"]["4"]["Observation"] = [1.0, None, 3.0]
    write(root, contents)
    assert np.isnan(read(root)["uni-train-4"].values).tolist() == [[False, True, False]]
