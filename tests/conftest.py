"""Shared by all tests: a private cache, and the real data only where READBENCH_DATA says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from typer import main, testing

from tests.browser import chromium

# Workers fill the cores already: threads of linear algebra beside them would wait for each other. Set before numpy is
# imported, by the tests or by processes that they start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Property tests draw the same examples every time, so that a failure is the change's; `make test-random` draws others,
# more of them, and prints for a failure what has to be put above the test to see it again.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "random", settings.get_profile("repeatable"), derandomize=False, max_examples=200, print_blob=True
)
settings.load_profile(os.environ.get("READBENCH_EXAMPLES", "repeatable"))


# Typer builds all commands from their signatures at each call, which takes longer than most calls.
main.get_command = vars(testing)["_get_command"] = cache(main.get_command)

# Programs among the tests, whose doctests are collected only where what they import is installed.
NEEDS = {"front_picture.py": ("uvicorn",), "research/export_checkpoints.py": ("torch",)}
collect_ignore = [file for file, packages in NEEDS.items() if not all(map(find_spec, packages))]

SLOW_FIXTURES = {"real_data", "browser"}
SLOW_PLACES = (
    "benchmark/exchange",
    "benchmark/protocol/test_describe.py",
    "benchmark/protocol/test_frozen.py",
    "benchmark/report",
    "benchmark/runs",
    "benchmark/simulators",
    "cases/server/test_agents.py",
    "cases/server/test_benchmark.py",
    "cases/server/test_demo.py",
    "cases/server/test_life.py",
    "cases/server/test_openapi.py",
    "cases/test_benchmark.py",
    "cases/test_bulk.py",
    "cases/test_check.py",
    "cases/test_cli.py",
    "cases/test_postgres.py",
    "cases/test_store.py",
    "cli/test_cli.py",
    "cli/test_exchange.py",
    "engine/encoders/test_programs.py",
    "engine/encoders/test_rocket.py",
    "engine/llm/test_every_method.py",
    "engine/llm/test_rerank.py",
    "engine/llm/test_run.py",
    "engine/references",
    "engine/rerankers/test_gpc.py",
    "engine/rerankers/test_suspicion.py",
    "engine/retrievers/test_sbd.py",
    "engine/test_composed.py",
    "engine/test_contract.py",
    "frozen",
    "paper",
    "research",
    "test_bad_situations.py",
)
"""Folders and files that run whole pipelines, compile much, start processes or kill them."""
LONG_TESTS = (
    "engine/encoders/test_rocket.py::test_features_and_levels_are_those_of_aeon",
    "engine/encoders/test_rocket.py::test_the_other_kinds_keep_the_contract",
    "engine/llm/test_every_method.py::test_every_method_survives_its_server_and_a_kill",
    "paper/test_rows.py::test_the_supervised_references_score_what_they_did[rdst]",
    "test_docs.py::test_commands_of_a_page_work_in_their_order[leaderboard]",
)
"""Beginnings of the names of tests that take half a minute and more: `make test` leaves them to `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow by its nature is marked by its fixture or its place; others carry the marker themselves."""
    here = Path(__file__).parent
    places = {here / place for place in SLOW_PLACES}
    for item in items:
        by_fixture = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        if by_fixture or places & {item.path, *item.path.parents}:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.removeprefix("tests/").startswith(LONG_TESTS):
            item.add_marker(pytest.mark.long)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Contents of files are named by their size: packed ones hold the time they were packed, and names must not."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the tests of all workers."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"


@pytest.fixture(autouse=True)
def private_cache(
    shared_cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Tests never touch the user's cache or imported data; those of one worker share what is imported."""
    monkeypatch.setenv("READBENCH_CACHE", str(shared_cache))
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path_factory.getbasetemp() / "imported"))
    return shared_cache


@pytest.fixture
def real_data() -> Path:
    """The real data, or a skip that says why."""
    variable = os.environ.get("READBENCH_DATA")
    if not variable:
        pytest.skip("READBENCH_DATA is not set: point it at a folder with one sub-folder per source")
    return Path(variable)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, or a skip that says what is missing."""
    pytest.importorskip("playwright", reason="needs playwright: pip install 'readbench[dev]'")
    with chromium() as opened:
        if opened is None:
            pytest.skip("no browser: install Chromium, or run `playwright install chromium`")
        yield opened
