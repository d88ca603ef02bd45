from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.engine.encoders import TimesFM
from readbench.engine.preparation import resample
from readbench.engine.windows import WindowSet
from readbench.errors import DataError
from readbench.testing import sample_windows
from tests.engine.encoders.checkpoints import write_timesfm
from tests.engine.encoders.frozen_checks import FROZEN_CHECKS, RAGGED, Build

pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(seed: int = 0, **parameters: Any) -> TimesFM:  # noqa: ANN401 - of any type
        folder = tmp_path / str(seed)
        return TimesFM(weights=str(folder if folder.exists() else write_timesfm(folder, seed)), **parameters)

    return make


@pytest.mark.parametrize("check", FROZEN_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_frozen_encoders(check: Callable[[Build], None], build: Build) -> None:
    check(build)


def test_vectors_are_the_mean_states_of_the_package(build: Build) -> None:
    torch = pytest.importorskip("torch")
    windows = sample_windows(3, channels=1, length=96)
    encoder = build(norm="none")
    series = torch.tensor(np.concatenate([w.values for w in windows]))
    with torch.inference_mode():
        states = encoder.network(past_values=series).last_hidden_state
    assert states.shape == (3, 3, 16)
    np.testing.assert_allclose(encoder.encode(windows), states.mean(dim=1).numpy(), rtol=1e-5, atol=1e-6)


def test_lengths_become_whole_patches(build: Build) -> None:
    walk = np.random.default_rng(0).standard_normal((1, 90)).cumsum(axis=1).astype(np.float32)
    encoder = build(norm="none")
    one, other = (encoder.encode(WindowSet.from_arrays([v])) for v in (walk, resample(walk, 96)))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert encoder.admissible(10**6) == 2048


def test_a_file_of_more_layers_than_its_network_is_refused(build: Build) -> None:
    encoder = build(norm="none")
    config = encoder.paths()[0]
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))
    with pytest.raises(DataError, match="has weights that the network lacks"):
        encoder.encode(RAGGED)
