"""The house stands as drawn: imports go downwards, heavy things stay outside, `import readbench` is fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import readbench

PACKAGE = Path(readbench.__file__).parent
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]

# What a folder or module directly under the package may import of the others; its own parts are always allowed.
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
# Optional packages, and one that is slow to import; whole rooms that are optional may have them on top.
HEAVY = ("torch", "aeon", "lancedb", "ray", "fastapi", "anthropic", "matplotlib")
OPTIONAL_ROOMS = ("training/", "cases/server/")
# Public class names that occur more than once: each is to be renamed or merged, none may be added.
NAMES_THAT_OCCUR_TWICE: dict[str, int] = {
    "Answer": 2,
    "Answers": 2,
    "Audit": 2,
    "Block": 3,
    "Body": 2,
    "Caller": 2,
    "Case": 4,
    "Cell": 2,
    "Channel": 2,
    "Column": 2,
    "Comparison": 2,
    "Entry": 3,
    "Evidence": 2,
    "Exhibit": 2,
    "Fault": 3,
    "Found": 2,
    "Grid": 2,
    "Interval": 3,
    "Lesson": 2,
    "Listener": 2,
    "Measured": 3,
    "Metrics": 2,
    "Overview": 2,
    "Part": 3,
    "Plan": 2,
    "Reference": 2,
    "Regime": 2,
    "Request": 2,
    "Row": 2,
    "Rows": 3,
    "Series": 3,
    "Service": 2,
    "Signal": 3,
    "StoredVectors": 2,
    "Study": 2,
    "Summary": 2,
    "Table": 3,
    "Telling": 2,
    "Work": 2,
}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_rooms(path: Path) -> dict[str, int]:
    """Rooms of this package that a module imports, anywhere in it, and the first line that does."""
    rooms: dict[str, int] = {}
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, (
                f"{_place(path)}:{node.lineno} imports by a relative path, which this test cannot see"
            )
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("readbench."):
                rooms.setdefault(name.split(".")[1], node.lineno)
    return rooms


def test_imports_go_downwards() -> None:
    """Every import between rooms is one that the table allows."""
    offenders = [
        f"{_place(path)}:{line} imports {other}"
        for path in MODULES
        for other, line in _imported_rooms(path).items()
        if other not in MAY_IMPORT.get(_room(path), set()) | {_room(path), "__version__"}
    ]
    assert not offenders, "imports that go upwards:\n" + "\n".join(offenders)


def test_the_table_of_imports_names_what_exists_and_has_no_circle() -> None:
    rooms = {_room(path) for path in MODULES}
    assert set(MAY_IMPORT) == rooms
    below: set[str] = set()
    while rising := {room for room in rooms - below if MAY_IMPORT[room] - {room} <= below}:
        below |= rising
    assert below == rooms, f"these may import each other in a circle: {sorted(rooms - below)}"


def test_optional_packages_are_imported_where_they_are_used() -> None:
    """At the top of a module stand only packages that every installation has."""
    offenders = []
    for path in MODULES:
        if _place(path).startswith(OPTIONAL_ROOMS):
            continue
        for node in _tree(path).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = {name.split(".")[0] for name in names} & set(HEAVY)
            offenders += [f"{_place(path)}:{node.lineno} imports {name}" for name in sorted(heavy)]
    assert not offenders, "optional packages at the top of a module:\n" + "\n".join(offenders)


def test_public_class_names_occur_once() -> None:
    """One noun means one thing in the whole package."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{_place(path)}:{node.lineno}")
    found = {name: lines for name, lines in places.items() if len(lines) > 1}
    more = [f"{name}: {', '.join(at)}" for name, at in found.items() if len(at) > NAMES_THAT_OCCUR_TWICE.get(name, 1)]
    assert not more, "class names that occur more than once:\n" + "\n".join(more)
    fewer = {name: len(places[name]) for name, count in NAMES_THAT_OCCUR_TWICE.items() if len(places[name]) < count}
    assert not fewer, f"these occur less often now, so shorten NAMES_THAT_OCCUR_TWICE: {fewer}"


def test_importing_the_package_is_fast_and_light() -> None:
    code = f"""
import sys, time
began = time.process_time()
import readbench
seconds = time.process_time() - began
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
assert seconds < 0.5, seconds
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_promised_can_be_imported() -> None:
    missing = [name for name in readbench.__all__ if getattr(readbench, name, None) is None]
    assert not missing
