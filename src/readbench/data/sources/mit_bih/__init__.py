"""The MIT-BIH arrhythmia database."""

from readbench.data.sources.mit_bih.source import MitBih

__all__ = ["MitBih"]
