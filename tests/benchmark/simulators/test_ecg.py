"""The simulated hearts beat as their kinds of beats are defined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording
from readbench.benchmark.simulators import Ecg
from readbench.benchmark.simulators._ecg import (
    EXCERPTS,
    FS,
    FUSION,
    LATE,
    NORMAL,
    PAC,
    PACED,
    PVC,
    SEGMENT,
    SEGMENTS,
    SLOW,
    Beats,
    Patients,
    draw_patients,
    make_beats,
    record_leads,
    tachogram,
)

COUNT = 60
MIDDLE = SEGMENT // 2
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def patients() -> Patients:
    """Patients with a sinus rhythm that does not vary, so that intervals can be compared."""
    numbers = np.arange(COUNT, dtype=np.int32)
    drawn = draw_patients(7, numbers, np.zeros(COUNT, dtype=np.int32), difficulty=0.5)
    return replace(drawn, variability=np.zeros(COUNT), multiform=np.zeros(COUNT))


def beats_with(patients: Patients, kind: int) -> Beats:
    """Seven beats of each patient of which the fourth is of that kind; the random draws do not depend on it."""
    kinds = np.full((COUNT, 7), NORMAL, dtype=np.int64)
    kinds[:, 3] = kind
    return make_beats(kinds, patients, patients.rate, np.random.default_rng(1))


def intervals(patients: Patients, kind: int) -> tuple[Floats, Floats]:
    """Interval before and after that beat, as share of the usual one."""
    share = np.diff(beats_with(patients, kind).time, axis=1) * patients.rate[:, None] / 60
    return share[:, 2], share[:, 3]


def segment(patients: Patients, kind: int) -> Floats:
    """What the leads see around that beat, (COUNT, 2, SEGMENT), without noise."""
    return record_leads(beats_with(patients, kind), patients, np.array([3]), np.zeros((COUNT, 1)))[:, :, 0]


def around(milliseconds: float) -> slice:
    """Samples within that time of the fiducial point."""
    reach = round(milliseconds * FS / 1000)
    return slice(MIDDLE - reach, MIDDLE + reach + 1)


def width_of_qrs(signal: Floats) -> Floats:
    """Time in ms that the QRS stays above a third of its peak, over both leads together."""
    height = np.sqrt((signal[:, :, around(130)] ** 2).sum(axis=1))
    above: Floats = (height > height.max(axis=1, keepdims=True) / 3).sum(axis=1) * 1000 / FS
    return above


def test_a_run_is_beat_centred_segments_with_one_label_each() -> None:
    runs = list(Ecg(runs=8).recordings())
    assert {r.values.shape for r in runs} == {(2, SEGMENTS * SEGMENT)}
    for run in runs:
        labels = run.labels.reshape(SEGMENTS, SEGMENT)
        assert (labels == labels[:, :1]).all()


def test_patients_are_groups_with_several_classes_and_go_on_without_end() -> None:
    runs = list(Ecg(runs=40).recordings())
    assert [r.group for r in runs] == [f"patient-{i // EXCERPTS:03d}" for i in range(40)]
    assert [r.asset for r in runs] == [r.group for r in runs]
    by_patient: dict[str, set[int]] = {}
    for run in runs:
        by_patient.setdefault(run.group, set()).update(run.labels.tolist())
    assert np.mean([len(classes) > 1 for classes in by_patient.values()]) > 0.8
    assert Ecg().group_of(10_000) == "patient-5000"


def test_the_share_of_classes_is_that_of_arrhythmia_records() -> None:
    labels = np.concatenate([r.labels[::SEGMENT] for r in Ecg().recordings()])
    counts = np.bincount(labels, minlength=5)
    assert 0.3 < counts[NORMAL] / counts.sum() < 0.5
    assert 5 < counts[1:].max() / counts[1:].min() < 10
    assert counts[1:].sum() > 1300


def test_only_paced_patients_have_paced_beats() -> None:
    source = Ecg(runs=60)
    kinds = source.faults_of(np.arange(60))
    paced = np.array([(run.labels == PACED).any() for run in source.recordings()])
    assert np.array_equal(paced, kinds == PACED)


def test_same_seed_same_bytes() -> None:
    first, second = (list(Ecg(runs=3).recordings()) for _ in range(2))
    assert [r.values.tobytes() for r in first] == [r.values.tobytes() for r in second]


def test_another_seed_gives_other_patients_of_the_same_kind() -> None:
    one, other = (np.stack([r.values for r in Ecg(runs=80, seed=s).recordings()]) for s in (1, 2))
    assert not np.array_equal(one, other)
    ratio = one.std(axis=(0, 2)) / other.std(axis=(0, 2))
    assert ((ratio > 0.7) & (ratio < 1.4)).all()


def test_more_runs_begin_with_the_same_runs() -> None:
    few, many = list(Ecg(runs=10).recordings()), list(Ecg(runs=70).recordings())
    assert [_content(r) for r in few] == [_content(r) for r in many[:10]]


def _content(run: Recording) -> tuple[str, str, bytes, bytes]:
    return run.id, run.group, run.values.tobytes(), run.labels.tobytes()


@pytest.mark.parametrize("difficulty", [0.0, 1.0, 2.0])
def test_every_difficulty_gives_finite_readings_in_range(difficulty: float) -> None:
    values = np.stack([r.values for r in Ecg(runs=64, difficulty=difficulty).recordings()])
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 5.12
    assert (values.std(axis=2) > 0.03).all()


def test_heart_rate_varies_slowly_and_with_breathing(patients: Patients) -> None:
    varying = replace(patients, variability=np.full(COUNT, 0.05), breathing=np.full(COUNT, 0.25))
    kinds = np.zeros((COUNT, 600), dtype=np.int64)
    rr = tachogram(kinds, varying, np.full(COUNT, 60.0), np.random.default_rng(0))
    power = (np.abs(np.fft.rfft(rr - 1, axis=1)) ** 2).mean(axis=0)
    frequency = np.fft.rfftfreq(600)
    slow, breathing = (power[np.abs(frequency - f) < 0.05].sum() for f in (SLOW, 0.25))
    assert slow + breathing > 0.95 * power.sum()
    assert 0.4 < slow / breathing < 0.6
    assert rr.std() == pytest.approx(0.05, rel=0.1)


def test_a_ventricular_extra_beat_comes_early_and_its_pause_makes_up_for_it(patients: Patients) -> None:
    before, after = intervals(patients, PVC)
    assert (before < 0.9).all()
    np.testing.assert_allclose(before + after, 2.0, atol=1e-9)


def test_a_ventricular_extra_beat_is_wide(patients: Patients) -> None:
    assert np.median(width_of_qrs(segment(patients, PVC)) / width_of_qrs(segment(patients, NORMAL))) > 1.8


def test_an_atrial_extra_beat_comes_early_and_resets_the_sinus_node(patients: Patients) -> None:
    before, after = intervals(patients, PAC)
    assert (before < 0.95).all()
    assert (before + after < 2.0).all()
    assert (after >= 1.0).all()


def test_an_atrial_extra_beat_is_conducted_like_a_normal_one_but_for_its_p_wave(patients: Patients) -> None:
    normal, atrial = segment(patients, NORMAL), segment(patients, PAC)
    usual = beats_with(patients, PAC).gain[:, 3, LATE] == 0
    assert _likeness(normal[usual], atrial[usual], around(40)) > 0.95
    assert _likeness(normal[usual], atrial[usual], slice(MIDDLE - 110, MIDDLE - 35)) < 0.5


def _likeness(one: Floats, other: Floats, samples: slice) -> float:
    """Median over patients of the correlation within those samples."""
    pairs = zip(one[:, :, samples], other[:, :, samples], strict=True)
    return float(np.median([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs]))


def test_a_fusion_beat_is_on_time_and_between_normal_and_ventricular(patients: Patients) -> None:
    before, _ = intervals(patients, FUSION)
    assert ((before > 0.9) & (before <= 1.0)).all()
    fused, normal, ventricular = (segment(patients, kind)[:, :, around(60)] for kind in (FUSION, NORMAL, PVC))
    shares = []
    for f, n, v in zip(fused, normal, ventricular, strict=True):
        share, *_ = np.linalg.lstsq(np.stack([n.ravel(), v.ravel()], axis=1), f.ravel())
        shares.append(share)
    of_normal, of_ventricular = np.median(shares, axis=0)
    assert 0.3 < of_normal < 0.7
    assert 0.3 < of_ventricular < 0.7


def test_a_pacemaker_keeps_time_and_marks_its_beats_with_a_spike(patients: Patients) -> None:
    varying = replace(patients, variability=np.full(COUNT, 0.05))
    paced = make_beats(np.full((COUNT, 40), PACED), varying, varying.rate, np.random.default_rng(2))
    own = make_beats(np.full((COUNT, 40), NORMAL), varying, varying.rate, np.random.default_rng(2))
    assert (np.diff(paced.time, axis=1).std(axis=1) < 0.2 * np.diff(own.time, axis=1).std(axis=1)).all()
    spike = slice(MIDDLE - 26, MIDDLE - 10)
    sharp = [
        np.abs(np.diff(segment(patients, kind)[:, :, spike], n=2, axis=2)).max(axis=(1, 2)) for kind in (PACED, PVC)
    ]
    assert np.median(sharp[0] / sharp[1]) > 5
