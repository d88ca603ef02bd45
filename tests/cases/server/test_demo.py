"""The demo: a library worth looking at, and a file to drop on it."""

from __future__ import annotations

from pathlib import Path

from readbench.cases.server import Settings
from readbench.cases.server._bodies import window_of_file
from readbench.cli.cases_service import DEMO_CASES, DEMO_NORMALS, DEMO_OPEN_CASES, SAMPLE, demo_library


def test_the_demo_is_made_once_and_opened_afterwards(tmp_path: Path) -> None:
    library = demo_library(tmp_path / "demo")
    summary = library.stats()
    assert (summary.cases, summary.normals, summary.labels[""]) == (
        DEMO_CASES + DEMO_OPEN_CASES + 1,
        DEMO_NORMALS,
        DEMO_OPEN_CASES,
    )
    assert len(summary.labels) == 10
    assert any(case.notes for case in library.cases())
    assert [(pair.first.id, pair.second.id) for pair in library.overview().twins] == [("T-180", "T-180-b")]
    sample = window_of_file(SAMPLE, (tmp_path / "demo" / SAMPLE).read_bytes(), Settings()).windows
    assert sample.channels(0) == library.window("T-100").channels(0)
    assert sample.values(0).shape == library.window("T-100").values(0).shape
    assert demo_library(tmp_path / "demo").stats() == summary
