"""What a data source is: typed facts about it, its protocol, and a stream of recordings.

A `Recording` is raw: a series as its source wrote it, with per-timestep labels, before cleaning and cutting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Literal, Protocol as Interface, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from readbench.engine.parameters import ParameterRange
from readbench.errors import DataError, ParameterError

Side = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Windows that a source chose itself.

    Args:
        starts: (W,) first steps.
        labels: (W,) class indices.
        befores: (W,) the time before each window, (C, T_b) or None; windows may share one. Without it, that of the
            recording's rows is taken (`Protocol.before`).
        facts: (W,) numbers that are known of each window beforehand, by name; NaN where unknown.
    """

    starts: NDArray[np.intp]
    labels: NDArray[np.int32]
    befores: tuple[NDArray[np.float32] | None, ...] | None = None
    facts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Recording:
    """One continuous series as its source wrote it, before cleaning and cutting.

    Example: `Recording("run-1", values, ("flow", "level"), labels, group="run-1")`

    Args:
        id: unique within the source; window ids are derived from it.
        values: (C, T) readings, NaN where there is none.
        channels: C names.
        labels: (T,) class index per timestep; 0 normal, -1 not labelled. One constant value where a recording
            carries a single native label.
        group: what must not straddle the split (run, instance, capture, patient ...).
        asset: the machine, well or patient; "" where unknown.
        start: time of the first sample in seconds; NaN where unknown.
        step: seconds between samples.
        side: the side of the source's own split, where it has one.
        cuts: where a source says itself which windows there are (around heartbeats, say): their first steps and labels.
        rate: samples a second; NaN where unknown.
        before: (C, T_b) readings of the same asset just before the first step, normal as far as anyone knew; None where
            there are none, or where they are part of `values`.
        facts: numbers that are known beforehand, by name (shaft speed, load); nothing that is part of the truth.
    """

    id: str
    values: NDArray[np.float32] | NDArray[np.float64]
    channels: tuple[str, ...]
    labels: NDArray[np.int32]
    group: str
    asset: str = ""
    start: float = float("nan")
    step: float = 1.0
    side: Side | None = None
    cuts: Cuts | None = None
    rate: float = float("nan")
    before: NDArray[np.float32] | NDArray[np.float64] | None = None
    facts: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        channels, steps = self.values.shape
        return (
            f"Recording({self.id!r}, {channels} channels x {steps} steps, group {self.group!r}, asset {self.asset!r})"
        )

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) != 2 or shape[0] != len(self.channels) or len(set(self.channels)) != len(self.channels):
            raise DataError(
                f"Recording {self.id}: values of shape {shape} need as many distinct channels; got {self.channels}."
            )
        if self.labels.shape != shape[1:]:
            raise DataError(f"Recording {self.id}: {shape[1]} timesteps but labels of shape {self.labels.shape}.")
        if self.before is not None and (self.before.ndim != 2 or len(self.before) != shape[0]):
            raise DataError(
                f"Recording {self.id}: the time before has shape {self.before.shape}, not {shape[0]} channels."
            )


Domain = Literal[
    "condition monitoring",
    "industrial control",
    "microservice and telecom operations",
    "automotive intrusion",
    "physiological and general signals",
    "other",
]
LabelRule = Literal["majority", "majority-or-coverage", "native"]
CutLabelRule = Literal["majority", "majority-or-coverage"]
"""Rules for windows that are cut out of longer recordings."""
Missing = Literal["fill", "drop"]
CompositionRule = Literal["stratified", "query-classes"]
SplitUnit = Literal["group", "asset"]
BeforeRule = Literal["onset", "preceding", "none"]
NORMAL_CLASS = "normal"
"""Name of class 0 of every source."""


@dataclass(frozen=True)
class Channel:
    """One measured quantity, such as `Channel("flow", "m3/h", "Feed of the column.")`."""

    name: str
    unit: str = ""
    description: str = ""


@dataclass(frozen=True)
class Protocol:
    """How recordings of a source become labelled windows and a split.

    Args:
        length: window length T; None where each recording is one window.
        stride: steps between window starts; default T (no overlap).
        normal_stride: stride in recordings without any fault, where normals should be denser.
        label_rule: `majority` (strict majority of timesteps), `majority-or-coverage` (Eq. 2 of the paper) or `native`
            (the recording's one label).
        min_coverage: least share of the window that a fault must fill to claim it by coverage.
        missing: `fill` (forward, then backward, absent channel to zero) or `drop` (rows with a gap are left out,
            absent channels are no channels).
        onset_codes: pairs (onset code, steady code); the first is merged into the second.
        test_share: share of the groups of each class that is held out.
        native_split: keep the source's own train and test sides.
        composition: `stratified` (corpus and queries in native class proportions) or `query-classes` (far more classes
            than queries: the corpus holds the queries' classes only, other classes stand in for normals).
        before: what windows bring as the time before them. `onset`: somebody knows when the fault began; the latest
            normal steps before that, and before the window. `preceding`: the steps just before the window, whatever
            they hold. `none`: nothing.
        before_steps: most steps of it.
        before_least: fewest steps of it that are worth bringing; default a quarter of the window.
    """

    length: int | None
    stride: int | None = None
    normal_stride: int | None = None
    label_rule: LabelRule = "majority"
    min_coverage: float = 0.0
    missing: Missing = "fill"
    onset_codes: tuple[tuple[int, int], ...] = ()
    test_share: float = 0.2
    native_split: bool = False
    composition: CompositionRule = "stratified"
    before: BeforeRule = "onset"
    before_steps: int = 2048
    before_least: int | None = None


@dataclass(frozen=True)
class SourceInfo:
    """Typed facts about a source; everything a table or a prompt says about it comes from here.

    Args:
        name: registered name.
        title: name in tables.
        domain: one of the five diagnostic domains, or `other` for what users bring.
        description: three to five sentences on sensors and labels.
        channels: what is measured.
        faults: names of classes 1, 2, ...; class 0 is always "normal".
        protocol: from recordings to windows.
        split_unit: what a group is ("simulation run", "patient" ...).
        asset_unit: what an asset is ("plant", "well" ...); "" where unknown.
        licence: SPDX name or sentence.
        citation: where the data or the model come from.
        url: where to get the data; "" where they are generated.
        size: size of the download, or what is generated.
        simulated: numbers on it are marked as simulated wherever they appear.
        verified: files of the official data were read by the code of this source; a simulator is its own data.
        redistributable: its licence is known and lets the data be passed on; attribution and limits are in `licence`.
    """

    name: str
    title: str
    domain: Domain
    description: str
    channels: tuple[Channel, ...]
    faults: tuple[str, ...]
    protocol: Protocol
    split_unit: str
    asset_unit: str
    licence: str
    citation: str
    url: str = ""
    size: str = ""
    simulated: bool = False
    verified: bool = False
    redistributable: bool = False

    def __repr__(self) -> str:
        faults = shorten(", ".join(self.faults), 200, placeholder=" ...")
        return (
            f"SourceInfo({self.name!r}, {self.title}: {self.domain}, {len(self.channels)} channels; faults: {faults})"
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names by index, normal first."""
        return (NORMAL_CLASS, *self.faults)

    @property
    def generated(self) -> bool:
        """Whether its values are made when they are needed; what others simulated comes as files."""
        return self.simulated and not self.url


def vary_before(info: SourceInfo, rule: BeforeRule, steps: int | None) -> SourceInfo:
    """Facts of a source with another rule for the time before its windows, or with more or fewer steps of it."""
    own = info.protocol
    return replace(info, protocol=replace(own, before=rule, before_steps=steps or own.before_steps))


@dataclass(eq=False, kw_only=True)
class BeforeSource:
    """Base of sources whose recordings hold the time before their windows: what of it they bring is a parameter.

    What is not given is as in the protocol of the class, so that a source without parameters is the published one.

    Args:
        before: what windows bring as the time before them: `onset`, `preceding` or `none`.
        before_steps: most steps of it.
    """

    before: BeforeRule = "onset"
    before_steps: Annotated[int, ParameterRange(1)] | None = None
    info: SourceInfo = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.info = vary_before(self.info, self.before, self.before_steps)


@dataclass(eq=False, kw_only=True)
class CutSource(BeforeSource):
    """Base of sources that cut long recordings into windows: how they are cut and labelled are parameters.

    Args:
        window: window length T.
        stride: steps between window starts.
        normal_stride: stride in recordings without any fault.
        label_rule: `majority` or `majority-or-coverage`.
        min_coverage: least share of the window that a fault must fill to claim it by coverage.
    """

    window: Annotated[int, ParameterRange(2)] | None = None
    stride: Annotated[int, ParameterRange(1)] | None = None
    normal_stride: Annotated[int, ParameterRange(1)] | None = None
    label_rule: CutLabelRule | None = None
    min_coverage: Annotated[float, ParameterRange(0, 1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        own = self.info.protocol
        protocol = replace(
            own,
            length=self.window or own.length,
            stride=self.stride or own.stride,
            normal_stride=self.normal_stride or own.normal_stride,
            label_rule=self.label_rule or own.label_rule,
            min_coverage=own.min_coverage if self.min_coverage is None else self.min_coverage,
        )
        if self.min_coverage is not None and protocol.label_rule != "majority-or-coverage":
            raise ParameterError(
                f"The 'min_coverage' parameter of {self.info.name} counts for windows labelled by coverage only: "
                "add label_rule=majority-or-coverage."
            )
        self.info = replace(self.info, protocol=protocol)


@runtime_checkable
class Seekable(Interface):
    """A source that can start anywhere without producing what comes before; others are read through."""

    def recordings_from(self, first: int) -> Iterator[Recording]:
        """Stream the recordings from number `first` (counted from 0) on."""
        ...


@runtime_checkable
class Resolvable(Interface):
    """A source whose facts depend on the files that are there (an archive's list of classes)."""

    def resolved(self, root: Path | None) -> Source:
        """The same source with its facts filled in from the files under `root`."""
        ...


class Source(Interface):
    """A data source: anything with these three members (no base class to inherit from)."""

    @property
    def info(self) -> SourceInfo:
        """Typed facts."""
        ...

    def fingerprint(self, root: Path | None) -> str:
        """Hash of what the recordings depend on: the files under `root`, or the simulator's version and size."""
        ...

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the recordings, in a fixed order, one or a few in memory at a time.

        Args:
            root: the folder that holds one sub-folder per source; not needed by simulated sources.
        """
        ...
