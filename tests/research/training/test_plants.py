from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import LENGTH, Draws
from research.training import data as room
from research.training.data import (
    FEWEST_READINGS,
    PROCESSES,
    Plants,
    SyntheticFault,
    _at,
    _mixture,
    inject,
    plants,
    sampled,
)


def drawn(seed: int = 0, count: int = 12, channels: int = 5, faults: int = 1) -> Plants:
    return plants(Draws("cpu", seed), count, channels, faults, normals=4)


def test_plants_have_the_shapes_they_promise() -> None:
    found = plants(Draws("cpu", 0), 3, 4, 2, 5)
    assert found.faulty.shape == (3, 2, 2, 4, LENGTH)
    assert found.normal.shape == (3, 5, 4, LENGTH)
    assert torch.isfinite(found.faulty).all()
    assert found.faulty.abs().max() <= 30


def test_channels_are_scaled_by_normal_operation() -> None:
    """A channel that barely moves while nothing is wrong is not blown up beyond the floor of its scale."""
    usual = drawn(faults=3).normal.transpose(1, 2).flatten(2)
    assert usual.mean(-1).abs().max() < 0.05
    spread = usual.std(-1)
    assert ((spread - 1).abs() < 0.05).float().mean() > 0.9
    assert spread.max() < 1.01


def test_a_fault_reaches_only_channels_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same plants without their faults: a sensor fault changes one channel, a process fault its readers."""
    readers: list[Tensor] = []
    plain = _mixture

    def noted(draws: Draws, hidden: Tensor, channels: int, units: int) -> Tensor:
        state = draws.generator.get_state()
        draws.normal(len(hidden), channels, PROCESSES)
        readers.append(draws.coin(0.5, len(hidden), channels, PROCESSES))
        draws.generator.set_state(state)
        return plain(draws, hidden, channels, units)

    def harmless(draws: Draws, series: Tensor, fault: SyntheticFault) -> Tensor:
        inject(draws, series, fault)
        return series

    monkeypatch.setattr(room, "_mixture", noted)
    most = 0
    for seed in range(4):
        faulty = drawn(seed).faulty
        with monkeypatch.context() as patch:
            patch.setattr(room, "inject", harmless)
            sound = drawn(seed).faulty
        reached = (faulty != sound).flatten(1, 2).any(-1).any(1)
        for own, reads in zip(reached, readers[-1], strict=True):
            by_process = [torch.equal(own, reads[:, m]) for m in range(PROCESSES)]
            assert own.sum() == 1 or any(by_process) or not own.any()
            most = max(most, int(own.sum()))
    assert most > 1


def test_faults_lie_in_their_own_windows_and_nowhere_else() -> None:
    draws, series = Draws("cpu", 0), torch.randn(4, 3, 8, LENGTH)
    where, chosen = draws.choice(3, 4, 3), draws.coin(0.5, 4, 3)
    fault = SyntheticFault.draw(draws, 12)
    changed = _at(draws, series, fault, where, chosen, 3) != series
    for plant in range(4):
        for row in range(3):
            for view in range(8):
                f = view // 2
                may = f < 3 and bool(chosen[plant, f]) and int(where[plant, f]) == row
                assert may or not changed[plant, row, view].any()
    assert changed.any()


def test_no_fault_chosen_changes_nothing() -> None:
    draws, series = Draws("cpu", 0), torch.randn(2, 3, 4, LENGTH)
    fault, where = SyntheticFault.draw(draws, 2), torch.zeros(2, 1).long()
    assert torch.equal(_at(draws, series, fault, where, torch.zeros(2, 1).bool(), 1), series)


def test_a_mixture_equals_a_slow_loop() -> None:
    hidden, again = torch.randn(2, PROCESSES, 3, LENGTH), Draws("cpu", 7)
    gain = (again.normal(2, 4, PROCESSES) * again.coin(0.5, 2, 4, PROCESSES)).tolist()
    lags = [again.uniform(2, 4, 1, 1, high=0.08).tolist() for _ in range(PROCESSES)]
    grid, found = np.linspace(0, 1, LENGTH), _mixture(Draws("cpu", 7), hidden, 4)
    for p in range(2):
        for c in range(4):
            for v in range(3):
                expected = np.zeros(LENGTH)
                for m in range(PROCESSES):
                    expected += gain[p][c][m] * np.interp(grid - lags[m][p][c][0][0], grid, hidden[p, m, v])
                np.testing.assert_allclose(found[p, c, v], expected, atol=2e-3)


def test_coarsely_sampled_series_are_straight_between_few_readings() -> None:
    series = torch.randn(200, 3, LENGTH, generator=torch.Generator().manual_seed(0))
    found = sampled(Draws("cpu", 0), series, 0.5)
    changed = (found != series).flatten(1).any(1)
    assert 0.35 < changed.float().mean() < 0.65
    assert torch.equal(sampled(Draws("cpu", 0), series, 0.0), series)
    for number, own in enumerate(found[changed]):
        again = Draws("cpu", 0)
        steps = (again.scale(FEWEST_READINGS, LENGTH, 200, 1, 1).round() - 1)[changed][number]
        grid, readings = np.linspace(0, 1, LENGTH), np.linspace(0, 1, int(steps) + 1)
        for view, values in zip(own, series[changed][number], strict=True):
            expected = np.interp(grid, readings, np.interp(readings, grid, values))
            np.testing.assert_allclose(view, expected, atol=2e-3)


def test_the_same_seed_gives_the_same_plants() -> None:
    one, two, other = drawn(0), drawn(0), drawn(1)
    assert torch.equal(one.faulty, two.faulty)
    assert torch.equal(one.normal, two.normal)
    assert not torch.equal(one.faulty, other.faulty)
