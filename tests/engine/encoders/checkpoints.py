"""Checkpoints with random weights in the true file formats, so that loaders are tested without a download.

`python -m tests.engine.encoders.checkpoints FOLDER` writes full-size ones where `READBENCH_MODELS=FOLDER` finds them:
the networks' true shapes and costs, with vectors that mean no more than random features do. With `--tiny` they are
small enough for every dataset on a laptop.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MANTIS_TINY = {
    "hidden_dim": 16,
    "hidden_dim_scalar_enc": 4,
    "transf_depth": 3,
    "transf_num_heads": 2,
    "transf_mlp_dim": 16,
    "transf_dim_head": 8,
}
CHRONOS_TINY = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 2}
CHRONOS_FULL = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
TIMESFM_TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 16,
    "head_dim": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "context_length": 2048,
}
TIREX_TINY = {"num_blocks": 2, "embedding_dim": 16, "num_heads": 2}
TIREX_FULL = {"num_blocks": 12, "embedding_dim": 512, "num_heads": 4}


def write_mantis(folder: Path, seed: int = 0, *, full: bool = False, version: int = 2) -> Path:
    """`config.json` and `model.safetensors`, as `paris-noah/MantisV2` has them, or `paris-noah/Mantis-8M`."""
    torch = pytest.importorskip("torch")
    architecture = pytest.importorskip("mantis.architecture")

    torch.manual_seed(seed)
    network = architecture.MantisV1 if version == 1 else architecture.MantisV2
    network(device="cpu", **({} if full else MANTIS_TINY)).save_pretrained(folder)
    return folder


def write_chronos(folder: Path, seed: int = 0, *, full: bool = False, context: int = 8192) -> Path:
    """`config.json` and `model.safetensors`, as `amazon/chronos-2` has them."""
    torch = pytest.importorskip("torch")
    chronos = pytest.importorskip("chronos.chronos2")
    chronos_config = pytest.importorskip("chronos.chronos2.config")

    forecasting = {
        "context_length": context,
        "input_patch_size": 16,
        "input_patch_stride": 16,
        "output_patch_size": 16,
        "max_output_patches": 64,
        "time_encoding_scale": 8192,
        "quantiles": [0.1, 0.5, 0.9],
        "use_reg_token": True,
        "use_arcsinh": True,
    }
    shape = CHRONOS_FULL if full else CHRONOS_TINY
    torch.manual_seed(seed)
    config = chronos_config.Chronos2CoreConfig(**shape, initializer_factor=0.1, chronos_config=forecasting)
    network = chronos.Chronos2Model(config)
    with redirect_stderr(StringIO()):  # a progress bar
        network.save_pretrained(folder)
    return folder


def write_bolt(folder: Path, seed: int = 0, *, full: bool = False, context: int = 2048) -> Path:
    """`config.json` and `model.safetensors`, as `amazon/chronos-bolt-base` has them."""
    torch = pytest.importorskip("torch")
    bolt = pytest.importorskip("chronos.chronos_bolt")
    transformers = pytest.importorskip("transformers")

    forecasting: dict[str, Any] = {
        "context_length": context,
        "input_patch_size": 16,
        "input_patch_stride": 16,
        "prediction_length": 64,
    }
    forecasting |= {"quantiles": [0.1, 0.5, 0.9], "use_reg_token": True}
    ids = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "reg_token_id": 1, "vocab_size": 2}
    shape = CHRONOS_FULL if full else CHRONOS_TINY
    torch.manual_seed(seed)
    config = transformers.T5Config(**shape, **ids, initializer_factor=0.1, chronos_config=forecasting)
    with redirect_stderr(StringIO()):  # a progress bar
        bolt.ChronosBoltModelForForecasting(config).save_pretrained(folder)
    return folder


def write_tirex(folder: Path, seed: int = 0, *, full: bool = False) -> Path:
    """`model.ckpt`, as `NX-AI/TiRex` has it."""
    torch = pytest.importorskip("torch")
    tirex = pytest.importorskip("tirex")

    shape = {
        "input_patch_size": 32,
        "output_patch_size": 32,
        "quantiles": [0.1, 0.5, 0.9],
        "block_kwargs": dict(TIREX_FULL if full else TIREX_TINY),
        "input_ff_dim": 2048 if full else 32,
    }
    hyper: dict[str, Any] = {"model_config": shape, "train_ctx_len": 2048}
    network = tirex.TiRexZero(backend="torch", **hyper)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():  # some are left uninitialised
            torch.nn.init.normal_(weight, 1.0 if weight.ndim == 1 else 0.0, weight.shape[-1] ** -0.5)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"hyper_parameters": hyper, "state_dict": network.state_dict()}, folder / "model.ckpt")
    return folder


def write_program(folder: Path, seed: int = 0, width: int = 384, *, name: str = "network", named: bool = True) -> Path:
    """An exported program, and the same network as ONNX, of the documented inputs; nothing of CHARM.

    Channels are weighted by the sum of the bytes of their names, where the network takes names.
    """
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):  # type: ignore[name-defined,misc]  # torch is an optional package
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Conv1d(1, width, 3, padding=1)

        def forward(self, values: Any, names: Any = None) -> Any:  # noqa: ANN401 - tensors
            count, channels, steps = values.shape
            read = self.body(values.reshape(count * channels, 1, steps)).relu().mean(dim=2).reshape(count, channels, -1)
            return read.mean(dim=1) if names is None else (read * names.float().mean(dim=1)[None, :, None]).mean(dim=1)

    torch.manual_seed(seed)
    network = Network().eval()
    batch, channels, time = (torch.export.Dim(axis, max=2**20) for axis in ("batch", "channels", "time"))
    example = (torch.zeros(2, 3, 64), torch.zeros(3, 64, dtype=torch.uint8))[: 1 + named]
    shapes = ({0: batch, 1: channels, 2: time}, {0: channels})[: 1 + named]
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(torch.export.export(network, example, dynamic_shapes=shapes), folder / f"{name}.pt2")
    return folder


def write_onnx(folder: Path, seed: int = 0, width: int = 5) -> Path:
    """`network.onnx`: the mean over time of each channel times drawn numbers, and the sum over the channels."""
    onnx = pytest.importorskip("onnx")
    numbers = np.random.default_rng(seed).standard_normal((1, 1, width)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("ReduceMean", ["values", "last"], ["means"], keepdims=1),
        onnx.helper.make_node("Mul", ["means", "numbers"], ["parts"]),
        onnx.helper.make_node("ReduceSum", ["parts", "middle"], ["vectors"], keepdims=0),
    ]
    given = onnx.helper.make_tensor_value_info("values", onnx.TensorProto.FLOAT, ["B", "C", "T"])
    made = onnx.helper.make_tensor_value_info("vectors", onnx.TensorProto.FLOAT, ["B", width])
    constants = {"numbers": numbers, "last": np.array([2]), "middle": np.array([1])}
    held = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = onnx.helper.make_graph(nodes, "network", [given], [made], held)
    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "network.onnx")
    return folder


def write_timesfm(folder: Path, seed: int = 0, *, full: bool = False) -> Path:
    """`config.json` and `model.safetensors`, as `google/timesfm-2.5-200m-transformers` has them."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    shape = {} if full else TIMESFM_TINY
    torch.manual_seed(seed)
    network = transformers.TimesFm2_5ModelForPrediction(transformers.TimesFm2_5Config(**shape))
    with redirect_stderr(StringIO()):  # a progress bar
        network.save_pretrained(folder)
    return folder


def write_hub(root: Path, *, full: bool) -> None:
    """The public networks, laid out as `READBENCH_MODELS` has them."""
    write_mantis(root / "paris-noah" / "MantisV2", full=full)
    write_chronos(root / "amazon" / "chronos-2", full=full)
    write_bolt(root / "amazon" / "chronos-bolt-base", full=full)
    write_tirex(root / "NX-AI" / "TiRex", full=full)
    write_timesfm(root / "google" / "timesfm-2.5-200m-transformers", full=full)


if __name__ == "__main__":
    write_hub(Path(sys.argv[1]), full="--tiny" not in sys.argv[2:])
