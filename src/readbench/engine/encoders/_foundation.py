"""Foundation models as frozen encoders: MantisV2, Chronos-2, TiRex and CHARM.

* **MantisV2**: a transformer of 4 million parameters, trained on synthetic series by contrast. Feofanov et al.,
  "Mantis: lightweight calibrated foundation model for user-friendly time series classification", 2025, and its second
  version; package `mantis-tsfm`, weights `paris-noah/MantisV2` (`config.json`, `model.safetensors`).
* **Chronos-2**: an encoder-only transformer of 120 million parameters, trained to forecast. Ansari et al., "Chronos-2:
  from univariate to universal forecasting", 2025; package `chronos-forecasting`, weights `amazon/chronos-2`
  (`config.json`, `model.safetensors`).
* **TiRex**: a recurrent network (xLSTM) of 35 million parameters, trained to forecast. Auer et al., "TiRex: zero-shot
  forecasting across long and short horizons with enhanced in-context learning", 2025; package `tirex-ts`, weights
  `NX-AI/TiRex` (`model.ckpt`). Package and weights come under the NXAI Community License, which is no open-source
  licence. A notice of it is logged as a warning (logger `readbench.engine.encoders`) before the weights are first
  looked for, once for each cache folder.
* **CHARM**, for those who have it: neither its code nor its weights are public. Dutta et al. (2026) describe a
  joint-embedding predictive network of width 384. Its owners can run it here from one file, a program exported by torch
  with its weights inside:

```python
batch, time = torch.export.Dim("batch"), torch.export.Dim("time", min=2)
program = torch.export.export(network.eval(), (torch.zeros(2, 64),), dynamic_shapes=({0: batch, 1: time},))
torch.export.save(program, "charm.pt2")
```

The program takes series (B, T) float32, one channel each, and gives vectors (B, 384). Load files only from people you
trust: an exported program is code.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from readbench.common.files import cache_root
from readbench.engine.abilities import OnDevice, Pretrained, ScalesWindows
from readbench.engine.devices import Torch, import_optional
from readbench.engine.encoders._pretrained import FrozenEncoder
from readbench.engine.encoders._weights import explain_missing_weights
from readbench.engine.parameters import ParameterRange
from readbench.engine.registry import ENCODERS
from readbench.errors import DataError, ParameterError

MANTIS_WEIGHTS, MANTIS_FILES = "paris-noah/MantisV2", ("config.json", "model.safetensors")
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
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, MANTIS_WEIGHTS, MANTIS_FILES),
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
    files: ClassVar = MANTIS_FILES

    weights: str = MANTIS_WEIGHTS
    layer: Annotated[int, ParameterRange(0, 5)] | None = None

    def admissible(self, length: int) -> int:
        """The nearest multiple of 32 that is no shorter, from 64 on."""
        return max(SHORTEST, -(-length // GRID) * GRID)

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network, cut off behind the layer that is read."""
        architecture = import_optional("mantis.architecture", self.name)
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
        return import_optional("torch", self.name).cat([network(part) for part in parts])


CHRONOS2_WEIGHTS, CHRONOS2_FILES = "amazon/chronos-2", ("config.json", "model.safetensors")


@ENCODERS.register(
    "chronos-2",
    title="Chronos-2",
    family="embedder",
    requires=("torch", "chronos"),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, CHRONOS2_WEIGHTS, CHRONOS2_FILES),
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
    files: ClassVar = CHRONOS2_FILES

    weights: str = CHRONOS2_WEIGHTS

    def admissible(self, length: int) -> int:
        """The length itself, up to the network's context."""
        return min(length, int(self.network.chronos_config.context_length))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network; a weight that the file lacks is an error, not a random number."""
        chronos = import_optional("chronos.chronos2", self.name)
        folder = paths[0].parent
        network, report = chronos.Chronos2Model.from_pretrained(folder, local_files_only=True, output_loading_info=True)
        if absent := report["missing_keys"] or report["mismatched_keys"]:
            raise DataError(f"chronos-2: {folder} lacks weights of the network, such as {min(map(str, absent))}.")
        return network.to(device).float().eval()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 768) means of the patches."""
        output, _, _, patches = network.encode(context=series)
        return output[0][:, :patches].mean(dim=1)


TIREX_WEIGHTS, TIREX_FILES = "NX-AI/TiRex", ("model.ckpt",)
LICENCE = (
    "TiRex, package and weights, is under the NXAI Community License, which is not an open-source licence: among other"
    " terms, companies with more than 100 million euros of yearly revenue need a commercial licence to build it into"
    " products or services. Read it before you go on: it is in the installed package tirex-ts and at"
    " https://huggingface.co/NX-AI/TiRex. This notice is shown once."
)


@ENCODERS.register(
    "tirex",
    title="TiRex",
    family="embedder",
    requires=("torch", "tirex"),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, TIREX_WEIGHTS, TIREX_FILES),
)
@dataclass(eq=False)
class TiRex(FrozenEncoder):
    """TiRex, frozen: hidden states of all 12 blocks, their mean over the patches of each channel, side by side.

    Any length is admissible up to the network's context (2048 points); longer windows are interpolated down to it. The
    network scales each series itself. Its recurrence always runs in bfloat16, whatever `dtype`.
    """

    name: ClassVar = "tirex"
    distribution: ClassVar = "tirex-ts"
    files: ClassVar = TIREX_FILES

    weights: str = TIREX_WEIGHTS
    batch: Annotated[int, ParameterRange(1)] = 512

    def paths(self) -> tuple[Path, ...]:
        """Where the checkpoint is; the licence is shown first."""
        show_licence()
        return super().paths()

    def admissible(self, length: int) -> int:
        """The length itself, up to the network's context."""
        return min(length, int(self.network.model.config.train_ctx_len))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network behind its fast reader."""
        torch, tirex = import_optional("torch", self.name), import_optional("tirex", self.name)
        checkpoint = torch.load(paths[0], map_location="cpu", weights_only=True)
        model = tirex.TiRexZero(backend="torch", **checkpoint["hyper_parameters"])
        model.on_load_checkpoint(checkpoint)
        model.load_state_dict(checkpoint["state_dict"])
        return HiddenStates(model.to(device).eval())

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 12 * 512) mean hidden states, block after block."""
        return network.means(series)


class HiddenStates:
    """Mean hidden states of a TiRex network, without the steps that are the same for all series.

    The network reads a full context of 2048 points; a shorter series is preceded by patches marked as missing, which
    the result leaves out. The recurrent states behind those patches do not depend on the series: they are computed
    once for each number of patches and handed to all series, and a window of 256 points takes 8 steps instead of 64.
    The result is that of the package's own `_embed_context(series).mean(dim=1).flatten(1)`, up to rounding.
    """

    def __init__(self, model: Torch) -> None:
        self.model = model
        self._states: dict[int, list[Torch]] = {}

    def means(self, series: Torch) -> Torch:
        """(B, blocks * width) for series (B, T)."""
        tokens, missing = self.model._prepare_context_for_embedding(series, None)  # noqa: SLF001 - no public way to it
        if missing and missing not in self._states:
            self._states[missing] = [state for _, state in self._steps(tokens[:1, :missing], None)]
        before = [state.expand(-1, len(series), -1) for state in self._states[missing]] if missing else None
        means = [hidden.mean(dim=1) for hidden, _ in self._steps(tokens[:, missing:], before)]
        return import_optional("torch", TiRex.name).cat(means, dim=1)

    def _steps(self, tokens: Torch, states: list[Torch] | None) -> Iterator[tuple[Torch, Torch]]:
        """Hidden states (B, patches, width) and last recurrent states (4, B, width), one block after the other."""
        hidden = self.model.input_patch_embedding(tokens)
        for i, block in enumerate(self.model.blocks):
            read, state = _recurrence(block.slstm_layer, block.norm_slstm(hidden), states[i] if states else None)
            hidden = hidden + read
            hidden = hidden + block.ffn(block.norm_ffn(hidden))
            yield hidden, state


def _recurrence(layer: Torch, hidden: Torch, state: Torch) -> tuple[Torch, Torch]:
    """One layer's output (B, patches, width) and the state (4, B, width) it ends in."""
    gates = import_optional("torch", TiRex.name).cat([gate(hidden) for gate in _gates(layer)], dim=-1)
    output, state = layer.slstm_cell(gates, state=state)
    return layer.group_norm(output).transpose(1, 2).reshape(hidden.shape), state


def _gates(layer: Torch) -> tuple[Torch, ...]:
    return layer.fgate, layer.igate, layer.zgate, layer.ogate


def show_licence() -> None:
    """Log the notice, unless this cache folder has seen it."""
    marker = cache_root() / "licences" / "tirex.txt"
    if not marker.exists():
        logging.getLogger(__name__).warning(LICENCE)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(LICENCE + "\n")


WIDTH = 384
NO_WEIGHTS = (
    "has no public weights. Who has them exports the network to a file (the documentation says how)"
    " and passes charm(weights=FILE). 'rocket' needs no weights."
)


@ENCODERS.register(
    "charm",
    title="CHARM",
    family="embedder",
    requires=("torch",),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
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
        export = import_optional("torch.export", self.name)
        program = export.load(paths[0])
        if device != "cpu":
            program = import_optional("torch.export.passes", self.name).move_to_device_pass(program, device)
        return program.module()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 384) vectors."""
        vectors = network(series)
        if tuple(vectors.shape) != (len(series), WIDTH):
            found = tuple(vectors.shape)
            raise DataError(f"charm: {self.weights} gave {found} for {tuple(series.shape)}; it must give (B, {WIDTH}).")
        return vectors
