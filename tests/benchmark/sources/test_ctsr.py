"""Series of the UCR archive become classes by dataset and label, on 512 points, whatever form their files have."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import build, load_task, windows_of
from readbench.benchmark.sources import Ctsr
from readbench.benchmark.sources._ctsr import LENGTH, read_series
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Outcomes

SERIES = "1\t0.0\t2.0\t4.0\n-1\t1.5\tNaN\tNaN\n10\t1.0\tNaN\t3.0\n2\tNaN\t1.0\t1e0\n"
ADJUSTED = "Missing_value_and_variable_length_datasets_adjusted"


def write(root: Path, name: str, content: str | bytes, archive: str = "UCRArchive_2018") -> Path:
    """A file of the archive, such as `Wafer_TRAIN.tsv`, in the folder of its dataset."""
    path = root / "ctsr" / archive / name.split("_T", maxsplit=1)[0] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "Wafer_TRAIN.tsv", SERIES)
    return tmp_path


def read_all(root: Path) -> None:
    source = Ctsr().resolved(root)
    for recording in source.recordings(root):
        windows_of(recording, source.info.protocol, source.info.classes)


def test_classes_are_datasets_with_their_labels_in_numerical_order(root: Path) -> None:
    write(root, "Wafer_TEST.tsv", "3\t1\t2\n")
    write(root, "Beef_TEST.tsv", "0\t1\t2\n")
    source = Ctsr().resolved(root)
    assert source.info.faults == ("Beef / 0", "Wafer / -1", "Wafer / 1", "Wafer / 2", "Wafer / 3", "Wafer / 10")
    assert Ctsr.info.faults == ()
    assert [(r.id, int(r.labels[0])) for r in source.recordings(root)] == [
        ("Beef_TEST:1", 1),
        ("Wafer_TRAIN:1", 3),
        ("Wafer_TRAIN:2", 2),
        ("Wafer_TRAIN:3", 6),
        ("Wafer_TRAIN:4", 4),
        ("Wafer_TEST:1", 5),
    ]


def test_labels_do_not_depend_on_being_resolved(root: Path) -> None:
    one, two = (list(source.recordings(root)) for source in (Ctsr(), Ctsr().resolved(root)))
    assert [r.labels[0] for r in one] == [r.labels[0] for r in two]


def test_padding_goes_gaps_are_filled_and_the_rest_is_interpolated_to_the_window_length(root: Path) -> None:
    line, padded, gap, leading = (r.values[0] for r in Ctsr().recordings(root))
    np.testing.assert_allclose(line, np.linspace(0, 4, LENGTH), atol=1e-6)
    np.testing.assert_array_equal(padded, np.full(LENGTH, 1.5))
    np.testing.assert_allclose(gap, np.interp(np.linspace(0, 2, LENGTH), [0, 1, 2], [1, 1, 3]), atol=1e-6)
    np.testing.assert_array_equal(leading, np.ones(LENGTH))


def test_each_series_is_a_group_with_one_label_and_one_window(root: Path) -> None:
    source = Ctsr().resolved(root)
    recordings = list(source.recordings(root))
    assert len({r.group for r in recordings}) == len(recordings)
    windows = [windows_of(r, source.info.protocol, source.info.classes) for r in recordings]
    assert [len(w) for w in windows if w is not None] == [1] * len(recordings)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Wafer_TRAIN.tsv.gz", gzip.compress(SERIES.encode())),
        ("Wafer_TRAIN.tsv", SERIES.replace("\n", "\r\n").encode()),
        ("Wafer_TRAIN.txt", b"  1.0000e+00 0 2 4\n -1 1.5 NaN NaN\n 1.0e+01 1 NaN 3\n 2 NaN 1 1\n"),
        (
            "Wafer_TRAIN.ts",
            b"# about\n@univariate true\n@classLabel true -1 1 2 10\n@data\n0,2,4:1\n1.5:-1\n1,?,3:10\nNaN,1,1.0:2\n",
        ),
    ],
    ids=["tsv.gz", "tsv", "txt", "ts"],
)
def test_all_forms_give_the_same_series(root: Path, tmp_path: Path, name: str, content: bytes) -> None:
    other = tmp_path / "other"
    write(other, name, content)
    assert Ctsr().resolved(other).info.faults == Ctsr().resolved(root).info.faults
    for one, two in zip(Ctsr().recordings(root), Ctsr().recordings(other), strict=True):
        np.testing.assert_array_equal(one.values, two.values)
        np.testing.assert_array_equal(one.labels, two.labels)


def test_ts_files_may_have_labels_in_words(tmp_path: Path) -> None:
    write(tmp_path, "Gait_TRAIN.ts", "@data\n1,2:walk\n1,2:2\n1,2:run\n")
    assert Ctsr().resolved(tmp_path).info.faults == ("Gait / 2", "Gait / run", "Gait / walk")


def test_a_dataset_in_two_forms_is_read_once_and_the_adjusted_copy_is_left_alone(root: Path) -> None:
    before = [r.id for r in Ctsr().recordings(root)]
    write(root, "Wafer_TRAIN.ts", "@data\n1,2:1\n")
    write(root, "Wafer_TRAIN.tsv", SERIES, archive=f"UCRArchive_2018/{ADJUSTED}")
    write(root, "Wafer_TRAIN.tsv", SERIES, archive=ADJUSTED)
    (root / "ctsr" / "UCRArchive_2018" / "Wafer" / "._Wafer_TRAIN.tsv").write_text("left behind by an unpacker")
    assert [r.id for r in Ctsr().recordings(root)] == before


def test_a_dataset_in_two_folders_is_refused(root: Path) -> None:
    write(root, "Wafer_TRAIN.tsv", SERIES, archive="copy")
    with pytest.raises(DataError, match="dataset Wafer is also in"):
        read_all(root)


def test_the_fingerprint_follows_the_content(root: Path) -> None:
    before = Ctsr().fingerprint(root)
    write(root, "Wafer_TRAIN.tsv", SERIES.replace("4.0", "5.0"))
    assert Ctsr().fingerprint(root) != before


BAD_FILES = {
    "empty": ("Wafer_TRAIN.tsv", b"\n\n", "no series in it"),
    "no number": ("Wafer_TRAIN.tsv", b"1\t1\t2\n1\t1\tx\n", "value 2 of line 2 is 'x'"),
    "empty field": ("Wafer_TRAIN.tsv", b"1\t1\t\t2\n", "value 2 of line 1 is ''"),
    "decimal commas": ("Wafer_TRAIN.tsv", b"1\t1,5\t2,5\n", "value 1 of line 1 is '1,5'"),
    "truncated line": ("Wafer_TRAIN.tsv", b"1\t1\t2\n1\t1", "line 2 has 1 values, the first one 2"),
    "no label": ("Wafer_TRAIN.tsv", b"0.37\t1\t2\n", "starts with '0.37', but an integer class label"),
    "label only": ("Wafer_TRAIN.txt", b"1\n", "the series in line 1 has no value"),
    "all gaps": ("Wafer_TRAIN.tsv", b"1\t1\t1\n1\tNaN\tNaN\n", "the series in line 2 has no value"),
    "re-encoded": ("Wafer_TRAIN.tsv", SERIES.encode("utf-16"), "not utf-8 text"),
    "damaged archive": ("Wafer_TRAIN.tsv.gz", gzip.compress(SERIES.encode())[:-9], "cannot be read"),
    "several channels": ("Wafer_TRAIN.ts", b"@data\n1,2:3,4:1\n", "with several channels"),
    "unlabelled": ("Wafer_TRAIN.ts", b"@data\n1,2\n", "should read value,value"),
    "empty label": ("Wafer_TRAIN.ts", b"@data\n1,2:\n", "should read value,value"),
    "no data line": ("Wafer_TRAIN.ts", b"@univariate true\n1,2:1\n", "before the line @data"),
    "no series": ("Wafer_TRAIN.ts", b"@univariate true\n@data\n", "no series in it"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(DataError, match=message) as caught:
        read_all(tmp_path)
    assert str(path) in str(caught.value)


def test_a_class_that_came_after_the_source_was_resolved_is_refused(root: Path) -> None:
    source = Ctsr().resolved(root)
    write(root, "Wafer_TEST.tsv", "77\t1\t2\n")
    with pytest.raises(DataError, match=r"'Wafer / 77' in line 1 is new"):
        list(source.recordings(root))


def test_a_folder_without_datasets_is_missing(tmp_path: Path) -> None:
    (tmp_path / "ctsr" / "Wafer").mkdir(parents=True)
    with pytest.raises(SourceMissingError, match="Get the files from"):
        Ctsr().fingerprint(tmp_path)
    (tmp_path / "ctsr" / "Wafer" / "Beef_TRAIN.tsv").write_text(SERIES)
    with pytest.raises(SourceMissingError, match="no <Dataset>/<Dataset>_TRAIN"):
        Ctsr().fingerprint(tmp_path)


CONTENTS = (
    st.binary(max_size=80)
    | st.text("01.eE+-NaN?:,\t\n @datinf_", max_size=80).map(str.encode)
    | st.text("01.NaN?:,\t\n", max_size=80).map(lambda text: b"@data\n" + text.encode())
    | st.text("01", min_size=2, max_size=9).map(lambda text: "\t".join(text).encode())
)


@pytest.mark.hypothesis  # of the examples inside it
def test_any_content_is_series_or_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    outcomes = Outcomes()

    def read(root: Path, path: Path) -> list[NDArray[np.floating]]:
        read_all(root)
        return [series.values[-1:] for series in read_series(path)]

    @settings(max_examples=MANY)
    @given(form=st.sampled_from(["tsv", "ts", "txt"]), content=CONTENTS)
    def read_any(form: str, content: bytes) -> None:
        root = tmp_path_factory.mktemp("fuzz")
        path = write(root, f"Wafer_TRAIN.{form}", content)
        outcomes.note(lambda: read(root, path))

    read_any()
    outcomes.check_both()


def test_the_real_archive_has_the_classes_and_series_of_the_notes(real_data: Path, private_cache: Path) -> None:
    built = build(Ctsr(), real_data, private_cache)
    assert len(built.info.faults) == 717
    assert len({name.split(" / ")[0] for name in built.info.faults}) == 108
    per_class = np.bincount(built.windows.labels)[1:]
    assert (per_class.sum(), per_class.min(), per_class.max()) == (13_491, 12, 20)


def test_a_real_task_has_the_sizes_of_the_paper(real_data: Path, private_cache: Path) -> None:
    task = load_task(Ctsr(), seed=0, root=real_data, cache=private_cache)
    assert [len(task.corpus_at(rho)) for rho in (0, 10, 20)] == [1000, 1111, 1250]
    assert len(task.queries) == 100
    per_class = np.bincount(task.corpus_at(0).labels)
    per_class = per_class[per_class > 0]
    assert 90 <= len(per_class) <= 100
    assert per_class.min() >= 10
    assert per_class.max() <= 12


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(check: SourceCheck, real_data: Path) -> None:
    check(Ctsr().resolved(real_data), real_data)
