"""Who did what and when, as JSON lines: never what was in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

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
        """Write one line."""
        line = json.dumps(event.model_dump(), separators=(",", ":")) + "\n"
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        if self.echo is not None:
            self.echo.write(line)
            self.echo.flush()
