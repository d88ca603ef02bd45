"""A real browser, and a page opened in it from disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = "options => axe.run({ resultTypes: ['violations'], ...options }).then(found => found.violations)"
"""Only violations come back: what passes is a description of each element of the page."""
COLOURS = {"runOnly": ["color-contrast"]}
FLAGS = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync")


@contextmanager
def chromium() -> Iterator[Any]:
    """The Chromium of this machine, or the one that playwright brought; None where there is neither."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as driver:
        if path is None and not Path(driver.chromium.executable_path).exists():
            yield None
            return
        browser = driver.chromium.launch(executable_path=path, args=[*FLAGS, *sandbox])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page opened from disk, and everything it said or asked for."""

    def __init__(self, browser: Any, folder: Path, **options: Any) -> None:  # noqa: ANN401
        self.address = (folder / "report" / "index.html").resolve().as_uri()
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(("data:", self.address)):
            self.complaints.append(f"asked for {url}")

    def open(self, hash_: str = "", expect: str = "main h1") -> Any:  # noqa: ANN401
        self.page.goto("about:blank")
        self.page.goto(self.address + hash_)
        self.page.wait_for_selector(expect)
        return self.page


def axe_complaints(page: Any) -> list[str]:  # noqa: ANN401
    """What axe-core, which `npm ci` brings, finds wrong with a page; nothing where it is not there.

    In the dark theme only the colours are looked at: the elements are those of the light one.
    """
    if not AXE.is_file():
        return []
    page.evaluate(AXE.read_text(encoding="utf-8"))
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    found = page.evaluate(RUN_AXE, COLOURS if dark else {})
    return [
        f"{page.url}: {own['id']} ({own['impact']}): {len(own['nodes'])} times, {own['nodes'][0]['html'][:160]}"
        for own in found
    ]
