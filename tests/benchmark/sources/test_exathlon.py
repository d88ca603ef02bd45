"""Exathlon traces are put on a grid of seconds, joined with the ground truth, and nothing damaged passes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Recording, build
from readbench.benchmark.sources import Exathlon
from readbench.benchmark.sources._exathlon import (
    ANOMALIES,
    CHANNELS,
    EXECUTORS,
    NODES,
    RAW,
    read_ground_truth,
    read_trace,
)
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.benchmark.sources.test_zips import whole_zip, write_parts, zip_parts

START = 1_528_000_000
ROWS = 900
TRUTH_HEADER = "trace_name,trace_type,anomaly_type,anomaly_details,root_cause_start,root_cause_end,extended_effect_end"
STREAMING = "driver_StreamingMetrics_"
Row = tuple[str, str, int, int, int | None]
TRACES: dict[str, list[Row]] = {
    "1_0_100000_15": [],
    "2_0_100000_16": [],
    "2_1_100000_60": [("bursty_input", "bursty_input", 100, 400, 420)],
    "3_1_100000_61": [("bursty_input", "bursty_input", 200, 500, None)],
    "4_5_1000000_84": [
        ("process_failure", "driver_failure", 300, 300, 360),
        ("process_failure", "unknown", 280, 305, None),
        ("process_failure", "executor_failure", 600, 600, 700),
    ],
    "5_5_1000000_85": [
        ("process_failure", "driver_failure", 100, 100, 160),
        ("process_failure", "executor_failure", 160, 160, 400),
    ],
}


def table(name: str, seconds: list[int] | None = None) -> list[list[str]]:
    """A trace; column k of row r reads 1000 k + r, executors 4 and 5 are inactive."""
    prefix = f"driver_benchmark_userclicks_{name}__StreamingMetrics_"
    header = ["t", "driver_other_value", *(column.replace(STREAMING, prefix) for column in RAW)]
    rows = [header]
    for row, second in enumerate(range(ROWS) if seconds is None else seconds):
        readings = [
            "-1.0" if column.startswith(("4_", "5_")) else f"{1000 * k + row}.0" for k, column in enumerate(RAW)
        ]
        rows.append([str(START + second), "7", *readings])
    return rows


def text_of(rows: list[list[str]]) -> bytes:
    return "\n".join([*(",".join(row) for row in rows), ""]).encode()


def truth_text(traces: dict[str, list[Row]]) -> str:
    lines = [TRUTH_HEADER]
    for trace, rows in traces.items():
        for kind, anomaly, first, last, effect in rows:
            end = "" if effect is None else f"{START + effect}.0"
            lines.append(f"{trace},{kind},{anomaly},,{START + first}.0,{START + last}.0,{end}")
    return "\n".join([*lines, ""])


def put_trace(root: Path, name: str, content: bytes) -> Path:
    path = root / f"exathlon/data/raw/app{name.partition('_')[0]}/{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole_zip(content, (f"{name}.csv",)))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in TRACES:
        put_trace(tmp_path, name, text_of(table(name)))
    folder = tmp_path / "exathlon/data/raw"
    (folder / "ground_truth.zip").write_bytes(whole_zip(truth_text(TRACES).encode(), ("data/raw/ground_truth.csv",)))
    return tmp_path


def read(root: Path) -> dict[str, Recording]:
    return {recording.group: recording for recording in Exathlon().recordings(root)}


def test_there_are_fifty_one_channels_of_forty_three_columns() -> None:
    assert len(RAW) == len(set(RAW)) == 43
    assert len(CHANNELS) == len(set(CHANNELS)) == 51


def test_an_anomaly_lasts_from_its_cause_to_the_end_of_its_effect(root: Path) -> None:
    recordings = read(root)
    for name, (first, last) in {"2_1_100000_60": (100, 420), "3_1_100000_61": (200, 500)}.items():
        faulty = np.flatnonzero(recordings[name].labels == ANOMALIES.index("bursty_input") + 1)
        assert faulty.tolist() == list(range(first, last + 1))


def test_known_kinds_go_before_unknown_ones_and_later_before_earlier(root: Path) -> None:
    recordings = read(root)
    driver, executor = (ANOMALIES.index(kind) + 1 for kind in ("driver_failure", "executor_failure"))
    labels = recordings["4_5_1000000_84"].labels
    assert np.flatnonzero(labels == -1).tolist() == list(range(280, 300))
    assert np.flatnonzero(labels == driver).tolist() == list(range(300, 361))
    labels = recordings["5_5_1000000_85"].labels
    assert labels[159:161].tolist() == [driver, executor]


def test_undisturbed_traces_are_normal_and_the_application_is_the_asset(root: Path) -> None:
    recording = read(root)["2_0_100000_16"]
    assert not recording.labels.any()
    assert recording.asset == "app2"
    assert recording.start == START


def test_columns_are_found_without_the_name_of_the_application(root: Path) -> None:
    recording = read(root)["1_0_100000_15"]
    for k, name in enumerate(RAW):
        expected = np.nan if name.startswith(("4_", "5_")) else 1000.0 * k + 5
        np.testing.assert_equal(recording.values[k, 5], expected)


def test_means_are_over_what_is_there(root: Path) -> None:
    recording = read(root)["1_0_100000_15"]
    row = {name: recording.values[k, 5] for k, name in enumerate(recording.channels)}
    active = [row[name] for name in EXECUTORS if name.endswith("_executor_cpuTime_count") and not np.isnan(row[name])]
    assert len(active) == 3
    assert row["executors_mean_executor_cpuTime_count"] == np.mean(active)
    idle = [row[name] for name in NODES]
    assert row["nodes_mean_CPU_ALL_Idle%"] == np.mean(idle)
    assert row["nodes_min_CPU_ALL_Idle%"] == min(idle)


def test_where_nothing_is_there_a_mean_is_missing_too(root: Path) -> None:
    rows = table("1_0_100000_15")
    for column, name in enumerate(("t", "other", *RAW)):
        if name in NODES or name.endswith("_executor_cpuTime_count"):
            rows[6][column] = "-1.0"
    put_trace(root, "1_0_100000_15", text_of(rows))
    values = dict(zip(CHANNELS, read(root)["1_0_100000_15"].values[:, 5], strict=True))
    gone = ("nodes_mean_CPU_ALL_Idle%", "nodes_min_CPU_ALL_Idle%", "executors_mean_executor_cpuTime_count")
    assert np.isnan([values[name] for name in gone]).all()


@given(steps=st.lists(st.sampled_from([0, 1, 1, 1, 2, 5, 60, 61, 500]), min_size=1, max_size=25))
def test_every_second_takes_the_last_row_up_to_it(tmp_path_factory: pytest.TempPathFactory, steps: list[int]) -> None:
    seconds = np.cumsum([0, *steps]).tolist()
    path = put_trace(tmp_path_factory.getbasetemp(), "1_0_1_1", text_of(table("x", seconds)))
    covered: set[int] = set()
    for piece in read_trace(path):
        for step, reading in enumerate(piece.values[0].tolist()):
            second = piece.start - START + step
            assert reading == max(row for row, time in enumerate(seconds) if time <= second)
            covered.add(second)
    gaps = {s for one, step in zip(seconds, steps, strict=False) if step > 60 for s in range(one + 1, one + step)}
    assert covered == set(range(seconds[-1] + 1)) - gaps


def test_archives_in_parts_and_unpacked_tables_give_the_same(root: Path) -> None:
    before = read(root)
    path = root / "exathlon/data/raw/app2/2_1_100000_60.zip"
    parts = zip_parts(path.read_bytes(), [5000, 20_000])
    path.unlink()
    write_parts(path.parent / "2_1_100000_60/2_1_100000_60.zip", parts)
    other = root / "exathlon/data/raw/app1/1_0_100000_15.zip"
    other.unlink()
    other.with_suffix(".csv").write_bytes(text_of(table("1_0_100000_15")))
    after = read(root)
    assert list(after) == list(before)
    assert all(after[name].values.tobytes() == before[name].values.tobytes() for name in before)


def test_missing_files_are_named_with_where_to_get_them(root: Path) -> None:
    (root / "exathlon/data/raw/ground_truth.zip").unlink()
    with pytest.raises(SourceMissingError, match=r"ground_truth\.csv or .*github\.com/exathlonbenchmark"):
        read(root)


def test_a_trace_that_is_there_twice_or_misnamed_is_refused(root: Path) -> None:
    extra = root / "exathlon/data/raw/app1/1_0_100000_15.csv"
    extra.write_bytes(text_of(table("x")))
    with pytest.raises(DataError, match=r"1_0_100000_15\.zip: the same trace is in"):
        read(root)
    extra.rename(extra.with_name("trace.csv"))
    with pytest.raises(DataError, match=r"trace\.csv: traces are named <application>_"):
        read(root)


def put_truth(root: Path, text: str) -> None:
    (root / "exathlon/data/raw/ground_truth.zip").write_bytes(whole_zip(text.encode(), ("ground_truth.csv",)))


GOOD_TRUTH = truth_text(TRACES)
DAMAGED_TRUTH = {
    "empty": ("", "no column trace_name"),
    "header only": (f"{TRUTH_HEADER}\n", "no anomaly in it"),
    "other columns": (GOOD_TRUTH.replace("root_cause_end", "end"), "no column root_cause_end in the header"),
    "other kind": (GOOD_TRUTH.replace(",driver_failure", ",flood"), "line 4 is no anomaly .*flood"),
    "no time": (GOOD_TRUTH.replace(f"{START + 300}.0", "late"), "line 4 is no anomaly .*late"),
    "cut": (GOOD_TRUTH[:-40], "line 8 is no anomaly"),
    "backwards": (GOOD_TRUTH.replace(f"{START + 305}.0", f"{START + 200}.0"), "in line 5 ends before it begins"),
}


@pytest.mark.parametrize("name", DAMAGED_TRUTH)
def test_a_damaged_ground_truth_is_named_with_the_line(root: Path, name: str) -> None:
    text, message = DAMAGED_TRUTH[name]
    put_truth(root, text)
    with pytest.raises(DataError, match=rf"ground_truth\.zip: .*{message}"):
        read(root)


@pytest.mark.parametrize(("trace", "rows", "message"), [
    ("2_1_100000_60", [], r"kind bursty_input, but .*ground_truth\.zip says none"),
    ("2_1_100000_60", [("stalled_input", "stalled_input", 1, 2, None)], "kind bursty_input, but .* says stalled_input"),
    ("1_0_100000_15", [("stalled_input", "stalled_input", 1, 2, None)], "kind none, but .* says stalled_input"),
    ("2_1_100000_60", [("bursty_input", "bursty_input", 5000, 6000, None)], "the anomaly at 1528005000 to 1528006000"),
])  # fmt: skip
def test_a_trace_and_the_ground_truth_must_agree(root: Path, trace: str, rows: list[Row], message: str) -> None:
    put_truth(root, truth_text({**TRACES, trace: rows}))
    with pytest.raises(DataError, match=rf"{trace}\.zip: .*{message}"):
        read(root)


GOOD = table("1_0_100000_15")
DAMAGED = {
    "empty": (b"", "no header"),
    "header only": (text_of(GOOD[:1]), "no rows after the header"),
    "cut inside a row": (text_of(GOOD)[:-100], "Expected 45 columns"),
    "columns missing": (text_of([row[:-1] for row in GOOD]), r"not one column for node8_CPU_ALL_Idle%\."),
    "two applications": (
        text_of([[*GOOD[0], f"driver_b__{GOOD[0][2].partition('__')[2]}"], *([*row, "1"] for row in GOOD[1:])]),
        "not one column for driver_StreamingMetrics_streaming_lastCompletedBatch_processingDelay_value",
    ),
    "time goes back": (text_of([GOOD[0], *GOOD[5:], GOOD[1]]), "row 897: t is 1.528e.* never go"),
    "half a second": (text_of([GOOD[0], [f"{START}.5", *GOOD[1][1:]]]), "row 1: t is"),
    "no time": (text_of([*GOOD[:4], ["", *GOOD[4][1:]], *GOOD[5:]]), "row 4: t is nan"),
    "word": (text_of([*GOOD[:4], [*GOOD[4][:5], "idle", *GOOD[4][6:]]]), "line 5: .*invalid value 'idle'"),
    "no reading": (text_of([GOOD[0], *([row[0], "7", *["-1.0"] * 43] for row in GOOD[1:])]), "none of the columns in"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_trace_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    put_trace(root, "1_0_100000_15", content)
    with pytest.raises(DataError, match=rf"1_0_100000_15\.zip.*{message}"):
        read(root)


def test_the_fingerprint_follows_traces_parts_and_ground_truth(root: Path) -> None:
    prints = [Exathlon().fingerprint(root)]
    path = put_trace(root, "1_0_100000_15", text_of(GOOD[:-1]))
    prints.append(Exathlon().fingerprint(root))
    parts = zip_parts(path.read_bytes(), [5000])
    write_parts(path, parts)
    prints.append(Exathlon().fingerprint(root))
    path.with_suffix(".z01").write_bytes(parts[0][:-1])
    prints.append(Exathlon().fingerprint(root))
    put_truth(root, GOOD_TRUTH + "\n")
    prints.append(Exathlon().fingerprint(root))
    assert len(set(prints)) == 5


@given(at=st.integers(0, 4000), new=st.binary(max_size=6), cut=st.integers(0, 6))
def test_a_changed_trace_gives_pieces_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int
) -> None:
    content = text_of(GOOD[:20])
    path = put_trace(tmp_path_factory.getbasetemp(), "1_0_1_2", content[:at] + new + content[at + cut :])
    try:
        pieces = list(read_trace(path))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(len(piece.values) == 51 for piece in pieces)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(Exathlon(), root)


def test_real_undisturbed_traces_give_the_known_windows(real_data: Path, tmp_path: Path) -> None:
    found = build(Exathlon(), real_data, tmp_path).windows
    assert Counter(found.labels.tolist()) == {0: 53}
    assert set(found.channel_counts.tolist()) == {51}


def test_the_real_ground_truth_has_the_known_anomalies(real_data: Path) -> None:
    truth = read_ground_truth(real_data / "exathlon/data/raw/ground_truth.zip")
    intervals = [interval for rows in truth.values() for interval in rows]
    assert len(truth) == 34
    assert Counter(interval.label for interval in intervals) == {1: 29, 2: 7, 3: 16, 4: 26, 5: 9, 6: 10, -1: 12}
    assert sum(i.last - i.first for i in intervals if i.label == 2) == 14_894
