"""Each pretrained network, with small random weights in the true files, ranks a slice of real recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import Task, load_task
from readbench.engine.encoders._pretrained import FrozenEncoder
from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.registry import ENCODERS
from readbench.engine.spec import build_source
from readbench.engine.vectors import VectorFolder
from tests.engine.encoders.checkpoints import write_chronos, write_mantis, write_tirex

CORPUS, QUERIES = 60, 12


class Case(NamedTuple):
    method: str
    hub_id: str
    write: Callable[[Path], Path]


CASES = [
    Case("mantis", "paris-noah/MantisV2", write_mantis),
    Case("chronos-2", "amazon/chronos-2", write_chronos),
    Case("tirex", "NX-AI/TiRex", write_tirex),
]


@pytest.fixture
def task(real_data: Path, private_cache: Path) -> Task:
    if not (real_data / "skab").is_dir():
        pytest.skip(f"{real_data} has no folder skab")
    return load_task(build_source("skab"), seed=0, root=real_data, cache=private_cache)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.method)
def test_it_ranks_real_windows_and_encodes_each_once(
    case: Case, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.write(tmp_path / "models" / case.hub_id)
    monkeypatch.setenv("READBENCH_MODELS", str(tmp_path / "models"))
    assert ENCODERS.get(case.method).unavailable() == ""
    corpus, queries = task.corpus[:CORPUS], task.queries[:QUERIES]

    scores = Method(case.method, vectors=VectorFolder(tmp_path)).fit(corpus, task.normals).score(queries)
    assert scores.shape == (QUERIES, CORPUS)
    assert len(np.unique(scores[0])) > CORPUS // 2
    means = evaluate(rank(scores), queries.labels, corpus.labels).means()
    assert 0 < means["NDCG@10"] < 1

    monkeypatch.setattr(FrozenEncoder, "embed", None)  # what is known is not computed again
    again = Method(case.method, vectors=VectorFolder(tmp_path)).fit(corpus, task.normals)
    np.testing.assert_array_equal(again.score(queries), scores)
    assert (rank(again.score(corpus), 1)[:, 0] == np.arange(CORPUS)).all()
