"""The ASGI application, and the server that runs it."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.routing import Route

from readbench.cases import Library, SearchPool
from readbench.cases.server import _api as api, _grafana as grafana, _pages as pages, _ranges as ranges
from readbench.cases.server._audit import AuditLog, LimitedLog, describe_path
from readbench.cases.server._bodies import Health, Readiness
from readbench.cases.server._gate import Gate, Reader
from readbench.cases.server._keys import KeyFile
from readbench.cases.server._questions import build_routes
from readbench.cases.server._reception import MAX_CONNECTIONS, limit_connections
from readbench.cases.server._service import BusyError, CaseService, Served, Settings, WorkerPool
from readbench.cases.server._telemetry import LibraryMetrics
from readbench.cases.server._views import find_author
from readbench.cases.watch import NoticeLog, note_trouble
from readbench.common import web
from readbench.common.supervised import LoopState
from readbench.errors import (
    ConflictError,
    OverdueError,
    ReadbenchError,
    RoleError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from readbench.version import __version__

STATIC = Path(__file__).parent / "static"
ROUTERS = (
    api.read_router,
    api.write_router,
    grafana.router,
    grafana.links_router,
    pages.router,
    ranges.router,
)
"""Routers except those of monitoring and of questions, which plug-ins may add."""
STATUSES: dict[type[ReadbenchError], int] = {StoreError: 503, UnknownNameError: 404, RoleError: 403}
"""HTTP status of expected errors; 400 for others."""
log = logging.getLogger("readbench.service")


def create_app(
    library: Library, settings: Settings | None = None, keys: KeyFile | None = None, audit: AuditLog | None = None
) -> FastAPI:
    """Create the ASGI application of a library.

    Args:
        library: the library.
        settings: limits and methods.
        keys: keys and roles; None gives all rights to every user of this machine.
        audit: audit log; None for none.
    """
    settings = settings or Settings()
    work = WorkerPool(settings.workers, settings.waiting, settings.timeout_s)
    hear = partial(_note_trouble, ranges.find_notices(library, settings))
    library.hear_loops(hear)
    pool = SearchPool(library, settings.processes, hear) if settings.processes else None
    service = CaseService(library, settings, keys, audit or AuditLog(None, None), work, pool=pool)
    app = FastAPI(
        title="READ-Bench cases",
        version=__version__,
        summary="Find the historical case that explains a new fault in time-series data.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    app.state.telemetry = LibraryMetrics(service.metrics.registry)
    library.heard = app.state.telemetry.hear
    app.add_middleware(Gate, service=service)
    for router in (build_routes(), *ROUTERS):
        app.router.routes.extend(router.routes)  # `include_router` would build each of them again
    app.mount("/static", StaticFiles(directory=STATIC, packages=[(web.PACKAGE, web.FOLDER)]), name="static")
    if find_spec("mcp") is not None:
        from readbench.cases.server._agents import AgentDoor  # noqa: PLC0415 - optional package

        app.state.agents = AgentDoor(service)
        app.router.routes.append(Route(AgentDoor.path, app.state.agents, methods=["POST"]))
    _add_watching(app)
    _add_errors(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Accept agents; at shutdown, wait for running calls."""
    async with app.state.agents.open() if hasattr(app.state, "agents") else nullcontext():
        yield
    app.state.service.audit.close()
    if app.state.service.pool:
        app.state.service.pool.close()
    await app.state.service.work.close(CLOSE_S)


def _note_trouble(notices: NoticeLog | None, loop: LoopState) -> None:
    """Append a notice that a background loop failed or recovered."""
    if notices is not None:
        notices.write(note_trouble("the service", loop.name, loop.error, loop.since))


def _add_watching(app: FastAPI) -> None:
    """Add the routes of monitoring: liveness, readiness, metrics."""

    @app.get("/healthz", tags=["open"], responses={**api.PROBLEMS})
    async def healthz() -> Health:
        """The process is alive."""
        return Health(status="ok")

    @app.get("/readyz", tags=["open"], responses={**api.PROBLEMS})
    async def readyz(service: Served, response: Response) -> Readiness:
        """The library is loaded and no background loop fails.

        503 names the failing loops; the service still answers, but may not learn from recent changes.
        """
        failing = tuple(loop.name for loop in service.loops if loop.error)
        response.status_code = 503 if failing else 200
        status = "failing" if failing else "ready"
        return Readiness(status=status, cases=service.library.count_known(), failing=failing)

    @app.get("/metrics", tags=["read"], response_class=PlainTextResponse, responses={**api.PROBLEMS})
    async def metrics(service: Served, _caller: Reader) -> Response:
        """Counters for Prometheus."""
        service.metrics.running.set(service.work.running)
        service.metrics.cases.set(service.library.count_known())
        service.metrics.count_loops(service.loops)
        app.state.telemetry.count(service.library.stats_known())
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_errors(app: FastAPI) -> None:
    """Answer expected errors with one sentence, as JSON or as a page."""

    @app.exception_handler(ReadbenchError)
    async def refuse(request: Request, error: ReadbenchError) -> Response:
        status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 400)
        return _problem(request, status, str(error))

    @app.exception_handler(ConflictError)
    async def refuse_unseen(request: Request, error: ConflictError) -> Response:
        service: CaseService = request.app.state.service
        author = await service.work.do(lambda: find_author(service.library, error.name))
        status = 428 if not error.seen else 412 if "if-match" in request.headers else 409
        return _problem(request, status, f"{error}{f' Last changed by {author}.' if author else ''}")

    @app.exception_handler(RequestValidationError)
    async def refuse_malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _problem(request, 422, f"{where}: {first['msg']}.")

    @app.exception_handler(BusyError)
    @app.exception_handler(OverdueError)
    async def busy(request: Request, error: BusyError | OverdueError) -> Response:
        response = _problem(request, 503, str(error))
        response.headers["Retry-After"] = "2"
        return response

    @app.exception_handler(AnyHTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if error.status_code == 401 and _wants_page(request):
            return RedirectResponse(f"/login?next={quote(request.url.path, safe='')}", 303)
        response = _problem(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def excuse(request: Request, error: Exception) -> Response:
        log.error("unforeseen error at %s", describe_path(request.url.path), exc_info=error)
        return _problem(request, 500, "Something went wrong here; the log of the service says what.")


def _problem(request: Request, status: int, sentence: str) -> Response:
    sentence = sentence.encode("utf-8", "replace").decode()
    if _wants_page(request):
        return pages.problem(request, status, sentence)
    return JSONResponse({"detail": sentence}, status)


def _wants_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/v1/") and "text/html" in request.headers.get("accept", "")


GRACE_S = 20
"""Longest wait at shutdown for requests in flight, in seconds."""
CLOSE_S = 3.0
"""Part of it for computations without a waiting request, in seconds; then the process is ended."""
KEEP_ALIVE_S = 30


@dataclass(frozen=True)
class Place:
    """Where a service listens.

    Args:
        host: address; any other than loopback requires keys.
        port: port; 0 picks a free one.
        certificate: PEM file of the certificate, for TLS without a proxy.
        private_key: PEM file of the certificate's private key.
        proxies: addresses whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted, separated by commas.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    private_key: Path | None = None
    proxies: str = "127.0.0.1"


class _AnnouncedServer(uvicorn.Server):
    """Server that announces its address once it listens."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            port = self.servers[0].sockets[0].getsockname()[1]
            self._announce(f"{'https' if self.config.is_ssl else 'http'}://{host}:{port}")


def serve(
    library: Library,
    place: Place,
    settings: Settings,
    keys: KeyFile | None,
    audit: AuditLog,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished first.

    Args:
        library: the library.
        place: address, port and TLS.
        settings: limits and methods.
        keys: keys and roles, at least one key; None serves this machine only, with all rights.
        audit: audit log.
        announce: called with the address once the service listens.
    """
    check_place(place, keys)
    audit.begin()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(LimitedLog())
    app = create_app(library, settings, keys, audit)
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.private_key,
        proxy_headers=True,
        forwarded_allow_ips=place.proxies,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=round(GRACE_S - CLOSE_S - 1),
        http=limit_connections(settings.max_connections, place.proxies),
        ws="none",
        backlog=MAX_CONNECTIONS,
    )
    try:
        _AnnouncedServer(config, announce).run()
    finally:
        if app.state.service.work.running:
            os._exit(1)  # exit() would wait for threads; their writes are atomic


def check_place(place: Place, keys: KeyFile | None) -> None:
    """Raise if the service would listen on other machines without keys, or if the key file is empty.

    >>> check_place(Place("127.0.0.1"), None)
    """
    if keys is not None:
        keys.require()
    elif not is_loopback(place.host):
        raise UsageError(
            f"Without keys the service listens on this machine only, not on {place.host}. Make a key first:"
            " readbench cases key LIBRARY NAME --role write"
        )
    if (place.certificate is None) != (place.private_key is None):
        raise UsageError("TLS needs both the certificate and its private key.")


def is_loopback(host: str) -> bool:
    """True if an address is reachable from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
