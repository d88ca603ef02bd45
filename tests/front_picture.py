"""The picture of the front page, the answer beside the leaderboard: `python -m tests.front_picture docs/images`.

It joins `service-case.png` (`python -m tests.cases.server.screenshots`) and `site-board.png` (`python -m
tests.benchmark.report.screenshots`), so take these first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

HEIGHT, GAP, EDGE = 760, 24, (201, 206, 214)
"""Pixels of the picture, and the colour of the line around each half."""


def join(folder: Path) -> None:
    """Write `front.png` from the two pictures in a folder."""
    halves = [_framed(Image.open(folder / name).convert("RGB")) for name in ("service-case.png", "site-board.png")]
    picture = Image.new("RGB", (sum(half.width for half in halves) + GAP, HEIGHT), "white")
    picture.paste(halves[0], (0, 0))
    picture.paste(halves[1], (halves[0].width + GAP, 0))
    picture.quantize(128, Image.Quantize.MAXCOVERAGE).save(folder / "front.png", optimize=True)


def _framed(picture: Image.Image) -> Image.Image:
    scaled = picture.resize((picture.width * HEIGHT // picture.height, HEIGHT), Image.Resampling.LANCZOS)
    framed = Image.new("RGB", scaled.size, EDGE)
    framed.paste(scaled.crop((1, 1, scaled.width - 1, scaled.height - 1)), (1, 1))
    return framed


if __name__ == "__main__":
    join(Path(sys.argv[1]))
