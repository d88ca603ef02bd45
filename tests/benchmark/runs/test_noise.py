"""Wrong labels: how many, which, and that only what methods may know is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import Task
from readbench.benchmark.runs import Budget, Cell, Setup, parse_budget, run, sweep, with_noise
from readbench.benchmark.runs._budget import add_label_noise
from readbench.benchmark.runs._cells import judge, rank_level
from readbench.benchmark.simulators import Tanks
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Pool, Scores
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import UsageError
from tests.benchmark.runs.helpers import rows_without_times, small_plan

FAULTS, NORMALS, QUERIES, TYPES = 60, 20, 12, 5
SHARES = (5.0, 10.0, 20.0, 30.0, 90.0)


def archive(types: int = TYPES, seed: int = 3) -> Task:
    """Fault types that a mean gives away, recordings of four windows, and normals from level 20 on."""
    rng = np.random.default_rng(0)
    labels = np.concatenate(
        [1 + np.arange(FAULTS) // 4 % types, np.full(NORMALS, NORMAL), 1 + np.arange(QUERIES) % types]
    )
    values = 3.0 * labels[:, None, None] + rng.standard_normal((len(labels), 2, 16))
    windows = WindowSet.from_arrays(
        values,
        labels=labels,
        classes=("normal", *(f"type {i}" for i in range(types))),
        groups=[f"recording {i}" for i in np.arange(len(labels)) // 4],
    )
    corpus, queries = windows[: FAULTS + NORMALS], windows[FAULTS + NORMALS :]
    levels = {0: np.arange(FAULTS), 20: np.arange(FAULTS + NORMALS)}
    return Task(Tanks().info, seed, queries, corpus.with_stats(ChannelStats.of(corpus)), levels, corpus[:0])


TASK = archive()
TRUE = TASK.corpus.labels


def naive(percent: float) -> list[int]:
    """Window by window, as the rule says it."""
    names = [f"3 wrong {group} {label}" for group, label in zip(TASK.corpus.groups, TRUE, strict=True)]
    digest = [hashlib.sha256(name.encode()).digest() for name in names]
    labels = TRUE.tolist()
    wrong = sorted(range(FAULTS), key=lambda i: (digest[i], i))[: round(FAULTS * percent / 100)]
    for i in wrong:
        others = [c for c in range(1, TYPES + 1) if c != TRUE[i]]
        labels[i] = others[int.from_bytes(digest[i][-8:], "big") % len(others)]
    return labels


@pytest.mark.parametrize("percent", SHARES)
def test_so_many_faults_are_wrong_and_named_like_another_fault_of_the_corpus(percent: float) -> None:
    labels = add_label_noise(TASK, percent)
    assert labels.tolist() == naive(percent)
    wrong = labels != TRUE
    assert wrong[:FAULTS].sum() == round(FAULTS * percent / 100)
    assert not wrong[FAULTS:].any()
    assert set(labels[wrong].tolist()) <= set(range(1, TYPES + 1))


def test_larger_shares_contain_the_smaller_with_the_same_wrong_names() -> None:
    for less, more in pairwise(add_label_noise(TASK, percent) for percent in SHARES):
        wrong = less != TRUE
        assert (less[wrong] == more[wrong]).all()
        assert (more != TRUE).sum() > wrong.sum()


def test_of_the_cases_at_most_one_is_wrong_in_part() -> None:
    for percent in SHARES:
        wrong = (add_label_noise(TASK, percent) != TRUE)[:FAULTS].reshape(-1, 4).sum(axis=1)
        assert ((wrong > 0) & (wrong < 4)).sum() <= 1


def test_the_split_seed_decides_who_is_wrong() -> None:
    assert (add_label_noise(TASK, 20.0) == add_label_noise(archive(), 20.0)).all()
    assert (add_label_noise(TASK, 20.0) != add_label_noise(archive(seed=4), 20.0)).any()


def test_one_fault_type_has_no_other_name() -> None:
    assert (add_label_noise(archive(types=1), 30.0) == archive(types=1).corpus.labels).all()


@pytest.mark.parametrize("text", ["all~30%", "50%~30%", "20~30%"])
def test_methods_learn_wrong_names_and_are_judged_by_the_true_ones(text: str, tmp_path: Path) -> None:
    budget, system = parse_budget(text), Method("euclidean+majvote")
    before = TASK.corpus.labels.copy()
    scored = rank_level(Setup(TASK, "task", tmp_path), system, 0, budget)
    clean = rank_level(Setup(TASK, "task", tmp_path), system, 0, replace(budget, wrong=0.0))
    assert (scored.scores != clean.scores).any()
    assert (TASK.corpus.labels == before).all()
    outcome = judge(Cell("archive", 3, 0, "euclidean+majvote", text), "", TASK, scored)
    assert outcome.per_query is not None
    order = np.argsort(-scored.scores, axis=1, kind="stable")[:, 0]
    np.testing.assert_array_equal(outcome.per_query.values["P@1"], TRUE[order] == TASK.queries.labels)


def test_what_is_shown_is_wrong_at_every_level_alike() -> None:
    shown = Budget(wrong=20.0).shown(TASK)
    assert (shown.corpus_at(20).labels[:FAULTS] == shown.corpus_at(0).labels).all()
    assert (shown.corpus.labels == add_label_noise(TASK, 20.0)).all()
    assert (TASK.queries.labels == shown.queries.labels).all()


@pytest.mark.parametrize("budget", [Budget(wrong=20.0), Budget(percent=30.0), Budget(per_query=5)], ids=str)
def test_recordings_stay_known_under_names_that_tell_nothing(budget: Budget) -> None:
    shown, true = budget.shown(TASK).corpus.groups.tolist(), TASK.corpus.groups.tolist()
    assert len(set(zip(shown, true, strict=True))) == len(set(true)) == len(set(shown))
    assert list(dict.fromkeys(shown)) == [str(i) for i in range(len(set(true)))]


def test_groups_reach_the_reranker_under_a_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Pool] = []

    def spy(_: object, pool: Pool) -> Scores:
        seen.append(pool)
        return pool.scores

    monkeypatch.setattr("readbench.engine.rerankers._classic.MajorityVote.rerank", spy)
    rank_level(Setup(TASK, "task", tmp_path), Method("euclidean+majvote"), 0, Budget(percent=50.0))
    groups = seen[0].groups.reshape(-1, 4)
    assert (groups == groups[:, :1]).all()
    assert len(np.unique(groups)) == FAULTS // 4


@pytest.mark.parametrize(("text", "expected"), [("ALL~10%", "all~10%"), ("20~0%", "20"), ("100%~2.50%", "all~2.5%")])
def test_texts_have_one_canonical_form(text: str, expected: str) -> None:
    assert str(parse_budget(text)) == expected
    assert parse_budget(expected) == parse_budget(text)


@pytest.mark.parametrize("text", ["all~", "~10%", "all~100%", "all~ten", "all~10", "10%~-5%"])
def test_texts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A label budget is"):
        parse_budget(text)


def test_noise_multiplies_budgets() -> None:
    assert with_noise(("all", "all~10%"), (0, 10)) == ("all", "all~10%")
    with pytest.raises(UsageError, match="from 0 to 99"):
        with_noise(("all",), (100,))


def test_budgets_say_what_is_wrong_in_words() -> None:
    texts = ("all", "all~20%", "20~5%", "10%~5%")
    assert [parse_budget(text).words for text in texts] == [
        "all labels",
        "all labels, 20% of them wrong",
        "20 labels a query, 5% of them wrong",
        "10% of the labels, 5% of them wrong",
    ]


def test_a_run_over_wrong_labels(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("euclidean", "euclidean+majvote"), labels=("all", "all~30%"), levels=(0,))
    assert run(plan, tmp_path, cache=private_cache).computed == 3
    rows = {(row["method"], row["labels"]): float(row["NDCG@10"]) for row in rows_without_times(tmp_path)}
    assert rows["euclidean+majvote", "all~30%"] < rows["euclidean+majvote", "all"]
    assert run(plan, tmp_path, cache=private_cache).reused == 3


def test_the_suites_span_their_axes() -> None:
    assert sweep("noise", None).plan.labels == with_noise(("all",), (0, 10, 20, 30))
    assert sweep("share", None).plan.labels[0] == "1%"
    assert sweep("share", None).plan.labels[-1] == "all"
    assert sweep("pollution", None).plan.levels == (0, 10, 20, 30, 40, 50)
