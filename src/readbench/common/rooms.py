"""Rooms that hand on what their modules define, and import a module when a name of it is first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any


def open_room(room: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room whose `__init__` imports its names under `if TYPE_CHECKING`, which checkers read.

    Args:
        room: the `__name__` of the package.
    """
    places: dict[str, str] = {}

    def find(name: str) -> Any:  # noqa: ANN401 - any exported object
        module = sys.modules[room]
        if not places:
            places.update(_read_names(Path(str(module.__file__)).read_text(encoding="utf-8")))
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        found = getattr(import_module(places[name]), name)
        setattr(module, name, found)
        return found

    return find


def _read_names(source: str) -> Iterator[tuple[str, str]]:
    """Names that an `__init__` imports for types, and the modules that define them."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    yield from ((alias.name, line.module) for alias in line.names)
