"""A real server in a thread of the test, or in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

PATIENCE_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(app: FastAPI, **how: Any) -> Iterator[str]:  # noqa: ANN401 - of the server
    """The address of an application on loopback."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=5, **how))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        await_health(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def start(library: Path, port: int, *options: str) -> subprocess.Popen[bytes]:
    """`readbench cases serve` as a process of its own, once it answers; without keys where there are none."""
    command = [sys.executable, "-m", "readbench", "cases", "serve", str(library), "--port", str(port), *options]
    if not (library / "keys.json").exists() and "--keys" not in options:
        command.append("--open")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ.copy())
    await_health(f"http://127.0.0.1:{port}", process)
    return process


def await_health(address: str, process: subprocess.Popen[bytes] | None = None, patience_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if process is not None and process.poll() is not None:
            raise AssertionError(f"the service ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.02)
    raise AssertionError(f"{address} does not answer")
