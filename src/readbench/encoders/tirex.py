"""TiRex: a recurrent network (xLSTM) of 35 million parameters, trained to forecast.

Auer et al., "TiRex: zero-shot forecasting across long and short horizons with enhanced in-context learning", 2025;
package `tirex-ts`, weights `NX-AI/TiRex` (`model.ckpt`).

Package and weights come under the NXAI Community License, which is no open-source licence. A notice of it is logged as
a warning (logger `readbench.encoders.tirex`) before the weights are first looked for, once for each cache folder.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from readbench.abilities import OnDevice, Pretrained
from readbench.encoders.devices import Torch, package
from readbench.encoders.frozen import FrozenEncoder
from readbench.encoders.weights import missing
from readbench.parameters import Interval
from readbench.paths import cache_root
from readbench.registry import ENCODERS

WEIGHTS, FILES = "NX-AI/TiRex", ("model.ckpt",)
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
    abilities=(Pretrained, OnDevice),
    unavailable=partial(missing, WEIGHTS, FILES),
)
@dataclass(eq=False)
class TiRex(FrozenEncoder):
    """TiRex, frozen: hidden states of all 12 blocks, their mean over the patches of each channel, side by side.

    Any length is admissible up to the network's context (2048 points); longer windows are interpolated down to it. The
    network scales each series itself. Its recurrence always runs in bfloat16, whatever `dtype`.
    """

    name: ClassVar = "tirex"
    distribution: ClassVar = "tirex-ts"
    files: ClassVar = FILES

    weights: str = WEIGHTS
    batch: Annotated[int, Interval(1)] = 512

    def paths(self) -> tuple[Path, ...]:
        """Where the checkpoint is; the licence is shown first."""
        show_licence()
        return super().paths()

    def admissible(self, length: int) -> int:
        """The length itself, up to the network's context."""
        return min(length, int(self.network.model.config.train_ctx_len))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network behind its fast reader."""
        torch, tirex = package("torch", self.name), package("tirex", self.name)
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
        return package("torch", TiRex.name).cat(means, dim=1)

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
    gates = package("torch", TiRex.name).cat([gate(hidden) for gate in _gates(layer)], dim=-1)
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
