"""What a run keeps of its methods' opinions: what `readbench study opinions` measures, without a second lesson."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.protocol import load_task
from readbench.benchmark.runs import KEY, OPINION, merge, run
from readbench.benchmark.runs._plan import Shard
from readbench.benchmark.simulators import Ecg
from readbench.engine.rerankers import _ridge as judgement, _verdict as verdict
from readbench.engine.rerankers._ridge import FittedVerdict
from readbench.engine.spec import parse
from readbench.studies._opinions import form_opinions
from tests.benchmark.runs.helpers import small_plan

OPINING = "raw|raw(norm=window)+verdict"
PLAN = small_plan(
    datasets=("sim_ecg",), methods=("euclidean", OPINING, "raw+verdict(pool=20)"), seeds=(0,), levels=(20,)
)

ROUNDING = 1e-5
"""Matrix products of other sizes are rounded otherwise in single precision, more on some processors than on others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run(PLAN, folder, cache=shared_cache)
    return folder


def test_kept_opinions_are_those_of_the_method_on_its_own(folder: Path, private_cache: Path) -> None:
    table = pq.read_table(folder / "opinions.parquet")
    assert table.column_names == [*KEY, "query", "group", *OPINION]
    assert set(table["method"].to_pylist()) == {str(parse(OPINING))}
    task = load_task(Ecg(), seed=0, cache=private_cache, settings=PLAN.composition)
    for rho in PLAN.levels:
        own = table.filter(np.array(table["rho"].to_pylist()) == rho)
        wanted = form_opinions(task, rho, parse(OPINING), private_cache)
        assert own["query"].to_pylist() == task.queries.ids.tolist()
        assert own["correct"].to_pylist() == wanted.stated.correct.tolist()
        np.testing.assert_allclose(own["confidence"].to_numpy(), wanted.stated.confidence, rtol=ROUNDING)
        truth = [
            dict(zip(o.classes, o.posterior, strict=True))[t]
            for o, t in zip(wanted.opinions, wanted.labels, strict=True)
        ]
        np.testing.assert_allclose(own["truth"].to_numpy(), truth, rtol=ROUNDING)


def test_nothing_is_learned_twice(tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[int] = []
    original = judgement.fit_verdict

    def counting(*given: object, **settings: object) -> FittedVerdict:
        lessons.append(1)
        return original(*given, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(verdict, "fit_verdict", counting)
    run(small_plan(datasets=("sim_ecg",), methods=(OPINING,), levels=(0,)), tmp_path, cache=private_cache)
    assert len(lessons) == 1
    assert (tmp_path / "opinions.parquet").exists()


def test_labels_of_single_queries_make_no_opinion_that_is_kept(tmp_path: Path, private_cache: Path) -> None:
    run(
        small_plan(datasets=("sim_ecg",), methods=(OPINING,), labels=("5",), levels=(0,)), tmp_path, cache=private_cache
    )
    assert not (tmp_path / "opinions.parquet").exists()


def test_parts_and_a_second_start_give_the_same_bytes(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    parts = [tmp_path / "one", tmp_path / "two"]
    for number, part in enumerate(parts, start=1):
        run(PLAN, part, cache=private_cache, shard=Shard(number, 2))
    merge(parts, tmp_path / "merged")
    whole = (folder / "opinions.parquet").read_bytes()
    assert (tmp_path / "merged" / "opinions.parquet").read_bytes() == whole
    (folder / "opinions.parquet").unlink()
    assert run(PLAN, folder, cache=private_cache).computed == 0
    assert (folder / "opinions.parquet").read_bytes() == whole
