"""The plant of the live demonstration, and what a watch costs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="the case library needs LanceDB: pip install 'readbench[cases]'")

from research.live_plant import simulate_plant
from research.watching import measure_cost


def test_a_fault_that_begins_later_leaves_what_came_before_as_it_was() -> None:
    healthy = simulate_plant(899, "leak in tank 1", after=1)
    leaking = simulate_plant(600, "leak in tank 1", after=300)
    np.testing.assert_array_equal(healthy.values[:, :600], leaking.values[:, :600])
    level = leaking.channels.index("level_3")
    assert np.abs(healthy.values[level, 600:] - leaking.values[level, 600:]).max() > 0.5


def test_the_cost_of_a_watch_is_measured() -> None:
    cost = measure_cost(2)
    assert cost["channels"] == 50
    assert cost["channels_per_core"] > 500
    assert cost["held_bytes_per_channel"] < 10_000
