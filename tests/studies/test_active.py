"""Orders of labelling on a task: what is known after each batch, and how the curves are made."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import Composition, Task, load_task
from readbench.benchmark.simulators import Ecg
from readbench.cli import app
from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.vectors import VectorFolder
from readbench.studies import StudyCell, _active as module
from readbench.studies._active import (
    RANDOM,
    TELLING,
    LearningCurve,
    active_table,
    common_counts,
    draw_active,
    simulate_labelling,
)
from readbench.studies._opinions import require_opinions

METHOD = require_opinions("raw+verdict").spec


@pytest.fixture(scope="module")
def task(shared_cache: Path) -> Task:
    settings = Composition(corpus_cap=200, query_cap=40)
    return load_task(Ecg(), seed=0, cache=shared_cache, settings=settings)


def test_with_all_labels_both_orders_are_the_method_itself(
    task: Task, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = task.corpus_at(0)
    monkeypatch.setattr(module, "COUNTS", (10, 100_000))
    monkeypatch.setattr(module, "DRAWS", 1)
    found = simulate_labelling(task, 0, METHOD, private_cache)
    assert found["counts"] == [10, len(corpus)]
    scores = Method(METHOD, vectors=VectorFolder(private_cache)).fit(corpus, task.normals).score(task.queries)
    expected = evaluate(rank(scores, 100), task.queries.labels, corpus.labels).values["NDCG@10"]
    for values in map(np.array, found["values"].values()):
        np.testing.assert_array_equal(values[1], expected)
        assert (values[0] != expected).any()
    assert found["groups"] == task.queries.groups.tolist()


def lesson(dataset: str, seed: int, counts: tuple[int, ...], telling: float, random: float) -> LearningCurve:
    shape = (len(counts), 4)
    values = {TELLING: np.full(shape, telling), RANDOM: np.full(shape, random)}
    groups = np.array(["a", "a", "b", "b"])
    return LearningCurve(StudyCell(dataset, "raw+verdict", seed), np.array(counts), values, groups)


GIVEN = [
    lesson("one", 0, (5, 10, 37), 0.6, 0.4),
    lesson("one", 1, (5, 10, 37), 0.8, 0.4),
    lesson("two", 0, (5, 10, 20), 0.3, 0.2),
]


def test_rows_are_means_over_seeds_at_counts_that_all_have() -> None:
    table = active_table(GIVEN)
    assert common_counts(GIVEN) == [5, 10]
    assert table.header == ["Dataset", "Order", "5", "10"]
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert [row[2] for row in table.rows] == ["0.700", "0.400", "0.300", "0.200", "0.500", "0.300"]


def test_the_picture_has_both_orders_with_their_bands() -> None:
    axis = draw_active(GIVEN).axes[0]
    assert [line.is_dashed() for line in axis.get_lines()] == [False, True]
    assert np.asarray(axis.get_lines()[0].get_ydata()).tolist() == pytest.approx([0.5, 0.5])
    assert len(axis.collections) == 2


def test_the_command_prints_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTS", (10, 50))
    monkeypatch.setattr(module, "DRAWS", 2)
    options = ["--datasets", "sim_ecg", "--seeds", "0", "--method", "raw+verdict", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["study", "active", *options])
    assert done.exit_code == 0, done.output
    with (tmp_path / "active.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Order"] for row in rows] == [TELLING, RANDOM]
    assert all(0 < float(row["50"]) <= 1 for row in rows)
    assert all((tmp_path / f"active.{suffix}").stat().st_size for suffix in ("svg", "png"))
