"""Servers of the standard library that answer beside a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer


@contextmanager
def answering(server: TCPServer) -> Iterator[str]:
    """Answer in another thread until the block ends; the value is the server's address.

    The thread looks every 10 ms whether it should end; by default it would look every half second, and each test wait
    for it.
    """
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
