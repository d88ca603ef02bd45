"""What a method is shown says nothing beside its values: spies that look at structure alone find what chance finds.

A spy compares windows by one number that no value goes into: where they stand, which number or address something has,
how many windows share it, how long it is. Whether a window brings a time before, and which channels it has, is content.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate, expect
from readbench.benchmark.protocol import Task, load_task
from readbench.engine.context import Context, Matrix
from readbench.engine.legs import conceal
from readbench.engine.ranking import rank
from readbench.engine.registry import SOURCES
from readbench.engine.windows import WindowSet
from readbench.errors import DataError

Numbers = NDArray[np.floating[Any]]
Look = Callable[[WindowSet, Context], Numbers]
HEADLINE = "NDCG@10"
BEYOND_CHANCE = 0.1
"""What a spy may find more than chance on average: of some hundred queries, or of three splits."""


def ranks(numbers: NDArray[np.generic], there: NDArray[np.bool_]) -> Numbers:
    """Places of numbers from 0 to 1; drawn for windows that have none, so that only numbers count."""
    distinct, drawn = np.unique(numbers[there]), np.random.default_rng(0).random(len(there))
    return np.where(there, np.searchsorted(distinct, numbers) / max(1, len(distinct)), drawn)


def count_alike(numbers: NDArray[np.generic], there: NDArray[np.bool_]) -> Numbers:
    """How many windows have the same number."""
    own = np.where(there, numbers, -1 - np.arange(len(numbers)))
    _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
    return np.log(counts[place])


def addresses(windows: WindowSet) -> NDArray[np.int64]:
    return np.array([window.values.ctypes.data for window in windows])


def everywhere(windows: WindowSet) -> NDArray[np.bool_]:
    return np.ones(len(windows), bool)


def measure(context: Context, what: Callable[[Matrix], int]) -> NDArray[np.int64]:
    """A number of each time before; zero without one."""
    befores = (context.before_of(i) for i in range(len(context)))
    return np.array([0 if before is None else what(before) for before in befores])


def addresses_before(context: Context) -> NDArray[np.int64]:
    return measure(context, lambda before: before.ctypes.data)


LOOKS: dict[str, Look] = {
    "place": lambda windows, _: np.arange(len(windows)) / len(windows),
    "id": lambda windows, _: ranks(windows.ids.astype(np.int64), everywhere(windows)),
    "address": lambda windows, _: ranks(addresses(windows), everywhere(windows)),
    "chunk": lambda windows, _: windows.chunk.astype(float),
    "offset": lambda windows, _: ranks(windows.offset, everywhere(windows)),
    "type": lambda windows, _: np.array([float(window.values.dtype.num) for window in windows]),
    "number of the time before": lambda _, context: ranks(context.before, context.has_before),
    "address of the time before": lambda _, context: ranks(addresses_before(context), context.has_before),
    "windows with the same time before": lambda _, context: count_alike(context.before, context.has_before),
    "windows at the same address": lambda _, context: count_alike(addresses_before(context), context.has_before),
    "type of the time before": lambda _, context: 1.0 * measure(context, lambda before: before.dtype.num),
    "lent": lambda _, context: context.lent.astype(float),
    "number of the channels": lambda windows, _: ranks(windows.channel_set, everywhere(windows)),
    "number of the units": lambda _, context: ranks(context.unit_set, context.unit_set >= 0),
    "length": lambda windows, _: windows.lengths.astype(float),
    "length of the time before": lambda _, context: 1.0 * measure(context, lambda before: before.shape[1]),
}
SEEN = {
    "mit_bih": {"type of the time before", "length of the time before"},  # patients who are never normal bring none
    "petrobras_3w": {"number of the channels", "number of the units", "length of the time before"},  # channels differ
    "road": {"length of the time before"},  # few logs, in each of which the attack begins at another time
    "skab": {"length of the time before"},  # some faults are imposed sooner after the start than others
}
"""Where structure follows from what was recorded, which a user's windows show as well."""


def look_at(task: Task, look: Look) -> float:
    """What a spy finds beyond chance."""
    corpus = task.corpus_at(0)
    queries, items = (
        look(shown, shown.context or Context.unknown(len(shown))) for shown in map(conceal, (task.queries, corpus))
    )
    order = rank(-np.abs(queries[:, None] - items).astype(np.float32), 10)
    labels = task.queries.labels, corpus.labels
    return float((evaluate(order, *labels, [HEADLINE]).values[HEADLINE] - expect(*labels, HEADLINE)).mean())


def find_beyond_chance(name: str, seeds: range, root: Path | None = None) -> dict[str, float]:
    """What spies find beyond chance on average; those that find no more than `BEYOND_CHANCE` are left out."""
    tasks = [load_task(name, seed, root) for seed in seeds]
    found = {name: float(np.mean([look_at(task, look) for task in tasks])) for name, look in LOOKS.items()}
    return {name: beyond for name, beyond in found.items() if beyond > BEYOND_CHANCE}


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in SOURCES if entry.build().info.generated])
def test_structure_says_nothing_of_a_simulated_fault(name: str) -> None:
    assert find_beyond_chance(name, range(1)) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", [entry.name for entry in SOURCES if not entry.build().info.generated])
def test_structure_says_nothing_of_a_recorded_fault(name: str, real_data: Path) -> None:
    try:
        found = find_beyond_chance(name, range(3), real_data)
    except DataError as absent:  # files, or queries in the few files that are there
        pytest.skip(str(absent))
    assert found.keys() <= SEEN.get(name, set()), found
