"""What numbers depend on: code, the packages that compute, and the method; one hash for cells, scores and studies.

The code is every definition that the computing functions and the method's components lead to
(`readbench.common.provenance`). Some modules are entered only by some methods: a door says by which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from readbench.common.files import digest
from readbench.common.provenance import Code, Root, trace_code
from readbench.engine.abilities import AsksModel
from readbench.engine.parameters import Value
from readbench.engine.registry import BUILT_IN, ENCODERS, RERANKERS, Entry
from readbench.engine.spec import MethodSpec, Stage

NOT_COMPUTING = frozenset({"filelock", "huggingface_hub", "platformdirs", "pyarrow", "pydantic", "threadpoolctl"})
"""Packages on the way of a number that only store, check or carry it. All others compute."""


@dataclass(frozen=True)
class UsedPart:
    """A component of a method with all its parameters, those at their defaults among them."""

    entry: Entry
    parameters: Mapping[str, Value]

    @classmethod
    def of(cls, entry: Entry, stage: Stage) -> UsedPart:
        """As a stage of a method names it."""
        defaults = {name: parameter.default for name, parameter in entry.parameters.items()}
        return cls(entry, defaults | dict(stage.parameters))


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
    Door(("readbench.engine.retrievers._embedding",), lambda part: part.entry.name in ENCODERS),
    Door(
        ("readbench.engine.rerankers.*", "readbench.benchmark.runs._opinions"),
        lambda part: part.entry.name in RERANKERS,
    ),
    Door(("readbench.engine.llm.*",), lambda part: AsksModel in part.entry.abilities),
)


@dataclass(frozen=True)
class Provenance:
    """What computed a number: code, and packages with their versions."""

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
    parts = _parts(spec) if spec else []
    opened = [door for door in DOORS if spec is None or any(_opens(part, door) for part in parts)]
    shut = [pattern for door in DOORS if door not in opened for pattern in door.modules]
    code = trace_code((*roots, *(part.entry.factory for part in parts)), shut)
    by_text = [*(door.packages for door in opened if spec), *(part.entry.requires for part in parts)]
    names = code.packages.union(*by_text) - NOT_COMPUTING
    return Provenance(code, {name: found for name in sorted(names) if (found := _version(name))})


def _parts(spec: MethodSpec) -> list[UsedPart]:
    return [UsedPart.of(entry, stage) for entry, stage in zip(spec.entries(), spec.stages(), strict=True)]


def _opens(part: UsedPart, door: Door) -> bool:
    return part.entry.origin != BUILT_IN or door.opened_by(part)


@cache
def _version(package: str) -> str:
    """The installed version of a package, by the name it is imported by; empty where it is not here."""
    try:
        return version(package)
    except PackageNotFoundError:
        names = packages_distributions().get(package, ())
        return " ".join(version(name) for name in sorted(set(names)))
