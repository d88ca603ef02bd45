"""Runs with encoders: weights count by what they hold, progress is told, and a kill loses no finished block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from readbench.benchmark.protocol import load_task
from readbench.benchmark.runs import Budget, Executor, Local, Processes, Setup, run
from readbench.benchmark.runs._cells import rank_level
from readbench.benchmark.simulators import Tanks
from readbench.engine import vectors as encoder_cache
from readbench.engine.legs import FittedLeg
from readbench.engine.method import Method
from readbench.engine.protocols import View
from readbench.engine.registry import ENCODERS
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet
from tests.benchmark.runs.encoders import WEIGHTS_VARIABLE, Filed, register
from tests.benchmark.runs.helpers import rows_without_times, small_plan


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    register()
    path = tmp_path / "weights"
    path.write_text("1.0")
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(path))
    yield path
    del ENCODERS._entries["filed"]


def test_a_leg_says_what_its_files_hold(weights: Path) -> None:
    leg = Method("filed").legs[0]
    before = leg.content_key
    weights.write_text("2.0")
    assert before
    assert leg.content_key not in {"", before}
    assert Method("euclidean").legs[0].content_key == Method("raw").legs[0].content_key == ""


@pytest.mark.parametrize("method", ["filed", "filed|euclidean", "filed+prf"])
def test_replaced_weights_are_never_answered_with_old_results(method: str, weights: Path, tmp_path: Path) -> None:
    plan = small_plan(methods=(method,), levels=(0,))
    run(plan, tmp_path / "run", cache=tmp_path / "cache")
    old = rows_without_times(tmp_path / "run")
    assert run(plan, tmp_path / "run", cache=tmp_path / "cache").reused == 1
    weights.write_text("0.01")
    assert run(plan, tmp_path / "run", cache=tmp_path / "cache").computed == 1
    run(plan, tmp_path / "fresh", cache=tmp_path / "other cache")
    assert rows_without_times(tmp_path / "run") == rows_without_times(tmp_path / "fresh") != old


def test_missing_weights_fail_the_cells_with_their_reason(weights: Path, tmp_path: Path, private_cache: Path) -> None:
    weights.unlink()
    summary = run(small_plan(methods=("filed", "random"), levels=(0,)), tmp_path / "run", cache=private_cache)
    assert [report.cell.method for report in summary.failures] == ["filed"]
    assert "No such file" in summary.failures[0].failure


@pytest.mark.parametrize("executor", [Local(), Processes(1)], ids=["local", "processes"])
def test_progress_of_encoding_is_heard_beside_that_of_cells(executor: Executor, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int | None]] = []
    plan, encoding = small_plan(methods=("rocket(features=84)+nr",), levels=(0,)), "encoding: rocket(features=84)+nr"
    run(plan, tmp_path, cache=tmp_path / "cache", executor=executor, progress=lambda *far: heard.append(far))
    assert {what for what, _, _ in heard} == {"building sim_tanks", "cells", encoding}
    assert [far for what, *far in heard if what == "cells"] == [[0, 1], [1, 1]]
    far = [(done, total) for what, done, total in heard if what == encoding]
    assert {(0, 1000), (256, 1000)} <= set(far)
    assert far[-1][0] == far[-1][1]
    heard.clear()
    run(plan, tmp_path / "again", cache=tmp_path / "cache", progress=lambda *far: heard.append(far))
    assert {what for what, _, _ in heard} == {"cells"}  # nothing is encoded again, and nothing is told


CHILD = """
import sys
from pathlib import Path
import tests.benchmark.runs.encoders as encoders
from readbench.benchmark.runs import Budget, _cells as cells, run
from tests.benchmark.runs.helpers import small_plan

encoders.register()
encode = encoders.Filed.encode
def slow(self, windows):
    vectors = encode(self, windows)
    if encoders.Filed.encoded > 600:
        sys.stdin.read()  # until it is killed
    return vectors
encoders.Filed.encode = slow
run(small_plan(methods=("filed",), levels=(0,)), Path(sys.argv[1]), cache=Path(sys.argv[2]))
"""


def test_a_run_killed_while_encoding_keeps_its_finished_blocks(weights: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(tmp_path / "cache")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ, cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "cache").rglob("embeddings/**/*.npz"))) < 2:
        assert process.poll() is None, "the run ended before its third block"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
    Filed.encoded = 0
    summary = run(small_plan(methods=("filed",), levels=(0,)), tmp_path / "run", cache=tmp_path / "cache")
    assert weights.exists()
    assert summary.computed == 1
    assert Filed.encoded == 1250 + 100 - 2 * encoder_cache.BLOCK


def test_vectors_that_rerankers_see_follow_the_weights(tmp_path: Path, weights: Path) -> None:
    task = load_task(Tanks(), seed=7, cache=tmp_path / "cache")
    setup = Setup(task, "task", tmp_path / "cache")
    one = rank_level(setup, Method("filed+prf", vectors=VectorFolder(setup.cache)), 0)
    weights.write_text("0.5")
    two = rank_level(setup, Method("filed+prf", vectors=VectorFolder(setup.cache)), 0)
    assert not (one.scores == two.scores).all()


def test_vectors_that_rerankers_see_are_computed_once_for_all_budgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FittedLeg] = []
    original = FittedLeg.represent

    def counting(leg: FittedLeg, queries: WindowSet | None = None) -> View:
        made.append(leg)
        return original(leg, queries)

    monkeypatch.setattr(FittedLeg, "represent", counting)
    setup = Setup(load_task(Tanks(), seed=7, cache=tmp_path / "cache"), "task", tmp_path / "cache")
    for count in (0, 5, 50):
        rank_level(setup, Method("euclidean+majvote", vectors=VectorFolder(setup.cache)), 0, Budget(per_query=count))
    assert len(made) == 1
