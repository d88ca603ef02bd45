"""PostgreSQL and TimescaleDB: a table or a query with a time and readings, wide or long, in read-only transactions.

```
postgresql://reader@db/plant?table=readings&time=ts&channel=tag&value=reading&asset=pump     a row per reading
postgresql://reader@db/plant?query=SELECT ts, pump, flow, pressure FROM minute&asset=pump    a row per time
```

Options: `table` or `query`; `time` (by default `time`), `asset`, and of a long table `channel`, `value` and `unit`;
`zone` of times that name none, by default UTC. The server
cuts the range, `WHERE time BETWEEN ...`, so that an index on the time or a hypertable is used. The password
comes from the secret, or from where the server's own programs look for it (`PGPASSWORD`, `~/.pgpass`).
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, date, datetime, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa

from readbench.cases.connect._protocol import (
    LATE_S,
    PollingFollower,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.cases.connect._tables import TABLE_OPTIONS, roles_of, split_table, understand
from readbench.common.deadlines import check_deadline, seconds_left, within_seconds
from readbench.common.tables import Table
from readbench.common.times import check_zone, zone_of
from readbench.errors import AnswerError, DataError, LongAnswerError, OverdueError, UsageError

MOST_ROWS = 5_000_000
MOST_CELLS = 40_000_000
MOST_LETTERS = 256 * 2**20
ROWS_AT_ONCE = 5_000
RECENT_S = 24 * 3600.0
"""Time before the last reading in which channels are looked for."""


class PostgresSource:
    """A table or query of a database.

    Args:
        address: of the database.
    """

    keeps_history = True

    def __init__(self, address: SourceAddress) -> None:
        address.check_options((*TABLE_OPTIONS, "table", "query", "sslmode", "host", "schema"))
        if bool(address.option("table")) == bool(address.option("query")):
            raise UsageError("Name the table or the query with the readings: --option table=NAME or --option query=SQL")
        self.address = address
        self._time = address.option("time", "time")
        self._zone = zone_of(check_zone(address.option("zone", "UTC")))
        self._roles = roles_of(SourceAddress(address.family, options={**address.options, "time": self._time}))
        self._connection: Any = None
        self._kind = ""

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """What the last day of readings holds."""
        last = self._ask("SELECT max({time}) FROM {rows}", ())[0][1]
        if not len(last) or last[0] is None:
            return []
        end = _seconds(last[0], self._zone)
        found = {key: own.unit for key, own in self.read(end - RECENT_S, end).series.items()}
        return [SourceChannel(name, asset, unit) for (asset, name), unit in sorted(found.items())]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002 - all readings are read
        """Readings of a range."""
        if not self._find_kind():
            return SourceReadings()  # no row yet
        where = "{time} BETWEEN %s AND %s"
        given: list[Any] = [self._as_column(own) for own in (start, end)]
        if asset is not None and self.address.option("asset"):
            where, given = f"{where} AND {{asset}}::text = %s", [*given, asset]
        text = f"SELECT * FROM {{rows}} WHERE {where} ORDER BY {{time}} LIMIT {MOST_ROWS + 1}"  # noqa: S608 - our own
        columns = self._ask(text, given)
        if not columns or not len(columns[0][1]):
            return SourceReadings()
        if len(columns[0][1]) > MOST_ROWS:
            raise DataError(f"{self.shown}: more than {MOST_ROWS:,} rows lie in that range. Give a shorter one.")
        try:
            own = {name: _to_arrow(values, self._zone, is_time=name == self._time) for name, values in columns}
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise AnswerError(f"{self.shown} sends rows that cannot be read: {str(error)[:200]}") from None
        data = pa.table(own)
        parts = split_table(understand(Table(self.shown, data), self._roles), unit_column=self.address.option("unit"))
        return SourceReadings.join(parts)

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        """What comes from a time on."""
        return PollingFollower(self, since, late_s)

    def close(self) -> None:
        """End its connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _find_kind(self) -> str:
        """Type of the column of times; "" while there is no row."""
        if not self._kind:
            found = self._ask("SELECT pg_typeof({time})::text FROM {rows} LIMIT 1", ())[0][1]
            self._kind = str(found[0]) if found else ""
        return self._kind

    def _as_column(self, seconds: float) -> float | datetime:
        """A time as the column has it, so that the server compares it in no zone of its own."""
        if self._kind == "timestamp with time zone":
            return datetime.fromtimestamp(seconds, UTC)
        if self._kind.startswith(("timestamp", "date")):
            return datetime.fromtimestamp(seconds, self._zone).replace(tzinfo=None)
        return seconds

    def _ask(self, text: str, given: Any) -> list[tuple[str, list[Any]]]:  # noqa: ANN401 - parameters of any type
        """Columns of an answer: names and values. A lost connection is made again once."""
        import psycopg  # noqa: PLC0415 - optional

        wait = self.address.timeout_s
        for again in (False, True):
            try:
                with within_seconds(wait):
                    return self._fetch(self._connected(psycopg), self._compose(psycopg, text), given)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                slow = isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.ConnectionTimeout)
                self.close()
                if again or slow:
                    raise self.address.lost(error) from None
            except psycopg.Error as error:
                self.close()
                raise DataError(f"{self.shown} cannot answer: {' '.join(str(error).split())[:300]}") from None
            except (OverdueError, LongAnswerError) as error:
                self.close()
                check_deadline()
                if isinstance(error, LongAnswerError):
                    raise
                raise self.address.lost(f"no whole answer within {wait:g} s") from None
        raise AssertionError  # the loop returns or raises

    def _fetch(self, connection: Any, query: Any, given: Any) -> list[tuple[str, list[Any]]]:  # noqa: ANN401 - of the optional package
        """An answer in parts, so that one that is too long is not held."""
        columns: list[list[Any]] = []
        cells = letters = 0
        with connection.cursor("readings") as cursor:
            cursor.execute(query, given)
            names = [column.name for column in cursor.description or ()]
            columns = [[] for _ in names]
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                    column.extend(values)
                    letters += sum(len(own) for own in values if isinstance(own, str | bytes))
                cells += len(rows) * len(names)
                if cells > MOST_CELLS or letters > MOST_LETTERS:
                    raise LongAnswerError(
                        f"{self.shown}: more than {MOST_CELLS:,} values or {MOST_LETTERS >> 20} MiB of texts lie in"
                        " that range. Give a shorter one."
                    )
        connection.rollback()
        return list(zip(names, columns, strict=True))

    def _compose(self, psycopg: Any, text: str) -> Any:  # noqa: ANN401 - of the optional package
        sql, option = psycopg.sql, self.address.option
        if option("query"):
            # As the user wrote it; a read-only transaction runs it, and percent signs are no parameters.
            rows = sql.SQL("({}) AS readings").format(sql.SQL(option("query").strip().rstrip(";").replace("%", "%%")))
        else:
            rows = sql.Identifier(*option("table").split("."))
        asset = sql.Identifier(option("asset") or "asset")
        return sql.SQL(text).format(rows=rows, time=sql.Identifier(self._time), asset=asset)

    def _connected(self, psycopg: Any) -> Any:  # noqa: ANN401 - of the optional package
        if self._connection is None or self._connection.closed:
            own, wait = self.address, self.address.timeout_s
            self._connection = _timed(psycopg).connect(
                host=own.option("host") or own.host or None,
                port=own.port,
                dbname=own.path or None,
                user=own.user or None,
                password=own.password() or None,
                sslmode="require" if own.tls else own.option("sslmode") or None,
                connect_timeout=max(1, round(min(wait, max(0.0, seconds_left())))),
                options=f"-c default_transaction_read_only=on -c statement_timeout={round(1000 * wait)}",
                application_name="readbench",
            )
            self._connection.read_only = True
        return self._connection


def _timed(psycopg: Any) -> Any:  # noqa: ANN401 - of the optional package
    """Its connections, whose waits end at the deadline of the work at hand."""

    class TimedConnection(psycopg.Connection):  # type: ignore[misc]
        def wait(self, generator: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401
            return super().wait(_watch(generator), *given, **more)

    return TimedConnection


def _watch(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same steps, while there is time: the driver takes one several times a second."""
    try:
        wanted = next(steps)
        while True:
            came = yield wanted
            check_deadline()
            wanted = steps.send(came)
    except StopIteration as end:
        return end.value


def _to_arrow(values: list[Any], zone: tzinfo, *, is_time: bool) -> pa.Array:
    """A column as Arrow has it; decimals become numbers."""
    from decimal import Decimal  # noqa: PLC0415

    known = next((value for value in values if value is not None), None)
    if isinstance(known, datetime) or (is_time and known is not None):
        return pa.array(np.array([np.nan if value is None else _seconds(value, zone) for value in values]))
    if isinstance(known, Decimal):
        return pa.array([None if value is None else float(value) for value in values])
    if known is not None and not isinstance(known, str | int | float | bool):
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array(values)


def _seconds(value: Any, zone: tzinfo) -> float:  # noqa: ANN401 - a time as the driver has it
    """Seconds since 1970; times that name no zone are of this one."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=zone).timestamp()
    return float(value)
