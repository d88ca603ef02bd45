"""Words follow the tests: nothing is called better where they do not say so."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from readbench.benchmark.metrics import ConfidenceInterval, FriedmanResult
from readbench.benchmark.report import overview, read_results
from readbench.benchmark.report._results import Significance
from readbench.benchmark.report._significance import ALPHA, PairedComparison, friedman_sentence, outcome
from tests.benchmark.report.made_up import made_up_run

SIX = ("skab", "road", "sim_tanks", "hai", "sim_motor", "sim_ecg")
POSITIVE = ConfidenceInterval(0.1, 0.05, 0.2, 1000, 0.95)
ASTRIDE = ConfidenceInterval(0.1, -0.05, 0.2, 1000, 0.95)
ends = st.floats(-1, 1)
intervals = st.tuples(ends, ends).map(lambda pair: ConfidenceInterval(sum(pair) / 2, min(pair), max(pair), 1000, 0.95))


@given(intervals, intervals, st.none() | intervals, st.floats(0, 1) | st.just(float("nan")))
def test_better_needs_both_tests_over_datasets(
    queries: ConfidenceInterval, groups: ConfidenceInterval, datasets: ConfidenceInterval | None, p_value: float
) -> None:
    said = outcome(PairedComparison("a", "b", queries, groups, datasets, None, p_value))
    shown = datasets is not None and datasets.low > 0 and p_value <= ALPHA
    assert (said == "better") == shown
    if said == "ahead on these queries":
        assert groups.low > 0


@pytest.mark.parametrize(
    ("groups", "datasets", "p_value", "expected"),
    [
        (POSITIVE, POSITIVE, 0.04, "better"),
        (POSITIVE, POSITIVE, 0.06, "ahead on these queries"),
        (POSITIVE, ASTRIDE, 0.04, "ahead on these queries"),
        (POSITIVE, None, float("nan"), "ahead on these queries"),
        (ASTRIDE, ASTRIDE, 0.4, "no difference shown"),
    ],
)
def test_outcomes(
    groups: ConfidenceInterval, datasets: ConfidenceInterval | None, p_value: float, expected: str
) -> None:
    assert outcome(PairedComparison("a", "b", POSITIVE, groups, datasets, None, p_value)) == expected


def steady(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:  # noqa: ARG001
    """DTW-I leads ED on every dataset, and SBD-D on most of them, by far on one."""
    lead = {"euclidean": 0.2, "sbd-d": -0.01 if dataset in {"hai", "skab"} else 0.02}.get(method, 0.0)
    return 0.6 + SIX.index(dataset) / 50 - lead


def test_the_report_says_better_only_of_what_leads_on_all_datasets(tmp_path: Path) -> None:
    made = made_up_run(tmp_path, ("dtw-i", "sbd-d", "euclidean"), SIX, (0,), (0,), scores=steady)
    first = overview(read_results(made))
    table = next(table for table in first.tables if table.name == "comparisons")
    outcomes = {row[0]: row[-1] for row in table.rows}
    assert outcomes == {"SBD-D": "ahead on these queries", "ED": "ahead on these queries"}
    assert [line for line in first.findings if " is better than " in line] == []
    pair = overview(read_results(made_up_run(tmp_path, ("dtw-i", "euclidean"), SIX, (0,), (0,), scores=steady)))
    assert [line.split(" (")[0] for line in pair.findings] == ["DTW-I is better than ED"]


def test_too_few_datasets_never_make_anything_better(tmp_path: Path) -> None:
    two = made_up_run(tmp_path, ("dtw-i", "euclidean"), SIX[:2], (0,), (0,), scores=steady)
    first = overview(read_results(two))
    assert not any("better" in line for line in first.findings)
    assert first.remarks[0].startswith("Too few datasets")
    table = next(table for table in first.tables if table.name == "comparisons")
    assert table.columns == ["Other", "Difference", "over queries", "over split groups", "outcome"]


def test_queries_of_one_split_group_are_compared_one_by_one_and_it_is_said(tmp_path: Path) -> None:
    """Nothing varies between resamples of one group; so it is with one recording in the test side of a small source."""
    made = made_up_run(tmp_path, ("dtw-i", "euclidean"), SIX[:1], (0,), (0,), scores=steady)
    table = pq.read_table(made / "per_query.parquet")
    place = table.schema.get_field_index("group")
    pq.write_table(table.set_column(place, "group", pa.array(["g0"] * len(table))), made / "per_query.parquet")
    first = overview(read_results(made))
    row = next(table for table in first.tables if table.name == "comparisons").rows[0]
    assert row[-2:] == ["one group", "ahead on these queries"]
    assert "over queries of one split group" in first.findings[0]


@pytest.mark.parametrize(("p_value", "differs"), [(0.04, True), (0.06, False)])
def test_a_critical_difference_is_named_only_after_a_significant_friedman_test(
    p_value: float, *, differs: bool
) -> None:
    import numpy as np  # noqa: PLC0415

    test = FriedmanResult(9.0, p_value, np.array([1.0, 2.0, 3.0]), datasets=6, methods=3)
    said = friedman_sentence(Significance(0, test, critical_difference=1.35))
    assert ("Nemenyi" in said) == differs
    assert ("some methods differ" in said) == differs
    assert ("no difference shown" in said) != differs
