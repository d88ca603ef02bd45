"""What threads share: a lock for objects that travel between processes, and libraries that use threads themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from types import TracebackType
from typing import Any, Self


class TravellingLock:
    """A lock that its holder can be pickled or copied with: the copy has another one, which nobody holds.

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
    """Counts who computes on one thread: the limit belongs to the process, and the last to leave takes it away."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limits: list[Any] = []
        self._controller: Any = None
        self._modules = 0

    def enter(self) -> None:
        """One more."""
        with self._lock:
            self._inside += 1
            if self._modules != len(sys.modules):  # a library may have been loaded since
                from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - slow to import

                self._modules, self._controller = len(sys.modules), ThreadpoolController()
            elif self._limits:
                return
            _let_this_thread_decide()
            self._limits.append(self._controller.limit(limits=1))

    def leave(self) -> None:
        """One less."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _let_this_thread_decide()
                while self._limits:
                    self._limits.pop().restore_original_limits()
                _let_this_thread_decide()  # and the next


def _let_this_thread_decide() -> None:
    """Of OpenBLAS, newer versions of threadpoolctl hear the first thread only that sets a limit, and ignore others."""
    from threadpoolctl import OpenBLASController  # noqa: PLC0415 - slow to import

    forget = getattr(OpenBLASController, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)


_PRODUCTS = _Products()


@contextmanager
def one_thread_for_products() -> Iterator[None]:
    """Matrix products and decompositions on one thread, as long as any thread is inside; also a decorator.

    The order of their sums depends on how many threads they use, and with it the last bits. On a busy machine the
    threads of small products wait for each other besides. Our compiled kernels use threads all the same.

    >>> @one_thread_for_products()
    ... def multiply(a, b):
    ...     return a @ b
    """
    _PRODUCTS.enter()
    try:
        yield
    finally:
        _PRODUCTS.leave()
