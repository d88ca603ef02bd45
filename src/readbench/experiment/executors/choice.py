"""Executors by name."""

from __future__ import annotations

from typing import Literal

from readbench.errors import UsageError
from readbench.experiment.executors.base import Executor
from readbench.experiment.executors.cluster import RayCluster
from readbench.experiment.executors.local import Local
from readbench.experiment.executors.processes import Processes

ExecutorName = Literal["local", "processes", "ray"]


def executor_of(
    name: ExecutorName | None = None, workers: int = 1, address: str | None = None, gpus: float = 0
) -> Executor:
    """The executor of a name; without one, processes where several are asked for.

    Args:
        name: `local`, `processes` or `ray`.
        workers: number of processes; Ray uses all processors of its cluster.
        address: of a running Ray cluster.
        gpus: that each item on Ray needs; a share of one where several fit on it.

    >>> executor_of(workers=4).name
    'processes'
    """
    if name == "ray":
        return RayCluster(address, gpus)
    if address or gpus:
        raise UsageError("--address and --gpus are for a Ray cluster: add --executor ray.")
    if name == "processes" or (name is None and workers > 1):
        return Processes(workers)
    return Local()
