"""MantisV2: a transformer of 4 million parameters, trained on synthetic series by contrast.

Feofanov et al., "Mantis: lightweight calibrated foundation model for user-friendly time series classification", 2025,
and its second version; package `mantis-tsfm`, weights `paris-noah/MantisV2` (`config.json`, `model.safetensors`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from readbench.abilities import OnDevice, Pretrained
from readbench.encoders.devices import Torch, package
from readbench.encoders.frozen import FrozenEncoder
from readbench.encoders.weights import missing
from readbench.errors import ParameterError
from readbench.parameters import Interval
from readbench.registry import ENCODERS

WEIGHTS, FILES = "paris-noah/MantisV2", ("config.json", "model.safetensors")
GRID = 32
"""Patches that every series is cut into: its length must be a multiple."""
SHORTEST = 64
"""Patches of one point have no standard deviation, so a patch has at least two."""
POINTS = 2**17
"""Points that pass the first convolution at once, which makes 256 numbers of each: bounds the memory of long series."""


@ENCODERS.register(
    "mantis",
    title="MantisV2",
    family="embedder",
    requires=("torch", "mantis"),
    extra="models",
    abilities=(Pretrained, OnDevice),
    unavailable=partial(missing, WEIGHTS, FILES),
)
@dataclass(eq=False)
class Mantis(FrozenEncoder):
    """MantisV2, frozen: the class token of each channel.

    Lengths become the next multiple of 32 from 64 on, by linear interpolation: no measured point is discarded. Level
    and scale of a window, after `norm`, reach the network.

    Args:
        layer: read this layer (counted from 0) as class token and token mean side by side (512 numbers) in place of the
            last one's class token (256 numbers, the paper's). The authors advise 2 for frozen use.
    """

    name: ClassVar = "mantis"
    distribution: ClassVar = "mantis-tsfm"
    files: ClassVar = FILES

    weights: str = WEIGHTS
    layer: Annotated[int, Interval(0, 5)] | None = None

    def admissible(self, length: int) -> int:
        """The nearest multiple of 32 that is no shorter, from 64 on."""
        return max(SHORTEST, -(-length // GRID) * GRID)

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network, cut off behind the layer that is read."""
        architecture = package("mantis.architecture", self.name)
        last, token = (-1, "cls_token") if self.layer is None else (self.layer, "combined")
        blank = architecture.MantisV2(device=device, return_transf_layer=last, output_token=token)
        network = blank.from_pretrained(str(paths[0].parent), strict=True).eval()
        depth = len(network.transf_unit.transformer.layers)
        if self.layer is not None:
            if self.layer >= depth:
                raise ParameterError(f"mantis(layer={self.layer}): the network in {self.weights} has {depth} layers.")
            network.remove_transf_layers()
        return network

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 256) or (B, 512) vectors."""
        parts = series[:, None].split(max(1, POINTS // series.shape[1]))
        return package("torch", self.name).cat([network(part) for part in parts])
