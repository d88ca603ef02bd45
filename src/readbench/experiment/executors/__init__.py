"""Where work runs: in this process, in several, or on a Ray cluster; the same results everywhere."""

from readbench.experiment.executors.base import TRIES, Executor, Lost, Work
from readbench.experiment.executors.choice import ExecutorName, executor_of
from readbench.experiment.executors.cluster import RayCluster
from readbench.experiment.executors.local import Local
from readbench.experiment.executors.ordered import InOrder
from readbench.experiment.executors.processes import Processes

__all__ = [
    "TRIES",
    "Executor",
    "ExecutorName",
    "InOrder",
    "Local",
    "Lost",
    "Processes",
    "RayCluster",
    "Work",
    "executor_of",
]
