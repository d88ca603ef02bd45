"""Exathlon: disturbed Spark streaming applications."""

from readbench.data.sources.exathlon.source import Exathlon

__all__ = ["Exathlon"]
