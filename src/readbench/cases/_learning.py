"""Fitting of models on a library, during a question or in the background.

`Kept` holds one model fitted on a snapshot: the profile of windows, normal operation, or a method. In a command it is
fitted when needed. In a service, the question after a change is answered with the last model while the thread of a
`BackgroundLearner` fits the next, which then replaces it atomically; models fitted in less than `QUICK_S` are always
up to date. Readers take no lock.
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
"""Fitting time in seconds below which a model is refitted during the question."""
MAX_REST_S = 10.0
"""Longest pause after fitting, in seconds, which leaves the processor to questions."""


class UntaughtError(Exception):
    """A follower needs a model that it has not received."""


class BackgroundLearner:
    """A supervised loop that runs fitting jobs one after the other, and ends when none is left.

    After each job it pauses as long as the job took, up to `MAX_REST_S`.

    Args:
        name: name of the loop in readiness and log.
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
        """State of the loop."""
        return self._loop.state

    def hear(self, hear: Hear) -> None:
        """Call `hear` when the loop fails or recovers."""
        self._loop.hear = hear

    def submit(self, name: str, job: Callable[[], None]) -> None:
        """Queue a job; replaces a waiting job of the same name."""
        with self._state:
            self._jobs[name] = job
            if not self._works:
                self._works = True
                self._loop.start()

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until no job is left; False after `timeout_s` seconds."""
        with self._state:
            self._hurried += 1
            self._state.notify_all()
            done = self._state.wait_for(lambda: not self._works, timeout_s)
            self._hurried -= 1
            return done

    def _learn_next(self) -> bool:
        """Run one job, then pause; True if no job is left."""
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
    """Ignores jobs; models come from another process (`readbench.cases._processes`)."""

    learns = False

    def submit(self, name: str, job: Callable[[], None]) -> None:
        """Ignore the job."""


def work_half_time(work: Callable[[Item], T], items: Sequence[Item], /) -> Iterator[T]:
    """`map` with a pause after each item as long as it took."""
    for item in items:
        began = time.perf_counter()
        yield work(item)
        pause(min(time.perf_counter() - began, MAX_REST_S))


@dataclass(frozen=True, eq=False)
class Learned(Generic[T]):
    """A model fitted on a snapshot.

    Args:
        key: key of the state that it depends on.
        snapshot: the snapshot.
        value: the model.
        seconds: fitting time.
    """

    key: str
    snapshot: Snapshot
    value: T
    seconds: float


class Kept(Generic[T]):
    """One model that is refitted when the library changes.

    Args:
        name: name of the model.
        key_of: key of the state that the model depends on, from a snapshot.
        learn: fits the model on a snapshot, given the last model and a progress callback.
        learner: fits in the background; None fits during the question.
        latest: returns the present snapshot, for the background.
        lasting: True if a follower may use the model of an earlier state however quickly it is fitted.

    Attributes:
        known: the last fitted model.
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
        """Model of a snapshot, or the last one while the background fits it."""
        known, key = self.known, self._key_of(snapshot)
        if known is not None and known.key == key:
            return known
        if known is None or self._learner is None or self._is_quick(known) or self._failed == key:
            return self.learn_now(snapshot, progress)
        self._learner.submit(self.name, self._learn_latest)
        return known

    def _is_quick(self, known: Learned[T]) -> bool:
        """True if the model is refitted during the question, since that is fast."""
        learns = self._learner is None or self._learner.learns
        return known.seconds < (QUICK_S if learns or not self._lasting else QUICK_S / 10)

    def count_behind(self, learned: Learned[T], snapshot: Snapshot) -> int:
        """Number of changes since a model was fitted, up to a snapshot; 0 if none affects it."""
        if learned.key == self._key_of(snapshot):
            return 0
        return max(1, snapshot.state.change - learned.snapshot.state.change)

    def learn_now(self, snapshot: Snapshot, progress: Progress = SILENT) -> Learned[T]:
        """Fit the model on a snapshot now."""
        key = self._key_of(snapshot)
        with self._lock:  # one of several waiting threads fits it
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
        """Fit in the background; an error is raised again by the next question."""
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
