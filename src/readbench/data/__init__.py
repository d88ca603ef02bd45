"""From native files or a simulator to queries, corpora and relevance judgments."""

from readbench.data.build import Built, build, build_fingerprint
from readbench.data.compose import Composition
from readbench.data.recording import Cuts, Recording
from readbench.data.source import Channel, Protocol, Source, SourceInfo
from readbench.data.task import Task, compose_task, load_task

__all__ = [
    "Built",
    "Channel",
    "Composition",
    "Cuts",
    "Protocol",
    "Recording",
    "Source",
    "SourceInfo",
    "Task",
    "build",
    "build_fingerprint",
    "compose_task",
    "load_task",
]
