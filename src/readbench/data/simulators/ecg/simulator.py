"""Simulated electrocardiograms: extra, fused and paced beats among normal ones, in two leads, patient by patient.

Records are cut as is usual for the MIT-BIH arrhythmia database: one segment of 256 samples around each annotated beat,
labelled by that beat. A run is 12 such segments of one patient in the order of time; between two of them lies at least
one beat that is not kept. Each patient gives two runs (excerpts of his record) and is one group. The hearts are in
`patients`, their beats in `beats`; here are the sources of noise and the layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.base import RunBatch, Simulator, quantise
from readbench.data.simulators.ecg.beats import FS, SEGMENT, make_beats, seen
from readbench.data.simulators.ecg.patients import NORMAL, PAC, PACED, Array, Patients, draw_patients
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.registry import SOURCES

SEGMENTS = 12
"""Segments of one run."""
EXCERPTS = 2
"""Runs of one patient."""
BEATS_OF = np.array(
    [
        (0.84, 0.08, 0.08, 0.0, 0.0),  # healthy but for single extra beats
        (0.35, 0.6, 0.05, 0.0, 0.0),  # frequent ventricular extra beats
        (0.4, 0.05, 0.55, 0.0, 0.0),  # frequent atrial extra beats
        (0.3, 0.45, 0.0, 0.25, 0.0),  # ventricular extra beats late enough to meet the next normal beat
        (0.1, 0.12, 0.0, 0.0, 0.78),  # pacemaker
    ]
)
"""(5, 5) share of each class of beats (columns) among the segments of each kind of patient (rows); ours."""
RESOLUTION = np.array([0.005, 0.005])
"""Step of both leads in mV: 200 units per mV, as in the MIT-BIH records."""
RANGE = 5.12
"""Greatest reading in mV, as there."""


@SOURCES.register("sim_ecg")
@dataclass(frozen=True)
class Ecg(Simulator):
    """Heart beats of many patients.

    `difficulty` scales noise, wander and the error of beat marks (0.4 + 0.6 d) and how much patients differ from the
    textbook (0.5 + 0.5 d).

    >>> run = next(Ecg(runs=1).recordings())
    >>> run.values.shape, run.group
    ((2, 3072), 'patient-000')
    """

    runs: int = 320
    seed: int = 2003

    MIX: ClassVar[tuple[int, ...]] = (4, 4, 4, 3, 5)
    """Kinds of patients in each block of 20."""
    ASSETS: ClassVar[int] = 160
    """Patients at the default size; more runs bring more patients."""
    RUN_LENGTH: ClassVar[int] = SEGMENT * SEGMENTS
    STEP: ClassVar[float] = 1 / 360
    INFO: ClassVar[SourceInfo] = SourceInfo(
        name="sim_ecg",
        title="Heart beats (simulated)",
        domain="physiological and general signals",
        description=(
            "Two-lead electrocardiograms of many patients at 360 Hz, cut into one segment of 256 samples around each "
            "beat. Hearts differ in the direction and timing of every wave, in rate and its variability, and in what "
            "the electrodes see of them; breathing, mains and muscles disturb the signal. Beats are normal, premature "
            "ventricular, premature atrial, fusions of a ventricular with a normal beat, or paced. One patient has "
            "several kinds of beats, and no patient is on both sides of the split."
        ),
        channels=(
            Channel("MLII", "mV", "Modified limb lead II"),
            Channel("V", "mV", "Chest lead: V1, in some patients V2, V4 or V5"),
        ),
        faults=("premature ventricular beat", "premature atrial beat", "fusion beat", "paced beat"),
        protocol=Protocol(length=SEGMENT, label_rule="majority"),
        split_unit="patient",
        asset_unit="patient",
        licence="Apache-2.0",
        citation=(
            "McSharry, Clifford, Tarassenko and Smith, IEEE Trans. Biomed. Eng. 50 (2003) 289-294; Sameni, Clifford, "
            "Jutten and Shamsollahi, EURASIP J. Adv. Signal Process. (2007) 043407; Clifford, Nemati and Sameni, "
            "Physiol. Meas. 31 (2010) 595-609. Cut after Moody and Mark, IEEE Eng. Med. Biol. Mag. 20 (2001) 45-50."
        ),
        size="generated, about 8 MB",
        simulated=True,
        verified=True,
        redistributable=True,
    )

    def faults_of(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Kind of each run's patient, the same in all his runs."""
        return super().faults_of(index // EXCERPTS)

    def assets_of(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Number of each run's patient."""
        return (index // EXCERPTS).astype(np.int32)

    def group_of(self, run: int) -> str:
        """The patient."""
        return f"patient-{run // EXCERPTS:03d}"

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, 2, 3072) and labels (B, 3072)."""
        rng = batch.rng
        patients = draw_patients(self.seed, batch.asset, batch.fault, self.difficulty)
        spread = 0.4 + 0.6 * self.difficulty
        kept = 1 + 2 * np.arange(SEGMENTS)
        kind = _kinds(batch.fault, kept, rng)
        rate = np.clip(patients.rate * np.exp(0.08 * rng.standard_normal(len(batch))), 48, 115)
        beats = make_beats(kind, patients, np.where(batch.fault == PACED, patients.rate, rate), rng)
        labels = kind[:, kept].astype(np.int32)
        # Wide beats have no sharp peak to mark.
        blur = np.where(np.isin(labels, (NORMAL, PAC)), 0.006, 0.014)
        jitter = spread * blur * rng.standard_normal(labels.shape)
        signal = seen(beats, patients, kept, jitter) + spread * disturbance(beats.time[:, kept], patients, rng)
        readings = np.clip(signal, -RANGE, RANGE).reshape(len(batch), 2, self.RUN_LENGTH)
        return quantise(readings, RESOLUTION), np.repeat(labels, SEGMENT, axis=1)


def _kinds(patient: NDArray[np.int32], kept: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Classes (B, K) of all beats: the kept ones drawn from the patient's mix, between them his usual rhythm."""
    drawn = rng.random((len(patient), len(kept), 1)) > np.cumsum(BEATS_OF, axis=1)[patient][:, None, :-1]
    kind = np.repeat(np.where(patient == PACED, PACED, NORMAL)[:, None], 2 * len(kept) + 1, axis=1)
    kind[:, kept] = drawn.sum(axis=2)
    return kind.astype(np.int64)


def disturbance(time: Array, patients: Patients, rng: np.random.Generator) -> Array:
    """Noise (B, 2, segments, SEGMENT) in mV at difficulty 1.

    Levels are ours, of the order of those in the MIT-BIH records; only the offset is about twice as wide, chosen so
    that the plain distance between segments does not solve the task.

    Baseline wander follows breathing and slow drifts of the electrodes, mains hum at 60 Hz runs through the whole
    excerpt, muscle noise comes and goes, and every electrode has an offset.

    Args:
        time: (B, segments) middle of each segment in s.
        patients: of the B records.
        rng: of all noise.
    """
    count, segments = time.shape
    clock = (time[:, :, None] + (np.arange(SEGMENT) - SEGMENT // 2) / FS)[:, None]
    one_per_lead = (count, 2, 1, 1)
    breathing = patients.breathing[:, None, None, None]
    wander = np.zeros((count, 2, segments, SEGMENT))
    for frequency, level in ((breathing, 0.08), (2 * breathing, 0.03), (0.05, 0.2), (0.13, 0.12)):
        strength = level * np.abs(rng.standard_normal(one_per_lead))
        wander += strength * np.sin(2 * np.pi * frequency * clock + rng.uniform(0, 2 * np.pi, size=one_per_lead))
    offset = 0.45 * rng.standard_normal(one_per_lead)
    phase = rng.uniform(0, 2 * np.pi, size=(count, 1, 1, 1))
    hum = rng.uniform(0.002, 0.02, size=one_per_lead) * np.sin(2 * np.pi * 60.0 * clock + phase)
    muscle = rng.uniform(0.004, 0.02, size=one_per_lead) * np.exp(0.6 * rng.standard_normal((count, 1, segments, 1)))
    return wander + offset + hum + muscle * rng.standard_normal(wander.shape)
