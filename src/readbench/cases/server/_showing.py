"""Shared code of the pages: templates, redirects to a case, and recordings that are not stored."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from readbench.cases import Case, ReadRecording, Summary, format_time
from readbench.cases.roles import Role
from readbench.cases.server import _views as words
from readbench.cases.server._api import add_case
from readbench.cases.server._gate import IMPORT_MAP
from readbench.cases.server._keys import KeyHolder
from readbench.cases.server._service import CaseService, HeldFile
from readbench.cases.server._views import Gaps, find_gaps
from readbench.engine.windows import Window

HUES = 12
ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "when": format_time,
    "span": words.format_span,
    "percent": words.format_percent,
    "link": words.make_link,
    "short": words.shorten_text,
    "done": words.describe_change,
}
ENVIRONMENT.globals["importmap"] = Markup(IMPORT_MAP)  # noqa: S704 - our own constant, told to the policy by its digest
TEMPLATES = Jinja2Templates(env=ENVIRONMENT)


def show_page(
    request: Request,
    template: str,
    caller: KeyHolder,
    *,
    status: int = 200,
    summary: Summary | None = None,
    **shown: object,
) -> Response:
    """Render a page; `summary` gives the colours of the fault types."""
    service: CaseService = request.app.state.service
    common = {
        "caller": caller,
        "may_write": caller.role >= Role.WRITE,
        "may_delete": caller.role >= Role.ADMIN,
        "has_keys": service.keys is not None,
        "here": request.url.path,
        "status": status,
        "summary": summary,
        "hues": {} if summary is None else _number_hues(summary),
    }
    return TEMPLATES.TemplateResponse(request, template, common | shown, status_code=status)


def _number_hues(summary: Summary) -> dict[str, int]:
    """Colour number of each fault type, stable when types are added."""
    return {label: number % HUES for number, label in enumerate(summary.named)}


def to_case(case: str, **query: object) -> Response:
    """Redirect to the page of a case."""
    asked = f"?{urlencode(query)}" if query else ""
    return RedirectResponse(f"{words.make_link(case)}{asked}", 303)


async def look_at(service: CaseService, caller: KeyHolder, held: HeldFile, *, keep: bool) -> Response:
    """Hold a recording and redirect to its page, or (`keep`) store it as an open case."""
    token = service.looked_at.hold(held)
    if keep and caller.role >= Role.WRITE:
        return await keep_held(service, caller, held, token)
    return RedirectResponse(f"/looked/{token}", 303)


async def keep_held(service: CaseService, caller: KeyHolder, held: HeldFile, token: str) -> Response:
    """Store a held recording as an open case, and redirect to it."""
    case = Case(id="", asset=held.asset, **held.read.dates())
    kept = await service.act(caller, lambda: add_case(service, held.read.windows, case, held.read.remarks))
    return to_case(kept.id, file=token)


def fill_recording(service: CaseService, read: ReadRecording) -> tuple[Window, Gaps]:
    """Prepared window of a recording, and (C, T) True where readings were missing."""
    filled = service.library.prepare(read.windows)[0]
    return filled, find_gaps(service.library.naming()(read.windows)[0], filled)
