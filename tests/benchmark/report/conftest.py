"""Shared by the tests of the page: one run, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmark.report.site_runs import poisoned_run


@pytest.fixture(scope="session")
def poisoned(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """The folder of a small run with hostile names, and its page in `report`."""
    return poisoned_run(tmp_path_factory.mktemp("site"), shared_cache)
