"""Ask the warm process for one call, with the streams, folder and variables of this one; imports next to nothing."""

from __future__ import annotations

import json
import os
import socket
import sys


def main(address: str, *arguments: str) -> int:
    """The exit code of the call."""
    call = {"arguments": arguments, "folder": os.getcwd(), "variables": dict(os.environ)}  # noqa: PTH109 - no pathlib
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps(call).encode()], [0, 1, 2])
        return int(connection.recv(16) or b"1")  # nothing: the warm process has ended


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
