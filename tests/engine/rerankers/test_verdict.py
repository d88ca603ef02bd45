"""Verdict against a slow version, one query at a time, and what it may read."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.protocols import Pool, View, unit_vectors
from readbench.engine.ranking import rank
from readbench.engine.rerankers import Verdict, _ridge as judgement, estimate_unseen_share
from readbench.engine.rerankers._ridge import fit_ridge, fit_verdict, subsample_cases
from readbench.engine.windows import UNLABELLED
from readbench.testing import sample_pool
from tests.engine.rerankers.pools import pool_of, reordered


def two_views(seed: int, *, queries: int = 8, items: int = 40, labelled: float = 1.0) -> Pool:
    """Three faults and normals in two views; two cases a recording; the whole corpus as candidates."""
    pool = sample_pool(seed, queries=queries, items=items, depth=items, labelled=labelled)
    rng = np.random.default_rng([seed, 1])
    other = View(
        (pool.queries @ rng.standard_normal((6, 9)) + rng.standard_normal((queries, 9))).astype(np.float32),
        (pool.items @ rng.standard_normal((6, 9)) + rng.standard_normal((items, 9))).astype(np.float32),
    )
    return replace(pool, views=(*pool.views, other), groups=np.arange(items) // 2)


def with_labels(pool: Pool, rows: NDArray[np.int32]) -> Pool:
    return replace(pool, corpus_labels=np.broadcast_to(rows, (len(pool.candidates), len(pool.items))))


def own_hits(pool: Pool, count: int) -> Pool:
    """Each query knows the labels of its first hits only."""
    known = np.full(pool.corpus_labels.shape, -1, np.int32)
    for row, true, first in zip(known, pool.corpus_labels, pool.candidates[:, :count], strict=True):
        row[first] = true[first]
    return replace(pool, corpus_labels=known)


def naive(pool: Pool, query: int, *, drop_normals: bool, size: int | None) -> list[float]:
    """Scores of one query's candidates, item by item."""
    visible = {int(i): int(label) for i, label in enumerate(pool.corpus_labels[query]) if label >= 0}
    if size is not None:
        visible = {i: label for i, label in visible.items() if i in set(pool.candidates[query].tolist())}
    if not visible:
        return [float(score) for score in pool.scores[query]]
    cases = [i for i, label in visible.items() if label > 0 or not drop_normals]
    scores = []
    if cases:
        labels = np.array([visible[i] for i in cases], np.int32)
        cosines = [
            (unit_vectors(v.items).astype(np.float64), unit_vectors(v.queries)[query].astype(np.float64))
            for v in pool.views
        ]
        subsets = chain.from_iterable(combinations(cosines, n) for n in range(1, len(cosines) + 1))
        fits = []
        for subset in subsets:
            kernel = np.mean([items[cases] @ items[cases].T for items, _ in subset], axis=0)
            fits.append((fit_ridge(kernel, labels, pool.groups[cases]), subset))
        ridge, subset = min(fits, key=lambda fit: fit[0].loss)
        own = ridge.posterior(np.mean([[items[cases] @ asked] for items, asked in subset], axis=0))[0]
    candidates = pool.candidates[query].tolist()
    doubt = naive_doubt([(visible[i], int(pool.groups[i])) for i in cases], [i in visible for i in candidates])
    for place, item in enumerate(candidates):
        label = visible.get(item, -1)
        if label == 0 and drop_normals:
            scores.append(-1.0)
        elif not cases:
            scores.append(0.0)
        elif label >= 0:
            scores.append((1 - doubt) * float(own[ridge.classes.tolist().index(label)]) + doubt * 10 / (10 + place))
        else:
            like = np.mean([[items[cases] @ items[item]] for items, _ in subset], axis=0)
            scores.append((1 - doubt) * float(own @ ridge.posterior(like)[0]) + doubt * 10 / (10 + place))
    return scores


def naive_doubt(cases: list[tuple[int, int]], labelled: list[bool]) -> float:
    """How much the base order counts, from labels and recordings of the cases and which candidates have a label."""
    recordings = set(cases)
    alone = [label for label, _ in recordings if sum(other == label for other, _ in recordings) == 1]
    silent = [not known for known in labelled[:5]]
    known = len({group for _, group in recordings})
    share = min(known, 1 + len(alone)) / (1 + known)
    return share**0.5 * sum(silent) / len(silent) if recordings else 0.0


@pytest.mark.parametrize("drop_normals", [True, False])
@pytest.mark.parametrize("size", [None, 12])
@pytest.mark.parametrize("known", ["all", "some", "own hits", "one own hit"])
def test_scores_are_those_of_the_slow_version(known: str, size: int | None, *, drop_normals: bool) -> None:
    pool = two_views(1, labelled=0.5 if known == "some" else 1.0)
    if known.endswith("hits"):
        pool = own_hits(pool, 9)
    if known == "one own hit":
        pool = own_hits(pool, 1)
    if size is not None:
        pool = replace(pool, candidates=pool.candidates[:, :size], scores=pool.scores[:, :size])
    found = Verdict(size, drop_normals=drop_normals).rerank(pool)
    for query, row in enumerate(found):
        expected = naive(pool, query, drop_normals=drop_normals, size=size)
        np.testing.assert_allclose(row, expected, atol=2e-5)


def test_queries_one_at_a_time_get_the_same_scores() -> None:
    pool = own_hits(two_views(2), 10)
    together = Verdict().rerank(pool)
    for query in range(len(together)):
        row = slice(query, query + 1)
        alone = replace(
            pool,
            candidates=pool.candidates[row],
            scores=pool.scores[row],
            views=tuple(View(view.queries[row], view.items) for view in pool.views),
            corpus_labels=pool.corpus_labels[row],
        )
        np.testing.assert_allclose(Verdict().rerank(alone)[0], together[query], atol=1e-6)


def test_labels_beyond_the_pool_are_not_read_where_a_pool_is_given() -> None:
    pool = sample_pool(3, items=60, depth=20)
    pool = replace(pool, corpus_labels=np.array(pool.corpus_labels))
    hidden = own_hits(pool, 20)
    np.testing.assert_array_equal(Verdict(20).rerank(pool), Verdict(20).rerank(hidden))
    assert not np.array_equal(Verdict().rerank(pool), Verdict().rerank(hidden))


def test_queries_with_the_same_cases_but_other_labels_or_normals_do_not_share_a_lesson() -> None:
    pool = two_views(4, queries=3)
    pool = replace(pool, views=tuple(View(view.queries[[0, 0, 0]], view.items) for view in pool.views))
    pool = replace(pool, candidates=pool.candidates[[0, 0, 0]], scores=pool.scores[[0, 0, 0]])
    rows = np.array(pool.corpus_labels)
    rows[1] = np.where(rows[1] == 0, -1, rows[1])
    rows[2] = np.where((rows[2] == 1) & (np.arange(rows.shape[1]) % 2 == 0), 2, rows[2])
    pool = replace(pool, corpus_labels=rows)
    normal = pool.labels[0] == 0
    assert normal.any()
    found = Verdict().rerank(pool)
    assert (found[0, normal] == -1).all()
    assert (found[1, normal] > 0).all()
    assert not np.allclose(found[0], found[2])
    for query, row in enumerate(found):
        np.testing.assert_allclose(row, naive(pool, query, drop_normals=True, size=None), atol=2e-5)


def test_known_normals_come_last_or_are_one_more_class() -> None:
    pool = two_views(5)
    last = reordered(pool, Verdict().rerank(pool))
    normals = int((pool.corpus_labels[0] == 0).sum())
    assert normals
    assert all((pool.corpus_labels[0][row[-normals:]] == 0).all() for row in last)
    centre = pool.items[pool.corpus_labels[0] == 0].mean(axis=0)
    asked = replace(pool, views=(View(np.tile(centre, (len(pool.queries), 1)), pool.items),))
    first = reordered(asked, Verdict(drop_normals=False).rerank(asked))
    assert all(pool.corpus_labels[0][row[0]] == 0 for row in first)


def test_normals_alone_teach_nothing_but_their_own_place() -> None:
    pool = pool_of([-1, 0, -1, 0])
    assert reordered(pool, Verdict().rerank(pool)) == [[0, 2, 1, 3]]


def test_an_unlabelled_item_is_judged_by_the_ridge() -> None:
    """Two clusters, each with two labelled and an unlabelled item; the base order is the wrong way round."""
    pool = pool_of([-1, 2, 2, -1, 1, 1], [[0, 1], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]], query=[1, 0])
    scores = Verdict().rerank(pool)[0]
    assert scores[3] > scores[0]
    assert scores[3] == pytest.approx(scores[4], abs=0.05)  # which is one place further down
    assert min(scores[3:]) > max(scores[:3]) + 0.5


def test_where_hardly_a_type_is_named_the_base_order_counts() -> None:
    """Every labelled case is the only one of its type: a new fault is likely to be none of them."""
    pool = sample_pool(3, items=60, depth=20)
    lonely = np.full(60, UNLABELLED, np.int32)
    lonely[[3, 40]] = 1, 2
    pool = with_labels(pool, lonely)
    silent = (pool.labels == UNLABELLED).all(axis=1)
    assert silent.any()
    assert (np.diff(rank(Verdict().rerank(pool))[silent]) > 0).all()


def test_two_recordings_of_the_same_types_do_not_rule_out_others() -> None:
    few = np.array([1, 2, 1, 2], np.int32), np.array([0, 0, 1, 1])
    many = np.repeat(np.array([1, 2], np.int32), 100), np.arange(200)
    assert estimate_unseen_share(*few) == pytest.approx(1 / 3)
    assert estimate_unseen_share(*many) == pytest.approx(1 / 201)
    assert estimate_unseen_share(np.array([1, 2], np.int32), np.array([0, 0])) == pytest.approx(1 / 2), "never certain"


def test_items_of_one_class_keep_the_base_order() -> None:
    pool = two_views(6)
    order = rank(Verdict().rerank(pool))
    for labels, row in zip(pool.labels, order, strict=True):
        for label in np.unique(labels):
            assert (np.diff(row[labels[row] == label]) > 0).all()


def test_one_known_fault_keeps_the_base_order_above_the_normals() -> None:
    pool = two_views(7)
    pool = with_labels(pool, np.minimum(pool.corpus_labels[0], 1).astype(np.int32))
    for labels, row in zip(pool.labels, rank(Verdict().rerank(pool)), strict=True):
        expected = [*np.flatnonzero(labels > 0), *np.flatnonzero(labels == 0)]
        assert row.tolist() == expected


def test_names_of_faults_do_not_matter() -> None:
    pool = two_views(8, labelled=0.7)
    renamed = np.where(pool.corpus_labels > 0, 70 - 10 * pool.corpus_labels, pool.corpus_labels).astype(np.int32)
    np.testing.assert_allclose(
        Verdict().rerank(replace(pool, corpus_labels=renamed)), Verdict().rerank(pool), atol=1e-6
    )


def test_a_view_of_noise_is_left_out_and_two_that_complement_each_other_are_joined() -> None:
    rng = np.random.default_rng(9)
    labels = (np.arange(120) % 4 + 1).astype(np.int32)
    centres = rng.standard_normal((4, 8))

    def view(informative: NDArray[np.bool_]) -> View:
        items = 3.0 * centres[labels - 1] * informative[labels - 1, None] + rng.standard_normal((120, 8))
        return View(unit_vectors(items[:1].astype(np.float32)), unit_vectors(items.astype(np.float32)))

    groups = np.arange(120) // 4
    good, noise = view(np.ones(4, bool)), view(np.zeros(4, bool))
    assert fit_verdict((noise, good), np.arange(120), labels, groups).chosen == (1,)
    halves = view(np.array([True, True, False, False])), view(np.array([False, False, True, True]))
    assert fit_verdict(halves, np.arange(120), labels, groups).chosen == (0, 1)


def test_thinned_cases_are_spread_over_every_class() -> None:
    labels = np.repeat(np.array([1, 2, 3], np.int32), [700, 299, 1])
    cases = np.arange(1000)
    assert subsample_cases(cases, labels) is cases
    kept = subsample_cases(cases, labels, 100)
    assert np.bincount(labels[kept]).tolist() == [0, 70, 29, 1]
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert np.diff(kept[labels[kept] == 1]).max() <= 11


def test_a_labelled_item_that_was_thinned_out_keeps_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = two_views(10)
    monkeypatch.setattr(judgement, "MAX_CASES", 12)
    scores = Verdict().rerank(pool)
    for labels, row in zip(pool.labels, scores, strict=True):
        for label in np.unique(labels):
            assert len(set(row[labels == label].tolist())) == 1
        assert (row[labels > 0] > 0).all()
