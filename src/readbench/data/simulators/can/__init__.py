"""A simulated vehicle, seen through its CAN bus."""

from readbench.data.simulators.can.simulator import Can

__all__ = ["Can"]
