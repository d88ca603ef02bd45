"""Pictures of the site: `python -m tests.benchmark.report.screenshots results runs/quick docs/images`.

The leaderboard and a dataset are of published rows, which hold no series; the case is of a run on simulated data.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from readbench.benchmark.report import TableStudy, read_results, write_report
from readbench.benchmark.report.site import write_site
from tests.browser import Visit, chromium

VIEWS = {
    "board": ("results", "#/", {"width": 1280, "height": 860}, ""),
    "dataset": ("results", "#/dataset/skab", {"width": 1280, "height": 1500}, ""),
    "case": ("run", "#/cases?dataset=sim_tanks", {"width": 1280, "height": 1080}, "j" * 15),
}
"""Folder, address and size of each picture, and the keys that are pressed first."""


def take(results: Path, run: Path, folder: Path) -> None:
    """Write the site of each folder beside a copy of it, and one picture a view."""
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        copies = {"results": Path(place) / "results", "run": Path(place) / "run"}
        for name, source in (("results", results), ("run", run)):
            shutil.copytree(source, copies[name])
            study = TableStudy(read_results(copies[name]))
            write_site(copies[name], figures=write_report(study, copies[name] / "report"))
        for name, (of, address, size, keys) in VIEWS.items():
            visit = Visit(browser, copies[of], color_scheme="light")
            visit.page.set_viewport_size(size)
            page = visit.open(address)
            for key in keys:
                page.keyboard.press(key)
            picture = Image.open(io.BytesIO(page.screenshot()))
            picture.convert("RGB").quantize(255, Image.Quantize.MAXCOVERAGE).save(
                folder / f"site-{name}.png", optimize=True
            )
            visit.context.close()


if __name__ == "__main__":
    take(*map(Path, sys.argv[1:4]))
