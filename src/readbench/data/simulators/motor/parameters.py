"""The simulated motors: sampling, bearings, and what differs from machine to machine."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Phasors = NDArray[np.complex128]

FS = 5120.0
"""Sampling rate in Hz, 2.56 times a bandwidth of 2 kHz as analysers have it."""
SNAPSHOT = 1024
"""Samples of one snapshot: 0.2 s, 4 to 10 revolutions."""
SNAPSHOTS = 4
"""Snapshots of one run."""
INTERVAL = 900.0
"""Seconds from one snapshot to the next, as trending systems store them (ours)."""
SETTLE = 256
"""Samples simulated before each snapshot, so that the structure already rings when it begins: 50 ms."""
GRAVITY = 9.81
"""m/s^2 in one g."""

INNER, OUTER, BALL, IMBALANCE, MISALIGNMENT, LOOSENESS, LUBRICATION, SENSOR = range(1, 9)
"""Class indices, in the order of `INFO.faults`."""


class Table:
    """Columns of equal length: base of frozen dataclasses of arrays whose first axis is the row."""

    def take(self, rows: NDArray[np.int64] | NDArray[np.int32] | NDArray[np.bool_]) -> Self:
        """The chosen rows, in the given order."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        chosen = {name: c.take(rows) if isinstance(c, Table) else c[rows] for name, c in columns.items()}
        return type(self)(**chosen)


@dataclass(frozen=True)
class Bearing:
    """Geometry of a rolling bearing; its defect orders are multiples of the shaft frequency.

    Kinematics without slip: Randall and Antoni 2011, section 2.

    >>> skf = Bearing("SKF 6205", balls=9, ball=7.94, pitch=39.04)
    >>> f"{skf.inner:.3f} {skf.outer:.3f} {skf.spin:.3f} {skf.cage:.3f}"
    '5.415 3.585 2.357 0.398'

    Args:
        name: maker and type.
        balls: number of rolling elements.
        ball: their diameter in mm.
        pitch: pitch diameter in mm.
        contact: contact angle in degrees.
    """

    name: str
    balls: int
    ball: float
    pitch: float
    contact: float = 0.0

    @property
    def ratio(self) -> float:
        """Ball to pitch diameter, seen along the contact angle."""
        return self.ball / self.pitch * float(np.cos(np.radians(self.contact)))

    @property
    def cage(self) -> float:
        """Fundamental train order (FTF): how fast the cage turns."""
        return 0.5 * (1 - self.ratio)

    @property
    def outer(self) -> float:
        """Ball pass order of the outer race (BPFO)."""
        return self.balls * self.cage

    @property
    def inner(self) -> float:
        """Ball pass order of the inner race (BPFI)."""
        return 0.5 * self.balls * (1 + self.ratio)

    @property
    def spin(self) -> float:
        """Ball spin order (BSF); a spot on a ball strikes a race twice per turn."""
        return 0.5 * self.pitch / self.ball * (1 - self.ratio**2)


BEARINGS = (
    Bearing("SKF 6205-2RS", balls=9, ball=7.94, pitch=39.04),  # drive end of the CWRU test bench
    Bearing("SKF 6203-2RS", balls=8, ball=6.746, pitch=28.5),  # its fan end
    Bearing("Rexnord ZA-2115", balls=16, ball=8.407, pitch=71.5, contact=15.17),  # IMS run-to-failure tests
)


@dataclass(frozen=True, eq=False)
class Fleet(Table):
    """What belongs to each machine: M rows. Ranges without a source are ours, for machines of 3 to 7 kW.

    Args:
        orders: (M, 4) inner, outer, spin and cage order of its bearing.
        mode: (M, 3) natural frequencies in Hz of housing and frame, below FS / 2.
        damping: (M, 3) damping ratios of the modes; a few per cent are common for bolted frames.
        shape: (M, 3, 3) share of each mode (last axis) in the reading of each vibration axis.
        compliance: (M, 3) how easily the support gives way along x, y, z: horizontal is softer than vertical.
        residual: (M, 3) velocity in mm/s RMS at orders 1, 2, 3 that is always there (ISO 20816-3, zone A).
        blades: (M,) blades of the driven fan or pump.
        blade_pass: (M, 3) acceleration in g of each axis at the blade pass order, at rated load.
        friction: (M,) RMS in g of broadband noise at 30 Hz and rated load.
        pole_pairs: (M,) of the motor.
        current: (M,) rated current in A.
        magnetising: (M,) share of it that flows without load.
        heat: (M,) rise of the bearing over ambient in K at 30 Hz and rated load.
    """

    orders: Array
    mode: Array
    damping: Array
    shape: Array
    compliance: Array
    residual: Array
    blades: NDArray[np.int64]
    blade_pass: Phasors
    friction: Array
    pole_pairs: NDArray[np.int64]
    current: Array
    magnetising: Array
    heat: Array


def draw_fleet(rng: np.random.Generator, machines: int) -> Fleet:
    """Draw `machines` different machines."""
    orders = np.array([(b.inner, b.outer, b.spin, b.cage) for b in BEARINGS])
    sign = rng.choice((-1.0, 1.0), size=(machines, 3, 3))
    blade_level = log_uniform(rng, 0.01, 0.12, (machines, 1)) * rng.uniform(0.3, 1.0, size=(machines, 3))
    return Fleet(
        orders=orders[rng.integers(len(BEARINGS), size=machines)],
        mode=rng.uniform((450, 1050, 1700), (900, 1550, 2300), size=(machines, 3)),
        damping=rng.uniform(0.015, 0.06, size=(machines, 3)),
        shape=sign * rng.uniform(0.2, 1.0, size=(machines, 3, 3)) * np.array([1.0, 1.0, 0.7])[:, None],
        compliance=rng.uniform((1.0, 0.6, 0.5), (1.6, 1.1, 1.0), size=(machines, 3)),
        residual=log_uniform(rng, np.array([0.4, 0.15, 0.06]), np.array([1.6, 0.8, 0.4]), (machines, 3)),
        blades=rng.integers(5, 10, size=machines),
        blade_pass=blade_level * turned(rng, (machines, 3)),
        friction=log_uniform(rng, 0.02, 0.06, (machines,)),
        pole_pairs=rng.integers(1, 3, size=machines),
        current=rng.uniform(9.0, 14.0, size=machines),
        magnetising=rng.uniform(0.3, 0.5, size=machines),
        heat=rng.uniform(16.0, 22.0, size=machines),
    )


def log_uniform(rng: np.random.Generator, low: Array | float, high: Array | float, size: tuple[int, ...]) -> Array:
    """Draw between `low` and `high`, evenly in the logarithm."""
    drawn: Array = np.exp(rng.uniform(np.log(low), np.log(high), size=size))
    return drawn


def turned(rng: np.random.Generator, size: tuple[int, ...]) -> Phasors:
    """Phasors of length 1 and any phase."""
    phasors: Phasors = np.exp(2j * np.pi * rng.random(size))
    return phasors
