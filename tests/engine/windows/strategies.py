"""Arbitrary sets of windows for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from readbench.engine.windows import WindowSet

CLASSES = ("normal", "leak", "clog")
texts = st.text(st.characters(codec="utf-8"), max_size=5)
channel_names = st.lists(st.sampled_from(["level", "flow", "", "Strömung", "p 1"]), min_size=1, max_size=4, unique=True)


@st.composite
def window_sets(
    draw: st.DrawFn, *, min_size: int = 0, max_size: int = 6, finite: bool = False, classes: tuple[str, ...] = CLASSES
) -> WindowSet:
    """Ragged in length and channels, with every column filled; values may be NaN or infinite unless `finite`."""
    names = draw(st.lists(channel_names, min_size=min_size, max_size=max_size))
    n = len(names)
    limit = 1e6 if finite else None
    floats = st.floats(
        width=32,
        allow_nan=not finite,
        allow_infinity=not finite,
        min_value=None if limit is None else -limit,
        max_value=limit,
    )
    values = [draw(hnp.arrays(np.float32, (len(own), draw(st.integers(1, 5))), elements=floats)) for own in names]
    column = st.lists(texts, min_size=n, max_size=n)
    return WindowSet.from_arrays(
        values,
        channels=names,
        labels=draw(st.lists(st.integers(-1, len(classes) - 1), min_size=n, max_size=n)),
        classes=classes,
        ids=draw(st.lists(texts, min_size=n, max_size=n, unique=True)),
        groups=draw(column),
        assets=draw(column),
        times=draw(st.lists(st.floats(allow_infinity=False), min_size=n, max_size=n)),
        spans=draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=n, max_size=n)),
    )


def assert_same_windows(left: WindowSet, right: WindowSet) -> None:
    """Equal in everything a reader can see, wherever the values are stored."""
    assert len(left) == len(right)
    assert left.classes == right.classes
    assert left.spans.tolist() == right.spans.tolist()
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a.values, b.values, strict=True)
        assert (a.channels, a.label, a.group, a.asset, a.id) == (b.channels, b.label, b.group, b.asset, b.id)
        np.testing.assert_array_equal(a.time, b.time)
