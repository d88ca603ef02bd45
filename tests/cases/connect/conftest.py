"""Sources of signals: real servers, or a skip that says what is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.cases.connect import servers

START = float(int(time.time()) - 7200)
"""First reading of the history."""
STEPS = 400


def readings(seed: int = 0, steps: int = STEPS, *, gap: tuple[int, int] = (0, 0)) -> list[tuple[float, float]]:
    """One reading a second; none within a gap."""
    values = np.random.default_rng(seed).normal(size=steps)
    return [(START + i, float(np.round(values[i], 6))) for i in range(steps) if not gap[0] <= i < gap[1]]


def history() -> dict[str, list[tuple[float, float]]]:
    """Two rigs: of the second, the flow has a gap, and the pressure changes its unit after half the time."""
    pressure = readings(5)
    half = STEPS // 2
    return {
        'pressure{rig="a",unit="bar"}': readings(1),
        'flow{rig="a"}': readings(2),
        'speed{rig="a",shaft="1"}': readings(3),
        'flow{rig="b"}': readings(4, gap=(100, 180)),
        'pressure{rig="b",unit="bar"}': pressure[:half],
        'pressure{rig="b",unit="kPa"}': [(when, 100 * value) for when, value in pressure[half:]],
    }


@pytest.fixture(scope="session")
def prometheus() -> Iterator[str]:
    """Host and port of a Prometheus server with the history above."""
    with servers.prometheus(history()) as address:
        if address is None:
            pytest.skip("no Prometheus server: install it (Debian: apt install prometheus)")
        yield address


@pytest.fixture(scope="session")
def victoria() -> Iterator[str]:
    """Host and port of a VictoriaMetrics server with the history above."""
    with servers.victoria_metrics(history()) as address:
        if address is None:
            pytest.skip("no VictoriaMetrics server: install it (Debian: apt install victoria-metrics)")
        yield address
