"""A process that imports what the commands need, once, and forks one for each call that reaches its socket.

What forking does not suit is left to the calls: LanceDB and the ONNX Runtime start threads when they are imported, and
end badly in a child. Those of a linear algebra library are known to survive.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

IMPORTED = (
    "numpy",
    "pandas",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "sklearn.linear_model",
    "numba",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "matplotlib.figure",
    "lance_namespace",
    "pydantic",
    "requests",
    "tqdm",
    "readbench.cli",
    "readbench.benchmark.protocol",
    "readbench.benchmark.report",
    "readbench.benchmark.runs",
    "readbench.benchmark.studies",
    "readbench.cases.watch",
    "readbench.engine.encoders",
    "readbench.engine.rerankers",
    "readbench.engine.retrievers",
)
"""What commands import that takes long; those that are not installed are passed over."""
LONGEST_CALL = 1 << 18


@dataclass(frozen=True)
class Call:
    """What a process is started with."""

    arguments: list[str]
    folder: str
    variables: dict[str, str]


def import_all() -> None:
    """Import what is there."""
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    registry = importlib.import_module("readbench.engine.registry")
    registry._plugin_origins.cache_clear()  # each call may find other packages
    typer: Any = importlib.import_module("typer.main")
    typer.get_command = cache(typer.get_command)
    typer.get_command(importlib.import_module("readbench.cli").app)  # built from its signatures at each call otherwise
    gc.freeze()


def await_call(listener: socket.socket) -> Call | None:
    """In each forked process the call that it answers; none in this one, once its input has ended."""
    awake, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    watched: list[Any] = [listener, awake, 0]
    while True:
        ready = select.select(watched, [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
            tell_ends(running)
        if listener in ready:
            connection = listener.accept()[0]
            if (pid := fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (listener, *running.values()):
                    other.close()
                return receive(connection)
            running[pid] = connection
        elif 0 in ready:
            return None


def fork() -> int:
    """Fork; idle threads of a linear algebra library are known to survive it, and Python warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def tell_ends(running: dict[int, socket.socket]) -> None:
    """Send the exit codes of the calls that have ended."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as connection, suppress(OSError):  # who asked may be gone
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def receive(connection: socket.socket) -> Call:
    """Read a call and take its streams."""
    content, streams, _, _ = socket.recv_fds(connection, LONGEST_CALL, 3)
    connection.close()
    for standard, given in enumerate(streams):
        os.dup2(given, standard)
        os.close(given)
    return Call(**json.loads(content))


def run(call: Call) -> None:
    """Be the process of a call: a module after -m, or a file."""
    os.chdir(call.folder)
    os.environ.clear()
    os.environ.update(call.variables)
    given = call.variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [call.folder, *dict.fromkeys(filter(None, [*given, *sys.path[1:]]))]
    importlib.invalidate_caches()
    if call.arguments[0] == "-m":
        sys.argv = call.arguments[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = call.arguments
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    import_all()
    if (asked := await_call(socket.socket(fileno=int(sys.argv[1])))) is not None:
        run(asked)
