"""Background loops that survive errors: a failure is logged, counted, shown, and retried after a pause.

```
loop = SupervisedLoop("reads the plant", read_once).start()     # in a thread, again and again
loop.state                                                      # LoopState(name=..., failures=0, error="")
loop.stop()                                                     # after the current round
```

The work is a function that does one round. An exception ends the round, not the loop: the next round begins after a
pause that doubles with each failure in a row. `state.error` keeps the error until a round succeeds or runs longer
than the pause, so that readiness and metrics can show it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

PAUSE_S = (0.5, 60.0)
"""Pause after the first failure in a row, and the longest pause, in seconds."""
RECOVERED_AFTER_S = 10.0
"""A round that runs this long after a failure counts as successful again."""
MAX_ERROR_CHARACTERS = 300
log = logging.getLogger("readbench.loops")


@dataclass(frozen=True)
class LoopState:
    """State of a loop.

    Args:
        name: name of the loop.
        failures: failed rounds since the start.
        error: error of the last round; "" after a successful one.
        since: time of the first of the current failures in a row, seconds since 1970.
    """

    name: str
    failures: int = 0
    error: str = ""
    since: float = 0.0


Round = Callable[[], bool | None]
Hear = Callable[[LoopState], None]


class SupervisedLoop:
    """Calls a function again and again until stopped, even if the function raises.

    Args:
        name: what the loop does, for the log and readiness.
        work: does one round; returns True to end the loop.
        hear: called with the state after the first failure in a row, and when rounds succeed again.
        pause_s: shortest and longest pause after a failure, seconds.
    """

    def __init__(
        self, name: str, work: Round, hear: Hear = lambda _: None, pause_s: tuple[float, float] = PAUSE_S
    ) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._work = work
        self.hear = hear
        self._pause_s = pause_s
        self._failures = self._in_a_row = 0
        self._since = 0.0
        self._error = ""
        self._began = 0.0
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> LoopState:
        """Current state."""
        steady = self._began and time.monotonic() - self._began > max(RECOVERED_AFTER_S, self._pause_s[0])
        return LoopState(self.name, self._failures, "" if steady else self._error, self._since)

    def start(self) -> Self:
        """Start the loop in a daemon thread."""
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop after the current round."""
        self.stopping.set()

    def join(self, patience_s: float | None = None) -> None:
        """Wait for the end, at most `patience_s` seconds."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    def run(self) -> None:
        """Run in this thread until the work returns True or `stop` is called."""
        while not self.stopping.is_set():
            self._began = time.monotonic()
            try:
                over = self._work()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - compiled packages raise errors that are no Exception
                self._began = 0.0
                self._fail(error)
                continue
            self._recover()
            if over:
                return

    def _fail(self, error: BaseException) -> None:
        self._failures += 1
        self._in_a_row += 1
        words = " ".join(f"{type(error).__name__}: {error}".split())
        first, self._error = not self._error, words[:MAX_ERROR_CHARACTERS]
        pause = min(self._pause_s[0] * 2.0 ** min(self._in_a_row - 1, 30), self._pause_s[1])
        log.error("%s: failed %d times; next try in %g s", self.name, self._failures, pause, exc_info=error)
        if first:
            self._since = time.time()
            self._tell()
        self.stopping.wait(pause)

    def _recover(self) -> None:
        self._in_a_row = 0
        if self._error:
            self._error = ""
            log.warning("%s: works again", self.name)
            self._tell()

    def _tell(self) -> None:
        try:
            self.hear(LoopState(self.name, self._failures, self._error, self._since))
        except Exception:
            log.exception("%s: a failure could not be told", self.name)
