"""The Tennessee Eastman process, in the layouts of Rieth et al. and of Braatz."""

from readbench.data.sources.tennessee_eastman.source import TennesseeEastman

__all__ = ["TennesseeEastman"]
