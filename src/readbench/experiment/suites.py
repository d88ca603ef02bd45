"""Named plans: what `readbench run --suite NAME` runs."""

from __future__ import annotations

from collections.abc import Callable

from readbench.errors import UnknownNameError
from readbench.experiment.plan import Plan
from readbench.registry import SOURCES
from readbench.spec import parse


def quick() -> Plan:
    """Every embedded (simulated) dataset with the floors, the shortcut probes and Euclidean distance."""
    simulated = tuple(entry.name for entry in SOURCES if entry.build().info.simulated)
    methods = ("random", "majority", "channel-presence", "stats", "euclidean")
    return Plan(datasets=simulated, methods=tuple(str(parse(m)) for m in methods))


SUITES: dict[str, Callable[[], Plan]] = {"quick": quick}


def suite(name: str) -> Plan:
    """The plan of a suite; an unknown name answers with the nearest right ones."""
    if name not in SUITES:
        raise UnknownNameError("suite", name, SUITES)
    return SUITES[name]()
