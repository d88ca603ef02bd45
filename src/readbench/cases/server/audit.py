"""Who did what and when, as JSON lines: never what was in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import BinaryIO, TextIO

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """One request.

    Args:
        time: seconds since the epoch.
        key: name of the key; "" without one.
        method: of HTTP.
        path: without the query.
        status: of the answer.
        ms: how long it took.
        received: bytes of the request's body.
    """

    model_config = ConfigDict(frozen=True)

    time: float
    key: str
    method: str
    path: str
    status: int
    ms: float
    received: int


class Audit:
    """Appends one line for each request; the file may be moved away at any time, as log rotation does.

    Args:
        path: of the file; None keeps none.
        echo: where the same lines go for the operator; None for nowhere.
    """

    def __init__(self, path: Path | None, echo: TextIO | None = sys.stderr) -> None:
        self.path = path
        self.echo = echo

    def record(self, event: Event) -> None:
        """Write one line; one that a killed process left unfinished is ended first."""
        line = json.dumps(event.model_dump(), separators=(",", ":")) + "\n"
        if self.path is not None:
            with self.path.open("ab+") as file:
                whole = _ends_with_a_line(file)
                file.write((line if whole else f"\n{line}").encode())
        if self.echo is not None:
            self.echo.write(line)
            self.echo.flush()


def _ends_with_a_line(file: BinaryIO) -> bool:
    """Whether the last line of a file is finished; so is that of an empty one."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
