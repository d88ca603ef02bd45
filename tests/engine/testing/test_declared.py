"""A check is left out by what a component declares, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self
from unittest import SkipTest

import numpy as np
import pytest

from readbench.engine.abilities import Indexed, Searcher
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS, TAGS, members_lacking
from readbench.engine.testing._retrievers import (
    corpus_dependence_is_declared,
    declared_abilities_are_there,
    duplicates_score_alike,
    labels_are_read_only_where_declared,
    one_query_is_a_batch,
)
from readbench.engine.windows import WindowSet
from readbench.testing import RETRIEVER_CHECKS, RetrieverCheck


class Dice:
    """Scores by position alone."""

    uses_labels = False
    corpus_dependent = False

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        self.size_ = len(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        return np.add.outer(np.arange(len(queries)) * 10.0, np.arange(self.size_)).astype(np.float32)


@pytest.fixture
def random_walk() -> Iterator[str]:
    """Named so that a rule by name would leave checks out."""
    RETRIEVERS.register("random-walk", family="test")(Dice)
    yield "random-walk"
    RETRIEVERS._entries.pop("random-walk", None)


@pytest.fixture
def tagged() -> Iterator[str]:
    RETRIEVERS.register("dice", family="test", tags=["by-position"])(Dice)
    yield "dice"
    RETRIEVERS._entries.pop("dice", None)


@pytest.mark.parametrize("check", [one_query_is_a_batch, duplicates_score_alike])
def test_without_the_tag_the_check_is_asked_whatever_the_name(random_walk: str, check: RetrieverCheck) -> None:
    with pytest.raises(AssertionError):
        check(random_walk)


@pytest.mark.parametrize("check", [one_query_is_a_batch, duplicates_score_alike])
def test_with_the_tag_it_is_skipped_and_says_why(tagged: str, check: RetrieverCheck) -> None:
    with pytest.raises(SkipTest, match=f"dice declares by-position: {TAGS['by-position']}"):
        check(tagged)


def test_a_tag_leaves_out_nothing_else(tagged: str) -> None:
    skipped = []
    for check in RETRIEVER_CHECKS:
        try:
            check(tagged)
        except SkipTest:
            skipped.append(check)
    assert skipped == [one_query_is_a_batch, duplicates_score_alike]


@pytest.mark.parametrize("check", [labels_are_read_only_where_declared, corpus_dependence_is_declared])
def test_declared_attributes_skip_in_the_same_way(check: RetrieverCheck) -> None:
    with pytest.raises(SkipTest, match="majority declares"):
        check("majority")


def test_an_ability_that_is_declared_and_not_there_is_told() -> None:
    RETRIEVERS.register("boasting", family="test", abilities=(Searcher, Indexed))(Dice)
    try:
        with pytest.raises(AssertionError, match="boasting declares Searcher, but has no search"):
            declared_abilities_are_there("boasting")
    finally:
        RETRIEVERS._entries.pop("boasting", None)


def test_members_are_looked_for_without_running_any() -> None:
    class Lazy:
        search = None

        @property
        def index_bytes(self) -> int:
            raise AssertionError("asked before it is fitted")

    assert members_lacking(Lazy(), Indexed) == []
    assert members_lacking(Lazy(), Searcher) == ["search"]
