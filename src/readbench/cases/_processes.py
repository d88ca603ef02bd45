"""Searches side by side: processes that answer from what the library's own process has learned.

One process of Python computes little more than one search at a time, however many processors there are. So a service
lends what it has learned (`Kept.known`: a fitted method, what is normal, what windows look like) to processes that do
nothing but search. They learn nothing themselves: each follows the store, takes new cases into what it was lent, as
`readbench.cases._learning` does, and says where it cannot answer; the library then answers itself.

What is lent is written once for all of them, arrays apart from the rest, and mapped: it is in memory once. It goes from
a process to the processes that it started, in a file that only its user can read, and is removed with them.

Searches of the library's own process fill in what an object computes once (`cached_property`) while it is written, so
each object is written as it stood at one moment (`_Lender`). What lends and what starts processes are supervised loops
(`readbench.common.supervised`): `SearchPool.loops` says how they are.
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
"""Arrays begin at multiples of this, as kernels like it."""
MAX_FAILURES = 3
"""Processes that may end by themselves, one after the other, before the next one is started after a pause only."""
REST_S = 60.0
"""That pause."""
TIMEOUT_S = 120.0
"""How long a process may take to start, and a search without a deadline."""
PREFIX = "readbench-lent-"
LENDING = "lends what is learned"
_LENGTH = 8
log = logging.getLogger("readbench.loops")


class SearchPool:
    """Processes that search one library.

    Args:
        library: that lives long, in the background; what it learns is lent.
        count: of processes.
        hear: told when one of its loops fails, and when it works again.
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
        """Processes that can be asked."""
        return self._alive

    @property
    def loops(self) -> list[LoopState]:
        """How the loops are that start processes and tell them what was learned."""
        return [loop.state for loop in self._loops]

    def search(self, asked: object, **how: object) -> bytes | None:
        """The answer as JSON, as `Library.search` gives it; None where the library must answer itself.

        Args:
            asked: what is asked about.
            how: the other arguments of `Library.search`.
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
            raise OverdueError("The time for this was over before it was done. Ask for less at once.") from None
        try:
            found: bytes | None = process.ask("search", (asked, how, seconds_left()), min(seconds_left(), TIMEOUT_S))
        except (EOFError, OSError, TimeoutError) as error:
            self._replace(process, ended=not isinstance(error, TimeoutError))
            if isinstance(error, TimeoutError):
                raise OverdueError("The time for this was over before it was done. Ask for less at once.") from None
            return None
        except BaseException:
            self._idle.put(process)
            raise
        self._failures = 0
        self._idle.put(process)
        return found

    def close(self) -> None:
        """End the processes, whatever they do."""
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
        """Wait until the processes have started and know what the library knows; False where that takes longer."""
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
        """Where a process is wanted, add one to those that wait for questions."""
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
        """Let the library learn from what changed, and tell all processes what it has learned."""
        self._wake.wait()
        self._wake.clear()
        if self._closed.is_set():
            return
        try:
            self._keep_up()
            self._write_down()
        except BaseException:
            self._wake.set()  # the next round does not wait for a question
            raise
        for _ in range(2 * self._alive):  # each comes to the front once
            with suppress(queue.Empty):
                self._tell(self._idle.get(timeout=TIMEOUT_S))

    def _keep_up(self) -> None:
        """What cannot be learned for what the cases are is no failure: the search that needs it says why."""
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
                # A part that does not survive it: the library answers itself, until it has learned anew.
                self._unlendable[name] = learned
                log.warning("%s cannot be lent to search processes: %s", name, error)
                continue
            old, self._files[name], self._lent[name] = self._files.get(name), path, learned
            if old:
                old.unlink(missing_ok=True)  # who mapped it keeps it

    def _tell(self, process: _SearchProcess) -> bool:
        """Tell a process what it was not told yet, and let it wait for questions; one that has ended is replaced."""
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
    """Remove what processes lent that were killed since."""
    for folder in Path(gettempdir()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdecimal() and not is_alive(int(number)):
            rmtree(folder, ignore_errors=True)


class _SearchProcess:
    """One of them, as the library's own process sees it."""

    def __init__(self, address: str, limits: dict[str, Any]) -> None:
        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, address, limits), daemon=True, name="search")
        self._process.start()
        there.close()
        self.told: dict[str, Learned[Any]] = {}
        self.ask("begin", None, TIMEOUT_S)

    def ask(self, what: str, given: object, patience_s: float) -> Any:  # noqa: ANN401 - as asked
        """What it answers; `EOFError` where it has ended, `TimeoutError` where it takes too long."""
        self._connection.send((what, given))
        if not self._connection.poll(max(0.0, patience_s)):
            raise TimeoutError
        said, answer = self._connection.recv()
        if said == "overdue":
            raise OverdueError(answer)
        return answer

    def knows(self, learned: dict[str, Learned[Any]]) -> bool:
        """Whether it was told all of this."""
        return all(self.told.get(name) is value for name, value in learned.items())

    def end(self) -> None:
        """At once: it keeps nothing that could be lost."""
        self._process.kill()
        self._connection.close()
        self._process.join()


def _serve(there: Connection[Any, Any], address: str, limits: dict[str, Any]) -> None:
    """In the process: answer until nobody asks."""
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
    """Go on with what was lent; a method searches once, so that the first who asks does not wait for what it loads."""
    learned: Learned[Any] = read_lent(path, library.store)
    library.follow(name, learned)
    if isinstance(learned.value, FittedMethod) and learned.snapshot.entries:
        _search(library, learned.snapshot.case(0).id, {"method": name}, TIMEOUT_S)


def _search(library: Library, asked: Any, how: dict[str, Any], left: float) -> bytes | None:  # noqa: ANN401
    """The answer as JSON; None where there is none here: the library's own process finds one, or says why not."""
    try:
        with set_deadline(Deadline(time.monotonic() + left)):
            return library.search(asked, **how).model_dump_json().encode()
    except OverdueError:
        raise
    except (ReadbenchError, UntaughtError, OSError, ValueError, ArithmeticError, MemoryError):
        return None


class _Lender(pickle.Pickler):
    """Pickles all but the store, which every process opens itself, and who listens to progress.

    Other threads may use what is pickled: of each object, the attributes and the containers that they hold are copied
    in one step each, so that none of them changes while it is gone through.
    """

    def __init__(self, file: IO[bytes], store: Store, keep: Callable[[pickle.PickleBuffer], bool]) -> None:
        super().__init__(file, protocol=5, buffer_callback=keep)
        self._store = store
        self._copies: dict[int, tuple[object, object]] = {}

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401 - as pickle has it
        """How to make an object again: as pickle does it, from attributes that nobody else changes."""
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
        """A copy of a container, always the same one of the same container; anything else as it is."""
        if type(value) not in (dict, list, set):
            return value
        known = self._copies.get(id(value))
        if known is None:
            known = self._copies[id(value)] = value, copy(value)  # the container is held: its number stays its own
        return known[1]

    def persistent_id(self, obj: object) -> str | None:
        """What stands for an object."""
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
    """Write a value: arrays one after the other, then the rest, then where all of it begins."""
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
    """A value with its arrays where the file is mapped; who changes one has a copy."""
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    begin, middle = (int.from_bytes(mapped[-n : -n + _LENGTH or None], "little") for n in (2 * _LENGTH, _LENGTH))
    places = pickle.loads(mapped[middle : -2 * _LENGTH])  # noqa: S301 - written by the process that started this one
    buffers = [mapped[start : start + size] for start, size in places]
    return _Borrower(io.BytesIO(mapped[begin:middle]), store, buffers).load()
