from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from readbench.engine.encoders.sonde_network import LENGTH, MIN_HALF_SIZE, SondeNetwork, export, load
from research.training.__main__ import main
from research.training.loop import TINY

SERIES = np.random.default_rng(0).normal(size=(5, LENGTH)).cumsum(axis=1).astype(np.float32)
METADATA = {"config": TINY.to_json()}


@pytest.fixture
def body() -> SondeNetwork:
    torch.manual_seed(0)
    return SondeNetwork(TINY.shape).eval()


def run(path: Path, series: NDArray[np.float32]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    vectors: NDArray[np.float32] = session.run(["vectors"], {"series": series})[0]
    return vectors


def test_the_file_gives_the_vectors_of_the_body_for_any_batch(body: SondeNetwork, tmp_path: Path) -> None:
    export(body, tmp_path / "body.onnx", METADATA)
    with torch.inference_mode():
        expected = body(torch.from_numpy(SERIES)).numpy()
    for count in (1, 2, 5):
        np.testing.assert_allclose(run(tmp_path / "body.onnx", SERIES[:count]), expected[:count], atol=1e-3)


def test_loading_gives_back_the_weights_as_they_are_stored(body: SondeNetwork, tmp_path: Path) -> None:
    export(body, tmp_path / "body.onnx", METADATA)
    back = load(tmp_path / "body.onnx").state_dict()
    for name, weight in body.state_dict().items():
        stored = weight.half().float() if weight.numel() >= MIN_HALF_SIZE else weight
        assert torch.equal(back[name], stored), name


def test_loaded_and_exported_again_nothing_changes(body: SondeNetwork, tmp_path: Path) -> None:
    export(body, tmp_path / "one.onnx", METADATA)
    export(load(tmp_path / "one.onnx"), tmp_path / "two.onnx", METADATA)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_weights_are_stored_in_half_precision(body: SondeNetwork, tmp_path: Path) -> None:
    export(body, tmp_path / "body.onnx", METADATA)
    numbers = sum(weight.numel() for weight in body.parameters())
    assert (tmp_path / "body.onnx").stat().st_size < 2 * numbers + 100_000


def test_the_command_trains_exports_and_says_what_the_file_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--preset", "tiny", "--out", str(tmp_path), "--probe"])
    said = capsys.readouterr().out
    assert "step 6/6" in said
    assert "same fault first in a new plant" in said
    session = onnxruntime.InferenceSession(tmp_path / "sonde.onnx", providers=["CPUExecutionProvider"])
    stated = {name: json.loads(value) for name, value in session.get_modelmeta().custom_metadata_map.items()}
    assert stated["config"] == json.loads(json.dumps(TINY.to_json()))
    assert stated["data"].startswith("synthetic only")
    assert stated["licence"] == "Apache-2.0"
    assert stated["versions"]["torch"] == torch.__version__
    assert run(tmp_path / "sonde.onnx", SERIES).shape == (5, 64)


def test_the_command_gives_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    files = []
    for folder, seed in (("1", 0), ("2", 0), ("3", 1)):
        main(["--preset", "tiny", "--steps", "2", "--seed", str(seed), "--out", str(tmp_path / folder)])
        files.append((tmp_path / folder / "sonde.onnx").read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_options_take_the_place_of_the_preset_s_settings(tmp_path: Path) -> None:
    main(["--preset", "tiny", "--steps", "1", "--patches", "8", "--families", "waves,walks", "--out", str(tmp_path)])
    assert load(tmp_path / "sonde.onnx").shape.patches == 8


def test_a_shape_comes_back_as_it_was_and_fewer_digits_change_little(tmp_path: Path) -> None:
    shape = replace(TINY.shape, stem=(8, 16), vector=24)
    body = SondeNetwork(shape).eval()
    for digits in (10, 6):
        export(body, tmp_path / f"{digits}.onnx", {"config": {"shape": asdict(shape)}}, digits)
    exact, coarse = (load(tmp_path / f"{digits}.onnx") for digits in (10, 6))
    assert exact.shape == coarse.shape == shape
    kept = coarse.stem[0].weight.detach().numpy()
    np.testing.assert_allclose(kept, exact.stem[0].weight.detach().numpy(), rtol=2.0**-6)
    fractions = np.frexp(kept)[0] * 2**7
    np.testing.assert_array_equal(fractions, np.round(fractions))
