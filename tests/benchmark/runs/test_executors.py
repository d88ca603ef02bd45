"""Where work runs: the same results everywhere, and a worker that dies costs only time."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from readbench.benchmark.runs import (
    TRIES,
    Executor,
    Local,
    LostItem,
    Processes,
    Setting,
    executor_of,
    run,
)
from readbench.benchmark.runs._execute import give_up, run_job
from readbench.common.progress import SILENT
from readbench.errors import UsageError
from tests.benchmark.runs.helpers import assert_same_results, rows_without_times, small_plan
from tests.benchmark.runs.work import begun, dies_when_told, refused, squared


@pytest.mark.parametrize("executor", [Local(), Processes(1)], ids=["local", "processes"])
def test_every_item_is_done_once_and_news_arrive(executor: Executor) -> None:
    heard: list[tuple[str, int, int | None]] = []
    results = dict(executor.map(squared, range(7), lambda *news: heard.append(news)))
    assert results == {n: n * n for n in range(7)}
    assert sorted(heard) == [("leg", n, 10) for n in range(7)]


@pytest.mark.parametrize("executor", [Local(), Processes(1)], ids=["local", "processes"])
def test_an_error_of_the_work_is_the_callers(executor: Executor) -> None:
    with pytest.raises(KeyError, match="no 3"):
        list(executor.map(refused, [3], SILENT))


def test_what_a_dead_worker_was_at_is_begun_again_and_given_up_at_last(tmp_path: Path) -> None:
    deaths = {1: 99, 3: 1}
    items = [(tmp_path, number, deaths.get(number, 0)) for number in range(5)]
    results = {item[1]: result for item, result in Processes(2).map(dies_when_told, items, SILENT)}
    lost = results.pop(1)
    assert isinstance(lost, LostItem)
    assert "died 3 times" in lost.reason
    assert results == {number: number for number in (0, 2, 3, 4)}
    assert begun(tmp_path)[1] == TRIES
    assert begun(tmp_path)[3] >= 2


class Killing:
    """Kills one worker when the first cell has ended."""

    killed = 0

    def __call__(self, what: str, done: int, total: int | None, /) -> None:  # noqa: ARG002
        if what == "cells" and done and not self.killed and (workers := multiprocessing.active_children()):
            workers[0].kill()
            self.killed += 1


def test_a_run_whose_worker_is_killed_ends_with_the_same_bytes(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(seeds=(7, 8))
    run(plan, tmp_path / "local", cache=private_cache)
    progress = Killing()
    summary = run(plan, tmp_path / "killed", executor=Processes(2), cache=tmp_path / "cold", progress=progress)
    assert progress.killed
    assert not summary.failures
    assert_same_results(tmp_path / "local", tmp_path / "killed")


def test_a_job_that_is_given_up_keeps_its_finished_cells(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("random",), levels=(0,))
    run(plan, tmp_path, cache=private_cache)
    wider = small_plan(methods=("random",), levels=(0, 20))
    setting = Setting(tmp_path, private_cache, None, wider.composition)
    reports = give_up(next(wider.jobs()), setting, "the node burned")
    assert [(report.reused, report.failure) for report in reports] == [(True, ""), (False, "RunError: the node burned")]
    assert rows_without_times(tmp_path)[0]["status"] == "ok"


def test_a_node_that_does_not_see_the_run_folder_says_so(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan()
    setting = Setting(tmp_path / "elsewhere", private_cache, None, plan.composition)
    with pytest.raises(Exception, match="does not see the run folder"):
        run_job(next(plan.jobs()), SILENT, setting)
    assert not setting.folder.exists()


def test_executors_are_chosen_by_name_or_by_the_number_of_jobs() -> None:
    assert executor_of().name == "local"
    assert executor_of(workers=2).name == "processes"
    assert executor_of("local", workers=2).name == "local"
    assert executor_of("ray", address="auto").name == "ray"
    for wrong in ({"address": "auto"}, {"gpus": 1}):
        with pytest.raises(UsageError, match="add --executor ray"):
            executor_of("processes", **wrong)  # type: ignore[arg-type]
