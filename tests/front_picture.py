"""The picture of the front page, answer beside leaderboard: `python -m tests.front_picture runs/quick docs/images`.

The run is one of `readbench run --suite quick`; the answer is that of the demo of the service.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from readbench.benchmark.report import TableStudy, read_results, write_report
from readbench.benchmark.report.site import write_site
from tests.browser import Visit, chromium
from tests.cases.server.running import await_health, free_port

HEIGHT, WIDTHS, SCALE = 740, (1010, 1080), 2
"""Pixels of the halves as a browser counts them, and how many of the picture's each is: letters stay sharp."""
GAP, EDGE = 20, (201, 206, 214)
"""Pixels between the halves, and the colour of the line around each."""


def take(run: Path, folder: Path) -> None:
    """Write `front.png`: a page of the service and the page of a run, both in light colours."""
    write_site(run, figures=write_report(TableStudy(read_results(run)), run / "report"), documents="../../../docs")
    port = free_port()
    command = [sys.executable, "-m", "readbench", "cases", "serve", "--demo", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_health(f"http://127.0.0.1:{port}", process, patience_s=600)  # the demo is made first
        with chromium() as browser:
            page = browser.new_page(
                viewport={"width": WIDTHS[0], "height": HEIGHT}, color_scheme="light", device_scale_factor=SCALE
            )
            page.goto(f"http://127.0.0.1:{port}/cases/T-903", wait_until="networkidle")
            visit = Visit(browser, run, color_scheme="light", device_scale_factor=SCALE)
            visit.page.set_viewport_size({"width": WIDTHS[1], "height": HEIGHT})
            halves = [_framed(page), _framed(visit.open("#/"))]
    finally:
        process.terminate()
        process.wait()
    picture = Image.new("RGB", (sum(WIDTHS) * SCALE + GAP, HEIGHT * SCALE), "white")
    for left, half in zip((0, WIDTHS[0] * SCALE + GAP), halves, strict=True):
        picture.paste(half, (left, 0))
    picture.quantize(128, Image.Quantize.MAXCOVERAGE).save(folder / "front.png", optimize=True)


def _framed(page: Any) -> Image.Image:  # noqa: ANN401 - of playwright
    shown = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    framed = Image.new("RGB", shown.size, EDGE)
    framed.paste(shown.crop((1, 1, shown.width - 1, shown.height - 1)), (1, 1))
    return framed


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
