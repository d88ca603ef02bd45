from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from readbench.engine.parameters import ParameterRange
from readbench.engine.registry import (
    BUILT_IN,
    ENCODERS,
    FUSIONS,
    RERANKERS,
    RETRIEVERS,
    SOURCES,
    TRANSFORMS,
    Entry,
    Registry,
)
from readbench.errors import ParameterError, UnknownNameError, UsageError
from tests.plugins import Readbench, command_line, install


class Warped:
    """Elastic distance.

    More about it.
    """

    def __init__(self, band: Annotated[float, ParameterRange(0, 1)] = 0.1, norm: Literal["none", "z"] = "z") -> None:
        self.band = band
        self.norm = norm


class Chance:
    """Random order."""


@pytest.fixture
def registry() -> Registry:
    registry = Registry("method")
    registry.register("DTW-I", title="DTW", family="distance", aliases=("dtw", "Warp"))(Warped)
    registry.register("random")(Chance)
    return registry


def test_an_entry_says_what_was_registered(registry: Registry) -> None:
    entry = registry.get("dtw-i")
    assert (entry.name, entry.title, entry.family, entry.summary) == ("dtw-i", "DTW", "distance", "Elastic distance.")
    assert entry.origin == "tests"
    assert list(entry.parameters) == ["band", "norm"]
    assert registry.get("random").title == "random"


def test_tags_are_declared_with_the_name_and_unknown_ones_refused(registry: Registry) -> None:
    registry.register("dice", tags=["by-position"])(Chance)
    assert registry.get("dice").tags == {"by-position"}
    assert registry.get("dtw-i").tags == frozenset()
    with pytest.raises(UnknownNameError, match=r"Unknown tag of dice2 'by-positon'\. Did you mean 'by-position'\?"):
        registry.register("dice2", tags=["by-positon"])


def test_registering_gives_back_what_it_decorates() -> None:
    assert Registry("method").register("random")(Chance) is Chance


@pytest.mark.parametrize("name", ["dtw-i", "DTW-I", "Dtw-i", "dtw", "DTW", "warp", "WARP"])
def test_names_and_aliases_are_found_in_any_case(registry: Registry, name: str) -> None:
    assert registry.get(name).factory is Warped
    assert name in registry


def test_names_come_in_order_of_registration_with_aliases_on_request(registry: Registry) -> None:
    assert registry.names() == ["dtw-i", "random"]
    assert registry.names(aliases=True) == ["dtw-i", "random", "dtw", "warp"]
    assert [entry.name for entry in registry] == ["dtw-i", "random"]


def test_an_unknown_name_suggests_names_and_aliases(registry: Registry) -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown method 'randum'\. Did you mean 'random'\?"):
        registry.get("randum")
    with pytest.raises(UnknownNameError, match="'warp'"):
        registry.get("WRAP")
    assert "randum" not in registry
    assert 3 not in registry


@pytest.mark.parametrize(
    ("name", "aliases"),
    [("random", ()), ("RANDOM", ()), ("dtw", ()), ("new", ("random",)), ("new", ("Warp",))],
    ids=["name", "name in other case", "name of an alias", "alias of a name", "alias of an alias"],
)
def test_a_name_that_is_taken_is_refused(registry: Registry, name: str, aliases: tuple[str, ...]) -> None:
    class Other:
        pass

    with pytest.raises(UsageError, match=r"method name '\w+' of tests is already taken by tests"):
        registry.register(name, aliases=aliases)(Other)
    assert registry.names() == ["dtw-i", "random"]
    assert "new" not in registry


def test_another_class_of_the_same_name_does_not_slip_in(registry: Registry) -> None:
    impostor = type("Chance", (), {"__module__": "elsewhere", "__qualname__": "Chance"})
    with pytest.raises(UsageError, match="'random' of elsewhere is already taken by tests"):
        registry.register("random")(impostor)
    assert registry.get("random").factory is Chance


def test_a_module_that_is_loaded_again_may_register_again(registry: Registry) -> None:
    registry.register("random", title="Random")(Chance)
    assert registry.get("random").title == "Random"
    assert registry.names() == ["dtw-i", "random"]


def test_building_passes_checked_parameters(registry: Registry) -> None:
    built = registry.get("dtw-i").build(band=0.3)
    assert (built.band, built.norm) == (0.3, "z")
    with pytest.raises(ParameterError, match=r"The 'band' parameter of dtw-i must be a float in the range \[0, 1\]"):
        registry.get("dtw-i").build(band=2.0)
    with pytest.raises(UnknownNameError, match=r"Unknown parameter of dtw-i 'bnad'\. Did you mean 'band'"):
        registry.get("dtw-i").build(bnad=0.3)


@pytest.mark.parametrize("missing", ["not_installed_here", "not_installed_here.part", "json.not_there"])
def test_a_missing_module_makes_it_unavailable_and_says_what_to_install(registry: Registry, missing: str) -> None:
    registry.register("heavy", requires=("json", missing), extra="models")(Warped)
    entry = registry.get("heavy")
    assert entry.unavailable() == f"needs {missing}: pip install 'readbench[models]'"
    with pytest.raises(UsageError, match=r"heavy needs .*pip install"):
        entry.build()


def test_without_an_extra_the_missing_modules_themselves_are_named(registry: Registry) -> None:
    registry.register("heavy", requires=("not_installed_here",))(Warped)
    assert registry.get("heavy").unavailable() == "needs not_installed_here: pip install not_installed_here"


def test_an_obstacle_makes_it_unavailable_by_name_but_parameters_may_remove_it(registry: Registry) -> None:
    registry.register("framed", unavailable=lambda: "needs weights: fetch them")(Warped)
    entry = registry.get("framed")
    assert entry.unavailable() == "needs weights: fetch them"
    assert entry.build(band=0.3).band == 0.3


def test_missing_modules_are_told_before_any_obstacle(registry: Registry) -> None:
    def refused() -> str:
        raise AssertionError("asked without its modules")

    registry.register("framed", requires=("not_installed_here",), unavailable=refused)(Warped)
    assert registry.get("framed").unavailable().startswith("needs not_installed_here")


def test_what_needs_nothing_is_available(registry: Registry) -> None:
    registry.register("light", requires=("json", "importlib.metadata"))(Warped)
    assert registry.get("light").unavailable() == ""
    assert registry.get("random").unavailable() == ""


def test_asking_about_an_optional_package_does_not_import_it() -> None:
    code = (
        "import sys; from readbench.engine.registry import Registry; r = Registry('method');"
        "r.register('x', requires=('sqlite3',))(type('X', (), {}));"
        "assert r.get('x').unavailable() == ''; assert 'sqlite3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "registry", [SOURCES, RETRIEVERS, ENCODERS, TRANSFORMS, FUSIONS, RERANKERS], ids=lambda r: r.kind
)
def test_names_that_are_read_from_the_sources_are_those_that_are_registered(registry: Registry) -> None:
    """A name is looked for in the decorators of a room before it is imported: what is not seen there is not found."""
    seen = [listed for room in registry.modules for listed in registry._listed(room)]
    entries = [entry for entry in registry if entry.origin == BUILT_IN]
    assert [(entry.name, entry.aliases) for entry in entries] == [(name, aliases) for name, aliases, _ in seen]
    for entry, (_, _, module) in zip(entries, seen, strict=True):
        assert entry.factory.__module__ == module, entry.name


def test_wrong_names_and_lists_of_names_import_nothing_that_computes() -> None:
    code = """
import sys
from readbench.engine.registry import ENCODERS, RETRIEVERS, SOURCES
from readbench.errors import UnknownNameError
for registry, wrong in ((RETRIEVERS, "euclidian"), (ENCODERS, "sond"), (SOURCES, "sim_tank")):
    assert wrong not in registry
    try:
        registry.get(wrong)
    except UnknownNameError as error:
        assert error.suggestions
    assert registry.names(aliases=True)
assert "ED" in RETRIEVERS
found = {"numpy", "scipy", "readbench.engine.retrievers", "readbench.benchmark.protocol"} & set(sys.modules)
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_listed_name_that_another_package_takes_is_refused_before_its_module_is_imported() -> None:
    registry = Registry("method", ("readbench.engine.retrievers",), symbol="RETRIEVERS")
    for name in ("euclidean", "ed"):
        with pytest.raises(UsageError, match=f"'{name}' of tests is already taken by readbench"):
            registry.register(name)(Warped)


def test_what_is_found_comes_and_goes_and_never_hides_what_is_registered(registry: Registry) -> None:
    there = ["mine", "random"]
    registry.found_by(lambda: (Entry(name, Chance, name, "", "Found.", origin="imported") for name in there))
    assert registry.get("MINE").origin == "imported"
    assert registry.get("random").origin == "tests"
    assert registry.names() == ["dtw-i", "random", "mine"]
    there.clear()
    assert "mine" not in registry


def test_every_built_in_method_says_what_it_is() -> None:
    for entry in RETRIEVERS:
        assert entry.summary.endswith("."), entry.name
        assert entry.family, entry.name
        assert entry.title, entry.name


METHOD = '''
"""A method from another package."""

import numpy as np

from readbench.engine.registry import RETRIEVERS


@RETRIEVERS.register("my-method", title="Mine", family="trivial", aliases=("mine",))
class LastFirst:
    """The latest item first."""

    uses_labels = False
    corpus_dependent = False

    def __init__(self, step: float = 1.0) -> None:
        self.step = step

    def fit(self, corpus, normals):
        self.items_ = len(corpus)
        return self

    def score(self, queries):
        return np.tile(np.arange(self.items_, dtype=np.float32) * self.step, (len(queries), 1))
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def readbench(site: Path, tmp_path: Path) -> Readbench:
    return command_line(site, tmp_path)


def methods(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return {fact["name"]: fact for fact in json.loads(done.stdout)}


def test_a_plug_in_from_another_package_is_listed_and_runs(readbench: Readbench, site: Path, tmp_path: Path) -> None:
    install(site, "their-methods", METHOD)
    listed = methods(readbench("list", "methods", "--json"))
    assert listed["my-method"]["origin"] == "their-methods 1.2.3"
    assert listed["my-method"]["parameters"] == {"step": 1.0}
    assert listed["euclidean"]["origin"] == "readbench"

    done = readbench(
        "run", "--datasets", "sim_tanks", "--methods", "MINE(step=2)", "--rho", "0", "--seed", "0", "--out", "mine"
    )
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "mine" / "scores.csv").read_text().splitlines()
    assert len(rows) == 2
    assert "my-method(step=2)" in rows[1]
    assert rows[1].endswith(",ok")


RAISES = "raise RuntimeError('no licence file')"
TAKES_A_NAME = METHOD.replace("my-method", "euclidean")


@pytest.mark.parametrize(
    ("code", "reason"),
    [(RAISES, "RuntimeError: no licence file"), (TAKES_A_NAME, "already taken by readbench")],
    ids=["raises", "takes a name"],
)
def test_a_broken_plug_in_warns_and_all_other_methods_stay(
    readbench: Readbench, site: Path, code: str, reason: str
) -> None:
    install(site, "a-broken-one", code)
    install(site, "their-methods", METHOD)
    done = readbench("list", "methods", "--json")
    listed = methods(done)
    assert listed["euclidean"]["origin"] == "readbench"
    assert listed["my-method"]["origin"] == "their-methods 1.2.3"
    assert "Plug-in a-broken-one" in done.stderr
    assert reason in done.stderr


def test_the_doctor_names_a_broken_plug_in_and_exits_with_1(readbench: Readbench, site: Path) -> None:
    install(site, "a-broken-one", RAISES)
    install(site, "their-methods", METHOD)
    done = readbench("doctor", "--json")
    assert done.returncode == 1
    states = {row["part"]: row["state"] for row in json.loads(done.stdout)}
    assert states["plug-in a-broken-one"] == "broken: RuntimeError: no licence file"
    assert states["plug-in their-methods"] == "their-methods 1.2.3"


def test_a_built_in_name_is_safe_whichever_registry_is_used_first(site: Path) -> None:
    install(site, "a-broken-one", TAKES_A_NAME)
    code = (
        "import warnings; warnings.simplefilter('ignore');"
        "from readbench.engine.registry import ENCODERS, RETRIEVERS; ENCODERS.names();"
        "assert RETRIEVERS.get('euclidean').origin == 'readbench'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": str(site)})


def test_the_doctor_is_content_with_a_plug_in_that_works(readbench: Readbench, site: Path) -> None:
    install(site, "their-methods", METHOD)
    done = readbench("doctor")
    assert done.returncode == 0, done.stdout
    assert "their-methods 1.2.3" in done.stdout
