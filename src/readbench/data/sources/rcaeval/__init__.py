"""RCAEval: faults injected into microservices."""

from readbench.data.sources.rcaeval.source import RcaEval

__all__ = ["RcaEval"]
