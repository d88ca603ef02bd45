"""PHMAP23: cases are read with the challenge's own tables, and no copy of a case stands in the task."""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import Phmap23
from readbench.benchmark.sources._phmap23 import PLACES, ROWS, read_answers, read_case, read_labels
from readbench.engine.spec import build_source
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

Packer = Callable[[bytes], bytes]
PACKERS: list[Packer] = [bytes, gzip.compress]
TRAIN: dict[int, tuple[str, int]] = {
    **{n: ("normal", 1 + n % 2) for n in range(1, 9)},
    **{100 + 2 * k + craft: (place, craft) for k, place in enumerate(PLACES) for craft in (1, 2)},
}
"""Place of the fault and spacecraft of each case of the training part."""
TEST = {178: (0, 0, 0, 0, 1), 179: (1, 2, 3, 0, 1), 180: (1, 3, 0, 2, 4), 181: (1, 1, 0, 0, 4), 182: (0, 0, 0, 0, 4)}
"""Tasks 1 to 4 and spacecraft of each case of the test part: normal, BP3, SV2, unknown, normal."""


def lines(number: int, rows: int = ROWS) -> list[str]:
    """A case whose readings tell its number, row and column."""
    first = 3.0 if TEST.get(number, (0, 0))[:2] == (1, 1) else 2.0
    readings = (",".join(f"{first + number * row / 1e6 + c / 100:g}" for c in range(7)) for row in range(rows))
    table = [f"{row / 1000:g},{reading}" for row, reading in enumerate(readings)]
    return ["TIME,P1,P2,P3,P4,P5,P6,P7", *table]


def sheet(rows: list[list[object]]) -> bytes:
    """A workbook as the challenge has it: words in a table of their own, numbers as they are."""
    words = list(dict.fromkeys(str(cell) for row in rows for cell in row if isinstance(cell, str) and cell))
    cells = [
        "".join(
            f'<c r="{chr(65 + c)}{r}"/>' if cell == ""
            else f'<c r="{chr(65 + c)}{r}" t="s"><v>{words.index(cell)}</v></c>' if isinstance(cell, str)
            else f'<c r="{chr(65 + c)}{r}"><v>{cell}</v></c>'
            for c, cell in enumerate(row)
        )
        for r, row in enumerate(rows, start=1)
    ]  # fmt: skip
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    shared = "".join(f'<si><t>{word}</t><phoneticPr fontId="3"/></si>' for word in words)
    data = "".join(f'<row r="{r}">{row}</row>' for r, row in enumerate(cells, start=1))
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {space}><sheetData>{data}</sheetData></worksheet>")
    return content.getvalue()


def labels(cases: dict[int, tuple[str, int]] = TRAIN) -> list[list[object]]:
    """Rows of labels.xlsx."""
    head: list[list[object]] = [
        ["Case#", "Spacecraft#", "Condition", "Opening", "", "", "", "Bubble", *[""] * 7],
        ["", "", "", *PLACES],
    ]
    kinds = {"n": "Normal", "S": "Fault", "B": "Anomaly"}
    rows = [
        [float(number), craft, kinds[place[0]]]
        + [25 if place == name else 100 for name in PLACES[:4]]
        + ["Yes" if place == name else "No" for name in PLACES[4:]]
        for number, (place, craft) in cases.items()
    ]
    return [*head, *rows, [""] * 15]


def answers() -> str:
    rows = [f"{craft},{number},{a},{b},{c},{d},100,words" for number, (a, b, c, d, craft) in TEST.items()]
    return "\n".join(["Spacecraft No.,ID,task1,task2,task3,task4,task5,Test condition", *rows, ""])


def write(root: Path, *, inside: str = "dataset/", ending: str = ".csv", pack: Packer = bytes) -> None:
    folder = root / "phmap23"
    for part, cases in (("train", TRAIN), ("test", TEST)):
        (folder / f"{inside}{part}/data").mkdir(parents=True)
        for number in cases:
            content = "\n".join(lines(number)).encode()
            (folder / f"{inside}{part}/data/Case{number:03d}{ending}").write_bytes(pack(content))
    (folder / f"{inside}train/labels.xlsx").write_bytes(sheet(labels()))
    (folder / "testing").mkdir()
    (folder / "testing/answer.csv").write_text(answers())


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases in the official layout, for tests that only read."""
    root = tmp_path_factory.mktemp("official")
    write(root)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def read(root: Path, text: str = "phmap23") -> dict[str, Recording]:
    return {recording.id: recording for recording in build_source(text).recordings(root)}


def test_classes_and_spacecraft_are_those_of_both_tables(official: Path) -> None:
    found = {name: (int(r.labels[0]), r.asset) for name, r in read(official).items()}
    assert found["Case001"] == (0, "spacecraft 2")
    for number, (place, craft) in TRAIN.items():
        label = 0 if place == "normal" else PLACES.index(place) + 1
        assert found[f"Case{number:03d}"] == (label, f"spacecraft {craft}")
    assert [found[f"Case{n}"] for n in TEST] == [
        (0, "spacecraft 1"), (7, "spacecraft 1"), (2, "spacecraft 4"), (-1, "spacecraft 4"), (0, "spacecraft 4")
    ]  # fmt: skip
    assert Phmap23.info.classes[7] == "bubble at BP3"
    assert Phmap23.info.classes[2] == "valve SV2 opens in part only"


def test_readings_are_those_of_the_file_without_the_row_at_rest(official: Path) -> None:
    recording = read(official)["Case103"]
    assert recording.values.shape == (7, 1200)
    np.testing.assert_allclose(recording.values[2], 2.02 + 103e-6 * np.arange(1, 1201), atol=1e-5)
    assert recording.rate == 1000.0


def test_an_unknown_anomaly_gives_no_window_and_a_case_gives_one(official: Path, tmp_path: Path) -> None:
    built = build(Phmap23(), official, tmp_path)
    assert "Case181@0" not in built.windows.ids
    assert len(built.windows) == len(TRAIN) + len(TEST) - 1


def test_cycles_are_windows_on_request(official: Path, tmp_path: Path) -> None:
    windows = build("phmap23(window=400,stride=400)", official, tmp_path).windows
    assert windows.ids[:4].tolist() == ["Case001@0", "Case001@400", "Case001@800", "Case002@0"]


def test_the_time_before_is_the_mean_of_the_other_normal_cases_of_the_craft(official: Path) -> None:
    cases = read(official)
    own = [f"Case{n:03d}" for n, (place, craft) in TRAIN.items() if (place, craft) == ("normal", 1)] + ["Case178"]
    faulty, normal = cases["Case101"], cases[own[0]]
    assert faulty.before is not None
    assert normal.before is not None
    np.testing.assert_allclose(faulty.before, np.mean([cases[n].values for n in own], axis=0))
    np.testing.assert_allclose(normal.before, np.mean([cases[n].values for n in own[1:]], axis=0))
    assert cases["Case182"].before is None  # the only normal case of its spacecraft
    assert cases["Case180"].before is not None


def test_nothing_just_precedes_a_case(official: Path) -> None:
    assert all(recording.before is None for recording in read(official, "phmap23(before=preceding)").values())


def test_exact_copies_are_left_out(root: Path) -> None:
    data = root / "phmap23/dataset/test/data"
    (data / "Case179.csv").write_bytes((root / "phmap23/dataset/train/data/Case101.csv").read_bytes())
    cases = read(root)
    assert "Case179" not in cases
    assert "Case101" in cases
    assert "Case180" in cases


@pytest.mark.parametrize(("inside", "ending", "pack"), [("", ".csv", bytes), ("dataset/", ".csv.gz", gzip.compress)])
def test_other_places_and_gzipped_tables_give_the_same(
    official: Path, tmp_path: Path, inside: str, ending: str, pack: Packer
) -> None:
    write(tmp_path, inside=inside, ending=ending, pack=pack)
    one, two = read(official), read(tmp_path)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("name", ["dataset/train/labels.xlsx", "testing/answer.csv"])
def test_a_missing_table_is_named_with_where_to_get_it(root: Path, name: str) -> None:
    (root / "phmap23" / name).unlink()
    with pytest.raises(SourceMissingError, match=rf"no {name} .*github\.com/FedericaParlapiano"):
        read(root)


def test_without_the_test_part_its_truth_is_not_needed(root: Path) -> None:
    (root / "phmap23/testing/answer.csv").unlink()
    for path in (root / "phmap23/dataset/test/data").iterdir():
        path.unlink()
    assert len(read(root)) == len(TRAIN)


def test_odd_files_are_named(root: Path) -> None:
    data = root / "phmap23/dataset/train/data"
    odd = data / "Case1.csv"
    odd.write_text("\n".join(lines(1)))
    with pytest.raises(DataError, match=r"Case1\.csv: cases are named Case001\.csv to"):
        read(root)
    odd.rename(data / "Case177.csv")
    with pytest.raises(DataError, match=r"Case177\.csv: the tables of the truth have no case 177"):
        read(root)
    (data / "Case177.csv").rename(root / "phmap23/dataset/test/data/Case001.csv")
    with pytest.raises(DataError, match=r"Case001\.csv: the same recording is in .*Case001\.csv"):
        read(root)


GOOD = "\n".join(lines(101))
DAMAGED = {
    "empty": ("", "Empty CSV file"),
    "cut": (GOOD[: len(GOOD) // 2].rpartition("\n")[0], r"\d+ rows with 0 gaps, expected 1201 rows"),
    "gap": (GOOD.replace("2.01", "", 1), "1201 rows with 1 gaps"),
    "text": (GOOD.replace("2.01", "wet", 1), "invalid value 'wet'"),
    "no P7": (GOOD.replace("P7", "P8", 1), "'P7' is not in the header"),
    "time goes back": (GOOD.replace("\n0.003,", "\n0.001,"), "row 4: the time is missing or not later"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_case_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED[name]
    path = tmp_path / "Case101.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=rf"Case101\.csv.*{message}"):
        read_case(path)


def change(row: int, column: int, cell: object) -> bytes:
    table = labels()
    table[row][column] = cell
    return sheet(table)


DAMAGED_SHEETS = {
    "no workbook": (b"Case#,Spacecraft#", "no workbook .*File is not a zip file"),
    "cut": (sheet(labels())[:400], "no workbook"),
    "header only": (sheet(labels()[:2]), "2 rows, expected a header of two rows and cases"),
    "no number": (change(2, 0, "one"), "the row of case one has no number under 'Case#'"),
    "no craft": (change(2, 1, ""), "the row of case 1.0 has no number under 'Spacecraft#'"),
    "two faults": (change(10, 4, 50), "case 101 is Fault with faults at SV1, SV2"),
    "normal with a fault": (change(2, 3, 50), "case 1 is Normal with faults at SV1"),
    "fault without a place": (change(2, 2, "Fault"), "case 1 is Fault with faults at no place"),
}


@pytest.mark.parametrize("name", DAMAGED_SHEETS)
def test_a_damaged_table_of_labels_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_SHEETS[name]
    path = tmp_path / "labels.xlsx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"labels\.xlsx: {message}"):
        read_labels(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,179,1,2,3", "1,179,1,2,9", "case 179 has tasks 1, 2, 9, 0, which have no meaning"),
        ("4,180,1,3,0,2", "4,180,1,3,0,5", "case 180 has tasks 1, 3, 0, 5, which have no meaning"),
        ("1,178,0,0", "1,178,0,2", "case 178 has tasks 0, 2, 0, 0, which have no meaning"),
        ("1,178,0,0", "1,178,,0", "row 1: a number is missing"),
        ("1,178,0,0", "1,178,1e300,0", "row 1: a number is missing or too large"),
        ("task3", "task 3", "'task3' is not in the header"),
    ],
)
def test_damaged_answers_are_named_with_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "answer.csv"
    path.write_text(answers().replace(old, new))
    with pytest.raises(DataError, match=rf"answer\.csv.*{message}"):
        read_answers(path)


def test_the_fingerprint_follows_cases_and_both_tables(root: Path) -> None:
    folder = root / "phmap23"
    prints = [Phmap23().fingerprint(root)]
    (folder / "dataset/train/labels.xlsx").write_bytes(change(2, 1, 3))
    prints.append(Phmap23().fingerprint(root))
    (folder / "testing/answer.csv").write_text(answers().replace("4,180", "1,180"))
    prints.append(Phmap23().fingerprint(root))
    (folder / "dataset/test/data/Case180.csv").write_text("\n".join(lines(99)))
    prints.append(Phmap23().fingerprint(root))
    assert len(set(prints)) == 4


FUZZED: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "Case101.csv": (GOOD.encode(), read_case),
    "labels.xlsx": (sheet(labels()), read_labels),
    "answer.csv": (answers().encode(), read_answers),
}


@given(
    name=st.sampled_from(sorted(FUZZED)),
    at=st.floats(0, 1),
    new=st.binary(max_size=6),
    cut=st.integers(0, 6),
    packer=st.sampled_from(PACKERS),
)
def test_a_changed_file_is_read_or_gives_a_data_error(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    at: float,
    new: bytes,
    cut: int,
    packer: Packer,
) -> None:
    content, reader = FUZZED[name]
    content = packer(content)
    place = int(at * len(content))
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content[:place] + new + content[place + cut :])
    try:
        found = reader(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert found is not None


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("phmap23")


def test_real_cases_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(Phmap23(), real_data, cache).windows
    assert Counter(found.labels.tolist()) == {
        0: 125, 1: 15, 2: 15, 3: 14, 4: 14, 5: 4, 6: 4, 7: 4, 8: 3, 9: 4, 10: 4, 11: 5, 12: 3
    }  # fmt: skip
    assert len(set(found.groups)) == 212
    groups = dict(zip(found.ids.tolist(), found.groups.tolist(), strict=True))
    assert groups["Case186@0"] == groups["Case159@0"]
    assert groups["Case197@0"] == groups["Case160@0"]
    assert Counter(found.assets.tolist()) == {
        "spacecraft 1": 76, "spacecraft 2": 59, "spacecraft 3": 59, "spacecraft 4": 20
    }  # fmt: skip
    assert found.context is not None
    assert found.context.has_before.all()


def test_real_cases_start_at_two_megapascal_but_for_the_unknown_ones(real_data: Path) -> None:
    first = {r.id: (int(r.labels[0]), float(r.values[:, 0].mean())) for r in Phmap23().recordings(real_data)}
    unknown = {name for name, (label, _) in first.items() if label < 0}
    assert unknown == {"Case184", "Case192", "Case207", "Case218", "Case222"}  # Case200 repeats Case184
    assert all((level > 2.9) == (name in unknown) for name, (_, level) in first.items())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_real_task_has_queries_of_all_faults_and_no_copies(real_data: Path, cache: Path, seed: int) -> None:
    task = compose_task(build(Phmap23(), real_data, cache), seed=seed, settings=Composition())
    assert find_leaks(task).sound
    assert set(task.queries.labels) == set(range(1, 13))
    assert not task.notes


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(official: Path, check: SourceCheck) -> None:
    check(Phmap23(), official)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Phmap23(), real_data)
