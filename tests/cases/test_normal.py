"""Normal operation is an option, taught by normals and by false alarms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import NORMAL_OPERATION, Answer, Library
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
