"""Tables of readings, wide or long, as readings of a source: what folders and databases give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from readbench.cases.connect._protocol import ChannelKey, SampledChannel, SourceAddress
from readbench.common.tables import Table, split_header
from readbench.engine.signal_tables import SignalTable, understand_table
from readbench.engine.window_tables import Roles
from readbench.errors import DataError

TABLE_OPTIONS = ("time", "asset", "channel", "value", "unit", "zone", "channels")


def roles_of(address: SourceAddress) -> Roles:
    """What the options of an address say of the columns; rows of one asset stand together."""
    names = tuple(name.strip() for name in address.option("channels").split(",") if name.strip())
    return Roles(
        time=address.option("time"),
        case=address.option("asset"),
        channel=address.option("channel"),
        value=address.option("value"),
        channels=names,
        zone=address.option("zone"),
    )


def understand(table: Table, roles: Roles) -> SignalTable:
    """A table whose time is known, or an error; the column of the asset counts where the table has one."""
    own = replace(roles, case="") if roles.case not in table.columns else roles
    found = understand_table(table, own)
    if not found.roles.time:
        raise DataError(f"{table.name}: no column was taken as the time. Name it: --option time=COLUMN")
    return found


def split_table(
    found: SignalTable, asset: str = "", unit_column: str = ""
) -> Iterator[tuple[ChannelKey, SampledChannel]]:
    """Readings by asset and channel.

    Args:
        found: a table that was understood.
        asset: of tables that have no column for it.
        unit_column: of a long table, the column of the units.
    """
    table, roles = found.table, found.roles
    times = table.numbers(roles.time)
    assets, names = table.codes(roles.case) if roles.case else (np.zeros(table.rows, np.int32), (asset,))
    for code, whose in enumerate(names):
        rows = np.flatnonzero(assets == code)
        yield from _split_rows(found, times, rows, whose, unit_column)


def _split_rows(
    found: SignalTable, times: np.ndarray, rows: np.ndarray, asset: str, unit_column: str
) -> Iterator[tuple[ChannelKey, SampledChannel]]:
    table, roles = found.table, found.roles
    if not roles.channel:
        for header in roles.channels:
            name, written = split_header(header)
            unit = roles.unit_of(header) or written
            yield (
                (asset, name if written else header),
                SampledChannel.of(times[rows], table.numbers(header)[rows], unit),
            )
        return
    channels, names = table.codes(roles.channel)
    readings = table.numbers(roles.value)
    has_units = unit_column in table.columns
    units, texts = table.codes(unit_column) if has_units else (np.full(table.rows, -1, np.int32), ())
    pairs = np.stack([channels[rows], units[rows]])
    for channel, unit in np.unique(pairs, axis=1).T.tolist():
        if channel < 0 or (roles.channels and names[channel] not in roles.channels):
            continue
        own = rows[(pairs[0] == channel) & (pairs[1] == unit)]
        name, written = split_header(names[channel])
        told = texts[unit] if unit >= 0 else written
        yield (asset, name if written else names[channel]), SampledChannel.of(times[own], readings[own], told)
