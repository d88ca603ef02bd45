"""ROAD: attacks on the CAN bus of a real car."""

from readbench.data.sources.road.source import Road

__all__ = ["Road"]
