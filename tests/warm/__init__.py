"""The command line without its start-up: a process that has imported what commands need forks one for each call.

A call has arguments, variables, a folder, streams and an exit code as any process has. Not tried is the start, which
`tests/test_cli_door.py` and `tests/cli/test_first_days.py` try; and variables that a package reads when it is imported
are those of the first call.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PLAIN = (sys.executable, "-m", "readbench")


def readbench() -> tuple[str, ...]:
    """The words that call `readbench`; where forking after imports is not safe, those of a plain start."""
    return (*_client(), "-m", "readbench")


def python() -> tuple[str, ...]:
    """The words that run a file of Python, likewise."""
    return _client()


@cache
def _client() -> tuple[str, ...]:
    if sys.platform != "linux":
        return (sys.executable,)
    folder = Path(tempfile.mkdtemp(prefix="readbench-warm-"))
    address = folder / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen(64)
        started = subprocess.Popen(
            [sys.executable, str(HERE / "process.py"), str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )

    def stop() -> None:
        started.communicate()  # the end of its input ends it
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return sys.executable, "-I", "-S", str(HERE / "client.py"), str(address)
