"""The library is as good as the benchmark says: the same method on the same windows scores the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import Composition, Task, load_task
from readbench.benchmark.runs import Setup
from readbench.benchmark.runs._cells import rank_level
from readbench.cases import Library
from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.spec import build_source, parse
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import UNLABELLED

METHOD = "rocket(features=2016)|ws(alpha=0.7)|dtw-i+verdict"


def test_a_library_with_few_labels_ranks_as_the_method_does(tmp_path: Path, private_cache: Path) -> None:
    """Every fifth case resolved, and one fault type named once: the order of the retrieval counts in both."""
    settings = Composition(corpus_cap=80, query_cap=10)
    task = load_task(build_source("sim_ecg"), seed=0, cache=private_cache, settings=settings)
    corpus = task.corpus_at(0)
    labels = np.where(np.arange(len(corpus)) % 5 == 0, corpus.labels, UNLABELLED)
    labels[corpus.labels == 1] = UNLABELLED
    labels[np.flatnonzero(corpus.labels == 1)[0]] = 1
    known = replace(corpus, labels=labels.astype(np.int32))
    cases = Library.create(tmp_path / "l")
    cases.add_normals(task.normals)
    cases.add(known)
    place = {case.id: i for i, case in enumerate(cases.cases())}
    answers = cases.search_many(task.queries, k=20, method=METHOD)
    found = [[place[hit.case.id] for hit in answer.hits] for answer in answers]
    scores = Method(METHOD, vectors=VectorFolder(private_cache)).fit(known, task.normals).score(task.queries)
    assert found == rank(scores, 20).tolist()
    base = Method(METHOD.removesuffix("+verdict"), vectors=VectorFolder(private_cache))
    alone = base.fit(known, task.normals).score(task.queries)
    assert found != rank(alone, 20).tolist()


def benchmark(task: Task, rho: int, method: str, cache: Path) -> dict[str, float]:
    """Metrics as a run of the benchmark has them."""
    setup = Setup.of(task, cache)
    ranking = rank_level(setup, setup.method(parse(method)), rho)
    return evaluate(ranking.order, task.queries.labels, task.corpus_at(rho).labels).means()


def library(task: Task, rho: int, method: str, where: Path) -> dict[str, float]:
    """Metrics of a library that holds the corpus and is asked about the queries."""
    corpus = task.corpus_at(rho)
    cases = Library.create(where)
    cases.add_normals(task.normals)
    cases.add(corpus)
    answers = cases.search_many(task.queries, k=100, method=method)
    place = {case.id: i for i, case in enumerate(cases.cases())}
    order = np.array([[place[hit.case.id] for hit in answer.hits] for answer in answers])
    return evaluate(order, task.queries.labels, corpus.labels).means()


@pytest.mark.parametrize("rho", [0, 20])
def test_the_simulated_plant_scores_the_same(tmp_path: Path, private_cache: Path, rho: int) -> None:
    settings = Composition(corpus_cap=80, query_cap=20)
    task = load_task(build_source("sim_ecg"), seed=0, cache=private_cache, settings=settings)
    expected = benchmark(task, rho, METHOD, private_cache)
    assert library(task, rho, METHOD, tmp_path / "l") == pytest.approx(expected, abs=1e-9)
    assert 0.2 < expected["NDCG@10"] < 1.0


@pytest.mark.parametrize("name", ["skab", "petrobras_3w"])
def test_real_data_score_the_same(tmp_path: Path, private_cache: Path, real_data: Path, name: str) -> None:
    if not (real_data / name).is_dir():
        pytest.skip(f"READBENCH_DATA has no {name}")
    settings = Composition(corpus_cap=150, query_cap=20)
    task = load_task(build_source(name), seed=0, root=real_data, cache=private_cache, settings=settings)
    expected = benchmark(task, 0, METHOD, private_cache)
    assert library(task, 0, METHOD, tmp_path / "l") == pytest.approx(expected, abs=1e-6)
