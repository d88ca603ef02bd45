"""Embedded data: simulated domains; importing this room registers all of them."""

from readbench.benchmark.simulators._base import BATCH, Simulator
from readbench.benchmark.simulators._can import Can
from readbench.benchmark.simulators._ecg import Ecg
from readbench.benchmark.simulators._motor import Motor
from readbench.benchmark.simulators._service import Service
from readbench.benchmark.simulators._tanks import Tanks

__all__ = [
    "BATCH",
    "Can",
    "Ecg",
    "Motor",
    "Service",
    "Simulator",
    "Tanks",
]
