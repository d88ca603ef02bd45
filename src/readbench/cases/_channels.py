"""What a site calls its channels: aliases and units, so that windows of different systems meet.

A channel that nobody named keeps its name. Names are compared without regard to case and outer blanks; a unit may
stand behind a name in brackets, `Pressure [kPa]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from readbench.common.tables import split_header
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
    >>> own = naming(windows)
    >>> own.channels(0), own.values(0)[0].tolist()
    (('pressure', 'speed'), [2.5, 3.0])
    """

    aliases: Mapping[str, AliasMeaning]

    @classmethod
    def of(cls, stored: Mapping[str, Mapping[str, str]]) -> Self:
        """From what a store keeps."""
        return cls({key_of(alias): AliasMeaning(entry["name"], entry["unit"]) for alias, entry in stored.items()})

    def __call__(self, windows: WindowSet) -> WindowSet:
        """The windows under the site's names and in its units; those that need no change are not copied."""
        found = {names: [self.resolve(name) for name in names] for names in windows.channel_sets}
        if all(tuple(own.name for own in found[names]) == names for names in found) and not any(
            own.factor != 1.0 or own.offset for channels in found.values() for own in channels
        ):
            return windows
        names = [tuple(own.name for own in found[windows.channels(i)]) for i in range(len(windows))]
        for given, own in zip(map(windows.channels, range(len(windows))), names, strict=True):
            _require_distinct(given, own)
        values = [_convert(windows.values(i), found[windows.channels(i)]) for i in range(len(windows))]
        return WindowSet.from_arrays(
            values,
            channels=names,
            labels=windows.labels,
            classes=windows.classes,
            ids=windows.ids.tolist(),
            groups=windows.groups.tolist(),
            assets=windows.assets.tolist(),
            times=windows.times,
            spans=windows.spans,
        )

    def resolve(self, header: str) -> ResolvedChannel:
        """What a channel's header means at this site."""
        exact = self.aliases.get(key_of(header))
        base, unit = split_header(header)
        alias = exact or self.aliases.get(key_of(base))
        if alias is None:
            return ResolvedChannel(header)
        given = alias.unit if exact or not unit else unit
        own = self.aliases.get(key_of(alias.name), alias).unit
        factor, offset = conversion(given, own, header)
        return ResolvedChannel(alias.name, factor, offset)


@dataclass(frozen=True)
class ResolvedChannel:
    """A channel's name at this site, and how its readings become the site's: `value * factor + offset`."""

    name: str
    factor: float = 1.0
    offset: float = 0.0


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
            (factor, offset), (own, shift) = units[given], units[wanted]
            return factor / own, (offset - shift) / own
    raise DataError(f"Channel {channel!r} comes in {given!r}, the library keeps {wanted!r}: no conversion is known.")


def check_unit(unit: str) -> str:
    """The unit, or an error that lists those that can be converted."""
    if unit and not any(unit in units for units in _UNITS.values()):
        known = ", ".join(name for units in _UNITS.values() for name in units)
        raise UsageError(f"Unknown unit {unit!r}. Known: {known}.")
    return unit


def _convert(values: np.ndarray, channels: list[ResolvedChannel]) -> np.ndarray:
    factor = np.array([own.factor for own in channels])[:, None]
    offset = np.array([own.offset for own in channels])[:, None]
    return values * factor + offset


def _require_distinct(given: tuple[str, ...], own: tuple[str, ...]) -> None:
    twice = next((name for name in own if own.count(name) > 1), None)
    if twice is not None:
        both = [header for header, name in zip(given, own, strict=True) if name == twice]
        raise DataError(f"Channels {' and '.join(map(repr, both))} are both {twice!r}. Leave one out.")
