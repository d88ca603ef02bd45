"""TSPulse as a file for `program(FILE)`.

Its package pins other versions of torch than ours, so this runs in an environment of its own:

    python -m venv tspulse && tspulse/bin/pip install granite-tsfm
    tspulse/bin/python research/exports/tspulse.py ibm-granite/granite-timeseries-tspulse-r1 tspulse.pt2
    readbench run --datasets skab --methods "program(tspulse.pt2)"

`make test-exports` has the versions that were tried.

The vector is that of its authors for similarity search: the register tokens behind the decoder, here the mean over
channels. Windows are interpolated to the 512 points that it reads. Ekambaram et al., "TSPulse: dual space tiny
pre-trained models for rapid time-series analysis", 2025; weights Apache-2.0.
"""

from __future__ import annotations

import sys

import torch
from tsfm_public.models.tspulse import TSPulseForReconstruction


class Embedding(torch.nn.Module):
    """(B, C, T) -> (B, D).

    Args:
        network: a TSPulse network for reconstruction.
    """

    def __init__(self, network: TSPulseForReconstruction) -> None:
        super().__init__()
        self.network = network
        self.points = int(network.config.context_length)
        self.width = network.config.patch_register_tokens * network.config.decoder_d_model_layerwise[-1]

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Register tokens of each channel as a series of its own, their mean over channels."""
        batch, channels, _ = values.shape
        series = torch.nn.functional.interpolate(values, self.points, mode="linear", align_corners=True)
        alone = series.reshape(batch * channels, self.points, 1)
        found = self.network(alone, return_loss=False)  # as the package's get_embeddings, which also computes losses
        vectors = found["decoder_hidden_state"][:, :, -self.width :]
        return vectors.reshape(batch, channels, -1).mean(dim=1)


def main(weights: str, target: str) -> None:
    """Export the network of a hub id or folder to a file."""
    network = TSPulseForReconstruction.from_pretrained(weights, num_input_channels=1, mask_type="user")
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
