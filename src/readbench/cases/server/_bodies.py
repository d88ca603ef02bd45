"""Models of requests and answers, and conversion of sent data to windows, within limits."""

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
"""Assumed length of cases for a first estimate of the effort of a search, in steps."""
MAX_COMPARED_STEPS = 2000
"""Largest number of cases that a method compares; a larger library is compared by a shortlist."""


class ApiModel(BaseModel):
    """Base model: frozen, without undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WindowBody(ApiModel):
    """A window: one row of readings per channel, all of the same length; null for a missing reading.

    Its context is optional: readings before it (or the steps before an onset), rate, units and facts.
    """

    channels: Channels = Field(min_length=1, examples=[["pressure", "flow"]])
    values: Rows = Field(min_length=1, examples=[[[1.0, 1.2, 0.7], [5.0, 5.0, 6.5]]])
    asset: Name = ""
    before: Rows | None = Field(
        None,
        description="Readings of the same asset before the window, one row per channel.",
        examples=[[[1.0, 1.1], [5.0, 5.1]]],
    )
    onset: int | None = Field(
        None,
        ge=1,
        description="Step of `values` at which the fault begins; earlier steps become `before`.",
        examples=[2],
    )
    rate: float | None = Field(None, gt=0, description="Samples per second.", examples=[10.0])
    units: Units = Field((), description="Unit of each channel, empty if unknown.", examples=[["bar", ""]])
    facts: FactNumbers = Field({}, description="Known quantities, by name.", examples=[{"speed": 29.5}])


class CaseFilter(Filter):
    """Filter of the listed cases."""

    asset: Name | None = None
    label: Name | None = None
    tag: Name | None = None


class Asked(ApiModel):
    """The query: either a window or the name of a stored case."""

    window: WindowBody | None = None
    case: Name | None = None


class SearchBody(Asked):
    """A search: `where` filters the listed cases; an empty `method` is the service's default."""

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
    """Facts of a case; all optional."""

    label: Name | None = None
    time: float | None = None
    end: float | None = None
    zone: Name = ""
    group: Name = ""
    notes: Notes = ""
    tags: Tags = ()
    links: Links = ()


class NewCase(CaseFields):
    """A case to add; an empty id is replaced by a generated name."""

    window: WindowBody
    id: Name = ""


class SeenBody(ApiModel):
    """`changed` of the case when it was read; without it and `If-Match`, no fact is replaced."""

    seen: float | None = None


class Edits(CaseFields, SeenBody):
    """Fields of a case to replace; others are kept."""

    asset: Name = ""
    rejected: Rejected = ()


class LabelBody(SeenBody):
    """A case and its fault type; null removes it."""

    case: Name
    label: Name | None


class PairBody(SeenBody):
    """A case, and the case whose fault type it has or has not."""

    case: Name
    like: Name


class CasePage(ApiModel):
    """A page of a list of cases, and the total number."""

    total: int
    cases: tuple[Case, ...]


class Stored(ApiModel):
    """The window of a case, one row of readings per channel, with its context."""

    case: Case
    channels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...] = Field(repr=False)
    before: tuple[tuple[float, ...], ...] | None = Field(None, repr=False)
    rate: float | None = None
    units: tuple[str, ...] = ()
    facts: dict[str, float] = {}


class Problem(ApiModel):
    """An error: one sentence with its remedy."""

    detail: str


class Health(ApiModel):
    """State of the service, and number of cases."""

    status: str
    cases: int | None = None


class Readiness(Health):
    """Readiness of the service: names of failing background loops."""

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
    r"""Read the one window of a sent file.

    Args:
        name: file name; its ending gives the format.
        content: bytes of the file.
        settings: limits.
        time: time column; "" detects it, "-" for none.
        zone: time zone of dates without one, also in `interval`.
        interval: start and end.
        asset: asset of the window.
        onset_column: column that flags the rows after the onset.
        told: context given beside the file.

    >>> window_of_file("../a.csv", b"t,flow\n0,1\n1,2\n", Settings()).windows.channels(0)
    ('flow',)
    """
    file_name = PurePosixPath(name.replace("\\", "/")).name[-MAX_NAME:] or "file"
    given = (file_name, content)
    roles = Roles(time=time, onset=onset_column, zone=zone)
    read = read_recording(given, roles, interval, settings.file_limits, told or ToldContext())
    if len(read.windows) != 1:
        raise UsageError(f"{file_name} holds {len(read.windows)} windows. Send a file with one.")
    return replace(read, windows=check_size(_without_facts(read.windows, asset), settings))


@dataclass(frozen=True)
class SentFile:
    """A file sent by a form, with the options to read it; arguments as of `window_of_file`."""

    name: str
    content: bytes
    asset: str
    time: str
    zone: str
    interval: Interval

    def read(self, settings: Settings, *, onset_column: str = "", told: ToldContext | None = None) -> ReadRecording:
        """Read its one window."""
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
    time: Annotated[ChannelName, Form(description="time column")] = "",
    zone: Annotated[Name, Form(description="time zone of dates without one: +01:00, Europe/Berlin")] = "",
    first: Annotated[Name, Form(description="start of the window: seconds, date, or row number")] = "",
    last: Annotated[Name, Form()] = "",
) -> SentFile:
    """Read the file of a form."""
    return SentFile(file.filename or "", await file.read(), asset, time, zone, (first, last))


@dataclass(frozen=True)
class SentContext:
    """Context of the window in a form: onset column, and the rest."""

    onset_column: str
    told: ToldContext


async def receive_context(
    *,
    onset: Annotated[Name, Form(description="onset of the fault: earlier rows become context")] = "",
    onset_column: Annotated[ChannelName, Form(description="column that flags the rows after the onset")] = "",
    before: Annotated[UploadFile | None, File(description="table with the readings before the window")] = None,
    rate: Annotated[float | None, Form(gt=0, description="samples per second")] = None,
    fact: Annotated[FactTexts, Form(description="known quantity, such as speed=29.5")] = [],  # noqa: B006
) -> SentContext:
    """Read the context of a form."""
    earlier = None if before is None else (PurePosixPath(before.filename or "before").name, await before.read())
    facts = parse_facts(fact) if fact else None
    return SentContext(onset_column, ToldContext(onset=onset, before=earlier, rate=rate, facts=facts))


FormFile = Annotated[SentFile, Depends(receive_file)]
FormContext = Annotated[SentContext, Depends(receive_context)]


def windows_of_bodies(bodies: tuple[WindowBody, ...], settings: Settings) -> WindowSet:
    """Windows of JSON bodies."""
    if len(bodies) > settings.max_windows:
        raise UsageError(f"Got {len(bodies)} windows: at most {settings.max_windows} in one request.")
    return concatenate([check_size(_window(body), settings) for body in bodies])


def check_size(windows: WindowSet, settings: Settings) -> WindowSet:
    """Return the windows; raise if one is too large."""
    channels, points = windows.channel_counts, windows.channel_counts.astype(np.int64) * windows.lengths
    if channels.max(initial=0) > settings.max_channels:
        raise DataError(f"A window has {channels.max():,} channels, more than {settings.max_channels:,}.")
    if points.max(initial=0) > settings.max_points:
        raise DataError(f"A window has {points.max():,} readings, more than {settings.max_points:,}. Shorten it.")
    befores = [] if windows.context is None else [before.size for before in windows.context.befores]
    if (most := max(befores, default=0)) > settings.max_points:
        raise DataError(
            f"The context before a window has {most:,} readings, more than {settings.max_points:,}. Shorten it."
        )
    return windows


def check_effort(windows: WindowSet, service: CaseService) -> WindowSet:
    """Return the windows; raise if comparing them with the cases would take minutes."""
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
    """Window of a body, with its context."""
    values = _matrix(body.values, body.channels, "The window")
    before = None if body.before is None else _matrix(body.before, body.channels, "The time before")
    if body.onset is not None and before is not None:
        raise UsageError("Give either onset or before, not both.")
    windows = WindowSet.from_arrays([values], channels=body.channels, assets=[body.asset])
    return attach_context(
        windows if body.onset is None else begin_at(windows, body.onset),
        before=before,
        rate=body.rate,
        units=body.units or None,
        facts=body.facts or None,
    )


def begin_at(windows: WindowSet, step: int) -> WindowSet:
    """Cut one window at a step; earlier steps become its context."""
    window = windows[0]
    if not 0 < step < window.values.shape[1]:
        raise UsageError(f"The onset {step} is not within the {window.values.shape[1]} steps of the window.")
    late = 0.0 if math.isnan(window.rate) else step / window.rate
    return WindowSet.of(
        replace(window, values=window.values[:, step:], before=window.values[:, :step], time=window.time + late)
    )


def _matrix(values: Rows, channels: tuple[str, ...], what: str) -> np.ndarray:
    """(C, T) readings, NaN if missing."""
    if len(values) != len(channels):
        raise UsageError(f"{what} has {len(channels)} channel names, but {len(values)} rows of readings.")
    if len({len(row) for row in values}) != 1:
        raise UsageError(f"{what} needs the same number of readings in all channels. Put null for a missing one.")
    if len(set(channels)) != len(channels):
        raise UsageError(f"Two channels of {what.lower()} have the same name. Rename one.")
    if not values[0]:
        raise UsageError(f"{what} has no readings.")
    rows = [[np.nan if value is None else value for value in row] for row in values]
    with np.errstate(over="ignore"):
        return np.array(rows, np.float64).astype(np.float32)


def _without_facts(windows: WindowSet, asset: str) -> WindowSet:
    """The window without labels, with its asset; labels in sent files are not trusted."""
    times = None if np.isnan(windows.times).all() else windows.times
    return WindowSet.from_arrays(
        [windows.values(0)], channels=windows.channels(0), assets=[asset], times=times, context=windows.context
    )
