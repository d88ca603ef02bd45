"""One thread for products while anybody is inside, and what the process had before once all have left."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from readbench.common.sharing import TravellingLock


@pytest.fixture(scope="module")
def product_threads() -> dict[str, dict[str, list[int]]]:
    """What `products.py` prints, in a process without the threads and libraries of other tests."""
    program = Path(__file__).with_name("products.py")
    return dict(json.loads(subprocess.run([sys.executable, program], check=True, stdout=subprocess.PIPE).stdout))


AS_MEANT = {"before": [2], "inside": [1], "after": [2]}


def test_products_have_one_thread_inside_and_as_many_as_before_outside(
    product_threads: dict[str, dict[str, list[int]]],
) -> None:
    assert product_threads["enter_twice"] == AS_MEANT


def test_who_leaves_first_takes_nothing_from_who_is_still_inside(
    product_threads: dict[str, dict[str, list[int]]],
) -> None:
    assert product_threads["leave_before_another"] == AS_MEANT


def test_any_thread_may_be_the_one_that_computes(product_threads: dict[str, dict[str, list[int]]]) -> None:
    assert product_threads["enter_in_another_thread"] == AS_MEANT


def test_the_copy_of_a_held_lock_is_free() -> None:
    with TravellingLock() as lock:
        for other in (pickle.loads(pickle.dumps(lock)), copy.deepcopy(lock)):  # noqa: S301 - our own bytes
            taken = Thread(target=other.__enter__)
            taken.start()
            taken.join(60)
            assert not taken.is_alive()
