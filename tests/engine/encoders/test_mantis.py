from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.engine.encoders import Mantis, _foundation as module
from readbench.errors import DataError, ParameterError
from readbench.testing import sample_windows
from tests.engine.encoders.checkpoints import write_mantis
from tests.engine.encoders.frozen_checks import FROZEN_CHECKS, RAGGED, Build, fitted

pytest.importorskip("torch")
pytest.importorskip("mantis")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(seed: int = 0, **parameters: Any) -> Mantis:  # noqa: ANN401 - of any type
        folder = tmp_path / str(seed)
        return Mantis(weights=str(folder if folder.exists() else write_mantis(folder, seed)), **parameters)

    return make


@pytest.mark.parametrize("check", FROZEN_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_frozen_encoders(check: Callable[[Build], None], build: Build) -> None:
    check(build)


@pytest.mark.parametrize(("length", "admitted"), [(1, 64), (32, 64), (64, 64), (65, 96), (96, 96), (1000, 1024)])
def test_lengths_become_the_next_multiple_of_the_patch_grid(build: Build, length: int, admitted: int) -> None:
    assert build().admissible(length) == admitted
    assert build(length=512).admissible(length) == 512


def test_a_length_off_the_grid_is_refused() -> None:
    with pytest.raises(ParameterError, match="multiple of 32, such as 512"):
        Mantis(length=500)


def test_networks_of_the_first_version_read_their_own_length(tmp_path: Path) -> None:
    torch, architecture = pytest.importorskip("torch"), pytest.importorskip("mantis.architecture")
    encoder = Mantis(weights=str(write_mantis(tmp_path, version=1)), norm="none")
    windows = sample_windows(4, channels=1, length=512)
    oracle = architecture.MantisV1(device="cpu").from_pretrained(encoder.weights).eval()
    with torch.no_grad():
        expected = oracle(torch.tensor(np.stack([w.values for w in windows]))).numpy()
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-6)
    assert encoder.encode(sample_windows(2, channels=3, length=90)).shape == (2, expected.shape[1])
    with pytest.raises(ParameterError, match="reads 512 points"):
        Mantis(weights=encoder.weights, norm="none", length=64).encode(windows)


def test_vectors_are_those_of_the_package(build: Build) -> None:
    torch, architecture = pytest.importorskip("torch"), pytest.importorskip("mantis.architecture")
    windows = sample_windows(6, channels=3, length=64)
    encoder = build(norm="none")
    oracle = architecture.MantisV2(device="cpu").from_pretrained(encoder.weights).eval()
    with torch.no_grad():
        series = torch.tensor(np.stack([w.values for w in windows])).reshape(18, 1, 64)
        expected = oracle(series).reshape(6, 3, -1).mean(dim=1).numpy()
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-6)


def test_an_inner_layer_gives_class_token_and_token_mean(build: Build) -> None:
    torch, architecture = pytest.importorskip("torch"), pytest.importorskip("mantis.architecture")
    windows = sample_windows(4, channels=1, length=96)
    encoder = build(norm="none", layer=1)
    blank = architecture.MantisV2(device="cpu", return_transf_layer=1, output_token="combined")  # noqa: S106 - no password
    oracle = blank.from_pretrained(encoder.weights).eval()
    with torch.no_grad():
        expected = oracle(torch.tensor(np.stack([w.values for w in windows]))).numpy()
    assert expected.shape == (4, 32)
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-6)
    assert encoder.fingerprint() != build(norm="none").fingerprint()


def test_a_layer_the_network_lacks_is_refused(build: Build) -> None:
    with pytest.raises(ParameterError, match=r"layer=5.*3 layers"):
        fitted(build, layer=5).encode(RAGGED)


def test_long_series_pass_in_smaller_batches(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fitted(build).encode(RAGGED)
    monkeypatch.setattr(module, "MAX_CONVOLUTION_POINTS", 100)
    np.testing.assert_allclose(fitted(build).encode(RAGGED), expected, rtol=1e-5, atol=1e-6)


def test_weights_of_another_network_are_refused(build: Build, tmp_path: Path) -> None:
    folder = Path(build(seed=2).weights)
    config = (folder / "config.json").read_text().replace('"hidden_dim": 16', '"hidden_dim": 32')
    (folder / "config.json").write_text(config)
    with pytest.raises(DataError, match=f"{tmp_path.name}.*mantis can load .*size mismatch for "):
        fitted(build, seed=2).encode(RAGGED)
