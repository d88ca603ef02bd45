"""Base of all simulators: runs, seeds and streaming.

A simulated source is an endless list of numbered runs. Run i has a fault class, an asset and its own regime; runs are
simulated in batches of fixed size, each from a seed of its own, so that

* the same seed gives the same runs, for any number of runs and any first run;
* memory holds one batch, so a million windows stream to disk;
* all runs of a batch advance together, vectorised over the batch.

A domain implements `simulate`: from a `RunBatch` to values (B, C, L) and labels (B, L).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import BeforeRule, Recording, SourceInfo, vary_before
from readbench.common.files import digest
from readbench.engine.parameters import ParameterRange

BATCH = 64
"""Runs per batch. Part of the data's identity: changing it changes every simulated value."""


class ColumnTable:
    """Columns of equal length: base of frozen dataclasses of arrays, or of such tables, whose first axis is the row."""

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Self:
        """The chosen rows, in the given order."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        chosen = {name: c.take(rows) if isinstance(c, ColumnTable) else c[rows] for name, c in columns.items()}
        return type(self)(**chosen)


def switch_states(
    draws: NDArray[np.float64], state: NDArray[np.bool_], on: NDArray[np.float64], off: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """(L, B) two-state Markov chains from a `state` (B,), with mean stays of `on` and `off` steps; `draws` (L, B)."""
    states = np.empty(draws.shape, dtype=np.bool_)
    for t, drawn in enumerate(draws):
        state = state ^ (drawn < np.where(state, 1 / on, 1 / off))
        states[t] = state
    return states


@dataclass(frozen=True, eq=False)
class RunBatch:
    """B runs to simulate together.

    Args:
        index: (B,) number of each run.
        fault: (B,) class index; 0 is a run without fault.
        asset: (B,) which machine, plant, vehicle or patient.
        rng: source of all randomness of this batch.
    """

    index: NDArray[np.int64]
    fault: NDArray[np.int32]
    asset: NDArray[np.int32]
    rng: np.random.Generator

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class Simulator(ABC):
    """Base of all simulated sources.

    Args:
        runs: how many runs to produce.
        seed: seed of the data (not of the split).
        difficulty: 0 easy, 1 as designed, above 1 harder; each domain documents what it scales.
        before: what windows bring as the time before them: `onset`, `preceding` or `none`.
        before_steps: most steps of it.
    """

    runs: int
    seed: int
    difficulty: float = 1.0
    before: BeforeRule = "onset"
    before_steps: Annotated[int, ParameterRange(1)] | None = None

    VERSION: ClassVar[int] = 1
    """Raise when a change of the code changes the data."""
    INFO: ClassVar[SourceInfo]
    MIX: ClassVar[tuple[int, ...]]
    """Runs of class 0, 1, 2, ... in each block of sum(MIX) runs: the class imbalance."""
    ASSETS: ClassVar[int]
    RUN_LENGTH: ClassVar[int]
    STEP: ClassVar[float] = 1.0
    """Seconds between samples."""

    @property
    def info(self) -> SourceInfo:
        """Typed facts."""
        return vary_before(self.INFO, self.before, self.before_steps)

    def sized(self, windows: int) -> Self:
        """The same source with enough runs for at least `windows` windows."""
        protocol = self.INFO.protocol
        length = protocol.length or self.RUN_LENGTH
        per_run = 1 + (self.RUN_LENGTH - length) // (protocol.stride or length)
        return replace(self, runs=-(-windows // per_run))

    def fingerprint(self, root: Path | None) -> str:  # noqa: ARG002 - simulated sources have no files
        """Hash of version, size, seed and difficulty."""
        return digest(self.INFO.name, self.VERSION, BATCH, self.runs, self.seed, self.difficulty)

    def recordings(self, root: Path | None = None) -> Iterator[Recording]:  # noqa: ARG002
        """Stream all runs; memory holds one batch."""
        return self.recordings_from(0)

    def recordings_from(self, first: int) -> Iterator[Recording]:
        """Stream the runs from number `first` on, without simulating the batches before it."""
        for start in range(first - first % BATCH, self.runs, BATCH):
            yield from islice(self._batch(start), max(0, first - start), None)

    def _batch(self, first: int) -> Iterator[Recording]:
        index = np.arange(first, first + BATCH)
        rng = np.random.default_rng([self.seed, 1, first])
        batch = RunBatch(index, self.faults_of(index), self.assets_of(index), rng)
        values, labels = self.simulate(batch)
        for b in range(min(BATCH, self.runs - first)):
            yield Recording(
                id=f"run-{index[b]:06d}",
                values=values[b],
                channels=tuple(c.name for c in self.INFO.channels),
                labels=labels[b].astype(np.int32),
                group=self.group_of(int(index[b])),
                asset=f"{self.INFO.asset_unit}-{batch.asset[b]:03d}",
                start=0.0,
                step=self.STEP,
                rate=1 / self.STEP,
            )

    def faults_of(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Class of each run: every block of sum(MIX) runs is a seeded shuffle of the mix."""
        deck = np.repeat(np.arange(len(self.MIX), dtype=np.int32), self.MIX)
        blocks = {int(b): np.random.default_rng([self.seed, 2, int(b)]).permutation(deck) for b in index // len(deck)}
        return np.array([blocks[int(i // len(deck))][i % len(deck)] for i in index], dtype=np.int32)

    def assets_of(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """Asset of each run: drawn evenly, independent of the class."""
        draws = [np.random.default_rng([self.seed, 3, int(i)]).integers(self.ASSETS) for i in index]
        return np.array(draws, dtype=np.int32)

    def group_of(self, run: int) -> str:
        """Split group of a run: by default each run has its own regime and is its own group."""
        return f"run-{run:06d}"

    def asset_rng(self) -> np.random.Generator:
        """Randomness for parameters that belong to assets: draw tables of ASSETS rows from it."""
        return np.random.default_rng([self.seed, 4])

    @abstractmethod
    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, C, RUN_LENGTH) in `INFO.channels` order and labels (B, RUN_LENGTH) of a batch."""


def quantise(values: NDArray[np.float64], resolution: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to the sensors' resolution, as a converter does.

    Realistic, and it makes the bytes independent of the last bits in which processors' maths libraries differ.

    Args:
        values: (B, C, L) readings.
        resolution: (C,) step of each sensor.
    """
    step = resolution[None, :, None]
    return (np.round(values / step) * step).astype(np.float32)
