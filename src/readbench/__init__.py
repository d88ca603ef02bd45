"""READ-Bench: find the historical case that explains a new fault in time-series data.

    import readbench

    task = readbench.load_task("sim_tanks")
    readbench.evaluate("dtw-i", task)                                  # metrics at each pollution level
    readbench.run("sim_tanks", ["euclidean", "dtw-i"], out="runs/first").leaderboard()
    readbench.Method("dtw-i").fit(cases).rank(new, k=5).order          # arrays (N, C, T) are windows

The names below are imported when first used, so that `import readbench` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from readbench.version import __version__

_EXPORTS = {
    "Channel": "readbench.benchmark.protocol:Channel",
    "Evaluation": "readbench.benchmark.evaluation:Evaluation",
    "Knowledge": "readbench.engine.method:Knowledge",
    "Library": "readbench.cases:Library",
    "Method": "readbench.engine.method:Method",
    "ParameterRange": "readbench.engine.parameters:ParameterRange",
    "Protocol": "readbench.benchmark.protocol:Protocol",
    "Recording": "readbench.benchmark.protocol:Recording",
    "RunResults": "readbench.benchmark.evaluation:RunResults",
    "Source": "readbench.benchmark.protocol:Source",
    "SourceInfo": "readbench.benchmark.protocol:SourceInfo",
    "Task": "readbench.benchmark.protocol:Task",
    "Window": "readbench.engine.windows:Window",
    "WindowSet": "readbench.engine.windows:WindowSet",
    "evaluate": "readbench.benchmark.evaluation:evaluate",
    "load_task": "readbench.benchmark.protocol:load_task",
    "read_run": "readbench.benchmark.evaluation:read_run",
    "register_encoder": "readbench.engine.registry:ENCODERS.register",
    "register_fusion": "readbench.engine.registry:FUSIONS.register",
    "register_metric": "readbench.engine.registry:METRICS.register",
    "register_reranker": "readbench.engine.registry:RERANKERS.register",
    "register_retriever": "readbench.engine.registry:RETRIEVERS.register",
    "register_source": "readbench.engine.registry:SOURCES.register",
    "register_study": "readbench.studies:STUDIES.register",
    "run": "readbench.benchmark.evaluation:run",
}
_MODULES = {
    "abilities": "readbench.engine.abilities",
    "errors": "readbench.errors",
    "protocols": "readbench.engine.protocols",
    "testing": "readbench.testing",
}

if TYPE_CHECKING:
    from readbench import errors, testing
    from readbench.benchmark.evaluation import Evaluation, RunResults, evaluate, read_run, run
    from readbench.benchmark.protocol import Channel, Protocol, Recording, Source, SourceInfo, Task, load_task
    from readbench.cases import Library
    from readbench.engine import abilities, protocols
    from readbench.engine.method import Knowledge, Method
    from readbench.engine.parameters import ParameterRange
    from readbench.engine.registry import ENCODERS, FUSIONS, METRICS, RERANKERS, RETRIEVERS, SOURCES
    from readbench.engine.windows import Window, WindowSet
    from readbench.studies import STUDIES

    register_encoder = ENCODERS.register
    register_fusion = FUSIONS.register
    register_metric = METRICS.register
    register_reranker = RERANKERS.register
    register_retriever = RETRIEVERS.register
    register_source = SOURCES.register
    register_study = STUDIES.register

__all__ = [
    "Channel",
    "Evaluation",
    "Knowledge",
    "Library",
    "Method",
    "ParameterRange",
    "Protocol",
    "Recording",
    "RunResults",
    "Source",
    "SourceInfo",
    "Task",
    "Window",
    "WindowSet",
    "__version__",
    "abilities",
    "errors",
    "evaluate",
    "load_task",
    "protocols",
    "read_run",
    "register_encoder",
    "register_fusion",
    "register_metric",
    "register_reranker",
    "register_retriever",
    "register_source",
    "register_study",
    "run",
    "testing",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any exported object
    if name in _EXPORTS:
        module, _, path = _EXPORTS[name].partition(":")
        return attrgetter(path)(import_module(module))
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'readbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
