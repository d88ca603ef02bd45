"""Small libraries with known faults."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from readbench.cases import Library
from readbench.engine.windows import WindowSet

CHANNELS = ("pressure", "flow", "speed")
FAULTS = ("leak", "stuck valve", "noise")
FAST = "rocket(features=504)+verdict"
"""A method that is fitted in no time and learns from labels."""


def window(fault: str, rng: np.random.Generator, steps: int = 40) -> np.ndarray:
    """(3, T) one window of a fault, or of normal operation."""
    values = rng.normal(size=(3, steps))
    ramp = np.linspace(0, 6, steps)
    if fault == "leak":
        values[0] -= ramp
        values[1] += ramp
    elif fault == "stuck valve":
        values[1, steps // 2 :] -= 6
    elif fault == "noise":
        values[2] *= 6
    return values


def windows(count: int, seed: int = 0, *, labelled: bool = True, prefix: str = "w") -> WindowSet:
    """Windows of the faults in turn."""
    rng = np.random.default_rng(seed)
    faults = [FAULTS[i % len(FAULTS)] for i in range(count)]
    return WindowSet.from_arrays(
        [window(fault, rng) for fault in faults],
        channels=CHANNELS,
        labels=[1 + FAULTS.index(fault) if labelled else -1 for fault in faults],
        classes=("normal", *FAULTS),
        ids=[f"{prefix}{i}" for i in range(count)],
        assets=[f"pump {i % 2}" for i in range(count)],
    )


def normals(count: int, seed: int = 99, prefix: str = "n") -> WindowSet:
    """Windows of normal operation."""
    rng = np.random.default_rng(seed)
    return WindowSet.from_arrays(
        [window("", rng) for _ in range(count)],
        channels=CHANNELS,
        labels=[0] * count,
        classes=("normal",),
        ids=[f"{prefix}{i}" for i in range(count)],
        assets=[f"pump {i % 2}" for i in range(count)],
    )


def filled(where: str | Path, count: int = 12) -> Library:
    """A library of labelled cases and normals; in a folder a copy of one that was filled before."""
    if isinstance(where, Path):
        shutil.copytree(_filled_once(count).name, where)
        return Library.open(where)
    return _fill(where, count)


@cache
def _filled_once(count: int) -> TemporaryDirectory[str]:
    """A folder with such a library, which goes when the process ends."""
    folder = TemporaryDirectory(prefix="readbench-filled-", ignore_cleanup_errors=True)
    _fill(folder.name, count)
    return folder


def _fill(where: str, count: int) -> Library:
    library = Library.create(where)
    library.add_normals(normals(10))
    library.add(windows(count))
    return library
