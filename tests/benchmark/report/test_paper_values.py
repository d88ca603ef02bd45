"""What was typed in from the paper agrees with itself: many of its values are printed in several tables."""

from __future__ import annotations

import pytest

from readbench.benchmark.protocol import read_shipped_rows
from readbench.benchmark.report._paper_values import CHANGE, FULL, PAPER_TABLES, published_values
from readbench.engine.spec import parse

COUNTS = {
    "tab:backbones": 13 * 3,
    "tab:app-backbones": 13 * 8,
    "tab:fullcorpus": 5 * 3,
    "tab:app-nr": 8 * 4,
    "tab:fusion-joint": 35 * 3,
    "tab:app-hybrids": 7 * 15,
    "tab:rerankers": 8 * 6,
    "tab:app-rerankers": 8 * 15,
    "tab:stack": 4 * 4,
    "tab:llm": 9,
}
"""Rows times columns of each table."""


def test_every_cell_of_every_result_table_is_there() -> None:
    assert {label: len(table) for label, table in PAPER_TABLES.items()} == COUNTS
    rows = read_shipped_rows("readbench.benchmark.report._paper_values", "paper_values.csv")
    assert len(rows) == sum(COUNTS.values()), "a cell stands twice in the file"


def test_methods_are_canonical_and_values_possible() -> None:
    for table in PAPER_TABLES.values():
        for (method, metric, rho), value in table.items():
            assert str(parse(method)) == method
            assert rho in {0, 10, 20}
            assert (-0.1 < value < 0) if metric == CHANGE else (0 < value < 1)


def test_a_value_printed_in_several_tables_is_the_same_in_all() -> None:
    seen: dict[tuple[str, str, int], set[float]] = {}
    for table in PAPER_TABLES.values():
        for key, value in table.items():
            if key[1] != CHANGE:
                seen.setdefault(key, set()).add(value)
    assert sum(len(values) > 1 for values in seen.values()) == 0
    assert sum(key in table for key in seen for table in PAPER_TABLES.values()) > len(seen) + 80


def test_changes_are_the_differences_of_their_columns() -> None:
    for label, first, last in (
        ("tab:app-nr", ("NDCG@10", 0), ("NDCG@10", 20)),
        ("tab:fullcorpus", ("NDCG@10", 0), (FULL, 0)),
    ):
        changes = [(m, v) for (m, metric, _), v in PAPER_TABLES[label].items() if metric == CHANGE]
        assert changes
        for method, change in changes:
            before, after = published_values(label, method, *first), published_values(label, method, *last)
            assert before is not None
            assert after is not None
            assert change == pytest.approx(after - before, abs=1.1e-3)


def test_what_is_not_printed_is_none() -> None:
    assert published_values("tab:backbones", "euclidean", "NDCG@10", 0) is None
