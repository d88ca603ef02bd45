"""The application: routes, errors, start and end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException

from readbench import __version__
from readbench.cases.library import CaseLibrary
from readbench.cases.server import api_read, api_write, pages
from readbench.cases.server.access import Reader
from readbench.cases.server.audit import Audit
from readbench.cases.server.bodies import Health
from readbench.cases.server.gate import Gate
from readbench.cases.server.keys import KeyFile
from readbench.cases.server.service import Served, Service
from readbench.cases.server.settings import Settings
from readbench.cases.server.work import BusyError, Work
from readbench.common import web
from readbench.errors import ReadbenchError, UnknownNameError

STATIC = Path(__file__).parent / "static"
log = logging.getLogger("readbench.service")


def create_app(
    library: CaseLibrary, settings: Settings | None = None, keys: KeyFile | None = None, audit: Audit | None = None
) -> FastAPI:
    """The service of one library as an ASGI application.

    Args:
        library: that is served.
        settings: limits and methods.
        keys: who may do what; None lets everybody in who can reach localhost.
        audit: who did what; None keeps no record.
    """
    settings = settings or Settings()
    work = Work(settings.workers, settings.waiting, settings.timeout_s)
    service = Service(library, settings, keys, audit or Audit(None, None), work)
    app = FastAPI(
        title="READ-Bench cases",
        version=__version__,
        summary="Find the historical case that explains a new fault in time-series data.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    app.add_middleware(Gate, service=service)
    app.include_router(api_read.router)
    app.include_router(api_write.router)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=STATIC, packages=[(web.PACKAGE, web.FOLDER)]), name="static")
    _add_watching(app)
    _add_errors(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Finish what is running before the process ends."""
    yield
    app.state.service.work.close()


def _add_watching(app: FastAPI) -> None:
    """What watches a service: is it there, can it answer, what does it count."""

    @app.get("/healthz", tags=["open"], responses={**api_read.PROBLEMS})
    async def healthz() -> Health:
        """The process is there."""
        return Health(status="ok")

    @app.get("/readyz", tags=["open"], responses={**api_read.PROBLEMS})
    async def readyz(service: Served) -> Health:
        """The library can be read."""
        return Health(status="ready", cases=await service.work.do(lambda: len(service.library)))

    @app.get("/metrics", tags=["read"], response_class=PlainTextResponse, responses={**api_read.PROBLEMS})
    async def metrics(service: Served, _caller: Reader) -> Response:
        """Counters for Prometheus."""
        service.metrics.running.set(service.work.running)
        service.metrics.cases.set(await service.work.do(lambda: len(service.library)))
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_errors(app: FastAPI) -> None:
    """Every error raised on purpose is one sentence, for a program or on a page."""

    @app.exception_handler(ReadbenchError)
    async def refused(request: Request, error: ReadbenchError) -> Response:
        return _problem(request, 404 if isinstance(error, UnknownNameError) else 400, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _problem(request, 422, f"{where}: {first['msg']}.")

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> Response:
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
    async def unforeseen(request: Request, error: Exception) -> Response:
        log.error("unforeseen error at %s", request.url.path, exc_info=error)
        return _problem(request, 500, "Something went wrong here; the log of the service says what.")


def _problem(request: Request, status: int, sentence: str) -> Response:
    sentence = sentence.encode("utf-8", "replace").decode()
    if _wants_page(request):
        return pages.problem(request, status, sentence)
    return JSONResponse({"detail": sentence}, status)


def _wants_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/v1/") and "text/html" in request.headers.get("accept", "")
