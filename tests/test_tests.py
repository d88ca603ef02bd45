"""Every test can fail: it asserts something, itself or by a helper, and not only where errors are hidden."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from tests.conftest import SLOW_PLACES

TESTS = Path(__file__).parent
# Calls that fail when something is wrong: of unittest, numpy and pytest, of the contract suite, and of page checks.
ASSERTING = ("assert", "raises", "warns", "fail", "check", "expect")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A file of tests: its functions, and the helpers that it imports from others."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text())
        nodes = list(ast.walk(self.tree))
        self.functions = {node.name: node for node in nodes if isinstance(node, Function)}
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests.")
            for alias in node.names
        }


def _visible(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without what stands under `with suppress(...)`."""
    yield node
    for child in ast.iter_child_nodes(node):
        hides = isinstance(child, ast.With) and any("suppress" in ast.unparse(item) for item in child.items)
        if not hides:
            yield from _visible(child)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def can_fail(
    function: Function, module: Module, modules: dict[str, Module], seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a function asserts, raises, runs a checked command, or calls a function of the tests that does."""
    for node in _visible(function):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if not isinstance(node, ast.Call):
            continue
        name = _name(node)
        checked = any(key.arg == "check" and ast.unparse(key.value) == "True" for key in node.keywords)
        if checked or name.startswith(ASSERTING):
            return True
        home, helper = module, module.functions.get(name)
        if name in module.imported:
            place, original = module.imported[name]
            home = modules.get(place, module)
            helper = home.functions.get(original)
        if helper and name not in seen and can_fail(helper, home, modules, seen | {name}):
            return True
    return False


def _modules(paths: list[Path], root: Path) -> dict[str, Module]:
    return {".".join(path.relative_to(root).with_suffix("").parts): Module(path) for path in paths}


def _offenders(modules: dict[str, Module]) -> list[str]:
    return [
        f"{module.path}:{function.lineno} {name}"
        for module in modules.values()
        for name, function in module.functions.items()
        if name.startswith("test_") and not can_fail(function, module, modules)
    ]


def test_every_test_can_fail() -> None:
    offenders = _offenders(_modules(sorted(TESTS.rglob("*.py")), TESTS.parent))
    assert not offenders, "tests that assert nothing:\n" + "\n".join(offenders)


def test_a_test_that_asserts_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "helpers.py").write_text("def verify(x): assert x\ndef read(x): return x\n")
    (tmp_path / "tests" / "test_it.py").write_text(
        "from tests.helpers import read, verify\n"
        "def test_good(): verify(1)\n"
        "def test_hidden():\n    with suppress(ValueError):\n        assert read(1)\n"
        "def test_empty(): read(1)\n"
    )
    found = _offenders(_modules(sorted(tmp_path.rglob("*.py")), tmp_path))
    assert [offender.split()[-1] for offender in found] == ["test_hidden", "test_empty"]


def test_places_called_slow_exist() -> None:
    assert not [place for place in SLOW_PLACES if not (TESTS / place).exists()]


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process may use all cores")
def test_linear_algebra_of_a_worker_has_one_thread() -> None:
    pytest.importorskip("scipy.linalg")
    assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")
