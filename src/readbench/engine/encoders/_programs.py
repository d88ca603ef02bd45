"""Networks in a user's file: `onnx(FILE)`, `program(FILE)`, and CHARM for those who have it.

The network receives whole windows on the channel axis and longest length of the corpus, `(B, C, T)` float32, scaled,
and returns vectors `(B, D)`. A second input, if the file has one, receives the channel names, `(C, 64)` uint8: their
UTF-8 bytes padded with zeros, so that a network may read names and let channels attend to each other. Batch and time
should be dynamic, and channels too, unless the network is made for one plant.

```python
batch, channels, time = (torch.export.Dim(name, max=2**20) for name in ("batch", "channels", "time"))
shapes = ({0: batch, 1: channels, 2: time}, {0: channels})
example = torch.zeros(2, 3, 64), torch.zeros(3, 64, dtype=torch.uint8)
torch.export.save(torch.export.export(network.eval(), example, dynamic_shapes=shapes), "network.pt2")
torch.onnx.export(network.eval(), example, "network.onnx", dynamic_shapes=shapes)
```

Load files only from people you trust: an exported program is code.

**CHARM**: neither code nor weights are public. Dutta et al. (2026) describe a joint-embedding predictive network of
width 384 that reads descriptions of channels. Its owners can run it here as a program file.
"""

# Annotations are values here, not text (no `from __future__ import annotations`): dataclass constructors of subclasses
# use the fields below, and method texts read their types.

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.abilities import OnDevice, Pretrained, ScalesWindows
from readbench.engine.devices import Device, Torch, import_optional, inference_mode, pick_device, use_one_thread
from readbench.engine.encoders._raw import ChannelGrid
from readbench.engine.encoders._weights import digest_weights, locate_weights
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Normalisation
from readbench.engine.protocols import BatchEncoder, Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, MethodError, ReadbenchError

NAME_BYTES = 64
"""Bytes of a channel name that a network receives."""
MIN_LENGTH = 2


@dataclass(eq=False)
class FileEncoder(BatchEncoder):
    """Base class of encoders whose network is one file over `(B, C, T)` and, optionally, channel names.

    Args:
        weights: the file, or a folder that contains it under its usual name.
        length: interpolate windows to this many points; none: the longest of the corpus.
        metric: metric between vectors.
        norm: scaling of the windows.
        batch: windows per batch.
    """

    name: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    """Usual name of the file."""
    width: ClassVar[int | None] = None
    """Required length of vectors; None for any."""
    corpus_dependent: ClassVar[bool] = False

    weights: str = ""
    length: Annotated[int, ParameterRange(MIN_LENGTH, 65536)] | None = None
    metric: Metric = "euclidean"
    norm: Normalisation = "channel"
    batch: Annotated[int, ParameterRange(1)] = 32
    grid_: ChannelGrid | None = field(default=None, init=False, repr=False)
    _network: Any = field(default=None, init=False, repr=False)

    @abstractmethod
    def load(self, path: Path) -> Any:  # noqa: ANN401 - of an optional package
        """Load the network from the file, in evaluation mode."""

    @abstractmethod
    def forward(self, network: Any, values: Vectors, names: NDArray[np.uint8]) -> Vectors:  # noqa: ANN401
        """(B, D) vectors of values (B, C, T) with names (C, 64)."""

    def path(self) -> Path:
        """Path of the file."""
        if not self.weights:
            raise DataError(f"{self.name} needs a file: {self.name}(FILE).")
        return locate_weights(self.weights, self.files, self.name)[0]

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine the grid; nothing is learned."""
        self.path()
        longest = self.length
        self.grid_ = ChannelGrid.of(corpus, normals, self.norm, shortest=longest or MIN_LENGTH, longest=longest)
        return self

    @property
    def grid(self) -> ChannelGrid:
        """The grid of the corpus."""
        if self.grid_ is None:
            raise MethodError(f"Fit {self.name} first: it encodes windows on the channels of a corpus.")
        return self.grid_

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, also on the grid."""
        return super().footprint(windows) + self.grid.size

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) vectors of windows."""
        names = name_codes(self.grid.axis)
        parts = [
            self._run(self.grid(windows[start : start + self.batch]), names)
            for start in range(0, len(windows), self.batch)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.width or 0), np.float32)

    def _run(self, values: Vectors, names: NDArray[np.uint8]) -> Vectors:
        path = self.path()
        try:
            if self._network is None:
                self._network = self.load(path)
            vectors = np.asarray(self.forward(self._network, values, names), np.float32)
        except ReadbenchError:
            raise
        except Exception as error:  # a damaged file, or a network of other inputs, fails in any way
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise DataError(f"{path} cannot be run by {self.name} on windows {values.shape} ({reason}).") from error
        if vectors.ndim != 2 or len(vectors) != len(values) or self.width not in (None, vectors.shape[1]):
            wanted = f"(B, {self.width or 'D'})"
            raise DataError(f"{path} gave {vectors.shape} for {values.shape}; {self.name} must give {wanted}.")
        if not np.isfinite(vectors).all():
            raise MethodError(f"{self.name} gave a vector that is not finite: check {path}.")
        return vectors

    def weights_fingerprint(self) -> str:
        """Hash of the file; known before fitting."""
        return digest(self.name, digest_weights((self.path(),)))

    def fingerprint(self) -> str:
        """Hash of the file and the grid."""
        return digest(self.weights_fingerprint(), self.grid.fingerprint())

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the network, which each process loads."""
        return self.__dict__ | {"_network": None}


def name_codes(names: tuple[str, ...]) -> NDArray[np.uint8]:
    """(C, 64) UTF-8 bytes of names, padded with zeros.

    >>> name_codes(("oil",))[0, :5].tolist()
    [111, 105, 108, 0, 0]
    """
    codes = np.zeros((len(names), NAME_BYTES), np.uint8)
    for row, name in zip(codes, names, strict=True):
        spelled = name.encode()[:NAME_BYTES]
        row[: len(spelled)] = np.frombuffer(spelled, np.uint8)
    return codes


@ENCODERS.register(
    "onnx",
    title="ONNX file",
    family="embedder",
    requires=("onnxruntime",),
    abilities=(Pretrained, ScalesWindows),
    positional="weights",
    unavailable=lambda: "needs a file: onnx(FILE).",
)
@dataclass(eq=False)
class Onnx(FileEncoder):
    """A network in an ONNX file, run on the CPU."""

    name: ClassVar = "onnx"
    files: ClassVar = ("network.onnx",)

    def load(self, path: Path) -> Any:  # noqa: ANN401 - a session
        """Open a session on one thread, so that vectors do not depend on the number of processors."""
        runtime = import_optional("onnxruntime", self.name)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def forward(self, network: Any, values: Vectors, names: NDArray[np.uint8]) -> Vectors:  # noqa: ANN401
        """Return the first output; inputs are matched by position."""
        given = zip((declared.name for declared in network.get_inputs()), (values, names), strict=False)
        vectors: Vectors = network.run(None, dict(given))[0]
        return vectors


@dataclass(eq=False)
class TorchProgram(FileEncoder):
    """Base class of networks in a file exported by torch; `device` is where it runs."""

    device: Device = "auto"

    def load(self, path: Path) -> Torch:
        """Load the program to the device; return it with its number of inputs and the device."""
        export = import_optional("torch.export", self.name)
        if not is_zipfile(path):  # torch would print a long message
            raise ValueError("it is no file that torch.export.save wrote, or a part of one")
        program, device = export.load(path), pick_device(self.device, self.name)
        if device != "cpu":
            program = import_optional("torch.export.passes", self.name).move_to_device_pass(program, device)
        return program.module(), len(program.graph_signature.user_inputs), device

    def forward(self, network: Torch, values: Vectors, names: NDArray[np.uint8]) -> Vectors:
        """Run the program."""
        torch, (module, inputs, device) = import_optional("torch", self.name), network
        with use_one_thread(), inference_mode(device, "float32"):
            given = [torch.from_numpy(array).to(device) for array in (values, names)[:inputs]]
            vectors: Vectors = module(*given).float().cpu().numpy()
        return vectors


@ENCODERS.register(
    "program",
    title="Torch program",
    family="embedder",
    requires=("torch",),
    extra="models",
    abilities=(Pretrained, OnDevice, ScalesWindows),
    positional="weights",
    unavailable=lambda: "needs a file: program(FILE).",
)
@dataclass(eq=False)
class Program(TorchProgram):
    """A network in a file written by `torch.export.save`."""

    name: ClassVar = "program"
    files: ClassVar = ("network.pt2",)


NO_WEIGHTS = "needs weights, which are not public: who has them runs charm(FILE) (docs/encoders.md)."


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
class Charm(TorchProgram):
    """CHARM, from a program file of its owners; there is no default, since no weights are public."""

    name: ClassVar = "charm"
    files: ClassVar = ("charm.pt2",)
    width: ClassVar = 384

    def path(self) -> Path:
        """Path of the program."""
        if not self.weights:
            raise DataError(f"charm {NO_WEIGHTS}")
        return super().path()
