"""MIT-BIH records are read as PhysioNet writes them, and nothing damaged passes."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import build, load_task, windows_of
from readbench.benchmark.sources import MitBih
from readbench.benchmark.sources._mit_bih import (
    AAMI,
    BEATS,
    BEATS_BEFORE,
    HALF,
    RENEWED,
    beat_windows,
    normal_beats_before,
    read_annotations,
    read_header,
    read_signals,
)
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

STEPS = 3000
CODES = {symbol: code for code, symbol in BEATS.items()}
RHYTHM, NOISE, SKIP, AUX, NUM = 28, 14, 59, 63, 60
WFDB_WARNS = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of its pandas
MARKS = [(20, RHYTHM), (200, CODES["N"]), (560, CODES["V"]), (900, NOISE), (2400, CODES["/"]), (2950, CODES["A"])]


def signals() -> NDArray[np.int16]:
    """ADC values (2, STEPS), the extremes of 12 bits among them."""
    adc = np.random.default_rng(0).integers(-2047, 2048, (2, STEPS)).astype(np.int16)
    adc[:, :4] = [[2047, -2047, 0, -1], [-1, 1, 1024, -2048]]
    return adc


def pack_212(adc: NDArray[np.int16]) -> bytes:
    """Sample by sample, as signal(5) says it."""
    content = bytearray()
    for one, two in adc.T.tolist():
        content += bytes([one & 0xFF, (one >> 8 & 0x0F) | (two >> 8 & 0x0F) << 4, two & 0xFF])
    return bytes(content)


def header(adc: NDArray[np.int16], record: str = "100", gain: str = "200", frequency: str = "360") -> str:
    lines = [f"{record} 2 {frequency} {adc.shape[1]}"]
    for lead, raw in zip(("MLII", "V1"), adc, strict=True):
        checksum = (int(raw.astype(int).sum()) + 2**15) % 2**16 - 2**15
        lines.append(f"{record}.dat 212 {gain} 11 1024 {raw[0]} {checksum} 0 {lead}")
    return "\r\n".join([*lines, "# 69 M 1085 1629 x1", ""])


def annotation_file(marks: list[tuple[int, int]]) -> bytes:
    """Words of annot(5): a long way is a SKIP, a rhythm carries text, a beat sometimes a number."""
    words: list[int] = []
    for (last, _), (sample, code) in pairwise([(0, 0), *marks]):
        step = sample - last
        if not 0 <= step < 1024:
            words += [SKIP << 10, step >> 16 & 0xFFFF, step & 0xFFFF]
            step = 0
        words.append(code << 10 | step)
        if code == RHYTHM:
            words += [AUX << 10 | 3, ord("(") | ord("N") << 8, 0]
        if code == NOISE:
            words.append(NUM << 10 | 7)
    return np.array([*words, 0], "<u2").tobytes()


def write_record(folder: Path, record: str = "100", marks: list[tuple[int, int]] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    adc = signals()
    (folder / f"{record}.hea").write_bytes(header(adc, record).encode())
    (folder / f"{record}.dat").write_bytes(pack_212(adc))
    (folder / f"{record}.atr").write_bytes(annotation_file(MARKS if marks is None else marks))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_record(tmp_path / "mit_bih")
    return tmp_path


def read_all(root: Path) -> list[NDArray[np.float32]]:
    """The values of every window."""
    sets = [windows_of(r, MitBih.info.protocol, MitBih.info.classes) for r in MitBih().recordings(root)]
    return [window.values for windows in sets if windows is not None for window in windows]


def test_signals_are_in_millivolt_and_unread_samples_are_gaps(root: Path) -> None:
    (recording,) = MitBih().recordings(root)
    expected = (signals() - 1024.0) / 200
    expected[1, 3] = np.nan
    np.testing.assert_allclose(recording.values, expected, rtol=1e-6)


def test_a_window_lies_around_each_beat_that_leaves_room(root: Path) -> None:
    (recording,) = MitBih().recordings(root)
    assert recording.cuts is not None
    assert recording.cuts.starts.tolist() == [200 - HALF, 560 - HALF, 2400 - HALF]  # 2950 is too near the end
    assert recording.cuts.labels.tolist() == [0, 2, 4]
    windows = windows_of(recording, MitBih.info.protocol, MitBih.info.classes)
    assert windows is not None
    assert windows.lengths.tolist() == [256] * 3
    np.testing.assert_array_equal(windows[1].values, recording.values[:, 432:688])


def test_each_step_carries_the_class_of_the_nearest_beat(root: Path) -> None:
    (recording,) = MitBih().recordings(root)
    assert [recording.labels[step] for step in (0, 379, 381, 1479, 1481, 2674, 2676)] == [0, 0, 2, 2, 4, 4, 1]


def naive_label(beats: list[int], classes: list[int], start: int) -> int:
    inside = [c for b, c in zip(beats, classes, strict=True) if start <= b < start + 2 * HALF]
    return next((c for c in set(inside) if 2 * inside.count(c) > len(inside)), 0)


@given(st.dictionaries(st.integers(0, 1999), st.integers(0, 4), min_size=1, max_size=60))
def test_window_labels_are_the_strict_majority_of_the_beats_inside(marks: dict[int, int]) -> None:
    beats = sorted(marks)
    classes = [marks[b] for b in beats]
    cuts = beat_windows(np.array(beats), np.array(classes, np.int32), 2000)
    assert cuts.starts.tolist() == [b - HALF for b in beats if b >= HALF and b + HALF <= 2000]
    assert cuts.labels.tolist() == [naive_label(beats, classes, start) for start in cuts.starts.tolist()]


def test_beats_are_grouped_as_the_standard_does() -> None:
    assert sorted("".join(AAMI)) == sorted(BEATS.values())
    assert (BEATS[1], BEATS[5], BEATS[6], BEATS[8], BEATS[12], BEATS[13]) == ("N", "V", "F", "A", "/", "Q")


def test_two_records_of_one_patient_are_one_group(tmp_path: Path) -> None:
    for record in ("200", "201", "202"):
        write_record(tmp_path / "mit_bih", record)
    groups = [(r.id, r.group, r.asset) for r in MitBih().recordings(tmp_path)]
    assert groups == [
        ("200", "patient-200", "patient-200"),
        ("201", "patient-201", "patient-201"),
        ("202", "patient-201", "patient-201"),
    ]


def test_gzipped_files_in_a_folder_below_are_read_the_same(root: Path, tmp_path: Path) -> None:
    (plain,) = MitBih().recordings(root)
    below = tmp_path / "other" / "mit_bih" / "mit-bih-arrhythmia-database-1.0.0"
    below.mkdir(parents=True)
    for file in (root / "mit_bih").iterdir():
        (below / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    (packed,) = MitBih().recordings(tmp_path / "other")
    np.testing.assert_array_equal(plain.values, packed.values)
    np.testing.assert_array_equal(plain.labels, packed.labels)


def test_the_fingerprint_follows_signals_and_annotations(root: Path) -> None:
    before = MitBih().fingerprint(root)
    (root / "mit_bih" / "100.atr").write_bytes(annotation_file(MARKS[:-1]))
    assert MitBih().fingerprint(root) != before


def test_backward_skips_are_read_and_refused_only_when_beats_go_back(root: Path) -> None:
    marks = [(500, CODES["N"]), (300, NOISE), (800, CODES["N"])]
    path = root / "mit_bih" / "100.atr"
    path.write_bytes(annotation_file(marks))
    assert read_annotations(path).samples.tolist() == [500, 300, 800]
    read_all(root)
    path.write_bytes(annotation_file([(500, CODES["N"]), (300, CODES["V"])]))
    with pytest.raises(DataError, match=r"100\.atr: beat 1 is not after the one before"):
        read_all(root)


BAD_FILES = {
    "empty header": ("100.hea", b"", "the header is empty"),
    "one lead": ("100.hea", header(signals()[:1].repeat(2, 0)).replace("\r\n100.dat", "\r\n#", 1).encode(), "1 signal"),
    "other frequency": ("100.hea", header(signals(), frequency="250").encode(), "250 Hz"),
    "other format": ("100.hea", header(signals()).replace(" 212 ", " 16 ").encode(), "not a signal of format 212"),
    "other unit": ("100.hea", header(signals(), gain="200/uV").encode(), "not a signal of format 212 in mV"),
    "no gain": ("100.hea", header(signals(), gain="x").encode(), "expected 'file format gain"),
    "no samples": ("100.hea", header(signals()).replace("100 2 360 3000", "100 2 360").encode(), "in the first line"),
    "three leads": ("100.hea", header(signals()).replace("100 2", "100 3").encode(), "is no record of 2 leads"),
    "text in UTF-16": ("100.hea", header(signals()).encode("utf-16"), "not utf-8 text"),
    "truncated signals": ("100.dat", pack_212(signals())[:-3], "8997 bytes, but the header promises 3000 samples"),
    "altered signals": ("100.dat", pack_212(signals()[:, ::-1] + np.int16(1)), "lead MLII does not match the checksum"),
    "truncated annotations": ("100.atr", annotation_file(MARKS)[:-2], "no end mark"),
    "half a word": ("100.atr", annotation_file(MARKS)[:-1], "no whole number of 16-bit words"),
    "text cut off": ("100.atr", annotation_file(MARKS[:1])[:-4], "the data behind word 1 are cut off"),
    "undefined code": ("100.atr", annotation_file([(5, 55)]), "undefined code 55"),
    "beat of another database": (
        "100.atr",
        annotation_file([(5, 41)]),
        "a beat 'r', which this database does not have",
    ),
    "no beats": ("100.atr", annotation_file([(5, NOISE)]), "no beat is annotated"),
    "beat after the end": ("100.atr", annotation_file([(500, 1), (STEPS, 1)]), "outside the 3000 of the record"),
    "two beats at once": ("100.atr", annotation_file([(500, 1), (500, 5)]), "not after the one before"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused_by_name(root: Path, name: str, content: bytes, message: str) -> None:
    (root / "mit_bih" / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_all(root)
    assert name in str(caught.value)


def test_missing_parts_are_named(root: Path) -> None:
    (root / "mit_bih" / "RECORDS").write_text("100\n101\n")
    with pytest.raises(SourceMissingError, match="records 101 are listed but not there"):
        read_all(root)
    (root / "mit_bih" / "RECORDS").unlink()
    (root / "mit_bih" / "100.atr").unlink()
    with pytest.raises(SourceMissingError, match=r"100\.hea: there is no 100\.atr beside it"):
        MitBih().fingerprint(root)


def test_a_record_that_is_there_twice_is_refused(root: Path) -> None:
    write_record(root / "mit_bih" / "copy")
    with pytest.raises(DataError, match="the same record is in"):
        read_all(root)


def test_a_gain_of_zero_and_a_baseline_of_its_own_are_understood(tmp_path: Path) -> None:
    adc = signals()
    (tmp_path / "100.hea").write_text(header(adc, gain="0(100)/mV"))
    (tmp_path / "100.dat").write_bytes(pack_212(adc))
    values = read_signals(tmp_path / "100.dat", read_header(tmp_path / "100.hea"))
    assert values[0, 0] == pytest.approx((2047 - 100) / 200)


@pytest.mark.hypothesis  # of the examples inside it
def test_damage_of_any_kind_is_either_harmless_or_refused(root: Path) -> None:
    valid = {path: path.read_bytes() for path in (root / "mit_bih").iterdir()}
    assert len(read_all(root)) == 3
    outcomes = Outcomes()

    @settings(max_examples=MANY)
    @given(path=st.sampled_from(sorted(valid)), damage=damages(10_000))
    def read_damaged(path: Path, damage: Damage) -> None:
        path.write_bytes(damaged(valid[path], damage))
        outcomes.note(lambda: read_all(root))
        path.write_bytes(valid[path])

    read_damaged()
    outcomes.check_both()


@pytest.mark.hypothesis  # of the examples inside it
def test_random_bytes_are_annotations_or_refused(tmp_path: Path) -> None:
    path, valid, outcomes = tmp_path / "100.atr", annotation_file(MARKS), Outcomes()

    def read() -> list[NDArray[np.float64]]:
        marks = read_annotations(path)
        assert len(marks.samples) == len(marks.codes)
        return [marks.samples.astype(float)]

    @settings(max_examples=MANY)
    @given(st.binary(max_size=200) | damages(len(valid)).map(lambda damage: damaged(valid, damage)))
    def read_random(content: bytes) -> None:
        path.write_bytes(content)
        outcomes.note(read)

    read_random()
    outcomes.check_both()


@WFDB_WARNS
def test_the_reader_agrees_with_wfdb(tmp_path: Path) -> None:
    wfdb = pytest.importorskip("wfdb")
    write_record(tmp_path)
    record = wfdb.rdrecord(str(tmp_path / "100"))
    values = read_signals(tmp_path / "100.dat", read_header(tmp_path / "100.hea"))
    np.testing.assert_allclose(values, record.p_signal.T, rtol=1e-6)
    marks, expected = read_annotations(tmp_path / "100.atr"), wfdb.rdann(str(tmp_path / "100"), "atr")
    assert marks.samples.tolist() == expected.sample.tolist() == [sample for sample, _ in MARKS]
    assert marks.codes.tolist() == [code for _, code in MARKS]


def test_real_windows_per_class_are_those_of_the_notes(real_data: Path) -> None:
    labels = [r.cuts.labels for r in MitBih().recordings(real_data) if r.cuts is not None]
    assert len(labels) == 18
    assert np.bincount(np.concatenate(labels)).tolist() == [27_377, 2_552, 4_561, 772, 8_027]


@WFDB_WARNS
def test_real_records_agree_with_wfdb(real_data: Path) -> None:
    wfdb = pytest.importorskip("wfdb")
    for record in ("102", "208"):
        stem = real_data / "mit_bih" / record
        marks, expected = read_annotations(stem.with_suffix(".atr")), wfdb.rdann(str(stem), "atr")
        assert marks.samples.tolist() == expected.sample.tolist()
        beats = [BEATS[code] for code in marks.codes.tolist() if code in BEATS]
        assert beats == [symbol for symbol in expected.symbol if symbol in CODES]
        values = read_signals(stem.with_suffix(".dat"), read_header(stem.with_suffix(".hea")))
        np.testing.assert_allclose(values, wfdb.rdrecord(str(stem)).p_signal.T, atol=1e-6)


def test_a_real_task_has_the_sizes_and_classes_of_the_paper(real_data: Path, private_cache: Path) -> None:
    task = load_task(MitBih(), seed=0, root=real_data, cache=private_cache)
    assert [len(task.corpus_at(rho)) for rho in (0, 10, 20)] == [1000, 1111, 1250]
    assert len(task.queries) == 100
    assert set(task.corpus_at(0).labels.tolist()) == set(task.queries.labels.tolist()) == {1, 2, 3, 4}
    assert task.notes == ()


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(check: SourceCheck, real_data: Path) -> None:
    check(MitBih(), real_data)


def naive_before(start: int, beats: list[int], classes: list[int]) -> list[int]:
    known = [b for b, c in zip(beats, classes, strict=True) if c == 0 and b >= HALF and b + HALF <= start]
    count = len(known) if len(known) < RENEWED else len(known) // RENEWED * RENEWED
    return known[max(0, count - BEATS_BEFORE) : count] if count > 1 else []


@given(st.dictionaries(st.integers(0, 19_999), st.sampled_from([0, 0, 0, 2]), min_size=1, max_size=120))
def test_the_time_before_are_normal_beats_that_do_not_reach_into_the_window(marks: dict[int, int]) -> None:
    beats = sorted(marks)
    classes = [marks[b] for b in beats]
    starts = np.array([b - HALF for b in beats])
    found = normal_beats_before(starts, np.array(beats), np.array(classes, np.int32), BEATS_BEFORE)
    assert [own.tolist() for own in found] == [naive_before(start, beats, classes) for start in starts.tolist()]


def test_windows_bring_the_preceding_normal_beats_end_to_end(tmp_path: Path) -> None:
    write_record(tmp_path / "mit_bih", marks=[(300 * k, CODES["N"]) for k in range(1, 8)] + [(2350, CODES["V"])])
    (recording,) = MitBih().recordings(tmp_path)
    windows = windows_of(recording, MitBih.info.protocol, MitBih.info.classes)
    assert windows is not None
    last = windows[-1]
    assert last.label == 2
    assert last.before is not None
    expected = [recording.values[:, 300 * k - HALF : 300 * k + HALF] for k in range(1, 7)]  # 2100 reaches into it
    np.testing.assert_array_equal(last.before, np.concatenate(expected, axis=1))
    assert windows[0].before is None
    assert windows[1].before is None  # one normal beat tells nothing of what is usual
    assert last.facts == {"rr_before": pytest.approx(250 / 300)}
    assert windows[3].facts == {"rr_before": 1.0, "rr_after": 1.0}
    assert last.rate == 360.0


def test_the_rule_for_the_time_before_is_a_parameter(root: Path) -> None:
    for rule, expected in (("preceding", [72, 256, 256]), ("none", [None] * 3)):
        source = MitBih(before=rule, before_steps=256)  # type: ignore[arg-type]
        (recording,) = source.recordings(root)
        windows = windows_of(recording, source.info.protocol, source.info.classes)
        assert windows is not None
        assert [None if w.before is None else w.before.shape[1] for w in windows] == expected


def test_real_beats_share_what_is_before_them(real_data: Path, private_cache: Path) -> None:
    context = build("mit_bih", real_data, private_cache).windows.context
    assert context is not None
    assert context.has_before.mean() > 0.9
    assert len(context.befores) < len(context) / 10
    ratios = context.facts[np.isfinite(context.facts).all(axis=1)]
    assert np.median(ratios, axis=0) == pytest.approx([1.0, 1.0], abs=0.02)
