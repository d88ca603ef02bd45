"""The peers of vector search find what ours finds."""

from __future__ import annotations

import numpy as np

from readbench.engine.retrievers import top_k
from research.speed.contests import brute_force, sample, vectors
from research.speed.measure import measure


def test_brute_force_is_right() -> None:
    asked, corpus = sample(500)
    gaps = asked[:, None].astype(np.float64) - corpus
    order = np.argsort((gaps**2).sum(axis=2), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(brute_force(asked, corpus, 7), order)
    np.testing.assert_array_equal(top_k(asked, corpus, 7).indices, order)


def test_all_contenders_agree() -> None:
    case = vectors(1, items=2000)
    found = measure(case, repeats=1)
    assert [timing.name for timing in found.timings][:2] == ["readbench", "numpy (BLAS)"]
    assert all(timing.rate > 0 for timing in found.timings)
