"""Runs of DBSherlock are labelled by their regions, and neither a run's age nor its length reaches a window."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.io import savemat

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Built, Composition, Recording, build, compose_task, windows_of
from readbench.benchmark.sources import DbSherlock
from readbench.benchmark.sources._dbsherlock import CAUSES, COLUMNS, COMPOUND_CAUSES, FILE, LEVELS, read_runs
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

EACH, ROWS, FIRST, LAST = 3, 110, 41, 80
"""Runs of each cause, their rows, and the first and last abnormal row, from 1."""
DESIGN = 1
"""Place of the cause whose runs say which rows are normal."""


def cells(shape: tuple[int, int], fill: Callable[[int, int], Any]) -> NDArray[np.object_]:
    table = np.empty(shape, object)
    for i, j in np.ndindex(shape):
        table[i, j] = fill(i, j)
    return table


def texts(names: Sequence[str]) -> NDArray[np.object_]:
    return cells((1, len(names)), lambda _, j: names[j])


def table(i: int, j: int) -> NDArray[np.float64]:
    """A run whose readings tell cause, run, row and column."""
    rows, columns = np.arange(ROWS)[:, None], np.arange(len(COLUMNS))[None]
    return 1000.0 * i + 100.0 * j + rows + columns / 100.0


def run(rows: NDArray[np.float64], columns: Sequence[str] = COLUMNS) -> dict[str, Any]:
    return {"data": rows, "field_names": texts(columns)}


def content() -> dict[str, Any]:
    """All variables of a file with three runs of each cause."""
    region = np.arange(FIRST, LAST + 1, dtype=np.uint8)[None]
    found: dict[str, Any] = {}
    for causes, kind, ending in ((list(CAUSES), "test", ""), (list(COMPOUND_CAUSES), "compound", "_compound")):
        shape = (len(causes), EACH)
        found["compound_causes" if ending else "causes"] = texts(causes)
        found[f"{kind}_datasets"] = cells(
            shape, lambda i, j: {"data": table(i, j), "field_names": texts(list(COLUMNS))}
        )
        found[f"abnormal_regions{ending}"] = cells(shape, lambda _i, _j: region)
        found[f"normal_regions{ending}"] = cells(shape, lambda _i, _j: np.zeros((0, 0)))
    for j in range(EACH):
        found["normal_regions"][DESIGN, j] = np.arange(10, 31, dtype=np.uint8)[None]
    return found


def packed(variables: dict[str, Any], *, compress: bool = True) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=compress)
    return buffer.getvalue()


@cache
def official(*, compress: bool = True) -> bytes:
    return packed(content(), compress=compress)


def place(root: Path, data: bytes, name: str = f"datasets/{FILE}") -> Path:
    path = root / "dbsherlock" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(root: Path, source: DbSherlock | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or DbSherlock()).recordings(root)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place(tmp_path, official())
    return tmp_path


def test_the_class_is_the_cause_in_the_abnormal_rows(root: Path) -> None:
    labels = read(root)["Lock Contention/02"].labels
    assert DbSherlock.info.classes[10] == "lock contention"
    assert labels.tolist() == [-1] * 9 + [0] * 29 + [-1] * 2 + [10] * 40 + [-1] * 8 + [0] * 22


def test_rows_outside_a_given_normal_region_have_no_label(root: Path) -> None:
    labels = read(root)["Poor Physical Design/01"].labels
    assert labels.tolist() == [-1] * 9 + [0] * 21 + [-1] * 10 + [2] * 40 + [-1] * 30


def test_readings_are_those_of_the_file_without_its_row_number_and_levels(root: Path) -> None:
    recording, whole = read(root)["Workload Spike/02"], read(root, DbSherlock(levels=True))["Workload Spike/02"]
    assert len(recording.channels) == 82
    assert not {"Epoch", *LEVELS} & set(recording.channels)
    assert whole.channels == COLUMNS[1:]
    np.testing.assert_array_equal(whole.values, table(2, 1)[:, 1:].T)
    column = COLUMNS.index("dbmsPageSize")
    np.testing.assert_array_equal(recording.values[-1], table(2, 1)[:, column])


def test_windows_begin_with_the_anomaly_and_end_before_it_does_by_ten_rows_at_most(root: Path) -> None:
    source = DbSherlock()
    windows = windows_of(read(root)["I/O Saturation/01"], source.info.protocol, source.info.classes)
    assert windows is not None
    assert list(windows.ids) == ["I/O Saturation/01@40", "I/O Saturation/01@56"]
    assert set(windows.labels) == {4}


def test_the_time_before_is_the_same_number_of_rows_whatever_the_position(root: Path) -> None:
    source = DbSherlock()
    lengths, lasts = set(), {}
    for name in ("I/O Saturation/01", "Poor Physical Design/01"):
        windows = windows_of(read(root)[name], source.info.protocol, source.info.classes)
        assert windows is not None
        before = windows[0].before
        assert before is not None
        lengths.add(before.shape[1])
        lasts[name] = round(float(before[0, -1])) % 100
    assert lengths == {16}
    assert lasts == {"I/O Saturation/01": 37, "Poor Physical Design/01": 29}


def test_compound_runs_are_read_on_request_as_classes_of_their_own(root: Path) -> None:
    source = DbSherlock(compound=True)
    found = read(root, source)
    assert len(found) == (10 + 6) * EACH
    assert source.info.classes[11] == "CPU saturation + I/O saturation + network congestion"
    assert source.info.classes[16] == "workload spike + network congestion"
    assert {part for name in source.info.classes[11:] for part in name.split(" + ")} <= set(DbSherlock.info.faults)
    assert set(found["Workload Spike + Network Saturation/03"].labels) == {-1, 0, 16}
    assert len(read(root)) == 10 * EACH
    assert source.fingerprint(root) != DbSherlock().fingerprint(root)


@pytest.mark.parametrize("name", [FILE, f"elsewhere/{FILE}", f"{FILE}.gz"])
def test_the_file_may_lie_anywhere_and_be_gzipped(
    root: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    other = tmp_path_factory.mktemp("other")
    place(other, gzip.compress(official()) if name.endswith(".gz") else official(compress=False), name)
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "dbsherlock").mkdir()
    with pytest.raises(SourceMissingError, match=r"tpcc_16w\.mat in .*github\.com/dongyoungy"):
        read(tmp_path)


def test_a_file_that_is_there_twice_is_refused(root: Path) -> None:
    place(root, official(), FILE)
    with pytest.raises(DataError, match="the same runs are in"):
        read(root)


def changed(name: str, place: tuple[int, int], value: object) -> bytes:
    variables = content()
    variables[name][place] = value
    return packed(variables)


def without(name: str) -> bytes:
    return packed({key: value for key, value in content().items() if key != name})


RENAMED = run(table(0, 0), [*COLUMNS[:4], "gpu_usr", *COLUMNS[5:]])
FEWER = run(table(0, 0), COLUMNS[:90])
NARROW = run(table(0, 0)[:, :90])
DAMAGED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "no MATLAB file of version 5 to 7"),
    "text": (lambda: b"Epoch,Combined Avg Latency\n" * 50, "no MATLAB file of version 5 to 7"),
    "cut": (lambda: official()[:-5000], "damaged or incomplete"),
    "version 7.3": (
        lambda: b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF",
        "no MATLAB file of version",
    ),
    "no runs": (lambda: without("test_datasets"), "test_datasets is missing or no table of cells"),
    "no regions": (lambda: without("abnormal_regions"), "abnormal_regions is missing"),
    "unknown cause": (lambda: changed("causes", (0, 3), "Solar Flare"), "causes has 'Solar Flare', which is none of"),
    "fewer causes": (lambda: packed(content() | {"causes": texts(list(CAUSES)[:9])}), "9 names in causes, but"),
    "no table": (lambda: changed("test_datasets", (2, 1), 7.0), r"test_datasets\{3,2\} is no structure"),
    "other column": (lambda: changed("test_datasets", (2, 1), RENAMED), r"\{3,2\} has 'gpu_usr' where 'cpu_usr"),
    "fewer columns": (lambda: changed("test_datasets", (2, 1), FEWER), "has '90 columns' where '94' should be"),
    "narrow": (lambda: changed("test_datasets", (2, 1), NARROW), "data has 90 columns, not 94"),
    "region outside": (lambda: changed("abnormal_regions", (2, 1), np.array([[200, 201]])), "110 rows, but a region"),
    "no region": (lambda: changed("abnormal_regions", (2, 1), np.zeros((0, 0))), "has 0 abnormal stretches"),
    "two regions": (lambda: changed("abnormal_regions", (2, 1), np.array([[30, 60]])), "has 2 abnormal stretches"),
    "region of text": (lambda: changed("abnormal_regions", (2, 1), "all"), "region that is no list of row numbers"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    make, message = DAMAGED[name]
    place(root, make())
    with pytest.raises(DataError, match=rf"tpcc_16w\.mat: .*{message}"):
        read(root)


def test_the_fingerprint_follows_the_contents_and_the_columns(root: Path) -> None:
    prints = [DbSherlock().fingerprint(root), DbSherlock(levels=True).fingerprint(root)]
    place(root, changed("abnormal_regions", (2, 1), np.array([[30, 31]])))
    assert len({*prints, DbSherlock().fingerprint(root)}) == 3


@cache
def small() -> bytes:
    """One run of one cause, not compressed: changes reach what is inside."""
    variables = content()
    kept = {name: value[:1, :1] for name, value in variables.items() if "compound" not in name}
    kept["test_datasets"][0, 0] = run(table(0, 0)[:60])
    kept["abnormal_regions"][0, 0] = np.arange(20, 50, dtype=np.uint8)[None]
    return packed(kept, compress=False)


def test_a_changed_file_gives_runs_or_a_data_error(tmp_path: Path) -> None:
    path, whole, outcomes = tmp_path / FILE, small(), Outcomes()

    @settings(max_examples=MANY)
    @given(damage=damages(len(whole)))
    def try_damage(damage: Damage) -> None:
        path.write_bytes(damaged(whole, damage))
        outcomes.note(lambda: [run.rows for run in read_runs(path)])

    try_damage()
    outcomes.check_both()


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(DbSherlock(), root)


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dbsherlock")


def windows(real_data: Path, folder: Path, *, compound: bool = False) -> Built:
    return build(DbSherlock(compound=compound), real_data, folder)


def test_real_runs_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder).windows
    assert Counter(found.labels.tolist()) == {
        0: 112, 1: 30, 2: 27, 3: 25, 4: 29, 5: 31, 6: 11, 7: 25, 8: 24, 9: 30, 10: 25
    }  # fmt: skip
    assert len(set(found.groups)) == 110
    assert found.context is not None
    faulty = [window.before for window, label in zip(found, found.labels, strict=True) if label > 0]
    lengths = Counter(0 if before is None else before.shape[1] for before in faulty)
    assert lengths == {16: 250, 10: 3, 14: 2, 15: 2}


def test_real_compound_runs_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    labels = windows(real_data, built_folder, compound=True).windows.labels
    assert Counter(labels[labels > 10].tolist()) == {11: 35, 12: 22, 13: 33, 14: 34, 15: 33, 16: 32}


def test_a_real_task_has_queries_of_all_causes(real_data: Path, built_folder: Path) -> None:
    task = compose_task(windows(real_data, built_folder), seed=0, settings=Composition())
    assert find_leaks(task).sound
    assert set(task.queries.labels) == set(range(1, 11))


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(DbSherlock(), real_data)
