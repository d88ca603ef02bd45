"""Channel names of a library: aliases and unit conversion, so that windows of different systems can be compared.

A channel without an alias keeps its name. Names are compared without case and outer blanks; a unit may follow a name
in brackets, `Pressure [kPa]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from readbench.common.tables import split_header
from readbench.engine.context import Context
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

_UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "pressure": {
        "Pa": (1.0, 0.0),
        "hPa": (1e2, 0.0),
        "mbar": (1e2, 0.0),
        "kPa": (1e3, 0.0),
        "bar": (1e5, 0.0),
        "atm": (101325.0, 0.0),
        "psi": (6894.757293168361, 0.0),
        "MPa": (1e6, 0.0),
    },
    "temperature": {
        "K": (1.0, 0.0),
        "°C": (1.0, 273.15),
        "degC": (1.0, 273.15),
        "°F": (5 / 9, 459.67 * 5 / 9),
        "degF": (5 / 9, 459.67 * 5 / 9),
    },
    "flow": {
        "m3/s": (1.0, 0.0),
        "m3/h": (1 / 3600, 0.0),
        "m³/h": (1 / 3600, 0.0),
        "l/s": (1e-3, 0.0),
        "l/min": (1e-3 / 60, 0.0),
        "l/h": (1e-3 / 3600, 0.0),
    },
    "length": {"m": (1.0, 0.0), "km": (1e3, 0.0), "cm": (1e-2, 0.0), "mm": (1e-3, 0.0), "µm": (1e-6, 0.0)},
    "speed": {"m/s": (1.0, 0.0), "mm/s": (1e-3, 0.0), "km/h": (1 / 3.6, 0.0)},
    "rotation": {"Hz": (1.0, 0.0), "rpm": (1 / 60, 0.0), "1/min": (1 / 60, 0.0)},
    "voltage": {"V": (1.0, 0.0), "mV": (1e-3, 0.0), "kV": (1e3, 0.0)},
    "current": {"A": (1.0, 0.0), "mA": (1e-3, 0.0), "kA": (1e3, 0.0)},
    "power": {"W": (1.0, 0.0), "kW": (1e3, 0.0), "MW": (1e6, 0.0)},
    "share": {"1": (1.0, 0.0), "%": (1e-2, 0.0), "ppm": (1e-6, 0.0)},
}
"""Units by quantity, as (factor, offset) to the base unit: `value * factor + offset`."""


@dataclass(frozen=True)
class AliasMeaning:
    """Channel `name` of an alias, and `unit` of the readings under it."""

    name: str
    unit: str


@dataclass(frozen=True)
class ChannelNames:
    """Channel names of a library, by lower-case alias.

    >>> stored = {"PT-101": {"name": "pressure", "unit": "kPa"}, "pressure": {"name": "pressure", "unit": "bar"}}
    >>> naming = ChannelNames.of(stored)
    >>> windows = WindowSet.from_arrays([[[250.0, 300.0], [1.0, 2.0]]], channels=("PT-101", "speed"))
    >>> named = naming(windows)
    >>> named.channels(0), named.values(0)[0].tolist()
    (('pressure', 'speed'), [2.5, 3.0])
    """

    aliases: Mapping[str, AliasMeaning]

    @classmethod
    def of(cls, stored: Mapping[str, Mapping[str, str]]) -> Self:
        """Read the stored form: alias -> name and unit."""
        return cls({key_of(alias): AliasMeaning(entry["name"], entry["unit"]) for alias, entry in stored.items()})

    def __call__(self, windows: WindowSet) -> WindowSet:
        """Rename the channels of windows and convert their units; unchanged windows are not copied."""
        return self._apply(windows, self._resolve_all)

    def rename_stored(self, windows: WindowSet) -> WindowSet:
        """Rename stored windows, which may be older than the names; those that cannot be converted stay unchanged.

        >>> late = ChannelNames.of({"PT-101": {"name": "pressure", "unit": "kPa"}})
        >>> late.rename_stored(WindowSet.from_arrays([[[1.0]], [[2.0]]], channels=("PT-101",))).channels(1)
        ('pressure',)
        """
        return self._apply(windows, self._resolve_where_possible) if self.aliases else windows

    @cached_property
    def fingerprint(self) -> str:
        """Text that differs where names or units differ; "" without names."""
        return (
            repr(sorted((alias, known.name, known.unit) for alias, known in self.aliases.items()))
            if self.aliases
            else ""
        )

    def _apply(
        self,
        windows: WindowSet,
        resolve: Callable[[tuple[str, ...], tuple[str, ...]], list[ResolvedChannel]],
    ) -> WindowSet:
        context = windows.context or Context.unknown(len(windows))
        headers = [(windows.channels(i), context.units_of(i)) for i in range(len(windows))]
        found = {header: resolve(*header) for header in dict.fromkeys(headers)}
        if all(_stay(*header, found[header]) for header in found):
            return windows
        channels = [found[header] for header in headers]
        names = [tuple(channel.name for channel in resolved) for resolved in channels]
        for (given, _), named in zip(headers, names, strict=True):
            _require_distinct(given, named)
        return WindowSet.from_arrays(
            [_convert(windows.values(i), resolved) for i, resolved in enumerate(channels)],
            channels=names,
            context=_convert_context(context, channels),
            labels=windows.labels,
            classes=windows.classes,
            ids=windows.ids.tolist(),
            groups=windows.groups.tolist(),
            assets=windows.assets.tolist(),
            times=windows.times,
            spans=windows.spans,
        )

    def resolve(self, header: str, unit: str = "") -> ResolvedChannel:
        """Name and unit conversion of a channel.

        Args:
            header: name of the channel, with or without a unit in brackets.
            unit: unit of its readings, if known from elsewhere.
        """
        exact = self.aliases.get(key_of(header))
        base, written = split_header(header)
        alias = exact or self.aliases.get(key_of(base))
        if alias is None:
            return ResolvedChannel(header, unit=unit)
        given = unit or (alias.unit if exact or not written else written)
        kept_unit = self.aliases.get(key_of(alias.name), alias).unit
        factor, offset = conversion(given, kept_unit, header)
        return ResolvedChannel(alias.name, factor, offset, kept_unit or given)

    def _resolve_where_possible(self, headers: tuple[str, ...], units: tuple[str, ...]) -> list[ResolvedChannel]:
        try:
            found = self._resolve_all(headers, units)
            _require_distinct(headers, tuple(channel.name for channel in found))
        except DataError:  # two channels of one name, or units that cannot be converted
            return [ResolvedChannel(*header) for header in _bare(headers, units)]
        return found

    def _resolve_all(self, headers: tuple[str, ...], units: tuple[str, ...]) -> list[ResolvedChannel]:
        return [self.resolve(*header) for header in zip(headers, units or [""] * len(headers), strict=True)]


NO_NAMES = ChannelNames({})
"""A library without aliases."""


def _bare(headers: tuple[str, ...], units: tuple[str, ...]) -> list[tuple[str, float, float, str]]:
    return [(name, 1.0, 0.0, unit) for name, unit in zip(headers, units or [""] * len(headers), strict=True)]


@dataclass(frozen=True)
class ResolvedChannel:
    """Name of a channel in the library, conversion of its readings `value * factor + offset`, and resulting unit."""

    name: str
    factor: float = 1.0
    offset: float = 0.0
    unit: str = ""


MAX_LISTED_CHANNELS = 8
"""Channels named in one sentence."""


def compare_channels(given: Sequence[str], named: Sequence[str], known: Sequence[str]) -> list[str]:
    """Differences between the channels of a window and those of a library, as sentences.

    Args:
        given: channel names of the window as it was given.
        named: the same channels under the library's names.
        known: channels that most cases of the library have.

    >>> compare_channels(("PT-101", "flow", "new"), ("pressure", "flow", "new"), ("pressure", "flow", "speed"))
    ['Renamed here: PT-101 is pressure.', 'The cases have 1 channel that the window lacks: speed.', \
'The window has 1 channel that the cases lack, and it is not compared: new.']
    """
    said = []
    renamed = [f"{old} is {new}" for old, new in zip(given, named, strict=False) if old != new]
    if renamed:
        said.append(f"Renamed here: {_list(renamed)}.")
    missing = [name for name in known if name not in set(named)]
    if missing:
        said.append(f"The cases have {_count(missing)} that the window lacks: {_list(missing)}.")
    new = [name for name in named if name not in set(known)]
    if new and known:
        are = "it is" if len(new) == 1 else "they are"
        said.append(f"The window has {_count(new)} that the cases lack, and {are} not compared: {_list(new)}.")
    return said


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} channel{'s' * (len(names) > 1)}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED_CHANNELS]) + (", ..." if len(names) > MAX_LISTED_CHANNELS else "")


def key_of(alias: str) -> str:
    """Normal form in which aliases are compared."""
    return alias.strip().casefold()


def conversion(given: str, wanted: str, channel: str) -> tuple[float, float]:
    """Factor and offset from one unit to another; (1, 0) if one of them is "".

    >>> conversion("degC", "K", "T1"), conversion("", "bar", "P1")
    ((1.0, 273.15), (1.0, 0.0))
    """
    if not given or not wanted or given == wanted:
        return 1.0, 0.0
    for units in _UNITS.values():
        if given in units and wanted in units:
            (factor, offset), (factor_wanted, shift) = units[given], units[wanted]
            return factor / factor_wanted, (offset - shift) / factor_wanted
    raise DataError(
        f"Channel {channel!r} is in {given!r}, which cannot be converted to {wanted!r}, its unit in the library."
    )


def check_unit(unit: str) -> str:
    """Return the unit; raise if it is unknown."""
    if unit and not any(unit in units for units in _UNITS.values()):
        known = ", ".join(name for units in _UNITS.values() for name in units)
        raise UsageError(f"Unknown unit {unit!r}. Known: {known}.")
    return unit


def _convert(values: np.ndarray, channels: list[ResolvedChannel]) -> np.ndarray:
    factor = np.array([channel.factor for channel in channels])[:, None]
    offset = np.array([channel.offset for channel in channels])[:, None]
    return values * factor + offset


def _convert_context(context: Context, channels: list[list[ResolvedChannel]]) -> Context:
    """Convert the units of contexts; readings before that several windows share are converted once."""
    befores: dict[tuple[int, int], np.ndarray | None] = {}
    for i, resolved in enumerate(channels):
        before, key = context.before_of(i), (int(context.before[i]), id(resolved))
        if key not in befores:
            befores[key] = None if before is None else _convert(before, resolved)
    return Context.of(
        len(context),
        befores=[befores[int(context.before[i]), id(resolved)] for i, resolved in enumerate(channels)],
        rates=context.rates,
        units=[[channel.unit for channel in resolved] for resolved in channels],
        facts=[context.facts_of(i) for i in range(len(context))],
    )


def _stay(names: tuple[str, ...], units: tuple[str, ...], found: list[ResolvedChannel]) -> bool:
    """True if channels already have the library's names and units."""
    converted = any(channel.factor != 1.0 or channel.offset for channel in found)
    same_units = tuple(channel.unit for channel in found) == (units or ("",) * len(names))
    return not converted and same_units and tuple(channel.name for channel in found) == names


def _require_distinct(given: tuple[str, ...], named: tuple[str, ...]) -> None:
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        both = [header for header, name in zip(given, named, strict=True) if name == twice]
        raise DataError(f"Channels {' and '.join(map(repr, both))} are both {twice!r}. Leave one out.")
