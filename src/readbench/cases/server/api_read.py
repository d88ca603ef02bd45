"""Routes for programs that read: a key with the role `read` is enough."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, File, Form, Query, UploadFile
from pydantic import Field

from readbench.cases.answering import Filter
from readbench.cases.answers import Answer, Case, Change, Doubt, Evidence, Suggestion, Summary
from readbench.cases.server.access import Reader
from readbench.cases.server.bodies import (
    Asked,
    Cases,
    ExplainBody,
    Problem,
    SearchBody,
    SearchManyBody,
    Stored,
)
from readbench.cases.server.service import Served, Service
from readbench.cases.server.uploads import window_of_file, windows_of_bodies
from readbench.errors import UsageError
from readbench.windows import WindowSet

PROBLEMS = {status: {"model": Problem} for status in (400, 401, 403, 404, 408, 413, 422, 503)}
router = APIRouter(prefix="/api/v1", tags=["read"], responses={**PROBLEMS})
MOST_LISTED = 1000
MOST_REVIEWED = 100


class ListQuery(Filter):
    """Which cases are listed: a filter, words of the notes, and a part of the list."""

    text: str = ""
    offset: int = Field(0, ge=0)
    limit: int = Field(100, ge=1, le=MOST_LISTED)


@router.get("/stats")
async def stats(service: Served, _caller: Reader) -> Summary:
    """Counts by fault and by asset."""
    return await service.work.do(service.library.stats)


@router.get("/history")
async def history(service: Served, _caller: Reader, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[Change]:
    """The last changes, newest first."""
    return await service.work.do(lambda: service.library.history()[: -limit - 1 : -1])


@router.get("/next")
async def next_to_label(
    service: Served, _caller: Reader, k: Annotated[int, Query(ge=1, le=MOST_REVIEWED)] = 10
) -> list[Suggestion]:
    """The open cases that should be labelled next, those that tell most about the others first."""
    return await service.work.do(lambda: service.library.next_to_label(k, service.settings.checked_method("")))


@router.get("/doubtful")
async def doubtful(
    service: Served, _caller: Reader, k: Annotated[int, Query(ge=1, le=MOST_REVIEWED)] = 20
) -> list[Doubt]:
    """The resolved cases whose label other recordings contradict, the least likely label first."""
    return await service.work.do(lambda: service.library.doubtful(k, service.settings.checked_method("")))


@router.get("/cases")
async def cases(service: Served, _caller: Reader, query: Annotated[ListQuery, Query()]) -> Cases:
    """Cases in the order in which they came; those whose notes match the text best first."""
    return await service.work.do(lambda: listed(service, query))


@router.get("/cases/{case:path}")
async def case(service: Served, _caller: Reader, case: str) -> Case:
    """What is known of a case."""
    return await service.work.do(lambda: service.library.case(case))


@router.get("/windows/{case:path}")
async def window(service: Served, _caller: Reader, case: str) -> Stored:
    """The readings of a case."""

    def read() -> Stored:
        own = service.library.window(case)
        return Stored(case=service.library.case(case), channels=own.channels(0), values=own.values(0).tolist())

    return await service.work.do(read)


@router.post("/search")
async def search(service: Served, _caller: Reader, body: SearchBody) -> Answer:
    """The cases most like a window or a stored case, and what it may be."""

    def find() -> Answer:
        method = service.settings.checked_method(body.method)
        return service.library.search(asked(body, service), k=hits(body.k, service), method=method, where=body.where)

    return await service.work.do(find)


@router.post("/search-many")
async def search_many(service: Served, _caller: Reader, body: SearchManyBody) -> list[Answer]:
    """The same for several windows at once."""

    def find() -> list[Answer]:
        windows = windows_of_bodies(body.windows, service.settings)
        method = service.settings.checked_method(body.method)
        return service.library.search_many(windows, k=hits(body.k, service), method=method, where=body.where)

    return await service.work.do(find)


@router.post("/search-file")
async def search_file(
    *,
    service: Served,
    _caller: Reader,
    file: Annotated[UploadFile, File(description="CSV, Parquet or NPZ")],
    asset: Annotated[str, Form()] = "",
    time: Annotated[str, Form(description="column of the time")] = "",
    first: Annotated[float | None, Form(description="first time of the window")] = None,
    last: Annotated[float | None, Form()] = None,
    k: Annotated[int, Form(ge=1)] = 10,
    method: Annotated[str, Form()] = "",
) -> Answer:
    """The same for the window in a file; nothing of it is kept."""
    content = await file.read()

    def find() -> Answer:
        chosen = service.settings.checked_method(method)
        own = window_of_file(
            file.filename or "", content, service.settings, time=time, interval=(first, last), asset=asset
        )
        return service.library.search(own, k=hits(k, service), method=chosen)

    return await service.work.do(find)


@router.post("/explain")
async def explain(service: Served, _caller: Reader, body: ExplainBody) -> Evidence:
    """Why a case is like a window: channels that depart from normal in the same way, and the alignment."""
    return await service.work.do(lambda: service.library.explain(asked(body, service), body.like))


def listed(service: Service, query: ListQuery) -> Cases:
    """A part of the cases that a filter and words of the notes choose."""
    library = service.library
    if query.text.strip():
        found = [case for case in library.find(query.text, MOST_LISTED) if query.admits(case)]
    else:
        found = library.cases(query)
    return Cases(total=len(found), cases=tuple(found[query.offset : query.offset + query.limit]))


def asked(body: Asked, service: Service) -> WindowSet | str:
    """What a request asks about: the window that was sent, or the name of a case."""
    if (body.window is None) == (body.case is None):
        raise UsageError("Give either a window or the name of a case.")
    if body.window is not None:
        return windows_of_bodies((body.window,), service.settings)
    return body.case or ""


def hits(k: int, service: Service) -> int:
    """How many hits are asked for, if that is not too many."""
    if k > service.settings.max_hits:
        raise UsageError(f"At most {service.settings.max_hits} hits are given; got k = {k}.")
    return k
