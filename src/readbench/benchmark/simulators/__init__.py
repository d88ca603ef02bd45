"""Embedded data: simulated domains; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.simulators._base import BATCH as BATCH, Simulator as Simulator
    from readbench.benchmark.simulators._can import Can as Can
    from readbench.benchmark.simulators._ecg import Ecg as Ecg
    from readbench.benchmark.simulators._motor import Motor as Motor
    from readbench.benchmark.simulators._service import Service as Service
    from readbench.benchmark.simulators._tanks import Tanks as Tanks

open_room(__name__)
