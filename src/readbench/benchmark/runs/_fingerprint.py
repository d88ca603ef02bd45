"""Fingerprints of numbers: one hash of code, computing packages and method, for cells, scores and studies.

The code is all modules that the computing functions and the method's components import
(`readbench.common.provenance`). A `Door` restricts modules to the methods that enter them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from typing import Literal

from readbench.common.files import digest
from readbench.common.provenance import Code, Root, trace_code, versions_of
from readbench.engine.abilities import AsksModel
from readbench.engine.parameters import Value
from readbench.engine.registry import BUILT_IN, ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS, Entry, Registry
from readbench.engine.spec import MethodSpec, Stage

Role = Literal["retriever", "encoder", "transform", "fusion", "reranker"]


@dataclass(frozen=True)
class UsedPart:
    """A component of a method: role, registry entry and all parameters with defaults."""

    role: Role
    entry: Entry
    parameters: Mapping[str, Value]

    @classmethod
    def of(cls, role: Role, stage: Stage) -> UsedPart:
        """As a stage of a method names it."""
        entry = HOMES[role].get(stage.name)
        defaults = {name: parameter.default for name, parameter in entry.parameters.items()}
        return cls(role, entry, defaults | dict(stage.parameters))


HOMES: dict[Role, Registry] = {
    "retriever": RETRIEVERS,
    "encoder": ENCODERS,
    "transform": TRANSFORMS,
    "fusion": FUSIONS,
    "reranker": RERANKERS,
}


@dataclass(frozen=True)
class Door:
    """Modules that a method enters only with a certain part.

    Args:
        modules: patterns of their names.
        opened_by: whether a part leads there. A part of a plug-in opens every door.
        packages: what computes behind it, imported by a text.
    """

    modules: tuple[str, ...]
    opened_by: Callable[[UsedPart], bool]
    packages: tuple[str, ...] = ()


DOORS = (
    Door(
        ("*_cuda", "readbench.engine.encoders.sonde_network"),
        lambda part: part.parameters.get("device", "cpu") != "cpu",
        ("torch",),
    ),
    Door(
        ("readbench.engine.kernels.rocket_peers",),
        lambda part: part.parameters.get("kind", "mini") != "mini",
        ("aeon", "torch"),
    ),
    Door(("readbench.engine.retrievers._embedding",), lambda part: part.role == "encoder"),
    Door(("readbench.engine.rerankers.*", "readbench.benchmark.runs._opinions"), lambda part: part.role == "reranker"),
    Door(("readbench.engine.llm.*",), lambda part: AsksModel in part.entry.abilities),
)


@dataclass(frozen=True)
class Provenance:
    """Code and package versions that computed a number."""

    code: Code
    packages: Mapping[str, str]


def fingerprint_of(*roots: Root, spec: MethodSpec | None = None, also: Iterable[object] = ()) -> str:
    """Hash of everything that numbers depend on.

    Args:
        roots: the functions or classes that compute them; what these lead to counts too.
        spec: the method, whose components count.
        also: what else there is, by its `repr`: of the data, the sizes, the weights.
    """
    made_by = provenance_of(roots, spec)
    method = spec.fingerprint() if spec else ""
    return digest(method, made_by.code.digest, sorted(made_by.packages.items()), *also)


@cache
def provenance_of(roots: tuple[Root, ...], spec: MethodSpec | None = None) -> Provenance:
    """The code that computes, and the packages it calls."""
    route = route_of(roots, spec)
    code = trace_code(route.roots, route.shut)
    return Provenance(code, versions_of(code.packages | route.packages))


@dataclass(frozen=True)
class Route:
    """Where the code of a method begins, which modules it does not enter, and which packages it imports by a text."""

    roots: tuple[Root, ...]
    shut: tuple[str, ...]
    packages: frozenset[str]


def route_of(roots: tuple[Root, ...], spec: MethodSpec | None) -> Route:
    """That of a method: its components are roots too, and open doors, as does a root behind one.

    Without a method all doors are open.
    """
    if spec is None:
        return Route(roots, (), frozenset())
    parts = list(_parts_of(spec))
    opened = [door for door in DOORS if any(_opens(part, door) for part in parts)]
    closed = (pattern for door in DOORS if door not in opened for pattern in door.modules)
    shut = tuple(pattern for pattern in closed if not any(fnmatch(root.__module__, pattern) for root in roots))
    packages = frozenset[str]().union(*(d.packages for d in opened), *(part.entry.requires for part in parts))
    return Route((*roots, *(part.entry.factory for part in parts)), shut, packages)


def _parts_of(spec: MethodSpec) -> Iterator[UsedPart]:
    for leg in spec.legs:
        yield UsedPart.of("retriever" if leg.stage.name in RETRIEVERS else "encoder", leg.stage)
        yield from (UsedPart.of("transform", stage) for stage in leg.transforms)
    yield from (UsedPart.of("fusion", stage) for stage in spec.fusions)
    yield from (UsedPart.of("reranker", stage) for stage in spec.rerankers)


def _opens(part: UsedPart, door: Door) -> bool:
    return part.entry.origin != BUILT_IN or door.opened_by(part)
