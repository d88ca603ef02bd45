"""Statements on a method: labels and normals that it reads, and datasets that its settings were chosen on.

Labels follow from its parts. `method_statements.csv` says which parts use known normals and which datasets were in
sight when settings were chosen; a part that is not listed uses no normals and the settings of its publication.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from readbench.benchmark.protocol import read_shipped_rows
from readbench.engine.method import Method
from readbench.engine.registry import ENCODERS, RERANKERS, RETRIEVERS, TRANSFORMS
from readbench.engine.spec import COMPOSED, Stage, parse
from readbench.errors import ReadbenchError

LabelUse = Literal["none", "pool", "all", "unknown"]
LABEL_USES: tuple[LabelUse, ...] = ("none", "pool", "all", "unknown")
"""Labels that methods read: none, those of a query's first hits, those of the whole corpus."""
LABEL_WORDS: dict[LabelUse, str] = {
    "none": "no label",
    "pool": "labels of each query's first hits",
    "all": "all labels of the corpus",
    "unknown": "a part is not installed here",
}


@dataclass(frozen=True)
class MethodStatement:
    """Knowledge and settings of a method.

    Args:
        labels: labels that it reads.
        budget: labels per query if it reads those of a pool; else 0.
        normals: True if it uses known normals.
        chosen_on: datasets in sight when its settings were chosen.
        said: source of the statement, one sentence per part.
    """

    labels: LabelUse
    budget: int
    normals: bool
    chosen_on: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def label_text(self) -> str:
        """Label use as text."""
        return f"pool of {self.budget}" if self.labels == "pool" else self.labels

    @property
    def knowledge(self) -> str:
        """Label use and known normals as text."""
        return self.label_text + ("; normals known" if self.normals else "")


@lru_cache(maxsize=4096)
def state_method(text: str) -> MethodStatement:
    """The statement of a method.

    >>> state_method("dtw-i").labels, state_method("sonde+gpc").label_text, state_method("flagship").normals
    ('none', 'pool of 20', True)
    """
    try:
        legs_read, depths = _read_labels(text)
    except ReadbenchError:
        return MethodStatement("unknown", 0, normals=False, chosen_on=(), said=())
    use: LabelUse = "all" if legs_read or None in depths else "pool" if depths else "none"
    budget = max((depth for depth in depths if depth is not None), default=0) if use == "pool" else 0
    stated = [(row, stage) for name, stage in _named_parts(text) if (row := _statements().get(name))]
    chosen = dict.fromkeys(name for row, _ in stated for name in row["chosen_on"].split())
    return MethodStatement(
        labels=use,
        budget=budget,
        normals=any(_holds(row["normals"], stage) for row, stage in stated) or _scaled_by_normals(text),
        chosen_on=tuple(sorted(chosen)),
        said=tuple(dict.fromkeys(f"{row['part']}: {row['said']}" for row, _ in stated)),
    )


def _read_labels(text: str) -> tuple[bool, list[int | None]]:
    """Whether a leg reads labels, and the depths of rerankers that do; also if packages are not installed."""
    with suppress(ReadbenchError):
        method = Method(text)
        depths = [part.component.depth for part in method.rerankers if part.component.uses_labels]
        return method.legs_use_labels, depths
    spec = parse(text)
    legs = [RETRIEVERS.get(leg.stage.name).factory for leg in spec.legs if leg.stage.name in RETRIEVERS]
    rerankers = [RERANKERS.get(stage.name).build(**dict(stage.parameters)) for stage in spec.rerankers]
    return (
        any(getattr(leg, "uses_labels", False) is True for leg in legs),
        [reranker.depth for reranker in rerankers if reranker.uses_labels],
    )


def _named_parts(text: str) -> Iterator[tuple[str, Stage | None]]:
    """Names that statements may have: stages, with and without parameters, and the composed method that it varies."""
    spec = parse(text)
    for leg in spec.legs:
        yield leg.stage.name, leg.stage
        if leg.stage.parameters:
            yield str(leg.stage), leg.stage
        yield from ((stage.name, stage) for stage in leg.transforms)
    yield from ((stage.name, stage) for stage in spec.rerankers)
    legs = str(spec).split("+")[0]
    for name, own in COMPOSED.items():
        if len(spec.legs) > 1 and own.split("+")[0] == legs:
            yield name.partition("-")[0] if name.startswith("flagship") else name, None


def _holds(rule: str, stage: Stage | None) -> bool:
    """True when a part with its parameters uses normals; parts of a composed method count themselves."""
    if stage is None:
        return False
    given = {key: str(value).lower() for key, value in stage.parameters}
    if rule.startswith("unless "):
        key, _, value = rule.removeprefix("unless ").partition("=")
        default = _default(stage.name, key)
        return given.get(key, default) != value
    return rule == "yes"


def _scaled_by_normals(text: str) -> bool:
    return any(dict(stage.parameters).get("norm") == "normals" for _, stage in _named_parts(text) if stage)


def _default(name: str, key: str) -> str:
    for registry in (RETRIEVERS, ENCODERS, TRANSFORMS, RERANKERS):
        if name in registry:
            return str(registry.get(name).parameters[key].default).lower()
    return ""


@lru_cache(maxsize=1)
def _statements() -> dict[str, dict[str, str]]:
    return {row["part"]: row for row in read_shipped_rows(__name__, "method_statements.csv")}
