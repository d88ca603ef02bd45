"""What cannot run here says so before anything heavy is imported; what it is given decides, not its default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from readbench.engine.registry import ENCODERS

WEIGHTS = {
    "mantis": ("paris-noah/MantisV2", ("config.json", "model.safetensors")),
    "chronos-2": ("amazon/chronos-2", ("config.json", "model.safetensors")),
    "chronos-bolt": ("amazon/chronos-bolt-base", ("config.json", "model.safetensors")),
    "tirex": ("NX-AI/TiRex", ("model.ckpt",)),
    "timesfm": ("google/timesfm-2.5-200m-transformers", ("config.json", "model.safetensors")),
}
SHARED = ["weights", "pool", "metric", "norm", "dtype", "device", "batch"]


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("READBENCH_MODELS", raising=False)


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_frozen_encoder_needs_its_weights(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, (hub_id, files) = ENCODERS.get(name), WEIGHTS[name]
    for module in entry.requires:
        pytest.importorskip(module)
    assert f"needs the weights {hub_id}" in entry.unavailable()
    monkeypatch.setenv("READBENCH_MODELS", str(tmp_path))
    (tmp_path / hub_id).mkdir(parents=True)
    assert "finds no" in entry.unavailable()
    for file in files:
        (tmp_path / hub_id / file).touch()
    assert entry.unavailable() == ""


@pytest.mark.parametrize("name", ["onnx", "program"])
def test_a_network_in_a_file_needs_the_file(name: str) -> None:
    for module in ENCODERS.get(name).requires:
        pytest.importorskip(module)
    assert ENCODERS.get(name).unavailable() == f"needs a file: {name}(FILE)."


def test_charm_says_that_its_weights_are_not_public() -> None:
    pytest.importorskip("torch")
    assert ENCODERS.get("charm").unavailable().startswith("needs weights, which are not public")


@pytest.mark.parametrize("name", ["raw", "rocket"])
def test_others_need_nothing(name: str) -> None:
    assert ENCODERS.get(name).unavailable() == ""


def test_asking_imports_nothing_heavy() -> None:
    code = (
        "import sys; from readbench.engine.registry import ENCODERS; [e.unavailable() for e in ENCODERS];"
        "heavy = {'torch', 'transformers', 'huggingface_hub', 'mantis', 'chronos', 'tirex'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "weights", "batch", "own"),
    [
        ("mantis", "paris-noah/MantisV2", 32, ["length", "layer"]),
        ("chronos-2", "amazon/chronos-2", 32, []),
        ("chronos-bolt", "amazon/chronos-bolt-base", 32, []),
        ("tirex", "NX-AI/TiRex", 512, ["form"]),
        ("timesfm", "google/timesfm-2.5-200m-transformers", 32, []),
    ],
)
def test_frozen_encoders_share_their_parameters(name: str, weights: str, batch: int, own: list[str]) -> None:
    parameters = ENCODERS.get(name).parameters
    assert list(parameters) == [*SHARED, *own]
    assert (parameters["weights"].default, parameters["batch"].default) == (weights, batch)
    assert parameters["pool"].choices == ("mean", "stats", "keyed", "both")
    assert str(parameters["batch"]) == "an int in the range [1, inf)"
