"""The bench's library: a fitted contender gives what one from scratch gives."""

from __future__ import annotations

import numpy as np

from research.speed.contests import CLASSES, answer, library_of
from research.speed.measure import measure


def test_a_fitted_library_answers_as_one_fitted_for_the_window() -> None:
    result = measure(answer(cases=48), repeats=1)
    assert [timing.name for timing in result.timings] == ["readbench, fitted", "readbench, from scratch"]


def test_libraries_of_one_seed_are_the_same_and_hold_every_fault() -> None:
    one, two = library_of(100), library_of(100)
    assert one.fingerprint() == two.fingerprint()
    assert set(one.labels.tolist()) == set(range(1, CLASSES + 1))
    assert len(np.unique(np.array(one.groups.tolist()))) == 25
