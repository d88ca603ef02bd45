"""The service is as good as the benchmark says: asked over HTTP, the same method scores the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import Composition, Task, load_task
from readbench.cases import Library
from readbench.cases.server import Settings
from readbench.cases.server._app import create_app
from readbench.engine.spec import build_source
from tests.cases.test_benchmark import METHOD, benchmark

DEPTH = 50


def over_http(task: Task, where: Path) -> dict[str, float]:
    """Metrics of a service that holds the corpus and is asked about the queries."""
    corpus = task.corpus_at(0)
    library = Library.create(where)
    library.add_normals(task.normals)
    library.add(corpus)
    place = {case.id: i for i, case in enumerate(library.cases())}
    queries = task.queries
    bodies = [{"channels": queries.channels(i), "values": queries.values(i).tolist()} for i in range(len(queries))]
    with TestClient(create_app(library, Settings(methods=(METHOD,))), base_url="http://localhost") as client:
        answers = client.post("/api/v1/search-many", json={"windows": bodies, "k": DEPTH}).json()
    order = np.array([[place[hit["case"]["id"]] for hit in answer["hits"]] for answer in answers])
    return evaluate(order, queries.labels, corpus.labels).means()


def check(task: Task, tmp_path: Path, cache: Path) -> None:
    expected = benchmark(task, 0, METHOD, cache)
    found = over_http(task, tmp_path / "library")
    for metric in ("NDCG@10", "P@1", "HR@10"):
        assert found[metric] == pytest.approx(expected[metric], abs=1e-6)


def test_the_simulated_plant_scores_the_same(tmp_path: Path, private_cache: Path) -> None:
    settings = Composition(corpus_cap=80, query_cap=20)
    check(load_task(build_source("sim_ecg"), seed=0, cache=private_cache, settings=settings), tmp_path, private_cache)


@pytest.mark.parametrize("name", ["skab", "petrobras_3w", "tennessee_eastman"])
def test_real_data_score_the_same(tmp_path: Path, private_cache: Path, real_data: Path, name: str) -> None:
    if not (real_data / name).is_dir():
        pytest.skip(f"READBENCH_DATA has no {name}")
    settings = Composition(corpus_cap=100, query_cap=12)
    task = load_task(build_source(name), seed=0, root=real_data, cache=private_cache, settings=settings)
    check(task, tmp_path, private_cache)
