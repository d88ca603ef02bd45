"""Embedded data: simulated domains, one family of modules each; importing this room registers all of them."""

from readbench.data.simulators.tanks import Tanks
from readbench.registry import SOURCES

for simulator in (Tanks,):
    SOURCES.register(simulator.INFO.name, title=simulator.INFO.title)(simulator)

__all__ = ["Tanks"]
