"""Code provenance: hash every module that a function or class can reach, without comments.

A trace follows imports from the modules of its roots: an imported name leads to the module that defines it (through
the `__init__` of a package), the text "readbench.a.b" to that module. A data file counts where a module beside it
names it, as the CUDA kernel beside its caller. Formatting, comments, docstrings and imports for types never count.

A trace cannot see what is looked up by name at run time. Components of methods are, so they are roots.
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
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

Root = Callable[..., Any]
"""A function or class that computes a result."""
Symbol = tuple[str, str]
"""A module and a name imported from it; an empty name is the whole module."""
EXCLUDED_MODULES = (
    "readbench.errors",
    "readbench.common.cache",
    "readbench.common.files",
    "readbench.common.processes",
    "readbench.common.progress",
    "readbench.common.rooms",
    "readbench.common.provenance",  # a change of its format changes every fingerprint anyway
    "readbench.benchmark.runs._fingerprint",
)
"""Modules that influence no number; a trace does not enter them."""
NON_COMPUTING_PACKAGES = frozenset(
    {"filelock", "huggingface_hub", "platformdirs", "pyarrow", "pydantic", "threadpoolctl"}
)
"""Packages that only store, check or carry numbers; all others count by their version."""
WEIGHT_SUFFIXES = (".onnx",)
"""Weight files: a method states the digest of those it reads, so they do not count here."""
MODULE_NAME = re.compile(r"\w+(\.\w+)+")
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Code:
    """Result of a trace.

    Args:
        digest: hash of the modules and files.
        packages: import names of third-party packages.
        modules: names of the modules that count.
        files: paths of the other files that count.
    """

    digest: str
    packages: frozenset[str]
    modules: frozenset[str]
    files: tuple[Path, ...]


def trace_code(roots: Iterable[Root], shut: Iterable[str] = ()) -> Code:
    """Trace the code that functions and classes reach, in their packages and in this one.

    Args:
        roots: functions and classes.
        shut: patterns of modules that are not entered.
    """
    return _traced(tuple(dict.fromkeys(root.__module__ for root in roots)), tuple(shut))


@lru_cache(maxsize=256)
def _traced(roots: tuple[str, ...], shut: tuple[str, ...]) -> Code:
    names = {"readbench", *(root.split(".")[0] for root in roots)}
    places = ((name, _place(sys.modules[name])) for name in sorted(names))
    sources = _opened(tuple((name, place) for name, place in places if place))
    return sources.trace(roots, shut)


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions of the packages that compute, by import name."""
    return {name: found for name in sorted(set(packages) - NON_COMPUTING_PACKAGES) if (found := _version(name))}


@cache
def _version(package: str) -> str:
    """Version of a package by its import name; "" where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:  # its distribution has another name
        names = packages_distributions().get(package, ())
        return " ".join(version(name) for name in sorted(set(names)))


class Sources:
    """Packages whose source is read; all other packages count by version only.

    Args:
        packages: folder of the package, or file of the module, by name.
    """

    def __init__(self, packages: Mapping[str, Path]) -> None:
        self._packages = packages
        self._read: dict[str, _Module | None] = {}

    def trace(self, roots: Iterable[str], shut: Iterable[str] = ()) -> Code:
        """Trace the code that modules reach.

        Args:
            roots: names of modules.
            shut: patterns of modules that are not entered.
        """
        closed = (*EXCLUDED_MODULES, *shut)
        todo: list[Symbol] = [(root, "") for root in roots]
        seen, packages, counted = set[Symbol](), set[str](), dict[str, _Module]()
        while todo:
            symbol = todo.pop()
            if symbol in seen or any(fnmatch(symbol[0], pattern) for pattern in closed):
                continue
            seen.add(symbol)
            module = self._module(symbol[0])
            if module is None:
                packages.add(symbol[0].split(".")[0])
                continue
            counted[module.name] = module
            todo += self._leads(module, symbol[1])
        return self._sum_up(counted, packages)

    def _leads(self, module: _Module, wanted: str) -> Iterable[Symbol]:
        """Symbols that a module leads to; for a package, only those of the wanted name."""
        if module.room and wanted:
            if self._module(f"{module.name}.{wanted}"):
                return [(f"{module.name}.{wanted}", "")]
            if wanted in module.imported or wanted.startswith("__"):
                return module.imported.get(wanted, ())
        named = (text for text in module.strings if MODULE_NAME.fullmatch(text))
        texts = [(text, "") for text in named if (found := self._module(text)) and not found.room]
        return [*texts, *(symbol for symbols in module.imported.values() for symbol in symbols)]

    def _sum_up(self, counted: Mapping[str, _Module], packages: set[str]) -> Code:
        digest = hashlib.sha256()
        files: dict[Path, None] = {}
        for name, module in sorted(counted.items()):
            if module.text:
                digest.update(f"{name} {module.text}".encode())
            path = self._locate(name)
            for file, names in (_other_files(path.parent) if path else {}).items():
                if not names.isdisjoint(module.strings):
                    files[file] = None
                    digest.update(f"{file.name} {_content(file)}".encode())
        modules = frozenset(name for name, module in counted.items() if module.text)
        return Code(digest.hexdigest()[:16], frozenset(packages - sys.stdlib_module_names), modules, tuple(files))

    def _module(self, name: str) -> _Module | None:
        """The parsed module; None where these packages have none of that name."""
        if name not in self._read:
            path = self._locate(name)
            self._read[name] = _parse(name, path.name == "__init__.py", path.read_text()) if path else None
        return self._read[name]

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


class _Module:
    """A parsed module.

    Attributes:
        imported: names imported anywhere in it, with the symbols they stand for.
        strings: all string literals.
        text: its code without positions; of a package without re-exports.
    """

    def __init__(self, name: str, room: bool, source: str) -> None:  # noqa: FBT001
        self.name, self.room = name, room
        self.imported: dict[str, list[Symbol]] = {}
        self.strings: set[str] = set()
        self._words: list[str] = []
        for node in ast.parse(source).body:
            self._read(node)
        self.text = " ".join(self._words)

    def _read(self, node: ast.AST) -> None:
        if _says_only(node):
            return
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for other in node.body if self.room else node.orelse:  # a package re-exports its imports for types
                self._read(other)
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            for bound, symbol in _imported(node, self.name if self.room else self.name.rpartition(".")[0]):
                self.imported.setdefault(bound, []).append(symbol)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.strings.add(node.value)
        if not (self.room and _hands_on(node)):
            self._write(node)

    def _write(self, node: ast.AST) -> None:
        self._words.append(type(node).__name__)
        for field, value in ast.iter_fields(node):
            if value is None or value == []:
                continue  # releases of Python differ in their empty fields
            self._words.append(f"{field}[")
            for item in value if isinstance(value, list) else [value]:
                self._read(item) if isinstance(item, ast.AST) else self._words.append(repr(item))
            self._words.append("]")


@lru_cache(maxsize=1024)
def _parse(name: str, room: bool, source: str) -> _Module:  # noqa: FBT001
    return _Module(name, room, source)


def _says_only(node: ast.AST) -> bool:
    """Whether a statement is a docstring of a module, class, function or attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hands_on(node: ast.AST) -> bool:
    """Whether a statement of a room only names what other modules define."""
    if isinstance(node, ast.Assign | ast.Expr):
        return ast.unparse(node).startswith(("__all__ = ", "open_room"))
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imported(node: ast.Import | ast.ImportFrom, room: str) -> Iterator[tuple[str, Symbol]]:
    """Names that an import binds, and the symbols they stand for."""
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


def _place(module: ModuleType) -> Path | None:
    """The folder of a package, or the file of a module; None for code typed into a shell."""
    place = next(iter(getattr(module, "__path__", ())), None) or getattr(module, "__file__", None)
    return Path(place) if place else None


@cache
def _opened(packages: tuple[tuple[str, Path], ...]) -> Sources:
    return Sources(dict(packages))


@cache
def _other_files(folder: Path) -> dict[Path, set[str]]:
    """Data files in a folder and in its sub-folders that are no packages, with the texts that name them."""
    found: dict[Path, set[str]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not (path / "__init__.py").exists() and path.name != "__pycache__":
            inside = (file for file in sorted(path.rglob("*")) if file.is_file())
            found |= {file: {file.name, file.stem, file.relative_to(folder).as_posix()} for file in inside}
        elif path.is_file() and path.suffix != ".py":
            found[path] = {path.name, path.stem}
    return {path: names for path, names in found.items() if path.suffix not in WEIGHT_SUFFIXES}


def _content(path: Path) -> str:
    """Content of a file for the hash, without comments where the format is known."""
    if path.suffix == ".toml":
        return repr(tomllib.loads(path.read_text()))
    if path.suffix == ".cu":
        lines = (" ".join(line.split()) for line in C_COMMENT.sub(" ", path.read_text()).splitlines())
        return "\n".join(filter(None, lines))
    return hashlib.sha256(path.read_bytes()).hexdigest()
