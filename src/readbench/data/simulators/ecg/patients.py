"""The simulated patients: each heart's dipole, the leads it is seen through, its rhythm and its extra beats.

A heart beat is a sum of waves. Each wave is a Gaussian in time that carries a dipole along the axes of Frank: x to the
left, y to the feet, z to the back. A beat of any kind is a choice among the same list of waves: those of conducted
beats, of an ectopic atrial focus, of an ectopic ventricular focus and of a pacemaker (Clifford et al. 2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
