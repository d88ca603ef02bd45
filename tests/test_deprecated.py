"""Names of the release before work for one more, and say where they are now."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import readbench
from readbench import _deprecated
from readbench.benchmark.protocol import SourceInfo
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Scaler, dense
from readbench.engine.registry import SOURCES
from tests.frozen import recipes
from tests.plugins import command_line

DOCUMENTED = {
    "cases.reading": ("windows_from",),
    "data": ("Channel", "Protocol", "Recording", "SourceInfo", "Source", "Task", "load_task"),
    "data.simulators.base": ("Simulator",),
    "encoders": ("Encoder",),
    "experiment": ("Plan", "run", "Summary"),
    "experiment.executors": ("RayCluster",),
    "parameters": ("Interval",),
    "pipeline": ("System",),
    "registry": ("SOURCES", "RETRIEVERS", "ENCODERS", "TRANSFORMS", "FUSIONS", "RERANKERS"),
    "report": ("read_results",),
    "report.tables": ("Study", "latex", "paper_tables"),
    "rerank": ("Reranker", "Pool", "View"),
    "retrieve": ("Retriever", "Hits"),
    "spec": ("parse", "parse_dataset", "MethodSpec"),
    "tables": ("Roles",),
    "windows": ("Window", "WindowSet", "dense", "normalise", "save_windows", "load_windows", "concatenate"),
}
"""What the documentation of version 0.1 told people to import."""


def moved(name: str) -> ModuleType:
    """A module of the state before, imported as if for the first time."""
    return importlib.import_module(f"readbench.{name}")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_modules_give_the_new_names_with_a_warning(name: str) -> None:
    module = moved(name)
    for own in DOCUMENTED[name]:
        with pytest.warns(DeprecationWarning, match=rf"readbench\.(\w+\.)*{own} (is now|goes in)") as told:
            assert getattr(module, own) is not None
        assert told[0].filename == __file__


def test_what_moved_is_the_same_object_under_its_new_name() -> None:
    pairs = [("registry", "SOURCES", SOURCES), ("windows", "dense", dense), ("data", "SourceInfo", SourceInfo)]
    for module, name, new in [*pairs, ("parameters", "Interval", ParameterRange)]:
        with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now "):
            assert getattr(moved(module), name) is new


def test_the_warning_names_the_front_page_where_the_name_is_there() -> None:
    with pytest.warns(DeprecationWarning, match=r"^readbench\.windows\.WindowSet is now readbench\.WindowSet\.$"):
        from readbench.windows import WindowSet  # type: ignore[import-not-found]  # noqa: PLC0415 - the warning is tested
    assert WindowSet is readbench.WindowSet
    with pytest.warns(
        DeprecationWarning, match=r"^readbench\.windows\.dense is now readbench\.engine\.preparation\.dense"
    ):
        moved("windows").dense  # noqa: B018


def test_every_place_in_the_table_exists_and_no_module_hides_a_new_one() -> None:
    for old, places in _deprecated.MOVED.items():
        for place in places:
            importlib.import_module(place)
        assert old.split(".")[0] not in readbench.__all__, old
        assert type(moved(old)).__name__ == "MovedModule", old
    for old in _deprecated.RENAMED:
        module, _, name = old.rpartition(".")
        with pytest.warns(DeprecationWarning, match=f"{old} is now .*{_deprecated.RENAMED[old]}"):
            assert getattr(moved(module), name)


def test_what_is_gone_is_an_import_error_that_says_where_the_rest_is() -> None:
    with pytest.raises(AttributeError, match=r"readbench\.encoders\.EmbeddingCache is gone; what is left of it is in"):
        moved("encoders").EmbeddingCache  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'readbench\.nonsense'"):
        importlib.import_module("readbench.nonsense")


@pytest.mark.parametrize(("name", "instead"), [("System", "Method"), ("Plan", "run"), ("parse", "Method")])
def test_names_that_left_the_front_page_say_what_to_write(name: str, instead: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"readbench\.{name} goes .*write readbench\.{instead}\(") as told:
        assert getattr(readbench, name)
    assert told[0].filename == __file__


def test_a_system_scores_as_the_method_does() -> None:
    windows = readbench.WindowSet.of(np.random.default_rng(0).normal(size=(6, 2, 20)))
    with pytest.warns(DeprecationWarning, match="System goes in the next release"):
        system = readbench.System("euclidean")
    with pytest.raises(RuntimeError, match="Call fit before score"):
        system.score(windows)
    scores = system.fit(windows, windows[:0]).score(windows[:2])
    np.testing.assert_array_equal(scores, readbench.Method("euclidean").fit(windows).score(windows[:2]))


def test_windows_are_scaled_as_before() -> None:
    windows = readbench.WindowSet.of(np.random.default_rng(0).normal(3, 2, size=(6, 2, 20)))
    with pytest.warns(DeprecationWarning, match=r"readbench\.windows\.normalise goes .*Scaler\.of"):
        normalise = moved("windows").normalise
    scaled = normalise(windows, "channel", corpus=windows)
    np.testing.assert_array_equal(scaled.chunks[0], Scaler.of("channel", windows)(windows).chunks[0])


def test_a_plug_in_of_the_state_before_is_found_by_its_entry_point_and_warned(tmp_path: Path) -> None:
    site = recipes.install_plugin(tmp_path / "site")
    done = command_line(site, tmp_path)("methods", "--json")
    assert done.returncode == 0, done.stderr
    assert '"peak"' in done.stdout
    code = "from readbench.engine.registry import SOURCES; assert SOURCES.get('frozen_waves').build(runs=24).info.title"
    told = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", code],
        env=recipes.with_site(site) | {"HOME": os.environ.get("HOME", str(tmp_path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert (
        "methods.py:13: DeprecationWarning: readbench.parameters.Interval is now readbench.ParameterRange."
        in told.stderr
    )
    assert "readbench.registry.RETRIEVERS is now readbench.engine.registry.RETRIEVERS." in told.stderr
