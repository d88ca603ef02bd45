"""Around every request: size, origin, headers, record, and the key it brings.

Around every request: how large it is, where it comes from, what the answer's headers say, what is recorded.

The key of a request, and the role that a route asks for.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readbench.cases.server._keys import LOCAL, NOBODY, Event, KeyHolder, Role
from readbench.cases.server._service import CaseService, service_of
from readbench.common import web

BODY_S = 30.0
"""Longest pause of a sender."""
SAFE = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
UNRECORDED = ("/static/", "/healthz", "/readyz", "/metrics")
IMPORT_MAP = web.import_map({web.NAME: "/static/", "#service/": "/static/"})
"""Where the modules of the pages find each other."""
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self' {web.digest(IMPORT_MAP)}; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class RefusedError(Exception):
    """A request that no route needs to see: status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Gate:
    """Wraps the application.

    Args:
        app: the application.
        service: its limits, audit log and metrics.
    """

    def __init__(self, app: ASGIApp, service: CaseService) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body, recorded = time.perf_counter(), 500, b"", False

        def record() -> None:
            nonlocal recorded
            if not recorded:
                recorded = True
                self._record(scope, status, time.perf_counter() - began, len(body))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _complete(MutableHeaders(scope=message), scope)
            elif not message.get("more_body", False):
                record()  # who has the whole answer finds it in the log, whatever happens next
            await send(message)

        try:
            self._check_sender(scope)
            body = await self._body(scope, receive)
            await self.app(scope, _replay(body, receive), answer)
        except RefusedError as refused:
            await JSONResponse({"detail": str(refused)}, refused.status)(scope, receive, answer)
        finally:
            record()

    def _check_sender(self, scope: Scope) -> None:
        """No other site's page may write here, and without keys only this machine's names lead here."""
        headers = Headers(scope=scope)
        host = urlsplit(f"//{headers.get('host', '')}")
        if self.service.keys is None and _hostname(host.netloc) not in LOOPBACK:
            raise RefusedError(403, "Without keys, this service answers on localhost only.")
        origin = headers.get("origin")
        if origin and scope["method"] not in SAFE and urlsplit(origin).netloc != host.netloc:
            raise RefusedError(403, "The request comes from a page of another site.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is not too large and comes in time."""
        most = self.service.settings.max_bytes
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdigit() and int(told) > most:
            raise RefusedError(413, f"The request has {int(told):,} bytes; at most {most:,} are taken.")
        parts, size, more = [], 0, True
        while more:
            try:
                message = await asyncio.wait_for(receive(), BODY_S)
            except TimeoutError as error:
                raise RefusedError(408, f"Nothing came for {BODY_S:g} s. Send the request again.") from error
            if message["type"] == "http.disconnect":
                raise RefusedError(400, "The sender left before the request was complete.")
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > most:
                raise RefusedError(413, f"The request has more than {most:,} bytes.")
        return b"".join(parts)

    def _record(self, scope: Scope, status: int, seconds: float, received: int) -> None:
        matched = scope.get("route")  # none for what no route of the application answered
        route = matched.path if matched else "other"
        self.service.metrics.requests.labels(scope["method"], route, status).inc()
        self.service.metrics.seconds.labels(route).observe(seconds)
        if not scope["path"].startswith(UNRECORDED):
            caller = scope.get("state", {}).get("caller", NOBODY)
            event = Event(
                time=round(time.time(), 3),
                key=caller.name,
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(1000 * seconds, 1),
                received=received,
            )
            self.service.audit.record(event)


def _complete(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    if not scope["path"].startswith("/static/"):
        headers["Cache-Control"] = "no-store"


def _replay(body: bytes, receive: Receive) -> Receive:
    """A sender that hands out a body that was read, and then listens for the end of the connection."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _hostname(netloc: str) -> str:
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


COOKIE = "readbench_key"
BEARER = HTTPBearer(auto_error=False, description="A key of `readbench cases key add`.")


def caller_of(request: Request, service: CaseService) -> KeyHolder:
    """Whose request it is: by its `Authorization` header, else by the cookie of the page."""
    if service.keys is None:
        return LOCAL
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        token = request.cookies.get(COOKIE, "")
    return service.keys.caller(token.strip()) if token.strip() else NOBODY


class Needs:
    """A dependency that lets pass who has a role.

    Args:
        role: the lowest that is enough.
    """

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(
        self,
        request: Request,
        service: Annotated[CaseService, Depends(service_of)],
        _documented: Annotated[object, Depends(BEARER)],
    ) -> KeyHolder:
        """The caller, or 401 without a key that is known, or 403 where it may not do this."""
        caller = caller_of(request, service)
        request.state.caller = caller
        if caller.role is Role.NONE:
            raise HTTPException(
                401,
                "This needs a key. Send it as `Authorization: Bearer KEY`; an administrator makes one with"
                " `readbench cases key add`.",
                {"WWW-Authenticate": "Bearer"},
            )
        if caller.role < self.role:
            needed, own = self.role.name.lower(), caller.role.name.lower()
            raise HTTPException(403, f"This needs a key with the role {needed}; yours has the role {own}.")
        return caller


Reader = Annotated[KeyHolder, Depends(Needs(Role.READ))]
Writer = Annotated[KeyHolder, Depends(Needs(Role.WRITE))]
Admin = Annotated[KeyHolder, Depends(Needs(Role.ADMIN))]
