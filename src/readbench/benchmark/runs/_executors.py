"""Executors of work on many items: in this process, in several, or on a Ray cluster; results are the same."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.queues import SimpleQueue
from threading import Event
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from readbench.common.progress import SILENT, Progress
from readbench.common.supervised import SupervisedLoop
from readbench.errors import RunError, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")
Work: TypeAlias = Callable[[Item, Progress], Result]
"""A function of a module, so that other processes can import it."""

TRIES = 3
"""Number of attempts at an item whose worker dies."""


@dataclass(frozen=True)
class LostItem:
    """Result of an item whose workers all died."""

    reason: str = (
        f"the worker died {TRIES} times on this job. Out of memory? Run with fewer jobs side by side, or on a larger"
        " machine."
    )


class Executor(Protocol):
    """Runs the same work on many items, which may end in any order.

    An item whose worker dies (killed, out of memory, lost machine) is tried `TRIES` times. Exceptions of the work reach
    the caller.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result when it ends; items must be picklable, and `progress` is called as they advance."""
        ...


class Local:
    """Runs all items in this process, in order."""

    name = "local"

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result; see `Executor`."""
        for item in items:
            yield item, work(item, progress)


class InOrder:
    """An executor used like `map`: results are in the order of the items.

    >>> from readbench.benchmark.runs import Local
    >>> list(InOrder(Local())(abs, [-3, 2]))
    [3, 2]
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        """Each result; a lost item is a `RunError`."""
        early: dict[int, Result] = {}
        due = 0
        for (number, item), result in self.executor.map(partial(_work, work), list(enumerate(items)), SILENT):
            if isinstance(result, LostItem):
                raise RunError(f"{item}: {result.reason}")
            early[number] = result
            while due in early:
                yield early.pop(due)
                due += 1


def _work(work: Callable[[Item], Result], item: tuple[int, Item], progress: Progress) -> Result:  # noqa: ARG001
    return work(item[1])


News = int | tuple[str, int, int | None]
"""Message of a worker: number of the item that it begins, or its progress."""
_worker_news: list[SimpleQueue[News]] = []
"""In a worker: the queue of its messages."""
PAUSE_S = 0.02
"""Seconds between two reads of an empty queue."""


class Processes:
    """A pool of processes that share the processors.

    A worker that dies breaks the pool. Items that had begun are then tried alone, so that only the one that kills its
    worker is given up; the others continue in a new pool.
    """

    name = "processes"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result; see `Executor`."""
        waiting, deaths = dict(enumerate(items)), Counter[int]()
        while waiting:
            begun: set[int] = set()
            try:
                for number, result in self._ended(work, _next(waiting, deaths), progress, begun):
                    yield waiting.pop(number), result
            except BrokenProcessPool:
                deaths.update(begun & waiting.keys())
            for number in [n for n in waiting if deaths[n] >= TRIES]:
                yield waiting.pop(number), LostItem()

    def _ended(
        self, work: Work[Item, Result], items: Mapping[int, Item], progress: Progress, begun: set[int]
    ) -> Iterator[tuple[int, Result]]:
        """Numbers and results of the items until all ended or a worker died; adds begun ones to `begun`."""
        context = multiprocessing.get_context("spawn")
        news: SimpleQueue[News] = context.SimpleQueue()
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        prepared: dict[str, Any] = {"initializer": _prepare, "initargs": (threads, news)}
        with (
            _hear(news, progress, begun),
            ProcessPoolExecutor(min(self.workers, len(items)), mp_context=context, **prepared) as pool,
        ):
            numbers = {pool.submit(_work_in_process, work, number, item): number for number, item in items.items()}
            try:
                for future in as_completed(numbers):
                    yield numbers[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _next(waiting: Mapping[int, Item], deaths: Counter[int]) -> Mapping[int, Item]:
    """The first item that was running when a worker died; without any, all."""
    suspect = next((number for number in waiting if deaths[number]), None)
    return waiting if suspect is None else {suspect: waiting[suspect]}


@contextmanager
def _hear(news: SimpleQueue[News], progress: Progress, begun: set[int]) -> Iterator[None]:
    """Read the messages of the workers until the block ends.

    The end is not sent through the queue, since a worker that was killed while writing still holds its lock.
    """
    ended = Event()

    def listen() -> bool:
        last = ended.is_set()
        while not news.empty():
            item = news.get()
            if isinstance(item, int):
                begun.add(item)
            else:
                progress(*item)
        if not last:
            ended.wait(PAUSE_S)
        return last

    listener = SupervisedLoop("hears workers", listen).start()
    try:
        yield
    finally:
        ended.set()
        listener.join()


def _prepare(threads: int, news: SimpleQueue[News]) -> None:
    """In a worker: set the number of threads unless the user did, and keep the queue."""
    os.environ.setdefault("READBENCH_THREADS", str(threads))
    _worker_news.append(news)


def _work_in_process(work: Work[Item, Result], number: int, item: Item) -> Result:
    """In a worker: report the item and run it."""
    news = _worker_news[0]
    news.put(number)
    return work(item, lambda *told: news.put(told))


VARIABLES = "READBENCH_"
"""Prefix of environment variables that are sent to every node."""


class RayCluster:
    """Runs items on all nodes of a Ray cluster, one processor each; Ray retries lost items. Progress is not reported.

    Args:
        address: address of a running cluster (`auto`, `head:6379`); by default the connected one, else a local one.
        gpus: GPUs per item; may be a fraction.
    """

    name = "ray"

    def __init__(self, address: str | None = None, gpus: float = 0) -> None:
        self.address = address
        self.gpus = gpus

    def connected(self) -> AbstractContextManager[None]:
        """Hold one connection for several calls of `map`."""
        return _connected(_ray(), self.address)

    def map(
        self,
        work: Work[Item, Result],
        items: Sequence[Item],
        progress: Progress,  # noqa: ARG002 - part of the protocol
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result; see `Executor`."""
        ray = _ray()
        with self.connected():
            needs = {"num_cpus": 1, "num_gpus": self.gpus, "runtime_env": {"env_vars": _variables()}}
            remote = ray.remote(max_retries=TRIES - 1, **needs)(_work_on_ray)
            pending = {remote.remote(work, item): item for item in items}
            try:
                while pending:
                    for ended in ray.wait(list(pending))[0]:
                        yield pending.pop(ended), _result(ray, ended)
            finally:
                for unfinished in pending:
                    ray.cancel(unfinished, force=True)


def _ray() -> Any:  # noqa: ANN401 - an optional package has no types here
    try:
        import ray  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "--executor ray needs Ray, which is not installed: pip install 'readbench[cluster]'."
            " Without it, --executor processes uses all processors of this machine."
        ) from error
    return ray


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:  # noqa: ANN401
    """Use the open connection, or hold one during the block."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", include_dashboard=None if address else False)
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"No Ray cluster answers at {address!r}: {error}. Start one: ray start --head") from error
    try:
        yield
    finally:
        ray.shutdown()


def _variables() -> dict[str, str]:
    """Environment variables for every node; an item has one processor, so one thread by default."""
    given = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
    return {"READBENCH_THREADS": "1"} | given


def _result(ray: Any, reference: Any) -> Any:  # noqa: ANN401
    """The result of a reference; raises the errors of the work."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        return LostItem(f"{LostItem().reason} Ray says: {' '.join(str(error).split())[:300]}")


def _work_on_ray(work: Work[Item, Result], item: Item) -> Result:
    return work(item, SILENT)


ExecutorName = Literal["local", "processes", "ray"]


def executor_of(
    name: ExecutorName | None = None, workers: int = 1, address: str | None = None, gpus: float = 0
) -> Executor:
    """The executor of a name; by default processes for several workers, else local.

    Args:
        name: `local`, `processes` or `ray`.
        workers: number of processes; Ray uses all processors of its cluster.
        address: address of a running Ray cluster.
        gpus: GPUs per item on Ray; may be a fraction.

    >>> executor_of(workers=4).name
    'processes'
    """
    if name == "ray":
        return RayCluster(address, gpus)
    if address or gpus:
        raise UsageError("--address and --gpus are for a Ray cluster: add --executor ray.")
    if name == "processes" or (name is None and workers > 1):
        return Processes(workers)
    return Local()
