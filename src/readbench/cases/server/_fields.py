"""Field types of requests, with their limits; `readbench.cases.limits` has those of stored values."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from readbench.cases.limits import (
    MAX_CHANNEL_NAME,
    MAX_CHANNELS,
    MAX_FACTS,
    MAX_LINK,
    MAX_LINKS,
    MAX_NAME,
    MAX_READINGS,
    MAX_REJECTED,
    MAX_TAGS,
    MAX_TEXT,
    MAX_UNITS,
)

MAX_QUERY: Final = 1000
"""Longest search text, method, address or list in a form, in characters."""
MAX_WINDOWS: Final = 1000
"""Windows of one request; a service may allow fewer."""
MAX_TARGETS: Final = 26
"""Queries of one panel: Grafana numbers them from A to Z."""
MAX_FORM_BYTES: Final = 2**20
"""Largest request without a window or file, in bytes."""
MAX_ANSWER_BYTES: Final = 64 * 2**20
"""Largest answer that is no file, in bytes."""
MAX_PAGE_TEXT: Final = 8 * 2**20
"""Characters of the cases of one page of a list."""

Name = Annotated[str, StringConstraints(max_length=MAX_NAME)]
ChannelName = Annotated[str, StringConstraints(max_length=MAX_CHANNEL_NAME)]
Query = Annotated[str, StringConstraints(max_length=MAX_QUERY)]
Notes = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Link = Annotated[str, StringConstraints(max_length=MAX_LINK)]
Tags = Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)]
TagText = Annotated[str, StringConstraints(max_length=MAX_TAGS * (MAX_NAME + 2))]
"""All tags of a case in one field of a form."""
Links = Annotated[tuple[Link, ...], Field(max_length=MAX_LINKS)]
Rejected = Annotated[tuple[Name, ...], Field(max_length=MAX_REJECTED)]
Channels = Annotated[tuple[ChannelName, ...], Field(max_length=MAX_CHANNELS, fail_fast=True)]
Units = Annotated[tuple[Name, ...], Field(max_length=MAX_UNITS, fail_fast=True)]
FactNumbers = Annotated[dict[Name, float], Field(max_length=MAX_FACTS)]
FactTexts = Annotated[list[Query], Field(max_length=MAX_FACTS)]
Row = Annotated[tuple[float | None, ...], Field(max_length=MAX_READINGS, fail_fast=True)]
Rows = Annotated[tuple[Row, ...], Field(max_length=MAX_CHANNELS, fail_fast=True)]
"""Readings by channel, null if missing; parsing stops at the first invalid one."""
