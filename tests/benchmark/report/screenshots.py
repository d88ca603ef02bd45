"""Pictures of the page of a run: `python -m tests.benchmark.report.screenshots runs/quick docs/images`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

from readbench.benchmark.report import TableStudy, read_results, write_report
from readbench.benchmark.report.site import write_site
from tests.browser import Visit, chromium

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 1280}
VIEWS = {
    "board": ("#/", WIDE, "light"),
    "case": ("#/cases?dataset=sim_tanks", {"width": 1280, "height": 1080}, "light"),
    "dataset": ("#/dataset/sim_tanks", {"width": 1280, "height": 1860}, "light"),
    "method": ("#/method/sonde%7Cws(alpha%3D0.7)%7Crocket%7Cws(alpha%3D0.7)%7Cdtw-i%2Bverdict", WIDE, "dark"),
    "phone": ("#/cases?dataset=sim_ecg", PHONE, "dark"),
}
"""Address, size and theme of each picture."""


def take(run: Path, folder: Path) -> None:
    """Write the report of a run and one picture a view of its page."""
    write_site(run, figures=write_report(TableStudy(read_results(run)), run / "report"))
    with chromium() as browser:
        for name, (address, size, theme) in VIEWS.items():
            visit = Visit(browser, run, color_scheme=theme)
            visit.page.set_viewport_size(size)
            picture = Image.open(io.BytesIO(visit.open(address).screenshot()))
            picture.convert("RGB").quantize(255, Image.Quantize.MAXCOVERAGE).save(
                folder / f"site-{name}.png", optimize=True
            )
            visit.context.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
