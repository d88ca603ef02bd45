"""Score matrices full of ties."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

Scores = NDArray[np.float32]


@st.composite
def tied_scores(draw: st.DrawFn) -> Scores:
    """A few rows over few distinct values, so that most places are tied; both zeros and infinities among them."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 60)))
    values = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-30, 0.25, 7.0, np.inf])
    return draw(arrays(np.float32, shape, elements=values))
