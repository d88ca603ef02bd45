"""What all routes share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from readbench.cases.library import CaseLibrary
from readbench.cases.server.audit import Audit
from readbench.cases.server.keys import KeyFile
from readbench.cases.server.metrics import Metrics
from readbench.cases.server.settings import Settings
from readbench.cases.server.work import Work


@dataclass(frozen=True, eq=False)
class Service:
    """One library and everything around it.

    Args:
        library: that is served.
        settings: limits.
        keys: who may do what; None where everybody may, because only this machine can reach it.
        audit: who did what.
        work: where blocking calls run.
        metrics: what is counted.
    """

    library: CaseLibrary
    settings: Settings
    keys: KeyFile | None
    audit: Audit
    work: Work
    metrics: Metrics = field(default_factory=Metrics)


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    return cast("Service", request.app.state.service)


Served = Annotated[Service, Depends(service_of)]
