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
TIREX_TINY = {"num_blocks": 2, "embedding_dim": 16, "num_heads": 2}
TIREX_FULL = {"num_blocks": 12, "embedding_dim": 512, "num_heads": 4}


def write_mantis(folder: Path, seed: int = 0, *, full: bool = False) -> Path:
    """`config.json` and `model.safetensors`, as `paris-noah/MantisV2` has them."""
    torch = pytest.importorskip("torch")
    architecture = pytest.importorskip("mantis.architecture")

    torch.manual_seed(seed)
    architecture.MantisV2(device="cpu", **({} if full else MANTIS_TINY)).save_pretrained(folder)
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


def write_charm(folder: Path, seed: int = 0, width: int = 384) -> Path:
    """`charm.pt2`: an exported program of the documented signature, and nothing of CHARM."""
    torch = pytest.importorskip("torch")

    torch.manual_seed(seed)
    nn = torch.nn
    network = nn.Sequential(
        nn.Unflatten(1, (1, -1)), nn.Conv1d(1, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    ).eval()
    batch, time = torch.export.Dim("batch"), torch.export.Dim("time", min=2)
    program = torch.export.export(network, (torch.zeros(2, 64),), dynamic_shapes=({0: batch, 1: time},))
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, folder / "charm.pt2")
    return folder


def write_hub(root: Path, *, full: bool) -> None:
    """The three public networks, laid out as `READBENCH_MODELS` has them."""
    write_mantis(root / "paris-noah" / "MantisV2", full=full)
    write_chronos(root / "amazon" / "chronos-2", full=full)
    write_tirex(root / "NX-AI" / "TiRex", full=full)


if __name__ == "__main__":
    write_hub(Path(sys.argv[1]), full="--tiny" not in sys.argv[2:])
