"""Series are thinned for drawings, and keep their spikes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from readbench.engine.preparation import thin_series
from tests.naive.thinning import thinned as naive_thinned


@given(
    arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 90)), elements=st.integers(-5, 5)),
    st.sampled_from([4, 8, 16, 64]),
)
def test_thinning_is_its_slow_twin(values: np.ndarray, points: int) -> None:
    expected = [naive_thinned(channel, points) for channel in values.tolist()]
    thin = thin_series(values, points)
    assert thin.tolist() == expected
    assert thin.shape[1] <= max(points, 1)


def test_a_spike_of_one_step_is_kept_wherever_it_is() -> None:
    thin = thin_series(np.eye(1000, dtype=np.float32), 128)
    assert thin.shape[1] <= 128
    assert (thin.max(axis=1) == 1).all()
