"""Foundation models as frozen encoders: Mantis, Chronos-2, Chronos-Bolt, TiRex and TimesFM.

* **MantisV2**: a transformer of 4 million parameters, trained on synthetic series by contrast. Feofanov et al.,
  "Mantis: lightweight calibrated foundation model for user-friendly time series classification", 2025, and its second
  version; package `mantis-tsfm`, weights `paris-noah/MantisV2` (`config.json`, `model.safetensors`). Networks of the
  first version (`paris-noah/Mantis-8M`, `paris-noah/MantisPlus`) are told by their `config.json`.
* **Chronos-2**: an encoder-only transformer of 120 million parameters, trained to forecast. Ansari et al., "Chronos-2:
  from univariate to universal forecasting", 2025; package `chronos-forecasting`, weights `amazon/chronos-2`
  (`config.json`, `model.safetensors`).
* **Chronos-Bolt**: a transformer after T5 of 9 to 205 million parameters, trained to forecast. Ansari et al., "Chronos:
  learning the language of time series", 2024, and its successor of that name; package and format as above, weights
  `amazon/chronos-bolt-base` and its smaller ones.
* **TiRex**: a recurrent network (xLSTM) of 35 million parameters, trained to forecast. Auer et al., "TiRex: zero-shot
  forecasting across long and short horizons with enhanced in-context learning", 2025; package `tirex-ts`, weights
  `NX-AI/TiRex` (`model.ckpt`). Package and weights come under the NXAI Community License, which is no open-source
  licence. A notice of it is logged as a warning (logger `readbench.engine.encoders`) before the weights are first
  looked for, once for each cache folder.
* **TimesFM 2.5**: a decoder-only transformer of 200 million parameters, trained to forecast. Das et al., "A
  decoder-only foundation model for time-series forecasting", ICML 2024; its network is part of `transformers`, weights
  `google/timesfm-2.5-200m-transformers` (`config.json`, `model.safetensors`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

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
    """Mantis, frozen: the class token of each channel.

    Lengths become the next multiple of 32 from 64 on, by linear interpolation: no measured point is discarded. A
    network of the first version reads windows of the length that it was trained on (512). Level and scale of a window,
    after `norm`, reach the network.

    Args:
        length: interpolate all windows to this length, a multiple of 32; the authors advise 512.
        layer: read this layer (counted from 0) as class token and token mean side by side (512 numbers) in place of the
            last one's class token (256 numbers, the paper's). The authors advise 2 for frozen use.
    """

    name: ClassVar = "mantis"
    distribution: ClassVar = "mantis-tsfm"
    files: ClassVar = MANTIS_FILES
    licence: ClassVar = "MIT (Mantis-8M); the page of MantisV2 names none, its package is Apache-2.0"

    weights: str = MANTIS_WEIGHTS
    length: Annotated[int, ParameterRange(SHORTEST, 8192)] | None = None
    layer: Annotated[int, ParameterRange(0, 5)] | None = None

    def __post_init__(self) -> None:
        """A length that the network cannot read is refused at once."""
        if self.length is not None and self.length % GRID:
            near = -(-self.length // GRID) * GRID
            raise ParameterError(f"mantis(length={self.length}) must be a multiple of {GRID}, such as {near}.")

    def admissible(self, length: int) -> int:
        """The length that was asked for, or that of the network, or the nearest multiple of 32 that is no shorter."""
        trained = getattr(self.network, "seq_len", None)
        if trained is not None and self.length not in (None, trained):
            raise ParameterError(f"mantis(length={self.length}): the network in {self.weights} reads {trained} points.")
        return trained or self.length or max(SHORTEST, -(-length // GRID) * GRID)

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network, cut off behind the layer that is read."""
        architecture = import_optional("mantis.architecture", self.name)
        last, token = (-1, "cls_token") if self.layer is None else (self.layer, "combined")
        first_version = "seq_len" in json.loads(paths[0].read_text())
        version = architecture.MantisV1 if first_version else architecture.MantisV2
        blank = version(device=device, return_transf_layer=last, output_token=token)
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


CHRONOS2_WEIGHTS, BOLT_WEIGHTS = "amazon/chronos-2", "amazon/chronos-bolt-base"
CHRONOS_FILES = ("config.json", "model.safetensors")


def load_whole(kind: Torch, folder: Path, owner: str) -> Torch:
    """A network of `transformers` from a folder; weights that are missing, surplus or of another shape are an error."""
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # they are named below, not ignored
    network, report = kind.from_pretrained(folder, local_files_only=True, **told)
    wrong = {
        "has weights of another shape": [own[0] for own in report["mismatched_keys"]],
        "lacks weights of the network": report["missing_keys"],
        "has weights that the network lacks": report["unexpected_keys"],
    }
    for what, names in wrong.items():
        if names:
            raise DataError(f"{owner}: {folder} {what}, such as {min(map(str, names))}.")
    return network


class ChronosEncoder(FrozenEncoder):
    """What the networks of the package `chronos-forecasting` have in common.

    Any length is admissible up to the network's context; longer windows are interpolated down to it.
    """

    distribution: ClassVar = "chronos-forecasting"
    files: ClassVar = CHRONOS_FILES
    licence: ClassVar = "Apache-2.0"
    module: ClassVar[str]
    network_class: ClassVar[str]

    def admissible(self, length: int) -> int:
        """The length itself, up to the network's context."""
        return min(length, int(self.network.chronos_config.context_length))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network, with the weights of the file and no others."""
        kind = getattr(import_optional(self.module, self.name), self.network_class)
        return load_whole(kind, paths[0].parent, self.name).to(device).float().eval()


@ENCODERS.register(
    "chronos-2",
    title="Chronos-2",
    family="embedder",
    requires=("torch", "chronos"),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, CHRONOS2_WEIGHTS, CHRONOS_FILES),
)
@dataclass(eq=False)
class Chronos2(ChronosEncoder):
    """Chronos-2, frozen: the mean over the patches of each channel.

    Channels are given as unrelated series, so that its group attention mixes nothing. The two tokens behind the patches
    (a register and the masked patch to forecast) are left out of the mean. Any length is admissible up to the network's
    context (8192 points); longer windows are interpolated down to it. The network scales each series itself: `norm`
    matters only for channels that are constant in the corpus, which `channel` sets to zero.
    """

    name: ClassVar = "chronos-2"
    module: ClassVar = "chronos.chronos2"
    network_class: ClassVar = "Chronos2Model"

    weights: str = CHRONOS2_WEIGHTS

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 768) means of the patches."""
        output, _, _, patches = network.encode(context=series)
        return output[0][:, :patches].mean(dim=1)


@ENCODERS.register(
    "chronos-bolt",
    title="Chronos-Bolt",
    family="embedder",
    requires=("torch", "chronos"),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, BOLT_WEIGHTS, CHRONOS_FILES),
)
@dataclass(eq=False)
class ChronosBolt(ChronosEncoder):
    """Chronos-Bolt, frozen: the mean over the patches of each channel, behind the encoder.

    The register token behind the patches is left out of the mean. Any length is admissible up to the network's context
    (2048 points); longer windows are interpolated down to it. The network scales each series itself.
    """

    name: ClassVar = "chronos-bolt"
    module: ClassVar = "chronos.chronos_bolt"
    network_class: ClassVar = "ChronosBoltModelForForecasting"

    weights: str = BOLT_WEIGHTS

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 768) means of the patches."""
        output = network.encode(context=series)[0]
        return output[:, : output.shape[1] - bool(network.chronos_config.use_reg_token)].mean(dim=1)


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

    Args:
        form: `published`, as the package's own `TiRexEmbedding` does it for one channel: the states of each block have
            length 1, and all of them together mean 0 and variance 1; or the states as they are.
    """

    name: ClassVar = "tirex"
    distribution: ClassVar = "tirex-ts"
    files: ClassVar = TIREX_FILES
    licence: ClassVar = "NXAI Community License"

    weights: str = TIREX_WEIGHTS
    batch: Annotated[int, ParameterRange(1)] = 512
    form: Literal["published", "raw"] = "published"

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
        means = network.means(series)
        if self.form == "raw":
            return means
        ops = import_optional("torch.nn.functional", self.name)
        blocks = means.float().reshape(len(means), len(network.model.blocks), -1)
        whole = ops.normalize(blocks, dim=-1).flatten(1)
        return ops.layer_norm(whole, whole.shape[1:])


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


TIMESFM_WEIGHTS, TIMESFM_FILES = "google/timesfm-2.5-200m-transformers", ("config.json", "model.safetensors")


@ENCODERS.register(
    "timesfm",
    title="TimesFM 2.5",
    family="embedder",
    requires=("torch", "transformers"),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    unavailable=partial(explain_missing_weights, TIMESFM_WEIGHTS, TIMESFM_FILES),
)
@dataclass(eq=False)
class TimesFM(FrozenEncoder):
    """TimesFM 2.5, frozen: the mean over the patches of each channel, behind the last block.

    Lengths become the next multiple of the patch (32 points), by linear interpolation; windows beyond the context
    (16384 points) are interpolated down to it. The network scales each series itself, by what it has read so far.
    """

    name: ClassVar = "timesfm"
    distribution: ClassVar = "transformers"
    files: ClassVar = TIMESFM_FILES
    licence: ClassVar = "Apache-2.0"

    weights: str = TIMESFM_WEIGHTS

    def admissible(self, length: int) -> int:
        """The nearest multiple of the patch that is no shorter, up to the network's context."""
        shape = self.network.config
        return min(-(-length // shape.patch_length), shape.context_length // shape.patch_length) * shape.patch_length

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """The network without its forecasting heads."""
        kind = import_optional("transformers", self.name).TimesFm2_5ModelForPrediction
        return load_whole(kind, paths[0].parent, self.name).model.to(device).float().eval()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 1280) means of the patches."""
        return network(past_values=series).last_hidden_state.mean(dim=1)
