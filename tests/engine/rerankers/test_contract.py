"""What every reranker keeps, whatever it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readbench.engine.parameters import Value
from readbench.engine.protocols import Pool, Reranker, View
from readbench.engine.registry import RERANKERS
from readbench.engine.spec import parse
from readbench.engine.testing._rerankers import rename_classes
from readbench.engine.windows import UNLABELLED
from readbench.errors import ParameterError
from readbench.testing import RERANKER_CHECKS, RerankerCheck, sample_pool
from tests.engine.rerankers.pools import reordered

LABEL_AWARE = (
    "purity",
    "purity(k=3,alpha=0)",
    "qpurity",
    "qpurity(k=40,vote=3,alpha=0)",
    "majvote",
    "majvote(k=1)",
    "gpc",
    "gpc(k=5,kernel=linear)",
    "gpc(kernel=rbf,variance=1)",
    "gpc(scope=corpus)",
    "verdict",
    "verdict(pool=20)",
    "verdict(drop_normals=false)",
)
LABEL_FREE = ("prf", "prf(k=3,beta=0.2,scale=z)")


def build(text: str) -> Reranker:
    stage = parse(f"random+{text}").rerankers[0]
    built: Reranker = RERANKERS.get(stage.name).build(**dict(stage.parameters))
    return built


@pytest.mark.parametrize("check", RERANKER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("reranker", LABEL_FREE + LABEL_AWARE)
def test_every_reranker_keeps_the_contract(reranker: str, check: RerankerCheck) -> None:
    check(reranker)


def test_verdict_takes_normal_for_one_more_class_where_it_is_told_to() -> None:
    pool, verdict = sample_pool(10, labelled=0.8), build("verdict(drop_normals=false)")
    np.testing.assert_allclose(verdict.rerank(rename_classes(pool, [UNLABELLED])), verdict.rerank(pool), atol=1e-5)


def test_every_registered_reranker_is_checked() -> None:
    """Language models are checked in tests/llm, over pools with windows."""
    checked = {text.partition("(")[0] for text in LABEL_FREE + LABEL_AWARE} | {"llm"}
    assert checked >= {entry.name for entry in RERANKERS}


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_without_labels_the_base_scores_stay_and_the_corpus_is_not_compared_with_itself(reranker: str) -> None:
    def refused() -> np.ndarray:
        raise AssertionError("the similarity of the corpus was asked for")

    pool = sample_pool(8)
    bare = replace(pool, corpus_labels=np.full_like(pool.corpus_labels, -1), similarity=refused)
    np.testing.assert_array_equal(build(reranker).rerank(bare), pool.scores)


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_label_aware_rerankers_use_the_labels_there_are(reranker: str) -> None:
    pool = sample_pool(10, queries=20, labelled=0.6)
    assert build(reranker).uses_labels
    assert reordered(pool, build(reranker).rerank(pool)) != pool.candidates.tolist()


def first_hits_known(pool: Pool, count: int) -> Pool:
    known = np.full_like(pool.corpus_labels, -1)
    for row, true, first in zip(known, pool.corpus_labels, pool.candidates[:, :count], strict=True):
        row[first] = true[first]
    return replace(pool, corpus_labels=known)


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_labels_of_the_first_hits_alone_are_used(reranker: str) -> None:
    """As under a budget of labels a query: unlabelled candidates stay in the list and have finite scores."""
    pool = first_hits_known(sample_pool(12, queries=30, items=80, depth=40), 15)
    scores = build(reranker).rerank(pool)
    assert np.isfinite(scores).all()
    assert reordered(pool, scores) != pool.candidates.tolist()
    assert all(sorted(row) == sorted(own) for row, own in zip(reordered(pool, scores), pool.candidates, strict=True))


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_a_row_of_labels_for_each_query_is_as_good_as_one_query_after_the_other(reranker: str) -> None:
    pool = first_hits_known(sample_pool(13, queries=12, items=60, depth=30), 12)
    together = build(reranker).rerank(pool)
    for query, expected in enumerate(together):
        row = slice(query, query + 1)
        labels = pool.corpus_labels[row]
        view = View(pool.queries[row], pool.items)
        alone = Pool(pool.candidates[row], pool.scores[row], (view,), labels, pool.groups, pool.similarity)
        np.testing.assert_allclose(build(reranker).rerank(alone)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters", "depth"),
    [
        ("prf", {}, 20),
        ("prf", {"k": 30}, 30),
        ("purity", {"k": 30}, 20),
        ("qpurity", {"k": 30}, 20),
        ("qpurity", {"vote": 30}, 30),
        ("majvote", {"pool": 100}, 100),
        ("majority-vote", {"k": 30}, 30),
        ("gpc", {}, 20),
        ("gpc", {"k": 50}, 50),
        ("gpc", {"pool": 50}, 50),
        ("purity", {"scope": "corpus"}, None),
        ("qpurity", {"scope": "corpus"}, None),
        ("majvote", {"scope": "corpus"}, None),
        ("gpc", {"scope": "corpus"}, None),
        ("verdict", {}, None),
        ("verdict", {"pool": 20}, 20),
    ],
)
def test_rerankers_are_found_by_name_and_see_the_depth_they_need(
    name: str, parameters: dict[str, Value], depth: int | None
) -> None:
    reranker: Reranker = RERANKERS.get(name).build(**parameters)
    assert reranker.depth == depth


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gpc", {"k": 1}), ("gpc", {"kernel": "cosine"}), ("prf", {"beta": 2.0}), ("majvote", {"scope": "world"})],
)
def test_parameters_out_of_range_are_refused(name: str, parameters: dict[str, Value]) -> None:
    with pytest.raises(ParameterError):
        RERANKERS.get(name).build(**parameters)
