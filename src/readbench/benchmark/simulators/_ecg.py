"""Simulated electrocardiograms: extra, fused and paced beats among normal ones, in two leads, patient by patient.

Records are cut as is usual for the MIT-BIH arrhythmia database: one segment of 256 samples around each annotated beat,
labelled by that beat. A run is 12 such segments of one patient in the order of time; between two of them lies at least
one beat that is not kept. Each patient gives two runs (excerpts of his record) and is one group.

A heart beat is a sum of waves. Each wave is a Gaussian in time that carries a dipole along the axes of Frank: x to the
left, y to the feet, z to the back. A beat of any kind is a choice among the same list of waves: those of conducted
beats, of an ectopic atrial focus, of an ectopic ventricular focus and of a pacemaker (Clifford et al. 2010). The model
is that of McSharry et al. 2003 in the phase form of Sameni et al. 2007: instead of integrating the trajectory, each
beat adds its waves as Gaussians around its own time, so any stretch of the record has a closed form.

In reading order: the patients (each heart's dipole, the leads it is seen through, its rhythm and its extra beats); the
beats (which waves each kind has, when it comes, what the leads see of it); the source with its layout and noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import SourceInfo, read_info
from readbench.benchmark.simulators._base import RunBatch, Simulator, quantise
from readbench.engine.registry import SOURCES

Array = NDArray[np.float64]

NORMAL, PVC, PAC, FUSION, PACED = range(5)
"""Class indices of beats, and of the kinds of patients in which such beats prevail."""

P, Q, R, S, T1, T2, P_ECTOPIC, LATE, E1, E2, E_T, SPIKE_A, SPIKE_V, C1, C2, C_T = range(16)
"""Waves: of a conducted beat; P of an ectopic focus and late force of a delayed branch; two QRS halves and T of a
ventricular focus; atrial and ventricular spike, two QRS halves and T of a captured beat."""
WAVES = 16

CENTRE = np.radians([-70, -15, 0, 15, 85, 108, -66, 34, -6, 20, 118, 0, 0, -2, 28, 126])
"""Centre of each wave in the phase of the beat; P to S as in McSharry et al. 2003, whose T at 100 degrees is two waves
here for its asymmetry (Clifford and Villarroel 2006); the rest ours. Spikes have delays in seconds instead."""
WIDTH = np.array([0.25, 0.1, 0.1, 0.1, 0.45, 0.25, 0.22, 0.17, 0.2, 0.26, 0.5, 0.0, 0.0, 0.18, 0.27, 0.5])
"""Standard deviation of each wave in radians; conducted waves as in McSharry et al. 2003, ventricular ones twice as
wide, so that their QRS lasts 120 to 200 ms."""
DIPOLE = np.array(
    [
        (0.05, 0.13, -0.02),  # P: left and down
        (-0.14, -0.07, -0.3),  # Q: the septum first, to the right and the front
        (1.0, 1.15, 0.65),  # R: the large left ventricle, left, down and back
        (-0.18, -0.3, 0.3),  # S: the base last, up and back
        (0.17, 0.2, -0.1),  # T: in the direction of R, but to the front
        (0.1, 0.13, -0.06),
    ]
)
"""(6, 3) dipole in mV of the conducted waves: an upright lead II and an rS in V1, of textbook size (ours)."""
FOCI = np.array(
    [
        (0.5, 1.0, 0.5),  # outflow tract of the right ventricle: down and left
        (0.7, -0.8, 0.45),  # apex of the right ventricle: up and left; also where pacing leads usually end
        (-0.6, 0.7, -0.9),  # base of the left ventricle: right, down and front
        (-0.5, -0.8, -0.8),  # lower left ventricle: right, up and front
    ]
)
"""(4, 3) direction of the QRS of beats that begin there: away from the focus (Josephson, Clinical Cardiac
Electrophysiology; lengths ours)."""
LIMB = np.array([0.235, 1.066, -0.132])
"""(3,) what lead II sees of the dipole (Dower, Machado and Osborne 1980)."""
CHEST = np.array([(-0.515, 0.157, -0.917), (0.044, 0.164, -1.387), (1.213, 0.127, -0.601), (1.125, 0.127, -0.086)])
"""(4, 3) the same of V1, V2, V4 and V5."""
CHEST_SHARE = (0.7, 0.1, 0.05, 0.15)
"""How often each is recorded: V1 mostly, as in the MIT-BIH records."""


@dataclass(frozen=True, eq=False)
class Patients:
    """What belongs to each of B patients.

    Args:
        leads: (B, 2, 3) what the two leads see of the dipole.
        dipole: (B, WAVES, 3) in mV.
        second: (B, 3, 3) the same of the waves E1, E2, E_T from a second ventricular focus.
        multiform: (B,) share of ventricular beats that come from there.
        centre: (B, WAVES) phase in radians; of spikes the delay in s.
        width: (B, WAVES) in radians; of spikes in s.
        rate: (B,) beats per minute; of a pacemaker where there is one.
        variability: (B,) standard deviation of the beat interval, as share of it.
        breathing: (B,) in Hz.
        coupling: (B, 2) interval before a ventricular and an atrial extra beat, as share of the usual one.
        aberrant: (B,) chance that an early atrial beat finds one bundle branch not yet ready.
        dual: (B,) 1 where the pacemaker paces the atrium too, else 0.
    """

    leads: Array
    dipole: Array
    second: Array
    multiform: Array
    centre: Array
    width: Array
    rate: Array
    variability: Array
    breathing: Array
    coupling: Array
    aberrant: Array
    dual: Array


def draw_patients(seed: int, numbers: NDArray[np.int32], kinds: NDArray[np.int32], difficulty: float) -> Patients:
    """The patients of these numbers; each has a random stream of his own, so that there is no end of them."""
    drawn = [
        _draw(np.random.default_rng([seed, 5, int(number)]), int(kind), 0.5 + 0.5 * difficulty)
        for number, kind in zip(numbers, kinds, strict=True)
    ]
    return Patients(**{name: np.stack([patient[name] for patient in drawn]) for name in drawn[0]})


def _draw(rng: np.random.Generator, kind: int, spread: float) -> dict[str, Array]:
    """One patient; `spread` scales how far he is from the textbook."""
    size = np.exp(0.3 * spread * rng.standard_normal())
    block = rng.random() < 0.3
    site = rng.choice(4, p=(0.15, 0.75, 0.05, 0.05))
    dipole = np.zeros((WAVES, 3))
    dipole[: T2 + 1] = _conducted(rng, spread)
    dipole[P_ECTOPIC] = dipole[P] * rng.uniform(0.5, 1.1) * np.array([1.0, rng.choice((-1.0, 1.0)), 1.0])
    dipole[LATE] = np.array([-0.5, 0.1, -0.5]) * rng.uniform(0.6, 1.4)
    dipole[E1 : E_T + 1] = _focus(rng, int(rng.integers(4)), spread)
    dipole[C1 : C_T + 1] = _focus(rng, int(site), spread)
    dipole[[SPIKE_A, SPIKE_V]] = _spikes(rng)
    return {
        "leads": np.stack([LIMB, rng.choice(CHEST, p=CHEST_SHARE)]) + 0.12 * spread * rng.standard_normal((2, 3)),
        "dipole": size * dipole,
        "second": size * _focus(rng, int(rng.integers(4)), spread),
        "multiform": np.asarray(0.35 * (rng.random() < 0.3)),
        "centre": _centres(rng, spread),
        "width": _widths(rng, spread, block=bool(block)),
        "rate": np.asarray(rng.uniform(60, 80) if kind == PACED else np.clip(rng.normal(74, 11), 52, 105)),
        "variability": np.asarray(rng.uniform(0.015, 0.06)),
        "breathing": np.asarray(rng.uniform(0.2, 0.33)),
        "coupling": rng.uniform((0.5, 0.58), (0.8, 0.85)),
        "aberrant": np.asarray(rng.choice((0.1, 0.6), p=(0.6, 0.4))),
        "dual": np.asarray(float(rng.random() < 0.4)),
    }


def _conducted(rng: np.random.Generator, spread: float) -> Array:
    """Dipoles (6, 3) of the conducted waves; one patient in eight has an inverted T wave (ours)."""
    length = np.exp(0.25 * spread * rng.standard_normal((6, 1)))
    norm = np.sqrt((DIPOLE**2).sum(axis=1, keepdims=True))
    dipole: Array = length * (DIPOLE + 0.22 * spread * norm * rng.standard_normal((6, 3)))
    dipole[T1:] *= -1.0 if rng.random() < 0.125 else 1.0
    return dipole


def _focus(rng: np.random.Generator, focus: int, spread: float) -> Array:
    """Dipoles (3, 3) of a beat from a ventricular focus: two halves of QRS that turn a little, T against them."""
    direction = FOCI[focus] + 0.3 * spread * rng.standard_normal(3)
    turned = direction + 0.4 * rng.standard_normal(3)
    strength = rng.uniform(0.7, 1.3, size=(3, 1)) * np.array([[1.35], [1.1], [-0.55]])
    dipole: Array = strength * np.stack([direction, turned, direction])
    return dipole


def _spikes(rng: np.random.Generator) -> Array:
    """Dipoles (2, 3) in mV of atrial and ventricular spike: large from unipolar leads, tiny from bipolar ones."""
    unipolar = rng.random() < 0.4
    strength = rng.uniform(0.6, 2.0) if unipolar else rng.uniform(0.04, 0.3)
    direction = np.array([0.4, 0.6, -0.3]) + 0.3 * rng.standard_normal(3)
    return np.stack([0.6 * strength * direction, strength * direction])


def _centres(rng: np.random.Generator, spread: float) -> Array:
    centre = CENTRE * (1 + 0.06 * spread * rng.standard_normal(WAVES))
    centre[SPIKE_V] = -rng.uniform(0.035, 0.065)
    centre[SPIKE_A] = centre[SPIKE_V] - rng.uniform(0.13, 0.2)
    return centre


def _widths(rng: np.random.Generator, spread: float, *, block: bool) -> Array:
    """Widths (WAVES,); a bundle branch block, which counts as normal conduction, makes Q, R and S half wider."""
    width = WIDTH * np.exp(0.15 * spread * rng.standard_normal(WAVES))
    width[[Q, R, S]] *= 1.55 if block else 1.0
    width[[SPIKE_A, SPIKE_V]] = 0.0025
    return width


FS = 360.0
"""Sampling rate in Hz, that of the MIT-BIH records."""
SEGMENT = 256
"""Samples around each beat."""
SLOW = 0.1
"""Frequency in Hz of the slow (Mayer) wave of the heart rate; the fast one is breathing (McSharry et al. 2003)."""
BLUR = 0.01
"""Standard deviation in Hz of both spectral peaks (McSharry et al. 2003)."""
SLOW_SHARE = 1 / 3
"""Share of the slow wave in the variance of the beat interval: an LF/HF ratio of 0.5 (McSharry et al. 2003)."""
SINES = 4
"""Sinusoids that stand for each spectral peak."""


@dataclass(frozen=True, eq=False)
class Beats:
    """K beats in each of B records.

    Args:
        kind: (B, K) class.
        time: (B, K) of its fiducial point in s.
        interval: (B, K) beat interval in s of the rhythm underneath, which sets the pace of the waves.
        gain: (B, K, WAVES) strength of each wave, 0 where the beat has no such wave.
        second: (B, K) true where a ventricular beat comes from the second focus.
    """

    kind: NDArray[np.int64]
    time: Array
    interval: Array
    gain: Array
    second: NDArray[np.bool_]


def make_beats(kind: NDArray[np.int64], patients: Patients, rate: Array, rng: np.random.Generator) -> Beats:
    """Time and shape the beats of the given kinds.

    Args:
        kind: (B, K) classes.
        patients: of the B records.
        rate: (B,) beats per minute in this record.
        rng: source of the differences between beats.
    """
    interval = tachogram(kind, patients, rate, rng)
    return Beats(
        kind=kind,
        time=np.cumsum(interval * _timing(kind, patients, rng), axis=1),
        interval=interval,
        gain=_gains(kind, patients, rng),
        second=rng.random(kind.shape) < patients.multiform[:, None],
    )


def tachogram(kind: NDArray[np.int64], patients: Patients, rate: Array, rng: np.random.Generator) -> Array:
    """Intervals (B, K) in s of the rhythm underneath: slow and breathing waves; a pacemaker keeps time."""
    count, beats = kind.shape
    usual = 60.0 / rate[:, None, None]
    time = usual * np.arange(beats)[None, :, None]
    peaks = np.stack([np.full(count, SLOW), patients.breathing], axis=1)
    frequency = np.repeat(peaks, SINES, axis=1) + BLUR * rng.standard_normal((count, 2 * SINES))
    phase = rng.uniform(0, 2 * np.pi, size=(count, 2 * SINES))
    power = np.repeat([SLOW_SHARE, 1 - SLOW_SHARE], SINES) / SINES
    swing = (np.sqrt(2 * power) * np.sin(2 * np.pi * frequency[:, None] * time + phase[:, None])).sum(axis=2)
    depth = np.where((kind == PACED).any(axis=1), 0.003, patients.variability)
    varied: Array = usual[:, :, 0] * (1 + depth[:, None] * swing)
    return varied


def _timing(kind: NDArray[np.int64], patients: Patients, rng: np.random.Generator) -> Array:
    """Interval (B, K) before each beat, as share of the usual one.

    Ventricular extra beats do not reset the sinus node, so the pause after them makes up for their haste; atrial ones
    reset it; a pacemaker starts its clock anew after any beat (Goldberger, Clinical Electrocardiography).
    """
    jitter = 1 + 0.03 * rng.standard_normal(kind.shape)
    ventricular, atrial = (patients.coupling[:, c, None] * jitter for c in (0, 1))
    early = np.select(
        [kind == PVC, kind == PAC, kind == FUSION],
        [ventricular, atrial, rng.uniform(0.92, 1.0, size=kind.shape)],
        1.0,
    )
    paced = (kind == PACED).any(axis=1, keepdims=True)
    # Under a demand pacemaker the heart's own beats are those that come before its clock runs out.
    early = np.where(paced & (kind == NORMAL), rng.uniform(0.85, 0.97, size=kind.shape), early)
    pause = np.where(np.isin(kind, (PVC, FUSION)), 2 - early, 1.0)
    pause = np.where(kind == PAC, rng.uniform(1.0, 1.1, size=kind.shape), pause)
    pause = np.where(paced, 1.0, pause)
    timing: Array = early * np.concatenate([np.ones((len(kind), 1)), pause[:, :-1]], axis=1)
    return timing


def _gains(kind: NDArray[np.int64], patients: Patients, rng: np.random.Generator) -> Array:
    """Strength (B, K, WAVES) of each wave by class; in a fusion beat two fronts share the ventricles."""
    gain = np.zeros((*kind.shape, WAVES))
    fusion, share = kind == FUSION, rng.uniform(0.25, 0.75, size=kind.shape)
    conducted = np.isin(kind, (NORMAL, PAC)) + fusion * (1 - share)
    gain[:, :, Q : T2 + 1] = conducted[:, :, None]
    gain[:, :, E1 : E_T + 1] = ((kind == PVC) + fusion * share)[:, :, None]
    gain[:, :, C1 : C_T + 1] = gain[:, :, SPIKE_V, None] = (kind == PACED)[:, :, None]
    gain[:, :, SPIKE_A] = (kind == PACED) * patients.dual[:, None]
    gain[:, :, P] = np.isin(kind, (NORMAL, FUSION)) + gain[:, :, SPIKE_A]
    gain[:, :, P_ECTOPIC] = kind == PAC
    gain[:, :, LATE] = (kind == PAC) * (rng.random(kind.shape) < patients.aberrant[:, None])
    gain *= np.exp(0.06 * rng.standard_normal(gain.shape))
    return gain


def record_leads(beats: Beats, patients: Patients, chosen: NDArray[np.int64], jitter: Array) -> Array:
    """What the leads see around chosen beats, in mV: (B, 2, len(chosen), SEGMENT).

    Args:
        beats: all beats of the records.
        patients: of the records.
        chosen: which beats, neither first nor last, the neighbours of which reach into the segment.
        jitter: (B, len(chosen)) how late in s each fiducial point was marked.
    """
    marked = beats.time[:, chosen] + jitter
    time = marked[:, :, None] + (np.arange(SEGMENT) - SEGMENT // 2) / FS
    strength = _projected(beats, patients)
    delay, width = _paces(beats.interval, patients)
    signal = np.zeros((len(marked), 2, len(chosen), SEGMENT))
    for which in (chosen - 1, chosen, chosen + 1):
        since = time - beats.time[:, which, None]
        for wave in np.flatnonzero(beats.gain.any(axis=(0, 1))):
            offset = (since - delay[:, which, wave, None]) / width[:, which, wave, None]
            signal += strength[:, :, which, wave, None] * np.exp(-0.5 * offset**2)[:, None]
    return signal


def _projected(beats: Beats, patients: Patients) -> Array:
    """Height (B, 2, K, WAVES) in mV of each wave in each lead; breathing swings it by 6 % (ours)."""
    count, total = beats.kind.shape
    dipole = np.broadcast_to(patients.dipole[:, None], (count, total, WAVES, 3)).copy()
    dipole[:, :, E1 : E_T + 1] = np.where(
        beats.second[:, :, None, None], patients.second[:, None], dipole[:, :, E1 : E_T + 1]
    )
    height: Array = (patients.leads[:, :, None, None, :] * dipole[:, None]).sum(axis=4)
    breath = 1 + 0.06 * np.sin(2 * np.pi * patients.breathing[:, None] * beats.time)
    return height * (beats.gain * breath[:, :, None])[:, None]


def _paces(interval: Array, patients: Patients) -> tuple[Array, Array]:
    """Delay and width (B, K, WAVES) in s: faster hearts have shorter waves.

    Widths and QRS grow with the square root of the interval, P and T move with its power 3/4, as in the code that
    accompanies McSharry et al. 2003; the delays of a pacemaker are fixed.
    """
    moves, widens = np.full(WAVES, 0.5), np.full(WAVES, 0.5)
    moves[[P, P_ECTOPIC, T1, T2, E_T, C_T]] = 0.75
    moves[[SPIKE_A, SPIKE_V]] = widens[[SPIKE_A, SPIKE_V]] = 0.0
    turn = np.full(WAVES, 2 * np.pi)
    turn[[SPIKE_A, SPIKE_V]] = 1.0
    delay: Array = (patients.centre / turn)[:, None] * interval[:, :, None] ** moves
    width: Array = (patients.width / turn)[:, None] * interval[:, :, None] ** widens
    return delay, width


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
    INFO: ClassVar[SourceInfo] = read_info(__name__, "sim_ecg", length=SEGMENT)

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
        signal = record_leads(beats, patients, kept, jitter) + spread * disturbance(beats.time[:, kept], patients, rng)
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
