"""Where work runs: in this process, in several, or on a Ray cluster; the same results everywhere.

Executors by name.

What an executor is.

One item after the other, in this process.

Results in the order of the items, wherever the work runs.

Several processes of this machine.

A Ray cluster, or Ray on this machine alone.
"""

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
"""A function of a module, so that other processes can find it; it is told where to report how far it has come."""

TRIES = 3
"""How often an item is begun before it is given up, where the worker that has it dies each time."""


@dataclass(frozen=True)
class LostItem:
    """In place of a result: no worker lived long enough to finish the item."""

    reason: str = (
        f"the worker died {TRIES} times on this job. Out of memory? Run with fewer jobs side by side, or on a larger"
        " machine."
    )


class Executor(Protocol):
    """Does the same work on many items.

    Items may end in any order. A worker that dies (killed, out of memory, its machine lost) costs nothing but time:
    what it was at is begun again elsewhere, `TRIES` times in all. An exception in the work itself is the caller's.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result, as it ends.

        Args:
            work: what to do with one item.
            items: what can be sent to other processes.
            progress: told how far the work on an item has come.
        """
        ...


class Local:
    """Does everything itself, in the order given."""

    name = "local"

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        """Each item with its result; see `Executor`."""
        for item in items:
            yield item, work(item, progress)


class InOrder:
    """An executor that is used like `map`.

    Args:
        executor: where items are worked on; results that come early wait for those before them.

    >>> from readbench.benchmark.runs import Local
    >>> list(InOrder(Local())(abs, [-3, 2]))
    [3, 2]
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        """Each result; an item that kills every worker is an error."""
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
"""From a worker: the number of the item it begins, or how far it has come."""
_worker_news: list[SimpleQueue[News]] = []
"""In a worker: where its news go."""
PAUSE_S = 0.02
"""How long the reader of the news waits when there are none."""


class Processes:
    """A pool of processes; each uses its share of the processors.

    When a worker dies, the pool dies with it. Items that were begun and did not end are then tried alone, one after
    the other, so that only the one that kills its worker is given up; the others go on in a new pool.

    Args:
        workers: number of processes.
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
        """Numbers and results of the items, until all ended or a worker died; `begun` is filled on the way."""
        context = multiprocessing.get_context("spawn")
        news: SimpleQueue[News] = context.SimpleQueue()
        prepared: dict[str, Any] = {"initializer": _prepare, "initargs": (self._threads, news)}
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

    @property
    def _threads(self) -> int:
        return max(1, (os.cpu_count() or 1) // self.workers)


def _next(waiting: Mapping[int, Item], deaths: Counter[int]) -> Mapping[int, Item]:
    """The first item that was at work when a worker died, alone; without any, all."""
    suspect = next((number for number in waiting if deaths[number]), None)
    return waiting if suspect is None else {suspect: waiting[suspect]}


@contextmanager
def _hear(news: SimpleQueue[News], progress: Progress, begun: set[int]) -> Iterator[None]:
    """Take in what the workers tell, until the block ends.

    The end is not told through the queue itself: a worker that was killed while it wrote still holds the queue's lock.
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
    """In a worker: share the processors, unless the user said how many threads to use, and know where news go."""
    os.environ.setdefault("READBENCH_THREADS", str(threads))
    _worker_news.append(news)


def _work_in_process(work: Work[Item, Result], number: int, item: Item) -> Result:
    """In a worker: say what begins, and do it."""
    news = _worker_news[0]
    news.put(number)
    return work(item, lambda *told: news.put(told))


VARIABLES = "READBENCH_"
"""Variables of the caller with this beginning hold on every node."""


class RayCluster:
    """Work on all nodes of a Ray cluster, one processor an item.

    Ray itself begins an item again when its worker or its whole node is lost. How far items have come is not told
    across machines.

    Args:
        address: of a running cluster (`auto`, `head:6379`); without one the cluster that this
            process is connected to, else one that lives on this machine as long as the work.
        gpus: that each item needs; Ray then runs as many items at a time as there are GPUs, each with its own.
    """

    name = "ray"

    def __init__(self, address: str | None = None, gpus: float = 0) -> None:
        self.address = address
        self.gpus = gpus

    def connected(self) -> AbstractContextManager[None]:
        """Hold one connection for several calls of `map`, each of which would else make its own."""
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
    """Use the connection that is there, or hold one as long as the block lasts."""
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
    """Variables of the caller that every node needs; an item has one processor, so one thread unless told otherwise."""
    own = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
    return {"READBENCH_THREADS": "1"} | own


def _result(ray: Any, reference: Any) -> Any:  # noqa: ANN401
    """The result behind a reference; errors of the work are raised as they were."""
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
    """The executor of a name; without one, processes where several are asked for.

    Args:
        name: `local`, `processes` or `ray`.
        workers: number of processes; Ray uses all processors of its cluster.
        address: of a running Ray cluster.
        gpus: that each item on Ray needs; a share of one where several fit on it.

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
