"""Small sets of windows for checks."""

from __future__ import annotations

import numpy as np

from readbench.windows import WindowSet

CLASSES = ("normal", "leak", "clog", "drift")


def sample_windows(
    count: int = 12, *, channels: int = 3, length: int = 32, ragged: bool = False, seed: int = 0
) -> WindowSet:
    """Labelled random walks with a level and slope that depend on the class.

    Args:
        count: number of windows.
        channels: channels of each window, or the most of any where ragged.
        length: timesteps, or the most where ragged.
        ragged: vary length and channels from window to window.
        seed: of the values.

    >>> sample_windows(4, ragged=True).lengths.max() <= 32
    np.True_
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(CLASSES)
    values, names = [], []
    for label in labels:
        c = int(rng.integers(1, channels + 1)) if ragged else channels
        t = int(rng.integers(max(2, length // 2), length + 1)) if ragged else length
        walk = rng.standard_normal((c, t)).cumsum(axis=1)
        values.append(walk + label + 0.1 * label * np.arange(t))
        names.append(tuple(f"sensor {k}" for k in rng.permutation(channels)[:c]))
    return WindowSet.from_arrays(
        values,
        channels=names,
        labels=labels,
        classes=CLASSES,
        ids=[f"case {i}" for i in range(count)],
        groups=[f"run {i // 2}" for i in range(count)],
        assets=[f"plant {i % 3}" for i in range(count)],
        times=np.arange(count) * 60.0,
    )
