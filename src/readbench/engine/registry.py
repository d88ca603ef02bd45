"""Registries of methods, sources and metrics, filled by decorators and entry points of plug-ins.

>>> from readbench.engine.registry import RETRIEVERS
>>> "euclidean" in RETRIEVERS, RETRIEVERS.get("ED").name
(True, 'euclidean')

Other packages add methods, sources and metrics by an entry point in the group `readbench.plugins` that names a module;
importing the module runs its decorators:

```toml
[project.entry-points."readbench.plugins"]
mine = "my_package.methods"
```

A single file needs no package: `load_plugin_file` runs it here and in the processes that this one starts (through the
variable `READBENCH_PLUGINS`), as `readbench --plugin mine.py` does.
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
"""Environment variable with plug-in files, separated like PATH."""
BUILT_IN = "readbench"
"""Origin of entries of this package."""
MAX_METRIC_DEPTH = 100
"""Length of the lists that a run stores; no metric may read more."""
_ALIASES = re.compile(r"aliases=[(\[](.*?)[)\]]", re.DOTALL)
_QUOTED = re.compile(r'"([^"]+)"')
METRIC_NAME = re.compile(r"(?=.*[A-Z])[A-Za-z][A-Za-z0-9_.+-]*")
"""Metric names contain a capital letter, since all other columns are lower case."""


class Registered(Protocol):
    """Members of every registry entry."""

    @property
    def name(self) -> str:
        """Canonical name."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the entry."""

    @property
    def factory(self) -> Callable[..., Any]:
        """The decorated object."""

    @property
    def origin(self) -> str:
        """Package or plug-in it comes from."""


E = TypeVar("E", bound=Registered)
TAGS = {
    "by-position": "scores follow the positions of query and item, not their values: equal items need not score alike",
    "normals-last": "a known normal window is no class like the others but comes last",
}
"""Tags that a component may declare to be exempt from contract checks, and what they mean."""


@dataclass(frozen=True)
class Entry:
    """A registered component.

    Args:
        name: canonical name.
        factory: builds the component; its keyword arguments are the parameters in method texts.
        title: name in tables ("ED", "DTW-I").
        family: colour and grouping in tables and figures.
        summary: one sentence.
        aliases: other names.
        requires: modules that it needs.
        extra: the optional extra that installs them.
        obstacle: returns why it cannot run with default parameters although its modules are installed (missing weights,
            for example), or ""; must be cheap.
        positional: the parameter set by a bare value in parentheses, if any.
        abilities: Protocols of `readbench.engine.abilities` that it implements.
        origin: "readbench", or plug-in and version.
        tags: words of `TAGS` that apply.
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
        """Why it cannot run by its name alone, and the remedy; "" if it can. Continues a sentence after the name."""
        return self._missing_modules() or (self.obstacle() if self.obstacle else "")

    def _missing_modules(self) -> str:
        missing = self.missing_modules()
        return f"needs {', '.join(missing)}: {self.installation}" if missing else ""

    def missing_modules(self) -> list[str]:
        """Required modules that cannot be imported."""
        return [module for module in self.requires if not _importable(module)]

    @property
    def installation(self) -> str:
        """Command that installs the required modules."""
        wanted = f"'readbench[{self.extra}]'" if self.extra else " ".join(self.missing_modules())
        return f"pip install {wanted}"

    def abilities_of(self, component: object) -> tuple[type, ...]:
        """Abilities of a component of this entry, as declared.

        For plug-ins that declare none, they are inferred from the members for one more release, with a warning that
        shows the declaration.
        """
        if self.abilities or self.origin == BUILT_IN:
            return self.abilities
        from readbench.engine.abilities import ABILITIES  # noqa: PLC0415 - imports NumPy, which a wrong name avoids

        found = tuple(ability for ability in ABILITIES if not members_lacking(component, ability))
        if found:
            names = ", ".join(ability.__name__ for ability in found)
            warnings.warn(
                f"{self.name} of {self.origin} does not declare its abilities: write abilities=({names},) where it is"
                " registered. A later release will require it.",
                DeprecationWarning,
                stacklevel=2,
            )
        return found

    def build(self, **parameters: Value) -> Any:  # noqa: ANN401 - its protocol depends on the registry
        """Build the component with checked parameters.

        An obstacle does not stop it, since parameters may remove one, as a folder of weights does.
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
    """A metric: a column of `scores.csv`.

    Args:
        name: of the column, "NDCG@10" or "macro_F1".
        family: name without cutoff; compact tables show one metric per family.
        factory: computes it; see `register`.
        title: heading in tables.
        summary: one sentence.
        cutoff: the K of a metric at K.
        depth: places of a list that it reads.
        per_query: whether it has a value per query; otherwise one for all queries.
        larger_is_better: the direction.
        bounds: smallest and largest possible value.
        chance: computes the expected value (Q,) of random lists, from the arguments of `factory`; None if unknown.
        origin: "readbench", or plug-in and version.
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
        """Facts stored in a run folder, for display where the metric is not installed."""
        names = ("title", "family", "cutoff", "depth", "per_query", "larger_is_better", "origin")
        return {name: getattr(self, name) for name in names}

    @property
    def arguments(self) -> tuple[int, ...]:
        """Arguments of `factory` and `chance` after the lists: K, if there is one."""
        return () if self.cutoff is None else (self.cutoff,)


@dataclass
class Catalogue(Generic[E]):
    """Named entries of one kind, case-insensitive; modules that register them are imported on demand.

    A registry may know names without importing their package (`_listed`): a wrong name then needs no import, a right
    one imports one module. Other packages and plug-ins are imported when an unlisted name is requested.

    Args:
        kind: kind of entries, for error messages.
        modules: packages of the entries.
    """

    kind: str
    modules: tuple[str, ...] = ()
    _entries: dict[str, E] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """Module of each name known without import; also records their aliases."""
        homes = {}
        for room in self.modules:
            for name, aliases, module in self._listed(room):
                homes[name] = module
                self._aliases |= dict.fromkeys(aliases, name)
        return homes

    def _listed(self, room: str) -> Iterable[tuple[str, tuple[str, ...], str]]:  # noqa: ARG002 - nothing is known
        """Yield (name, aliases, module) in a package without importing it."""
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
        """Origin of the entry that already has a name; "" if it is free or the same component is loaded again."""
        key = self._key(name)
        home = self._homes.get(key)
        if home is not None and not entry.factory.__module__.startswith(home.rpartition(".")[0] + "."):
            return BUILT_IN
        owner = self._entries.get(key)
        return owner.origin if owner is not None and _home(owner.factory) != _home(entry.factory) else ""

    def get(self, name: str) -> E:
        """Get the entry of a name or alias; raise `UnknownNameError` for an unknown one."""
        entry = self._find(name)
        if entry is None:
            raise UnknownNameError(self.kind, name, self.names(aliases=True))
        return entry

    def entry_of(self, factory: Callable[..., Any]) -> E | None:
        """The entry registered for a factory."""
        return next((entry for entry in self._entries.values() if entry.factory is factory), None)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._key(name) in self._homes or self._find(name) is not None)

    def __iter__(self) -> Iterator[E]:
        for room in self.modules:
            import_room(room)
        return iter([*(self._entries[key] for key in self._homes), *self._unlisted()])

    def names(self, *, aliases: bool = False) -> list[str]:
        """Canonical names, those of plug-ins last, then aliases on request; listed names need no import."""
        return [*self._homes, *(entry.name for entry in self._unlisted()), *(self._aliases if aliases else ())]

    def _key(self, name: str) -> str:
        key = name.lower()
        return key if key in self._homes else self._aliases.get(key, key)

    def _find(self, name: str) -> E | None:
        if home := self._homes.get(self._key(name)):
            importlib.import_module(home)
        elif self._key(name) not in self._entries:
            self._import_unlisted()
        return self._entries.get(self._key(name))

    def _unlisted(self) -> list[E]:
        """Entries that are not listed: built-in ones in order of registration, then those of plug-ins by origin."""
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
        kind: kind of components, for error messages.
        modules: packages of the components.
        symbol: name of this registry in decorators, by which sources are scanned for names.
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
        """Decorate a class or factory to register it; the first line of its docstring is the summary.

        Example: `@register_retriever("peak", title="Peak", family="distance")` above a class (docs/adding-a-method.md).

        Keywords are fields of `Entry`; `unavailable` is its `obstacle`.
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
        """Scan the private modules of a package for decorators; a test compares the names with the registered ones."""
        for path in _private_modules(room):
            for name, keywords in _decorators(self.symbol).findall(path.read_text(encoding="utf-8")):
                given = _ALIASES.search(keywords)
                yield name, tuple(_QUOTED.findall(given[1])) if given else (), f"{room}.{path.stem}"

    def found_by(self, finder: Finder) -> Finder:
        """Decorate a function that lists entries which come and go, such as imported data; called on every lookup."""
        self._finders.append(finder)
        return finder

    def _find(self, name: str) -> Entry | None:
        """Find a registered entry, else one that a finder lists; finders never hide registered entries."""
        return super()._find(name) or next((entry for entry in self._found() if entry.name == name.lower()), None)

    def _unlisted(self) -> list[Entry]:
        registered = super()._unlisted()
        taken = {*self._homes, *self._entries}
        return [*registered, *(entry for entry in self._found() if entry.name not in taken)]

    def _found(self) -> Iterator[Entry]:
        return (entry for finder in self._finders for entry in finder())


class MetricRegistry(Catalogue[MetricEntry]):
    """Metrics by column name, in order of the columns."""

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
        """Decorate a function to register it as a metric; the first line of its docstring is the summary.

        It receives a `readbench.benchmark.metrics.Judgement`, cut to the places that it reads, and K if there are
        cutoffs. It returns (Q,) values, or one number if not `per_query`.

        Args:
            name: of the column, or of the family if there are cutoffs: "NDCG" becomes NDCG@1, NDCG@3, ...
            title: heading in tables, by default the name; a cutoff is appended.
            cutoffs: the Ks of a family.
            depth: places of a list that a metric without cutoffs reads.
            per_query: see `MetricEntry`.
            larger_is_better: see `MetricEntry`.
            bounds: see `MetricEntry`.
            chance: receives the same arguments as the function.
        """
        if not METRIC_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot name a metric: letters, digits and _.+- with a capital letter, as 'MRR'."
            )
        depths: dict[int | None, int | None] = {k: k for k in cutoffs} or {None: depth}
        for places in depths.values():
            if places is None or not 1 <= places <= MAX_METRIC_DEPTH:
                raise UsageError(
                    f"The metric {name} must read between 1 and {MAX_METRIC_DEPTH} places of a list; got {places}."
                    " Set cutoffs or depth."
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
    """Members of an ability that a component lacks; runs no code of the component.

    >>> from readbench.engine.abilities import Searcher
    >>> members_lacking(object(), Searcher)
    ['search']
    """
    homes = [home for home in ability.__mro__ if home.__module__ == ability.__module__]
    members = {name: member for home in reversed(homes) for name, member in vars(home).items() if name[0] != "_"}
    return [name for name, member in members.items() if not _has(component, name, member)]


def _has(component: object, name: str, member: object) -> bool:
    """Whether a component has a member, callable if the ability declares a method."""
    found = inspect.getattr_static(component, name, None)
    return found is not None and (callable(found) or not callable(member))


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _home(factory: Callable[..., Any]) -> tuple[str, str]:
    """Identity of a component that survives reloading of its module."""
    return factory.__module__, factory.__qualname__


@cache
def import_room(name: str) -> None:
    """Import a package and its private modules, so that new files register themselves."""
    importlib.import_module(name)
    for path in _private_modules(name):
        importlib.import_module(f"{name}.{path.stem}")


@cache
def _private_modules(room: str) -> list[Path]:
    """Files of a package's private modules, without importing it; none if it is no package."""
    spec = find_spec(room)
    folders = spec.submodule_search_locations or () if spec else ()
    return [path for folder in folders for path in sorted(Path(folder).glob("_[!_]*.py"))]


@cache
def _decorators(symbol: str) -> re.Pattern[str]:
    """Pattern for name and keywords of `@RETRIEVERS.register(...)` or `@register_retriever(...)`."""
    verb = rf"(?:{symbol}\.register|(?:readbench\.)?register_{symbol.lower().removesuffix('s')})"
    return re.compile(rf'^@{verb}\(\s*"([^"]+)"(.*?)^(?:class|def) ', re.MULTILINE | re.DOTALL)


def origin_of(factory: Callable[..., Any]) -> str:
    """Origin of a component: this package, or a plug-in with version."""
    package = factory.__module__.split(".")[0]
    return _plugin_origins().get(package, package)


@cache
def _plugin_origins() -> dict[str, str]:
    """Name and version of every installed plug-in, by top-level package."""
    return {
        point.module.split(".")[0]: f"{point.dist.name} {point.dist.version}"
        for point in entry_points(group=PLUGIN_GROUP)
        if point.dist is not None
    }


@cache
def load_plugins() -> tuple[tuple[EntryPoint, str], ...]:
    """Import every plug-in once; return each with the error of a broken one, or "".

    Built-in names are listed or imported first, so that a name taken twice is an error of the plug-in.
    """
    report = []
    points = entry_points(group=PLUGIN_GROUP)
    for room in METRICS.modules if points else ():
        import_room(room)
    for point in points:
        try:
            point.load()
            reason = ""
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way and must not stop the program
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"Plug-in {point.name} ({point.value}) could not be loaded: {reason}", stacklevel=2)
        report.append((point, reason))
    for file in filter(None, os.environ.get(PLUGIN_FILES, "").split(os.pathsep)):
        _import_file(Path(file))
    return tuple(report)


def load_plugin_file(path: str | Path) -> None:
    """Run a file that registers methods, sources or metrics, here and in every process started from here."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"There is no plug-in {path}. Give a Python file that registers something.")
    for room in METRICS.modules:
        import_room(room)
    _import_file(file)
    known = list(filter(None, os.environ.get(PLUGIN_FILES, "").split(os.pathsep)))
    os.environ[PLUGIN_FILES] = os.pathsep.join(dict.fromkeys([*known, str(file)]))


def _import_file(file: Path) -> None:
    """Import a file once as a module with the file's name and its folder on the path."""
    name, here = file.stem, sys.modules.get(file.stem)
    if here is not None and Path(getattr(here, "__file__", None) or "").resolve() == file:
        return
    if not name.isidentifier() or file.suffix != ".py":
        raise UsageError(f"{file} cannot be a plug-in: it needs a name like my_methods.py.")
    found = find_spec(name) if here is None else here.__spec__
    if found is not None and (not found.origin or Path(found.origin).resolve() != file):
        raise UsageError(f"{file} has the name of another module, {name}. Give it another name.")
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:  # a suffix unknown to Python
        raise UsageError(f"{file} is no Python file.")
    sys.path.append(str(file.parent))  # other processes import the module by its name
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
