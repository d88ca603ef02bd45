from __future__ import annotations

import pytest
import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import LENGTH, Draws
from research.training.data import FAMILIES, Family, carriers


def described(series: Tensor) -> Tensor:
    """(n, views, F) what of a series does not depend on phase: its spectrum in bands, and its sorted values."""
    power = torch.fft.rfft(series).abs().square()[..., 1:]
    bands = torch.stack([part.mean(-1) for part in power.tensor_split((2, 4, 8, 16, 32, 64, 128), -1)], -1)
    return torch.cat([torch.log(bands + 1e-2) / 3, series.sort(-1).values[..., ::32]], -1)


def assert_standardised(series: Tensor) -> None:
    """Mean 0 and deviation 1, or constant."""
    assert torch.isfinite(series).all()
    assert series.mean(-1).abs().max() < 1e-3
    spread = series.std(-1)
    assert ((spread - 1).abs() < 0.02).float().mean() > 0.9
    assert spread.max() < 1.001


def assert_views_agree(series: Tensor) -> None:
    """Two views of a program are nearer to one another than to views of other programs, nine times out of ten."""
    one, two = described(series).unbind(1)
    same, others = (one - two).norm(dim=-1), torch.cdist(one, two).median(1).values
    assert (same < others).float().mean() > 0.9


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_standardised_and_its_views_agree(name: str) -> None:
    family, _ = FAMILIES[name]
    series = family(Draws("cpu", 1), 60, 2)
    assert series.shape == (60, 2, LENGTH)
    assert_standardised(series)
    assert_views_agree(series)


@pytest.mark.parametrize("name", FAMILIES)
def test_views_of_a_program_are_not_copies(name: str) -> None:
    series = FAMILIES[name][0](Draws("cpu", 2), 20, 2)
    assert (series[:, 0] - series[:, 1]).abs().amax(-1).min() > 1e-4


def counted(name: str, drawn: dict[str, int]) -> Family:
    """The family, noting how many programs of it are drawn."""
    plain, _ = FAMILIES[name]

    def noting(draws: Draws, n: int, views: int) -> Tensor:
        drawn[name] = n
        return plain(draws, n, views)

    return noting


def test_the_mixture_has_every_family_in_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, int] = {}
    weights = {name: weight for name, (_, weight) in FAMILIES.items()}
    for name, weight in weights.items():
        monkeypatch.setitem(FAMILIES, name, (counted(name, drawn), weight))
    series = carriers(Draws("cpu", 1), 120, 2)
    assert_standardised(series)
    assert_views_agree(series)
    total = sum(weights.values())
    assert sum(drawn.values()) == 120
    assert all(abs(drawn[name] - 120 * weight / total) < len(weights) for name, weight in weights.items())


def test_any_count_is_drawn_even_fewer_than_there_are_families() -> None:
    for count in (1, 5, 17):
        assert carriers(Draws("cpu", 0), count, 3).shape == (count, 3, LENGTH)


def test_families_left_out_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, int] = {}
    for name, (_, weight) in tuple(FAMILIES.items()):
        monkeypatch.setitem(FAMILIES, name, (counted(name, drawn), weight))
    carriers(Draws("cpu", 0), 6, 2, ("waves", "walks"))
    assert set(drawn) == {"waves", "walks"}


def test_the_same_seed_gives_the_same_series() -> None:
    one, two, other = (carriers(Draws("cpu", seed), 12, 2) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
