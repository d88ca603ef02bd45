"""What is sent and answered, beside the library's own models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from readbench.cases.answering import Filter
from readbench.cases.answers import Case


class Body(BaseModel):
    """Base: frozen, and nothing beside the declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WindowBody(Body):
    """A window: one row of readings for each channel, all of one length; null where a reading is missing."""

    channels: tuple[str, ...] = Field(min_length=1, examples=[["pressure", "flow"]])
    values: tuple[tuple[float | None, ...], ...] = Field(min_length=1, examples=[[[1.0, 1.2, 0.7], [5.0, 5.0, 6.5]]])
    asset: str = ""


class Asked(Body):
    """What is asked about: a window, or the name of a stored case; exactly one of them."""

    window: WindowBody | None = None
    case: str | None = None


class SearchBody(Asked):
    """A search: `where` says which cases are listed; an empty `method` is the service's first one."""

    k: int = Field(10, ge=1)
    method: str = ""
    where: Filter = Filter()


class SearchManyBody(Body):
    """A search for several windows."""

    windows: tuple[WindowBody, ...] = Field(min_length=1)
    k: int = Field(10, ge=1)
    method: str = ""
    where: Filter = Filter()


class ExplainBody(Asked):
    """Why is the case `like` like what is asked about?"""

    like: str


class NewCase(Body):
    """A case to add; without an id it gets a name."""

    window: WindowBody
    id: str = ""
    label: str | None = None
    time: float | None = None
    group: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class Edits(Body):
    """Fields of a case to replace; those left out stay."""

    label: str | None = None
    asset: str = ""
    time: float | None = None
    group: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()


class LabelBody(Body):
    """A case and what it was; null where nobody knows."""

    case: str
    label: str | None


class PairBody(Body):
    """A case, and the stored one that it is or is not like."""

    case: str
    like: str


class Cases(Body):
    """A part of a list of cases, and how many there are."""

    total: int
    cases: tuple[Case, ...]


class Stored(Body):
    """The window of a case: readings in rows, by channel."""

    case: Case
    channels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...] = Field(repr=False)


class Problem(Body):
    """Every error: one sentence that says what to do."""

    detail: str


class Health(Body):
    """Whether the service is there, and how many cases it holds."""

    status: str
    cases: int | None = None
