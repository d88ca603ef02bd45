from __future__ import annotations

import hypothesis.strategies as st
import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from ir_measures import P, Success, nDCG
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from readbench.benchmark.metrics import CUTOFFS, Judgement, count_relevant, evaluate, macro_f1
from readbench.engine.ranking import rank
from readbench.engine.registry import METRICS
from readbench.errors import UsageError
from tests.benchmark.metrics.strategies import Scores, tied_scores
from tests.naive import metrics as naive

Labels = NDArray[np.int64]
BUILT_IN = [f"{name}@{k}" for name in ("P", "HR", "NDCG") for k in CUTOFFS]
"""The per-query metrics of the benchmark, in the order of columns."""


def f1(true: Labels, guessed: Labels) -> float:
    """Macro-F1 of lists that are one item long."""
    return macro_f1(Judgement(true, guessed[:, None], np.ones_like(true), len(true)))


@st.composite
def judged(draw: st.DrawFn) -> tuple[Scores, Labels, Labels]:
    """Scores with labels of queries and corpus, normal and unlabelled ones included."""
    scores = draw(tied_scores())
    labels = st.integers(-1, 4)
    queries = draw(arrays(np.int64, scores.shape[0], elements=labels))
    return scores, queries, draw(arrays(np.int64, scores.shape[1], elements=labels))


@pytest.fixture
def task() -> tuple[Scores, Labels, Labels]:
    """40 queries of 6 faults against 200 items, a fifth of them normal."""
    rng = np.random.default_rng(7)
    corpus = rng.choice(7, size=200, p=[0.2, 0.4, 0.2, 0.1, 0.05, 0.03, 0.02])
    queries = rng.permutation(np.repeat(np.arange(1, 7), 7)[:40])
    same = queries[:, None] == corpus
    return (rng.normal(size=same.shape) + 1.5 * same).astype(np.float32), queries, corpus


class TestRelevance:
    def test_normal_and_unlabelled_queries_have_no_relevant_item(self) -> None:
        corpus = np.array([-1, 0, 1])
        found = Judgement.of(np.array([[0, 1, 2]] * 3), np.array([-1, 0, 1]), corpus).hits
        assert found.tolist() == [[False] * 3, [False] * 3, [False, False, True]]

    def test_counts_cover_the_whole_corpus_and_faults_only(self) -> None:
        corpus = np.array([2, -1, 0, 0, 2, 7])
        assert count_relevant(np.array([2, 7, 9, 0, -1]), corpus).tolist() == [2, 1, 0, 0, 0]

    @pytest.mark.parametrize("position", [-1, 3])
    def test_positions_outside_the_corpus_are_refused(self, position: int) -> None:
        with pytest.raises(UsageError, match="corpus has 3 items"):
            Judgement.of(np.array([[position]]), np.array([1]), np.array([1, 1, 1]))

    def test_labels_of_another_query_set_are_refused(self) -> None:
        with pytest.raises(UsageError, match="query labels"):
            Judgement.of(np.array([[0], [0]]), np.array([1]), np.array([1]))


class TestEvaluate:
    @given(judged())
    def test_agrees_with_the_definitions_read_literally(self, case: tuple[Scores, Labels, Labels]) -> None:
        scores, queries, corpus = case
        result = evaluate(rank(scores, 20), queries, corpus)
        assert list(result.values) == BUILT_IN
        for q, row in enumerate(scores.tolist()):
            expected = naive.per_query(row, int(queries[q]), corpus.tolist())
            assert {name: column[q] for name, column in result.values.items()} == pytest.approx(expected)

    @pytest.mark.parametrize("k", CUTOFFS)
    def test_agrees_with_trec_eval(self, task: tuple[Scores, Labels, Labels], k: int) -> None:
        scores, queries, corpus = task
        result = evaluate(rank(scores, 20), queries, corpus)
        for name, measure in ((f"P@{k}", P @ k), (f"HR@{k}", Success @ k), (f"NDCG@{k}", nDCG @ k)):
            np.testing.assert_allclose(result.values[name], trec_eval(measure, task), atol=1e-12, err_msg=name)

    @given(judged())
    def test_values_are_shares_and_hits_only_grow_with_k(self, case: tuple[Scores, Labels, Labels]) -> None:
        scores, queries, corpus = case
        values = evaluate(rank(scores, 20), queries, corpus).values
        table = np.array(list(values.values()))
        assert ((table >= 0) & (table <= 1)).all()
        assert (np.diff([values[f"HR@{k}"] for k in CUTOFFS], axis=0) >= 0).all()
        np.testing.assert_array_equal(values["P@1"], values["HR@1"])

    @given(judged())
    def test_ndcg_is_one_exactly_when_all_relevant_items_that_fit_come_first(
        self, case: tuple[Scores, Labels, Labels]
    ) -> None:
        scores, queries, corpus = case
        ranking = rank(scores)
        hits = Judgement.of(ranking, queries, corpus).hits
        for k in CUTOFFS:
            ideal = hits.any(axis=1) & (hits[:, :k].sum(axis=1) == np.minimum(k, hits.sum(axis=1)))
            leading = hits[:, :k] == np.sort(hits[:, :k], axis=1)[:, ::-1]
            full_score = evaluate(ranking, queries, corpus).values[f"NDCG@{k}"] == 1.0
            np.testing.assert_array_equal(full_score, ideal & leading.all(axis=1))

    @given(judged(), st.integers(0, 2**31))
    def test_order_of_queries_and_names_of_faults_do_not_matter(
        self, case: tuple[Scores, Labels, Labels], seed: int
    ) -> None:
        scores, queries, corpus = case
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(queries))
        renamed = np.array(
            [0, *rng.choice(np.arange(1, 9), 4, replace=False), -1]
        )  # normal and unlabelled keep their names
        plain = evaluate(rank(scores, 20), queries, corpus)
        moved = evaluate(rank(scores[order], 20), renamed[queries[order]], renamed[corpus])
        for name in BUILT_IN:
            np.testing.assert_array_equal(moved.values[name], plain.values[name][order])
        assert moved.means() == pytest.approx(plain.means())

    def test_hand_computed_list(self) -> None:
        """Two relevant items, at places 2 and 3 of 4."""
        result = evaluate(np.array([[0, 1, 2, 3]]), np.array([5]), np.array([1, 5, 5, 0])).values
        first, second, third = 1.0, 1 / np.log2(3), 0.5
        assert result["P@1"] == 0
        assert result["P@3"] == pytest.approx(2 / 3)
        assert result["P@20"] == 0.5  # the corpus has only four items
        assert result["NDCG@3"] == pytest.approx((second + third) / (first + second))

    def test_query_without_relevant_items_scores_zero_not_nan(self) -> None:
        result = evaluate(np.array([[0, 1]]), np.array([3]), np.array([1, 2]))
        assert set(result.means().values()) == {0.0}

    def test_one_item_corpus_can_be_perfect(self) -> None:
        result = evaluate(np.array([[0]]), np.array([3]), np.array([3]))
        assert set(result.means().values()) == {1.0}

    def test_only_the_first_twenty_places_count(self, task: tuple[Scores, Labels, Labels]) -> None:
        scores, queries, corpus = task
        assert evaluate(rank(scores), queries, corpus).means() == evaluate(rank(scores, 20), queries, corpus).means()

    def test_means_are_over_queries_and_end_with_macro_f1(self, task: tuple[Scores, Labels, Labels]) -> None:
        scores, queries, corpus = task
        result = evaluate(rank(scores, 20), queries, corpus)
        means = result.means()
        assert list(means) == [*BUILT_IN, "macro_F1"] == METRICS.names()
        assert means["NDCG@10"] == pytest.approx(sum(result.values["NDCG@10"]) / len(result))
        assert means["macro_F1"] == f1(queries, corpus[scores.argmax(axis=1)])

    def test_shallow_ranking_is_refused(self) -> None:
        with pytest.raises(UsageError, match="3 deep"):
            evaluate(np.array([[0, 1, 2]]), np.array([1]), np.ones(30, np.int64))

    def test_item_ranked_twice_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"query 1 .* twice"):
            evaluate(np.array([[0, 1], [1, 1]]), np.array([1, 1]), np.array([1, 1]))

    @pytest.mark.parametrize(("queries", "items"), [(0, 3), (3, 0)])
    def test_empty_sides_are_refused(self, queries: int, items: int) -> None:
        with pytest.raises(UsageError, match="Nothing to evaluate"):
            evaluate(np.zeros((queries, items), np.int64), np.ones(queries, np.int64), np.ones(items, np.int64))


class TestMacroF1:
    @given(st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 5)), min_size=1, max_size=40))
    def test_agrees_with_scikit_learn_over_the_faults_among_the_queries(self, pairs: list[tuple[int, int]]) -> None:
        true, guessed = np.array(pairs).T
        expected = f1_score(true, guessed, labels=np.unique(true), average="macro", zero_division=0)
        assert f1(true, guessed) == pytest.approx(expected)

    def test_rare_fault_weighs_as_much_as_a_frequent_one(self) -> None:
        true, guessed = np.array([1] * 99 + [2]), np.array([1] * 100)
        assert f1(true, guessed) == pytest.approx((2 * 99 / 199 + 0) / 2)

    def test_without_faults_it_is_zero(self) -> None:
        assert f1(np.array([0, -1]), np.array([0, -1])) == 0.0


def trec_eval(measure: ir_measures.measures.Measure, task: tuple[Scores, Labels, Labels]) -> list[float]:
    """Per-query values by `pytrec_eval`, from the same scores (which have no ties)."""
    scores, queries, corpus = task
    qrels = {f"q{q}": {f"d{i}": int(label == item) for i, item in enumerate(corpus)} for q, label in enumerate(queries)}
    run = {f"q{q}": {f"d{i}": float(s) for i, s in enumerate(row)} for q, row in enumerate(scores)}
    found = {metric.query_id: metric.value for metric in ir_measures.pytrec_eval.iter_calc([measure], qrels, run)}
    return [found[f"q{q}"] for q in range(len(queries))]
