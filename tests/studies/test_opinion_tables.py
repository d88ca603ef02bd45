"""The table and the diagram of opinions, against values worked out by hand."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from readbench.benchmark.runs import TaskOpinions
from readbench.common.calibration import calibration_floor
from readbench.engine.rerankers import Opinion
from readbench.studies import StudyCell
from readbench.studies._opinions import COLUMNS, OpinionQuality, Quality, draw_reliability, opinion_table


def measured(dataset: str, seed: int, rho: int, value: float) -> OpinionQuality:
    classes = np.array([1, 2], np.int32)
    opinions = [Opinion(classes, np.array([p, 1 - p]), (1,), 0.1, 0.2, novel=False) for p in (0.6, 0.7, 0.9)]
    answers = TaskOpinions(np.array([2, 1, 1], np.int32), opinions).stated
    figures = Quality(value, 0.0, 0.0, 0.0, 0.0, auroc=value + 0.05, false_alarms=float("nan"))
    return OpinionQuality(StudyCell(dataset, "rocket+verdict", seed, rho), answers, figures)


GIVEN = [measured("one", 0, 0, 0.1), measured("one", 1, 0, 0.3), measured("two", 0, 0, 0.4), measured("two", 1, 0, 0.4)]


def test_rows_are_means_over_seeds_and_the_last_one_the_mean_over_datasets() -> None:
    table = opinion_table(GIVEN)
    assert len(COLUMNS) == len(astuple(GIVEN[0].quality)) + 1
    assert [row[:3] for row in table.rows] == [
        ["one", "0", "0.200"],
        ["two", "0", "0.400"],
        ["mean of 2 datasets (real)", "0", "0.300"],
    ]
    assert [row[8] for row in table.rows] == ["0.250", "0.450", "0.350"]
    assert {row[9] for row in table.rows} == {"-"}
    assert "mean over 2 split seeds" in table.caption


def test_the_calibration_error_is_that_of_the_queries_of_all_seeds() -> None:
    """Three answers a seed, the first of them wrong: 0.6, 0.3 and 0.1 beside the truth, whatever a seed's own says."""
    table = opinion_table(GIVEN)
    confidence = [0.6, 0.7, 0.9] * 2
    assert {row[3] for row in table.rows} == {f"{1.0 / 3:.3f}"}
    assert {row[4] for row in table.rows} == {f"{calibration_floor(confidence, seed=0):.3f}"}


def test_one_dataset_needs_no_mean_and_levels_have_their_own_rows() -> None:
    table = opinion_table([measured("one", 0, 20, 0.2), measured("one", 0, 0, 0.1)])
    assert [row[:3] for row in table.rows] == [["one", "0", "0.100"], ["one", "20", "0.200"]]


def test_a_dataset_whose_cells_of_a_level_failed_is_left_out_there() -> None:
    table = opinion_table([*GIVEN, measured("one", 0, 20, 0.2)])
    assert [row[:2] for row in table.rows] == [
        ["one", "0"],
        ["two", "0"],
        ["one", "20"],
        ["mean of 2 datasets (real)", "0"],
    ]


def test_a_panel_for_each_dataset_and_for_all_of_them() -> None:
    figure = draw_reliability([*GIVEN, measured("one", 0, 20, 0.1)])
    titles = [axis.get_title(loc="left") for axis in figure.axes if axis.axison]
    assert [title.split(":")[0] for title in titles] == ["one", "two", "all"]
    curve = figure.axes[0].lines[1]
    np.testing.assert_allclose(np.asarray(curve.get_xydata()), [[0.6, 0.0], [0.7, 1.0], [0.9, 1.0]])
    assert float(titles[0].split()[-1]) == pytest.approx((0.6 + 0.3 + 0.1) / 3, abs=1e-3)
