"""The house stands as drawn: imports go downwards, heavy things stay outside, `import readbench` is fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import readbench

PACKAGE = Path(readbench.__file__).parent
GROUND = {
    "common",
    "errors",
    "kernels",
    "plots",
    "locks",
    "processes",
    "parameters",
    "windows",
    "registry",
    "spec",
    "ranking",
    "paths",
    "tables",
}
FIRST = {"data", "encoders", "retrieve", "rerank", "supervised", "evaluate"}
MAY_IMPORT: dict[str, set[str]] = {
    "common": set(),
    "errors": set(),
    "paths": set(),
    "plots": set(),
    "locks": set(),
    "processes": {"common", "errors"},
    "kernels": {"errors"},
    "ranking": {"errors"},
    "parameters": {"errors"},
    "windows": {"errors"},
    "tables": {"errors", "windows"},
    "registry": {"errors", "parameters"},
    "spec": {"errors", "parameters", "registry"},
    "data": GROUND,
    "training": set(),
    "encoders": GROUND,
    "llm": GROUND,
    "retrieve": GROUND | {"encoders"},
    "evaluate": GROUND,
    "rerank": GROUND | {"encoders", "retrieve", "llm"},
    "supervised": GROUND | {"encoders", "retrieve", "llm"},
    "pipeline": GROUND | {"encoders", "retrieve", "rerank"},
    "experiment": GROUND | FIRST | {"pipeline", "llm"},
    "cases": GROUND | {"common", "encoders", "retrieve", "rerank", "pipeline"},
    "scale": GROUND | FIRST | {"pipeline", "experiment"},
    "report": GROUND | FIRST | {"common", "pipeline", "experiment", "scale"},
    "testing": GROUND | FIRST | {"pipeline"},
    "bench": GROUND | FIRST | {"pipeline", "cases"},
    "cli": GROUND | FIRST | {"llm", "pipeline", "cases", "experiment", "scale", "report", "bench"},
    "__main__": {"cli"},
}
HEAVY = ("torch", "aeon", "lancedb", "ray", "fastapi", "anthropic")


def rooms_imported_by(path: Path) -> set[str]:
    """Rooms of this package that a module imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("readbench.")}
    return rooms


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_go_downwards(path: Path) -> None:
    room = room_of(path)
    upwards = rooms_imported_by(path) - MAY_IMPORT[room] - {room, "__version__"}
    assert not upwards, f"{room} must not import {', '.join(sorted(upwards))}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_optional_packages_are_imported_where_they_are_used(path: Path) -> None:
    """At the top of a module stand only packages that every installation has; some rooms are optional as a whole."""
    if room_of(path) == "training" or "cases/server" in path.as_posix():
        return
    tree = ast.parse(path.read_text())
    names = [a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names]
    names += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not {name.split(".")[0] for name in names} & {*HEAVY, "matplotlib"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_importing_the_package_is_fast_and_light() -> None:
    code = f"""
import sys, time
began = time.perf_counter()
import readbench
seconds = time.perf_counter() - began
loaded = [name for name in {(*HEAVY, "matplotlib")!r} if name in sys.modules]
assert not loaded, loaded
assert seconds < 0.5, seconds
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_promised_can_be_imported() -> None:
    for name in readbench.__all__:
        assert getattr(readbench, name) is not None
