"""The documentation as a site: it builds without a warning, fetches nothing, holds every public name and every command,
and everybody can use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import readbench
from readbench.cli import app
from tests.browser import axe_complaints, chromium
from tools.docs.blocks import find_blocks

pytest.importorskip("material")
pytest.importorskip("mkdocstrings_handlers.python")

ROOT = Path(__file__).parents[1]
MOST_WORDS = 18_000
"""Of all pages, beside what is generated into them."""
MOST_PAGES = 26
ADDRESS_THAT_IS_FETCHED = re.compile(
    r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:[^\"> ]+)|<link[^>]*\shref=\"?(https?:[^\"> ]+)"
)
PAGES = ("index.html", "tutorial-benchmark.html", "api.html", "cli.html", "datasets.html", "cases.html")
"""What the browser looks at: one of each kind."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(folder),
    ]  # --quiet would hide warnings
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_on_the_site_and_in_its_navigation(site: Path) -> None:
    front = (site / "index.html").read_text()
    pages = [page.stem for page in (ROOT / "docs").glob("*.md")]
    assert not [name for name in pages if not (site / f"{name}.html").exists()]
    assert not [name for name in pages if f'href="{name}.html"' not in front]


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "api.html").read_text()
    names = {name for name in dir(readbench) if name != "__version__" and not name.startswith("register_")}
    names -= {"abilities", "errors", "protocols", "testing"}  # modules: their members are there
    names |= {"Searcher", "UsageError", "Retriever", "RETRIEVER_CHECKS", "register"}
    missing = [name for name in names if f">{name}<" not in reference]
    assert not missing


@pytest.mark.slow
def test_every_command_is_in_the_reference(site: Path) -> None:
    reference = re.sub(r"<[^>]+>", "", (site / "cli.html").read_text())

    def paths(command: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - of the library under typer, whichever it is
        yield path
        for name, below in getattr(command, "commands", {}).items():
            yield from paths(below, f"{path} {name}") if not below.hidden else ()

    missing = [path for path in paths(typer.main.get_command(app), "readbench") if f"\n{path} [" not in reference]
    assert not missing


@pytest.mark.slow
def test_methods_in_tables_can_be_copied(site: Path) -> None:
    assert "<code>sonde(size=small)|ws(alpha=0.7)|rocket+nr</code>" in (site / "methods.html").read_text()
    assert not [page.name for page in site.glob("*.html") if r"\|" in page.read_text()]


def test_no_page_fetches_anything_from_elsewhere_or_shows_what_is_for_tests(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not ADDRESS_THAT_IS_FETCHED.findall(text), page.name
        assert "<!-- not run" not in text, page.name


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_pages(site: Path, scheme: str) -> None:
    """Axe finds nothing to complain about, the pages ask for nothing from elsewhere, and fit a phone."""
    pytest.importorskip("playwright")
    with chromium() as browser:
        if browser is None:
            pytest.skip("no Chromium here")
        asked: list[str] = []
        said: list[str] = []
        for width in (1280, 390):
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
            page = context.new_page()
            page.on("request", lambda request: asked.append(request.url))
            for name in PAGES:
                page.goto((site / name).as_uri())
                said += axe_complaints(page)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            context.close()
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not said, "\n".join(said)


@pytest.mark.slow
def test_the_search_answers_in_pages_that_are_opened_from_disk(site: Path) -> None:
    pytest.importorskip("playwright")
    with chromium() as browser:
        if browser is None:
            pytest.skip("no Chromium here")
        page = browser.new_page()
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")  # the key that leads to the search
        page.keyboard.type("normal residual pollution")
        page.wait_for_selector(".md-search-result__link")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.className").startswith("md-search-result__link")


def words_of(text: str) -> int:
    """Words of a page, as `wc` counts them, code and numbers in tables too; not the bars and rules of tables.

    Left out is what no reader sees in the page, comments, and what a command writes there, tables of published rows.
    """
    for block in reversed(find_blocks(text)):
        text = text[: block.start()] + text[block.end() :]
    shown = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return sum(not re.fullmatch(r"[|:-]+", word) for word in shown.split())


def test_words_are_counted() -> None:
    page = "# A page\n\n<!-- not run: why -->\n```sh\nls -l  # all\n```\n| a | .5 → .6 |\n|---|---:|\n"
    assert words_of(page) == len(["#", "A", "page", "```sh", "ls", "-l", "#", "all", "```", "a", ".5", "→", ".6"])
    assert words_of("one <!-- two\nthree --> four\n\n<!-- results: front -->\n\nfive\n\n<!-- end -->\n") == 2


def test_the_documentation_is_short() -> None:
    counted = {page.name: words_of(page.read_text()) for page in (ROOT / "docs").glob("*.md")}
    assert len(counted) <= MOST_PAGES
    assert sum(counted.values()) <= MOST_WORDS, sorted(counted.items(), key=lambda own: -own[1])[:8]


def test_long_pages_begin_with_a_summary() -> None:
    """At least forty words between the title and the first heading, table, picture or block."""
    wrong = []
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        summary = re.split(r"^(?:#+ |\||!\[|```|<!--|\* )", text.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        if words_of(text) > 500 and words_of(summary) < 40:
            wrong.append(f"{page.name}: {words_of(summary)} words")
    assert not wrong


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
