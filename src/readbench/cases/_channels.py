"""What a site calls its channels: aliases and units, so that windows of different systems meet.

A channel that nobody named keeps its name. Names are compared without regard to case and outer blanks; a unit may
stand behind a name in brackets, `Pressure [kPa]`.
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
"""Units by what they measure; the base unit is `value * factor + offset`."""


@dataclass(frozen=True)
class AliasMeaning:
    """What an alias means: the channel's `name`, and the `unit` that readings under this alias have."""

    name: str
    unit: str


@dataclass(frozen=True)
class ChannelNames:
    """The site's names, by lower-case alias.

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
        """From what a store keeps."""
        return cls({key_of(alias): AliasMeaning(entry["name"], entry["unit"]) for alias, entry in stored.items()})

    def __call__(self, windows: WindowSet) -> WindowSet:
        """The windows under the site's names and in its units; those that need no change are not copied."""
        return self._apply(windows, self._resolve_all)

    def rename_stored(self, windows: WindowSet) -> WindowSet:
        """The same for windows that came in before a name was given; those to which it cannot apply stay as they are.

        >>> late = ChannelNames.of({"PT-101": {"name": "pressure", "unit": "kPa"}})
        >>> late.rename_stored(WindowSet.from_arrays([[[1.0]], [[2.0]]], channels=("PT-101",))).channels(1)
        ('pressure',)
        """
        return self._apply(windows, self._resolve_where_possible) if self.aliases else windows

    @cached_property
    def fingerprint(self) -> str:
        """Differs where names or units do; "" where the site named nothing."""
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
        """What a channel's header means at this site.

        Args:
            header: its name, perhaps with a unit in brackets.
            unit: of its readings, where it is told beside.
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
"""Of a site that named nothing."""


def _bare(headers: tuple[str, ...], units: tuple[str, ...]) -> list[tuple[str, float, float, str]]:
    return [(name, 1.0, 0.0, unit) for name, unit in zip(headers, units or [""] * len(headers), strict=True)]


@dataclass(frozen=True)
class ResolvedChannel:
    """A channel's name at this site, how its readings become the site's, `value * factor + offset`, and their unit."""

    name: str
    factor: float = 1.0
    offset: float = 0.0
    unit: str = ""


MOST_LISTED = 8
"""Channels that a sentence names."""


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
    return ", ".join(names[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")


def key_of(alias: str) -> str:
    """What aliases are compared by."""
    return alias.strip().casefold()


def conversion(given: str, wanted: str, channel: str) -> tuple[float, float]:
    """Factor and offset from one unit to another; nothing to do where one of them is unknown to the site.

    >>> conversion("degC", "K", "T1"), conversion("", "bar", "P1")
    ((1.0, 273.15), (1.0, 0.0))
    """
    if not given or not wanted or given == wanted:
        return 1.0, 0.0
    for units in _UNITS.values():
        if given in units and wanted in units:
            (factor, offset), (factor_wanted, shift) = units[given], units[wanted]
            return factor / factor_wanted, (offset - shift) / factor_wanted
    raise DataError(f"Channel {channel!r} comes in {given!r}, the library keeps {wanted!r}: no conversion is known.")


def check_unit(unit: str) -> str:
    """The unit, or an error that lists those that can be converted."""
    if unit and not any(unit in units for units in _UNITS.values()):
        known = ", ".join(name for units in _UNITS.values() for name in units)
        raise UsageError(f"Unknown unit {unit!r}. Known: {known}.")
    return unit


def _convert(values: np.ndarray, channels: list[ResolvedChannel]) -> np.ndarray:
    factor = np.array([channel.factor for channel in channels])[:, None]
    offset = np.array([channel.offset for channel in channels])[:, None]
    return values * factor + offset


def _convert_context(context: Context, channels: list[list[ResolvedChannel]]) -> Context:
    """What windows bring along, in the site's units; a time before that windows share is converted once."""
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
    """Whether channels have the site's names and units already."""
    converted = any(channel.factor != 1.0 or channel.offset for channel in found)
    same_units = tuple(channel.unit for channel in found) == (units or ("",) * len(names))
    return not converted and same_units and tuple(channel.name for channel in found) == names


def _require_distinct(given: tuple[str, ...], named: tuple[str, ...]) -> None:
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        both = [header for header, name in zip(given, named, strict=True) if name == twice]
        raise DataError(f"Channels {' and '.join(map(repr, both))} are both {twice!r}. Leave one out.")
