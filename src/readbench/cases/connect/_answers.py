"""What comes from outside is bounded and parsed at the door: bytes, seconds, readings, and a declared model.

`BoundedSession` asks over HTTP: a whole answer comes within the timeout and within the deadline of the work at hand,
however slowly its bytes come, and is no longer than `MOST_BYTES`. `parse_answer` reads it as a declared model; what
does not fit is an `AnswerError`, one sentence.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, TypeVar

import numpy as np
import requests
import urllib3
from numpy.typing import ArrayLike
from pydantic import TypeAdapter, ValidationError
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from readbench.common.deadlines import check_deadline, seconds_left, within_seconds
from readbench.errors import AnswerError, LongAnswerError

MOST_BYTES = 32 * 2**20
"""Of one answer: read as numbers it takes some ten times as much for a moment."""
EARLIEST_S, LATEST_S = -2208988800.0, 7258118400.0
"""1900 and 2200, in seconds since 1970: no reading is of another time."""
CHUNK = 64 * 2**10
T = TypeVar("T")


@dataclass(frozen=True)
class HttpAnswer:
    """An answer that is whole.

    Args:
        status: as HTTP has it.
        body: its bytes.
    """

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """Its bytes as a text."""
        return self.body.decode("utf-8", "replace")


class TimedSocket:
    """A connection whose reads end at the deadline of the work at hand, not only each within its timeout.

    Args:
        connection: that is read.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the connection's
        return getattr(self._connection, name)

    def makefile(self, _mode: str = "rb", _buffering: int = -1) -> io.BufferedReader:
        """A file to read from."""
        return io.BufferedReader(_TimedReader(self._connection))


class _TimedReader(io.RawIOBase):
    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._raw = connection.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - any writable buffer
        left = seconds_left()
        if left <= 0:
            raise TimeoutError("the time for the whole answer is over")
        usual = self._connection.gettimeout()
        if left < (np.inf if usual is None else usual):
            self._connection.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedConnection(HTTPConnection):
    def getresponse(self) -> Any:  # noqa: ANN401 - of the package
        self.sock = TimedSocket(self.sock) if isinstance(self.sock, socket.socket) else self.sock
        return super().getresponse()


class _TimedTlsConnection(HTTPSConnection):
    def getresponse(self) -> Any:  # noqa: ANN401 - of the package
        self.sock = TimedSocket(self.sock) if isinstance(self.sock, socket.socket) else self.sock
        return super().getresponse()


class _TimedPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


class _TimedAdapter(HTTPAdapter):
    def init_poolmanager(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 - of the package
        super().init_poolmanager(*given, **more)
        self.poolmanager.pool_classes_by_scheme = {"http": _TimedPool, "https": _TimedTlsPool}

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:  # noqa: ANN401 - of the package
        manager = super().proxy_manager_for(proxy, **more)
        manager.pool_classes_by_scheme = {"http": _TimedPool, "https": _TimedTlsPool}
        return manager


class BoundedSession:
    """Asks over HTTP; what comes back is bounded in bytes and in seconds, and redirects are not followed.

    Args:
        shown: who is asked, as errors say it.
        timeout_s: longest that a whole answer may take.
        lost: the error of who does not answer, for a reason.
    """

    def __init__(self, shown: str, timeout_s: float, lost: Callable[[Exception | str], Exception]) -> None:
        self._shown, self._timeout_s, self._lost = shown, timeout_s, lost
        self._session = requests.Session()
        self._session.headers["Accept-Encoding"] = "identity"  # what is unpacked may be of any size
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _TimedAdapter())

    def ask(self, method: str, url: str, **how: Any) -> HttpAnswer:  # noqa: ANN401 - of requests
        """The whole answer."""
        check_deadline()
        began = time.monotonic()
        try:
            with within_seconds(self._timeout_s):
                left = max(0.001, seconds_left())
                with self._session.request(
                    method, url, timeout=left, stream=True, allow_redirects=False, **how
                ) as answer:
                    return HttpAnswer(answer.status_code, self._read(answer))
        except (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            check_deadline()
            late = time.monotonic() - began >= self._timeout_s
            raise self._lost(f"no whole answer within {self._timeout_s:g} s" if late else error) from None

    def _read(self, answer: requests.Response) -> bytes:
        if answer.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
            raise AnswerError(f"{self._shown} packs its answers, though it was asked not to. Turn that off there.")
        parts, size = [], 0
        while part := answer.raw.read(CHUNK, decode_content=False):
            size += len(part)
            if size > MOST_BYTES:
                raise LongAnswerError(
                    f"{self._shown} answers with more than {MOST_BYTES >> 20} MiB. Ask for a shorter range, one asset"
                    " or fewer channels."
                )
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """End its connections."""
        self._session.close()


def parse_answer(model: TypeAdapter[T], body: bytes | str, shown: str) -> T:
    """An answer as its model has it.

    >>> parse_answer(TypeAdapter(list[float]), b'[1, "NaN?"]', "plant")
    Traceback (most recent call last):
    readbench.errors.AnswerError: plant sends what cannot be read: at 1: Input should be a valid number, ...
    """
    try:
        return model.validate_json(body)
    except ValidationError as error:
        raise _refuse(error, shown) from None


def parse_row(model: TypeAdapter[T], row: object, shown: str) -> T:
    """A part of an answer that was read already, as its model has it."""
    try:
        return model.validate_python(row)
    except ValidationError as error:
        raise _refuse(error, shown) from None


def _refuse(error: ValidationError, shown: str) -> AnswerError:
    """The sentence about an answer that does not fit its model: the first place where it does not."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"][:8])
    where = f"at {place}: " if place else ""
    return AnswerError(f"{shown} sends what cannot be read: {where}{first['msg'][:200]}. Is it what the address says?")


def check_times(times: ArrayLike, shown: str) -> np.ndarray:
    """Times of readings, each of the years 1900 to 2200."""
    own = np.asarray(times, np.float64)
    if len(own) and not (own.min() >= EARLIEST_S and own.max() < LATEST_S):
        raise AnswerError(f"{shown} sends readings of times that are not within the years 1900 to 2200.")
    return own


def read_in_parts(
    read: Callable[[float, float], Iterable[T]], start: float, end: float, longest_s: float, shortest_s: float = 1.0
) -> Iterator[T]:
    """What is read of a range, part by part; a part whose answer is too long is read in halves."""
    first = start
    while True:
        check_deadline()
        last = min(first + longest_s, end)
        try:
            yield from read(first, last)
        except LongAnswerError:
            if last - first <= shortest_s:
                raise
            longest_s = (last - first) / 2
            continue
        if last >= end:
            return
        first = last
