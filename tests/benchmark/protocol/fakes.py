"""A source whose recordings are written down in the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.benchmark.protocol import Channel, Protocol, Recording, Side, SourceInfo

LENGTH = 4
"""Timesteps per window unless a test says otherwise."""
WINDOWED = Protocol(length=LENGTH)


@dataclass
class FakeSource:
    """Recordings in memory; counts how often they are read and can break off in the middle.

    Args:
        info: typed facts.
        made: the recordings.
        version: stands for the files' contents.
        breaks_after: raise `OSError` after this many recordings.
        given: recordings handed out so far, over all reads.
    """

    info: SourceInfo
    made: Sequence[Recording]
    version: str = "1"
    breaks_after: int | None = None
    given: int = field(default=0, init=False)

    def fingerprint(self, root: Path | None) -> str:
        return f"{self.version} {root}"

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        del root
        return self._stream(0)

    def _stream(self, first: int) -> Iterator[Recording]:
        for number in range(first, len(self.made)):
            if number == self.breaks_after:
                raise OSError("the disk went away")
            self.given += 1
            yield self.made[number]


@dataclass
class SeekableSource(FakeSource):
    """The same, and it can start anywhere."""

    def recordings_from(self, first: int) -> Iterator[Recording]:
        return self._stream(first)


def info(faults: int, protocol: Protocol = WINDOWED, *, name: str = "fake", channels: int = 1) -> SourceInfo:
    """Facts of a source with this many fault types and channels."""
    return SourceInfo(
        name=name,
        title="Fake",
        domain="condition monitoring",
        description="Numbers written down in a test.",
        channels=tuple(Channel(f"x{c}") for c in range(channels)),
        faults=tuple(f"fault-{k}" for k in range(1, faults + 1)),
        protocol=protocol,
        split_unit="recording",
        asset_unit="",
        licence="none",
        citation="none",
    )


def recording(
    labels: ArrayLike,
    values: ArrayLike | None = None,
    *,
    name: str = "r",
    group: str | None = None,
    asset: str = "",
    side: Side | None = None,
    start: float = float("nan"),
    step: float = 1.0,
) -> Recording:
    """A recording with these labels (T,); by default every value (C = 2, T) is distinct and none is zero."""
    own = np.asarray(labels, np.int32)
    readings = distinct(2, len(own)) if values is None else np.atleast_2d(np.asarray(values, np.float64))
    return Recording(
        id=name,
        values=readings,
        channels=tuple(f"x{c}" for c in range(len(readings))),
        labels=own,
        group=name if group is None else group,
        asset=asset,
        start=start,
        step=step,
        side=side,
    )


def distinct(channels: int, steps: int, first: float = 1.0) -> NDArray[np.float64]:
    """(C, T) values that tell where they come from."""
    return first + np.arange(channels * steps, dtype=np.float64).reshape(channels, steps)


def runs(
    counts: Sequence[int], *, windows: int = 3, seed: int = 0, sides: bool = False, length: int = LENGTH
) -> list[Recording]:
    """`counts[k]` recordings of class k, in mixed order, each its own group of `windows` windows of random numbers.

    Args:
        counts: recordings of class 0 (normal), 1, 2, ...
        windows: windows each recording is cut into.
        seed: of the values and the order.
        sides: put every third recording of each class on the test side of a native split.
        length: timesteps per window.
    """
    rng = np.random.default_rng(seed)
    made = []
    for label, count in enumerate(counts):
        for i in range(count):
            side: Side | None = None if not sides else "test" if i % 3 == 2 else "train"
            values = rng.normal(loc=3.0 * label, size=(1, length * windows))
            made.append(recording([label] * length * windows, values, name=f"run-{label}-{i}", side=side))
    return [made[i] for i in rng.permutation(len(made))]


def source(counts: Sequence[int], protocol: Protocol = WINDOWED, *, windows: int = 3, seed: int = 0) -> FakeSource:
    """A source of `runs`."""
    made = runs(counts, windows=windows, seed=seed, sides=protocol.native_split)
    return FakeSource(info(len(counts) - 1, protocol), made)
