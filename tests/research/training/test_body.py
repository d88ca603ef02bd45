from __future__ import annotations

import pytest
import torch

from readbench.engine.encoders.sonde_network import LENGTH, Learner, NetworkShape, SondeNetwork
from research.training.loop import TINY, Config


@pytest.mark.parametrize("patches", [1, 8, 64])
def test_every_number_of_patches_has_its_tokens(patches: int) -> None:
    shape = NetworkShape(width=16, depth=1, heads=2, hidden=16, patches=patches, projection=8)
    vectors, projections, picture = Learner(shape)(torch.randn(3, LENGTH))
    assert vectors.shape == (3, 32)
    assert projections.shape == (3, 8)
    assert picture.shape == (3, LENGTH)


def test_level_and_scale_are_visible_in_the_vector() -> None:
    torch.manual_seed(0)
    body, series = SondeNetwork(TINY.shape).eval(), torch.randn(1, LENGTH).cumsum(-1)
    series = (series - series.mean()) / series.std()
    with torch.inference_mode():
        plain, shifted, far, wide = body(torch.cat([series, series + 1, series + 30, 5 * series]))
    assert (shifted - plain).norm() > 0.01 * plain.norm()
    assert (far - shifted).norm() > 0.01 * plain.norm()
    assert (wide - plain).norm() > 0.01 * plain.norm()


def test_constant_series_give_finite_vectors() -> None:
    body = SondeNetwork(TINY.shape)
    vectors = body(torch.tensor([0.0, 3.0, -1e4])[:, None].expand(3, LENGTH))
    assert torch.isfinite(vectors).all()


def test_the_shipped_shape_has_the_size_it_claims() -> None:
    assert sum(weight.numel() for weight in SondeNetwork(Config().shape).parameters()) == 5_128_768


def test_impossible_shapes_and_families_are_refused() -> None:
    with pytest.raises(ValueError, match=r"patches must be a power of two up to 64\. Got 24"):
        NetworkShape(patches=24)
    with pytest.raises(ValueError, match="width must be a multiple of heads"):
        NetworkShape(width=30, heads=4)
    with pytest.raises(ValueError, match=r"families must be some of smooth, .* Got 'hearts'"):
        Config(families=("hearts",))
