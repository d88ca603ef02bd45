"""The live demonstration: a real Prometheus, a fault, and the notice on the page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

LIVE: Any = pytest.importorskip("research.live_demo", reason="research/ is beside the package, in a checkout")


@pytest.mark.long
def test_the_notice_arrives_in_time_with_the_right_case_first_and_the_page_shows_it(
    browser: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip("no Prometheus server: install it (Debian: apt install prometheus)")
    said: list[str] = []
    with LIVE.running_demo(tmp_path, "leak in tank 1", 0, said.append) as result:
        assert result.notice is not None, said
        assert result.right
        assert result.named, result.notice.text
        assert result.notice.told - result.onset <= LIVE.DELAY * LIVE.WINDOW * LIVE.STEP_S
        context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=result.address)
        page = context.new_page()
        page.goto("/notices")
        told = page.locator(".notice").first
        assert told.locator("h2").inner_text() == result.notice.text
        assert told.locator(".told li .fault").first.inner_text() == "leak in tank 1"
        told.get_by_text("Open the range").click()
        page.wait_for_selector("#mark[data-drawn]")
        assert page.locator("#whole figure").count() == 8
        context.close()
