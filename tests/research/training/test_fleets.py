"""Plants of one design: what their units share, and the search across units."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import LENGTH, Draws
from research.training import data as room
from research.training.data import SyntheticFault, inject, plants
from research.training.loop import TINY, partners_elsewhere, same_fault_elsewhere
from research.training.make import found_elsewhere

UNITS, FAULTS, NORMALS, CHANNELS, SIZE = 3, 2, 2, 4, 5


def test_a_fleet_has_the_shapes_it_promises_and_lacks_some_channels() -> None:
    found = plants(Draws("cpu", 0), 6, 4, 2, 5, units=3)
    assert found.units == 3
    assert found.faulty.shape == (6, 2, 2, 4, LENGTH)
    assert found.normal.shape == (6, 5, 4, LENGTH)
    assert torch.isfinite(found.faulty).all()
    many = plants(Draws("cpu", 1), 60, 6, 1, 2, units=2).present
    assert 0.75 < many.float().mean() < 0.95
    assert plants(Draws("cpu", 1), 4, 6, 1, 2).present.all()


def test_units_of_a_fleet_have_the_same_faults_of_another_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[SyntheticFault] = []

    def noted(draws: Draws, series: Tensor, fault: SyntheticFault) -> Tensor:
        seen.append(fault)
        return inject(draws, series, fault)

    monkeypatch.setattr(room, "inject", noted)
    plants(Draws("cpu", 0), 8, 4, 3, 2, units=2)
    for fault in seen:  # those in processes, then those of sensors: plant by plant, so two units follow one another
        kinds, sizes = fault.kind.tolist(), fault.size.tolist()
        assert len(kinds) % 2 == 0
        assert sorted(kinds) == sorted(2 * sorted(kinds)[::2])
        assert len(set(sizes)) == len(sizes)


def slow_loss(faulty: Tensor, normal: Tensor, present: Tensor, temperature: float) -> float:
    """One window, one candidate at a time."""
    fleets = len(faulty) // UNITS
    losses = []
    for fleet in range(fleets):
        windows = []
        for unit in range(UNITS):
            plant = fleet * UNITS + unit
            usual = normal[plant].mean(0)
            for fault in range(FAULTS):
                windows += [(unit, fault, (faulty[plant, fault, k] - usual) * present[plant, :, None]) for k in (0, 1)]
            windows += [(unit, -1, (normal[plant, v] - usual) * present[plant, :, None]) for v in range(NORMALS)]
        for unit, fault, away in windows:
            if fault < 0:
                continue
            every = right = 0.0
            for other, kind, candidate in windows:
                if other == unit:
                    continue
                by_channel = torch.cosine_similarity(away.flatten(), candidate.flatten(), dim=0)
                on_average = torch.cosine_similarity(away.mean(0), candidate.mean(0), dim=0)
                weight = math.exp(float(by_channel + 0.5 * on_average) / temperature)
                every += weight
                right += weight * (kind == fault)
            losses.append(math.log(every / right))
    return sum(losses) / len(losses)


def test_the_loss_across_units_equals_a_slow_loop() -> None:
    draws = Draws("cpu", 0)
    faulty = draws.normal(2 * UNITS, FAULTS, 2, CHANNELS, SIZE)
    normal = draws.normal(2 * UNITS, NORMALS, CHANNELS, SIZE)
    present = draws.coin(0.7, 2 * UNITS, CHANNELS)
    found = float(same_fault_elsewhere(faulty, normal, present, UNITS, 0.5))
    assert found == pytest.approx(slow_loss(faulty, normal, present, 0.5), rel=1e-5)


def test_the_same_departure_on_every_unit_is_found_and_the_own_unit_never_asked() -> None:
    draws = Draws("cpu", 0)
    departure = draws.normal(1, FAULTS, 1, CHANNELS, SIZE)
    offset = 10 * draws.normal(UNITS, 1, CHANNELS, SIZE)
    normal = offset + 0.01 * draws.normal(UNITS, NORMALS, CHANNELS, SIZE)
    faulty = (offset.unsqueeze(2) + departure).expand(UNITS, FAULTS, 2, CHANNELS, SIZE)
    present = torch.ones(UNITS, CHANNELS, dtype=torch.bool)
    assert same_fault_elsewhere(faulty, normal, present, UNITS, 0.05) < 1e-3
    own, right = partners_elsewhere(FAULTS, NORMALS, UNITS, torch.device("cpu"))
    assert not (own & right).any()
    assert (right.sum(1) == 2 * (UNITS - 1)).all()


def test_the_probe_across_units_is_a_share_and_repeats() -> None:
    def level(series: Tensor) -> Tensor:
        return torch.stack([series.mean(-1), series.std(-1)], -1)

    found = found_elsewhere(level, "cpu", count=4)
    assert 0 < found < 1
    assert found_elsewhere(level, "cpu", count=4) == found


def test_plants_that_do_not_fill_fleets_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of units"):
        replace(TINY, plants=3, units=2)
