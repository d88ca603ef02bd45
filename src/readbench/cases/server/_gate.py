"""Middleware of every request: origin check, headers, audit log; and authentication by key.

The role required by a route is checked before the body is received (`_reception`), and again by the route.
"""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readbench.cases.roles import ROLES, Deed, Role, check_deed
from readbench.cases.server._audit import Event, describe_path
from readbench.cases.server._keys import LOCAL, NOBODY, KeyHolder
from readbench.cases.server._reception import ReceivedBody
from readbench.cases.server._service import CHANGES, CaseService, Served
from readbench.common import web
from readbench.errors import ReadbenchError, RoleError

SAFE = ("GET", "HEAD", "OPTIONS")
METHODS = frozenset((*SAFE, "POST", "PUT", "PATCH", "DELETE"))
"""Methods that are counted by name."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers of requests forwarded by a proxy."""
MAX_LISTED = 20
"""Largest number of changes named in a line of the audit log."""
UNRECORDED = ("/static/", "/healthz", "/readyz", "/metrics")
IMPORT_MAP = web.import_map({web.NAME: "/static/", "#service/": "/static/"})
"""Import map of the pages' JavaScript modules."""
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
    """A request refused before it reaches a route: status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Gate:
    """ASGI middleware around the application.

    Args:
        app: the application.
        service: limits, audit log and metrics.
    """

    def __init__(self, app: ASGIApp, service: CaseService) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, recorded = time.perf_counter(), 500, False
        changes: list[str] = []
        CHANGES.set(changes)
        body = ReceivedBody(scope, receive, self.service, lambda: self._admit(scope))

        def record() -> None:
            nonlocal recorded
            if not recorded:
                recorded = True
                self._record(scope, status, time.perf_counter() - began, body.size, changes)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if changes:
                    record()  # raises on failure: no success is reported for an unrecorded change
                _complete(MutableHeaders(scope=message), scope)
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                record()  # before the client has the whole answer
            await send(message)

        try:
            self._check_sender(scope)
            await self.app(scope, body, answer)
        except RefusedError as refused:
            await JSONResponse({"detail": str(refused)}, refused.status)(scope, receive, answer)
        finally:
            body.release()
            record()

    def _check_sender(self, scope: Scope) -> None:
        """Refuse writes from pages of other sites and, without keys, other host names than this machine's."""
        headers = Headers(scope=scope)
        try:
            host, hostname = urlsplit(f"//{headers.get('host', '')}").netloc, _hostname(headers.get("host", ""))
            origin = urlsplit(headers.get("origin", "")).netloc
        except ValueError as error:
            raise RefusedError(400, "The header Host or Origin is no address.") from error
        if self.service.keys is None:
            _check_local(headers, hostname)
        if headers.get("origin") and scope["method"] not in SAFE and origin != host:
            raise RefusedError(403, "The request comes from a page of another site.")

    def _admit(self, scope: Scope) -> bool:
        """Check the right to use a route before its body is received; True if the route needs a key."""
        deed = deed_of(scope.get("route"))
        if deed is None:
            return False
        try:
            check_caller(caller_of(Request(scope), self.service), deed)
        except RoleError as error:
            raise HTTPException(403, str(error)) from error
        except ReadbenchError as error:
            raise HTTPException(400, str(error)) from error
        return True

    def _record(self, scope: Scope, status: int, seconds: float, received: int, changes: list[str]) -> None:
        matched = scope.get("route")
        route = matched.path if matched else "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.service.metrics.requests.labels(method, route, status).inc()
        self.service.metrics.seconds.labels(route).observe(seconds)
        if not scope["path"].startswith(UNRECORDED):
            caller = scope.get("state", {}).get("caller", NOBODY)
            event = Event(
                time=round(time.time(), 3),
                key=caller.name,
                method=method,
                path=describe_path(scope["path"]),
                status=status,
                ms=round(1000 * seconds, 1),
                received=received,
                changes=tuple(changes[:MAX_LISTED]),
            )
            self._keep(event)

    def _keep(self, event: Event) -> None:
        if not event.changes:
            self.service.audit.try_to_record(event)
            return
        try:
            self.service.audit.record(event)
        except OSError as error:
            self.service.audit.try_to_record(event)
            raise RefusedError(
                503,
                f"The change was made ({', '.join(event.changes)}), but the audit log could not be written"
                f" ({error.strerror}). Tell its operator.",
            ) from error


def _complete(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    if not scope["path"].startswith("/static/"):
        headers["Cache-Control"] = "no-store"


def _hostname(netloc: str) -> str:
    return urlsplit(f"//{netloc}").hostname or ""


def _check_local(headers: Headers, hostname: str) -> None:
    """Refuse requests from other machines to a service without keys."""
    if hostname not in LOOPBACK:
        raise RefusedError(403, "Without keys, this service answers on localhost only.")
    if forwarded := next((name for name in FORWARDED if name in headers), None):
        raise RefusedError(
            403,
            f"Without keys, this service answers requests of this machine only; this one was forwarded ({forwarded})."
            " Make a key: readbench cases key LIBRARY NAME --role admin",
        )


COOKIE = "readbench_key"
BEARER = HTTPBearer(auto_error=False, description="A key of `readbench cases key`.")


def caller_of(request: Request, service: CaseService) -> KeyHolder:
    """Caller of a request, by the header `Authorization`, else by the cookie."""
    if not hasattr(request.state, "caller"):
        request.state.caller = _find_caller(request, service)
    caller: KeyHolder = request.state.caller
    return caller


def _find_caller(request: Request, service: CaseService) -> KeyHolder:
    if service.keys is None:
        return LOCAL
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        token = request.cookies.get(COOKIE, "")
    return service.keys.caller(token.strip()) if token.strip() else NOBODY


def check_caller(caller: KeyHolder, deed: Deed) -> None:
    """Raise 401 without a known key, and `RoleError` if its role does not allow the action."""
    if caller.role is Role.NONE:
        raise HTTPException(
            401,
            "This needs a key. Send it as `Authorization: Bearer KEY`; an administrator makes one with"
            " `readbench cases key`.",
            {"WWW-Authenticate": "Bearer"},
        )
    check_deed(deed, caller.role)


def deed_of(route: object) -> Deed | None:
    """Action that a route or one of its dependencies requires; None if it needs no key."""
    if isinstance(deed := getattr(route, "deed", None), Deed):
        return deed
    dependant = getattr(route, "dependant", None)
    calls = [] if dependant is None else [dependency.call for dependency in dependant.dependencies]
    return max((call.deed for call in calls if isinstance(call, Needs)), key=ROLES.__getitem__, default=None)


class Needs:
    """Dependency that requires the right to an action.

    For a route with several actions, the one with the lowest role; the library checks the others.

    Args:
        deed: the action.
    """

    def __init__(self, deed: Deed) -> None:
        self.deed = deed

    async def __call__(  # a plain function would cost each request a way through another thread
        self,
        request: Request,
        service: Served,
        _documented: Annotated[object, Depends(BEARER)],
    ) -> KeyHolder:
        """Return the caller; 401 without a known key, 403 without the right."""
        caller = caller_of(request, service)
        check_caller(caller, self.deed)
        return caller


Reader = Annotated[KeyHolder, Depends(Needs(Deed.READ))]
Adder = Annotated[KeyHolder, Depends(Needs(Deed.ADD))]
Editor = Annotated[KeyHolder, Depends(Needs(Deed.EDIT))]
Reverter = Annotated[KeyHolder, Depends(Needs(Deed.REVERT_EDIT))]
Deleter = Annotated[KeyHolder, Depends(Needs(Deed.DELETE))]
Exporter = Annotated[KeyHolder, Depends(Needs(Deed.EXPORT))]
