"""Rooms hand their names on, and import a module when a name of it is first used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import readbench

PACKAGE = Path(readbench.__file__).parent
LAZY = [
    ".".join(("readbench", *path.parent.relative_to(PACKAGE).parts))
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "open_room(__name__)" in path.read_text()
]


@pytest.mark.parametrize("name", LAZY)
def test_a_room_hands_on_every_name_that_it_promises(name: str) -> None:
    if name == "readbench.cases.server":
        pytest.importorskip("uvicorn", reason="needs the extra `service`: pip install 'readbench[service]'")
    room = import_module(name)
    assert all(getattr(room, promised) is not None for promised in room.__all__)
    assert dir(room) == room.__all__
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nonsense'"):
        room.nonsense  # noqa: B018


def test_a_room_exports_what_its_imports_name_again_and_no_more() -> None:
    found: dict[str, object] = {}
    exec("from readbench import *", found)  # noqa: S102
    assert {*found} - {"__builtins__"} == {*dir(readbench)}
    assert not {"ENCODERS", "TYPE_CHECKING", "open_room"} & {*found}
    with pytest.raises(ImportError, match="cannot import name 'Enconder'"):
        exec("from readbench.engine.encoders import Enconder")  # noqa: S102


def test_names_are_exported_by_imports_alone() -> None:
    """`__all__` would say them twice."""
    assert not [path for path in PACKAGE.rglob("__init__.py") if "__all__" in path.read_text()]


def test_a_method_and_a_dataset_import_their_modules_alone() -> None:
    code = """
import sys
from readbench.engine.registry import RETRIEVERS, SOURCES
RETRIEVERS.get("euclidean"), SOURCES.get("skab")
found = {name.rpartition(".")[2] for name in sys.modules if name.startswith(("readbench.engine.retrievers._",
    "readbench.engine.encoders", "readbench.benchmark.sources._", "readbench.benchmark.simulators"))}
assert {"_euclidean", "_skab", "_files"} <= found, found
assert not {"_dtw", "_bm25", "_embedding", "_hai", "_road", "encoders", "simulators"} & found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_imports_a_third_of_the_package(tmp_path: Path) -> None:
    code = """
import sys
from readbench.cli import app
app(sys.argv[1:], standalone_mode=False)
found = [name for name in sys.modules if name.split(".")[0] == "readbench"]
assert len(found) < 130, len(found)
"""
    small = ("--datasets", "sim_ecg", "--methods", "euclidean", "--rho", "0", "--seeds", "0", "--cap", "20")
    subprocess.run([sys.executable, "-c", code, "run", *small, "--out", tmp_path / "run"], check=True)
    assert (tmp_path / "run" / "scores.csv").exists()
