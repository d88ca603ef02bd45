"""Variables and disturbances of the Tennessee Eastman process.

Downs and Vogel 1993, A plant-wide industrial process control problem, Computers & Chemical Engineering 17(3):245-255:
tables of the manipulated variables, of the continuous and sampled measurements, and of the process disturbances. The
twelfth manipulated variable, the agitator speed, is constant in the published data and left out of them.
"""

from __future__ import annotations

from readbench.data.source import Channel

_MEASURED = (
    ("kscmh", "A feed (stream 1)"),
    ("kg/h", "D feed (stream 2)"),
    ("kg/h", "E feed (stream 3)"),
    ("kscmh", "A and C feed (stream 4)"),
    ("kscmh", "recycle flow (stream 8)"),
    ("kscmh", "reactor feed rate (stream 6)"),
    ("kPa gauge", "reactor pressure"),
    ("%", "reactor level"),
    ("°C", "reactor temperature"),
    ("kscmh", "purge rate (stream 9)"),
    ("°C", "product separator temperature"),
    ("%", "product separator level"),
    ("kPa gauge", "product separator pressure"),
    ("m³/h", "product separator underflow (stream 10)"),
    ("%", "stripper level"),
    ("kPa gauge", "stripper pressure"),
    ("m³/h", "stripper underflow (stream 11)"),
    ("°C", "stripper temperature"),
    ("kg/h", "stripper steam flow"),
    ("kW", "compressor work"),
    ("°C", "reactor cooling water outlet temperature"),
    ("°C", "separator cooling water outlet temperature"),
    *(("mol%", f"component {component} in the reactor feed (stream 6)") for component in "ABCDEF"),
    *(("mol%", f"component {component} in the purge gas (stream 9)") for component in "ABCDEFGH"),
    *(("mol%", f"component {component} in the product (stream 11)") for component in "DEFGH"),
)
_MANIPULATED = (
    "D feed flow (stream 2)",
    "E feed flow (stream 3)",
    "A feed flow (stream 1)",
    "A and C feed flow (stream 4)",
    "compressor recycle valve",
    "purge valve (stream 9)",
    "separator pot liquid flow (stream 10)",
    "stripper liquid product flow (stream 11)",
    "stripper steam valve",
    "reactor cooling water flow",
    "condenser cooling water flow",
)

CHANNELS = (
    *(Channel(f"xmeas_{i}", unit, text) for i, (unit, text) in enumerate(_MEASURED, start=1)),
    *(Channel(f"xmv_{i}", "%", text) for i, text in enumerate(_MANIPULATED, start=1)),
)
"""52 channels, named as in the published tables."""

FAULTS = (
    "step in A/C feed ratio",
    "step in B composition",
    "step in D feed temperature",
    "step in reactor cooling water inlet temperature",
    "step in condenser cooling water inlet temperature",
    "loss of A feed",
    "C header pressure loss",
    "random A, B, C feed composition",
    "random D feed temperature",
    "random C feed temperature",
    "random reactor cooling water inlet temperature",
    "random condenser cooling water inlet temperature",
    "slow drift in reaction kinetics",
    "sticking reactor cooling water valve",
    "sticking condenser cooling water valve",
    *(f"unknown disturbance {number}" for number in range(16, 21)),
)
"""Disturbances IDV(1) to IDV(20); fault k is class k."""
