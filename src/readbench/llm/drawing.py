"""Windows as pictures: small multiples on one sheet, the same pixels for the same window, drawn once."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from readbench.llm.messages import Image
from readbench.plots import FAULT, NORMAL_GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERSION = 1
"""Of the drawing: another one is another picture."""
DPI = 100
COLUMNS, WIDTH, HEIGHT = 4, 200, 110
MARGIN, TITLE = 5, 20
"""Of a panel, in pixels."""
MOST_LETTERS = 30


class Drawing(Protocol):
    """Anything that makes pictures of windows."""

    def sheet(
        self, names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None = None
    ) -> Image:
        """All channels of a window, one panel each."""
        ...


class Blank:
    """Pictures of the right size without anything on them, which is enough to count what they cost."""

    def sheet(
        self,
        names: tuple[str, ...],
        values: NDArray[np.float32],  # noqa: ARG002
        behind: NDArray[np.float32] | None = None,  # noqa: ARG002
    ) -> Image:
        """An image without content."""
        return Image(b"", *_size(len(names)))


class Plotter:
    """Draws windows, through a folder of pictures that are already there.

    Args:
        root: cache root.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "llm" / "plots"

    def sheet(
        self, names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None = None
    ) -> Image:
        """All channels of a window, one panel each.

        Args:
            names: of the channels.
            values: (C, P).
            behind: (C, P') drawn in grey behind them, NaN where there is nothing.
        """
        width, height = _size(len(names))
        path = self.root / f"{_key(names, values, behind)}.png"
        if not path.exists():
            self.root.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
            partial.write_bytes(_drawn(names, values, behind))
            partial.replace(path)
        return Image(path.read_bytes(), width, height)


def _size(count: int) -> tuple[int, int]:
    columns = min(COLUMNS, count)
    return WIDTH * columns, HEIGHT * -(-count // columns)


def _key(names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None) -> str:
    digest = hashlib.sha256(repr((VERSION, names, values.shape)).encode())
    digest.update(np.ascontiguousarray(values).tobytes())
    digest.update(b"" if behind is None else np.ascontiguousarray(behind).tobytes())
    return digest.hexdigest()[:32]


def _drawn(names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None) -> bytes:
    """A PNG. All panels share one axis in pixels, which is many times faster than an axis each."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    width, height = _size(len(names))
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 7, "savefig.bbox": "standard"}):
        figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_axis_off()
        axis.set_xlim(0, width)
        axis.set_ylim(height, 0)
        for place, name in enumerate(names):
            corner = (WIDTH * (place % COLUMNS), HEIGHT * (place // COLUMNS))
            _panel(axis, corner, name, values[place], None if behind is None else behind[place])
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI, metadata={"Software": None})
    return content.getvalue()


def _panel(
    axis: Axes, corner: tuple[int, int], name: str, values: NDArray[np.float32], behind: NDArray[np.float32] | None
) -> None:
    left, top = corner
    both = values if behind is None else np.concatenate([values, behind])
    low, high = float(np.nanmin(both)), float(np.nanmax(both))
    letters = name.encode("ascii", "replace").decode()[:MOST_LETTERS]
    title = "".join(sign if sign.isprintable() else " " for sign in letters)
    axis.text(left + MARGIN, top + 13, f"{title} [{low:.4g}, {high:.4g}]", parse_math=False)
    for series, colour in ((behind, NORMAL_GREY), (values, FAULT)):
        if series is not None:
            across = left + MARGIN + (WIDTH - 2 * MARGIN) * (np.arange(len(series)) + 0.5) / len(series)
            share = (series - low) / (high - low) if high > low else np.full(len(series), 0.5)
            down = top + HEIGHT - MARGIN - (HEIGHT - MARGIN - TITLE) * share
            axis.plot(across, down, color=colour, linewidth=0.8)
