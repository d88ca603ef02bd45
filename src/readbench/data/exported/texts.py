"""Windows as text, for loaders and models that read nothing else."""

from __future__ import annotations

from readbench.windows import WindowSet, resample

MOST_POINTS = 64
"""Points of a channel in a text; longer windows are interpolated. The values themselves are in the Parquet files."""


def texts_of(windows: WindowSet) -> list[str]:
    """One text per window: a line per channel, its name and its readings to four digits.

    >>> texts_of(WindowSet.from_arrays([[[1.0, 2.5]]], channels=("flow",)))
    ['flow: 1 2.5']
    """
    return [_text(windows, i) for i in range(len(windows))]


def _text(windows: WindowSet, i: int) -> str:
    values = windows.values(i)
    points = resample(values, min(values.shape[1], MOST_POINTS)).tolist()
    lines = zip(windows.channels(i), points, strict=True)
    return "\n".join(f"{name}: {' '.join(f'{value:.4g}' for value in row)}" for name, row in lines)
