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
  licence. A warning states it (logger `readbench.engine.encoders`) before the weights are first located, once per cache
  folder.
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
PATCHES = 32
"""Patches per series; lengths must be a multiple."""
MIN_LENGTH = 64
"""Minimum length: patches of one point have no standard deviation."""
MAX_CONVOLUTION_POINTS = 2**17
"""Maximum points in the first convolution, which makes 256 numbers of each; bounds memory."""


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

    Lengths become the next multiple of 32, at least 64, by linear interpolation. A network of the first version reads
    windows of its training length (512). Level and scale of a window, after `norm`, reach the network.

    Args:
        length: interpolate all windows to this length, a multiple of 32; the authors recommend 512.
        layer: read class token and token mean of this layer (from 0), concatenated (512 numbers), instead of the last
            layer's class token (256 numbers, the paper's). The authors recommend 2 for frozen use.
    """

    name: ClassVar = "mantis"
    distribution: ClassVar = "mantis-tsfm"
    files: ClassVar = MANTIS_FILES
    licence: ClassVar = "MIT (Mantis-8M); the page of MantisV2 names none, its package is Apache-2.0"

    weights: str = MANTIS_WEIGHTS
    length: Annotated[int, ParameterRange(MIN_LENGTH, 8192)] | None = None
    layer: Annotated[int, ParameterRange(0, 5)] | None = None

    def __post_init__(self) -> None:
        """Refuse a length that the network cannot read."""
        if self.length is not None and self.length % PATCHES:
            near = -(-self.length // PATCHES) * PATCHES
            raise ParameterError(f"mantis(length={self.length}) must be a multiple of {PATCHES}, such as {near}.")

    def admissible(self, length: int) -> int:
        """The parameter `length`, or the network's training length, or the next multiple of 32."""
        trained = getattr(self.network, "seq_len", None)
        if trained is not None and self.length not in (None, trained):
            raise ParameterError(f"mantis(length={self.length}): the network in {self.weights} reads {trained} points.")
        return trained or self.length or max(MIN_LENGTH, -(-length // PATCHES) * PATCHES)

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """Load the network up to the layer that is read."""
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
        parts = series[:, None].split(max(1, MAX_CONVOLUTION_POINTS // series.shape[1]))
        return import_optional("torch", self.name).cat([network(part) for part in parts])


CHRONOS2_WEIGHTS, BOLT_WEIGHTS = "amazon/chronos-2", "amazon/chronos-bolt-base"
CHRONOS_FILES = ("config.json", "model.safetensors")


def load_whole(kind: Torch, folder: Path, owner: str) -> Torch:
    """Load a network of `transformers` from a folder; missing, surplus or misshapen weights raise `DataError`."""
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # reported below instead
    network, report = kind.from_pretrained(folder, local_files_only=True, **told)
    wrong = {
        "has weights of another shape": [name for name, *_ in report["mismatched_keys"]],
        "lacks weights of the network": report["missing_keys"],
        "has weights that the network lacks": report["unexpected_keys"],
    }
    for what, names in wrong.items():
        if names:
            raise DataError(f"{owner}: {folder} {what}, such as {min(map(str, names))}.")
    return network


class ChronosEncoder(FrozenEncoder):
    """Base class of the networks of the package `chronos-forecasting`.

    Any length up to the network's context is admissible; longer windows are interpolated down to it.
    """

    distribution: ClassVar = "chronos-forecasting"
    files: ClassVar = CHRONOS_FILES
    licence: ClassVar = "Apache-2.0"
    module: ClassVar[str]
    network_class: ClassVar[str]

    def admissible(self, length: int) -> int:
        """The length, up to the network's context."""
        return min(length, int(self.network.chronos_config.context_length))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """Load the network strictly from the file."""
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

    Channels are unrelated series to the network, so that its group attention mixes nothing. The two tokens after the
    patches (a register and the masked patch to forecast) are left out of the mean. Any length up to the network's
    context (8192 points) is admissible; longer windows are interpolated down to it. The network scales each series, so
    `norm` matters only for channels that are constant in the corpus, which `channel` sets to zero.
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
    """Chronos-Bolt, frozen: the mean over the encoded patches of each channel.

    The register token after the patches is left out of the mean. Any length up to the network's context (2048 points)
    is admissible; longer windows are interpolated down to it. The network scales each series.
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
    """TiRex, frozen: mean hidden states of all 12 blocks over the patches of each channel, concatenated.

    Any length up to the network's context (2048 points) is admissible; longer windows are interpolated down to it. The
    network scales each series. Its recurrence always runs in bfloat16, regardless of `dtype`.

    Args:
        form: `published` as in the package's `TiRexEmbedding` for one channel: the states of each block are scaled to
            length 1, and all together to mean 0 and variance 1. `raw`: the states unchanged.
    """

    name: ClassVar = "tirex"
    distribution: ClassVar = "tirex-ts"
    files: ClassVar = TIREX_FILES
    licence: ClassVar = "NXAI Community License"

    weights: str = TIREX_WEIGHTS
    batch: Annotated[int, ParameterRange(1)] = 512
    form: Literal["published", "raw"] = "published"

    def paths(self) -> tuple[Path, ...]:
        """Path of the checkpoint; shows the licence first."""
        show_licence()
        return super().paths()

    def admissible(self, length: int) -> int:
        """The length, up to the network's context."""
        return min(length, int(self.network.model.config.train_ctx_len))

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """Load the network with a faster forward pass."""
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
    """Mean hidden states of a TiRex network, skipping the steps that are the same for all series.

    The network reads a full context of 2048 points; a shorter series is preceded by patches marked as missing. The
    recurrent states after those patches do not depend on the series: they are computed once per number of patches, so
    that a window of 256 points takes 8 steps instead of 64. The result equals the package's
    `_embed_context(series).mean(dim=1).flatten(1)` up to rounding.
    """

    def __init__(self, model: Torch) -> None:
        self.model = model
        self._states: dict[int, list[Torch]] = {}

    def means(self, series: Torch) -> Torch:
        """(B, blocks * width) for series (B, T)."""
        tokens, missing = self.model._prepare_context_for_embedding(series, None)  # noqa: SLF001 - no public way
        if missing and missing not in self._states:
            self._states[missing] = [state for _, state in self._steps(tokens[:1, :missing], None)]
        before = [state.expand(-1, len(series), -1) for state in self._states[missing]] if missing else None
        means = [hidden.mean(dim=1) for hidden, _ in self._steps(tokens[:, missing:], before)]
        return import_optional("torch", TiRex.name).cat(means, dim=1)

    def _steps(self, tokens: Torch, states: list[Torch] | None) -> Iterator[tuple[Torch, Torch]]:
        """Yield hidden states (B, patches, width) and last recurrent states (4, B, width) of each block."""
        hidden = self.model.input_patch_embedding(tokens)
        for i, block in enumerate(self.model.blocks):
            read, state = _recurrence(block.slstm_layer, block.norm_slstm(hidden), states[i] if states else None)
            hidden = hidden + read
            hidden = hidden + block.ffn(block.norm_ffn(hidden))
            yield hidden, state


def _recurrence(layer: Torch, hidden: Torch, state: Torch) -> tuple[Torch, Torch]:
    """Output (B, patches, width) and final state (4, B, width) of one layer."""
    gates = import_optional("torch", TiRex.name).cat([gate(hidden) for gate in _gates(layer)], dim=-1)
    output, state = layer.slstm_cell(gates, state=state)
    return layer.group_norm(output).transpose(1, 2).reshape(hidden.shape), state


def _gates(layer: Torch) -> tuple[Torch, ...]:
    return layer.fgate, layer.igate, layer.zgate, layer.ogate


def show_licence() -> None:
    """Log the licence, once per cache folder."""
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
    """TimesFM 2.5, frozen: the mean over the patches of each channel, after the last block.

    Lengths become the next multiple of the patch (32 points) by linear interpolation; windows beyond the context (16384
    points) are interpolated down to it. The network scales each series by what it has read so far.
    """

    name: ClassVar = "timesfm"
    distribution: ClassVar = "transformers"
    files: ClassVar = TIMESFM_FILES
    licence: ClassVar = "Apache-2.0"

    weights: str = TIMESFM_WEIGHTS

    def admissible(self, length: int) -> int:
        """The next multiple of the patch, up to the network's context."""
        shape = self.network.config
        return min(-(-length // shape.patch_length), shape.context_length // shape.patch_length) * shape.patch_length

    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """Load the network without its forecasting heads."""
        kind = import_optional("transformers", self.name).TimesFm2_5ModelForPrediction
        return load_whole(kind, paths[0].parent, self.name).model.to(device).float().eval()

    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, 1280) means of the patches."""
        return network(past_values=series).last_hidden_state.mean(dim=1)
