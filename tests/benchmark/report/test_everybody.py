"""The pages of runs and leaderboards can be used by everybody: axe-core finds nothing, whatever the theme."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readbench.benchmark.report import write_standings
from tests.benchmark.report.test_site_browser import VIEWS, case
from tests.benchmark.report.test_standings_page import board
from tests.browser import AXE, Visit, axe_complaints

pytestmark = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is fetched by npm ci")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_page_of_a_run(browser: Any, poisoned: Path, scheme: str) -> None:  # noqa: ANN401
    visit = Visit(browser, poisoned, color_scheme=scheme)
    said = [
        complaint
        for address in (*VIEWS, case(poisoned))
        for complaint in axe_complaints(visit.open(address, "main h1"))
    ]
    visit.context.close()
    assert not said, "\n".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_a_leaderboard(browser: Any, tmp_path: Path, scheme: str) -> None:  # noqa: ANN401
    write_standings(board(), tmp_path / "report")
    visit = Visit(browser, tmp_path, color_scheme=scheme)
    said = axe_complaints(visit.open(expect="main table"))
    visit.context.close()
    assert not said, "\n".join(said)
