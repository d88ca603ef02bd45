"""A simulated rotating machine with its bearings."""

from readbench.data.simulators.motor.simulator import Motor

__all__ = ["Motor"]
