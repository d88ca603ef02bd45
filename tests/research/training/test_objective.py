from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from readbench.engine.encoders._channels import NormalOperation
from readbench.engine.encoders.sonde_network import LENGTH, Draws
from research.training.loop import (
    away_from_normal,
    departures,
    hidden_patches,
    reconstruction_error,
    same_fault,
    same_program,
)

TEMPERATURE = 0.07
FAULTY, NORMAL = torch.randn(2, 3, 2, 4, 5, generator=torch.Generator().manual_seed(0)), torch.randn(2, 6, 4, 5)


def cosine(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


def search_loss(likeness: dict[int, float], partner: int) -> float:
    """- log of the softmax of the partner among all others."""
    return -likeness[partner] + math.log(sum(math.exp(value) for value in likeness.values()))


def test_same_program_equals_a_slow_loop() -> None:
    first, second = torch.randn(5, 8), torch.randn(5, 8)
    every = torch.cat([first, second]).double().numpy()
    losses = []
    for i in range(10):
        likeness = {j: cosine(every[i], every[j]) / TEMPERATURE for j in range(10) if j != i}
        losses.append(search_loss(likeness, (i + 5) % 10))
    assert float(same_program(first, second, TEMPERATURE)) == pytest.approx(np.mean(losses), rel=1e-4)


def test_same_fault_equals_a_slow_loop() -> None:
    losses = []
    for faulty, normal in zip(FAULTY.double().numpy(), NORMAL.double().numpy(), strict=True):
        windows = [faulty[f, v] for f in range(3) for v in range(2)] + list(normal)
        away = [(window - normal.mean(axis=0)).ravel() for window in windows]
        for i in range(6):
            likeness = {j: cosine(away[i], away[j]) / TEMPERATURE for j in range(len(away)) if j != i}
            losses.append(search_loss(likeness, i + 1 if i % 2 == 0 else i - 1))
    assert float(same_fault(FAULTY, NORMAL, TEMPERATURE)) == pytest.approx(np.mean(losses), rel=1e-4)


def test_the_search_for_faults_ignores_what_every_window_of_a_plant_shares() -> None:
    usual = 100 * torch.randn(2, 1, 4, 5)
    moved = same_fault(FAULTY + usual[:, None], NORMAL + usual, TEMPERATURE)
    assert float(moved) == pytest.approx(float(same_fault(FAULTY, NORMAL, TEMPERATURE)), rel=1e-3)


def test_departures_in_the_loss_are_those_of_the_encoder() -> None:
    """`NormalOperation`, which measures windows in use, on each plant by itself."""
    names = np.array(["a", "b", "c", "d"])
    normal = torch.randn(2, 12, 4, 5, generator=torch.Generator().manual_seed(1)) * 3
    for plant, found in enumerate(away_from_normal(FAULTY, normal, standardised=True).numpy()):
        usual = NormalOperation.of(normal[plant].reshape(-1, 5).numpy(), np.tile(names, 12))
        windows = torch.cat([FAULTY[plant].flatten(0, 1), normal[plant]]).numpy()
        for window, own in zip(windows, found, strict=True):
            expected = usual.departures(window, names, np.full(4, 4))
            np.testing.assert_allclose(own, expected, rtol=2e-3, atol=1e-4)


def test_windows_that_find_one_another_cost_nothing() -> None:
    twins = FAULTY[:, :, :1].expand(-1, -1, 2, -1, -1) * 50
    assert float(same_fault(twins, NORMAL * 1e-3, 0.01)) < 1e-3
    assert departures(twins, NORMAL * 1e-3)[0, 0, 1] == pytest.approx(1, abs=1e-4)
    first = torch.eye(6)
    assert float(same_program(first, first, 0.05)) < 1e-3


def test_hidden_patches_are_whole_and_at_the_mean() -> None:
    series = torch.randn(40, LENGTH) + 3
    shown, mask = hidden_patches(Draws("cpu", 0), series, 16)
    assert torch.equal(shown[~mask], series[~mask])
    assert torch.allclose(shown[mask], series.mean(-1, keepdim=True).expand_as(series)[mask])
    patches = mask.unflatten(1, (16, -1))
    assert torch.equal(patches.all(-1), patches.any(-1))
    assert 0.15 < patches[..., 0].float().mean() < 0.45
    assert patches[..., 0].float().mean(1).max() < 0.9


def test_only_hidden_points_are_judged() -> None:
    series, mask = torch.randn(3, LENGTH), torch.zeros(3, LENGTH).bool()
    mask[0, :32] = True
    target = ((series - series.mean(-1, keepdim=True)) / (series.std(-1, keepdim=True) + 1e-3)).clamp(-6, 6)
    picture = torch.where(mask, target + 2, torch.full_like(target, 1e6))
    assert float(reconstruction_error(picture, series, mask)) == pytest.approx(4, rel=1e-4)
    assert float(reconstruction_error(picture, series, torch.zeros_like(mask))) == 0
