"""Several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.queues import SimpleQueue
from threading import Event, Thread
from typing import Any

from readbench.experiment.executors.base import TRIES, Item, Lost, Result, Work
from readbench.pipeline import Progress

News = int | tuple[str, int, int]
"""From a worker: the number of the item it begins, or how far an encoding has come."""
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
        self, work: Work[Item, Result], items: Sequence[Item], encoding: Progress
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Each item with its result; see `Executor`."""
        waiting, deaths = dict(enumerate(items)), Counter[int]()
        while waiting:
            begun: set[int] = set()
            try:
                for number, result in self._ended(work, _next(waiting, deaths), encoding, begun):
                    yield waiting.pop(number), result
            except BrokenProcessPool:
                deaths.update(begun & waiting.keys())
            for number in [n for n in waiting if deaths[n] >= TRIES]:
                yield waiting.pop(number), Lost()

    def _ended(
        self, work: Work[Item, Result], items: Mapping[int, Item], encoding: Progress, begun: set[int]
    ) -> Iterator[tuple[int, Result]]:
        """Numbers and results of the items, until all ended or a worker died; `begun` is filled on the way."""
        context = multiprocessing.get_context("spawn")
        news: SimpleQueue[News] = context.SimpleQueue()
        prepared: dict[str, Any] = {"initializer": _prepare, "initargs": (self._threads, news)}
        with (
            _heard(news, encoding, begun),
            ProcessPoolExecutor(min(self.workers, len(items)), mp_context=context, **prepared) as pool,
        ):
            numbers = {pool.submit(_work, work, number, item): number for number, item in items.items()}
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
def _heard(news: SimpleQueue[News], encoding: Progress, begun: set[int]) -> Iterator[None]:
    """Take in what the workers tell, until the block ends.

    The end is not told through the queue itself: a worker that was killed while it wrote still holds the queue's lock.
    """
    ended = Event()

    def listen() -> None:
        while True:
            last = ended.is_set()
            while not news.empty():
                item = news.get()
                if isinstance(item, int):
                    begun.add(item)
                else:
                    encoding(*item)
            if last:
                return
            ended.wait(PAUSE_S)

    thread = Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _prepare(threads: int, news: SimpleQueue[News]) -> None:
    """In a worker: share the processors, unless the user said how many threads to use, and know where news go."""
    os.environ.setdefault("READBENCH_THREADS", str(threads))
    _worker_news.append(news)


def _work(work: Work[Item, Result], number: int, item: Item) -> Result:
    """In a worker: say what begins, and do it."""
    news = _worker_news[0]
    news.put(number)
    return work(item, lambda leg, done, total: news.put((leg, done, total)))
