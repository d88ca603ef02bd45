"""READ-Bench: find the historical case that explains a new fault in time-series data.

The names below are imported when first used, so that `import readbench` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "Plan": "readbench.benchmark.runs",
    "Method": "readbench.engine.method",
    "System": "readbench.engine.deprecated",
    "Task": "readbench.benchmark.protocol",
    "Window": "readbench.engine.windows",
    "WindowSet": "readbench.engine.windows",
    "load_task": "readbench.benchmark.protocol",
    "parse": "readbench.engine.spec",
    "run": "readbench.benchmark.runs",
}

if TYPE_CHECKING:
    from readbench.benchmark.protocol import Task, load_task
    from readbench.benchmark.runs import Plan, run
    from readbench.engine.deprecated import System
    from readbench.engine.method import Method
    from readbench.engine.spec import parse
    from readbench.engine.windows import Window, WindowSet

__all__ = ["Method", "Plan", "System", "Task", "Window", "WindowSet", "__version__", "load_task", "parse", "run"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any exported object
    if name not in _EXPORTS:
        raise AttributeError(f"module 'readbench' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
