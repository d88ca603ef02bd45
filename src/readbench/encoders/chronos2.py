"""Chronos-2: an encoder-only transformer of 120 million parameters, trained to forecast.

Ansari et al., "Chronos-2: from univariate to universal forecasting", 2025; package `chronos-forecasting`, weights
`amazon/chronos-2` (`config.json`, `model.safetensors`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from readbench.encoders.base import Metric
from readbench.encoders.channels import Pooling
from readbench.encoders.devices import Device, Precision, Torch, package
from readbench.encoders.frozen import FrozenEncoder
from readbench.errors import DataError
from readbench.parameters import Interval
from readbench.registry import ENCODERS
from readbench.windows import Normalisation


@ENCODERS.register("chronos-2", title="Chronos-2", family="embedder", requires=("torch", "chronos"), extra="models")
class Chronos2(FrozenEncoder):
    """Chronos-2, frozen: the mean over the patches of each channel.

    Channels are given as unrelated series, so that its group attention mixes nothing. The two tokens behind the patches
    (a register and the masked patch to forecast) are left out of the mean. Any length is admissible up to the network's
    context (8192 points); longer windows are interpolated down to it. The network scales each series itself: `norm`
    matters only for channels that are constant in the corpus, which `channel` sets to zero.

    Args:
        weights: hub id, or a folder with `config.json` and `model.safetensors`.
        pool: how the vectors of the channels become one.
        metric: how vectors are compared.
        norm: scaling of the windows.
        dtype: precision of matrix products.
        device: where it runs.
        batch: series at a time.
    """

    name = "chronos-2"
    distribution = "chronos-forecasting"
    files = ("config.json", "model.safetensors")

    def __init__(
        self,
        weights: str = "amazon/chronos-2",
        pool: Pooling = "mean",
        metric: Metric = "euclidean",
        norm: Normalisation = "channel",
        dtype: Precision = "float32",
        device: Device = "auto",
        batch: Annotated[int, Interval(1)] = 32,
    ) -> None:
        self.weights = weights
        self.pool = pool
        self.metric = metric
        self.norm = norm
        self.dtype = dtype
        self.device = device
        self.batch = batch

    def admissible(self, length: int) -> int:
        """The length itself, up to the network's context."""
        return min(length, int(self.network.chronos_config.context_length))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network; a weight that the file lacks is an error, not a random number."""
        chronos = package("chronos.chronos2", self.name)
        folder = paths[0].parent
        network, report = chronos.Chronos2Model.from_pretrained(folder, local_files_only=True, output_loading_info=True)
        if absent := report["missing_keys"] or report["mismatched_keys"]:
            raise DataError(f"chronos-2: {folder} lacks weights of the network, such as {min(map(str, absent))}.")
        return network.to(device).float().eval()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 768) means of the patches."""
        output, _, _, patches = network.encode(context=series)
        return output[0][:, :patches].mean(dim=1)
