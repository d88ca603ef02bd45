"""What Grafana asks: cases as annotations and tables of similar cases for the range of a panel.

Two plug-ins of Grafana read it. *JSON* (`simpod-json-datasource`) is given the address `/grafana`: it asks `GET /`,
`POST /metrics`, `/metric-payload-options`, `/query`, `/variable`, `/tag-keys` and `/tag-values`; older versions ask
`/search` and `/annotations`. *Infinity* reads the lists at `/grafana/cases.json` and `/grafana/similar.json`.

A panel sends its range, not its readings. With the option `source`, the name of a connected source, the range is read
from there. Without it similar cases are those of the case that lies in the range: the one that overlaps it most, open
ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from readbench.cases import Answer, Case, Filter, link_case, shorten_note
from readbench.cases.server._api import hits
from readbench.cases.server._fields import MAX_TARGETS, Name, Query as WantedText
from readbench.cases.server._gate import Reader
from readbench.cases.server._ranges import read_source, sources_of
from readbench.cases.server._reception import SmallJsonRoute
from readbench.cases.server._service import CaseService, Served
from readbench.errors import UnknownNameError, UsageError

MAX_LISTED = 1000
"""Cases of one table; the latest count."""
MAX_ROWS = 5000
"""Cases of all tables of a panel."""
MAX_VALUES = 10_000
"""Values of one variable."""
MAX_OPTIONS = 50
"""Options of a query, or fields of an annotation."""
MAX_ANNOTATION_CHARS = 4096
"""Characters of the annotation that is sent back with every case."""
MAX_NOTE_CHARS = 500
"""Characters of a note in a table."""
MAX_TAGS = 10
DEFAULT_HITS = 10
KEYS = ("asset", "label", "tag")
"""What a dashboard may filter cases by."""
router = APIRouter(prefix="/grafana", tags=["read"], route_class=SmallJsonRoute, include_in_schema=False)
links_router = APIRouter(include_in_schema=False)


def _check_length(annotation: dict[str, Any]) -> dict[str, Any]:
    if len(str(annotation)) > MAX_ANNOTATION_CHARS:
        raise ValueError(f"has more than {MAX_ANNOTATION_CHARS} characters")
    return annotation


Payload = Annotated[dict[Name, Any], Field(max_length=MAX_OPTIONS)]
Annotation = Annotated[dict[Name, Any], Field(max_length=MAX_OPTIONS), AfterValidator(_check_length)]


class GrafanaBody(BaseModel):
    """What a plug-in sends: the fields that are used here; versions differ in the others."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class PanelRange(GrafanaBody):
    """The range of a panel, as ISO dates."""

    begin: datetime = Field(alias="from")
    end: datetime = Field(alias="to")

    @property
    def seconds(self) -> tuple[float, float]:
        """Since the epoch."""
        return self.begin.timestamp(), self.end.timestamp()


class PanelTarget(GrafanaBody):
    """One query of a panel; a version of the plug-in sends the payload as a text where it is none."""

    target: Name | None = ""
    payload: Payload | WantedText | None = None
    hide: bool = False

    @property
    def options(self) -> dict[str, str]:
        """The payload as texts; a choice of several counts by its first."""
        fields = self.payload if isinstance(self.payload, dict) else {}
        plain = {name: value[0] if isinstance(value, list) and value else value for name, value in fields.items()}
        return {name: str(value) for name, value in plain.items() if value not in (None, [], "")}


class AdhocFilter(GrafanaBody):
    """A filter of a dashboard."""

    key: Name
    operator: Name = "="
    value: Name = ""


class PanelQuery(GrafanaBody):
    """A request for the data of a panel."""

    range: PanelRange
    targets: list[PanelTarget] = Field(default_factory=list, max_length=MAX_TARGETS)
    adhoc: list[AdhocFilter] = Field(default_factory=list, max_length=MAX_TARGETS, alias="adhocFilters")


class AnnotationQuery(GrafanaBody):
    """A request for annotations, as older versions send it."""

    range: PanelRange
    annotation: Annotation = Field(default_factory=dict)


class PayloadQuery(GrafanaBody):
    """A request for the choices of an option, or for the values of a variable or filter."""

    metric: Name = ""
    name: Name = ""
    key: Name = ""
    target: Name = ""
    payload: Payload | WantedText | None = None

    @property
    def wanted(self) -> str:
        """What is asked for, wherever the plug-in wrote it."""
        inner = self.payload.get("target", "") if isinstance(self.payload, dict) else self.payload
        return self.name or self.key or str(inner or "") or self.target


class Column(BaseModel):
    """A column of a table."""

    text: str
    type: Literal["time", "string", "number"]


class PanelTable(BaseModel):
    """A table as Grafana reads it; times are milliseconds since the epoch."""

    columns: list[Column]
    rows: list[list[Any]]
    type: Literal["table"] = "table"
    target: str = ""

    def records(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        names = [column.text for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


@router.get("")
@router.get("/")
async def confirm_connection(_service: Served, _caller: Reader) -> dict[str, str]:
    """“Save & test” of the data source."""
    return {"status": "ok"}


@router.post("/metrics")
async def list_metrics(_service: Served, _caller: Reader) -> list[dict[str, Any]]:
    """What a panel may show, and the options of each."""
    chosen = [{"name": name, "type": "select", "placeholder": f"any {name}"} for name in KEYS]
    case = {"name": "case", "type": "input", "placeholder": "the one in the range"}
    source = {"name": "source", "type": "select", "placeholder": "the case in the range"}
    count = {"name": "k", "type": "input", "placeholder": str(DEFAULT_HITS)}
    options = {"cases": chosen, "annotations": chosen, "similar": [chosen[0], source, case, count]}
    options["belief"] = [chosen[0], source, case]
    return [{"label": words, "value": name, "payloads": options[name]} for name, words in METRICS.items()]


@router.post("/search")
async def search_metrics(_service: Served, _caller: Reader) -> list[str]:
    """The same for older versions: names alone."""
    return list(METRICS)


@router.post("/metric-payload-options")
async def list_options(service: Served, _caller: Reader, body: PayloadQuery) -> list[dict[str, str]]:
    """The choices of an option."""
    found = await service.work.do(lambda: list_values(service, body.wanted))
    return [{"label": value, "value": value} for value in found]


@router.post("/variable")
async def list_variable(service: Served, _caller: Reader, body: PayloadQuery) -> list[dict[str, str]]:
    """The values of a dashboard's variable: `asset`, `label` or `tag`."""
    found = await service.work.do(lambda: list_values(service, body.wanted))
    return [{"__text": value, "__value": value} for value in found]


@router.post("/tag-keys")
async def list_keys(_service: Served, _caller: Reader) -> list[dict[str, str]]:
    """What ad hoc filters may be by."""
    return [{"type": "string", "text": key} for key in KEYS]


@router.post("/tag-values")
async def list_key_values(service: Served, _caller: Reader, body: PayloadQuery) -> list[dict[str, str]]:
    """The values of such a filter."""
    found = await service.work.do(lambda: list_values(service, body.wanted))
    return [{"text": value} for value in found]


@router.post("/query")
async def query(request: Request, service: Served, _caller: Reader, body: PanelQuery) -> list[PanelTable]:
    """The tables of a panel: cases in its range, those like the one in its range, or what that one may be."""
    address = str(request.base_url)

    def find() -> list[PanelTable]:
        asked = [target for target in body.targets if not target.hide]
        most = min(MAX_LISTED, MAX_ROWS // max(1, len(asked)))
        return [answer_target(service, target, body, address, most) for target in asked]

    return await service.work.do(find)


@router.post("/annotations")
async def annotate(request: Request, service: Served, _caller: Reader, body: AnnotationQuery) -> list[dict[str, Any]]:
    """The cases in a range, as marks on every panel."""
    asset = str(body.annotation.get("query") or "") or None
    address = str(request.base_url)

    def find() -> list[dict[str, Any]]:
        return annotation_table(find_cases(service, body.range.seconds, Filter(asset=asset)), address).records()

    return [{"annotation": body.annotation} | record for record in await service.work.do(find)]


class ListedRange(BaseModel):
    """A range by the clock of Grafana: `from=${__from}&to=${__to}`, milliseconds since the epoch."""

    begin: float = Field(alias="from")
    end: float = Field(alias="to")
    asset: Name = ""
    label: Name = ""
    tag: Name = ""
    source: Name = ""
    case: Name = ""
    k: int = Field(DEFAULT_HITS, ge=1)

    @property
    def seconds(self) -> tuple[float, float]:
        """Since the epoch."""
        return self.begin / 1000, self.end / 1000

    @property
    def where(self) -> Filter:
        """The filter without empty texts."""
        return Filter(asset=self.asset or None, label=self.label or None, tag=self.tag or None)


@router.get("/cases.json")
async def cases_json(
    request: Request, service: Served, _caller: Reader, asked: Annotated[ListedRange, Query()]
) -> list[dict[str, Any]]:
    """The cases in a range as a plain list, for the data source Infinity."""
    address = str(request.base_url)
    return await service.work.do(lambda: case_table(find_cases(service, asked.seconds, asked.where), address).records())


@router.get("/similar.json")
async def similar_json(
    request: Request, service: Served, _caller: Reader, asked: Annotated[ListedRange, Query()]
) -> list[dict[str, Any]]:
    """The cases like the one in a range, or like its readings in a source, as a plain list, likewise."""
    address, options = str(request.base_url), {"source": asked.source, "case": asked.case}

    def find() -> list[dict[str, Any]]:
        return similar_table(ask(service, asked.seconds, asked.where, options, asked.k), address).records()

    return await service.work.do(find)


@links_router.get("/range")
async def open_range(_service: Served, _caller: Reader, asked: Annotated[ListedRange, Query()]) -> RedirectResponse:
    """A link that opens the cases of a range: `/range?from=${__from}&to=${__to}&asset=$asset`."""
    begin, end = asked.seconds
    chosen = {"since": begin, "until": end, "asset": asked.asset, "label": asked.label, "tag": asked.tag}
    return RedirectResponse(f"/cases?{urlencode({name: value for name, value in chosen.items() if value})}", 303)


def list_values(service: CaseService, key: str) -> list[str]:
    """The assets, faults or tags of the library, or its sources."""
    if key == "source":
        return [source.name for source in sources_of(service).all()]
    if key not in KEYS:
        raise UnknownNameError("filter", key, (*KEYS, "source"))
    cases = service.library.cases()
    found = {"asset": {case.asset for case in cases}, "label": {case.label or "" for case in cases}}
    values = found[key] if key in found else {tag for case in cases for tag in case.tags}
    return sorted(values - {""})[:MAX_VALUES]


def find_cases(service: CaseService, seconds: tuple[float, float], where: Filter, most: int = MAX_LISTED) -> list[Case]:
    """The cases that overlap a range, in the order of their times; of very many the latest."""
    begin, end = seconds
    found = [
        case
        for case in service.library.cases(where)
        if case.time is not None and case.time <= end and (case.end or case.time) >= begin
    ]
    return sorted(found, key=lambda case: case.time or 0.0)[-most:]


def choose_case(service: CaseService, seconds: tuple[float, float], where: Filter, name: str = "") -> Case | None:
    """The case of a name, or the one that overlaps a range most, open ones and later ones first."""
    if name:
        return service.library.case(name)
    begin, end = seconds

    def overlap(case: Case) -> tuple[bool, float, float]:
        first, last = case.time or 0.0, case.end or case.time or 0.0
        return case.label is None, min(last, end) - max(first, begin), first

    return max(find_cases(service, seconds, where), key=overlap, default=None)


@dataclass(frozen=True)
class PanelAnswer:
    """What the library says of a range.

    Args:
        asked: the case, or the source and the asset, that was asked about.
        link: the page of the service that shows it.
        case: name of the case; "" of readings.
        answer: that was given.
    """

    asked: str
    link: str
    case: str
    answer: Answer


def ask(
    service: CaseService, seconds: tuple[float, float], where: Filter, options: Mapping[str, str], k: int
) -> PanelAnswer | None:
    """What the library says of the readings of a source in a range, or of the case there; None where there is none."""
    k, method = hits(k, service), service.settings.choose_method("")
    if source := options.get("source"):
        read = read_source(service, source, seconds, asset=where.asset or "")
        asset = str(read.windows.assets[0])
        link = urlencode({"source": source, "asset": asset, "start": seconds[0], "end": seconds[1]})
        answer = service.library.search(read, k=k, method=method)
        return PanelAnswer(f"{source}: {asset}" if asset else source, f"/ranges?{link}", "", answer)
    case = choose_case(service, seconds, where, options.get("case", ""))
    if case is None:
        return None
    return PanelAnswer(case.id, link_case("", case.id), case.id, service.library.search(case.id, k=k, method=method))


def answer_target(service: CaseService, target: PanelTarget, body: PanelQuery, address: str, most: int) -> PanelTable:
    """The table of one query of a panel."""
    name, options = target.target or "cases", target.options
    if name not in METRICS:
        raise UnknownNameError("metric", name, list(METRICS))
    where = read_filter(options, body.adhoc)
    seconds = body.range.seconds
    if name in TABLES:
        table = TABLES[name](find_cases(service, seconds, where, most), address)
    else:
        count = options.get("k", str(DEFAULT_HITS))
        if not count.isdigit() or not int(count):
            raise UsageError(f"The option k of {name!r} is a positive number. Got {count!r}.")
        answer = ask(service, seconds, where, options, int(count))
        table = similar_table(answer, address) if name == "similar" else belief_table(answer, address)
    return table.model_copy(update={"target": name})


def read_filter(options: dict[str, str], adhoc: Sequence[AdhocFilter]) -> Filter:
    """Which cases a panel shows, by its options and by the filters of the dashboard."""
    for condition in adhoc:
        if condition.operator != "=" or condition.key not in KEYS:
            raise UsageError(
                f"Cases are filtered by {', '.join(KEYS)}, with =. Got {condition.key!r} {condition.operator!r}."
            )
    told = options | {condition.key: condition.value for condition in adhoc}
    return Filter(asset=told.get("asset"), label=told.get("label"), tag=told.get("tag"))


def case_table(cases: Sequence[Case], address: str) -> PanelTable:
    """Cases, one a row."""
    columns = _columns(Time="time", End="time", Case="string", Fault="string", Asset="string", Notes="string")
    rows = [
        [
            _ms(case.time),
            _ms(case.end),
            case.id,
            case.label or "open",
            case.asset,
            shorten_note(case.notes, MAX_NOTE_CHARS),
            link_case(address, case.id),
        ]
        for case in cases
    ]
    return PanelTable(columns=[*columns, Column(text="Link", type="string")], rows=rows)


def annotation_table(cases: Sequence[Case], address: str) -> PanelTable:
    """Cases by the field names that annotations have."""
    columns = _columns(time="time", timeEnd="time", title="string", text="string", tags="string")
    rows = []
    for case in cases:
        link = f'<a href="{link_case(address, case.id)}">{_plain(case.id)}</a>'
        words = " · ".join(
            part for part in (_plain(case.asset), _plain(shorten_note(case.notes, MAX_NOTE_CHARS))) if part
        )
        tags = [part for part in (case.label or "open", case.asset, *case.tags[:MAX_TAGS]) if part]
        rows.append([_ms(case.time), _ms(case.end), case.label or "open case", f"{words} {link}".strip(), tags])
    return PanelTable(columns=columns, rows=rows)


def similar_table(panel: PanelAnswer | None, address: str) -> PanelTable:
    """The cases like what was asked about, best first; empty where there is none in the range."""
    columns = _columns(
        Place="number", Case="string", Fault="string", Probability="number", Asset="string", Time="time",
        Notes="string", Link="string", Asked="string",
    )  # fmt: skip
    rows = []
    for hit in panel.answer.hits if panel else ():
        case = hit.case
        known = [
            case.label or "open",
            hit.probability,
            case.asset,
            _ms(case.time),
            shorten_note(case.notes, MAX_NOTE_CHARS),
        ]
        link = link_case(address, panel.case, case.id) if panel and panel.case else link_case(address, case.id)
        rows.append([hit.place, case.id, *known, link, panel.asked if panel else ""])
    return PanelTable(columns=columns, rows=rows)


def belief_table(panel: PanelAnswer | None, address: str) -> PanelTable:
    """What it may be."""
    columns = _columns(Option="string", Probability="number", Possible="string", Case="string", Link="string")
    rows: list[list[Any]] = [
        [
            fault.label,
            fault.probability,
            "yes" if fault.possible else "ruled out",
            panel.asked,
            address.rstrip("/") + panel.link,
        ]
        for fault in (panel.answer.faults if panel else ())
        if panel
    ]
    return PanelTable(columns=columns, rows=rows)


METRICS = {
    "cases": "Cases in the range",
    "annotations": "Cases in the range, as annotations",
    "similar": "Cases like the one in the range",
    "belief": "What the case in the range may be",
}
TABLES: dict[str, Callable[[Sequence[Case], str], PanelTable]] = {"cases": case_table, "annotations": annotation_table}


def _columns(**kinds: Literal["time", "string", "number"]) -> list[Column]:
    return [Column(text=name, type=kind) for name, kind in kinds.items()]


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(1000 * seconds)


def _plain(text: str) -> str:
    """A text that is no HTML: Grafana shows annotations as such."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
