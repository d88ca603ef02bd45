from __future__ import annotations

import numpy as np
import pytest
import torch

from readbench.engine.encoders.sonde_network import LENGTH, Draws, read_at, standardise


def test_the_same_seed_draws_the_same_numbers_and_another_seed_others() -> None:
    one, two, other = Draws("cpu", 3), Draws("cpu", 3), Draws("cpu", 4)
    first = one.normal(5)
    assert torch.equal(first, two.normal(5))
    assert not torch.equal(first, other.normal(5))


def test_draws_keep_to_their_ranges() -> None:
    draws = Draws("cpu", 0)
    uniform, scale = draws.uniform(4000, low=-2, high=3), draws.scale(0.1, 10, 4000)
    assert -2 <= uniform.min() < -1.9 < 2.9 < uniform.max() <= 3
    assert 0.1 <= scale.min() < scale.max() <= 10
    assert float(scale.log().mean()) == pytest.approx(0, abs=0.1)
    assert float(draws.coin(0.2, 4000).float().mean()) == pytest.approx(0.2, abs=0.03)
    assert draws.choice(3, 4000).unique().tolist() == [0, 1, 2]
    assert draws.order(50).sort().values.tolist() == list(range(50))


def test_views_of_a_parameter_are_jittered_copies_of_it() -> None:
    draws, parameter = Draws("cpu", 0), torch.tensor([1.0, 10.0])
    assert torch.equal(draws.shifted(parameter, 3, 0.0), parameter[:, None].expand(2, 3))
    assert draws.shifted(parameter, 500, 0.1).std(1).tolist() == pytest.approx([0.1, 0.1], rel=0.2)
    assert draws.stretched(parameter, 500, 0.1).std(1).tolist() == pytest.approx([0.1, 1.0], rel=0.2)


def test_views_share_the_part_of_the_noise_that_is_not_their_own() -> None:
    same = Draws("cpu", 0).noise(1, 2, 4000, torch.zeros(1, 1, 1))[0]
    apart = Draws("cpu", 0).noise(1, 2, 4000, torch.full((1, 1, 1), 0.6))[0]
    assert torch.equal(same[0], same[1])
    assert np.corrcoef(apart)[0, 1] == pytest.approx(1 - 0.6**2, abs=0.05)
    assert apart.std(-1).tolist() == pytest.approx([1, 1], rel=0.05)


def test_series_are_read_between_their_points() -> None:
    series, places = torch.randn(3, LENGTH), torch.rand(3, LENGTH) * 1.4 - 0.2
    grid = np.linspace(0, 1, LENGTH)
    expected = [np.interp(at, grid, own) for at, own in zip(places.numpy(), series.numpy(), strict=True)]
    np.testing.assert_allclose(read_at(series, places), expected, atol=2e-4)


def test_a_constant_series_is_standardised_to_zeros() -> None:
    assert not standardise(torch.full((2, LENGTH), 7.0)).any()
