"""Packages that import a module when a name of it is first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

Place = tuple[str, str]
"""A module, and a name or an attribute of a name in it."""


def open_room(room: str) -> None:
    """Let a package export what its `__init__` imports under `if TYPE_CHECKING`.

    `from readbench.room._module import Name as Name` exports a name, to type checkers too; an import without `as`
    exports nothing. `name = Other.attribute` exports an attribute of what is imported there. The package gets its
    `__all__` and `dir` from these lines.

    Args:
        room: the `__name__` of the package.
    """
    module = sys.modules[room]

    def find(name: str) -> Any:  # noqa: ANN401 - any exported object
        places = read_places(room)
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        found = _import(*places[name])
        setattr(module, name, found)
        return found

    vars(module).update(__getattr__=find, __dir__=lambda: sorted(read_places(room)))


@cache
def read_places(room: str) -> dict[str, Place]:
    """Names that a package exports in this way, and where they are defined."""
    source = Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8")
    return dict(_read_exports(ast.parse(source)))


def _read_exports(tree: ast.Module) -> Iterator[tuple[str, Place]]:
    homes: dict[str, str] = {}
    blocks = (node for node in tree.body if isinstance(node, ast.If))
    for line in (line for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING" for line in node.body):
        if isinstance(line, ast.ImportFrom):
            for alias in line.names:
                homes[alias.name] = str(line.module)
                if alias.asname:
                    yield alias.asname, (str(line.module), alias.name)
        elif isinstance(line, ast.Assign):
            path = ast.unparse(line.value)
            yield ast.unparse(line.targets[0]), (homes[path.partition(".")[0]], path)


def _import(module: str, path: str) -> Any:  # noqa: ANN401 - any exported object
    home = import_module(module)
    if hasattr(home, "__path__") and find_spec(f"{module}.{path}"):
        return import_module(f"{module}.{path}")
    return attrgetter(path)(home)
