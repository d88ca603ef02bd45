from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.engine.encoders import TiRex
from readbench.engine.encoders._foundation import show_licence
from readbench.engine.preparation import resample
from readbench.engine.windows import WindowSet
from readbench.testing import sample_windows
from tests.engine.encoders.checkpoints import write_tirex
from tests.engine.encoders.frozen_checks import FROZEN_CHECKS, RAGGED, Build, fitted

pytest.importorskip("torch")
pytest.importorskip("tirex")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(seed: int = 0, **parameters: Any) -> TiRex:  # noqa: ANN401 - of any type
        folder = tmp_path / str(seed)
        return TiRex(weights=str(folder if folder.exists() else write_tirex(folder, seed)), **parameters)

    return make


@pytest.mark.parametrize("check", FROZEN_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_frozen_encoders(check: Callable[[Build], None], build: Build) -> None:
    check(build)


@pytest.mark.parametrize("length", [1, 32, 50, 300, 2048])
def test_vectors_are_those_of_the_package(build: Build, length: int) -> None:
    torch = pytest.importorskip("torch")
    windows = sample_windows(3, channels=2, length=length) if length > 1 else WindowSet.from_arrays([[[4.0], [5.0]]])
    encoder = build(norm="none", form="raw")
    series = torch.tensor(np.concatenate([w.values for w in windows]))
    tokens = encoder.network.model._embed_context(series)
    assert tokens.shape == (len(series), -(-length // 32), 2, 16)
    expected = tokens.mean(dim=1).reshape(len(windows), 2, 32).mean(dim=1).numpy()
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-5, atol=1e-5)


def test_the_published_form_is_that_of_the_package_for_one_channel(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = pytest.importorskip("tirex.models.embedding")
    encoder, windows = build(norm="none"), sample_windows(3, channels=1, length=300)
    monkeypatch.setattr(embedding, "load_model", lambda **_: encoder.network.model)
    upstream = embedding.TiRexEmbedding(device="cpu")
    expected = upstream(pytest.importorskip("torch").tensor(np.stack([w.values for w in windows]))).detach().numpy()
    np.testing.assert_allclose(encoder.encode(windows), expected, rtol=1e-4, atol=1e-4)


def test_windows_beyond_the_context_are_interpolated_not_cut(build: Build) -> None:
    walk = np.random.default_rng(0).standard_normal((1, 3000)).cumsum(axis=1).astype(np.float32)
    long, short = (build(norm="none").encode(WindowSet.from_arrays([v])) for v in (walk, resample(walk, 2048)))
    np.testing.assert_allclose(long, short, rtol=1e-5, atol=1e-6)


def test_the_checkpoint_may_have_any_name(build: Build, tmp_path: Path) -> None:
    encoder = fitted(build)
    renamed = tmp_path / "mine.ckpt"
    renamed.write_bytes(encoder.paths()[0].read_bytes())
    other = TiRex(weights=str(renamed)).fit(RAGGED, RAGGED[:0])
    assert other.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(other.encode(RAGGED), encoder.encode(RAGGED))


def test_the_licence_is_shown_before_the_first_use_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        show_licence()
        show_licence()
    (record,) = caplog.records
    assert record.name == "readbench.engine.encoders._foundation"
    assert "NXAI Community License" in record.getMessage()
