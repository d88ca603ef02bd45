"""What a library learns from its cases, and when: in the question that needs it, or beside the questions.

`Kept` holds one thing that was learned from a snapshot: what windows look like, what normal operation is, a fitted
method. In a process that asks once, it is learned when it is needed and is exact. In one that lives long, such as a
service, the question after a change is answered by what was learned last, the thread of a `BackgroundLearner` learns
from the new state meanwhile, and the result is put in place when it is whole. What takes less than `QUICK_S` is always
exact.

Nobody waits for a lock to read: what is kept is replaced as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Condition, Lock
from typing import Generic, TypeVar

from readbench.cases._journal import Snapshot
from readbench.common.deadlines import pause
from readbench.common.progress import SILENT, Progress
from readbench.common.sharing import one_thread_for_products
from readbench.common.supervised import Hear, LoopState, SupervisedLoop
from readbench.errors import ReadbenchError

T = TypeVar("T")
Item = TypeVar("Item")
QUICK_S = 0.3
"""What was learned in less time is learned again in the question itself."""
MAX_REST_S = 10.0
"""Longest pause after learning; questions have the processor meanwhile."""


class UntaughtError(Exception):
    """A process that does not learn itself was asked for what nobody told it."""


class BackgroundLearner:
    """A supervised loop that learns one thing after the other, and ends when nothing is left.

    After each, it rests as long as it worked, `MAX_REST_S` at most: a library into which cases keep coming learns half
    of the time.

    Args:
        name: of the loop, for readiness and the log.
    """

    learns = True

    def __init__(self, name: str = "learns from what changed") -> None:
        self._state = Condition()
        self._jobs: dict[str, Callable[[], None]] = {}
        self._works = False
        self._loop = SupervisedLoop(name, self._learn_next)
        self._hurried = 0

    @property
    def loop(self) -> LoopState:
        """How its loop is."""
        return self._loop.state

    def hear(self, hear: Hear) -> None:
        """Be told when its loop fails, and when it works again."""
        self._loop.hear = hear

    def submit(self, name: str, job: Callable[[], None]) -> None:
        """Do a job soon; one of the same name that has not begun is replaced."""
        with self._state:
            self._jobs[name] = job
            if not self._works:
                self._works = True
                self._loop.start()

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to learn; False where that takes longer."""
        with self._state:
            self._hurried += 1
            self._state.notify_all()
            done = self._state.wait_for(lambda: not self._works, timeout_s)
            self._hurried -= 1
            return done

    def _learn_next(self) -> bool:
        """Learn one thing, and rest; True where nothing is left."""
        with self._state:
            if not self._jobs:
                self._works = False
                self._state.notify_all()
                return True
            job = self._jobs.pop(next(iter(self._jobs)))
        began = time.perf_counter()
        job()
        with self._state:
            rest = min(time.perf_counter() - began, MAX_REST_S)
            self._state.wait_for(lambda: self._hurried > 0, rest)
        return False


class LessonFollower(BackgroundLearner):
    """Learns nothing: what is learned elsewhere is told (`readbench.cases._processes`)."""

    learns = False

    def submit(self, name: str, job: Callable[[], None]) -> None:
        """Leave it to others."""


def work_half_time(work: Callable[[Item], T], items: Sequence[Item], /) -> Iterator[T]:
    """What `map` gives, with a rest after each item as long as it took."""
    for item in items:
        began = time.perf_counter()
        yield work(item)
        pause(min(time.perf_counter() - began, MAX_REST_S))


@dataclass(frozen=True, eq=False)
class Learned(Generic[T]):
    """Something learned from a snapshot.

    Args:
        key: of the state that it follows from.
        snapshot: that it was learned from.
        value: what was learned.
        seconds: that it took.
    """

    key: str
    snapshot: Snapshot
    value: T
    seconds: float


class Kept(Generic[T]):
    """One thing that is learned, and learned again when the library changes.

    Args:
        name: of it.
        key_of: says of a snapshot what the thing depends on.
        learn: makes it, with what was learned last at hand, and says how far it has come.
        learner: learns in the background; None where questions learn themselves.
        latest: the state of the library when the background comes to it.
        lasting: a process that is told what to know may go on with that of an earlier state, however quickly it is
            learned elsewhere.

    Attributes:
        known: what was learned last.
    """

    def __init__(
        self,
        name: str,
        key_of: Callable[[Snapshot], str],
        learn: Callable[[Snapshot, Learned[T] | None, Progress], T],
        learner: BackgroundLearner | None,
        latest: Callable[[], Snapshot],
        *,
        lasting: bool = False,
    ) -> None:
        self.name = name
        self._lasting = lasting
        self._key_of = key_of
        self._learn = learn
        self._learner = learner
        self._latest = latest
        self._lock = Lock()
        self.known: Learned[T] | None = None
        self._failed = ""

    def get(self, snapshot: Snapshot, progress: Progress = SILENT) -> Learned[T]:
        """What follows from a snapshot, or what was learned last while that is learned."""
        known, key = self.known, self._key_of(snapshot)
        if known is not None and known.key == key:
            return known
        if known is None or self._learner is None or self._is_quick(known) or self._failed == key:
            return self.learn_now(snapshot, progress)
        self._learner.submit(self.name, self._learn_latest)
        return known

    def _is_quick(self, known: Learned[T]) -> bool:
        """Whether it is always exact, since it was learned in no time."""
        learns = self._learner is None or self._learner.learns
        return known.seconds < (QUICK_S if learns or not self._lasting else QUICK_S / 10)

    def count_behind(self, learned: Learned[T], snapshot: Snapshot) -> int:
        """Changes of the library since something was learned, up to a snapshot; 0 where none of them matters."""
        if learned.key == self._key_of(snapshot):
            return 0
        return max(1, snapshot.state.change - learned.snapshot.state.change)

    def learn_now(self, snapshot: Snapshot, progress: Progress = SILENT) -> Learned[T]:
        """What follows from a snapshot; who asks waits."""
        key = self._key_of(snapshot)
        with self._lock:  # of several that need the same, one learns it
            known = self.known
            if known is not None and known.key == key:
                return known
            if self._learner is not None and not self._learner.learns:
                raise UntaughtError(self.name)
            began = time.perf_counter()
            with one_thread_for_products():  # on a busy machine the threads of a decomposition wait for each other
                value = self._learn(snapshot, known, progress)
            self.known = Learned(key, snapshot, value, time.perf_counter() - began)
            return self.known

    def _learn_latest(self) -> None:
        """In the background; what fails there fails again in the next question, which says why."""
        try:
            snapshot = self._latest()
        except (ReadbenchError, OSError):
            return  # the library cannot be read now; the next question says so
        try:
            self.learn_now(snapshot)
        except BaseException as error:
            self._failed = self._key_of(snapshot)
            if not isinstance(error, ReadbenchError | OSError | ValueError | ArithmeticError | MemoryError):
                raise
