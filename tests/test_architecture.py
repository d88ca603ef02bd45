"""The house stands as drawn: imports go down, rooms keep their modules to themselves, heavy things stay outside."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import readbench

PACKAGE = Path(readbench.__file__).parent
FLOORS: dict[str, set[str]] = {
    "errors": set(),
    "common": {"errors"},
    "engine": {"errors", "common"},
    "benchmark": {"errors", "common", "engine"},
    "cases": {"errors", "common", "engine"},
    "testing": {"engine", "benchmark"},
    "studies": {"errors", "common", "engine", "benchmark", "cases"},
    "cli": {"errors", "common", "engine", "benchmark", "cases", "studies"},
    "__main__": {"cli"},
    "version": set(),
}
"""Who may import whom; a floor may always import itself, and the version."""
OPTIONAL_AS_A_WHOLE = ("cases/server/", "engine/encoders/sonde_network.py")
"""Modules that need an optional package to be imported at all; nothing else imports them at its top."""
HEAVY = ("torch", "aeon", "lancedb", "ray", "fastapi", "anthropic")
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def forget_trees() -> Iterator[None]:
    """They take much memory, which the tests of other files need."""
    yield
    tree_of.cache_clear()


@cache
def imported_by(path: Path) -> tuple[str, ...]:
    """Dotted names of this package that a module imports, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names if alias.name.startswith("readbench."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "readbench":
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(names)


def name_of(path: Path) -> str:
    return ".".join(("readbench", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def test_imports_go_downwards() -> None:
    wrong = []
    for path in MODULES:
        floor = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported_by(path):
            other = name.split(".")[1]
            if other not in FLOORS[floor] | {floor, "version"}:
                wrong.append(f"{name_of(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_rooms_keep_their_modules_to_themselves() -> None:
    """A module whose name begins with an underscore is imported only inside its own folder."""
    wrong = []
    for path in MODULES:
        for name in imported_by(path):
            parts = name.split(".")
            private = next(
                (i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None
            )
            if private is not None and not name_of(path).startswith(".".join(parts[:private])):
                wrong.append(f"{name_of(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Of what stands at the top of modules; what is imported for types alone may close a circle outside `benchmark`."""
    graph = {name_of(path): set(leads_to(path)) for path in [*MODULES, PACKAGE / "__init__.py"]}
    assert not list(circles(graph))
    typed = {name_of(path): set(leads_to(path, types=True)) for path in [*MODULES, PACKAGE / "__init__.py"]}
    assert not [circle for circle in circles(typed) if any("benchmark" in name for name in circle)]


def leads_to(path: Path, *, types: bool = False) -> Iterator[str]:
    """Modules that one imports at its top; a name of a room leads to the room."""
    nodes = list(tree_of(path).body)
    nodes += [inner for node in nodes if types and isinstance(node, ast.If) for inner in node.body]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("readbench"):
            room = PACKAGE.parent.joinpath(*str(node.module).split("."))
            for alias in node.names:
                inside = (room / alias.name).is_dir() or (room / f"{alias.name}.py").is_file()
                yield f"{node.module}.{alias.name}" if inside else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("readbench"))


def circles(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """Groups of modules that each lead to all others of their group."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        reached[start], todo = set(), [start]
        while todo:
            new = graph.get(todo.pop(), set()) - reached[start]
            reached[start] |= new
            todo += new
    found = [{name for name in reached[start] if start in reached.get(name, set())} for start in graph]
    yield from (circle for number, circle in enumerate(found) if circle and circle not in found[:number])


def test_kernels_are_addressed_by_the_engine_alone() -> None:
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        for name in imported_by(path)
        if name.startswith("readbench.engine.kernels.") and not name_of(path).startswith("readbench.engine")
    ]
    assert not wrong, "\n".join(wrong)


def test_optional_packages_are_imported_where_they_are_used() -> None:
    """At the top of a module stand only packages that every installation has; some modules are optional as a whole."""
    wrong = []
    for path in MODULES:
        if path.relative_to(PACKAGE).as_posix().startswith(OPTIONAL_AS_A_WHOLE):
            continue
        tree = tree_of(path)
        names = [a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names]
        names += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        if heavy := {name.split(".")[0] for name in names} & {*HEAVY, "matplotlib"}:
            wrong.append(f"{name_of(path)} imports {', '.join(heavy)} at its top")
    assert not wrong, "\n".join(wrong)


def called_in(path: Path) -> Iterator[str]:
    """Names of the methods that a module calls on anything."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def test_one_place_fuses_and_reranks_and_one_conceals() -> None:
    """A second engine begins with one of these calls."""
    homes = {
        "combine": {"engine/method.py"},
        "rerank_by": {"engine/method.py"},
        # A reranker around a language model tells it what the Gaussian process thinks; the contract suite tries pools.
        "rerank": {"engine/method.py", "engine/rerankers/_llm.py", "engine/testing/_rerankers.py"},
        # The classifier hides its own examples from the model that it asks.
        "anonymous": {"engine/legs.py", "engine/references/_language.py"},
    }
    found: dict[str, set[str]] = {name: set() for name in homes}
    for path in MODULES:
        for name in homes.keys() & set(called_in(path)):
            found[name].add(path.relative_to(PACKAGE).as_posix())
    assert found == homes


def test_public_class_names_occur_once() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(path))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


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


def test_floors_are_light_themselves() -> None:
    code = """
import sys
import readbench.engine, readbench.benchmark
assert not {"numpy", "numba", "pyarrow"} & set(sys.modules), set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
