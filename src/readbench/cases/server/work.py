"""Blocking calls beside the event loop: so many at a time, so many in line, so long at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class BusyError(Exception):
    """The service cannot answer now; the message says why."""


class Work:
    """A bounded pool of threads.

    Args:
        workers: calls at the same time.
        waiting: calls that may wait; the next one is refused.
        timeout_s: longest that a call may take, waiting included.
    """

    def __init__(self, workers: int, waiting: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.most = workers + waiting
        self.running = 0
        self._workers = workers
        self._pool: ThreadPoolExecutor | None = None

    async def do(self, call: Callable[[], Result]) -> Result:
        """Run a call and return what it returns; `BusyError` where there is no room or no time."""
        if self.running >= self.most:
            raise BusyError(f"{self.running} requests are being worked on. Try again in a moment.")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="cases")
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        self.running += 1
        future.add_done_callback(self._finished)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.timeout_s)
        except TimeoutError as error:
            future.cancel()  # one that has not begun will not
            raise BusyError(f"No answer within {self.timeout_s:g} s. Try again, or with a shorter window.") from error

    def close(self) -> None:
        """Finish what is running; what waits is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _finished(self, future: asyncio.Future[Result]) -> None:
        self.running -= 1
        if not future.cancelled():
            future.exception()  # seen: nobody may be waiting any more
