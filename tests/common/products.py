"""Prints how many threads products of matrices would use, before, inside and after `one_thread_for_products`.

A program, since the limit belongs to the process: nothing else computes or loads libraries in this one.
"""

from __future__ import annotations

import json
import sys
from threading import Event, Thread

import numpy as np
import scipy.linalg  # noqa: F401 - comes with another OpenBLAS than numpy
from threadpoolctl import threadpool_info, threadpool_limits

from readbench.common.sharing import one_thread_for_products


def product_threads() -> list[int]:
    """Numbers of threads that the libraries of products would use now, each once."""
    assert np.ones((2, 2)) @ np.ones(2) is not None
    return sorted({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})


def enter_twice() -> dict[str, list[int]]:
    """One thread inside another use."""
    with one_thread_for_products(), one_thread_for_products():
        inside = product_threads()
    return {"inside": inside, "after": product_threads()}


def leave_before_another() -> dict[str, list[int]]:
    """The first to enter leaves while another thread is inside."""
    entered, leave = Event(), Event()

    def stay() -> None:
        with one_thread_for_products():
            entered.set()
            leave.wait(60)

    other = Thread(target=stay)
    with one_thread_for_products():
        other.start()
        assert entered.wait(60)
    inside = product_threads()
    leave.set()
    other.join()
    return {"inside": inside, "after": product_threads()}


def enter_in_another_thread() -> dict[str, list[int]]:
    """The main thread has set a limit, and another one sets its own."""
    inside: list[list[int]] = []

    def compute() -> None:
        with one_thread_for_products():
            inside.append(product_threads())

    worker = Thread(target=compute)
    worker.start()
    worker.join(60)
    return {"inside": inside[0], "after": product_threads()}


if __name__ == "__main__":
    found = {}
    for observe in (enter_twice, leave_before_another, enter_in_another_thread):
        with threadpool_limits(2):
            found[observe.__name__] = {"before": product_threads()} | observe()
    sys.stdout.write(json.dumps(found))
