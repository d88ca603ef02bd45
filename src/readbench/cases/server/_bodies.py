"""What is sent and answered, beside the library's own models, and how it becomes windows, within limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated

import numpy as np
from fastapi import Depends, File, Form, UploadFile
from pydantic import BaseModel, ConfigDict, Field

from readbench.cases import (
    Case,
    Filter,
    Interval,
    ReadRecording,
    ToldContext,
    attach_context,
    parse_facts,
    read_recording,
)
from readbench.cases.limits import MAX_NAME
from readbench.cases.server._fields import (
    MAX_WINDOWS,
    ChannelName,
    Channels,
    FactNumbers,
    FactTexts,
    Links,
    Name,
    Notes,
    Query,
    Rejected,
    Rows,
    Tags,
    Units,
)
from readbench.cases.server._service import CaseService, Settings
from readbench.engine.window_tables import Roles
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import DataError, UsageError

LONG_CASE = 4096
"""Steps that hardly any case has more of: what is soon compared with such cases needs no closer look."""
MAX_COMPARED_STEPS = 2000
"""Cases that a method compares at most; of a larger library it gets a shortlist."""


class ApiModel(BaseModel):
    """Base: frozen, and nothing beside the declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WindowBody(ApiModel):
    """A window: one row of readings for each channel, all of one length; null where a reading is missing.

    What it brings along may be missing: the time before it, by itself or as the steps before an onset, the rate, units
    and facts.
    """

    channels: Channels = Field(min_length=1, examples=[["pressure", "flow"]])
    values: Rows = Field(min_length=1, examples=[[[1.0, 1.2, 0.7], [5.0, 5.0, 6.5]]])
    asset: Name = ""
    before: Rows | None = Field(
        None,
        description="Readings of the same asset in the time before, a row for each channel of the window.",
        examples=[[[1.0, 1.1], [5.0, 5.1]]],
    )
    onset: int | None = Field(
        None, ge=1, description="Step of `values` at which it began: those before become `before`.", examples=[2]
    )
    rate: float | None = Field(None, gt=0, description="Samples a second.", examples=[10.0])
    units: Units = Field((), description="Of the channels, empty where unknown.", examples=[["bar", ""]])
    facts: FactNumbers = Field(
        {}, description="Numbers that are known beforehand, by name.", examples=[{"speed": 29.5}]
    )


class CaseFilter(Filter):
    """Which cases are listed, as a request says it."""

    asset: Name | None = None
    label: Name | None = None
    tag: Name | None = None


class Asked(ApiModel):
    """What is asked about: a window, or the name of a stored case; exactly one of them."""

    window: WindowBody | None = None
    case: Name | None = None


class SearchBody(Asked):
    """A search: `where` says which cases are listed; an empty `method` is the service's first one."""

    k: int = Field(10, ge=1)
    method: Query = ""
    where: CaseFilter = CaseFilter()


class SearchManyBody(ApiModel):
    """A search for several windows."""

    windows: tuple[WindowBody, ...] = Field(min_length=1, max_length=MAX_WINDOWS)
    k: int = Field(10, ge=1)
    method: Query = ""
    where: CaseFilter = CaseFilter()


class CaseFields(ApiModel):
    """What may be known of a case."""

    label: Name | None = None
    time: float | None = None
    end: float | None = None
    zone: Name = ""
    group: Name = ""
    notes: Notes = ""
    tags: Tags = ()
    links: Links = ()


class NewCase(CaseFields):
    """A case to add; without an id it gets a name."""

    window: WindowBody
    id: Name = ""


class SeenBody(ApiModel):
    """What a writer saw: `changed` of the case. Without it and `If-Match`, nothing that is known is replaced."""

    seen: float | None = None


class Edits(CaseFields, SeenBody):
    """Fields of a case to replace; those left out stay."""

    asset: Name = ""
    rejected: Rejected = ()


class LabelBody(SeenBody):
    """A case and what it was; null where nobody knows."""

    case: Name
    label: Name | None


class PairBody(SeenBody):
    """A case, and the stored one that it is or is not like."""

    case: Name
    like: Name


class CasePage(ApiModel):
    """A part of a list of cases, and how many there are."""

    total: int
    cases: tuple[Case, ...]


class Stored(ApiModel):
    """The window of a case: readings in rows, by channel, and what it brought along."""

    case: Case
    channels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...] = Field(repr=False)
    before: tuple[tuple[float, ...], ...] | None = Field(None, repr=False)
    rate: float | None = None
    units: tuple[str, ...] = ()
    facts: dict[str, float] = {}


class Problem(ApiModel):
    """Every error: one sentence that says what to do."""

    detail: str


class Health(ApiModel):
    """Whether the service is there, and how many cases it holds."""

    status: str
    cases: int | None = None


class Readiness(Health):
    """Whether the service can do all that it is for: names of background loops that fail."""

    failing: tuple[str, ...] = ()


def window_of_file(
    name: str,
    content: bytes,
    settings: Settings,
    *,
    time: str = "",
    zone: str = "",
    interval: Interval = (None, None),
    asset: str = "",
    onset_column: str = "",
    told: ToldContext | None = None,
) -> ReadRecording:
    r"""The one window in a sent file, and what was understood of it.

    Args:
        name: of the file; its ending says what it is, and nothing is ever written under it.
        content: of the file.
        settings: limits.
        time: column of the time; "" looks for it, "-" is for none.
        zone: of dates in the file, and of first and last, that name none.
        interval: first and last time.
        asset: the machine it comes from.
        onset_column: column that marks the rows from the onset on.
        told: of the window, beside the file.

    >>> window_of_file("../a.csv", b"t,flow\n0,1\n1,2\n", Settings()).windows.channels(0)
    ('flow',)
    """
    file_name = PurePosixPath(name.replace("\\", "/")).name[-MAX_NAME:] or "file"
    given = (file_name, content)
    roles = Roles(time=time, onset=onset_column, zone=zone)
    read = read_recording(given, roles, interval, settings.file_limits, told or ToldContext())
    if len(read.windows) != 1:
        raise UsageError(f"{file_name} holds {len(read.windows)} windows. Send one at a time.")
    return replace(read, windows=check_size(_without_facts(read.windows, asset), settings))


@dataclass(frozen=True)
class SentFile:
    """A file as a form brings it, with what the form says of reading it.

    Args:
        name: of the file.
        content: of the file.
        asset: the machine it comes from.
        time: column of the time.
        zone: of dates that name none.
        interval: first and last time.
    """

    name: str
    content: bytes
    asset: str
    time: str
    zone: str
    interval: Interval

    def read(self, settings: Settings, *, onset_column: str = "", told: ToldContext | None = None) -> ReadRecording:
        """Its one window; arguments as of `window_of_file`."""
        return window_of_file(
            self.name,
            self.content,
            settings,
            time=self.time,
            zone=self.zone,
            interval=self.interval,
            asset=self.asset,
            onset_column=onset_column,
            told=told,
        )


async def receive_file(
    file: Annotated[UploadFile, File(description="CSV, Excel, Parquet or NPZ")],
    *,
    asset: Annotated[Name, Form()] = "",
    time: Annotated[ChannelName, Form(description="column of the time")] = "",
    zone: Annotated[Name, Form(description="of dates that name none: +01:00, Europe/Berlin ...")] = "",
    first: Annotated[Name, Form(description="first time of the window: seconds, a date, or a row")] = "",
    last: Annotated[Name, Form()] = "",
) -> SentFile:
    """The file of a form."""
    return SentFile(file.filename or "", await file.read(), asset, time, zone, (first, last))


@dataclass(frozen=True)
class SentContext:
    """What a form says of the window in its file: the column that marks the onset, and all else."""

    onset_column: str
    told: ToldContext


async def receive_context(
    *,
    onset: Annotated[Name, Form(description="when it began: rows before are the time before the window")] = "",
    onset_column: Annotated[ChannelName, Form(description="column that marks the rows from the onset on")] = "",
    before: Annotated[UploadFile | None, File(description="a table with the time before the window")] = None,
    rate: Annotated[float | None, Form(gt=0, description="samples a second")] = None,
    fact: Annotated[FactTexts, Form(description="a number known beforehand, such as speed=29.5")] = [],  # noqa: B006
) -> SentContext:
    """The context of a form."""
    earlier = None if before is None else (PurePosixPath(before.filename or "before").name, await before.read())
    facts = parse_facts(fact) if fact else None
    return SentContext(onset_column, ToldContext(onset=onset, before=earlier, rate=rate, facts=facts))


FormFile = Annotated[SentFile, Depends(receive_file)]
FormContext = Annotated[SentContext, Depends(receive_context)]


def windows_of_bodies(bodies: tuple[WindowBody, ...], settings: Settings) -> WindowSet:
    """Windows that were sent as JSON."""
    if len(bodies) > settings.max_windows:
        raise UsageError(f"Got {len(bodies)} windows: at most {settings.max_windows} in one request.")
    return concatenate([check_size(_window(body), settings) for body in bodies])


def check_size(windows: WindowSet, settings: Settings) -> WindowSet:
    """The windows, if none is too large."""
    channels, points = windows.channel_counts, windows.channel_counts.astype(np.int64) * windows.lengths
    if channels.max(initial=0) > settings.max_channels:
        raise DataError(f"A window has {channels.max():,} channels, more than {settings.max_channels:,}.")
    if points.max(initial=0) > settings.max_points:
        raise DataError(f"A window has {points.max():,} readings, more than {settings.max_points:,}. Shorten it.")
    befores = [] if windows.context is None else [before.size for before in windows.context.befores]
    if (most := max(befores, default=0)) > settings.max_points:
        raise DataError(f"The time before has {most:,} readings, more than {settings.max_points:,}. Shorten it.")
    return windows


def check_effort(windows: WindowSet, service: CaseService) -> WindowSet:
    """The windows, if comparing them with the cases here ends soon: a long one with many may take minutes."""
    snapshot, most = service.library.snapshot(), service.settings.max_comparisons
    readings = int((windows.channel_counts.astype(np.int64) * windows.lengths).sum())
    each = readings * min(len(snapshot), MAX_COMPARED_STEPS)
    if each * LONG_CASE <= most or each * snapshot.usual_steps <= most:
        return windows
    share = most / (each * snapshot.usual_steps)
    raise DataError(
        f"To compare {readings:,} readings with {len(snapshot):,} cases takes too long: at most"
        f" {int(share * readings):,} are taken here. Give only the part around the incident."
    )


def _window(body: WindowBody) -> WindowSet:
    """The window of a body, with what it brings along."""
    values = _matrix(body.values, body.channels, "The window")
    before = None if body.before is None else _matrix(body.before, body.channels, "The time before")
    if body.onset is not None and before is not None:
        raise UsageError("Give the onset or the time before, not both.")
    windows = WindowSet.from_arrays([values], channels=body.channels, assets=[body.asset])
    return attach_context(
        windows if body.onset is None else begin_at(windows, body.onset),
        before=before,
        rate=body.rate,
        units=body.units or None,
        facts=body.facts or None,
    )


def begin_at(windows: WindowSet, step: int) -> WindowSet:
    """One window from a step on; the steps before become the time before."""
    window = windows[0]
    if not 0 < step < window.values.shape[1]:
        raise UsageError(f"The onset {step} is not within the {window.values.shape[1]} steps of the window.")
    late = 0.0 if math.isnan(window.rate) else step / window.rate
    return WindowSet.of(
        replace(window, values=window.values[:, step:], before=window.values[:, :step], time=window.time + late)
    )


def _matrix(values: Rows, channels: tuple[str, ...], what: str) -> np.ndarray:
    """(C, T) readings, NaN where there is none."""
    if len(values) != len(channels):
        raise UsageError(f"{what} has {len(channels)} channel names, but {len(values)} rows of readings.")
    if len({len(row) for row in values}) != 1:
        raise UsageError(f"{what} has the same number of readings in all channels; put null where one is missing.")
    if len(set(channels)) != len(channels):
        raise UsageError(f"Two channels of {what.lower()} have the same name. Rename one.")
    if not values[0]:
        raise UsageError(f"{what} has no readings.")
    rows = [[np.nan if value is None else value for value in row] for row in values]
    with np.errstate(over="ignore"):
        return np.array(rows, np.float64).astype(np.float32)


def _without_facts(windows: WindowSet, asset: str) -> WindowSet:
    """The bare window, of an asset: what a file says about labels is not taken from strangers."""
    times = None if np.isnan(windows.times).all() else windows.times
    return WindowSet.from_arrays(
        [windows.values(0)], channels=windows.channels(0), assets=[asset], times=times, context=windows.context
    )
