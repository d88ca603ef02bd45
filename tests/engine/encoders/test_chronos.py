"""Chronos-2 and Chronos-Bolt: what both promise, and what each reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.engine.encoders import Chronos2, ChronosBolt
from readbench.engine.preparation import resample
from readbench.engine.windows import WindowSet
from readbench.errors import DataError
from readbench.testing import sample_windows
from tests.engine.encoders.checkpoints import write_bolt, write_chronos
from tests.engine.encoders.frozen_checks import FROZEN_CHECKS, RAGGED, Build, fitted

pytest.importorskip("torch")
pytest.importorskip("chronos")

Chronos = Chronos2 | ChronosBolt
BOTH: dict[str, tuple[type[Chronos], Callable[..., Path]]] = {
    "chronos-2": (Chronos2, write_chronos),
    "chronos-bolt": (ChronosBolt, write_bolt),
}


@pytest.fixture(params=BOTH)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def build(tmp_path: Path, model: str) -> Build:
    encoder, write = BOTH[model]

    def make(seed: int = 0, **parameters: Any) -> Chronos:  # noqa: ANN401 - of any type
        folder = tmp_path / str(seed)
        return encoder(weights=str(folder if folder.exists() else write(folder, seed)), **parameters)

    return make


@pytest.mark.parametrize("check", FROZEN_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_frozen_encoders(check: Callable[[Build], None], build: Build) -> None:
    check(build)


@pytest.mark.parametrize("length", [16, 50])
def test_vectors_are_those_of_chronos_2_without_its_last_two_tokens(tmp_path: Path, length: int) -> None:
    chronos = pytest.importorskip("chronos")
    windows = sample_windows(5, channels=3, length=length)
    encoder = Chronos2(weights=str(write_chronos(tmp_path / "own")), norm="none")
    series = np.stack([w.values for w in windows]).reshape(15, 1, length)
    tokens, _ = chronos.Chronos2Pipeline(encoder.network).embed(series)
    assert tokens[0].shape[1] == -(-length // 16) + 2
    expected = np.stack([t[0, :-2].mean(dim=0).numpy() for t in tokens]).reshape(5, 3, -1).mean(axis=1)
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [16, 50])
def test_vectors_are_those_of_chronos_bolt_without_its_register(tmp_path: Path, length: int) -> None:
    torch, chronos = pytest.importorskip("torch"), pytest.importorskip("chronos")
    windows = sample_windows(5, channels=3, length=length)
    encoder = ChronosBolt(weights=str(write_bolt(tmp_path / "own")), norm="none")
    series = torch.from_numpy(np.stack([w.values for w in windows]).reshape(15, length))
    tokens, _ = chronos.ChronosBoltPipeline(encoder.network).embed(series)
    assert tokens.shape[1] == -(-length // 16) + 1
    expected = tokens[:, :-1].mean(dim=1).numpy().reshape(5, 3, -1).mean(axis=1)
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-6)


def test_windows_beyond_the_context_are_interpolated_not_cut(tmp_path: Path, model: str) -> None:
    kind, write = BOTH[model]
    encoder = kind(weights=str(write(tmp_path / "short", context=64)), norm="none")
    walk = np.random.default_rng(0).standard_normal((1, 200)).cumsum(axis=1).astype(np.float32)
    long, short = (encoder.encode(WindowSet.from_arrays([values])) for values in (walk, resample(walk, 64)))
    np.testing.assert_allclose(long, short, rtol=1e-5, atol=1e-6)


def test_a_missing_weight_is_not_replaced_by_a_random_one(build: Build) -> None:
    folder = Path(build(seed=2).weights)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_layers": 3}))
    with pytest.raises(DataError, match=r"lacks weights of the network, such as encoder\.block\.2"):
        fitted(build, seed=2).encode(RAGGED)


def test_weights_that_the_network_lacks_are_not_ignored(build: Build) -> None:
    folder = Path(build(seed=3).weights)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_layers": 1}))
    with pytest.raises(DataError, match=r"has weights that the network lacks, such as encoder\.block\.1"):
        fitted(build, seed=3).encode(RAGGED)


def test_weights_of_another_shape_are_named(build: Build) -> None:
    folder = Path(build(seed=4).weights)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"d_ff": 2 * config["d_ff"]}))
    with pytest.raises(DataError, match=r"has weights of another shape, such as \w+\.block\.0"):
        fitted(build, seed=4).encode(RAGGED)
