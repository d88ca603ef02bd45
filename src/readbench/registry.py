"""One way to add anything: decorate it, or let an installed package do so through an entry point.

>>> from readbench.registry import RETRIEVERS
>>> "euclidean" in RETRIEVERS, RETRIEVERS.get("ED").name
(True, 'euclidean')

A package outside this one adds methods and sources by an entry point in the group `readbench.plugins` that names a
module; importing the module runs its decorators:

```toml
[project.entry-points."readbench.plugins"]
mine = "my_package.methods"
```
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, TypeVar

from readbench.errors import UnknownNameError, UsageError
from readbench.parameters import Parameter, Value, parameters_of

F = TypeVar("F", bound=Callable[..., Any])
Finder = TypeVar("Finder", bound=Callable[[], "Iterable[Entry]"])
PLUGIN_GROUP = "readbench.plugins"
TAGS = {
    "by-position": "scores follow the positions of query and item, not their values: equal items need not score alike",
    "normals-last": "a known normal window is no class like the others but comes last",
}
"""What a component may declare about itself, which the contract suite then does not ask of it, and why."""


@dataclass(frozen=True)
class Entry:
    """What is registered under one name.

    Args:
        name: canonical name.
        factory: builds the component; its keyword arguments are the parameters of the grammar.
        title: name in tables ("ED", "DTW-I").
        family: colour and grouping in tables and figures.
        summary: one sentence.
        aliases: other names that mean the same.
        requires: modules that must be importable for it to run.
        extra: the optional extra that installs them.
        obstacle: says why it cannot run as it is registered, without other parameters, although its modules are there
            (weights that are missing, say), or nothing; cheap to ask.
        positional: the parameter that a bare value in parentheses sets, if any.
        origin: "readbench", or the plug-in it came from with its version.
        tags: words of `TAGS` that hold for it.
    """

    name: str
    factory: Callable[..., Any]
    title: str
    family: str
    summary: str
    aliases: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    extra: str = ""
    obstacle: Callable[[], str] | None = None
    positional: str = ""
    origin: str = "readbench"
    tags: frozenset[str] = frozenset()

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Declared parameters by name."""
        return parameters_of(self.factory)

    def unavailable(self) -> str:
        """Why it cannot run here by its name alone, and what to do; empty when it can. Reads on after the name."""
        return self._missing_modules() or (self.obstacle() if self.obstacle else "")

    def _missing_modules(self) -> str:
        missing = [module for module in self.requires if not _importable(module)]
        if not missing:
            return ""
        remedy = f"'readbench[{self.extra}]'" if self.extra else " ".join(missing)
        return f"needs {', '.join(missing)}: pip install {remedy}"

    def build(self, **parameters: Value) -> Any:  # noqa: ANN401 - each registry has its own protocol
        """The component with these parameters, all checked against their declared ranges.

        Only missing modules stop it: parameters may remove an obstacle, as a folder of weights does.
        """
        if reason := self._missing_modules():
            raise UsageError(f"{self.name} {reason}")
        declared = self.parameters
        for name, value in parameters.items():
            if name not in declared:
                raise UnknownNameError(f"parameter of {self.name}", name, declared)
            declared[name].check(self.name, value)
        return self.factory(**parameters)


@dataclass
class Registry:
    """Named components of one kind; built-in modules and plug-ins are imported on first use."""

    kind: str
    modules: tuple[str, ...] = ()
    _entries: dict[str, Entry] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)
    _finders: list[Callable[[], Iterable[Entry]]] = field(default_factory=list)

    def register(  # noqa: PLR0913 - one keyword a field of an entry
        self,
        name: str,
        *,
        title: str = "",
        family: str = "",
        aliases: Iterable[str] = (),
        requires: Iterable[str] = (),
        extra: str = "",
        unavailable: Callable[[], str] | None = None,
        positional: str = "",
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Decorator that registers a class or factory; its docstring's first line is the summary.

        The keywords are the fields of `Entry`; `unavailable` is its `obstacle`.
        """
        declared = frozenset(tags)
        for tag in declared - set(TAGS):
            raise UnknownNameError(f"tag of {name}", tag, TAGS)

        def decorate(factory: F) -> F:
            summary = (factory.__doc__ or "").strip().split("\n")[0]
            entry = Entry(
                name=name.lower(),
                factory=factory,
                title=title or name,
                family=family,
                summary=summary,
                aliases=tuple(a.lower() for a in aliases),
                requires=tuple(requires),
                extra=extra,
                obstacle=unavailable,
                positional=positional,
                origin=_origin(factory),
                tags=declared,
            )
            self._add(entry)
            return factory

        return decorate

    def found_by(self, finder: Finder) -> Finder:
        """Decorator for a function that lists entries which come and go, such as imported data; asked every time."""
        self._finders.append(finder)
        return finder

    def _add(self, entry: Entry) -> None:
        for name in (entry.name, *entry.aliases):
            owner = self._entries.get(self._aliases.get(name, name))
            if owner is not None and _home(owner.factory) != _home(entry.factory):
                raise UsageError(f"The {self.kind} name {name!r} of {entry.origin} is already taken by {owner.origin}.")
        self._entries[entry.name] = entry
        self._aliases.update(dict.fromkeys(entry.aliases, entry.name))

    def get(self, name: str) -> Entry:
        """The entry of a name or alias, in any case; an unknown one raises `UnknownNameError`."""
        entries = self._known()
        key = name.lower()
        key = self._aliases.get(key, key)
        if key not in entries:
            raise UnknownNameError(self.kind, name, [*entries, *self._aliases])
        return entries[key]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._aliases.get(name.lower(), name.lower()) in self._known()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._known().values())

    def names(self, *, aliases: bool = False) -> list[str]:
        """Canonical names in order of registration, and the aliases after them on request."""
        return [*self._known(), *(self._aliases if aliases else ())]

    def _known(self) -> dict[str, Entry]:
        """All entries by name, after everything that registers some was imported; what is found never hides them."""
        for module in self.modules:
            importlib.import_module(module)
        load_plugins()
        found = {entry.name: entry for finder in self._finders for entry in finder()}
        return self._entries | {name: entry for name, entry in found.items() if name not in self._entries}


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _home(factory: Callable[..., Any]) -> tuple[str, str]:
    """What stays the same when a module is loaded again, and differs for any two components."""
    return factory.__module__, factory.__qualname__


def _origin(factory: Callable[..., Any]) -> str:
    package = factory.__module__.split(".")[0]
    return _plugin_origins().get(package, package)


@cache
def _plugin_origins() -> dict[str, str]:
    """Top-level package -> "distribution version" of every installed plug-in."""
    return {
        point.module.split(".")[0]: f"{point.dist.name} {point.dist.version}"
        for point in entry_points(group=PLUGIN_GROUP)
        if point.dist is not None
    }


@cache
def load_plugins() -> tuple[tuple[EntryPoint, str], ...]:
    """Import every plug-in once; a broken one is reported (its reason is the second item), the others go on.

    Everything built in comes first, so that a name taken twice is the plug-in's error.
    """
    report = []
    points = entry_points(group=PLUGIN_GROUP)
    for module in (*SOURCES.modules, *RETRIEVERS.modules) if points else ():
        importlib.import_module(module)
    for point in points:
        try:
            point.load()
            reason = ""
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way; it must not take the tool down
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"Plug-in {point.name} ({point.value}) could not be loaded: {reason}", stacklevel=2)
        report.append((point, reason))
    return tuple(report)


SOURCES = Registry("dataset", ("readbench.data.sources", "readbench.data.simulators", "readbench.data.imported"))
RETRIEVERS = Registry("method", ("readbench.retrieve", "readbench.supervised"))
ENCODERS = Registry("encoder", ("readbench.encoders",))
TRANSFORMS = Registry("embedding transform", ("readbench.retrieve",))
FUSIONS = Registry("fusion mode", ("readbench.retrieve",))
RERANKERS = Registry("reranker", ("readbench.rerank",))
