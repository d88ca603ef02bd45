"""One thread for products while anybody is inside, and what the process had before once all have left."""

from __future__ import annotations

import copy
import pickle
from threading import Event, Thread

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from readbench.common.sharing import TravellingLock, one_thread_for_products


def product_threads() -> set[int]:
    """Threads that the libraries of numpy's products would use now."""
    assert np.ones((2, 2)) @ np.ones(2) is not None
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_products_have_one_thread_inside_and_as_many_as_before_outside() -> None:
    with threadpool_limits(2):
        with one_thread_for_products(), one_thread_for_products():
            assert product_threads() == {1}
        assert product_threads() == {2}


def test_who_leaves_first_takes_nothing_from_who_is_still_inside() -> None:
    entered, leave = Event(), Event()

    def stay() -> None:
        with one_thread_for_products():
            entered.set()
            leave.wait(60)

    with threadpool_limits(2):
        usual = product_threads()
        other = Thread(target=stay)
        with one_thread_for_products():
            other.start()
            assert entered.wait(60)
        assert product_threads() == {1}
        leave.set()
        other.join()
        assert product_threads() == usual


def test_any_thread_may_be_the_one_that_computes() -> None:
    inside: list[set[int]] = []

    def compute() -> None:
        with one_thread_for_products():
            inside.append(product_threads())

    with threadpool_limits(2):  # the main thread has set a limit, and this other one sets its own
        worker = Thread(target=compute)
        worker.start()
        worker.join(60)
        assert inside == [{1}]
        assert product_threads() == {2}


def test_the_copy_of_a_held_lock_is_free() -> None:
    with TravellingLock() as lock:
        for other in (pickle.loads(pickle.dumps(lock)), copy.deepcopy(lock)):  # noqa: S301 - our own bytes
            taken = Thread(target=other.__enter__)
            taken.start()
            taken.join(60)
            assert not taken.is_alive()
