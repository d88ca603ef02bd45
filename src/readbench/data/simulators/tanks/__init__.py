"""A simulated three-tank plant under level control."""

from readbench.data.simulators.tanks.simulator import Tanks

__all__ = ["Tanks"]
