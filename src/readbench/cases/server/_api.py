"""Routes of the JSON API, except those of questions (`_questions`); `readbench.cases.roles` has the rights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Depends, Form, Header, HTTPException, Query, Response
from fastapi.responses import FileResponse
from pydantic import Field

from readbench.cases import UNSEEN, AddedCase, Answer, Case, Change, export_library
from readbench.cases.server._bodies import (
    Asked,
    CaseFilter,
    CasePage,
    Edits,
    FormContext,
    FormFile,
    LabelBody,
    NewCase,
    PairBody,
    Problem,
    SearchBody,
    SearchManyBody,
    SeenBody,
    Stored,
    check_effort,
    check_size,
    windows_of_bodies,
)
from readbench.cases.server._fields import MAX_PAGE_TEXT, Name, Notes, Query as WantedText
from readbench.cases.server._gate import Adder, Deleter, Editor, Exporter, Reader, Reverter
from readbench.cases.server._reception import JsonRoute, check_answer
from readbench.cases.server._service import CaseService, Served
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError

PROBLEMS = {status: {"model": Problem} for status in (400, 401, 403, 404, 408, 413, 422, 503)}
CONFLICTS = {status: {"model": Problem} for status in (409, 412, 428)}
read_router = APIRouter(prefix="/api/v1", tags=["read"], route_class=JsonRoute, responses={**PROBLEMS})
MAX_LISTED = 1000
JSON = "application/json"


class ListQuery(CaseFilter):
    """Filter, search text and page of a list of cases."""

    text: WantedText = ""
    offset: int = Field(0, ge=0)
    limit: int = Field(100, ge=1, le=MAX_LISTED)


@read_router.get("/cases")
async def cases(service: Served, _caller: Reader, query: Annotated[ListQuery, Query()]) -> CasePage:
    """List cases in order of addition, or by match of a text in their notes, best first.

    A page with very long texts holds fewer than `limit` cases; continue at `offset` plus their number.
    """
    return await service.work.do(lambda: list_cases(service, query))


@read_router.get("/cases/{case:path}")
async def case(service: Served, _caller: Reader, case: Name, response: Response) -> Case:
    """Read the facts of a case; `ETag` is its version."""
    found = await service.work.do(lambda: service.library.case(case))
    return tag(response, found)


@read_router.get("/windows/{case:path}")
async def window(service: Served, _caller: Reader, case: Name) -> Stored:
    """Read the window of a case and its context."""

    def read() -> Stored:
        found = check_size(service.library.window(case), service.settings)[0]
        return Stored(
            case=service.library.case(case),
            channels=found.channels,
            values=found.values.tolist(),
            before=None if found.before is None else found.before.tolist(),
            rate=None if math.isnan(found.rate) else found.rate,
            units=found.units,
            facts=dict(found.facts),
        )

    return await service.work.do(read)


@read_router.post("/search", response_model=Answer)
async def search(service: Served, _caller: Reader, body: SearchBody) -> Response:
    """Find the cases most similar to a window or a stored case, with the probability of each fault type."""

    def find() -> bytes:
        method = service.settings.choose_method(body.method)
        return service.search(requested_window(body, service), k=hits(body.k, service), method=method, where=body.where)

    return Response(await service.work.do(find), media_type=JSON)


@read_router.post("/search-many", response_model=list[Answer])
async def search_many(service: Served, _caller: Reader, body: SearchManyBody) -> Response:
    """Search for several windows."""

    def find() -> bytes:
        windows = check_effort(windows_of_bodies(body.windows, service.settings), service)
        method = service.settings.choose_method(body.method)
        found = service.library.search_many(windows, k=hits(body.k, service), method=method, where=body.where)
        return b"[" + b",".join(_write_within(found)) + b"]"

    return Response(await service.work.do(find), media_type=JSON)


def _write_within(answers: list[Answer]) -> Iterator[bytes]:
    """Encode answers as JSON; raise as soon as they are too large."""
    size = 0
    for answer in answers:
        content = answer.model_dump_json().encode()
        size += len(content)
        check_answer(size)
        yield content


@read_router.post("/search-file", response_model=Answer)
async def search_file(
    *,
    service: Served,
    _caller: Reader,
    sent: FormFile,
    context: FormContext,
    k: Annotated[int, Form(ge=1)] = 10,
    method: Annotated[WantedText, Form()] = "",
) -> Response:
    """Search for the window in a file, which is not stored."""

    def find() -> bytes:
        chosen = service.settings.choose_method(method)
        read = sent.read(service.settings, onset_column=context.onset_column, told=context.told)
        check_effort(read.windows, service)
        return service.search(read, k=hits(k, service), method=chosen)

    return Response(await service.work.do(find), media_type=JSON)


def list_cases(service: CaseService, query: ListQuery) -> CasePage:
    """Page of the cases that pass a filter and match a text."""
    library = service.library
    if query.text.strip():
        found = [case for case in library.find(query.text, MAX_LISTED) if query.admits(case)]
    else:
        found = library.cases(query)
    return CasePage(total=len(found), cases=tuple(_cut_page(found[query.offset : query.offset + query.limit])))


def _cut_page(cases: list[Case]) -> list[Case]:
    """First cases with at most `MAX_PAGE_TEXT` characters in total, and at least one."""
    sizes = accumulate(
        len(entry.notes) + sum(map(len, (*entry.tags, *entry.links, *entry.rejected))) for entry in cases
    )
    return cases[: max(1, sum(size <= MAX_PAGE_TEXT for size in sizes))]


def requested_window(body: Asked, service: CaseService) -> WindowSet | str:
    """Query of a request: the sent window, or the name of a case."""
    if (body.window is None) == (body.case is None):
        raise UsageError("Give either a window or the name of a case, not both.")
    if body.window is not None:
        return check_effort(windows_of_bodies((body.window,), service.settings), service)
    return body.case or ""


def hits(k: int, service: CaseService) -> int:
    """Return `k`; raise if it is above the limit of the service."""
    if k > service.settings.max_hits:
        raise UsageError(f"k is at most {service.settings.max_hits}. Got {k}.")
    return k


def tag(response: Response, case: Case) -> Case:
    """Set the header `ETag` to `changed` of a case."""
    response.headers["ETag"] = f'"{case.changed!r}"'
    return case


async def read_match(
    if_match: Annotated[
        Name, Header(description="`ETag` of the case when it was read; `*` replaces any version.")
    ] = "",
) -> float | None:
    """Version in the header `If-Match`: `UNSEEN` without it, None for `*`."""
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text:
        return UNSEEN
    try:
        return None if text == "*" else float(text)
    except ValueError:
        return math.nan  # no version of any case


Seen = Annotated[float | None, Depends(read_match)]


def choose_seen(body: SeenBody, seen: float | None) -> float | None:
    """Version from the body, else from the header."""
    return seen if body.seen is None else body.seen


write_router = APIRouter(prefix="/api/v1", tags=["write"], route_class=JsonRoute, responses={**PROBLEMS, **CONFLICTS})


@write_router.post("/cases", status_code=201)
async def add(service: Served, caller: Adder, body: NewCase) -> AddedCase:
    """Add a case; the answer lists the oddities of its window."""

    def store() -> AddedCase:
        windows = windows_of_bodies((body.window,), service.settings)
        facts = body.model_dump(exclude={"window"}) | {"asset": body.window.asset}
        return add_case(service, windows, Case(**facts))

    return await service.act(caller, store)


@write_router.post("/files", status_code=201)
async def add_file(
    *,
    service: Served,
    caller: Adder,
    sent: FormFile,
    context: FormContext,
    label: Annotated[Name, Form()] = "",
    notes: Annotated[Notes, Form()] = "",
) -> AddedCase:
    """Add the case in a file; the answer has remarks on the file and the oddities of its window."""

    def store() -> AddedCase:
        read = sent.read(service.settings, onset_column=context.onset_column, told=context.told)
        case = Case(id="", asset=sent.asset, label=label or None, notes=notes, **read.dates())
        return add_case(service, read.windows, case, read.remarks)

    return await service.act(caller, store)


@write_router.patch("/cases/{case:path}")
async def edit(service: Served, caller: Editor, case: Name, body: Edits, seen: Seen, response: Response) -> Case:
    """Replace facts of a case."""
    given, saw = body.model_dump(exclude_unset=True, exclude={"seen"}), choose_seen(body, seen)
    return tag(response, await service.act(caller, lambda: service.library.edit(case, seen=saw, **given)))


@write_router.post("/label")
async def label(service: Served, caller: Editor, body: LabelBody, seen: Seen, response: Response) -> Case:
    """Set the fault type of a case."""
    saw = choose_seen(body, seen)
    return tag(response, await service.act(caller, lambda: service.library.label(body.case, body.label, seen=saw)))


@write_router.post("/confirm")
async def confirm(service: Served, caller: Editor, body: PairBody, seen: Seen, response: Response) -> Case:
    """Give a case the fault type of another case."""
    saw = choose_seen(body, seen)
    return tag(response, await service.act(caller, lambda: service.library.confirm(body.case, body.like, seen=saw)))


@write_router.post("/reject")
async def reject(service: Served, caller: Editor, body: PairBody, seen: Seen, response: Response) -> Case:
    """Exclude the fault type of another case for a case."""
    saw = choose_seen(body, seen)
    return tag(response, await service.act(caller, lambda: service.library.reject(body.case, body.like, seen=saw)))


@write_router.delete("/cases/{case:path}", status_code=204, tags=["admin"])
async def delete(service: Served, caller: Deleter, case: Name, seen: Seen) -> None:
    """Delete a case; `undo` restores it."""
    await service.act(caller, lambda: service.library.delete([case], seen=seen))


@write_router.post("/undo")
async def undo(
    service: Served,
    caller: Reverter,
    change: Annotated[int | None, Query(description="number of the change; default the last")] = None,
) -> Change:
    """Revert a change; later changes to the same cases are kept.

    Reverting an edit needs the right to edit; other changes need the role `admin`.
    """
    return await service.act(caller, lambda: service.library.undo(change))


@write_router.post("/redo")
async def redo(
    service: Served,
    caller: Reverter,
    change: Annotated[int | None, Query(description="number of the change; default the last")] = None,
) -> Change:
    """Reapply a reverted change."""
    return await service.act(caller, lambda: service.library.redo(change))


@write_router.get("/export", response_class=FileResponse, tags=["admin"])
async def export(service: Served, caller: Exporter, after: BackgroundTasks) -> FileResponse:
    """Download the library as one Parquet file."""
    folder = Path(mkdtemp(prefix="readbench-"))
    path = folder / "cases.parquet"
    after.add_task(_remove, path)
    try:
        await service.act(caller, lambda: export_library(service.library, path))
    except BaseException:
        _remove(path)
        raise
    return FileResponse(path, filename=path.name, media_type="application/vnd.apache.parquet", background=after)


def add_case(service: CaseService, windows: WindowSet, case: Case, remarks: tuple[str, ...] = ()) -> AddedCase:
    """Add one case, with remarks on its file; 409 if another case has its name."""
    check_effort(windows, service)
    try:
        return service.library.add_checked(windows, case, remarks)
    except UsageError as error:
        if case.id in service.library.snapshot().state.cases:
            raise HTTPException(409, f"A case {case.id!r} exists already. Give another name.") from error
        raise


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.rmdir()
