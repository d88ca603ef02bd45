"""A range of a source as the library compares it: on its grid, with the time before, the rate and the units.

A step of the grid is the mean of the readings since the step before. Where none came, the last reading stands for so
long as this channel's readings usually do (`HOLDS` of their usual distance); after that there is a gap.

A channel that is read about once a step is taken more gently: a reading counts for a step also where it comes a little
after it (`SLACK` of a step), and one that was missed lies between its neighbours. Else a clock that ticks nearly with
the grid would give now two readings to a step and now none, and that looks like a fault.
"""

from __future__ import annotations

import math
import re
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._intake import ReadRecording, attach_context, format_time, parse_onset
from readbench.cases._library import Library
from readbench.cases.connect._protocol import Floats, SampledChannel, SignalSource, SourceReadings
from readbench.cases.limits import MAX_READINGS
from readbench.common.times import DAY_S, check_moment, parse_date, zone_of
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

HOLDS = 2.5
"""Usual distances of a channel's readings for which the last one stands."""
LATEST_CASES = 500
"""Cases by which the usual rate of a library is found."""
MOST_BEFORE = 4.0
"""Usual lengths of a window that the time before has at most."""
MOST_LISTED = 5
ABOUT = (0.67, 1.5)
"""Readings so many steps apart come about once a step."""
SLACK = 0.25
"""Share of a step by which such a reading may come after its step."""
_FROM_NOW = re.compile(r"(?P<sign>[+-])(?P<number>\d+(\.\d+)?)(?P<unit>s|m|h|d)")
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S}
_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(:(?P<second>[0-5]\d(\.\d+)?))?")


@dataclass(frozen=True)
class LibraryGrid:
    """How a library's windows are sampled.

    Args:
        rate: usual samples a second; NaN where its cases do not say.
        steps: usual steps of a window; 0 of an empty library.
    """

    rate: float
    steps: int

    @classmethod
    def of(cls, library: Library) -> Self:
        """The grid of a library: the median rate of its latest cases, and their median length."""
        snapshot = library.snapshot()
        entries = (*snapshot.state.cases.values(), *snapshot.state.normals.values())[-LATEST_CASES:]
        contexts = library.store.list_contexts([own.context for own in entries if own.context])
        rates = [own.rate for own in contexts.values() if math.isfinite(own.rate)]
        return cls(float(np.median(rates)) if rates else math.nan, round(snapshot.usual_steps))

    def step_for(self, readings: Mapping[str, SampledChannel]) -> float:
        """Seconds between steps: the library's, or where it does not say the usual distance of readings."""
        if math.isfinite(self.rate):
            return 1.0 / self.rate
        usual = [usual_distance(own.times) for own in readings.values() if len(own.times) > 1]
        if not usual:
            raise DataError("Neither the library nor the source says how often channels are read. Give --rate.")
        return float(np.median(usual))


def usual_distance(times: Floats) -> float:
    """Median seconds between readings; NaN of fewer than two."""
    return float(np.median(np.diff(times))) if len(times) > 1 else math.nan


def on_clock(
    series: Mapping[str, SampledChannel], start: float, step: float, steps: int, names: tuple[str, ...] | None = None
) -> Floats:
    """(C, T) readings at `start`, `start + step`, ...; NaN in gaps.

    Args:
        series: readings by channel.
        start: time of the first step.
        step: seconds between steps.
        steps: T.
        names: channels, in this order; default all.

    >>> own = SampledChannel.of([0.0, 0.4, 1.0, 2.0, 9.0], [1.0, 3.0, 4.0, 5.0, 6.0])
    >>> on_clock({"p": own}, 0.0, 1.0, 10).tolist()
    [[1.0, 3.5, 5.0, 5.0, 5.0, nan, nan, nan, nan, 6.0]]
    """
    chosen = tuple(series) if names is None else names
    found = np.full((len(chosen), steps), np.nan)
    for row, name in enumerate(chosen):
        if name in series and len(series[name].times):
            found[row] = _place(series[name], start, step, steps)
    return found


def _place(own: SampledChannel, start: float, step: float, steps: int) -> Floats:
    usual = usual_distance(own.times[-1000:])
    steady = ABOUT[0] * step <= usual <= ABOUT[1] * step
    # A hair early counts as in time: times are sums of steps that no float holds exactly.
    places = np.ceil((own.times - start) / step - (SLACK if steady else 1e-6)).astype(np.int64)
    inside = (places >= 0) & (places < steps)
    counts = np.bincount(places[inside], minlength=steps)
    sums = np.bincount(places[inside], weights=own.values[inside], minlength=steps)
    means = np.divide(sums, counts, out=np.full(steps, np.nan), where=counts > 0)
    if counts.all():
        return means
    held = HOLDS * max(step, usual if math.isfinite(usual) else step)
    moments = start + step * np.arange(steps)
    next_one = np.searchsorted(own.times, moments + 1e-6 * step, side="right")
    last = np.maximum(next_one - 1, 0)
    fresh = (next_one > 0) & (moments - own.times[last] <= held)
    stands = own.values[last]
    if steady:
        later = own.times[np.minimum(next_one, len(own.times) - 1)]
        near = later - own.times[last] <= held
        stands = np.where(near, np.interp(moments, own.times, own.values), stands)
    return np.where(counts > 0, means, np.where(fresh, stands, np.nan))


def read_range(  # noqa: PLR0913 - what is read, and how
    library: Library,
    source: SignalSource,
    start: float,
    end: float,
    *,
    asset: str = "",
    onset: str = "",
    rate: float | None = None,
    zone: str = "",
) -> ReadRecording:
    """The window of a range, on the library's grid, with the time before it from the same source.

    Args:
        library: whose grid it is.
        source: that is read.
        start: seconds since 1970.
        end: likewise.
        asset: whose channels; may be left out where the source has one asset.
        onset: when it began, as `parse_moment` reads it: the window begins there, what lies before is the time before.
        rate: samples a second, instead of the library's.
        zone: of the clock.
    """
    if not end > start:
        raise UsageError(f"The range ends ({format_time(end, zone)}) before it begins ({format_time(start, zone)}).")
    for moment, what in ((start, "start of the range"), (end, "end of the range")):
        check_moment(moment, what)
    grid = LibraryGrid.of(library)
    lead = end - start
    if math.isfinite(grid.rate) and grid.steps:
        lead = min(lead, MOST_BEFORE * grid.steps / grid.rate)
    found = source.read(start - lead, end, asset=asset or None)
    whose, series = _choose_asset(found, asset, start, source.shown)
    step = 1.0 / rate if rate else grid.step_for(series)
    begun = parse_onset(onset, start, zone) if onset else start
    if not start <= begun < end:
        raise UsageError(f"The onset {onset} is not within {format_time(start, zone)} to {format_time(end, zone)}.")
    steps = 1 + math.floor((end - begun) / step + 1e-6)
    ahead = math.floor((begun - start + lead) / step + 1e-6)
    if (steps + ahead) * len(series) > MAX_READINGS:
        raise DataError(f"{steps + ahead:,} steps of {len(series):,} channels are too many. Give a shorter range.")
    names = tuple(name for name, own in series.items() if (own.times >= begun - step).any())
    values = on_clock(series, begun, step, steps, names)
    kept: NDArray[np.bool_] = np.asarray(np.isfinite(values).any(axis=1), np.bool_)
    names, values = tuple(name for name, keep in zip(names, kept, strict=True) if keep), values[kept]
    if not names:
        raise DataError(f"{source.shown} has no reading of {whose or 'any channel'} in that range.")
    gone = [name for name in series if name not in names]
    windows = WindowSet.from_arrays([values], channels=names, assets=[whose], times=[begun])
    before, said = _read_before(series, begun, step, ahead, names)
    units = tuple(series[name].unit for name in names)
    windows = attach_context(windows, before=before, rate=1.0 / step, units=units if any(units) else None)
    span = f"{format_time(begun, zone)} to {format_time(end, zone)}"
    remarks = (
        f"{source.shown}: {whose or 'all'}, {span}, {len(names)} channels, {steps} steps of {step:.6g} s.",
        *found.remarks,
        *([f"No reading in that range, though before it: {_list(gone)}."] if gone else []),
        *said,
        *_describe_gaps(values, names),
    )
    return ReadRecording(windows, np.array([begun + (steps - 1) * step]), zone, remarks)


def _choose_asset(found: SourceReadings, asset: str, start: float, shown: str) -> tuple[str, dict[str, SampledChannel]]:
    """The readings of the asset that is asked about, or of the only one that there is."""
    assets = found.assets
    if not assets:
        whose = f" of {asset}" if asset else ""
        raise DataError(f"{shown} has no reading{whose} in that range, from {format_time(start)} on.")
    if not asset and len(assets) > 1:
        raise UsageError(
            f"The source has {len(assets)} assets. Name one: --asset {assets[0]!r}. It has: {_list(assets)}."
        )
    whose = asset or assets[0]
    return whose, found.of_asset(whose)


def _read_before(
    series: Mapping[str, SampledChannel], begun: float, step: float, steps: int, names: tuple[str, ...]
) -> tuple[Floats | None, list[str]]:
    """(C, T_b) the time before, where all channels have one."""
    if steps < 2:
        return None, ["There is no time before."]
    before = on_clock(series, begun - steps * step, step, steps, names)
    known = np.isfinite(before)
    without = [name for name, own in zip(names, known, strict=True) if not own.any()]
    if without:
        return None, [f"The time before was left out: it has no reading of {_list(without)}."]
    first = int(np.argmax(known.all(axis=0) if known.all(axis=0).any() else known.any(axis=0)))
    return before[:, first:], []


def _describe_gaps(values: Floats, names: tuple[str, ...]) -> list[str]:
    share = (~np.isfinite(values)).mean(axis=1)
    holed = [f"{name} ({part:.0%})" for name, part in zip(names, share, strict=True) if part >= 0.005]
    return [f"Gaps, filled with the last reading: {_list(holed)}."] if holed else []


def _list(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")


def parse_moment(text: str, *, now: float | None = None, zone: str = "", after: float | None = None) -> float:
    """A time of the clock, a date, seconds since 1970, `now`, or `-20m` or `+20s` from now.

    Args:
        text: as people write it.
        now: seconds since 1970.
        zone: of times that name none; "" is that of this machine.
        after: a time of day is the first one from then on; by default it is the last one that was.

    >>> parse_moment("-20m", now=1.7e9), parse_moment("22:13", now=1.7e9, zone="UTC"), parse_moment("now", now=5.0)
    (1699998800.0, 1699999980.0, 5.0)
    """
    now = clock.time() if now is None else now
    given = text.strip()
    if given.casefold() == "now":
        return now
    if away := _FROM_NOW.fullmatch(given):
        return now + float(away["sign"] + away["number"]) * _UNIT_S[away["unit"]]
    if found := _CLOCK.fullmatch(given):
        seconds = 3600 * int(found["hour"]) + 60 * int(found["minute"]) + float(found["second"] or 0)
        base = now if after is None else check_moment(after, "start of the range")
        here = datetime.fromtimestamp(base, zone_of(zone)) if zone else datetime.fromtimestamp(base).astimezone()
        shift = here.utcoffset()
        late = (seconds - (shift.total_seconds() if shift else 0.0) - base) % DAY_S
        return base + late if after is not None else base + late - (DAY_S if late else 0.0)
    try:
        return float(given)
    except ValueError:
        pass
    own = zone or datetime.fromtimestamp(now).astimezone().strftime("%z")
    time = parse_date(given, own)
    if time is None:
        raise UsageError(f"{given[:40]!r} is no time: give 14:02, -20m, now, or a date such as 2025-12-31T14:02.")
    return time


def parse_range(start: str, end: str, *, now: float | None = None, zone: str = "") -> tuple[float, float]:
    """Start and end of a range; the end is `now` where none is given, a time of day the first one after the start."""
    now = clock.time() if now is None else now
    if not start.strip():
        raise UsageError("Say where the range begins: --start 14:02, --start -20m or a date.")
    first = parse_moment(start, now=now, zone=zone)
    last = parse_moment(end, now=now, zone=zone, after=first if _CLOCK.fullmatch(end.strip()) else None) if end else now
    return first, last
