"""Lists of parts merge into the list of the whole, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.engine.abilities import Hits
from readbench.engine.ranking import rank
from readbench.engine.retrievers._search import merge_hits
from readbench.errors import UsageError


def hits_of(scores: np.ndarray, k: int) -> Hits:  # type: ignore[type-arg]
    order = rank(scores, k)
    return Hits(order, np.take_along_axis(scores, order, axis=1))


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    k=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    values=st.integers(1, 6),
)
def test_merged_lists_are_those_of_the_whole(sizes: list[int], k: int, seed: int, values: int) -> None:
    """Few distinct scores, so that ties cross every border."""
    scores = np.random.default_rng(seed).integers(values, size=(4, sum(sizes))).astype(np.float32)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    parts = [hits_of(scores[:, start : start + size], k) for start, size in zip(starts, sizes, strict=True)]
    merged, whole = merge_hits(parts, starts, k), hits_of(scores, k)
    np.testing.assert_array_equal(merged.indices, whole.indices)
    np.testing.assert_array_equal(merged.scores, whole.scores)


def test_parts_out_of_order_are_refused() -> None:
    one = hits_of(np.zeros((1, 2), np.float32), 2)
    for starts in ([2, 0], [0]):
        with pytest.raises(UsageError, match="ascending"):
            merge_hits([one, one], starts, 2)
