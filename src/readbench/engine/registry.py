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

A single file needs no package: `load_plugin_file` runs it here and in the processes that this one starts, as
`readbench --plugin mine.py` does. They are told by the variable `READBENCH_PLUGINS`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import shorten
from typing import Any, Generic, Protocol, TypeVar

from readbench.engine.parameters import Parameter, Value, parameters_of
from readbench.errors import UnknownNameError, UsageError

F = TypeVar("F", bound=Callable[..., Any])
Finder = TypeVar("Finder", bound=Callable[[], "Iterable[Entry]"])
PLUGIN_GROUP = "readbench.plugins"
PLUGIN_FILES = "READBENCH_PLUGINS"
"""The variable with files of plug-ins that are no packages, separated as those of PATH."""
BUILT_IN = "readbench"
"""Origin of what this package registers itself."""
DEEPEST = 100
"""Places of a list that a run keeps: no metric may read more."""
_ALIASES = re.compile(r"aliases=[(\[](.*?)[)\]]", re.DOTALL)
_QUOTED = re.compile(r'"([^"]+)"')
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

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {self.title}, of {self.origin}: {shorten(self.summary, 200, placeholder=' ...')})"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Declared parameters by name."""
        return parameters_of(self.factory)

    def unavailable(self) -> str:
        """Why it cannot run here by its name alone, and what to do; empty when it can. Reads on after the name."""
        return self._missing_modules() or (self.obstacle() if self.obstacle else "")

    def _missing_modules(self) -> str:
        missing = self.missing_modules()
        return f"needs {', '.join(missing)}: {self.installation}" if missing else ""

    def missing_modules(self) -> list[str]:
        """Modules that it needs and that cannot be imported."""
        return [module for module in self.requires if not _importable(module)]

    @property
    def installation(self) -> str:
        """The command that installs what it needs."""
        wanted = f"'readbench[{self.extra}]'" if self.extra else " ".join(self.missing_modules())
        return f"pip install {wanted}"

    def abilities_of(self, component: object) -> tuple[type, ...]:
        """What a component of this entry can do beyond its task: what was declared.

        Packages written before abilities were declared are asked for their members, for one release, with a warning
        that says what to write.
        """
        if self.abilities or self.origin == BUILT_IN:
            return self.abilities
        from readbench.engine.abilities import ABILITIES  # noqa: PLC0415 - needs NumPy, which a wrong name does not

        found = tuple(ability for ability in ABILITIES if not members_lacking(component, ability))
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

    def __repr__(self) -> str:
        return f"MetricEntry({self.name!r}, of {self.origin}: {shorten(self.summary, 200, placeholder=' ...')})"

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
    """Named entries of one kind, in any case; what registers them is imported when it is asked for.

    A registry may know the names in a room before it imports it (`_listed`): a wrong name is then told without any
    import, and a right one imports one room. Rooms that list nothing, and plug-ins, are imported as soon as somebody
    asks for a name that is not listed.

    Args:
        kind: what the entries are, in error messages.
        modules: the rooms they are in.
    """

    kind: str
    modules: tuple[str, ...] = ()
    _entries: dict[str, E] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """Name -> module, of names that are known without importing it; their aliases are known from now on."""
        homes = {}
        for room in self.modules:
            for name, aliases, module in self._listed(room):
                homes[name] = module
                self._aliases |= dict.fromkeys(aliases, name)
        return homes

    def _listed(self, room: str) -> Iterable[tuple[str, tuple[str, ...], str]]:  # noqa: ARG002 - nothing is known
        """Names in a room, each with its aliases and its module, without importing it."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind!r}: {shorten(', '.join(self.names()), 300, placeholder=' ...')})"

    def _add(self, entry: E) -> None:
        key = entry.name.lower()
        for name in (key, *entry.aliases):
            if owner := self._owner(name, entry):
                raise UsageError(f"The {self.kind} name {name!r} of {entry.origin} is already taken by {owner}.")
        self._entries[key] = entry
        self._aliases.update(dict.fromkeys(entry.aliases, key))

    def _owner(self, name: str, entry: E) -> str:
        """Origin of what else has a name; empty where the name is free, or of the same component loaded again."""
        key = self._key(name)
        home = self._homes.get(key)
        if home is not None and not entry.factory.__module__.startswith(home.rpartition(".")[0] + "."):
            return BUILT_IN
        owner = self._entries.get(key)
        return owner.origin if owner is not None and _home(owner.factory) != _home(entry.factory) else ""

    def get(self, name: str) -> E:
        """The entry of a name or alias, in any case; an unknown one raises `UnknownNameError`."""
        entry = self._find(name)
        if entry is None:
            raise UnknownNameError(self.kind, name, self.names(aliases=True))
        return entry

    def entry_of(self, factory: Callable[..., Any]) -> E | None:
        """The entry that a factory was registered as."""
        return next((entry for entry in self._entries.values() if entry.factory is factory), None)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._key(name) in self._homes or self._find(name) is not None)

    def __iter__(self) -> Iterator[E]:
        for room in self.modules:
            import_room(room)
        return iter([*(self._entries[key] for key in self._homes), *self._unlisted()])

    def names(self, *, aliases: bool = False) -> list[str]:
        """Canonical names, those of plug-ins last, then the aliases on request; listed ones need no import."""
        return [*self._homes, *(entry.name for entry in self._unlisted()), *(self._aliases if aliases else ())]

    def _key(self, name: str) -> str:
        own = name.lower()
        return own if own in self._homes else self._aliases.get(own, own)

    def _find(self, name: str) -> E | None:
        if home := self._homes.get(self._key(name)):
            importlib.import_module(home)
        elif self._key(name) not in self._entries:
            self._import_unlisted()
        return self._entries.get(self._key(name))

    def _unlisted(self) -> list[E]:
        """Entries beside the listed ones, in an order that is the same whichever plug-in was found first.

        What is built in comes first, as it was registered, then what plug-ins brought, by their names.
        """
        self._import_unlisted()
        entries = [entry for key, entry in self._entries.items() if key not in self._homes]
        return sorted(entries, key=lambda entry: (entry.origin != BUILT_IN, entry.origin))

    def _import_unlisted(self) -> None:
        listed = {home.rpartition(".")[0] for home in self._homes.values()}
        for room in self.modules:
            if room not in listed:
                import_room(room)
        load_plugins()


@dataclass(repr=False)
class Registry(Catalogue[Entry]):
    """Named components of one kind.

    Args:
        kind: what they are, in error messages.
        modules: the rooms they are in.
        symbol: the name of this registry where components are decorated with it; by it the sources of a room are read
            for names.
    """

    symbol: str = ""
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

        Example: `@register_retriever("peak", title="Peak", family="distance")` above a class (docs/adding-a-method.md).

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

    def _listed(self, room: str) -> Iterable[tuple[str, tuple[str, ...], str]]:
        """Names in the decorators of a room's private modules; a test compares them with what these register."""
        for path in _private_modules(room):
            for name, keywords in _decorators(self.symbol).findall(path.read_text(encoding="utf-8")):
                given = _ALIASES.search(keywords)
                yield name, tuple(_QUOTED.findall(given[1])) if given else (), f"{room}.{path.stem}"

    def found_by(self, finder: Finder) -> Finder:
        """Decorator for a function that lists entries which come and go, such as imported data; asked every time."""
        self._finders.append(finder)
        return finder

    def _find(self, name: str) -> Entry | None:
        """What is registered, else what a finder lists now: what is found never hides what is registered."""
        return super()._find(name) or next((entry for entry in self._found() if entry.name == name.lower()), None)

    def _unlisted(self) -> list[Entry]:
        registered = super()._unlisted()
        taken = {*self._homes, *self._entries}
        return [*registered, *(entry for entry in self._found() if entry.name not in taken)]

    def _found(self) -> Iterator[Entry]:
        return (entry for finder in self._finders for entry in finder())


class MetricRegistry(Catalogue[MetricEntry]):
    """Metrics by the names of their columns, which are ordered as their entries are."""

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


def members_lacking(component: object, ability: type) -> list[str]:
    """What an ability names and a component does not have; nothing of the component is run for it.

    >>> from readbench.engine.abilities import Searcher
    >>> members_lacking(object(), Searcher)
    ['search']
    """
    homes = [home for home in ability.__mro__ if home.__module__ == ability.__module__]
    members = {name: member for home in reversed(homes) for name, member in vars(home).items() if name[0] != "_"}
    return [name for name, member in members.items() if not _has(component, name, member)]


def _has(component: object, name: str, member: object) -> bool:
    """Whether a component has a member, and one that can be called where the ability names a method."""
    found = inspect.getattr_static(component, name, None)
    return found is not None and (callable(found) or not callable(member))


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
    importlib.import_module(name)
    for path in _private_modules(name):
        importlib.import_module(f"{name}.{path.stem}")


@cache
def _private_modules(room: str) -> list[Path]:
    """Files of the private modules of a room, which is not imported for it; none where it is no package."""
    spec = find_spec(room)
    folders = spec.submodule_search_locations or () if spec else ()
    return [path for folder in folders for path in sorted(Path(folder).glob("_[!_]*.py"))]


@cache
def _decorators(symbol: str) -> re.Pattern[str]:
    """The name and the keywords of what `@RETRIEVERS.register(...)` or `@register_retriever(...)` decorates."""
    verb = rf"(?:{symbol}\.register|(?:readbench\.)?register_{symbol.lower().removesuffix('s')})"
    return re.compile(rf'^@{verb}\(\s*"([^"]+)"(.*?)^(?:class|def) ', re.MULTILINE | re.DOTALL)


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

    What is built in goes first: its names are listed, or its modules imported, so that a name taken twice is the
    plug-in's error.
    """
    report = []
    points = entry_points(group=PLUGIN_GROUP)
    for room in METRICS.modules if points else ():
        import_room(room)
    for point in points:
        try:
            point.load()
            reason = ""
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way; it must not take the tool down
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"Plug-in {point.name} ({point.value}) could not be loaded: {reason}", stacklevel=2)
        report.append((point, reason))
    for file in filter(None, os.environ.get(PLUGIN_FILES, "").split(os.pathsep)):
        _import_file(Path(file))
    return tuple(report)


def load_plugin_file(path: str | Path) -> None:
    """Run a file that registers methods, sources or metrics, here and in every process that this one starts."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"There is no plug-in {path}. Give a Python file that registers something.")
    for room in METRICS.modules:
        import_room(room)
    _import_file(file)
    known = list(filter(None, os.environ.get(PLUGIN_FILES, "").split(os.pathsep)))
    os.environ[PLUGIN_FILES] = os.pathsep.join(dict.fromkeys([*known, str(file)]))


def _import_file(file: Path) -> None:
    """Import a file under its own name, beside which it finds what it imports; once."""
    name, here = file.stem, sys.modules.get(file.stem)
    if here is not None and Path(getattr(here, "__file__", None) or "").resolve() == file:
        return
    if not name.isidentifier() or file.suffix != ".py":
        raise UsageError(f"{file} cannot be a plug-in: it needs a name like my_methods.py.")
    found = find_spec(name) if here is None else here.__spec__
    if found is not None and (not found.origin or Path(found.origin).resolve() != file):
        raise UsageError(f"{file} has the name of another module, {name}. Give it another name.")
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:  # of a suffix that Python does not know
        raise UsageError(f"{file} is no Python file.")
    sys.path.append(str(file.parent))  # what it computes is sent to other processes by its name
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        sys.path.remove(str(file.parent))
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"The plug-in {file} could not be loaded: {type(error).__name__}: {error}") from error


SOURCES = Registry(
    "dataset",
    ("readbench.benchmark.sources", "readbench.benchmark.simulators", "readbench.benchmark.imported"),
    symbol="SOURCES",
)
RETRIEVERS = Registry("method", ("readbench.engine.retrievers", "readbench.engine.references"), symbol="RETRIEVERS")
ENCODERS = Registry("encoder", ("readbench.engine.encoders",), symbol="ENCODERS")
TRANSFORMS = Registry("embedding transform", ("readbench.engine.retrievers",), symbol="TRANSFORMS")
FUSIONS = Registry("fusion mode", ("readbench.engine.retrievers",), symbol="FUSIONS")
RERANKERS = Registry("reranker", ("readbench.engine.rerankers",), symbol="RERANKERS")
METRICS = MetricRegistry("metric", ("readbench.benchmark.metrics",))
