"""The reliability diagram and the calibration table of a run, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.benchmark.report import TableStudy, read_results
from readbench.benchmark.report._figures import reliability_diagram
from readbench.benchmark.report._paper_tables import calibration_table
from readbench.benchmark.report._results import read_stated_probabilities
from readbench.common.calibration import calibration_floor, expected_calibration_error
from tests.benchmark.report.made_up import QUERIES, made_up_run, opinion

DATASETS, SEEDS = ("skab", "road"), (0, 1)
METHODS = ("euclidean", "euclidean+verdict", "dtw-i+verdict")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TableStudy:
    return TableStudy(read_results(made_up_run(tmp_path_factory.mktemp("run"), METHODS, DATASETS, (0, 20), SEEDS)))


def given(rho: int, datasets: tuple[str, ...]) -> tuple[list[float], list[bool], list[float]]:
    rows = [opinion(d, s, rho, q) for d in datasets for s in SEEDS for q in range(QUERIES)]
    confidence, correct, truth = zip(*rows, strict=True)
    return list(confidence), list(correct), list(truth)


def test_the_table_has_a_row_for_each_method_level_and_dataset_and_for_all(study: TableStudy) -> None:
    table = calibration_table(study.results)
    assert table is not None
    names = [(r, name) for r in ("0%", "20%") for name in ("skab", "road§", "all")]
    titles = [study.results.title(text) for text in METHODS[1:]]
    assert [tuple(row[:3]) for row in table.rows] == [(t, name, r) for t in titles for r, name in names]
    assert table.rules == (6,)
    for row in (table.rows[1], table.rows[5]):
        datasets = DATASETS if row[1] == "all" else ("road",)
        confidence, correct, truth = given(int(row[2][:-1]), datasets)
        error = expected_calibration_error(confidence, correct)
        expected = [np.mean(correct), np.mean(confidence), np.mean(truth), error, calibration_floor(confidence, seed=0)]
        assert row[3] == str(len(confidence))
        assert [float(text) for text in row[4:]] == pytest.approx(expected, abs=6e-4)


def test_a_panel_shows_the_curve_of_its_method_with_error_and_floor(study: TableStudy) -> None:
    figure = reliability_diagram(study)
    assert figure is not None
    assert [axis.get_title(loc="left").split("\n")[0] for axis in figure.axes] == ["ED+Verdict", "DTW-I+Verdict"]
    confidence, correct, _ = given(0, DATASETS)
    error, floor = expected_calibration_error(confidence, correct), calibration_floor(confidence, seed=0)
    assert figure.axes[0].get_title(loc="left").endswith(f"ECE {error:.3f}, floor {floor:.3f}")
    curve = np.asarray(figure.axes[0].lines[1].get_xydata())
    assert np.average(curve[:, 1]) == pytest.approx(np.mean(correct), abs=0.1)


def test_a_run_without_opinions_has_neither(study: TableStudy, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = made_up_run(tmp_path_factory.mktemp("old"), METHODS[:1], DATASETS)
    results = read_results(folder)
    assert read_stated_probabilities(results) == {}
    assert calibration_table(results) is None
    assert reliability_diagram(TableStudy(results)) is None
    assert set(read_stated_probabilities(study.results)) == {
        (m, r, d) for m in METHODS[1:] for r in (0, 20) for d in DATASETS
    }
