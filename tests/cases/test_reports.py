"""A case on paper holds all it needs, and says what the library says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import Library, link_case, report_case, write_page
from readbench.cases._paper import BROWSERS, make_page
from readbench.cli import app
from readbench.errors import UsageError
from tests.cases.samples import CHANNELS, FAST, window


@pytest.fixture
def asked(library: Library) -> Library:
    """With an open case of many words."""
    rng = np.random.default_rng(5)
    library.add_one(
        window("leak", rng),
        CHANNELS,
        before=window("", rng, 80),
        units=("bar", "l/s", "rpm"),
        id="new/1",
        asset="pump 1",
        notes="Steam & <noise> at the seal",
        links=("https://tickets.example/7", "file:///shared/photo.jpg"),
    )
    return library


def test_a_report_has_answer_cases_evidence_notes_and_remarks(asked: Library) -> None:
    page = report_case(asked, "new/1", method=FAST)
    assert "Most likely leak" in page
    assert page.count("<svg") == 3, "the signals, and the evidence of two cases"
    assert "Departs in the same way: " in page
    assert "Steam &amp; &lt;noise&gt; at the seal" in page
    assert "https://tickets.example/7" in page
    assert "file://" not in page, "no link out of the browser"
    assert "80 steps before" in page
    for remark in asked.search("new/1", method=FAST).remarks:
        assert remark.replace("'", "&#x27;") in page


def test_a_report_asks_for_nothing_from_anywhere(asked: Library) -> None:
    page = report_case(asked, "new/1", method=FAST)
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<link" not in page
    assert "href=" not in page.replace('href="#', "").replace('href="https://tickets.example/7"', "")


def test_links_lead_to_the_service_where_it_is_known(asked: Library) -> None:
    page = report_case(asked, "new/1", method=FAST, address="http://plant:8000")
    best = asked.search("new/1", method=FAST).hits[0].case.id
    assert f'href="{link_case("http://plant:8000", "new/1", best)}"' in page


def test_the_only_case_has_a_report(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "one")
    library.add_one(window("leak", np.random.default_rng(0)), CHANNELS, id="first")
    assert "nothing can be said" in report_case(library, "first", method=FAST)


def test_the_command_names_the_file_by_the_case(
    asked: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["cases", "report", str(asked.store.where), "new/1", "--method", FAST])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new-1.html").read_text().startswith("<!doctype html>")


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="PDF is printed by Chromium: apt install chromium")
def test_a_page_is_printed(tmp_path: Path) -> None:
    write_page(make_page("Case", ["<h1>Case</h1>"]), tmp_path / "case.pdf")
    assert (tmp_path / "case.pdf").read_bytes().startswith(b"%PDF-")


def test_without_a_browser_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"case\.html"):
        write_page(make_page("Case", []), tmp_path / "case.pdf")
