"""Presentation of windows to a language model: as numbers, as comparisons, as images.

In reading order:

* `remove_season` subtracts a channel's season (TSAD), so that deviations from the periodic pattern remain. The period
  is the lag of the highest autocorrelation peak, at least 8 steps. The season is the mean of each phase after
  subtracting a moving average over one period. The trend stays, since a level may be the fault.
* `Reduction` makes the excerpt that a model sees: the channels with the highest variance, a limited number of points,
  the same in images and in numbers.
* `compare` measures how a candidate differs from a query, as numbers and as an overlay, for `-evidence` models.
* `Plotter` draws windows as small multiples on one image; equal windows have equal pixels and are drawn once.
"""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import write_bytes
from readbench.common.plots import FAULT, NORMAL_GREY
from readbench.engine.llm._messages import Image
from readbench.engine.preparation import resample
from readbench.engine.windows import WindowSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MIN_PERIOD = 8
Floats = NDArray[np.float64]


def remove_season(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
    """Subtract a channel's season; return the channel and the period, or the unchanged channel and 0 without a season.

    >>> clean, period = remove_season(np.tile(np.arange(10, dtype=np.float32), 6))
    >>> period, bool(np.ptp(clean) < 1e-4)
    (10, True)
    """
    period = season_of(values)
    if not period:
        return values, 0
    exact = values.astype(np.float64)
    return (exact - _season(exact, period)).astype(np.float32), period


def season_of(values: NDArray[np.float32]) -> int:
    """Period in steps: lag of the highest autocorrelation peak, at least 8; 0 if there is none.

    A peak is positive and higher than both its neighbours, and two periods must fit into the channel.
    """
    correlation = autocorrelation(values.astype(np.float64))
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:]) & (inner > 0))
    if not len(peaks):
        return 0
    period = max(MIN_PERIOD, int(peaks[correlation[peaks].argmax()]))
    return period if 2 * period <= len(values) else 0


def autocorrelation(values: Floats) -> Floats:
    """(T // 2 + 1,) autocorrelation at lags from 0; zeros for a constant channel."""
    centred = values - values.mean()
    scale = np.abs(centred).max(initial=0.0)
    lags = len(values) // 2 + 1
    if scale <= 1e-6 * np.abs(values).max(initial=0.0):
        return np.zeros(lags)
    spectrum = np.fft.rfft(centred / scale, 2 * len(values))
    products = np.fft.irfft(spectrum * spectrum.conj())[:lags]
    result: Floats = products / products[0]
    return result


def _season(values: Floats, period: int) -> Floats:
    """(T,) season: phase means after a centred moving average, with mean zero."""
    weights = np.ones(period + 1 - period % 2)
    if period % 2 == 0:
        weights[[0, -1]] = 0.5
    half = len(weights) // 2
    rest = values[half : len(values) - half] - np.convolve(values, weights / period, mode="valid")
    phase = np.arange(half, len(values) - half) % period
    means = np.bincount(phase, rest, period) / np.maximum(np.bincount(phase, minlength=period), 1)
    season: Floats = (means - means.mean())[np.arange(len(values)) % period]
    return season


MAX_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class WindowExcerpt:
    """One reduced window.

    Args:
        channels: names.
        values: (C, P) float32.
        notes: what was done to each channel; "" for nothing.
    """

    channels: tuple[str, ...]
    values: NDArray[np.float32]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """Reduction of windows.

    Args:
        channels: number of channels shown, those with the highest variance.
        points: maximum points per channel, as means over equal stretches; None for all.
        tsad: subtract the season of each channel.
    """

    channels: int = 20
    points: int | None = 128
    tsad: bool = False

    def __call__(self, windows: WindowSet, position: int) -> WindowExcerpt:
        """Reduce one window of a set."""
        values, names = windows.values(position), windows.channels(position)
        chosen = most_variable_channels(values, self.channels)
        rows, notes = values[chosen], [""] * len(chosen)
        if self.tsad:
            found = [remove_season(row) for row in rows]
            rows = np.stack([row for row, _ in found])
            notes = [f"season of {period} steps removed" if period else "raw values" for _, period in found]
        return WindowExcerpt(tuple(names[c] for c in chosen), shorten(rows, self.points), tuple(notes))


def most_variable_channels(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Indices of the channels with the highest variance, ascending; ties go to the earlier channel.

    >>> most_variable_channels(np.array([[0, 1], [5, 5], [0, 9]], np.float32), 2).tolist()
    [0, 2]
    """
    variance = values.var(axis=1, dtype=np.float64)
    return np.sort(np.argsort(-variance, kind="stable")[:count])


def spread_positions(count: int, most: int) -> list[int]:
    """At most `most` evenly spread positions.

    >>> spread_positions(9, 3), spread_positions(2, 3)
    ([0, 4, 8], [0, 1])
    """
    return [int(position) for position in np.linspace(0, count - 1, min(count, most))]


def shorten(values: NDArray[np.float32], points: int | None) -> NDArray[np.float32]:
    """(C, min(T, P)) means over P stretches of equal length, up to one step.

    >>> shorten(np.array([[1, 3, 5, 7, 9]], np.float32), 2).tolist()
    [[2.0, 7.0]]
    """
    length = values.shape[1]
    if points is None or length <= points:
        return values
    starts = np.arange(points) * length // points
    widths = np.diff(np.append(starts, length))
    sums = np.add.reduceat(values.astype(np.float64), starts, axis=1)
    return (sums / widths).astype(np.float32)


def numbers(values: NDArray[np.float32]) -> str:
    """Format a channel as text, to about a hundredth of its deviation.

    >>> numbers(np.array([1000.1, 1000.2, 1000.4], np.float32)), numbers(np.array([0.0, 25000.0], np.float32))
    ('1000.100 1000.200 1000.400', '0 25000')
    """
    deviation = float(values.std(dtype=np.float64)) or float(np.abs(values).max(initial=0.0)) or 1.0
    decimals = max(0, 2 - math.floor(math.log10(deviation)))
    if decimals > MAX_DECIMALS:
        return " ".join(f"{value:.4g}" for value in values.tolist())
    return " ".join(f"{value:.{decimals}f}" for value in values.tolist())


MAX_RESIDUALS = 8
"""Maximum number of residuals in a prompt, the largest ones."""


@dataclass(frozen=True, eq=False)
class WindowComparison:
    """Differences between a candidate and a query.

    Args:
        lag: steps by which the query is shifted to the right for the best agreement.
        residuals: name and residual of each common channel; 0 for equal channels, about 1.4 for unrelated ones of the
            same level.
        overlay: (C, P) shifted query on the candidate's channels and steps; NaN where missing.
    """

    lag: int
    residuals: tuple[tuple[str, float], ...]
    overlay: NDArray[np.float32]


def compare(query: WindowExcerpt, candidate: WindowExcerpt) -> WindowComparison:
    """Shift the query by at most a quarter of the window to agree best with the candidate; measure residuals."""
    length = candidate.values.shape[1]
    asked = dict(zip(query.channels, resample(query.values, length), strict=True))
    shared = [place for place, name in enumerate(candidate.channels) if name in asked]
    overlay = np.full(candidate.values.shape, np.nan, np.float32)
    if not shared:
        return WindowComparison(0, (), overlay)
    shown = candidate.values[shared].astype(np.float64)
    other = np.stack([asked[candidate.channels[place]] for place in shared]).astype(np.float64)
    lag = best_lag(other, shown)
    overlay[shared] = shift_series(other, lag)
    apart = _residuals(shift_series(other, lag), shown)
    names = [candidate.channels[place] for place in shared]
    return WindowComparison(lag, tuple(zip(names, apart.tolist(), strict=True)), overlay)


def best_lag(query: Floats, candidate: Floats) -> int:
    """Shift to the right of (C, P) with the smallest mean residual; of equal ones the smallest shift."""
    reach = query.shape[1] // 4
    lags = sorted(range(-reach, reach + 1), key=lambda lag: (abs(lag), lag))
    return min(lags, key=lambda lag: float(_residuals(shift_series(query, lag), candidate).mean()))


def shift_series(values: Floats, lag: int) -> Floats:
    """(C, P) values shifted to the right by `lag` steps, NaN where nothing moved in.

    >>> shift_series(np.array([[1.0, 2.0, 3.0]]), 1).tolist()
    [[nan, 1.0, 2.0]]
    """
    moved = np.full(values.shape, np.nan)
    stop = values.shape[1]
    moved[:, max(lag, 0) : stop + min(lag, 0)] = values[:, max(-lag, 0) : stop - max(lag, 0)]
    return moved


def _residuals(query: Floats, candidate: Floats) -> Floats:
    """(C,) root mean square difference relative to the deviations of both; 0 if constant and equal."""
    spread = np.sqrt((np.nanvar(query, axis=1) + candidate.var(axis=1)) / 2)
    apart = np.sqrt(np.nanmean((query - candidate) ** 2, axis=1))
    scale = np.where(spread > 0, spread, np.where(apart > 0, apart, 1.0))
    result: Floats = apart / scale
    return result


VERSION = 1
"""Version of the drawing, part of the cache key."""
DPI = 100
COLUMNS, WIDTH, HEIGHT = 4, 200, 110
MARGIN, TITLE = 5, 20
"""Layout of a panel, in pixels."""
MAX_TITLE_CHARACTERS = 30


class Drawing(Protocol):
    """Draws windows."""

    def sheet(
        self, names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None = None
    ) -> Image:
        """Draw all channels of a window, one panel each."""
        ...


class Blank:
    """Makes empty images of the right size, to estimate their cost."""

    def sheet(
        self,
        names: tuple[str, ...],
        values: NDArray[np.float32],  # noqa: ARG002
        behind: NDArray[np.float32] | None = None,  # noqa: ARG002
    ) -> Image:
        """Return an empty image."""
        return Image(b"", *_size(len(names)))


class Plotter:
    """Draws windows, cached in a folder below the cache root."""

    def __init__(self, root: Path) -> None:
        self.root = root / "llm" / "plots"

    def sheet(
        self, names: tuple[str, ...], values: NDArray[np.float32], behind: NDArray[np.float32] | None = None
    ) -> Image:
        """Draw all channels of a window, one panel each.

        Args:
            names: of the channels.
            values: (C, P).
            behind: (C, P') drawn in grey behind them, NaN where missing.
        """
        width, height = _size(len(names))
        path = self.root / f"{_key(names, values, behind)}.png"
        if not path.exists():
            write_bytes(path, _drawn(names, values, behind))
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
    """Draw a PNG. All panels share one axis in pixels, which is many times faster than one axis each."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    width, height = _size(len(names))
    family, bbox = "DejaVu Sans", "standard"
    with mpl.rc_context({"font.family": family, "font.size": 7, "savefig.bbox": bbox, "text.parse_math": False}):
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
    letters = name.encode("ascii", "replace").decode()[:MAX_TITLE_CHARACTERS]
    title = "".join(sign if sign.isprintable() else " " for sign in letters)
    axis.text(left + MARGIN, top + 13, f"{title} [{low:.4g}, {high:.4g}]", parse_math=False)
    for series, colour in ((behind, NORMAL_GREY), (values, FAULT)):
        if series is not None:
            across = left + MARGIN + (WIDTH - 2 * MARGIN) * (np.arange(len(series)) + 0.5) / len(series)
            share = (series - low) / (high - low) if high > low else np.full(len(series), 0.5)
            down = top + HEIGHT - MARGIN - (HEIGHT - MARGIN - TITLE) * share
            axis.plot(across, down, color=colour, linewidth=0.8)
