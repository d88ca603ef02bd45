"""Blocks of numbers on their way to a GPU while the one before them is in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from readbench.engine.devices import import_optional

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float32]
Tensor = Any
"""Of torch, an optional package: its types cannot be named here."""

AHEAD = 2
"""Blocks that are read or sent while one is in use: one each."""


def prefetch(work: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """Results of jobs, in order; a thread does the next `AHEAD` of them while one is in use.

    >>> list(prefetch(str, range(5)))
    ['0', '1', '2', '3', '4']
    """
    with ThreadPoolExecutor(1) as worker:
        coming = deque(worker.submit(work, job) for job in jobs[:AHEAD])
        for number in range(len(jobs)):
            result = coming.popleft().result()
            if number + AHEAD < len(jobs):
                coming.append(worker.submit(work, jobs[number + AHEAD]))
            yield result


@dataclass(frozen=True, eq=False)
class Transfer:
    """Numbers on their way to a device; the event, of a GPU, is their arrival."""

    numbers: Tensor
    event: Any = None

    def wait(self) -> None:
        """Until they have arrived, and left the buffer they were sent from."""
        if self.event is not None:
            self.event.synchronize()

    def arrived(self) -> Tensor:
        """(n,) the numbers, for work that is given to the device from now on."""
        if self.event is not None:
            stream = import_optional("torch", "device=cuda").cuda.current_stream()
            stream.wait_event(self.event)
            self.numbers.record_stream(stream)
        return self.numbers


class Lane:
    """Sends numbers to a device of torch; to a GPU from pinned memory, in a stream of its own.

    Ask for a buffer, fill it, send it; `AHEAD` of them are in use by turns.

    Args:
        device: of torch.
    """

    def __init__(self, device: str) -> None:
        self._torch = import_optional("torch", "device=cuda")
        self._device = device
        self._stream = None if device == "cpu" else self._torch.cuda.Stream(device)
        self._buffers = deque(self._torch.empty(0) for _ in range(AHEAD))
        self._sent: deque[Transfer] = deque(maxlen=AHEAD)

    def buffer(self, size: int) -> Floats:
        """(size,) memory, once what was sent from it has left."""
        if len(self._sent) == AHEAD:
            self._sent[0].wait()
        self._buffers.rotate(-1)
        if len(self._buffers[0]) < size:
            self._buffers[0] = self._torch.empty(size, pin_memory=self._stream is not None)
        self._filled = self._buffers[0][:size]
        buffer: Floats = self._filled.numpy()
        return buffer

    def send(self) -> Transfer:
        """Send what the last buffer was filled with."""
        with nullcontext() if self._stream is None else self._torch.cuda.stream(self._stream):
            there = self._filled.to(self._device, non_blocking=True, copy=True)
            self._sent.append(Transfer(there, self._stream and self._stream.record_event()))
        return self._sent[-1]
