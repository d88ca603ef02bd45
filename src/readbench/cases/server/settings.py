"""What the service accepts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from readbench.cases.library import DEFAULT_METHOD
from readbench.errors import UsageError
from readbench.spec import parse
from readbench.tables import Limits


@dataclass(frozen=True)
class Settings:
    """Limits of one service, and which methods may be asked for.

    Args:
        methods: texts of the grammar; the first is used where none is asked for.
        max_bytes: of one request.
        max_points: numbers in one window.
        max_channels: of one window.
        max_hits: of one answer.
        max_windows: of one search for several.
        workers: requests that are worked on at the same time.
        waiting: requests that may wait for a worker; the next one is sent away with 503.
        timeout_s: longest that a request may take, waiting included.
        sample: a CSV file that the page offers to those who have none at hand.

    >>> Settings().checked_method("")
    'flagship'
    """

    methods: tuple[str, ...] = (DEFAULT_METHOD,)
    max_bytes: int = 32 * 2**20
    max_points: int = 2_000_000
    max_channels: int = 2_000
    max_hits: int = 100
    max_windows: int = 100
    workers: int = 4
    waiting: int = 64
    timeout_s: float = 120.0
    sample: Path | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise UsageError("Name at least one method that may be asked for.")
        for method in self.methods:
            parse(method)

    @property
    def file_limits(self) -> Limits:
        """Limits of sent files; unpacked, they may be a few times larger than what was sent."""
        return Limits(max_bytes=8 * self.max_bytes, max_rows=self.max_points, max_columns=self.max_channels + 10)

    def checked_method(self, method: str) -> str:
        """The method that is asked for, if it may be; the first one for ""."""
        if not method:
            return self.methods[0]
        if method not in self.methods:
            raise UsageError(
                f"This service does not run the method {method[:80]!r}. It runs: {', '.join(self.methods)}."
            )
        return method
