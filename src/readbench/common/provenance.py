"""Which code computes something: every module that functions and classes lead to, hashed without its comments.

From the modules of its roots a trace follows imports, wherever they stand in a module: an imported name leads to the
module that defines it (through the `__init__` of its room), the text "readbench.a.b" to that module. A file beside a
module counts where the module names it, as the CUDA kernel beside its caller. What is only formatting, comment,
docstring or imported for types never counts.

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
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

Root = Callable[..., Any]
"""A function or class that computes."""
Symbol = tuple[str, str]
"""A module, and a name that is imported from it; an empty name is the whole module."""
NO_NUMBERS = (
    "readbench.errors",  # what is said when nothing is computed
    "readbench.common.cache",  # what is kept, and when it was used
    "readbench.common.files",  # where things are kept, and that they are written whole
    "readbench.common.processes",
    "readbench.common.progress",
    "readbench.common.rooms",  # which module a name is imported from
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
        digest: hash of the modules and files.
        packages: other packages that are imported there, by the names they are imported by.
        modules: names of the modules that count.
        files: paths of the other files that count.
    """

    digest: str
    packages: frozenset[str]
    modules: frozenset[str]
    files: tuple[Path, ...]


def trace_code(roots: Iterable[Root], shut: Iterable[str] = ()) -> Code:
    """The code that functions and classes lead to, in their packages and in this one.

    Args:
        roots: what computes.
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

    def trace(self, roots: Iterable[str], shut: Iterable[str] = ()) -> Code:
        """The code that modules lead to.

        Args:
            roots: names of modules.
            shut: patterns of modules that are not entered.
        """
        closed = (*NO_NUMBERS, *shut)
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
        """What a module leads to; of a room only what is wanted from it."""
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
        """A module of these packages; None where there is none of that name."""
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

    Args:
        name: dotted.
        room: whether it is the `__init__` of a package.
        source: its text.

    Attributes:
        imported: where the names are defined that it imports, at its top or inside a function.
        strings: all texts in it.
        text: its code without positions; of a room without what it only hands on.
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
            for other in node.body if self.room else node.orelse:  # a room hands on what it names for types
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
                continue  # other releases of Python have other fields that are empty
            self._words.append(f"{field}[")
            for item in value if isinstance(value, list) else [value]:
                self._read(item) if isinstance(item, ast.AST) else self._words.append(repr(item))
            self._words.append("]")


@lru_cache(maxsize=1024)
def _parse(name: str, room: bool, source: str) -> _Module:  # noqa: FBT001
    return _Module(name, room, source)


def _says_only(node: ast.AST) -> bool:
    """Whether a statement is a text alone: a docstring, of a module, class, function or attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hands_on(node: ast.AST) -> bool:
    """Whether a statement of a room only names what other modules define."""
    if isinstance(node, ast.Assign | ast.Expr):
        return ast.unparse(node).startswith(("__all__ = ", "open_room"))
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imported(node: ast.Import | ast.ImportFrom, room: str) -> Iterator[tuple[str, Symbol]]:
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
