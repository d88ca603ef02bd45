"""Normal operation is an option, taught by normals and by false alarms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import NORMAL_OPERATION, Answer, Library
from readbench.cases._normal import LIKELY, MOST_NAMED, NormalOpinion, bound_faults, name_held_out
from readbench.engine.windows import NORMAL
from tests.cases.samples import CHANNELS, FAST, filled, normals, window, windows


def share(answer: Answer) -> float:
    return next(option.probability for option in answer.faults if option.label == NORMAL_OPERATION)


def test_normal_windows_are_called_normal_and_faults_are_not(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 30)
    quiet = library.search_many(normals(6, seed=5), method=FAST)
    faulty = library.search_many(windows(6, seed=5, labelled=False), method=FAST)
    assert min(map(share, quiet)) > 0.5 > max(map(share, faulty))
    assert quiet[0].faults[0].label == NORMAL_OPERATION
    assert sum(option.probability for option in quiet[0].faults) == pytest.approx(1.0)
    assert (quiet[0].hits[0].probability or 0.0) < 0.5


def test_without_normals_it_is_no_option(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add(windows(12))
    assert NORMAL_OPERATION not in {option.label for option in library.search("w0", method=FAST).faults}


def test_labelling_false_alarms_changes_the_answers(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 30)
    rng = np.random.default_rng(3)
    alarms = [window("leak", rng) for _ in range(11)]
    before = library.search(alarms[0], channels=CHANNELS, method=FAST)
    for number, values in enumerate(alarms[1:]):
        library.add_one(values, CHANNELS, id=f"alarm {number}")
    assert share(library.search(alarms[0], channels=CHANNELS, method=FAST)) == pytest.approx(share(before))
    for number in range(10):
        library.label(f"alarm {number}", "normal")
    assert share(library.search(alarms[0], channels=CHANNELS, method=FAST)) > share(before) + 0.1


def test_a_bound_leaves_as_many_named_normals_as_allowed_and_recordings_vote() -> None:
    rng = np.random.default_rng(0)
    faults, named, groups = rng.random(400), np.full(400, 0.9), np.arange(400) // 2
    bound = bound_faults(faults, named, groups)
    assert np.mean((faults * named > LIKELY) & (faults > bound)) <= MOST_NAMED
    assert np.mean((faults * named > LIKELY) & (faults >= bound)) > MOST_NAMED
    assert bound_faults(faults, np.full(400, 0.4), groups) == 0.0
    one_long = np.array([0] * 300 + list(range(1, 101)))
    often = np.array([0.99] * 300 + [0.1] * 100)
    assert bound_faults(often, np.ones(400), one_long) == 0.0


def test_faults_are_named_for_normals_by_other_recordings_only() -> None:
    """A normal window beside a fault of its own recording is not told by it."""
    types = np.array([NORMAL, 1, 2, 1, 2, 1, 2], np.int32)
    kernel = np.eye(7) + 0.9 * (types[:, None] == types) * (types > 0) * (1 - np.eye(7))
    kernel[0, 1] = kernel[1, 0] = 1.0
    apart, together = np.arange(7), np.array([0, 0, 2, 3, 4, 1, 6])
    assert name_held_out([kernel], types, apart)[0] > name_held_out([kernel], types, together)[0]


def test_where_normal_is_not_ruled_out_no_fault_is_above_one_half() -> None:
    for likeliest in (0.3, 0.6, 1.0):
        share = NormalOpinion(0.1, ruled_out=False).beside(likeliest)
        assert (1 - share) * likeliest <= LIKELY + 1e-12
        assert share <= LIKELY
    assert NormalOpinion(0.1, ruled_out=True).beside(1.0) == 0.1
