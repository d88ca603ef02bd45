"""The UCR archive as a retrieval task (CTSR)."""

from readbench.data.sources.ctsr.source import Ctsr

__all__ = ["Ctsr"]
