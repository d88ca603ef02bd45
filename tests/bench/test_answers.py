"""The bench's library: fitted and grown contenders give what those from scratch give."""

from __future__ import annotations

import numpy as np

from readbench.bench import measure
from readbench.bench.answers import CLASSES, answer, learn, library_of


def test_a_fitted_library_answers_as_one_fitted_for_the_window() -> None:
    result = measure(answer(cases=48), repeats=1)
    assert [timing.name for timing in result.timings] == ["readbench, fitted", "readbench, from scratch"]


def test_a_grown_library_knows_what_a_new_one_knows() -> None:
    assert measure(learn(cases=200), repeats=1).unit == "case/s"


def test_libraries_of_one_seed_are_the_same_and_hold_every_fault() -> None:
    one, two = library_of(100), library_of(100)
    assert one.fingerprint() == two.fingerprint()
    assert set(one.labels.tolist()) == set(range(1, CLASSES + 1))
    assert len(np.unique(np.array(one.groups.tolist()))) == 25
