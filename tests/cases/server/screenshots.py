"""Pictures of the service with its demo: `python -m tests.cases.server.screenshots docs/images`."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from PIL import Image

from tests.browser import chromium
from tests.cases.server.running import await_health, free_port

VIEWS = {
    "case": ("/cases/T-903", {"width": 1360, "height": 1000}, "light"),
    "dark": ("/cases/T-903", {"width": 1360, "height": 1000}, "dark"),
    "overview": ("/overview", {"width": 1360, "height": 1180}, "light"),
}
"""Address, size and theme of each picture."""


def take(folder: Path) -> None:
    """Serve the demo and write one picture a view."""
    port = free_port()
    command = [sys.executable, "-m", "readbench", "cases", "serve", "--demo", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_health(f"http://127.0.0.1:{port}", process, patience_s=600)  # the demo is made first
        with chromium() as browser:
            for name, (address, size, theme) in VIEWS.items():
                page = browser.new_page(viewport=size, color_scheme=theme)
                page.goto(f"http://127.0.0.1:{port}{address}", wait_until="networkidle")
                picture = Image.open(io.BytesIO(page.screenshot()))
                picture.convert("RGB").quantize(255, Image.Quantize.MAXCOVERAGE).save(
                    folder / f"service-{name}.png", optimize=True
                )
                page.close()
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
