"""What a function leads to: of its own module only what it uses, of others whatever it imports and uses.

A study stands in one file with its tables and figures. What computes a cell must change its fingerprint, what shows it
must not.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

OTHERS = {*sys.stdlib_module_names, "numpy"}
"""Packages whose functions are no roots: their versions count where the package's modules import them."""


@dataclass(frozen=True)
class UsedCode:
    """Functions and classes of other modules, and a hash of what is used of the own one."""

    roots: tuple[Callable[..., Any], ...]
    digest: str


@cache
def find_used_code(function: Callable[..., Any]) -> UsedCode:
    """What a function leads to; functions of its folder are followed one by one, those of others are roots."""
    folder = function.__module__.rpartition(".")[0]
    own: dict[tuple[str, str], str] = {}
    roots: dict[Callable[..., Any], None] = {}
    todo = [(function.__module__, function.__name__)]
    while todo:
        place = todo.pop()
        if place in own:
            continue
        module = sys.modules[place[0]]
        node = _definitions(module)[place[1]]
        own[place] = ast.dump(node)
        for name in {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}:
            value = getattr(module, name, None)
            home = getattr(value, "__module__", None) or ""
            if name in _definitions(module):
                todo.append((module.__name__, name))
            elif isinstance(value, str | int | float | tuple):
                own[module.__name__, name] = repr(value)
            elif folder and home.rpartition(".")[0] == folder and getattr(value, "__name__", "") == name:
                todo.append((home, name))
            elif callable(value) and hasattr(value, "__qualname__") and home.split(".")[0] not in OTHERS:
                roots[value] = None
    ordered = sorted(roots, key=lambda root: (root.__module__, root.__qualname__))
    text = repr(sorted((name, said) for (_, name), said in own.items()))
    return UsedCode(tuple(ordered), hashlib.sha256(text.encode()).hexdigest())


@cache
def _definitions(module: ModuleType) -> dict[str, ast.stmt]:
    """What a module defines, by name, without docstrings."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = _bare(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {part.id: node for own in targets for part in ast.walk(own) if isinstance(part, ast.Name)}
    return found


def _bare(node: ast.stmt) -> ast.stmt:
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:]
    return node
