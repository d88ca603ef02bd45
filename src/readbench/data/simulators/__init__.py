"""Embedded data: simulated domains, a folder each; importing this room registers all of them."""

from readbench.data.simulators.can import Can
from readbench.data.simulators.ecg import Ecg
from readbench.data.simulators.motor import Motor
from readbench.data.simulators.service import Service
from readbench.data.simulators.tanks import Tanks

__all__ = ["Can", "Ecg", "Motor", "Service", "Tanks"]
