"""Devices and precision of networks; imports torch on demand."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any, Literal

from readbench.engine.abilities import OnDevice
from readbench.errors import UsageError

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "bfloat16"]
Torch = Any
"""A tensor, network or module of torch, which is optional and so cannot be named as a type."""


def import_optional(name: str, owner: str) -> Torch:
    """Import an optional package for the encoder `owner`, or raise `UsageError` with the command to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{owner} needs {error.name}: pip install 'readbench[models]'") from error


def pick_device(device: Device, owner: str) -> str:
    """Resolve a device to `cpu` or `cuda`; `auto` is the GPU if there is one."""
    present = import_optional("torch", owner).cuda.is_available()
    if device == "cuda" and not present:
        raise UsageError(f"{owner}(device=cuda) finds no CUDA GPU that torch can use here. Use device=cpu or auto.")
    if device == "auto":
        return "cuda" if present else "cpu"
    return device


def name_gpu() -> str:
    """Name of the GPU that torch uses; "" without a GPU or torch."""
    cuda = import_optional("torch", "name_gpu").cuda if find_spec("torch") else None
    return str(cuda.get_device_name()) if cuda and cuda.is_available() else ""


def device_of(encoder: OnDevice | None) -> Device:
    """Device on which an encoder runs and its vectors are searched: `cpu` or `cuda`; None means the CPU."""
    if encoder is None or encoder.device == "cpu":
        return "cpu"
    device: Device = "cuda" if encoder.device == "cuda" else "auto"
    return "cuda" if pick_device(device, type(encoder).__name__.lower()) == "cuda" else "cpu"


@contextmanager
def use_exact_products() -> Iterator[None]:
    """Compute float32 matrix products on a GPU in full precision (no TF32) inside the block."""
    settings = import_optional("torch", "exact_products").backends.cuda.matmul
    newer = hasattr(settings, "fp32_precision")  # from torch 2.9 on, which warns of the older name
    name, exact = ("fp32_precision", "ieee") if newer else ("allow_tf32", False)
    before = getattr(settings, name)
    setattr(settings, name, exact)
    try:
        yield
    finally:
        setattr(settings, name, before)


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Limit torch to one thread on the CPU, so that results do not depend on the number of processors."""
    torch = import_optional("torch", "one_thread")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def inference_mode(device: str, dtype: Precision) -> Iterator[None]:
    """Disable gradients and set the precision of matrix products.

    `bfloat16` is torch's mixed precision: weights, norms and sums stay in float32. With `float32`, convolutions on a
    GPU use full precision instead of TF32 (10 bits), so that vectors agree with those of a CPU.
    """
    torch = import_optional("torch", "inference")
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if dtype == "bfloat16":
            stack.enter_context(torch.autocast(device, dtype=torch.bfloat16))
        if device == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False))
        yield
