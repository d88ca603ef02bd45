"""Search processes of a service, which share the models fitted by its main process.

One Python process computes little more than one search at a time. So a service shares its fitted models (`Kept.known`:
methods, normal operation, profile) with processes that only search. They follow the store and add new cases to the
models as in `readbench.cases._learning`; a search that they cannot answer is answered by the main process.

Models are written once to a file that only its user can read, arrays apart from the rest, and memory-mapped by all
processes; the file is removed with them. Searches of the main process may fill cached properties while an object is
written, so each object is copied first (`_Lender`). Supervised loops (`readbench.common.supervised`) share models and
start processes; `SearchPool.loops` has their state.
"""

from __future__ import annotations

import io
import logging
import mmap
import os
import pickle
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from types import FunctionType
from typing import IO, Any

from readbench.cases._learning import Learned, UntaughtError
from readbench.cases._library import Library
from readbench.cases._store import Store, open_store
from readbench.common.deadlines import Deadline, seconds_left, set_deadline
from readbench.common.processes import end_with_parent, is_alive
from readbench.common.progress import SILENT, within
from readbench.common.supervised import Hear, LoopState, SupervisedLoop
from readbench.engine.method import FittedMethod
from readbench.errors import OverdueError, ReadbenchError, StoreError

ALIGNED = 64
"""Alignment of arrays in the file, in bytes."""
MAX_FAILURES = 3
"""Consecutive failed processes after which the next one is started after `REST_S`."""
REST_S = 60.0
"""Pause before a restart, in seconds."""
TIMEOUT_S = 120.0
"""Longest start of a process, and longest search without a deadline, in seconds."""
PREFIX = "readbench-lent-"
LENDING = "lends what is learned"
_LENGTH = 8
log = logging.getLogger("readbench.loops")


class SearchPool:
    """Pool of processes that search one library.

    Args:
        library: library with a background learner, whose models are shared.
        count: number of processes.
        hear: called when a loop fails or recovers.
    """

    def __init__(self, library: Library, count: int, hear: Hear = lambda _: None) -> None:
        self.library = library
        remove_left_behind()
        self._folder = Path(mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self._idle: queue.Queue[_SearchProcess] = queue.Queue()
        self._lent: dict[str, Learned[Any]] = {}
        self._files: dict[str, Path] = {}
        self._seen: tuple[int, ...] = ()
        self._unlendable: dict[str, Learned[Any]] = {}
        self._alive = self._failures = self._number = 0
        self._wake, self._closed = threading.Event(), threading.Event()
        self._wanted = threading.Semaphore(count)
        self._lock = threading.Lock()
        starters = [SupervisedLoop(f"starts search process {i + 1}", self._start, hear) for i in range(count)]
        self._loops = [loop.start() for loop in (*starters, SupervisedLoop(LENDING, self._lend, hear))]

    @property
    def alive(self) -> int:
        """Number of running processes."""
        return self._alive

    @property
    def loops(self) -> list[LoopState]:
        """State of the loops that start processes and share models."""
        return [loop.state for loop in self._loops]

    def search(self, asked: object, **how: object) -> bytes | None:
        """Answer of `Library.search` as JSON; None if the main process must answer.

        Args:
            asked: the query.
            how: other arguments of `Library.search`.
        """
        seen = self.library.store.revision(), *map(id, self.library.learned().values())
        if seen != self._seen:
            self._seen = seen
            self._wake.set()
        if not self._alive:
            return None
        left = min(seconds_left(), TIMEOUT_S)
        try:
            process = self._idle.get(timeout=max(left, 0.0))
        except queue.Empty:
            raise OverdueError("The search took longer than its time limit. Send fewer or shorter windows.") from None
        try:
            found: bytes | None = process.ask("search", (asked, how, seconds_left()), min(seconds_left(), TIMEOUT_S))
        except (EOFError, OSError, TimeoutError) as error:
            self._replace(process, ended=not isinstance(error, TimeoutError))
            if isinstance(error, TimeoutError):
                raise OverdueError(
                    "The search took longer than its time limit. Send fewer or shorter windows."
                ) from None
            return None
        except BaseException:
            self._idle.put(process)
            raise
        self._failures = 0
        self._idle.put(process)
        return found

    def close(self) -> None:
        """Terminate the processes."""
        self._closed.set()
        for loop in self._loops:
            loop.stop()
            self._wanted.release()
        self._wake.set()
        with self._lock:
            self._alive = 0
        while True:
            try:
                self._idle.get_nowait().end()
            except queue.Empty:
                break
        rmtree(self._folder, ignore_errors=True)

    def settle(self, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until all processes have the present models; False after `timeout_s` seconds."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self._wake.set()
            known = self.library.learned()
            waiting = list(self._idle.queue)
            if self._alive and len(waiting) == self._alive and all(worker.knows(known) for worker in waiting):
                return True
            time.sleep(0.05)
        return False

    def _start(self) -> None:
        """Start a missing process."""
        self._wanted.acquire()
        try:
            if self._failures > MAX_FAILURES:
                self._closed.wait(REST_S)
            if self._closed.is_set():
                return
            process = _SearchProcess(self.library.store.address, self.library.limits)
        except BaseException:
            self._wanted.release()
            raise
        with self._lock:
            self._alive += 1
        if self._closed.is_set():
            process.end()
        elif self._tell(process):
            self._wake.set()

    def _replace(self, process: _SearchProcess, *, ended: bool) -> None:
        process.end()
        with self._lock:
            self._alive -= 1
            self._failures += ended
        self._wanted.release()

    def _lend(self) -> None:
        """Fit the models on the latest changes, and share them with all processes."""
        self._wake.wait()
        self._wake.clear()
        if self._closed.is_set():
            return
        try:
            self._keep_up()
            self._write_down()
        except BaseException:
            self._wake.set()  # retry without waiting for a search
            raise
        for _ in range(2 * self._alive):
            with suppress(queue.Empty):
                self._tell(self._idle.get(timeout=TIMEOUT_S))

    def _keep_up(self) -> None:
        """Fit the models; errors due to the cases are left to the search that needs the model."""
        try:
            self.library.keep_up()
        except StoreError:
            raise
        except ReadbenchError:
            return

    def _write_down(self) -> None:
        for name, learned in self.library.learned().items():
            if learned in (self._lent.get(name), self._unlendable.get(name)):
                continue
            self._number += 1
            path = self._folder / f"{self._number}.lent"
            try:
                write_lent(path, learned, self.library.store)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                # A model that cannot be pickled: the main process answers until it is refitted.
                self._unlendable[name] = learned
                log.warning("%s cannot be lent to search processes: %s", name, error)
                continue
            old, self._files[name], self._lent[name] = self._files.get(name), path, learned
            if old:
                old.unlink(missing_ok=True)  # processes that mapped it keep their mapping

    def _tell(self, process: _SearchProcess) -> bool:
        """Send new models to a process and make it available; a dead process is replaced."""
        try:
            for name, learned in list(self._lent.items()):
                if process.told.get(name) is not learned:
                    process.ask("learn", (name, self._files[name]), TIMEOUT_S)
                    process.told[name] = learned
        except BaseException as error:
            self._replace(process, ended=True)
            if isinstance(error, EOFError | OSError | TimeoutError):
                return False
            raise
        self._idle.put(process)
        return True


def remove_left_behind() -> None:
    """Remove model files of killed services."""
    for folder in Path(gettempdir()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdecimal() and not is_alive(int(number)):
            rmtree(folder, ignore_errors=True)


class _SearchProcess:
    """Main process's handle of a search process."""

    def __init__(self, address: str, limits: dict[str, Any]) -> None:
        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, address, limits), daemon=True, name="search")
        self._process.start()
        there.close()
        self.told: dict[str, Learned[Any]] = {}
        self.ask("begin", None, TIMEOUT_S)

    def ask(self, what: str, given: object, patience_s: float) -> Any:  # noqa: ANN401 - as asked
        """Send a request and return the answer; `EOFError` if the process died, `TimeoutError` after `patience_s`."""
        self._connection.send((what, given))
        if not self._connection.poll(max(0.0, patience_s)):
            raise TimeoutError
        said, answer = self._connection.recv()
        if said == "overdue":
            raise OverdueError(answer)
        return answer

    def knows(self, learned: dict[str, Learned[Any]]) -> bool:
        """True if the process has all these models."""
        return all(self.told.get(name) is value for name, value in learned.items())

    def end(self) -> None:
        """Kill the process; it has no state to save."""
        self._process.kill()
        self._connection.close()
        self._process.join()


def _serve(there: Connection[Any, Any], address: str, limits: dict[str, Any]) -> None:
    """Main function of a search process: answer requests until the connection closes."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    end_with_parent()
    os.environ.setdefault("READBENCH_THREADS", "1")
    threadpool_limits(1)
    library = Library(open_store(address), follower=True, **limits)
    answers: dict[str, Callable[[Any], object]] = {
        "begin": lambda _: None,
        "learn": lambda given: _learn(library, *given),
        "search": lambda given: _search(library, *given),
    }
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            what, given = there.recv()
            try:
                there.send(("done", answers[what](given)))
            except OverdueError as error:
                there.send(("overdue", str(error)))


def _learn(library: Library, name: str, path: Path) -> None:
    """Adopt a shared model; a method runs one search, so that its network is loaded."""
    learned: Learned[Any] = read_lent(path, library.store)
    library.follow(name, learned)
    if isinstance(learned.value, FittedMethod) and learned.snapshot.entries:
        _search(library, learned.snapshot.case(0).id, {"method": name}, TIMEOUT_S)


def _search(library: Library, asked: Any, how: dict[str, Any], left: float) -> bytes | None:  # noqa: ANN401
    """Answer as JSON; None if the main process must answer."""
    try:
        with set_deadline(Deadline(time.monotonic() + left)):
            return library.search(asked, **how).model_dump_json().encode()
    except OverdueError:
        raise
    except (ReadbenchError, UntaughtError, OSError, ValueError, ArithmeticError, MemoryError):
        return None


class _Lender(pickle.Pickler):
    """Pickler that leaves out the store, which each process opens itself, and progress callbacks.

    Other threads may change the pickled objects, so attributes and their containers are copied first, in one step each.
    """

    def __init__(self, file: IO[bytes], store: Store, keep: Callable[[pickle.PickleBuffer], bool]) -> None:
        super().__init__(file, protocol=5, buffer_callback=keep)
        self._store = store
        self._copies: dict[int, tuple[object, object]] = {}

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401 - as pickle has it
        """Reduce an object as pickle does, with copied attributes."""
        kind, attributes = type(obj), getattr(obj, "__dict__", None)
        usual = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
        plain = usual and kind.__getstate__ is object.__getstate__
        if not attributes or not plain or isinstance(obj, type | FunctionType):
            return NotImplemented
        made: Any = obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if made[2] is not attributes:
            return NotImplemented
        return (*made[:2], {name: self._still(value) for name, value in attributes.copy().items()}, *made[3:])

    def _still(self, value: object) -> object:
        """Copy a container, once per container; other values are returned unchanged."""
        if type(value) not in (dict, list, set):
            return value
        known = self._copies.get(id(value))
        if known is None:
            known = self._copies[id(value)] = value, copy(value)  # holds the container, so that its id stays unique
        return known[1]

    def persistent_id(self, obj: object) -> str | None:
        """Placeholder of an object that is not pickled; None for others."""
        if obj is self._store:
            return "store"
        return "silent" if isinstance(obj, type(within(SILENT, ""))) else None


class _Borrower(pickle.Unpickler):
    def __init__(self, file: IO[bytes], store: Store, buffers: list[memoryview]) -> None:
        super().__init__(file, buffers=buffers)
        self._known = {"store": store, "silent": SILENT}

    def persistent_load(self, pid: str) -> object:
        return self._known[pid]


def write_lent(path: Path, value: object, store: Store) -> None:
    """Write a value: arrays, then the pickled rest, then the offsets of both."""
    places: list[tuple[int, int]] = []
    with path.open("xb") as file, (path.with_suffix(".rest")).open("w+b") as rest:

        def keep(buffer: pickle.PickleBuffer) -> bool:
            file.write(bytes(-file.tell() % ALIGNED))
            raw = buffer.raw()
            places.append((file.tell(), raw.nbytes))
            file.write(raw)
            return False  # it is not in the rest

        _Lender(rest, store, keep).dump(value)
        begin = file.tell()
        rest.seek(0)
        file.write(rest.read())
        middle = file.tell()
        file.write(pickle.dumps(places))
        file.write(begin.to_bytes(_LENGTH, "little") + middle.to_bytes(_LENGTH, "little"))
    path.with_suffix(".rest").unlink()


def read_lent(path: Path, store: Store) -> Any:  # noqa: ANN401 - what was written
    """Read a value; its arrays are copy-on-write views of the mapped file."""
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    begin, middle = (int.from_bytes(mapped[-n : -n + _LENGTH or None], "little") for n in (2 * _LENGTH, _LENGTH))
    places = pickle.loads(mapped[middle : -2 * _LENGTH])  # noqa: S301 - written by the process that started this one
    buffers = [mapped[start : start + size] for start, size in places]
    return _Borrower(io.BytesIO(mapped[begin:middle]), store, buffers).load()
