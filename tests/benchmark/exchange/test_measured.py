"""Tables of recordings become a named dataset: wide, long, several files, one file per case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.exchange import ImportedRecordings, draft_dataset, explain_import, read_cases, table_files
from readbench.benchmark.protocol import Built, Composition, Protocol, SourceInfo, compose_task
from readbench.common.tables import read_table
from readbench.engine.window_tables import Roles
from readbench.errors import DataError, UnknownNameError
from tests.benchmark.exchange.tables import ONSET, STEPS, onset_rows, rows, write_cases, write_long, write_wide

ROLES = Roles(time="t", label="fault", group="run", asset="plant")
INFO = SourceInfo(
    name="mine",
    title="Mine",
    domain="other",
    description="A test.",
    channels=(),
    faults=(),
    protocol=Protocol(16, label_rule="majority-or-coverage"),
    split_unit="run",
    asset_unit="plant",
    licence="none",
    citation="none",
)


def measured(*files: Path, roles: Roles = ROLES, **options: object) -> ImportedRecordings:
    return ImportedRecordings(INFO, files, roles, **options).surveyed()  # type: ignore[arg-type]


def built(source: ImportedRecordings) -> Built:
    """Built, opened and copied out of the draft, which is gone afterwards."""
    with draft_dataset(source.info, source.write) as made:
        found = made.source.built()
        return replace(found, windows=found.windows.compact())


def test_a_wide_table_becomes_windows(tmp_path: Path) -> None:
    found = built(measured(write_wide(tmp_path / "runs.csv", rows())))
    assert found.info.faults == ("jam", "leak")
    assert [channel.name for channel in found.info.channels] == ["flow", "heat"]
    assert len(found.windows) == 18 * STEPS // 16
    first = found.windows[0]
    assert (first.id, first.group, first.asset, first.time, first.label) == ("R0@0", "R0", "P0", 0.0, 0)
    assert (found.windows.labels[found.windows.groups == "R1"] == [0, 2, 2]).all()
    values = [[float(str(row[c])) for row in rows()[:16]] for c in ("flow", "heat")]
    np.testing.assert_array_equal(first.values, np.array(values, np.float32))


def test_a_long_table_and_several_files_give_the_same_windows(tmp_path: Path) -> None:
    wide = built(measured(write_wide(tmp_path / "runs.csv", rows())))
    long = write_long(tmp_path / "long.csv", rows())
    same = built(measured(long, roles=replace(ROLES, channel="sensor", value="reading")))
    assert same.windows.fingerprint() == wide.windows.fingerprint()
    halves = [write_wide(tmp_path / f"{i}.csv", rows()[part]) for i, part in enumerate((slice(480), slice(480, None)))]
    two = built(measured(*halves)).windows
    assert two.groups.tolist() == wide.windows.groups.tolist()
    assert [w.values.tobytes() for w in two] == [w.values.tobytes() for w in wide.windows]


def test_one_file_per_case_takes_its_facts_from_a_table(tmp_path: Path) -> None:
    cases = read_cases(write_cases(tmp_path / "cases", rows()))
    found = built(measured(*cases, roles=Roles(time="t"), cases=cases))
    windows = found.windows
    assert len(windows) == 18 * (STEPS - ONSET) // 16
    assert sorted(set(windows.groups.tolist())) == sorted(f"R{i}" for i in range(18))
    assert windows[2].asset == "P1"
    assert (windows.labels[windows.groups == "R1"] == found.info.classes.index("leak")).all()


TOLD = replace(ROLES, onset="began", facts=("speed",), units=(("flow", "m3/h"),))


def test_windows_are_cut_from_the_onset_on_and_share_the_time_before(tmp_path: Path) -> None:
    found = built(measured(write_wide(tmp_path / "runs.csv", onset_rows()), roles=TOLD))
    leaks = found.windows[found.windows.groups == "R1"]
    assert leaks.ids.tolist() == ["R1@0", "R1@16"]
    assert leaks.times.tolist() == [16.0, 32.0]
    content = [[float(str(row[c])) for row in rows()[STEPS : STEPS + ONSET]] for c in ("flow", "heat")]
    for window in leaks:
        np.testing.assert_array_equal(window.before, np.array(content, np.float32))
        assert (window.rate, window.units, window.facts) == (1.0, ("m3/h", ""), {"speed": 26.0})
    assert [channel.unit for channel in found.info.channels] == ["m3/h", ""]


def test_the_onset_as_a_column_and_as_labels_of_every_step_give_the_same_befores(tmp_path: Path) -> None:
    by_column = built(measured(write_wide(tmp_path / "onset.csv", onset_rows()), roles=TOLD)).windows
    by_labels = built(measured(write_wide(tmp_path / "labels.csv", rows()))).windows
    befores = {(w.group, w.time): w.before for w in by_labels if w.label}
    for window in by_column:
        if window.label:
            np.testing.assert_array_equal(window.before, befores[window.group, window.time])


def test_what_windows_bring_is_said(tmp_path: Path) -> None:
    content = [row | {"heat": 7.0} for row in onset_rows()]
    source = measured(write_wide(tmp_path / "runs.csv", content), roles=TOLD)
    with draft_dataset(source.info, source.write) as made:
        text = "\n".join(explain_import(made.source.built(), source))
    assert "onset 'began'" in text
    assert "18 groups" in text
    assert "Context: the time before 36 of 42 windows (16 to 32 steps); rate 1 Hz; units: m3/h; facts: speed." in text
    assert "Mind: channels that never move in the time before: 'heat' (36 windows)." in text


def told_cases(folder: Path, content: str, before: str = "t,heat,flow\n14,1,2\n15,3,4\n") -> ImportedRecordings:
    """Two files that begin at 16 s, one with a time before in a file of its own."""
    for run in ("R0", "R1"):
        own = [row for row in rows() if row["run"] == run and int(str(row["t"])) >= ONSET]
        write_wide(folder / f"{run}.csv", [{key: row[key] for key in ("t", "flow", "heat")} for row in own])
    (folder / "earlier.csv").write_text(before)
    (folder / "cases.csv").write_text(content)
    cases = read_cases(folder / "cases.csv")
    source = measured(*cases, roles=Roles(time="t"), cases=cases)
    return replace(source, info=replace(source.info, protocol=Protocol(4, label_rule="majority")))


def test_a_table_of_cases_names_the_onset_or_a_file_with_the_time_before(tmp_path: Path) -> None:
    content = "file,label,onset,before,rate,fact.speed\nR0.csv,normal,,earlier.csv,,\nR1.csv,leak,20,,50,29.5\n"
    windows = built(told_cases(tmp_path, content)).windows
    quiet, leak = windows[0], windows[len(windows) - 1]
    assert quiet.before is not None
    assert quiet.before.tolist() == [[2, 4], [1, 3]]
    assert (quiet.rate, quiet.facts) == (1.0, {})
    assert leak.before is not None
    assert leak.before.shape == (2, 4)
    assert (leak.rate, leak.facts) == (50.0, {"speed": 29.5})


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("t,heat,flow\n15,1,2\n16,3,4\n", "ends at 16 s and overlaps the window, which begins at 16 s"),
        ("t,heat,pressure\n14,1,2\n15,3,4\n", "lacks channel 'flow'. Give the same channels for both"),
        ("t,heat,flow\n", "no rows"),
    ],
)
def test_a_time_before_that_does_not_fit_is_refused(tmp_path: Path, before: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        told_cases(tmp_path, "file,label,before\nR0.csv,normal,\nR1.csv,leak,earlier.csv\n", before)
    assert message in str(error.value)


def test_a_time_before_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is known twice\. Give the onset, or a file"):
        told_cases(tmp_path, "file,label,before,onset\nR0.csv,normal,,\nR1.csv,leak,earlier.csv,20\n")


def test_the_marks_of_skab_are_its_onsets(real_data: Path, tmp_path: Path) -> None:
    """Official files as they are: the column `anomaly` is 0 until the valve is closed."""
    files = sorted((real_data / "skab").glob("valve[12]/*.csv*"))
    if not files:
        pytest.skip("READBENCH_DATA has no skab")
    (tmp_path / "cases.csv").write_text("\n".join(["file,label", *(f"{f.resolve()},{f.parent.name}" for f in files)]))
    cases = read_cases(tmp_path / "cases.csv")
    roles = Roles(time="datetime", onset="anomaly", channels=("Pressure", "Current"))
    source = measured(*cases, roles=roles, cases=cases)
    windows = built(replace(source, info=replace(source.info, protocol=Protocol(None)))).windows
    assert len(windows) == len(files)
    for file, window in zip(files, windows, strict=True):
        table = read_table(file)
        onset = int(np.argmax(table.numbers("anomaly") == 1))
        pressure = table.numbers("Pressure").astype(np.float32)
        assert window.before is not None
        np.testing.assert_array_equal(window.before[0], pressure[:onset])
        np.testing.assert_array_equal(window.values[0], pressure[onset:])
        assert window.rate == 1.0


def test_a_unit_needs_a_channel(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'flow'"):
        measured(write_wide(tmp_path / "runs.csv", rows()), roles=replace(ROLES, units=(("flaw", "bar"),)))


def test_without_a_window_length_each_case_is_one(tmp_path: Path) -> None:
    source = measured(write_wide(tmp_path / "runs.csv", rows()))
    whole = replace(source, info=replace(source.info, protocol=Protocol(None, label_rule="majority-or-coverage")))
    assert built(whole).windows.lengths.tolist() == [STEPS] * 18


def test_rows_without_a_label_are_unknown_unless_blank_is_normal(tmp_path: Path) -> None:
    content = [row | {"fault": "" if row["fault"] == "normal" else row["fault"]} for row in rows()]
    path = write_wide(tmp_path / "runs.csv", content)
    assert (built(measured(path)).windows.labels > 0).all()
    assert (built(measured(path, blank_is_normal=True)).windows.labels == 0).any()


def test_another_name_of_normal_operation(tmp_path: Path) -> None:
    content = [row | {"fault": "OK" if row["fault"] == "normal" else row["fault"]} for row in rows()]
    source = measured(write_wide(tmp_path / "runs.csv", content), normal="OK")
    assert source.info.classes == ("normal", "jam", "leak")
    with pytest.raises(DataError, match="'normal' is a fault here"):
        measured(write_wide(tmp_path / "runs.csv", rows()), normal="OK")


def test_the_task_is_sound(tmp_path: Path) -> None:
    found = built(measured(write_wide(tmp_path / "runs.csv", rows())))
    task = compose_task(found, seed=1, settings=Composition(rho=(0, 20)))
    assert find_leaks(task).sound
    assert not set(task.queries.groups) & set(task.corpus.groups)


def test_what_was_understood_is_said(tmp_path: Path) -> None:
    source = measured(write_wide(tmp_path / "runs.csv", rows()))
    with draft_dataset(source.info, source.write) as made:
        text = "\n".join(explain_import(made.source.built(), source))
    assert "1 table, wide" in text
    assert "time 't', label 'fault', group 'run', asset 'plant'" in text
    assert "Steps per label: jam 192, leak 192, normal 480; 0 steps have none." in text
    assert "54 windows of 2 channels and 16 steps, from 18 groups and 4 known assets." in text


def test_one_group_per_fault_is_said_to_be_too_few(tmp_path: Path) -> None:
    source = measured(write_wide(tmp_path / "runs.csv", rows(runs=3)))
    with draft_dataset(source.info, source.write) as made:
        assert "no task can be made of it yet" in "\n".join(explain_import(made.source.built(), source))


def test_no_fault_at_all_is_refused(tmp_path: Path) -> None:
    path = write_wide(tmp_path / "runs.csv", rows())
    with pytest.raises(DataError, match="No row has a fault: the labels are all empty"):
        measured(path, roles=Roles(time="t", group="run"))


def test_folders_mean_their_tables(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write_wide(tmp_path / "deep" / "b.csv", rows(1))
    write_wide(tmp_path / "a.csv", rows(1))
    (tmp_path / "notes.md").write_text("no table")
    assert [path.name for path in table_files([tmp_path])] == ["a.csv", "b.csv"]
    with pytest.raises(DataError, match="no such file"):
        table_files([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no table in this folder"):
        table_files([tmp_path / "empty"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\nnone.csv,leak\n", "row 1: names no file .*none.csv"),
        ("file,label\na.csv,leak\na.csv,jam\n", "row 2: names .* again"),
        ("file,label\n,leak\n", "row 1: names no file"),
        ("name,label\na.csv,leak\n", "Unknown column of cases.csv 'file'"),
        ("file,before\na.csv,none.csv\n", "row 1: there is no file .*none.csv for the time before"),
        ("file,rate\na.csv,0\n", "row 1: a rate is a positive number"),
    ],
)
def test_a_wrong_table_of_cases_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write_wide(tmp_path / "a.csv", rows(1))
    (tmp_path / "cases.csv").write_text(text)
    with pytest.raises(Exception, match=message):
        read_cases(tmp_path / "cases.csv")
