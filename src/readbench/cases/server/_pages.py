"""Routes of the web pages, which are rendered on the server; scripts draw plots and handle keys and dropped files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, RedirectResponse

from readbench.cases import (
    QUESTIONS,
    UNLIKE,
    Answer,
    Case,
    Fault,
    Filter,
    GivenBy,
    ReadRecording,
    ToldContext,
    parse_facts,
)
from readbench.cases.roles import Role
from readbench.cases.server import _views as words
from readbench.cases.server._api import ListQuery, list_cases
from readbench.cases.server._bodies import CaseFilter, FormFile, begin_at, check_effort
from readbench.cases.server._fields import Name, Notes, Query as WantedText, TagText
from readbench.cases.server._gate import COOKIE, Adder, Deleter, Editor, Reader, Reverter, caller_of
from readbench.cases.server._keys import NOBODY, KeyHolder
from readbench.cases.server._questions import ask_in_words
from readbench.cases.server._service import CaseService, HeldFile, Served
from readbench.cases.server._showing import fill_recording, keep_held, look_at, show_page, to_case
from readbench.cases.server._views import (
    DrawnPart,
    DrawnRecording,
    DrawnWindow,
    Gaps,
    draw_part,
    draw_recording,
    draw_signals,
    list_events,
)
from readbench.engine.windows import Window
from readbench.errors import ConflictError, ReadbenchError

HITS = 10
OPTIONS = 5
SHOWN_OF_KIND = 3
"""Hits shown per fault type; the others unfold."""
LATEST = 8
MAX_DOUBTS = 12
PER_PAGE = 50
WEEK_S = 7 * 24 * 3600
router = APIRouter(include_in_schema=False)


class Page(CaseFilter):
    """Query of a case page; an empty text is no filter."""

    method: WantedText = ""
    done: int = 0
    """Number of the change that led here; the page offers to revert it."""
    file: Name = ""
    """Secret name of the file that was just stored; the page shows the remarks on it."""

    @property
    def chosen(self) -> Filter:
        """The filter without empty texts."""
        return Filter(asset=self.asset or None, label=self.label or None, tag=self.tag or None)


@router.get("/")
async def home(request: Request, service: Served, caller: Reader) -> Response:
    """First page: drop a file, or open a recent case."""
    cases, summary = await service.work.do(lambda: (service.library.cases(), service.library.stats()))
    unresolved = [case for case in reversed(cases) if case.label is None]
    shown: dict[str, Any] = {"open": unresolved[:LATEST], "unresolved": len(unresolved), "summary": summary}
    latest = sorted((case for case in cases if case.label), key=lambda case: -case.changed)[:LATEST]
    return show_page(request, "home.html", caller, **shown, latest=latest, sample=service.settings.sample is not None)


@router.get("/cases")
async def cases(request: Request, service: Served, caller: Reader, query: Annotated[ListQuery, Query()]) -> Response:
    """List of cases, by filter and words of the notes."""
    given = {"asset": query.asset or None, "label": query.label or None, "tag": query.tag or None}
    chosen = query.model_copy(update=given | {"limit": PER_PAGE})
    found, summary = await service.work.do(lambda: (list_cases(service, chosen), service.library.stats()))
    return show_page(request, "cases.html", caller, found=found, query=chosen, summary=summary, per_page=PER_PAGE)


@router.get("/cases/{case:path}")
async def case(
    request: Request, service: Served, caller: Reader, case: Name, page: Annotated[Page, Query()]
) -> Response:
    """One case: signals, similar cases, notes and history."""

    def look() -> dict[str, Any]:
        library, method = service.library, service.settings.choose_method(page.method)
        record = library.case(case)
        alone = len(library) < 2
        answer = None if alone else library.search(case, k=HITS, method=method, where=page.chosen)
        window, held = _find_window(service, case, "")[0], service.looked_at.get(page.file)
        signals = draw_signals(library.snapshot(), window, end=record.end, zone=record.zone)
        events = list_events(library, case)
        done = next((event for event in events if event.change == page.done and event.what == "edit"), None)
        known = {"case": record, "events": events, "done": done, "token": "", "read": held.read.remarks if held else ()}
        return _shown(service, signals, answer, page) | known

    return show_page(request, "case.html", caller, **await service.work.do(look))


@router.post("/look")
async def look_at_file(
    *,
    service: Served,
    caller: Reader,
    sent: FormFile,
    onset: Annotated[Name, Form()] = "",
    facts: Annotated[TagText, Form()] = "",
    keep: Annotated[Name, Form()] = "",
) -> Response:
    """Search for a file, stored as an open case or only held; `onset` is one of its steps."""
    told = ToldContext(facts=parse_facts([text for text in facts.split(",") if text.strip()]) or None)

    def read() -> ReadRecording:
        read = sent.read(service.settings, told=told)
        begun = onset.strip("0") and onset.isdecimal()
        read = replace(read, windows=begin_at(read.windows, int(onset))) if begun else read
        return replace(read, windows=check_effort(read.windows, service))

    held = await service.work.do(lambda: HeldFile(sent.name, sent.asset, read()))
    return await look_at(service, caller, held, keep=bool(keep))


@router.get("/looked/{token}")
async def looked(request: Request, service: Served, caller: Reader, token: Name) -> Response:
    """Page of a held file, as long as it is held."""
    held = _held(service, token)

    def look() -> dict[str, Any]:
        library, read = service.library, held.read
        answer = library.search(read, k=HITS, method=service.settings.choose_method(""))
        window, gaps = _find_window(service, "", token)
        signals = draw_signals(library.snapshot(), window, kept=False, gaps=gaps, end=read.ends[0], zone=read.zone)
        shown = {"case": None, "asset": held.asset, "name": held.name, "token": token, "done": None, "read": ()}
        return _shown(service, signals, answer, Page()) | shown | {"minutes": round(service.looked_at.seconds / 60)}

    return show_page(request, "case.html", caller, **await service.work.do(look))


@router.post("/keep")
async def keep(service: Served, caller: Adder, token: Annotated[Name, Form()]) -> Response:
    """Store a held file as an open case."""
    return await keep_held(service, caller, _held(service, token), token)


@router.get("/signals")
async def signals(
    *,
    service: Served,
    _caller: Reader,
    first: Annotated[int, Query()],
    last: Annotated[int, Query()],
    case: Annotated[Name, Query()] = "",
    file: Annotated[Name, Query()] = "",
) -> DrawnPart:
    """Zoomed part of the signals of a case or held file."""

    def draw() -> DrawnPart:
        window, gaps = _find_window(service, case, file)
        return draw_part(window, first, last, gaps)

    return await service.work.do(draw)


@router.post("/preview")
async def preview(
    *,
    service: Served,
    _caller: Reader,
    sent: FormFile,
) -> DrawnRecording:
    """Preview of a file, in which its sender marks the onset; nothing is stored."""

    def draw() -> DrawnRecording:
        read = sent.read(service.settings)
        window, gaps = fill_recording(service, read)
        return draw_recording(service.library.snapshot(), window, gaps, read.zone)

    return await service.work.do(draw)


@router.post("/feedback")
async def feedback(
    *,
    request: Request,
    service: Served,
    caller: Editor,
    case: Annotated[Name, Form()],
    like: Annotated[Name, Form()],
    same: Annotated[bool, Form()],
    seen: Annotated[Name, Form()] = "",
) -> Response:
    """Confirm or reject the fault type of another case."""
    library, saw = service.library, words.read_seen(seen)

    def say() -> Case:
        return (library.confirm if same else library.reject)(case, like=like, seen=saw)

    fields = {"case": case, "like": like, "same": str(same).lower()}
    yours = {"label" if same else "rejected": f"{'as' if same else 'not as'} {like}"}
    return await _write(request, service, caller, WrittenForm("/feedback", fields, yours), say)


@router.post("/revert")
async def revert(
    service: Served,
    caller: Reverter,
    case: Annotated[Name, Form()],
    change: Annotated[int, Form()],
    *,
    again: Annotated[bool, Form()] = False,
) -> Response:
    """Revert a change of a case or, with `again`, reapply it; changes other than edits need an admin."""
    do = service.library.redo if again else service.library.undo
    await service.act(caller, lambda: do(change))
    return to_case(case)


@router.post("/facts")
async def facts(
    *,
    request: Request,
    service: Served,
    caller: Editor,
    case: Annotated[Name, Form()],
    label: Annotated[Name, Form()] = "",
    asset: Annotated[Name, Form()] = "",
    notes: Annotated[Notes, Form()] = "",
    tags: Annotated[TagText, Form()] = "",
    seen: Annotated[Name, Form()] = "",
) -> Response:
    """Replace facts of a case."""
    given = tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    text = notes.replace("\r\n", "\n")
    said = {"label": label.strip() or None, "asset": asset.strip(), "notes": text, "tags": given}
    yours = {"label": label.strip(), "asset": asset.strip(), "notes": text, "tags": ", ".join(given)}
    form = WrittenForm("/facts", {"case": case, **yours}, yours)
    saw = words.read_seen(seen)
    return await _write(request, service, caller, form, lambda: service.library.edit(case, seen=saw, **said))


@router.post("/label")
async def label_case(
    *,
    request: Request,
    service: Served,
    caller: Editor,
    case: Annotated[Name, Form()],
    label: Annotated[Name, Form()],
    seen: Annotated[Name, Form()] = "",
) -> Response:
    """Label a case on the overview, and reload its list."""
    form = WrittenForm("/label", {"case": case, "label": label}, {"label": label}, "/overview#next")
    saw, said = words.read_seen(seen), label.strip() or None
    return await _write(request, service, caller, form, lambda: service.library.label(case, said, seen=saw))


@router.post("/delete")
async def delete(
    request: Request,
    service: Served,
    caller: Deleter,
    case: Annotated[Name, Form()],
    seen: Annotated[Name, Form()] = "",
) -> Response:
    """Delete a case."""
    form = WrittenForm("/delete", {"case": case}, {"label": "take it out"}, "/overview#changes")
    saw = words.read_seen(seen)
    return await _write(request, service, caller, form, lambda: service.library.delete([case], seen=saw))


@router.post("/undo")
async def undo(
    service: Served, caller: Reverter, change: Annotated[int, Form()] = 0, *, again: Annotated[bool, Form()] = False
) -> Response:
    """Revert the last or a given change or, with `again`, reapply it."""
    do = service.library.redo if again else service.library.undo
    await service.act(caller, lambda: do(change or None))
    return RedirectResponse("/overview#changes", 303)


@router.get("/overview")
async def overview(request: Request, service: Served, caller: Reader) -> Response:
    """Overview: map, doubtful labels, near-duplicates, changes."""

    def look() -> dict[str, Any]:
        library, method, summary = service.library, service.settings.choose_method(""), service.library.stats()
        return {
            "overview": library.overview(),
            "suggestions": library.ask("next", k=LATEST, method=method),
            "doubts": library.ask("doubtful", k=MAX_DOUBTS, method=method),
            "summary": summary,
            "labels": sorted(label for label in summary.labels if label),
            "changes": library.ask("history", limit=LATEST),
            "questions": QUESTIONS.values(),
        }

    return show_page(request, "overview.html", caller, **await service.work.do(look))


@router.get("/ask/{name}")
async def ask(request: Request, service: Served, caller: Reader, name: Name) -> Response:
    """Page of a declared question, with its parameters in the query."""
    given = dict(request.query_params)
    question, answer = await service.work.do(lambda: ask_in_words(service, name, given))
    fields = [parameter for parameter in question.parameters.values() if parameter.given_by is not GivenBy.METHOD]
    shown = [] if answer is None else question.show(answer)
    return show_page(request, "question.html", caller, question=question, fields=fields, given=given, shown=shown)


@router.get("/api")
async def reference(request: Request, caller: Reader) -> Response:
    """API reference, from the OpenAPI description."""
    paths = request.app.openapi()["paths"]
    routes = [
        (method.upper(), path, about.get("description") or about.get("summary", ""), about["tags"][-1])
        for path, methods in paths.items()
        for method, about in methods.items()
    ]
    return show_page(request, "api.html", caller, routes=routes)


@router.get("/sample.csv")
async def sample(service: Served, _caller: Reader) -> Response:
    """Download the sample file."""
    if service.settings.sample is None:
        raise HTTPException(404, "This service has no sample file.")
    return FileResponse(service.settings.sample, filename="sample.csv", media_type="text/csv")


@router.get("/login")
async def login(request: Request, next: WantedText = "/") -> Response:  # noqa: A002 - name of the query
    """Login page."""
    return show_page(request, "login.html", NOBODY, next=_local(next), wrong=False)


@router.post("/login")
async def log_in(
    request: Request,
    service: Served,
    key: Annotated[Name, Form()],
    next: Annotated[WantedText, Form()] = "/",  # noqa: A002
) -> Response:
    """Store a key in an HttpOnly, SameSite cookie."""
    if service.keys is not None and service.keys.caller(key.strip()).role is Role.NONE:
        return show_page(request, "login.html", NOBODY, status=401, next=_local(next), wrong=True)
    response = RedirectResponse(_local(next), 303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, key.strip(), httponly=True, samesite="strict", secure=secure, max_age=WEEK_S)
    return response


@router.post("/logout")
async def log_out() -> Response:
    """Delete the cookie with the key."""
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


def problem(request: Request, status: int, sentence: str) -> Response:
    """Page of an error."""
    try:
        caller = caller_of(request, request.app.state.service)
    except ReadbenchError:  # the key file cannot be read
        caller = NOBODY
    return show_page(request, "problem.html", caller, status=status, sentence=sentence)


def _shown(service: CaseService, signals: DrawnWindow, answer: Answer | None, page: Page) -> dict[str, Any]:
    """Template values of the page of a case or a held file."""
    summary = service.library.stats()
    return {
        "summary": summary,
        "signals": signals,
        "answer": answer,
        "options": _options(answer),
        "shown_of_kind": SHOWN_OF_KIND,
        "page": page,
        "labels": sorted(label for label in summary.labels if label),
        "assets": sorted(asset for asset in summary.assets if asset),
        "methods": service.settings.methods,
    }


def _options(answer: Answer | None) -> list[Fault]:
    """Most likely options, and always the option of an unknown type."""
    faults = answer.faults if answer else ()
    return [fault for place, fault in enumerate(faults) if place < OPTIONS or fault.label == UNLIKE]


@dataclass(frozen=True)
class WrittenForm:
    """A form that changes one case.

    Args:
        action: route of the form.
        fields: its values, with the name of the case under `case`.
        yours: new values of the changed fields, as text.
        then: page to open next; "" for that of the case, which offers to revert the change.
    """

    action: str
    fields: dict[str, str]
    yours: dict[str, str]
    then: str = ""


async def _write(
    request: Request, service: CaseService, caller: KeyHolder, form: WrittenForm, change: Callable[[], object]
) -> Response:
    """Change a case and open the next page; on a conflict show both states to choose from."""
    case = form.fields["case"]

    def act() -> int:
        change()
        return service.library.history()[-1].number

    try:
        number = await service.act(caller, act)
    except ConflictError:
        return await _show_conflict(request, service, caller, form)
    return RedirectResponse(form.then, 303) if form.then else to_case(case, done=number)


async def _show_conflict(request: Request, service: CaseService, caller: KeyHolder, form: WrittenForm) -> Response:
    def look() -> dict[str, Any]:
        record = service.library.case(form.fields["case"])
        events = [event for event in list_events(service.library, record.id) if not event.undone]
        states = [(name, words.format_field(getattr(record, name)), yours) for name, yours in form.yours.items()]
        return {
            "case": record,
            "event": next(iter(events), None),
            "states": [row for row in states if row[1] != row[2]],
        }

    found = await service.work.do(look)
    fields = form.fields | {"seen": str(found["case"].changed)}
    return show_page(request, "conflict.html", caller, status=409, action=form.action, fields=fields, **found)


def _held(service: CaseService, token: str) -> HeldFile:
    held = service.looked_at.get(token)
    if held is None:
        minutes = round(service.looked_at.seconds / 60)
        raise HTTPException(404, f"This file is no longer held, after {minutes} minutes. Send it again.")
    return held


def _find_window(service: CaseService, case: str, token: str) -> tuple[Window, Gaps | None]:
    """Window of a case or held file, and (C, T) True where readings were missing."""
    return fill_recording(service, _held(service, token).read) if token else (service.library.window(case)[0], None)


def _local(address: str) -> str:
    """Return an address on this service; any other becomes the first page."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"
