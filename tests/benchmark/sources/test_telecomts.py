"""TelecomTS windows are read line by line, and nothing damaged passes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Recording
from readbench.benchmark.sources import TelecomTs
from readbench.benchmark.sources._telecomts import KINDS, NAMES, _recording, _records
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

PLACES = {
    "anomalous/jammer/Twitch": "Jamming",
    "anomalous/synthetic/Zone_A/File": "Antenna Failure",
    "anomalous/synthetic/Zone_B/File": "Resource Allocation Bugs",
    "normal/mobile/YouTube": "",
    "normal/stationary/Zone_C/no_congestion/File": "",
}
EACH = 10
PACKERS = [bytes, gzip.compress]


def record(kind: str, number: int) -> dict[str, Any]:
    """A window as the dataset writes it; value s of indicator k reads number + k + s / 1000."""
    indicators: dict[str, list[Any]] = {
        name: [number + k + step / 1000 for step in range(128)] for k, name in enumerate(NAMES)
    }
    indicators["UL_Protocol"] = ["TCP", "UDP", "ICMP", "QUIC"] * 32
    indicators["DL_Protocol"] = ["UDP"] * 128
    indicators["UL_MCS"] = [number] * 128
    anomalies = {"exists": bool(kind), "type": kind or "None", "anomaly_duration": {"start": 0, "end": 127}}
    return {
        "start_time": "2025-01-01 10:00:00", "end_time": "2025-01-01 10:00:12", "sampling_rate": 10,
        "KPIs": indicators, "description": "A window.", "anomalies": anomalies, "statistics": {},
        "labels": {"zone": "Zone_A", "application": "File", "anomaly_present": "Yes" if kind else "No"},
        "QnA": {"network": [], "timeseries": []},
    }  # fmt: skip


def text_of(kind: str, count: int = EACH) -> bytes:
    return "".join(json.dumps(record(kind, number)) + "\n" for number in range(count)).encode()


def put(root: Path, place: str, content: bytes, ending: str = "") -> Path:
    path = root / f"telecomts/{place}/processed/chunked.jsonl{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for place, kind in PLACES.items():
        put(tmp_path, place, text_of(kind))
    return tmp_path


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in TelecomTs().recordings(root)}


def test_each_line_is_a_window_with_the_class_of_its_anomaly(root: Path) -> None:
    recordings = read(root)
    assert len(recordings) == EACH * len(PLACES)
    for place, kind in PLACES.items():
        for line in range(1, EACH + 1):
            recording = recordings[f"{place}:{line:05d}"]
            assert recording.labels.tolist() == [KINDS.index(kind) + 1 if kind else 0] * 128
            assert recording.group == recording.id
            assert recording.asset == "Zone_A"


def test_indicators_are_numbers_and_protocols_become_some(root: Path) -> None:
    recording = read(root)["normal/mobile/YouTube:00004"]
    assert recording.channels == NAMES
    assert len(NAMES) == 18
    assert recording.values[NAMES.index("RX_Bytes"), 5] == 3 + NAMES.index("RX_Bytes") + 0.005
    assert recording.values[NAMES.index("UL_Protocol"), :4].tolist() == [0, 1, 2, 2]
    assert set(recording.values[NAMES.index("DL_Protocol")].tolist()) == {1}


def test_gzipped_files_and_empty_lines_give_the_same(root: Path) -> None:
    before = read(root)
    path = put(root, "normal/mobile/YouTube", b"")
    path.unlink()
    put(root, "normal/mobile/YouTube", gzip.compress(text_of("") + b"\n\n"), ".gz")
    after = read(root)
    assert list(after) == list(before)
    assert all(after[name].values.tobytes() == before[name].values.tobytes() for name in before)


def test_null_is_a_gap(root: Path) -> None:
    window = record("", 1)
    window["KPIs"]["RSRP"][7] = None
    window["KPIs"]["UL_Protocol"][8] = None
    put(root, "normal/mobile/YouTube", json.dumps(window).encode())
    values = read(root)["normal/mobile/YouTube:00001"].values
    assert np.argwhere(np.isnan(values)).tolist() == [[0, 7], [NAMES.index("UL_Protocol"), 8]]


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "telecomts").mkdir()
    with pytest.raises(SourceMissingError, match=r"chunked\.jsonl in .*huggingface\.co/datasets/AliMaatouk"):
        read(tmp_path)


def test_files_out_of_place_or_there_twice_are_refused(root: Path) -> None:
    extra = put(root, "copy/normal/mobile/YouTube", text_of(""))
    with pytest.raises(DataError, match=r"chunked\.jsonl: the same windows are in"):
        read(root)
    extra.unlink()
    put(root, "elsewhere", text_of(""))
    with pytest.raises(DataError, match=r"chunked\.jsonl: not below a folder anomalous/ or normal/"):
        read(root)


def changed(path: str, value: object) -> dict[str, Any]:
    """A window with one member, named by a path such as `anomalies.type`, set to something else."""
    window = record("Jamming", 0)
    *folders, name = path.split(".")
    member = window
    for folder in folders:
        member = member[folder]
    member[name] = value
    return window


DAMAGED = {
    "cut": (json.dumps(record("", 0))[:-50].encode(), "line 3: no JSON"),
    "a list": (b"[1]", "line 3: no object 'KPIs' in it"),
    "no anomalies": (changed("anomalies", None), "line 3: no object 'anomalies' in it"),
    "no labels": (changed("labels", 7), "line 3: no object 'labels' in it"),
    "short": (changed("KPIs.RSRP", [1.0] * 127), "line 3: indicator RSRP has 127 values, expected 128"),
    "missing": (changed("KPIs.DL_Protocol", None), "line 3: indicator DL_Protocol has no list, expected 128"),
    "word": (changed("KPIs.UL_SNR", ["low"] * 128), "line 3: value 1 of UL_SNR is 'low', which is no number"),
    "other kind": (changed("anomalies.type", "Flood"), "line 3: anomaly of type 'Flood', which is none of Jamming"),
    "other truth": (changed("anomalies.exists", "yes"), "line 3: anomalies.exists is 'yes', not true or false"),
    "no value": (changed("KPIs", {name: [None] * 128 for name in NAMES}), "line 3: no indicator has any value"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    line, message = DAMAGED[name]
    content = line if isinstance(line, bytes) else json.dumps(line).encode()
    put(root, "anomalous/jammer/Twitch", text_of("Jamming", 2) + content)
    with pytest.raises(DataError, match=rf"chunked\.jsonl, {message}"):
        read(root)


@pytest.mark.parametrize(("content", "message"), [
    (b"", "no windows in it"),
    (b"\n\n", "no windows in it"),
    (gzip.compress(text_of(""))[:-30], "damaged or incomplete"),
])  # fmt: skip
def test_an_empty_or_cut_file_is_refused(root: Path, content: bytes, message: str) -> None:
    put(root, "normal/mobile/YouTube", content)
    with pytest.raises(DataError, match=rf"chunked\.jsonl: .*{message}"):
        read(root)


def test_the_fingerprint_follows_contents_and_places(root: Path) -> None:
    prints = [TelecomTs().fingerprint(root)]
    put(root, "normal/mobile/YouTube", text_of("", 3))
    prints.append(TelecomTs().fingerprint(root))
    (root / "telecomts/normal/mobile/YouTube").rename(root / "telecomts/normal/mobile/Twitch")
    prints.append(TelecomTs().fingerprint(root))
    assert len(set(prints)) == 3


@given(at=st.floats(0, 1), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_file_gives_recordings_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: float, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    content = packer(text_of("Jamming", 2))
    place = int(at * len(content))
    path = tmp_path_factory.getbasetemp() / "chunked.jsonl"
    path.write_bytes(content[:place] + new + content[place + cut :])
    try:
        found = [_recording(f"{path}, line {line}", str(line), item) for line, item in _records(path)]
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(recording.values.shape == (18, 128) for recording in found)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(TelecomTs(), root)
