"""Sharing between threads: a picklable lock, and one thread for BLAS products."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from types import TracebackType
from typing import Any, Self


class TravellingLock:
    """A lock that can be pickled and copied with its owner; the copy is a new, free lock.

    >>> import pickle
    >>> with TravellingLock() as lock:
    ...     with pickle.loads(pickle.dumps(lock)) as other:
    ...         print(other is lock)
    False
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[TravellingLock], tuple[()]]:
        return TravellingLock, ()


class _Products:
    """Counts the threads inside `one_thread_for_products`; the limit is per process and the last one lifts it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limits: list[Any] = []
        self._controller: Any = None
        self._modules = 0

    def enter(self) -> None:
        """Enter; the first thread sets the limit."""
        with self._lock:
            self._inside += 1
            if self._modules != len(sys.modules):  # a newly loaded library needs the limit, too
                from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - slow to import

                self._modules, self._controller = len(sys.modules), ThreadpoolController()
            elif self._limits:
                return
            _let_this_thread_decide()
            self._limits.append(self._controller.limit(limits=1))

    def leave(self) -> None:
        """Leave; the last thread lifts the limit."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _let_this_thread_decide()
                while self._limits:
                    self._limits.pop().restore_original_limits()
                _let_this_thread_decide()  # frees the limit for the next thread


def _let_this_thread_decide() -> None:
    """Let this thread set limits of OpenBLAS: newer threadpoolctl obeys only the first thread that set one."""
    from threadpoolctl import OpenBLASController  # noqa: PLC0415 - slow to import

    forget = getattr(OpenBLASController, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)


_PRODUCTS = _Products()


@contextmanager
def one_thread_for_products() -> Iterator[None]:
    """Run matrix products and decompositions on one thread while any thread is inside; also a decorator.

    The number of threads decides the order of their sums, and so the last bits. On a busy machine the threads of
    small products also wait for each other. Our compiled kernels stay multi-threaded.

    >>> @one_thread_for_products()
    ... def multiply(a, b):
    ...     return a @ b
    """
    _PRODUCTS.enter()
    try:
        yield
    finally:
        _PRODUCTS.leave()
