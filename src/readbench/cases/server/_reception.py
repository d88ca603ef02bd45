"""Limits on received requests, applied before they are parsed.

A body is received only when its route reads it, so that a request without a key is refused unread (`ReceivedBody`).
JSON is parsed in a worker, straight into its model (`JsonRoute`). Connections that are slow, or too many from one
address, are closed (`LimitedProtocol`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from readbench.cases.server._fields import MAX_ANSWER_BYTES, MAX_FORM_BYTES
from readbench.cases.server._service import BusyError, CaseService, service_of
from readbench.errors import UsageError

HEAD_TIMEOUT_S = 10.0
"""Longest time to send the head of a request, or the rest of a refused one, in seconds."""
PAUSE_TIMEOUT_S = 10.0
"""Time allowed for a body in seconds, in addition to its size at `MIN_RATE`."""
MIN_RATE = 16 * 2**10
"""Smallest average rate of a body, in bytes per second."""
FREE_BYTES = 2**16
"""Largest body for a route that needs no key, such as the login page."""
MAX_UNSENT_BYTES = 2**28
"""Largest total of unsent answers in bytes; above it the connections that wait longest are closed."""
MAX_NAMES = 10**6
"""Largest number of colons in a JSON text, which bounds the number of its fields."""
MAX_ERRORS = 1000
"""Largest number of invalid fields of which the first is named in the error."""
MAX_CONNECTIONS = 500
"""Largest number of connections; each is an open file of the process."""


class ReceivedBody:
    """ASGI `receive` of one request, with limits.

    Args:
        scope: scope of the request.
        receive: `receive` of the server.
        service: the service, for its limits.
        admit: raises if the sender may not use the route; returns True if the route needs a key.
    """

    def __init__(self, scope: Scope, receive: Receive, service: CaseService, admit: Callable[[], bool]) -> None:
        self.size = 0
        self._scope, self._receive, self._service, self._admit = scope, receive, service, admit
        self._most = 0
        self._held = 0
        self._begun = 0.0
        self._whole = False

    async def __call__(self) -> Message:
        """Next part of the body; then the end of the connection."""
        if self._whole:
            return await self._receive()
        if not self._begun:
            self._begin()
        left = self._begun + PAUSE_TIMEOUT_S + self.size / MIN_RATE - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, left))
        except TimeoutError as error:
            raise HTTPException(
                408,
                f"The request came too slowly: {self.size:,} bytes in {time.monotonic() - self._begun:.0f} s. Send it"
                f" again, at least {MIN_RATE:,} bytes a second.",
            ) from error
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "The sender left before the request was complete.")
        self.size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self.size > self._most:
            raise HTTPException(413, f"The request has more than {self._most:,} bytes.")
        self._hold(self.size)
        return message

    def release(self) -> None:
        """Release the bytes held for the request."""
        self._service.inflow.held -= self._held
        self._held = 0

    def _begin(self) -> None:
        """Check the key, then the declared size."""
        guarded = self._admit()
        limits = self._service.settings
        headers = Headers(scope=self._scope)
        form = headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded")
        most = MAX_FORM_BYTES if form else getattr(self._scope.get("route"), "most_bytes", limits.max_bytes)
        self._most = min(most if guarded else FREE_BYTES, limits.max_bytes)
        told = headers.get("content-length", "0")
        size = int(told) if told.isdigit() else 0
        if size > self._most:
            raise HTTPException(413, f"The request has {size:,} bytes; at most {self._most:,} are taken.")
        self._hold(size)
        self._begun = time.monotonic()

    def _hold(self, size: int) -> None:
        """Reserve bytes for a body in `Inflow`; raise 503 if there is no room."""
        inflow, more = self._service.inflow, size - self._held
        if more <= 0:
            return
        if inflow.held + more > self._service.settings.max_total_bytes:
            raise HTTPException(
                503,
                f"Requests of {inflow.held:,} bytes are being worked on. Try again in a moment.",
                {"Retry-After": "2"},
            )
        inflow.held += more
        self._held += more


class JsonRoute(APIRoute):
    """A route that parses JSON in a worker, straight into its model."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler with a request that parses its JSON in a worker."""
        handle = super().get_route_handler()
        adapter = None if self.body_field is None else TypeAdapter(self.body_field.field_info.annotation)

        async def handle_parsed(request: Request) -> Response:
            response = await handle(request if adapter is None else _JsonRequest(request, adapter))
            check_answer(len(getattr(response, "body", b"")))
            return response

        return handle_parsed


class SmallJsonRoute(JsonRoute):
    """`JsonRoute` for requests without readings."""

    most_bytes = MAX_FORM_BYTES


def check_answer(size: int) -> None:
    """Raise if an answer of `size` bytes is too large."""
    if size > MAX_ANSWER_BYTES:
        raise UsageError(f"The answer has more than {MAX_ANSWER_BYTES:,} bytes. Ask for less at once.")


class _JsonRequest(Request):
    def __init__(self, request: Request, adapter: TypeAdapter[Any]) -> None:
        super().__init__(request.scope, request.receive)
        self._adapter = adapter

    async def json(self) -> Any:  # noqa: ANN401 - the model of the route
        service, content = service_of(self), await self.body()
        try:
            return await service.work.do(lambda: _parse(content, self._adapter, 2 * service.settings.max_points))
        except BusyError as error:  # FastAPI would report malformed JSON
            raise HTTPException(503, str(error), {"Retry-After": "2"}) from error


def _parse(content: bytes, adapter: TypeAdapter[Any], most_readings: int) -> Any:  # noqa: ANN401
    """Parse a JSON text into its model, after counting its values."""
    count, names = content.count(b","), content.count(b":")
    if count > most_readings + FREE_BYTES:
        raise HTTPException(413, f"The request has {count:,} values, more than {most_readings:,}. Send less at once.")
    if names > MAX_NAMES:
        raise HTTPException(413, f"The request has {names:,} colons, more than {MAX_NAMES:,}. Send less at once.")
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        if error.error_count() > MAX_ERRORS:  # listing them takes much longer than finding them
            raise HTTPException(422, f"body: {error.error_count():,} fields are not what this route takes.") from None
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in ("body", *first["loc"]))
        raise HTTPException(422, f"{where[:200]}: {first['msg']}.") from error


class LimitedProtocol(H11Protocol):
    """Uvicorn's HTTP/1.1 protocol with limits on connections and on unsent answers.

    `most_of_one`: connections from one address; `trusted` addresses, those of proxies, may have more.
    """

    most_of_one = 64
    trusted: frozenset[str] = frozenset()
    unsent: ClassVar[dict[LimitedProtocol, asyncio.TimerHandle]] = {}
    """Connections with unsent answers, oldest first, and their timers."""
    _expected: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept or refuse a connection."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        same = sum(other.client is not None and other.client[0] == address for other in self.connections)
        crowded = same > self.most_of_one and address not in self.trusted
        if crowded or len(self.connections) > MAX_CONNECTIONS:
            self._end(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections. Close some, or try again in a moment.")
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._expect(forget=True)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect()

    def pause_writing(self) -> None:
        """Start the timer of a receiver that reads more slowly than the answer is written."""
        super().pause_writing()
        self._stop_waiting()
        patience = PAUSE_TIMEOUT_S + self.transport.get_write_buffer_size() / MIN_RATE
        self.unsent[self] = self.loop.call_later(patience, self.transport.abort)
        held = sum(protocol.transport.get_write_buffer_size() for protocol in self.unsent)
        for protocol in list(self.unsent):
            if held <= MAX_UNSENT_BYTES:
                break
            held -= protocol.transport.get_write_buffer_size()
            protocol.transport.abort()

    def resume_writing(self) -> None:
        """Stop the timer of a receiver that has caught up."""
        self._stop_waiting()
        super().resume_writing()

    def _stop_waiting(self) -> None:
        if patience := self.unsent.pop(self, None):
            patience.cancel()

    def _expect(self, *, forget: bool = False) -> None:
        """Start the timer for the head of the next request; idle connections have uvicorn's timer instead."""
        idle = self.cycle is None or self.cycle.response_complete
        waits = idle and self.timeout_keep_alive_task is None and not self.transport.is_closing() and not forget
        if waits and self._expected is None:
            sentence = f"No whole request came within {HEAD_TIMEOUT_S:g} s."
            self._expected = self.loop.call_later(HEAD_TIMEOUT_S, self._end, HTTPStatus.REQUEST_TIMEOUT, sentence)
        elif not waits and self._expected is not None:
            self._expected.cancel()
            self._expected = None

    def _end(self, status: HTTPStatus, sentence: str) -> None:
        """Answer with an error if nothing was sent yet, and close."""
        if self.cycle is None:
            content = f'{{"detail":"{sentence}"}}'
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
        self.transport.close()


def limit_connections(most_of_one: int, trusted: str) -> type[LimitedProtocol]:
    """Subclass of `LimitedProtocol` with these limits.

    Args:
        most_of_one: connections from one address.
        trusted: addresses that may have more, separated by commas.
    """
    known = frozenset(part.strip() for part in trusted.split(","))
    attributes = {"most_of_one": most_of_one, "trusted": known, "unsent": {}}
    return type("LimitedProtocol", (LimitedProtocol,), attributes)
