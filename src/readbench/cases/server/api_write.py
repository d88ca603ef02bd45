"""Routes for programs that write: `write` adds, labels and edits; `admin` deletes, takes back and copies."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, File, Form, HTTPException, UploadFile
from fastapi.responses import FileResponse

from readbench.cases.answers import Case, Change
from readbench.cases.archive import export_library
from readbench.cases.server.access import Admin, Writer
from readbench.cases.server.api_read import PROBLEMS
from readbench.cases.server.bodies import Edits, LabelBody, NewCase, PairBody, Problem
from readbench.cases.server.service import Served, Service
from readbench.cases.server.uploads import time_of, window_of_file, windows_of_bodies
from readbench.errors import UnknownNameError
from readbench.windows import WindowSet

router = APIRouter(prefix="/api/v1", tags=["write"], responses={**PROBLEMS, 409: {"model": Problem}})


@router.post("/cases", status_code=201)
async def add(service: Served, _caller: Writer, body: NewCase) -> Case:
    """Add a case."""

    def store() -> Case:
        windows = windows_of_bodies((body.window,), service.settings)
        facts = body.model_dump(exclude={"window"}) | {"asset": body.window.asset}
        return added(service, windows, Case(**facts))

    return await service.work.do(store)


@router.post("/files", status_code=201)
async def add_file(
    *,
    service: Served,
    _caller: Writer,
    file: Annotated[UploadFile, File(description="CSV, Parquet or NPZ")],
    asset: Annotated[str, Form()] = "",
    label: Annotated[str, Form()] = "",
    notes: Annotated[str, Form()] = "",
    time: Annotated[str, Form(description="column of the time")] = "",
    first: Annotated[float | None, Form(description="first time of the window")] = None,
    last: Annotated[float | None, Form()] = None,
) -> Case:
    """Add the case in a file."""
    content = await file.read()

    def store() -> Case:
        windows = window_of_file(
            file.filename or "", content, service.settings, time=time, interval=(first, last), asset=asset
        )
        return added(
            service, windows, Case(id="", asset=asset, label=label or None, notes=notes, time=time_of(windows))
        )

    return await service.work.do(store)


@router.patch("/cases/{case:path}")
async def edit(service: Served, _caller: Writer, case: str, body: Edits) -> Case:
    """Replace some of what is known of a case."""
    return await service.work.do(lambda: service.library.edit(case, **body.model_dump(exclude_unset=True)))


@router.post("/label")
async def label(service: Served, _caller: Writer, body: LabelBody) -> Case:
    """Say what a case was; the next search knows it."""
    return await service.work.do(lambda: service.library.label(body.case, body.label))


@router.post("/confirm")
async def confirm(service: Served, _caller: Writer, body: PairBody) -> Case:
    """Say that a case has the fault of another one."""
    return await service.work.do(lambda: service.library.confirm(body.case, body.like))


@router.post("/reject")
async def reject(service: Served, _caller: Writer, body: PairBody) -> Case:
    """Say that a case does not have the fault of another one."""
    return await service.work.do(lambda: service.library.reject(body.case, body.like))


@router.delete("/cases/{case:path}", status_code=204, tags=["admin"])
async def delete(service: Served, _caller: Admin, case: str) -> None:
    """Take a case out; undo brings it back."""
    await service.work.do(lambda: service.library.delete([case]))


@router.post("/undo", tags=["admin"])
async def undo(service: Served, _caller: Admin) -> Change:
    """Take the last change back that still stands."""
    return await service.work.do(service.library.undo)


@router.get("/export", response_class=FileResponse, tags=["admin"])
async def export(service: Served, _caller: Admin, after: BackgroundTasks) -> FileResponse:
    """The whole library as one Parquet file."""
    folder = Path(mkdtemp(prefix="readbench-"))
    path = folder / "cases.parquet"
    after.add_task(_remove, path)
    try:
        await service.work.do(lambda: export_library(service.library, path))
    except BaseException:
        _remove(path)
        raise
    return FileResponse(path, filename=path.name, media_type="application/vnd.apache.parquet", background=after)


def added(service: Service, windows: WindowSet, case: Case) -> Case:
    """Add one case, and say 409 where there is one of its name."""
    library = service.library
    if case.id:
        try:
            library.case(case.id)
        except UnknownNameError:
            pass
        else:
            raise HTTPException(409, f"There is a case {case.id!r} already. Give another name.")
    return library.case(library.add(windows, [case])[0])


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.rmdir()
