"""Chronos-2: an encoder-only transformer of 120 million parameters, trained to forecast.

Ansari et al., "Chronos-2: from univariate to universal forecasting", 2025; package `chronos-forecasting`, weights
`amazon/chronos-2` (`config.json`, `model.safetensors`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from readbench.abilities import OnDevice, Pretrained
from readbench.encoders.devices import Torch, package
from readbench.encoders.frozen import FrozenEncoder
from readbench.encoders.weights import missing
from readbench.errors import DataError
from readbench.registry import ENCODERS

WEIGHTS, FILES = "amazon/chronos-2", ("config.json", "model.safetensors")


@ENCODERS.register(
    "chronos-2",
    title="Chronos-2",
    family="embedder",
    requires=("torch", "chronos"),
    extra="models",
    abilities=(Pretrained, OnDevice),
    unavailable=partial(missing, WEIGHTS, FILES),
)
@dataclass(eq=False)
class Chronos2(FrozenEncoder):
    """Chronos-2, frozen: the mean over the patches of each channel.

    Channels are given as unrelated series, so that its group attention mixes nothing. The two tokens behind the patches
    (a register and the masked patch to forecast) are left out of the mean. Any length is admissible up to the network's
    context (8192 points); longer windows are interpolated down to it. The network scales each series itself: `norm`
    matters only for channels that are constant in the corpus, which `channel` sets to zero.
    """

    name: ClassVar = "chronos-2"
    distribution: ClassVar = "chronos-forecasting"
    files: ClassVar = FILES

    weights: str = WEIGHTS

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
