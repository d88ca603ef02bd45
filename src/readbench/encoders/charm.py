"""CHARM, for those who have it: neither its code nor its weights are public.

Dutta et al. (2026) describe a joint-embedding predictive network of width 384. Its owners can run it here from one
file, a program exported by torch with its weights inside:

```python
batch, time = torch.export.Dim("batch"), torch.export.Dim("time", min=2)
program = torch.export.export(network.eval(), (torch.zeros(2, 64),), dynamic_shapes=({0: batch, 1: time},))
torch.export.save(program, "charm.pt2")
```

The program takes series (B, T) float32, one channel each, and gives vectors (B, 384). Load files only from people you
trust: an exported program is code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from readbench.abilities import OnDevice, Pretrained
from readbench.encoders.devices import Torch, package
from readbench.encoders.frozen import FrozenEncoder
from readbench.errors import DataError
from readbench.registry import ENCODERS

WIDTH = 384
NO_WEIGHTS = (
    "has no public weights. Who has them exports the network to a file (the documentation of readbench.encoders.charm"
    " says how) and passes charm(weights=FILE). 'rocket' needs no weights."
)


@ENCODERS.register(
    "charm",
    title="CHARM",
    family="embedder",
    requires=("torch",),
    extra="models",
    abilities=(Pretrained, OnDevice),
    positional="weights",
    unavailable=lambda: NO_WEIGHTS,
)
@dataclass(eq=False)
class Charm(FrozenEncoder):
    """CHARM, frozen, from a program file that its owners supply.

    Args:
        weights: a file exported by torch, or a folder that holds it as `charm.pt2`; the module says what it must take
            and give. There is no default, because no weights are public.
    """

    name: ClassVar = "charm"
    distribution: ClassVar = "torch"
    files: ClassVar = ("charm.pt2",)

    def paths(self) -> tuple[Path, ...]:
        """Where the program is."""
        if not self.weights:
            raise DataError(f"charm {NO_WEIGHTS}")
        return super().paths()

    def admissible(self, length: int) -> int:
        """Any length from 2 on."""
        return max(2, length)

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The exported program, moved to the device."""
        export = package("torch.export", self.name)
        program = export.load(paths[0])
        if device != "cpu":
            program = package("torch.export.passes", self.name).move_to_device_pass(program, device)
        return program.module()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 384) vectors."""
        vectors = network(series)
        if tuple(vectors.shape) != (len(series), WIDTH):
            found = tuple(vectors.shape)
            raise DataError(f"charm: {self.weights} gave {found} for {tuple(series.shape)}; it must give (B, {WIDTH}).")
        return vectors
