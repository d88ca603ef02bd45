"""What named incidents are worth: what is named, what is judged, and how it is shown."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.protocol import Composition, Task, load_task
from readbench.benchmark.runs import Setup
from readbench.benchmark.simulators import Ecg
from readbench.cli import app
from readbench.engine.method import FittedMethod
from readbench.engine.spec import parse
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import UsageError
from readbench.studies import StudyCell
from readbench.studies._labels import (
    CHOICES,
    Choice,
    NamedIncidents,
    calibration_error,
    draw_belief,
    draw_list,
    judge,
    labels_table,
    name_incidents,
    read_counts,
)

RHO = 20


@pytest.fixture(scope="module")
def task(shared_cache: Path) -> Task:
    return load_task(Ecg(), seed=0, cache=shared_cache, settings=Composition(corpus_cap=200, query_cap=40))


@pytest.fixture(scope="module")
def fitted(task: Task, tmp_path_factory: pytest.TempPathFactory) -> FittedMethod:
    setup = Setup.of(task, tmp_path_factory.mktemp("cache"))
    return setup.fit(setup.method(parse("raw|euclidean+verdict(order=odds)")), RHO)


@pytest.mark.parametrize("choice", CHOICES)
def test_whole_incidents_are_named_beside_all_normals(choice: Choice, fitted: FittedMethod) -> None:
    corpus = fitted.corpus
    labels = name_incidents(corpus, 2.0, choice, 1, fitted)
    pairs = [*zip(corpus.groups.tolist(), corpus.labels.tolist(), strict=True)]
    named = {pair for pair, label in zip(pairs, labels, strict=True) if label > NORMAL}
    types = {label for _, label in pairs if label > NORMAL}
    assert len(named) == 2 * len(types)
    for pair, true, label in zip(pairs, corpus.labels, labels, strict=True):
        assert label == (true if true == NORMAL or pair in named else UNLABELLED)


def test_draws_differ_and_repeat(fitted: FittedMethod) -> None:
    for choice in CHOICES:
        first, again, other = (name_incidents(fitted.corpus, 1.0, choice, draw, fitted) for draw in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_all_names_are_all_labels(fitted: FittedMethod) -> None:
    labels = name_incidents(fitted.corpus, read_counts("all")["all"], "random", 0, fitted)
    np.testing.assert_array_equal(labels, fitted.corpus.labels)


def test_incidents_chosen_by_coverage_lie_nearer_to_the_others(fitted: FittedMethod) -> None:
    def uncovered(choice: Choice) -> float:
        found = []
        for draw in range(5):
            named = name_incidents(fitted.corpus, 2.0, choice, draw, fitted) > NORMAL
            alike = np.mean([own @ own[named].T for own in fitted.units], axis=0)
            found.append(1 - alike[fitted.corpus.labels > NORMAL].max(axis=1).mean())
        return float(np.mean(found))

    assert uncovered("coverage") < uncovered("random")


def test_the_belief_is_judged_where_the_fault_type_is_named(task: Task, fitted: FittedMethod) -> None:
    batch, corpus = fitted.ask(task.queries), fitted.corpus
    labels = name_incidents(corpus, 0.5, "random", 0, fitted)
    found = judge(batch, labels, corpus, task.queries)
    known = np.unique(labels[labels > NORMAL])
    np.testing.assert_array_equal(found["named"], np.isin(task.queries.labels, known))
    cases = np.flatnonzero(labels > NORMAL)
    for query, true in enumerate(task.queries.labels):
        best = max(cases.tolist(), key=lambda case: batch.base[query, case])
        assert found["nearest"][query] == float(labels[best] == true)


@pytest.mark.parametrize("text", ["", "0", "many", "1,-2"])
def test_numbers_of_names_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names: named incidents per fault type"):
        read_counts(text)


def result(names: str, choice: str, ndcg: float, *, right: float, confidence: float) -> NamedIncidents:
    ones = np.ones(4)
    return NamedIncidents(
        cell=StudyCell("sim_ecg", "flagship"),
        names=names,
        choice=choice,
        draw=0,
        ndcg=ndcg * ones,
        hits=ones,
        unnamed=0.5 * ones,
        named=np.array([True, True, True, False]),
        right=np.array([1, 1, right, 0.0]),
        confidence=confidence * ones,
        nearest=np.array([1.0, 0, 0, 1]),
    )


def test_the_table_counts_queries_whose_fault_type_is_named() -> None:
    table = labels_table([result("1", "random", 0.6, right=0.0, confidence=0.9)])
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert (row["NDCG@10"], row["against none"], row["right"], row["nearest"]) == ("0.600", "0.100", "0.667", "0.333")
    assert row["ECE"] == "0.233"


def test_the_calibration_error_counts_named_queries_alone() -> None:
    sure = result("1", "random", 0.6, right=1.0, confidence=1.0)
    unsure = result("1", "random", 0.6, right=0.0, confidence=0.5)
    assert calibration_error([sure]) == 0.0
    assert calibration_error([sure, unsure]) == pytest.approx((3 * 0 + 3 * (2 / 3 - 0.5)) / 6)


def test_methods_without_opinions_have_a_list_and_no_belief() -> None:
    silent = result("1", "random", 0.6, right=0.0, confidence=0.9)
    silent = NamedIncidents(**{**vars(silent), "right": np.full(4, np.nan), "confidence": np.full(4, np.nan)})
    assert draw_belief([silent]) is None
    assert labels_table([silent]).rows[0][7] == ""
    assert draw_list([silent]) is not None


def test_the_command_writes_tables_and_figures(tmp_path: Path) -> None:
    out = tmp_path / "labels"
    line = ["study", "labels", "--datasets", "sim_ecg(runs=40)", "--methods", "raw+verdict(order=odds)"]
    line += ["--set", "names=1,all", "--set", "draws=1", "--out", str(out)]
    ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 0, ended.output
    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    named = [(row["Chosen"], row["Names per type"]) for row in rows]
    assert named == [("random", "1"), ("coverage", "1"), ("random", "all")]
    assert {path.name for path in out.iterdir()} >= {
        "labels.md",
        "labels.png",
        "labels_right.svg",
        "labels_by_dataset.csv",
    }
