"""Tennessee Eastman runs are read from both published layouts, and nothing damaged passes."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections import Counter
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition, Recording, build, compose_task, find_origin
from readbench.benchmark.sources import TennesseeEastman
from readbench.benchmark.sources._tennessee_eastman import COLUMNS, NAMES, PARTS, RunTable, single_run, table_runs
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.benchmark.sources.tennessee_eastman_workspace import Workspace, integers, reals

Floats = NDArray[np.float64]
NORMAL_TRAIN, FAULTY_TRAIN, NORMAL_TEST, FAULTY_TEST = PARTS
RUNS = {part: [(0, 1), (0, 2)] if part.faults[0] == 0 else [(1, 1), (1, 2), (20, 1)] for part in PARTS}
PACKERS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, bz2.compress, lzma.compress]


def table(part: RunTable, runs: Iterable[tuple[int, int]] | None = None) -> Floats:
    """(rows, 55) runs of one table; readings have five digits and tell their fault, run, sample and channel."""
    parts = []
    for fault, run in RUNS[part] if runs is None else runs:
        sample = np.arange(1, part.length + 1)
        keys = np.stack([np.full(part.length, fault), np.full(part.length, run), sample], axis=1)
        readings = np.arange(1, 53) * 100.0 + fault + run / 10 + sample[:, None] / 1000
        parts.append(np.hstack([keys, readings]))
    return np.concatenate(parts).round(3)


def as_csv(rows: Floats, columns: tuple[str, ...] = COLUMNS) -> bytes:
    """As the published tables look when they are written as CSV."""
    arrays = [pa.array(column) for column in rows.T]
    for number, column in enumerate(rows.T[:3]):
        if np.isfinite(column).all():
            arrays[number] = arrays[number].cast(pa.int64())
    file = BytesIO()
    pa.csv.write_csv(pa.table(arrays, list(columns)), file, pa.csv.WriteOptions(quoting_style="none"))
    return file.getvalue()


def as_rdata(rows: Floats, version: int = 2) -> bytes:
    """As published: a data frame with numeric columns, samples as integers."""
    columns = {name: reals(column) for name, column in zip(COLUMNS, rows.T, strict=True)}
    columns["sample"] = integers(rows[:, 2])
    return Workspace(version).save("faulty_training", lambda ws: ws.frame(columns, len(rows))).content()


def put(root: Path, name: str, content: bytes) -> Path:
    path = root / "tennessee_eastman" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def put_tables(root: Path, make: Callable[[Floats], bytes] = as_csv, ending: str = ".csv") -> Path:
    for part in PARTS:
        put(root, f"rieth/{part.stem}{ending}", make(table(part)))
    return root


def put_single_runs(root: Path) -> Path:
    """`dNN.dat` and `dNN_te.dat`; the first reading of row r is r, the c-th is 100 c + fault."""
    for fault in range(22):
        for test in ("", "_te"):
            rows = 960 if test else 480 if fault else 500
            rest = "".join(f"   {100 * channel + fault:.7e}" for channel in range(2, 53))
            lines = [f"   {row:.7e}{rest}\n" for row in range(rows)]
            if fault == 0 and not test:
                columns = zip(*(line.split() for line in lines), strict=True)
                lines = [f"  {'  '.join(column)}\n" for column in columns]
            put(root, f"braatz/d{fault:02d}{test}.dat", "".join(lines).encode())
    return root


def read(root: Path, **parameters: object) -> dict[str, Recording]:
    source = TennesseeEastman(**parameters)  # type: ignore[arg-type]
    return {recording.id: recording for recording in source.recordings(root)}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def single_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_single_runs(tmp_path_factory.mktemp("single"))


def test_the_facts_name_what_downs_and_vogel_list() -> None:
    info = TennesseeEastman.info
    assert len(info.channels) == 52
    assert len(info.faults) == 20
    described = {channel.name: (channel.unit, channel.description) for channel in info.channels}
    assert described["xmeas_7"] == ("kPa gauge", "reactor pressure")
    assert described["xmeas_23"] == ("mol%", "component A in the reactor feed (stream 6)")
    assert described["xmeas_36"] == ("mol%", "component H in the purge gas (stream 9)")
    assert described["xmeas_41"] == ("mol%", "component H in the product (stream 11)")
    assert described["xmv_10"] == ("%", "reactor cooling water flow")


def test_every_run_of_the_tables_is_a_recording_with_its_side(tables: Path) -> None:
    recordings = read(tables)
    assert len(recordings) == 10
    assert list(recordings)[2:5] == ["train/fault-01/run-001", "train/fault-01/run-002", "train/fault-20/run-001"]
    for name, recording in recordings.items():
        assert recording.group == name
        assert recording.side == name.split("/")[0]
        assert recording.values.shape == (52, 500 if recording.side == "train" else 960)
        assert recording.step == 180


def test_the_label_starts_with_the_fault(tables: Path) -> None:
    recordings = read(tables)
    assert np.flatnonzero(recordings["train/fault-20/run-001"].labels == 20).tolist() == list(range(20, 500))
    assert np.flatnonzero(recordings["test/fault-01/run-002"].labels == 1).tolist() == list(range(160, 960))
    assert not recordings["train/fault-00/run-002"].labels.any()
    assert not recordings["test/fault-00/run-001"].labels.any()


def test_readings_are_those_of_the_table(tables: Path) -> None:
    recording = read(tables)["test/fault-20/run-001"]
    assert recording.channels == NAMES
    expected = table(FAULTY_TEST, [(20, 1)])[:, 3:].T.astype(np.float32)
    np.testing.assert_array_equal(recording.values, expected)


FORMS: dict[str, tuple[Callable[[Floats], bytes], str]] = {
    "csv gzipped": (lambda rows: gzip.compress(as_csv(rows)), ".csv.gz"),
    "csv with numbered rows": (lambda rows: number_rows(as_csv(rows)), ".csv"),
    "rdata": (as_rdata, ".RData"),
    "rdata gzip": (lambda rows: gzip.compress(as_rdata(rows), 1), ".RData"),
    "rdata version 3 bzip2": (lambda rows: bz2.compress(as_rdata(rows, 3), 1), ".RData"),
    "rdata version 3 xz": (lambda rows: lzma.compress(as_rdata(rows, 3), preset=0), ".rdata"),
}


def number_rows(content: bytes) -> bytes:
    """R's write.csv puts the row names into a column without a name."""
    lines = content.decode().splitlines()
    return "\n".join([f'"",{lines[0]}', *(f'"{n}",{line}' for n, line in enumerate(lines[1:], start=1))]).encode()


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_the_tables_give_the_same(tables: Path, tmp_path: Path, form: str) -> None:
    one, two = read(tables), read(put_tables(tmp_path, *FORMS[form]))
    assert list(one) == list(two)
    assert all(one[name].values.tobytes() == two[name].values.tobytes() for name in one)
    assert all(one[name].labels.tobytes() == two[name].labels.tobytes() for name in one)


def test_runs_beyond_a_limit_are_left_out(tables: Path) -> None:
    assert {name[-3:] for name in read(tables, runs=1)} == {"001"}
    assert len(read(tables, runs=1)) == 6


def test_single_runs_are_read_with_their_onset(single_runs: Path) -> None:
    recordings = read(single_runs)
    assert len(recordings) == 42
    assert recordings["train/fault-07/run-001"].labels.tolist() == [7] * 480
    assert recordings["test/fault-07/run-001"].labels.tolist() == [0] * 160 + [7] * 800
    np.testing.assert_array_equal(recordings["test/fault-07/run-001"].values[0], np.arange(960))
    assert set(recordings["test/fault-07/run-001"].values[51].tolist()) == {5207.0}


def test_the_transposed_file_is_turned(single_runs: Path) -> None:
    normal = read(single_runs)["train/fault-00/run-001"]
    assert normal.values.shape == (52, 500)
    np.testing.assert_array_equal(normal.values[0], np.arange(500))
    assert not normal.labels.any()


def test_fault_21_is_outside_the_twenty(single_runs: Path) -> None:
    assert not [name for name in read(single_runs) if "fault-21" in name]


def test_tables_go_before_single_runs_unless_asked_otherwise(single_runs: Path, tmp_path: Path) -> None:
    (tmp_path / "tennessee_eastman").mkdir()
    (tmp_path / "tennessee_eastman/braatz").symlink_to(single_runs / "tennessee_eastman/braatz")
    assert len(read(tmp_path, layout="braatz")) == 42
    put_tables(tmp_path)
    for layout in ("auto", "rieth"):
        assert len(read(tmp_path, layout=layout)) == 10
    sources = [TennesseeEastman(), TennesseeEastman("rieth"), TennesseeEastman("braatz"), TennesseeEastman(runs=1)]
    assert len({source.fingerprint(tmp_path) for source in sources}) == 3


def test_tables_of_own_runs_are_told_from_the_published_ones(single_runs: Path, tmp_path: Path) -> None:
    root = put_tables(tmp_path)
    assert find_origin("tennessee_eastman", root) == "simulated"
    for path in (root / "tennessee_eastman").rglob("TEP_Faulty_Training*"):
        (path.parent / "SEEDS.csv").write_text("file,G\n")
    assert find_origin("tennessee_eastman", root) == "simulated by us"
    assert find_origin("tennessee_eastman", single_runs) == "simulated"
    assert find_origin("tennessee_eastman", tmp_path / "nowhere") == "simulated"


def test_a_missing_table_is_missed_and_not_replaced_by_single_runs(single_runs: Path, tmp_path: Path) -> None:
    put_tables(tmp_path)
    (tmp_path / "tennessee_eastman/braatz").symlink_to(single_runs / "tennessee_eastman/braatz")
    (tmp_path / "tennessee_eastman/rieth/TEP_Faulty_Testing.csv").unlink()
    with pytest.raises(SourceMissingError, match=r"no TEP_Faulty_Testing\.csv .*doi\.org/10\.7910/DVN/6C3JR1"):
        read(tmp_path)


def test_missing_single_runs_are_named(tmp_path: Path) -> None:
    put(tmp_path, "d00.dat", b"")
    with pytest.raises(SourceMissingError, match=r"d01\.dat, d02\.dat.* d20_te\.dat missing"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["TEP_Faulty_Testing.csv", "d03_te.dat"])
def test_a_file_that_is_there_twice_is_refused(tmp_path: Path, name: str) -> None:
    root = put_tables(tmp_path) if name.startswith("TEP") else put_single_runs(tmp_path)
    put(root, f"copy/{name}", b"")
    with pytest.raises(DataError, match="Keep one of the two"):
        read(root)


def swapped(first: int, second: int) -> Floats:
    rows = table(FAULTY_TRAIN)
    rows[[first, second]] = rows[[second, first]]
    return rows


def changed(row: int, column: int, value: float) -> Floats:
    rows = table(FAULTY_TRAIN)
    rows[row, column] = value
    return rows


DAMAGED_TABLES = {
    "cut": (table(FAULTY_TRAIN)[:-3], "ends at row 1497, 497 samples into a run of 500"),
    "row missing": (np.delete(table(FAULTY_TRAIN), 700, axis=0), "row 701: .*sample 202, where sample 201 of a run"),
    "not sorted": (swapped(600, 601), "row 601: .*sample 102, where sample 101 of a run of 500"),
    "runs mixed": (table(FAULTY_TRAIN, [(1, 1), (1, 1)]), "row 501: run 1 of fault 1 is there twice"),
    "testing runs": (table(FAULTY_TEST), "row 501: faultNumber 1, simulationRun 1, sample 501, where sample 1"),
    "fault 21": (table(FAULTY_TRAIN, [(21, 1)]), "row 1: faultNumber 21, .*faults are 1 to 20"),
    "fault 0": (table(FAULTY_TRAIN, [(0, 1)]), "row 1: faultNumber 0, .*faults are 1 to 20"),
    "no fault": (changed(500, 0, np.nan), "row 501: faultNumber nan"),
    "no reading": (changed(777, 9, np.nan), "row 778: xmeas_7 is nan, no reading"),
    "infinite": (changed(777, 54, np.inf), "row 778: xmv_11 is inf, no reading"),
    "beyond float32": (changed(777, 54, 1e300), "row 778: xmv_11 is inf, no reading"),
    "no rows": (table(FAULTY_TRAIN)[:0], "no rows"),
}


@pytest.mark.parametrize("name", DAMAGED_TABLES)
@pytest.mark.parametrize("make", [as_csv, as_rdata], ids=["csv", "rdata"])
def test_a_damaged_table_is_named_with_what_is_wrong(
    tmp_path: Path, name: str, make: Callable[[Floats], bytes]
) -> None:
    rows, message = DAMAGED_TABLES[name]
    path = put(tmp_path, "TEP_Faulty_Training.csv" if make is as_csv else "TEP_Faulty_Training.RData", make(rows))
    with pytest.raises(DataError, match=rf"TEP_Faulty_Training\.\w+.*{message}"):
        list(table_runs(path, FAULTY_TRAIN))


DAMAGED_CSV = {
    "empty": (b"", "Empty CSV file"),
    "cut gzip": (gzip.compress(as_csv(table(FAULTY_TRAIN)))[:-50], "damaged or incomplete"),
    "no channel": (as_csv(table(FAULTY_TRAIN)[:, :-1], COLUMNS[:-1]), "'xmv_11' is not in the header"),
    "word": (as_csv(table(FAULTY_TRAIN)).replace(b"101.123", b"shut"), r"line 24: .*invalid value 'shut'"),
}


@pytest.mark.parametrize("name", DAMAGED_CSV)
def test_a_damaged_csv_file_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_CSV[name]
    path = put(tmp_path, "TEP_Faulty_Training.csv", content)
    with pytest.raises(DataError, match=rf"TEP_Faulty_Training\.csv.*{message}"):
        list(table_runs(path, FAULTY_TRAIN))


def dat(rows: int, numbers: int = 52) -> bytes:
    return (("   1.2345000e+00" * numbers + "\n") * rows).encode()


DAMAGED_SINGLE_RUNS = {
    "empty": (b"", "1 rows of 0 numbers, not 960 of 52"),
    "cut": (dat(959), "959 rows of 52 numbers, not 960 of 52"),
    "cut inside a row": (dat(960)[:-30], "row 960: 50 numbers, not 52 as before"),
    "cut gzip": (gzip.compress(dat(960))[:-9], "damaged or incomplete"),
    "transposed": (dat(52, 960), "52 rows of 960 numbers, not 960 of 52"),
    "training run": (dat(480), "480 rows of 52 numbers, not 960 of 52"),
    "word": (dat(3) + b"shut" + dat(957), "row 4: could not convert"),
    "no number": (dat(3) + dat(1).replace(b"1.2345000e+00", b"nan", 1) + dat(956), "row 4: xmeas_1 is nan, no reading"),
    "utf-16": (dat(960).decode().encode("utf-16"), "not ascii text"),
}


@pytest.mark.parametrize("name", DAMAGED_SINGLE_RUNS)
def test_a_damaged_single_run_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_SINGLE_RUNS[name]
    path = put(tmp_path, "d03_te.dat", content)
    with pytest.raises(DataError, match=rf"d03_te\.dat.*{message}"):
        single_run(path)


SHORT = RunTable("short", "train", range(1, 3), 4, 1)
VALID = {
    "x.csv": as_csv(table(SHORT, [(1, 1), (2, 1)])),
    "x.RData": as_rdata(table(SHORT, [(1, 1), (2, 1)])),
    "d03.dat": dat(480),
}


@pytest.mark.parametrize("name", VALID)
@given(at=st.floats(0, 1), new=st.binary(max_size=6), cut=st.integers(0, 6), pack=st.sampled_from(PACKERS))
def test_a_changed_file_gives_runs_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    at: float,
    new: bytes,
    cut: int,
    pack: Callable[[bytes], bytes],
) -> None:
    content = pack(VALID[name])
    place = int(at * len(content))
    path = put(tmp_path_factory.getbasetemp(), name, content[:place] + new + content[place + cut :])
    try:
        runs = [single_run(path)] if name.endswith(".dat") else list(table_runs(path, SHORT))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert runs
        assert all(np.isfinite(run.values).all() and run.values.shape[0] == 52 for run in runs)


def test_a_workspace_written_by_the_rdata_package_is_read_back(tmp_path: Path) -> None:
    rdata = pytest.importorskip("rdata", reason="the oracle for R's format is not installed")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table(FAULTY_TRAIN), columns=list(COLUMNS)).astype({"sample": int})
    rdata.write_rda(tmp_path / "x.RData", {"faulty_training": frame})
    runs = list(table_runs(tmp_path / "x.RData", FAULTY_TRAIN))
    assert [(run.fault, run.number) for run in runs] == RUNS[FAULTY_TRAIN]
    np.testing.assert_array_equal(
        np.concatenate([run.values.T for run in runs]), table(FAULTY_TRAIN)[:, 3:].astype("f4")
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tennessee_eastman")


def test_real_runs_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(TennesseeEastman(), real_data, cache)
    sides = np.array([found.sides[group] for group in found.windows.groups])
    faults = range(1, 21)
    assert Counter(found.windows.labels[sides == "train"].tolist()) == {0: 32 * 25, **dict.fromkeys(faults, 11 * 6)}
    assert Counter(found.windows.labels[sides == "test"].tolist()) == {0: 2 * 71 + 40, **dict.fromkeys(faults, 2 * 14)}


def test_a_real_task_has_the_sizes_of_the_paper(real_data: Path, cache: Path) -> None:
    task = compose_task(build(TennesseeEastman(), real_data, cache), seed=0, settings=Composition())
    assert {rho: len(positions) for rho, positions in task.levels.items()} == {0: 1000, 10: 1111, 20: 1250}
    assert Counter(task.corpus_at(0).labels.tolist()) == dict.fromkeys(range(1, 21), 50)
    assert Counter(task.queries.labels.tolist()) == dict.fromkeys(range(1, 21), 5)
    assert len(task.normals) == 500
    assert not task.notes


def test_real_single_runs_agree_with_the_normal_level_of_the_plant(real_data: Path) -> None:
    recordings = read(real_data, layout="braatz")
    assert len(recordings) == 42
    train, test = (recordings[f"{side}/fault-00/run-001"].values.mean(axis=1) for side in ("train", "test"))
    np.testing.assert_allclose(train, test, rtol=0.1)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(TennesseeEastman(), real_data)
