"""Embedded data: simulated domains; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
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

__getattr__ = open_room(__name__)
