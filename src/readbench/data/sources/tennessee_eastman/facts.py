"""Variables (`channels.csv`) and disturbances (`faults.csv`) of the Tennessee Eastman process.

Downs and Vogel 1993, A plant-wide industrial process control problem, Computers & Chemical Engineering 17(3):245-255:
tables of the manipulated variables, of the continuous and sampled measurements, and of the process disturbances. The
twelfth manipulated variable, the agitator speed, is constant in the published data and left out of them.
"""

from __future__ import annotations

from readbench.data.shipped import read_shipped_rows
from readbench.data.source import Channel

CHANNELS = tuple(
    Channel(row["name"], row["unit"], row["description"]) for row in read_shipped_rows(__name__, "channels.csv")
)
"""52 channels, named as in the published tables."""
FAULTS = tuple(row["name"] for row in read_shipped_rows(__name__, "faults.csv"))
"""Disturbances IDV(1) to IDV(20); fault k is class k."""
