"""State shared by all routes: library, settings, Prometheus counters, workers.

Blocking calls run in a bounded pool of threads, with a bounded queue and a timeout.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from readbench.cases import DEFAULT_METHOD, Library, ReadRecording, SearchPool, sign_changes
from readbench.cases.roles import Role, act_as
from readbench.cases.server._audit import AuditLog
from readbench.cases.server._keys import KeyFile, KeyHolder
from readbench.common.deadlines import Deadline, set_deadline
from readbench.common.supervised import LoopState
from readbench.common.tables import Limits
from readbench.engine.spec import parse
from readbench.engine.windows import WindowSet
from readbench.errors import StoreError, UsageError


@dataclass(frozen=True)
class Settings:
    """Limits and methods of a service.

    Args:
        methods: methods that clients may choose; the first is the default.
        max_bytes: bytes of one request.
        max_total_bytes: bytes of all requests in progress; further ones get 503.
        max_connections: connections from one address; trusted proxies may have more.
        max_points: readings in one window.
        max_channels: channels of one window.
        max_hits: hits of one answer.
        max_windows: windows of one search.
        max_comparisons: readings of the query times steps of the compared cases; the limit takes about ten seconds of
            one core.
        workers: requests processed at a time, and half as many that change the library.
        waiting: requests that may wait for a worker; further ones get 503.
        timeout_s: longest time of a request in seconds, including waiting.
        processes: search processes; 0 searches in threads of one process.
        sample: CSV file offered on the first page.
        sources: file with the connected sources; default in the library's folder.
        notices: file with the notices of the watch; default in the library's folder.

    >>> Settings().choose_method("")
    'flagship-spread'
    """

    methods: tuple[str, ...] = (DEFAULT_METHOD,)
    max_bytes: int = 32 * 2**20
    max_total_bytes: int = 128 * 2**20
    max_connections: int = 64
    max_points: int = 2_000_000
    max_channels: int = 2_000
    max_hits: int = 100
    max_windows: int = 100
    max_comparisons: float = 2e10
    workers: int = 4
    waiting: int = 64
    timeout_s: float = 120.0
    processes: int = 0
    sample: Path | None = None
    sources: Path | None = None
    notices: Path | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise UsageError("A service needs at least one method. Give one.")
        for method in self.methods:
            parse(method)

    @property
    def file_limits(self) -> Limits:
        """Limits of sent files, after unpacking."""
        return Limits(
            max_bytes=4 * self.max_bytes,
            max_rows=self.max_points,
            max_columns=self.max_channels + 10,
            max_cells=4 * self.max_points,
        )

    def choose_method(self, method: str) -> str:
        """Canonical text of an allowed method; the default for "", an error for any other."""
        if not method:
            return self.methods[0]
        if method not in self.methods:
            raise UsageError(
                f"This service does not run the method {method[:80]!r}. It runs: {', '.join(self.methods)}."
            )
        return method


BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0)


class ServiceMetrics:
    """Prometheus metrics of a service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "readbench_requests", "Requests by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "readbench_request_seconds", "Time to answer.", ["route"], buckets=BUCKETS, registry=self.registry
        )
        self.running = Gauge("readbench_running", "Requests being worked on or waiting.", registry=self.registry)
        self.cases = Gauge("readbench_cases", "Cases in the library.", registry=self.registry)
        self.loop_up = Gauge(
            "readbench_loop_up", "1 where a background loop works, 0 where it fails.", ["loop"], registry=self.registry
        )
        self.loop_failures = Gauge(
            "readbench_loop_failures", "Rounds of a background loop that failed.", ["loop"], registry=self.registry
        )

    def count_loops(self, loops: Iterable[LoopState]) -> None:
        """Set the state of the background loops."""
        for loop in loops:
            self.loop_up.labels(loop.name).set(not loop.error)
            self.loop_failures.labels(loop.name).set(loop.failures)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


Result = TypeVar("Result")


SWITCH_S = 0.001
"""Switch interval of the interpreter in seconds; bounds the wait of a search after its compiled part."""


def share_processors() -> None:
    """Limit numeric libraries to one thread per request, so that concurrent requests share the cores.

    `READBENCH_THREADS` overrides this for compiled loops.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    os.environ.setdefault("READBENCH_THREADS", "1")
    threadpool_limits(1)
    sys.setswitchinterval(SWITCH_S)


MAX_PROCESSES = 4
"""Default upper limit of search processes; each takes a few hundred MB."""


def count_search_processes() -> int:
    """Default number of search processes: one per core, 0 on a single core.

    >>> count_search_processes() in {0, 2, 3, 4}
    True
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, MAX_PROCESSES) if processors > 1 else 0


class BusyError(Exception):
    """The service has no free worker, or a request timed out."""


class WorkerPool:
    """A bounded pool of threads; changes, which wait for each other, run in separate threads.

    Args:
        workers: concurrent calls, and half as many changes.
        waiting: calls that may wait; further ones are refused.
        timeout_s: longest time of a call in seconds, including waiting.
    """

    def __init__(self, workers: int, waiting: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.most = workers + waiting
        self.running = 0
        self._workers = workers
        self._deadlines: dict[asyncio.Future[Any], Deadline] = {}
        self._pools: dict[bool, ThreadPoolExecutor] = {}

    async def do(self, call: Callable[[], Result], *, writes: bool = False) -> Result:
        """Run a call in a thread and return its result; `BusyError` if the queue is full or the time is over.

        Args:
            call: function to run.
            writes: True for a change, which may wait for another writer.
        """
        if self.running >= self.most:
            raise BusyError(f"{self.running} requests are being worked on. Try again in a moment.")
        if writes not in self._pools:
            count = max(1, self._workers // 2) if writes else self._workers
            self._pools[writes] = ThreadPoolExecutor(count, thread_name_prefix="cases")
        deadline = Deadline(time.monotonic() + self.timeout_s)

        def work() -> Result:
            with set_deadline(deadline), act_as(Role.READ):
                return call()

        future = asyncio.get_running_loop().run_in_executor(self._pools[writes], work)
        self.running += 1
        self._deadlines[future] = deadline
        future.add_done_callback(self._finish)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.timeout_s)
        except TimeoutError as error:
            future.cancel()
            raise BusyError(f"No answer within {self.timeout_s:g} s. Try again, or with a shorter window.") from error

    async def close(self, patience_s: float) -> None:
        """Drop waiting calls, and wait up to `patience_s` seconds for running ones."""
        while self._pools:
            self._pools.popitem()[1].shutdown(wait=False, cancel_futures=True)
        for deadline in self._deadlines.values():
            deadline.at = min(deadline.at, time.monotonic())
        if self._deadlines:
            await asyncio.wait(set(self._deadlines), timeout=patience_s)

    def _finish(self, future: asyncio.Future[Result]) -> None:
        self.running -= 1
        self._deadlines.pop(future, None)
        if not future.cancelled():
            future.exception()  # seen: nobody may be waiting any more


@dataclass(frozen=True, eq=False)
class HeldFile:
    """A sent file that is not stored: name, asset, and the recording that was read."""

    name: str
    asset: str
    read: ReadRecording

    @property
    def size(self) -> int:
        """Number of readings, including the context."""
        windows = self.read.windows
        befores = () if windows.context is None else windows.context.befores
        return int((windows.channel_counts * windows.lengths).sum()) + sum(before.size for before in befores)


class HeldFiles:
    """Recently sent files in memory, each under a secret name that links use.

    Args:
        most: largest number of files; the oldest is dropped first.
        most_readings: largest total number of readings; the newest file is always held.
        seconds: how long a file is held.
    """

    def __init__(self, most: int = 50, most_readings: int = 20_000_000, seconds: float = 3600.0) -> None:
        self.most = most
        self.most_readings = most_readings
        self.seconds = seconds
        self._files: dict[str, tuple[float, HeldFile]] = {}
        self._lock = Lock()

    def hold(self, file: HeldFile) -> str:
        """Hold a file; returns its secret name."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._files[name] = time.monotonic(), file
            while len(self._files) > 1 and (
                len(self._files) > self.most or sum(held.size for _, held in self._files.values()) > self.most_readings
            ):
                del self._files[next(iter(self._files))]
        return name

    def get(self, name: str) -> HeldFile | None:
        """File of a name; None if it is no longer held."""
        with self._lock:
            since, file = self._files.get(name, (-math.inf, None))
            if time.monotonic() - since > self.seconds:
                self._files.pop(name, None)
                return None
            return file


CHANGES: ContextVar[list[str] | None] = ContextVar("changes", default=None)
"""Changes made by the current request."""


@dataclass
class Inflow:
    """Bytes of all requests in progress."""

    held: int = 0


@dataclass(frozen=True, eq=False)
class CaseService:
    """A served library with the state of its service.

    Args:
        library: the library.
        settings: limits and methods.
        keys: keys and roles; None gives all rights to every user of this machine.
        audit: audit log.
        work: threads for blocking calls.
        metrics: Prometheus metrics.
        looked_at: recently sent files.
        inflow: bytes of requests in progress.
        pool: search processes; None searches in threads.
    """

    library: Library
    settings: Settings
    keys: KeyFile | None
    audit: AuditLog
    work: WorkerPool
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    looked_at: HeldFiles = field(default_factory=HeldFiles)
    inflow: Inflow = field(default_factory=Inflow)
    pool: SearchPool | None = None

    @property
    def loops(self) -> list[LoopState]:
        """State of the background loops."""
        return [*self.library.loops, *(self.pool.loops if self.pool else ())]

    def search(self, asked: WindowSet | ReadRecording | str, **how: Any) -> bytes:  # noqa: ANN401 - as the library takes it
        """Answer as JSON, from a search process if there is one; arguments as of `Library.search`."""
        found = self.pool.search(asked, **how) if self.pool else None
        return found if found is not None else self.library.search(asked, **how).model_dump_json().encode()

    async def act(self, caller: KeyHolder, call: Callable[[], Result]) -> Result:
        """Run a call that changes or exports the library, in the name and role of the caller.

        Raises before the call if the audit log cannot be written.
        """
        try:
            self.audit.check()
        except OSError as error:
            raise StoreError(
                f"The audit log cannot be written ({error.strerror}), so nothing is changed. Ask its operator."
            ) from error

        def signed() -> tuple[Result, list[str]]:
            with act_as(caller.role), sign_changes("" if self.keys is None else caller.name) as made:
                return call(), made

        result, made = await self.work.do(signed, writes=True)
        listed = CHANGES.get()
        if listed is not None:
            listed.extend(made)
        return result


def service_of(request: Request) -> CaseService:
    """Service of a request."""
    return cast("CaseService", request.app.state.service)


async def _find_service(request: Request) -> CaseService:
    """`service_of` as an async dependency; a plain function would run in another thread."""
    return service_of(request)


Served = Annotated[CaseService, Depends(_find_service)]
