"""One way to add anything: decorate it, or let an installed package do so through an entry point.

>>> from readbench.engine.registry import RETRIEVERS
>>> "euclidean" in RETRIEVERS, RETRIEVERS.get("ED").name
(True, 'euclidean')

A package outside this one adds methods, sources and metrics by an entry point in the group `readbench.plugins` that
names a module; importing the module runs its decorators:

```toml
[project.entry-points."readbench.plugins"]
mine = "my_package.methods"
```
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Generic, Protocol, TypeVar

from readbench.engine.abilities import ABILITIES
from readbench.engine.parameters import Parameter, Value, parameters_of
from readbench.errors import UnknownNameError, UsageError

F = TypeVar("F", bound=Callable[..., Any])
Finder = TypeVar("Finder", bound=Callable[[], "Iterable[Entry]"])
PLUGIN_GROUP = "readbench.plugins"
BUILT_IN = "readbench"
"""Origin of what this package registers itself."""
DEEPEST = 100
"""Places of a list that a run keeps: no metric may read more."""
METRIC_NAME = re.compile(r"(?=.*[A-Z])[A-Za-z][A-Za-z0-9_.+-]*")
"""A metric is a column beside others that are all written small, so its name holds a capital letter."""


class Registered(Protocol):
    """What every registry needs to know of an entry."""

    @property
    def name(self) -> str:
        """Canonical name."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that mean the same."""

    @property
    def factory(self) -> Callable[..., Any]:
        """What was decorated."""

    @property
    def origin(self) -> str:
        """Where it comes from."""


E = TypeVar("E", bound=Registered)
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
        abilities: what it can do beyond its task, as Protocols of `readbench.engine.abilities`.
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
    abilities: tuple[type, ...] = ()
    origin: str = BUILT_IN
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

    def abilities_of(self, component: object) -> tuple[type, ...]:
        """What a component of this entry can do beyond its task: what was declared.

        Packages written before abilities were declared are asked for their members, for one release, with a warning
        that says what to write.
        """
        if self.abilities or self.origin == BUILT_IN:
            return self.abilities
        found = tuple(ability for ability in ABILITIES if _keeps(component, ability))
        if found:
            names = ", ".join(ability.__name__ for ability in found)
            warnings.warn(
                f"{self.name} of {self.origin} can do what it does not declare: write abilities=({names},) where it is"
                " registered. A later release asks for the declaration.",
                DeprecationWarning,
                stacklevel=2,
            )
        return found

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


@dataclass(frozen=True)
class MetricEntry:
    """One metric: a column of `scores.csv`.

    Args:
        name: of the column, "NDCG@10" or "macro_F1".
        family: the name without its cutoff; tables that have no room for every cutoff show one metric a family.
        factory: computes it; see `compute`.
        title: heading in tables.
        summary: one sentence.
        cutoff: the K of a metric at K.
        depth: places of a list that it reads.
        per_query: whether it has a value for each query; otherwise it has one for all queries together.
        larger_is_better: the direction.
        bounds: smallest and largest value there can be.
        chance: computes what random lists are expected to reach, (Q,), from what `compute` reads; None where unknown.
        origin: "readbench", or the plug-in it came from with its version.
    """

    name: str
    family: str
    factory: Callable[..., Any]
    title: str
    summary: str
    depth: int
    cutoff: int | None = None
    per_query: bool = True
    larger_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    chance: Callable[..., Any] | None = None
    origin: str = BUILT_IN

    @property
    def aliases(self) -> tuple[str, ...]:
        """None: a column has one name."""
        return ()

    def facts(self) -> dict[str, Any]:
        """What a run folder keeps of it, to be shown where it is not installed."""
        names = ("title", "family", "cutoff", "depth", "per_query", "larger_is_better", "origin")
        return {name: getattr(self, name) for name in names}

    @property
    def arguments(self) -> tuple[int, ...]:
        """What `factory` and `chance` are given beside the lists: K, where there is one."""
        return () if self.cutoff is None else (self.cutoff,)


@dataclass
class Catalogue(Generic[E]):
    """Named entries of one kind, in any case; the rooms they are in and plug-ins are imported on first use."""

    kind: str
    modules: tuple[str, ...] = ()
    _entries: dict[str, E] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)

    def _add(self, entry: E) -> None:
        key = entry.name.lower()
        for name in (key, *entry.aliases):
            owner = self._entries.get(self._aliases.get(name, name))
            if owner is not None and _home(owner.factory) != _home(entry.factory):
                raise UsageError(f"The {self.kind} name {name!r} of {entry.origin} is already taken by {owner.origin}.")
        self._entries[key] = entry
        self._aliases.update(dict.fromkeys(entry.aliases, key))

    def get(self, name: str) -> E:
        """The entry of a name or alias, in any case; an unknown one raises `UnknownNameError`."""
        entries = self._known()
        key = name.lower()
        key = self._aliases.get(key, key)
        if key not in entries:
            raise UnknownNameError(self.kind, name, [*(entry.name for entry in entries.values()), *self._aliases])
        return entries[key]

    def __contains__(self, name: object) -> bool:
        known = self._known()  # first, because plug-ins bring aliases with them
        return isinstance(name, str) and self._aliases.get(name.lower(), name.lower()) in known

    def __iter__(self) -> Iterator[E]:
        return iter(self._known().values())

    def names(self, *, aliases: bool = False) -> list[str]:
        """Canonical names in order of registration, and the aliases after them on request."""
        return [*(entry.name for entry in self), *(self._aliases if aliases else ())]

    def _known(self) -> dict[str, E]:
        """All entries by name, after everything that registers some was imported."""
        for module in self.modules:
            import_room(module)
        load_plugins()
        return self._entries


@dataclass
class Registry(Catalogue[Entry]):
    """Named components of one kind."""

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
        abilities: Iterable[type] = (),
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
                abilities=tuple(abilities),
                origin=origin_of(factory),
                tags=declared,
            )
            self._add(entry)
            return factory

        return decorate

    def found_by(self, finder: Finder) -> Finder:
        """Decorator for a function that lists entries which come and go, such as imported data; asked every time."""
        self._finders.append(finder)
        return finder

    def _known(self) -> dict[str, Entry]:
        """All entries, those that finders list now among them; what is found never hides what is registered."""
        registered = super()._known()
        found = {entry.name: entry for finder in self._finders for entry in finder()}
        return registered | {name: entry for name, entry in found.items() if name not in registered}


class MetricRegistry(Catalogue[MetricEntry]):
    """Metrics by the names of their columns: those of this package first, then those of plug-ins by origin."""

    def register(  # noqa: PLR0913 - one keyword a field of an entry
        self,
        name: str,
        *,
        title: str = "",
        cutoffs: Iterable[int] = (),
        depth: int | None = None,
        per_query: bool = True,
        larger_is_better: bool = True,
        bounds: tuple[float, float] = (0.0, 1.0),
        chance: Callable[..., Any] | None = None,
    ) -> Callable[[F], F]:
        """Decorator for the function that computes a metric; its docstring's first line is the summary.

        It is given a `readbench.benchmark.metrics.Judgement`, cut to the places that it reads, and K where there are
        cutoffs. It returns (Q,) values, or one number where it is not `per_query`.

        Args:
            name: of the column, or of the family where there are cutoffs: "NDCG" becomes NDCG@1, NDCG@3, ...
            title: heading in tables, the name by default; a cutoff is added to it.
            cutoffs: the K of a family.
            depth: places of a list that a metric without cutoffs reads.
            per_query: as in `MetricEntry`, like the rest.
            larger_is_better: see there.
            bounds: see there.
            chance: is given the same as the function itself.
        """
        if not METRIC_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot name a metric: letters, digits and _.+- with a capital letter, as 'MRR'."
            )
        depths: dict[int | None, int | None] = {k: k for k in cutoffs} or {None: depth}
        for places in depths.values():
            if places is None or not 1 <= places <= DEEPEST:
                raise UsageError(
                    f"The metric {name} must read between 1 and {DEEPEST} places of a list; got {places}. Set cutoffs"
                    " or depth."
                )

        def decorate(factory: F) -> F:
            for cutoff, places in depths.items():
                suffix = "" if cutoff is None else f"@{cutoff}"
                entry = MetricEntry(
                    name=f"{name}{suffix}",
                    family=name,
                    factory=factory,
                    title=f"{title or name}{suffix}",
                    summary=(factory.__doc__ or "").strip().split("\n")[0],
                    depth=places or 0,
                    cutoff=cutoff,
                    per_query=per_query,
                    larger_is_better=larger_is_better,
                    bounds=bounds,
                    chance=chance,
                    origin=origin_of(factory),
                )
                self._add(entry)
            return factory

        return decorate

    def _known(self) -> dict[str, MetricEntry]:
        """In the order of columns, the same on every machine whichever plug-in was found first."""
        return order_by_origin(super()._known())


def order_by_origin(entries: dict[str, E]) -> dict[str, E]:
    """What is built in first, as it was registered, then what plug-ins brought, by their names."""
    ordered = sorted(entries, key=lambda key: (entries[key].origin != BUILT_IN, entries[key].origin))
    return {key: entries[key] for key in ordered}


def _keeps(component: object, ability: type) -> bool:
    """Whether a component has every member that an ability names."""
    homes = [home for home in ability.__mro__ if home.__module__ == ability.__module__]
    members = {name for home in homes for name in vars(home) if not name.startswith("_")}
    return all(hasattr(component, name) for name in members)


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _home(factory: Callable[..., Any]) -> tuple[str, str]:
    """What stays the same when a module is loaded again, and differs for any two components."""
    return factory.__module__, factory.__qualname__


@cache
def import_room(name: str) -> None:
    """Import a package and every private module in it: what a new file registers is known without another line."""
    room = importlib.import_module(name)
    for module in pkgutil.iter_modules(room.__path__, f"{name}."):
        if module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)


def origin_of(factory: Callable[..., Any]) -> str:
    """Where a component comes from: this package, or a plug-in with its version."""
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
    for registry in (SOURCES, RETRIEVERS, ENCODERS, RERANKERS, METRICS) if points else ():
        for room in registry.modules:
            import_room(room)
    for point in points:
        try:
            point.load()
            reason = ""
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way; it must not take the tool down
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"Plug-in {point.name} ({point.value}) could not be loaded: {reason}", stacklevel=2)
        report.append((point, reason))
    return tuple(report)


SOURCES = Registry(
    "dataset", ("readbench.benchmark.sources", "readbench.benchmark.simulators", "readbench.benchmark.exchange")
)
RETRIEVERS = Registry("method", ("readbench.engine.retrievers", "readbench.engine.references"))
ENCODERS = Registry("encoder", ("readbench.engine.encoders",))
TRANSFORMS = Registry("embedding transform", ("readbench.engine.retrievers",))
FUSIONS = Registry("fusion mode", ("readbench.engine.retrievers",))
RERANKERS = Registry("reranker", ("readbench.engine.rerankers",))
METRICS = MetricRegistry("metric", ("readbench.benchmark.metrics",))
