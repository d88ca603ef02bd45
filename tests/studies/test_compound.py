"""Several causes at once: who is a query, who is a case, what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.engine.windows import WindowSet
from readbench.errors import DataError
from readbench.studies import STUDIES, run_study
from readbench.studies._compound import compound_table, judge_compound, pose_compound

SOURCE = "dbsherlock(compound=true)"
CLASSES = ("normal", "spike", "restore", "lock", "spike + restore")


def windows(labels: list[int]) -> WindowSet:
    return WindowSet.from_arrays([np.zeros((1, 4), np.float32) for _ in labels], labels=labels, classes=CLASSES)


def test_one_of_two_causes_is_half_shown() -> None:
    queries, corpus = windows([4, 4]), windows([1] * 10 + [2] + [3] * 10)
    order = np.array([[*range(10)], [0, 10, *range(11, 19)]])
    row = judge_compound(queries, corpus, order)
    assert row == {"queries": 2, "precision": (1.0 + 0.2) / 2, "shown": 0.75, "whole": 0.5}


def test_only_the_first_ten_hits_count() -> None:
    order = np.array([[*range(11)]])
    assert judge_compound(windows([4]), windows([1] * 10 + [2]), order)["shown"] == 0.5


def test_a_source_without_compound_classes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no class of several causes"):
        pose_compound("sim_tanks(runs=8)", None, tmp_path)


def test_no_run_of_several_causes_is_a_case_or_a_normal(real_data: Path, tmp_path: Path) -> None:
    queries, corpus, normals = pose_compound(SOURCE, real_data, tmp_path)
    assert (len(queries), len(corpus)) == (189, 257)
    known = set(corpus.groups.tolist()) | set(normals.groups.tolist())
    assert not known & set(queries.groups.tolist())
    assert not any(" + " in corpus.classes[label] for label in corpus.labels)


def test_methods_are_measured_and_kept(real_data: Path, tmp_path: Path) -> None:
    study = STUDIES.get("compound")
    grid = study.grid({"methods": ["random", "euclidean"]}, out=tmp_path / "out", root=real_data, cache=tmp_path)
    found = run_study(study, grid)
    assert not found.failures
    chance, distance = found.results
    assert distance.precision > 0.9
    assert chance.precision < 0.5
    assert distance.shown < 0.7
    again = run_study(study, grid)
    assert (again.results, again.reused) == (found.results, 2)
    assert len(compound_table(found.results).rows) == 2
