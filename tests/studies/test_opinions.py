"""Opinions on a task: what is measured, and that a fault type held out is gone from the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.runs import TaskOpinions
from readbench.benchmark.simulators import Ecg
from readbench.common.calibration import auroc, coverage, expected_calibration_error
from readbench.engine.method import Method
from readbench.engine.rerankers import Opinion
from readbench.engine.vectors import VectorFolder
from readbench.errors import UsageError
from readbench.studies._opinions import (
    HeldOut,
    form_opinions,
    held_out_faults,
    leave_out_fault,
    novel_faults,
    quality,
    require_opinions,
)

METHOD = require_opinions("raw|raw(norm=window)+verdict").spec


@pytest.fixture(scope="module")
def task(shared_cache: Path) -> Task:
    return load_task(Ecg(), seed=0, cache=shared_cache)


def test_a_fault_held_out_is_gone_from_every_level_and_nothing_else_is(task: Task) -> None:
    label = held_out_faults(task)[0]
    left = leave_out_fault(task, label)
    for rho in task.levels:
        before, after = task.corpus_at(rho), left.corpus_at(rho)
        assert after.ids.tolist() == before.ids[before.labels != label].tolist()
        assert (after.labels == before.labels[before.labels != label]).all()
    assert left.queries is task.queries
    assert left.corpus.stats is not None
    assert task.corpus.stats is not None
    assert left.corpus.stats.fingerprint() != task.corpus.stats.fingerprint()


def test_a_task_with_one_fault_among_its_queries_has_nothing_to_hold_out(task: Task) -> None:
    one = int(task.queries.labels[0])
    alone = Task(task.info, 0, task.queries[task.queries.labels == one], task.corpus, task.levels, task.normals)
    assert held_out_faults(alone) == []
    assert held_out_faults(task) == sorted(set(task.queries.labels.tolist()))


def test_opinions_agree_with_the_ranking_of_the_same_method(task: Task, private_cache: Path) -> None:
    """The first hit of the whole method carries the most likely fault type."""
    answers = form_opinions(task, 20, METHOD, private_cache)
    corpus = task.corpus_at(20)
    fitted = Method(METHOD, vectors=VectorFolder(private_cache)).fit(corpus, task.normals)
    first = fitted.score(task.queries).argmax(axis=1)
    assert corpus.labels[first].tolist() == [opinion.label for opinion in answers.opinions]
    assert answers.stated.correct.mean() > 0.6


def test_held_out_faults_are_told_from_the_others_better_than_by_chance(task: Task, private_cache: Path) -> None:
    found = novel_faults(task, 0, METHOD, private_cache)
    assert [len(one.novel) for one in found] == np.bincount(task.queries.labels)[held_out_faults(task)].tolist()
    assert {len(one.novel) + len(one.known) for one in found} == {len(task.queries)}
    assert np.mean([one.auroc for one in found]) > 0.6
    label = held_out_faults(task)[0]
    answers = form_opinions(leave_out_fault(task, label), 0, METHOD, private_cache)
    assert label not in answers.opinions[0].classes
    own = answers.labels == label
    assert found[0].auroc == auroc(answers.strangeness[own], answers.strangeness[~own])


def opinion(posterior: list[float], candidates: tuple[int, ...], *, novel: bool) -> Opinion:
    return Opinion(np.array([1, 2], np.int32), np.array(posterior), candidates, 0.1, 0.2, novel)


def test_figures_are_those_of_the_answers() -> None:
    given = [
        opinion([0.9, 0.1], (1,), novel=False),
        opinion([0.4, 0.6], (2, 1), novel=False),
        opinion([0.8, 0.2], (1,), novel=True),
    ]
    answers = TaskOpinions(np.array([1, 1, 2], np.int32), given)
    held_out = [HeldOut("a", np.array([2.0]), np.array([1.0, 3.0])), HeldOut("b", np.array([2.0]), np.array([1.0]))]
    found = quality(answers, held_out)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.ece == expected_calibration_error([0.9, 0.6, 0.8], [True, False, False])
    assert found.coverage == coverage([{1}, {1, 2}, {1}], [1, 1, 2])
    assert found.set_size == pytest.approx(4 / 3)
    assert found.alarms == pytest.approx(1 / 3)
    assert (found.auroc, found.false_alarms) == pytest.approx((0.75, 0.25))
    assert np.isnan(quality(answers, []).auroc)


@pytest.mark.parametrize("text", ["rocket", "rocket+gpc", "rocket+verdict(pool=20)", "rocket+verdict+prf"])
def test_methods_without_an_opinion_are_told_how_to_have_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"end the method with \+verdict"):
        require_opinions(text)
