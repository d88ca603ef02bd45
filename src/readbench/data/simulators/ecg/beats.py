"""Beats of the simulated hearts: which waves each kind has, when it comes, and what the leads see of it.

The model is that of McSharry et al. 2003 in the phase form of Sameni et al. 2007: instead of integrating the
trajectory, each beat adds its waves as Gaussians around its own time, so any stretch of the record has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.ecg.patients import (
    C1,
    C_T,
    E1,
    E_T,
    FUSION,
    LATE,
    NORMAL,
    P_ECTOPIC,
    PAC,
    PACED,
    PVC,
    SPIKE_A,
    SPIKE_V,
    T1,
    T2,
    WAVES,
    Array,
    P,
    Patients,
    Q,
)

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


def seen(beats: Beats, patients: Patients, chosen: NDArray[np.int64], jitter: Array) -> Array:
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
