"""Tiny networks with random weights in the true formats, and what their own packages make of windows.

Runs in the environment of such a package: `python export_checkpoints.py moment FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch


def windows() -> torch.Tensor:
    """(5, 3, 96) windows."""
    return torch.from_numpy(np.random.default_rng(0).standard_normal((5, 3, 96)).astype(np.float32))


def resampled() -> torch.Tensor:
    """(5, 3, 512) the same on the grid of the networks."""
    return torch.nn.functional.interpolate(windows(), 512, mode="linear", align_corners=True)


def moment(folder: Path) -> torch.Tensor:
    """MOMENT of two layers; its embedding of all channels at once."""
    from momentfm import MOMENTPipeline  # noqa: PLC0415 - each in its own environment

    backbone = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 32}
    told: dict[str, Any] = {
        "task_name": "reconstruction",
        "model_name": "MOMENT",
        "transformer_type": "encoder_only",
        "d_model": None,
    }
    told |= {"seq_len": 512, "patch_len": 8, "patch_stride_len": 8, "device": "cpu", "model_kwargs": {}}
    told |= {"transformer_backbone": "google/flan-t5-small", "t5_config": backbone}
    network = MOMENTPipeline(told, model_kwargs={"task_name": "reconstruction"}).eval()
    network.save_pretrained(folder, config=told)
    return network.embed(x_enc=resampled()).embeddings


def tspulse(folder: Path) -> torch.Tensor:
    """TSPulse of two layers; its embedding for search, of each channel by itself."""
    from tsfm_public.models.tspulse import TSPulseConfig, TSPulseForReconstruction  # noqa: PLC0415
    from tsfm_public.models.tspulse.utils.helpers import get_embeddings  # noqa: PLC0415

    shape = {"d_model": 24, "decoder_d_model": 24, "num_layers": 2, "decoder_num_layers": 2}
    shape |= {"context_length": 512, "patch_length": 8, "patch_stride": 8, "num_input_channels": 1}
    told = TSPulseConfig(**shape, patch_register_tokens=8, mask_type="user", fuse_fft=True)
    network = TSPulseForReconstruction(told).eval()
    network.save_pretrained(folder)
    series = resampled().transpose(1, 2)
    alone = [get_embeddings(network, series[:, :, c : c + 1])[:, 0] for c in range(series.shape[2])]
    return torch.stack(alone).mean(dim=0)


if __name__ == "__main__":
    torch.manual_seed(0)
    target = Path(sys.argv[2])
    with torch.no_grad():
        vectors = globals()[sys.argv[1]](target)
    np.savez(target / "expected.npz", windows=windows().numpy(), vectors=vectors.numpy())
