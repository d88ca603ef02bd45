"""MOMENT as a file for `program(FILE)`.

Its package pins old versions of NumPy and transformers, so this runs in an environment of its own:

    python -m venv moment && moment/bin/pip install momentfm
    moment/bin/python research/exports/moment.py AutonLab/MOMENT-1-large moment.pt2
    readbench run --datasets skab --methods "program(moment.pt2)"

The vector is that of its `embed`: the mean over patches and channels. Windows are interpolated to the 512 points that
it reads. Goswami et al., "MOMENT: a family of open time-series foundation models", ICML 2024; weights MIT.
"""

from __future__ import annotations

import sys

import torch
from momentfm import MOMENTPipeline


class Embedding(torch.nn.Module):
    """(B, C, T) -> (B, D).

    Args:
        network: a MOMENT pipeline.
    """

    def __init__(self, network: MOMENTPipeline) -> None:
        super().__init__()
        self.network = network
        self.points = int(network.seq_len)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Mean over patches and channels; each channel is a series of its own, as in the package."""
        batch, channels, _ = values.shape
        series = torch.nn.functional.interpolate(values, self.points, mode="linear", align_corners=True)
        alone = series.reshape(batch * channels, 1, self.points)
        vectors = self.network.embed(x_enc=alone).embeddings
        return vectors.reshape(batch, channels, -1).mean(dim=1)


def main(weights: str, target: str) -> None:
    """Export the network of a hub id or folder to a file."""
    network = MOMENTPipeline.from_pretrained(weights, model_kwargs={"task_name": "embedding"})
    network.init()
    module = Embedding(network).eval()
    batch, channels, time = (torch.export.Dim(name, min=2, max=2**20) for name in ("batch", "channels", "time"))
    example = torch.randn(3, 2, 64)
    with torch.no_grad():
        program = torch.export.export(
            module, (example,), dynamic_shapes=({0: batch, 1: channels, 2: time},), strict=False
        )
    torch.export.save(program, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
