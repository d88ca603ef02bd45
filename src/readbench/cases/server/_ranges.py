"""Pages to search for a time range of a connected source, and to read the notices of the watch.

Only connected sources can be read; requests contain no addresses.
"""

from __future__ import annotations

import time as clock
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Form, Query, Request, Response

from readbench.cases import Library, ReadRecording, attach_context, format_time
from readbench.cases.connect import SignalSource, SourceFile, on_clock, parse_moment, parse_range, read_range
from readbench.cases.server._bodies import ApiModel, check_effort, check_size
from readbench.cases.server._fields import Name
from readbench.cases.server._gate import Reader
from readbench.cases.server._service import CaseService, HeldFile, Served, Settings
from readbench.cases.server._showing import fill_recording, look_at, show_page
from readbench.cases.server._views import DrawnRecording, draw_recording
from readbench.cases.watch import NoticeLog
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

MAX_POINTS = 1024
"""Largest number of steps of an overview."""
MAX_NOTICES = 50
MAX_SPAN_S = 400 * 24 * 3600.0
SOURCES = "sources.toml"
NOTICES = "notices.jsonl"
router = APIRouter(include_in_schema=False)


class DrawnRange(ApiModel):
    """Overview of a range.

    Args:
        recording: the range, downsampled.
        start: start of the range, in seconds since 1970.
        end: end of the range, in seconds since 1970.
        words: start and end as text.
        assets: assets with readings in the range.
    """

    recording: DrawnRecording
    start: float
    end: float
    words: tuple[str, str]
    assets: tuple[str, ...]


@router.get("/ranges")
async def choose_range(request: Request, service: Served, caller: Reader) -> Response:
    """Page to choose source, asset and range; the query may fill its fields."""
    fields = ("source", "asset", "start", "end", "onset")
    given = {name: request.query_params.get(name, "")[:200] for name in fields}
    sources = await service.work.do(lambda: [entry.name for entry in sources_of(service).all()])
    given["start"] = given["start"] or "-1h"
    return show_page(request, "range.html", caller, given=given, sources=sources)


@router.get("/ranges/assets")
async def list_assets(service: Served, _caller: Reader, source: Annotated[Name, Query()]) -> list[str]:
    """List the assets of a source."""

    def look() -> list[str]:
        with _open(service, source) as opened:
            return sorted({channel.asset for channel in opened.channels()})

    return await service.work.do(look)


@router.get("/ranges/signals")
async def draw_range(
    *,
    service: Served,
    _caller: Reader,
    source: Annotated[Name, Query()],
    start: Annotated[Name, Query()],
    end: Annotated[Name, Query()] = "",
    asset: Annotated[Name, Query()] = "",
) -> DrawnRange:
    """Draw the overview of a range."""

    def draw() -> DrawnRange:
        first, last = _span(start, end)
        with _open(service, source) as opened:
            found = opened.read(first, last, asset=asset or None, step=(last - first) / MAX_POINTS)
        assets = found.assets
        whose = asset if asset in assets or not assets else assets[0]
        series = found.of_asset(whose)
        if not series:
            raise DataError(f"{source} has no reading of {asset or 'any asset'} in that range.")
        step = (last - first) / (MAX_POINTS - 1)
        values = on_clock(series, first, step, MAX_POINTS)
        kept = np.flatnonzero(np.isfinite(values).any(axis=1))
        names = [name for i, name in enumerate(series) if i in set(kept.tolist())]
        windows = WindowSet.from_arrays([values[kept]], channels=names, assets=[whose], times=[first])
        windows = attach_context(windows, rate=1 / step, units=[series[name].unit for name in names])
        window, gaps = fill_recording(service, ReadRecording(windows, np.array([last]), "UTC"))
        drawn = draw_recording(service.library.snapshot(), window, gaps, "UTC")
        words = format_time(first, "UTC"), format_time(last, "UTC")
        return DrawnRange(recording=drawn, start=first, end=last, words=words, assets=assets)

    return await service.work.do(draw)


@router.post("/ranges")
async def look_at_range(
    *,
    service: Served,
    caller: Reader,
    source: Annotated[Name, Form()],
    start: Annotated[Name, Form()],
    end: Annotated[Name, Form()] = "",
    asset: Annotated[Name, Form()] = "",
    onset: Annotated[Name, Form()] = "",
    keep: Annotated[Name, Form()] = "",
) -> Response:
    """Search for a range, with the readings before it from the same source."""

    def read() -> ReadRecording:
        begun = f"{parse_moment(onset):.3f}" if onset.strip() else ""
        return read_source(service, source, _span(start, end), asset=asset, onset=begun)

    found = await service.work.do(read)
    name = f"{source}, {format_time(float(found.windows.times[0]), 'UTC')}"
    return await look_at(service, caller, HeldFile(name, str(found.windows.assets[0]), found), keep=bool(keep))


@router.get("/notices")
async def notices(request: Request, service: Served, caller: Reader) -> Response:
    """Page of the notices of the watch, newest first; it reloads itself."""
    log = find_notices(service.library, service.settings)
    found = await service.work.do(lambda: [] if log is None else log.latest(MAX_NOTICES))
    summary = await service.work.do(service.library.stats)
    shown: list[dict[str, Any]] = [{"notice": notice, "late": notice.told - notice.onset} for notice in found]
    return show_page(request, "notices.html", caller, summary=summary, notices=shown, now=clock.time())


def read_source(
    service: CaseService, source: str, span: tuple[float, float], *, asset: str = "", onset: str = ""
) -> ReadRecording:
    """Read the window of a range; raise if it is too large to search for."""
    with _open(service, source) as opened:
        found = read_range(service.library, opened, *span, asset=asset, onset=onset, zone="UTC")
    return replace(found, windows=check_effort(check_size(found.windows, service.settings), service))


def sources_of(service: CaseService) -> SourceFile:
    """Connected sources of the service."""
    path = _beside(service.library, service.settings.sources, SOURCES)
    if path is None:
        raise UsageError("The library is in a database, not a folder. Start the service with --sources FILE.")
    return SourceFile(path)


def find_notices(library: Library, settings: Settings) -> NoticeLog | None:
    """Log of the notices; None if there is no file for it."""
    path = _beside(library, settings.notices, NOTICES)
    return None if path is None else NoticeLog(path)


def _beside(library: Library, given: Path | None, name: str) -> Path | None:
    """The given file, or the one in the library's folder; None if the library is in a database."""
    where = library.store.where
    return given or (None if "://" in where else Path(where) / name)


def _open(service: CaseService, name: str) -> closing[SignalSource]:
    return closing(sources_of(service).get(name).open())


def _span(start: str, end: str) -> tuple[float, float]:
    first, last = parse_range(start, end)
    if not 0 < last - first <= MAX_SPAN_S:
        raise UsageError("The range ends before it begins, or is longer than 400 days. Give another.")
    return first, last
