"""Which code computes something: every definition that functions and classes lead to, hashed without its comments.

From its roots a trace follows names: a function leads to what it names, an imported name to the module that defines it
(through the `__init__` of its room), the text "readbench.a.b" to that module. Statements of a module that define
nothing but do something count as soon as anything of the module does. A file beside a module counts where the module
names it, as the CUDA kernel beside its caller. What is only formatting, comment or docstring never counts.

What a trace cannot see is what is looked up by a text at run time. Components of methods are, so they are roots.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

Root = Callable[..., Any]
"""A function or class that computes."""
Symbol = tuple[str, str]
"""A module, and a name that it defines; an empty name is the whole module."""
NO_NUMBERS = (
    "readbench.errors",  # what is said when nothing is computed
    "readbench.common.cache",  # what is kept, and when it was used
    "readbench.common.files",  # where things are kept, and that they are written whole
    "readbench.common.processes",
    "readbench.common.progress",
    "readbench.common.provenance",  # a fingerprint of another form is another fingerprint anyway
    "readbench.benchmark.runs._fingerprint",
)
"""Modules on the way that have no influence on any number."""
NOT_COMPUTING = frozenset({"filelock", "huggingface_hub", "platformdirs", "pyarrow", "pydantic", "threadpoolctl"})
"""Packages on the way of a number that only store, check or carry it. All others compute."""
WEIGHTS = (".onnx",)
"""Files that count where they are read, by what a method says of its weights: it may read others."""
MODULE_NAME = re.compile(r"\w+(\.\w+)+")
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Code:
    """What a trace found.

    Args:
        digest: hash of the definitions and files.
        packages: other packages that are imported there, by the names they are imported by.
        lines: by module, the first and last line of each statement that counts.
        files: paths of the other files that count.
    """

    digest: str
    packages: frozenset[str]
    lines: Mapping[str, tuple[tuple[int, int], ...]]
    files: tuple[Path, ...]


def trace_code(roots: Iterable[Root], shut: Iterable[str] = ()) -> Code:
    """The code that functions and classes lead to, in their own packages and in this one.

    Args:
        roots: what computes.
        shut: patterns of modules that are not entered.
    """
    return _traced(tuple(roots), tuple(shut))


@lru_cache(maxsize=256)
def _traced(roots: tuple[Root, ...], shut: tuple[str, ...]) -> Code:
    names = {"readbench", *(root.__module__.split(".")[0] for root in roots)}
    places = ((name, _place(sys.modules[name])) for name in sorted(names))
    sources = _opened(tuple((name, place) for name, place in places if place))
    return sources.trace(map(symbol_of, roots), shut)


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions of those packages that compute, by the names they are imported by."""
    return {name: found for name in sorted(set(packages) - NOT_COMPUTING) if (found := _version(name))}


@cache
def _version(package: str) -> str:
    """Empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:  # it is imported by another name than it is installed by
        names = packages_distributions().get(package, ())
        return " ".join(version(name) for name in sorted(set(names)))


class Sources:
    """Packages whose code is read; everything else is foreign.

    Args:
        packages: by name, the folder of a package or the file of a module.
    """

    def __init__(self, packages: Mapping[str, Path]) -> None:
        self._packages = packages
        self._read: dict[str, _Module | None] = {}

    def trace(self, roots: Iterable[Symbol], shut: Iterable[str] = ()) -> Code:
        """The code that roots lead to.

        Args:
            roots: modules and names.
            shut: patterns of `module` that are not entered.
        """
        return _Trace(self, (*NO_NUMBERS, *shut)).run(roots)

    def module(self, name: str) -> _Module | None:
        """A module of these packages; None where there is none of that name."""
        if name not in self._read:
            path = self._locate(name)
            self._read[name] = _parse(name, path.name == "__init__.py", path.read_text()) if path else None
        return self._read[name]

    def files_beside(self, name: str, texts: set[str]) -> list[Path]:
        """Files that are no Python in the folder of a module, or in plain folders there, which these texts name."""
        path = self._locate(name)
        found = _other_files(path.parent) if path else {}
        return [file for file, names in found.items() if not names.isdisjoint(texts)]

    def _locate(self, name: str) -> Path | None:
        top, *rest = name.split(".")
        base = self._packages.get(top)
        if base is None or (rest and base.suffix == ".py"):
            return None
        if base.suffix == ".py":
            return base
        place = base.joinpath(*rest)
        paths = (place / "__init__.py", place.with_suffix(".py") if rest else place / "__init__.py")
        return next((path for path in paths if path.is_file()), None)


def symbol_of(root: Root) -> Symbol:
    """Where a function or class is defined."""
    return root.__module__, root.__qualname__.split(".")[0]


def _place(module: ModuleType) -> Path | None:
    """The folder of a package, or the file of a module; None for what was typed in."""
    place = next(iter(getattr(module, "__path__", ())), None) or getattr(module, "__file__", None)
    return Path(place) if place else None


@cache
def _opened(packages: tuple[tuple[str, Path], ...]) -> Sources:
    return Sources(dict(packages))


@cache
def _other_files(folder: Path) -> dict[Path, set[str]]:
    """Files that are no Python in a folder and in its folders that are no rooms, with the texts that name them."""
    found: dict[Path, set[str]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not (path / "__init__.py").exists() and path.name != "__pycache__":
            inside = (file for file in sorted(path.rglob("*")) if file.is_file())
            found |= {file: {file.name, file.stem, file.relative_to(folder).as_posix()} for file in inside}
        elif path.is_file() and path.suffix != ".py":
            found[path] = {path.name, path.stem}
    return {path: names for path, names in found.items() if path.suffix not in WEIGHTS}


def _content(path: Path) -> str:
    """What a file says, without its comments where these are known."""
    if path.suffix == ".toml":
        return repr(tomllib.loads(path.read_text()))
    if path.suffix == ".cu":
        lines = (" ".join(line.split()) for line in C_COMMENT.sub(" ", path.read_text()).splitlines())
        return "\n".join(filter(None, lines))
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- one module --------------------------------------------------------------------------------------------------


class _Statement:
    """A statement at the top of a module: its code as a text without positions, and what it names."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        decorators = getattr(node, "decorator_list", [])
        self.lines = min([node.lineno, *(d.lineno for d in decorators)]), node.end_lineno or node.lineno

    @cached_property
    def reading(self) -> _Reading:
        return _Reading(self.node)


class _Reading:
    """One pass over a statement.

    Attributes:
        text: its code.
        names: all names in it, and attributes of names as pairs.
        imports: modules and names that are imported inside it.
        strings: all texts in it.
    """

    def __init__(self, node: ast.stmt) -> None:
        self.names: set[tuple[str, str]] = set()
        self.imports: set[Symbol] = set()
        self.strings: set[str] = set()
        self._words: list[str] = []
        self._visit(node)
        self.text = " ".join(self._words)

    def _visit(self, node: ast.AST) -> None:
        if _says_only(node):
            return
        if isinstance(node, ast.If) and _only_for_types(node):
            for other in node.orelse:
                self._visit(other)
            return
        self._note(node)
        self._words.append(type(node).__name__)
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                self._words.append(field)
                self._visit(value)
            elif isinstance(value, list) and value:
                self._words.append(f"{field}[")
                for item in value:
                    self._visit(item) if isinstance(item, ast.AST) else self._words.append(repr(item))
                self._words.append("]")
            elif value not in (None, []) or isinstance(node, ast.Constant):
                self._words.append(f"{field}={value!r}")

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self.names.add((node.value.id, node.attr))
        elif isinstance(node, ast.Name):
            self.names.add((node.id, ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.strings.add(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.update(symbol for _, symbol in _imported(node))


class _Module:
    """A parsed module.

    Args:
        name: dotted.
        room: whether it is the `__init__` of a package.
        text: its source.
    """

    def __init__(self, name: str, room: bool, text: str) -> None:  # noqa: FBT001
        self.name, self.room = name, room
        self.defined: dict[str, list[_Statement]] = {}
        self.imported: dict[str, Symbol] = {}
        self.effects: list[_Statement] = []
        self.statements: list[_Statement] = []
        for node in ast.parse(text).body:
            self._take(node)
        for statement in self.statements:
            self._attach(statement)

    def _take(self, node: ast.stmt) -> None:
        if _says_only(node) or (isinstance(node, ast.If) and _only_for_types(node) and not node.orelse):
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported.update(_imported(node, self.name if self.room else self.name.rpartition(".")[0]))
            return
        statement = _Statement(node)
        self.statements.append(statement)
        bound = _bound_by(node)
        for name in bound:
            self.defined.setdefault(name, []).append(statement)
        if not bound or not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign):
            self.effects.append(statement)

    def _attach(self, statement: _Statement) -> None:
        """What a decorator hands to a definition of the module counts with it, as a model that numba registers."""
        decorators = getattr(statement.node, "decorator_list", [])
        named = {n.id for decorator in decorators for n in ast.walk(decorator) if isinstance(n, ast.Name)}
        for name in named & self.defined.keys():
            if any(isinstance(own.node, ast.ClassDef | ast.FunctionDef) for own in self.defined[name]):
                self.defined[name].append(statement)


@lru_cache(maxsize=1024)
def _parse(name: str, room: bool, text: str) -> _Module:  # noqa: FBT001
    return _Module(name, room, text)


def _says_only(node: ast.AST) -> bool:
    """Whether a statement is a text alone: a docstring, of a module, class, function or attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _only_for_types(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported(node: ast.Import | ast.ImportFrom, room: str = "") -> Iterator[tuple[str, Symbol]]:
    """Names that an import binds, and what to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            # `import a.b` binds `a`, and means `a.b`
            yield alias.asname or alias.name.split(".")[0], (alias.name, "")
        return
    module = node.module or ""
    if node.level:
        module = ".".join([*room.split(".")[: len(room.split(".")) - node.level + 1], *filter(None, [module])])
    for alias in node.names:
        yield alias.asname or alias.name, (module, "" if alias.name == "*" else alias.name)


def _bound_by(node: ast.stmt) -> set[str]:
    """Names that a statement defines at the top of its module."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    stored = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    inner = (n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom))
    return {*stored, *(name for each in inner for name, _ in _imported(each))}


# --- the way from roots ------------------------------------------------------------------------------------------


class _Trace:
    """One walk over the code.

    Args:
        sources: where code is read.
        shut: patterns of modules that are not entered.
    """

    def __init__(self, sources: Sources, shut: tuple[str, ...]) -> None:
        self._sources = sources
        self._shut = shut
        self._closed: dict[str, bool] = {}
        self._todo: list[Symbol] = []
        self._seen: set[Symbol] = set()
        self._counted: dict[str, dict[_Statement, None]] = {}
        self._aliases: dict[str, set[str]] = {}
        self._packages: set[str] = set()

    def run(self, roots: Iterable[Symbol]) -> Code:
        """Follow everything from the roots, and hash it."""
        for root in roots:
            self._reach(root)
        while self._todo:
            self._enter(*self._todo.pop())
        return self._result()

    def _reach(self, symbol: Symbol) -> None:
        if symbol not in self._seen:
            self._seen.add(symbol)
            self._todo.append(symbol)

    def _enter(self, name: str, wanted: str) -> None:
        """Count what defines a symbol."""
        module = self._sources.module(name)
        if wanted and (module is None or module.room) and (inner := self._sources.module(f"{name}.{wanted}")):
            module, name, wanted = inner, inner.name, ""
        if module is None:
            self._packages.add(name.split(".")[0])
            return
        if self._is_shut(name):
            return
        for statement in module.effects:
            self._count(module, statement)
        if wanted in module.defined:
            for statement in module.defined[wanted]:
                self._count(module, statement)
        elif wanted in module.imported:
            self._reach(module.imported[wanted])
        elif not (wanted.startswith("__") and wanted.endswith("__")):  # the whole, or what nobody can find
            for statement in module.statements:
                self._count(module, statement)

    def _count(self, module: _Module, statement: _Statement) -> None:
        counted = self._counted.setdefault(module.name, {})
        if statement in counted:
            return
        counted[statement] = None
        reading = statement.reading
        for name, attribute in reading.names:
            self._follow(module, name, attribute)
        for symbol in reading.imports:
            self._reach(symbol)
        for text in reading.strings:
            if MODULE_NAME.fullmatch(text) and (named := self._sources.module(text)) and not named.room:
                self._reach((text, ""))

    def _follow(self, module: _Module, name: str, attribute: str) -> None:
        if name in module.defined:
            self._reach((module.name, name))
        elif name in module.imported:
            target, inner = module.imported[name]
            self._aliases.setdefault(module.name, set()).add(f"{name}={target}.{inner}")
            held = self._module_named(target, inner) if attribute else ""
            self._reach((held, attribute) if held else (target, inner))

    def _module_named(self, target: str, inner: str) -> str:
        """The module that an import binds; empty where it binds something else."""
        module = self._sources.module(target)
        if inner:
            module = None if module and not module.room else self._sources.module(f"{target}.{inner}")
        return module.name if module else ""

    def _is_shut(self, name: str) -> bool:
        if name not in self._closed:
            self._closed[name] = any(fnmatch(name, pattern) for pattern in self._shut)
        return self._closed[name]

    def _result(self) -> Code:
        digest = hashlib.sha256()
        files: dict[Path, None] = {}
        for name, counted in sorted(self._counted.items()):
            ordered = sorted(counted, key=lambda statement: statement.lines)
            digest.update(repr((name, sorted(self._aliases.get(name, ())))).encode())
            digest.update("\n".join(statement.reading.text for statement in ordered).encode())
            texts = set[str]().union(*(statement.reading.strings for statement in ordered))
            for path in self._sources.files_beside(name, texts):
                files[path] = None
                digest.update(f"{path.name} {_content(path)}".encode())
        foreign = self._packages - set(sys.stdlib_module_names)
        lines = {name: tuple(sorted(s.lines for s in counted)) for name, counted in self._counted.items()}
        return Code(digest.hexdigest()[:16], frozenset(foreign), lines, tuple(files))
