"""HAI: attacks on the control loops of a boiler, a turbine and a water treatment plant."""

from readbench.data.sources.hai.source import Hai

__all__ = ["Hai"]
