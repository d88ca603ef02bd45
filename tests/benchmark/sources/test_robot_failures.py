"""Robot failures keep the label of each problem, and copies of an example never stand on both sides of a split."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import RobotFailures
from readbench.benchmark.sources._robot_failures import LABELS, read_examples
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

EACH = 4
PACKERS = [bytes, gzip.compress]


def example(label: str, seed: int) -> list[str]:
    rows = np.random.default_rng(seed).integers(-500, 500, (15, 6)).tolist()
    return [label, *("\t" + "\t".join(map(str, row)) for row in rows), "", ""]


def lines(problem: str) -> list[str]:
    """Four examples of each label; those of the fifth problem are copies of the fourth's."""
    first = 0 if problem in ("lp4", "lp5") else 1000 * int(problem[2])
    labels = ["ok" if problem == "lp3" else "normal", *LABELS[problem]]
    wanted = [label for label in labels for _ in range(EACH)]
    return [line for number, label in enumerate(wanted) for line in example(label, first + number)]


def write(root: Path, ending: str = ".data.txt") -> None:
    folder = root / "robot_failures"
    folder.mkdir(exist_ok=True)
    for problem in LABELS:
        text = "\n".join(lines(problem)).encode()
        (folder / f"{problem}{ending}").write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in RobotFailures().recordings(root)}


def test_a_class_is_a_problem_together_with_a_label(root: Path) -> None:
    names = RobotFailures.info.classes
    found = {f"{r.id[:3]} {names[r.labels[0]]}" for r in read(root).values()}
    assert "lp1 approach to grasp: collision" in found
    assert "lp4 approach to ungrasp: collision" in found
    assert {f"lp{k} normal" for k in range(1, 6)} <= found
    assert len(names) == len(set(names)) == 17


def test_readings_are_those_of_the_file(root: Path) -> None:
    recording = read(root)["lp2-001"]
    expected = np.random.default_rng(2000).integers(-500, 500, (15, 6)).T
    np.testing.assert_array_equal(recording.values, expected)
    assert recording.channels == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


def test_copies_of_an_example_are_one_group(root: Path) -> None:
    groups: dict[bytes, set[str]] = {}
    for recording in read(root).values():
        groups.setdefault(recording.values.tobytes(), set()).add(recording.group)
    assert all(len(names) == 1 for names in groups.values())
    assert len({name for names in groups.values() for name in names}) == len(groups)
    assert read(root)["lp5-002"].group == "lp4-002"


@pytest.mark.parametrize("ending", [".data", ".data.gz", ".data.txt.gz"])
def test_other_endings_give_the_same(root: Path, tmp_path_factory: pytest.TempPathFactory, ending: str) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, ending)
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


def test_missing_files_are_named_with_where_to_get_them(root: Path) -> None:
    for problem in ("lp2", "lp5"):
        (root / f"robot_failures/{problem}.data.txt").unlink()
    with pytest.raises(SourceMissingError, match=r"no lp2\.data, lp5\.data in .*archive\.ics\.uci\.edu"):
        read(root)


def test_a_file_that_is_there_twice_is_refused(root: Path) -> None:
    (root / "robot_failures/lp2.data").write_text("\n".join(lines("lp2")))
    with pytest.raises(DataError, match=r"lp2\.data\.txt: the same examples are in .*lp2\.data"):
        read(root)


GOOD = lines("lp1")
DAMAGED = {
    "empty": ("", "no examples in it"),
    "cut inside an example": ("\n".join(GOOD[:10]), r"in line 1 has readings of shape \(9, 6\), expected 15 lines"),
    "cut inside a row": ("\n".join(GOOD[:15]) + "\n\t1\t2", "in line 1 is no table of integers"),
    "no label": ("\n".join(GOOD[1:]), "line 1 is .*but a label must be there"),
    "label of another problem": ("\n".join(GOOD).replace("fr_collision", "lost"), "is 'lost', but a label must be"),
    "label only": ("normal\n\n", "in line 1 has readings of shape"),
    "fractions": ("\n".join([GOOD[0], "\t1.5" * 6, *GOOD[2:]]), "is no table of integers .*1.5"),
    "huge": ("\n".join([GOOD[0], "\t99999" * 6, *GOOD[2:]]), "none above 10000"),
    "seven columns": ("\n".join([GOOD[0], *("\t1" * 7 for _ in range(15))]), r"shape \(15, 7\)"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_the_line(root: Path, name: str) -> None:
    text, message = DAMAGED[name]
    (root / "robot_failures/lp1.data.txt").write_text(text)
    with pytest.raises(DataError, match=rf"lp1\.data\.txt: .*{message}"):
        read(root)


def test_the_fingerprint_follows_the_contents(root: Path) -> None:
    before = RobotFailures().fingerprint(root)
    (root / "robot_failures/lp1.data.txt").write_text("\n".join(GOOD[18:]))
    assert RobotFailures().fingerprint(root) != before


@given(at=st.integers(0, 900), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_file_gives_examples_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "lp1.data"
    content = packer("\n".join(GOOD[:36]).encode())
    path.write_bytes(content[:at] + new + content[at + cut :])
    try:
        found = list(read_examples(path, "lp1"))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(values.shape == (6, 15) for _, values in found)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(RobotFailures(), root)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("robot_failures")


def test_real_examples_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(RobotFailures(), real_data, cache).windows
    assert len(found) == 463
    assert len(set(found.groups)) == 251
    assert Counter(found.labels.tolist()) == {
        0: 129, 1: 17, 2: 16, 3: 34, 4: 7, 5: 6, 6: 9, 7: 5, 8: 3, 9: 15, 10: 9, 11: 72, 12: 21, 13: 26, 14: 21, 15: 47,
        16: 26,
    }  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_real_query_has_a_copy_in_the_corpus(real_data: Path, cache: Path, seed: int) -> None:
    task = compose_task(build(RobotFailures(), real_data, cache), seed=seed, settings=Composition())
    assert find_leaks(task).sound
    assert len(task.queries) > 50


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(RobotFailures(), real_data)
