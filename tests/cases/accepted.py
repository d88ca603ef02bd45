"""What somebody may write: texts, times and numbers of every kind, at and beyond the bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from readbench.cases.limits import EARLIEST_MOMENT, LATEST_MOMENT, MAX_NAME, MAX_RATE, MAX_READING, MIN_RATE

NASTY = ("$a$^^$", "P$_{\\frac$ x", "%", "<b>&", "\u202e", "a/b?c#d", "..", "ß\u0301", "\x85", "\ud800", "=1+1", "'\"")
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(max_size=12), st.just("x" * (MAX_NAME + 1)))
EDGES = (0.0, -0.0, 3e38, -3e38, 1e300, 1e-320, MAX_READING, 0.99 * MAX_READING, MIN_RATE, MAX_RATE, 1e18, 1e306)
NUMBERS = st.one_of(st.sampled_from(EDGES), st.floats(width=32), st.floats(-10, 10))
MOMENTS = st.one_of(
    st.none(), st.sampled_from((EARLIEST_MOMENT, LATEST_MOMENT, LATEST_MOMENT - 1, 1.7e9, 1e18)), NUMBERS
)
ZONES = st.one_of(st.sampled_from(("", "UTC", "+14:00", "+99:99", "CEST", "Europe/Berlin", "America")), TEXTS)
KNOWN: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "label": TEXTS,
        "asset": TEXTS,
        "group": TEXTS,
        "notes": TEXTS,
        "time": MOMENTS,
        "end": MOMENTS,
        "zone": ZONES,
        "tags": st.lists(TEXTS, max_size=3),
        "links": st.lists(TEXTS.map(lambda text: f"https://{text}"), max_size=3),
    },
)
"""Fields of a case."""
BROUGHT: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "rate": NUMBERS,
        "facts": st.dictionaries(TEXTS, NUMBERS, max_size=3),
        "units": st.lists(TEXTS, min_size=2, max_size=2),
    },
)
"""What a window brings."""
CHANNELS = st.lists(TEXTS, min_size=2, max_size=2, unique=True)
READINGS = st.lists(st.lists(NUMBERS, min_size=12, max_size=12), min_size=2, max_size=2)
