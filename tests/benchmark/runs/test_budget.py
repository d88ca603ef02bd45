"""Label budgets: what they grant, and that nothing else reaches a method."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar, Self

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from readbench.benchmark.protocol import Task
from readbench.benchmark.runs import (
    ALL,
    Budget,
    Cell,
    Setup,
    Suite,
    parse_budget,
    parse_budgets,
    run,
    suite,
    sweep,
)
from readbench.benchmark.runs._cells import cell_fingerprint, judge, rank_level
from readbench.benchmark.simulators import Tanks
from readbench.engine.method import Method, Ranking
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Pool, Scores
from readbench.engine.registry import RERANKERS, RETRIEVERS
from readbench.engine.spec import parse
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from readbench.testing import reachable
from tests.benchmark.runs.helpers import rows_without_times, small_plan

ITEMS, QUERIES, FIRST_LABEL = 40, 6, 7_000_000
"""Every item of the task below has a label of its own, from the first one up: whoever sees it can be told."""


def secret_task() -> Task:
    """A task in which each fact of each item can be recognised; 25 % of the largest corpus are added at level 20."""
    windows = WindowSet.from_arrays(
        np.random.default_rng(0).standard_normal((ITEMS + QUERIES, 2, 16)),
        labels=FIRST_LABEL + np.arange(ITEMS + QUERIES),
        classes=("normal", "fault"),
        ids=[f"secret {i}" for i in range(ITEMS + QUERIES)],
        groups=[f"secret {i}" for i in np.arange(ITEMS + QUERIES) // 4],
        spans=np.tile([3, 9], (ITEMS + QUERIES, 1)),
    )
    levels = {0: np.flatnonzero(np.arange(ITEMS) % 4), 20: np.arange(ITEMS)}
    corpus, queries = windows[np.arange(ITEMS)], windows[np.arange(ITEMS, ITEMS + QUERIES)]
    return Task(Tanks().info, 5, queries, corpus.with_stats(ChannelStats.of(corpus)), levels, corpus[[]])


TASK = secret_task()
SHARES = [Budget(percent=p) for p in (0.1, 5.0, 10.0, 33.0, 80.0)]


def labels_in(*roots: object) -> set[int]:
    """Items whose labels, or names, can be reached."""
    found: set[int] = set()
    for item in reachable(*roots):
        if isinstance(item, np.ndarray) and item.dtype.kind == "i":
            found |= set((item[item >= FIRST_LABEL] - FIRST_LABEL).tolist())
        elif isinstance(item, str) and item.startswith("secret "):
            found.add(int(item.split()[1]))
    return found


class SpyLeg:
    """A retriever that reads labels, keeps what it is given, and ranks items by position."""

    uses_labels = True
    corpus_dependent = True
    latest: ClassVar[Any] = None

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        self.given = [corpus, normals]
        SpyLeg.latest = self
        return self

    def score(self, queries: WindowSet) -> Scores:
        self.given.append(queries)
        return np.tile(np.arange(len(self.given[0]), 0, -1, dtype=np.float32), (len(queries), 1))


class SpyReranker:
    """A reranker that keeps its pool."""

    uses_labels = True
    depth = 5
    latest: ClassVar[Any] = None

    def rerank(self, pool: Pool) -> Scores:
        pool.corpus_similarity.sum()
        self.given = pool
        SpyReranker.latest = self
        return pool.scores


@pytest.fixture(autouse=True)
def spies() -> Iterator[None]:
    RETRIEVERS.register("spy", family="test")(SpyLeg)
    RERANKERS.register("spy", family="test")(SpyReranker)
    yield
    del RETRIEVERS._entries["spy"], RERANKERS._entries["spy"]


def spied(method: str, budget: Budget, rho: int, cache: Path) -> Ranking:
    setup = Setup(TASK, "task", cache)
    return rank_level(setup, setup.method(parse(method)), rho, budget)


def last(spy: type[SpyLeg | SpyReranker]) -> Any:  # noqa: ANN401 - what a spy was given
    """What the last spy that worked was given."""
    return spy.latest


def granted(budget: Budget, rho: int = 20) -> list[int]:
    labels = budget.shown(TASK).corpus_at(rho).labels
    return (labels[labels >= 0] - FIRST_LABEL).tolist()


def naive_grant(budget: Budget) -> set[int]:
    """Case by case: whole groups in the order of their hash, from the clean corpus and from what is added to it."""
    clean = TASK.levels[0].tolist()
    known = set()
    for part, least in ((clean, 1), ([i for i in range(ITEMS) if i not in clean], 0)):
        order = sorted(part, key=lambda i: (hashlib.sha256(f"5 secret {i // 4}".encode()).hexdigest(), i))
        known |= set(order[: max(least, round(len(part) * (budget.percent or 0.0) / 100))])
    return known


@pytest.mark.parametrize("budget", SHARES, ids=str)
@pytest.mark.parametrize("rho", [0, 20])
def test_a_leg_that_reads_labels_can_reach_the_granted_ones_and_no_other(
    budget: Budget, rho: int, tmp_path: Path
) -> None:
    spied("spy", budget, rho, tmp_path)
    assert labels_in(last(SpyLeg)) == set(granted(budget, rho))


@pytest.mark.parametrize(
    ("method", "budget"),
    [("euclidean+spy", Budget(per_query=0)), *product(["euclidean+spy", "spy+spy", "spy|euclidean+spy"], SHARES)],
    ids=str,
)
def test_a_reranker_can_reach_the_granted_labels_and_no_other(method: str, budget: Budget, tmp_path: Path) -> None:
    spied(method, budget, 20, tmp_path)
    assert labels_in(last(SpyReranker)) == set(granted(budget))


@pytest.mark.parametrize("count", [1, 3, 17, 100])
def test_a_query_knows_the_labels_of_its_own_first_hits_and_no_other(count: int, tmp_path: Path) -> None:
    budget = Budget(per_query=count)
    spied("euclidean+spy", budget, 0, tmp_path)
    base = Method("euclidean").fit(TASK.corpus_at(0), TASK.normals).score(TASK.queries)
    pool: Pool = last(SpyReranker).given
    first = np.argsort(-base, axis=1, kind="stable")[:, :count]
    for labels, own in zip(pool.corpus_labels, first, strict=True):
        assert set(np.flatnonzero(labels >= 0).tolist()) == set(own.tolist())
        np.testing.assert_array_equal(labels[own], TASK.corpus_at(0).labels[own])
    assert labels_in(pool) == {int(TASK.levels[0][i]) for i in first.ravel()}


def test_a_reranker_that_reads_no_label_can_reach_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpyReranker, "uses_labels", False)
    spied("euclidean+spy", ALL, 20, tmp_path)
    assert labels_in(last(SpyReranker)) == set()


def test_with_all_labels_the_search_finds_them(tmp_path: Path) -> None:
    spied("spy", ALL, 20, tmp_path)
    assert labels_in(last(SpyLeg)) == set(range(ITEMS))
    spied("euclidean+spy", ALL, 20, tmp_path)
    assert labels_in(last(SpyReranker)) == set(range(ITEMS))


@pytest.mark.parametrize("budget", SHARES, ids=str)
def test_shares_are_granted_as_an_expert_would_case_by_case(budget: Budget) -> None:
    assert set(granted(budget)) == naive_grant(budget)


def test_a_larger_share_contains_the_smaller_and_the_smallest_has_one_label() -> None:
    for rho in TASK.levels:
        sets = [set(granted(budget, rho)) for budget in SHARES]
        assert all(small <= large for small, large in pairwise(sets))
        assert len(sets[0]) == 1
        assert len(sets[3]) == pytest.approx(0.33 * len(TASK.levels[rho]), abs=1)


def test_of_the_groups_at_most_one_is_labelled_in_part() -> None:
    for budget in SHARES:
        known = np.isin(TASK.levels[0], granted(budget, 0))
        groups = TASK.levels[0] // 4
        partly = [g for g in np.unique(groups) if 0 < known[groups == g].sum() < (groups == g).sum()]
        assert len(partly) <= 1


def test_other_splits_label_other_groups() -> None:
    drawn = [Budget(percent=33.0).shown(replace(TASK, seed=seed)).corpus.labels.tolist() for seed in range(5)]
    assert len(set(map(tuple, drawn))) > 1


@given(st.integers(0, 60), st.integers(0, 1000))
def test_known_labels_are_those_of_a_loop(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (3, 20)).astype(np.float32)
    true = rng.integers(0, 5, 20).astype(np.int32)
    found = Budget(per_query=count).known(np.full(20, -1, np.int32), true, scores)
    for row, own in zip(np.broadcast_to(found, scores.shape).tolist(), scores.tolist(), strict=True):
        expected = [-1] * 20
        for item in sorted(range(20), key=lambda i: (-own[i], i))[:count]:
            expected[item] = int(true[item])
        assert row == expected


def test_a_method_is_judged_by_the_true_labels(tmp_path: Path) -> None:
    budget = Budget(percent=5.0)
    scored = spied("spy", budget, 20, tmp_path)
    outcome = judge(Cell("secret", 5, 20, "spy", str(budget)), "", TASK, scored)
    assert outcome.ranking is not None
    assert outcome.ranking[0, 0] == "secret 0"
    assert outcome.per_query is not None
    assert outcome.per_query.predicted[0] == FIRST_LABEL


@pytest.mark.parametrize(("text", "expected"), [("ALL", "all"), (" 5 ", "5"), ("1%", "1%"), ("100%", "all")])
def test_texts_have_one_canonical_form(text: str, expected: str) -> None:
    assert str(parse_budget(text)) == expected
    assert parse_budget(expected) == parse_budget(text)


@pytest.mark.parametrize("text", ["", "-1", "0%", "101%", "five", "1.5", "10 %%"])
def test_texts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A label budget is"):
        parse_budget(text)


def test_several_budgets_are_read_in_order() -> None:
    assert parse_budgets("0, 05,all") == ("0", "5", "all")


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("euclidean+gpc", "euclidean+gpc(pool=50)"),
        ("euclidean+gpc(k=5)", "euclidean+gpc(k=5,pool=50)"),
        ("euclidean+majvote(pool=80)", "euclidean+majvote(pool=80)"),
        ("euclidean+prf+purity", "euclidean+prf(pool=50)+purity(pool=50)"),
        ("euclidean+spy", "euclidean+spy"),
    ],
)
def test_pools_grow_with_the_labels_of_a_query(method: str, expected: str) -> None:
    assert str(Budget(per_query=50).widened(parse(method))) == expected
    for same in (ALL, Budget(percent=10.0), Budget(per_query=20)):
        assert str(same.widened(parse(method))) == method


def test_each_budget_has_its_own_fingerprint() -> None:
    setup, method = Setup(TASK, "task", Path()), Method("euclidean+majvote")
    found = {cell_fingerprint(setup, method, 10, parse_budget(text)) for text in ("0", "1", "1%", "10%", "all")}
    assert len(found) == 5


def test_scores_that_depend_on_labels_are_kept_apart(tmp_path: Path) -> None:
    for budget in (*SHARES, ALL):
        cached = spied("majority", budget, 20, tmp_path / "shared").scores
        fresh = spied("majority", budget, 20, tmp_path / str(budget)).scores
        np.testing.assert_array_equal(cached, fresh)


@pytest.mark.parametrize("method", ["euclidean+purity", "euclidean+qpurity", "euclidean+majvote", "euclidean+gpc"])
def test_without_labels_the_base_order_stays(method: str, tmp_path: Path) -> None:
    base = spied("euclidean", ALL, 20, tmp_path).scores
    reranked = spied(method, Budget(per_query=0), 20, tmp_path).scores
    np.testing.assert_array_equal(np.argsort(-reranked, kind="stable"), np.argsort(-base, kind="stable"))


def test_methods_that_read_no_label_run_once() -> None:
    plan = small_plan(methods=("euclidean", "euclidean+prf", "euclidean+gpc"), labels=("0", "5"), levels=(0,))
    assert [(c.method, c.labels) for c in plan.cells()] == [
        ("euclidean", "all"),
        ("euclidean+prf", "all"),
        ("euclidean+gpc", "0"),
        ("euclidean+gpc", "5"),
    ]
    assert sorted(map(str, (c for job in plan.jobs() for c in job.cells()))) == sorted(map(str, plan.cells()))


@pytest.mark.parametrize("labels", [("5", "10%"), ("5", "5"), (), ("lots",)])
def test_plans_refuse_budgets_that_make_no_axis(labels: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        small_plan(labels=labels)


def test_a_run_over_budgets(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("euclidean", "euclidean+majvote"), labels=("0", "10", "100"), levels=(0,))
    summary = run(plan, tmp_path, cache=private_cache)
    assert summary.computed == 4
    rows = {(row["method"], row["labels"]): row for row in rows_without_times(tmp_path)}
    assert rows["euclidean+majvote", "0"]["NDCG@10"] == rows["euclidean", "all"]["NDCG@10"]
    assert rows["euclidean+majvote", "10"]["NDCG@10"] != rows["euclidean", "all"]["NDCG@10"]
    assert len(list(tmp_path.glob("cells/sim_tanks/seed-7/rho-0/*.parquet"))) == 1
    assert len(list(tmp_path.glob("cells/sim_tanks/seed-7/rho-0/labels-10/*.parquet"))) == 1
    assert run(plan, tmp_path, cache=private_cache).reused == 4


def test_legs_that_learn_from_the_corpus_refuse_labels_by_query(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("majority", "euclidean"), labels=("5",), levels=(0,))
    summary = run(plan, tmp_path, cache=private_cache)
    assert [report.cell.method for report in summary.failures] == ["majority"]
    assert "learns from the labels of the whole corpus" in summary.failures[0].failure
    assert "--label-budget 10%" in summary.failures[0].failure


def test_a_suite_skips_what_cannot_run_under_its_budgets() -> None:
    chosen = suite("classical", None)
    by_query, by_share = chosen.under(("5",)), chosen.under(("10%", "all"))
    assert "majority" in by_query.skipped
    assert "majority" not in by_query.plan.methods
    assert by_share.plan.methods == chosen.plan.methods
    assert by_share.plan.labels == ("10%", "all")


def test_the_budget_suite_spans_the_budgets() -> None:
    chosen: Suite = sweep("budget", None)
    assert chosen.plan.labels == ("0", "5", "10", "20", "50", "100")
    assert any(method.endswith("+gpc") for method in chosen.plan.methods)
