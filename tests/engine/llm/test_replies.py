"""Answers are read strictly: nothing but an order of the pool, or numbers in their range, comes out."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from readbench.engine.llm import read_match, read_ranking, read_scores, read_similarity
from readbench.engine.llm._messages import UnreadableError, find_object

IDS = ["sample_00001", "sample_00002", "sample_00003"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.floats() | st.text(max_size=5) | st.sampled_from(IDS),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["1", "2", "x"]), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure:\n```json\n{"a": [1, {"b": 2}]}\n```', {"a": [1, {"b": 2}]}),
        ('{broken {"a": 1} {"a": 2}', {"a": 2}),
        ('{"a": "}{"}', {"a": "}{"}),
        ('<think>{"a": 1}? {"a": 2}?</think>{"a": 3} That is {"b": 4}.', {"a": 3}),
        ('{"a": 1} {"a": 2}</think>\n{"a": 3}', {"a": 3}),
        ('<Thinking>{"a": 1}</Thinking><think>{"a": 2}</think>{"a": 3}', {"a": 3}),
        ('{"a": 3}<think>{"a": 1}', {"a": 3}),
    ],
)
def test_the_last_object_with_what_was_asked_for_counts_and_thoughts_never(text: str, found: dict[str, object]) -> None:
    assert find_object(text, "a") == found


@pytest.mark.parametrize(
    "text", ["", "nothing", "[1, 2]", "{", "{" * 5000, '{"a": ', '<think>{"a": 1}', '{"a": 1}</think>']
)
def test_a_text_without_an_object_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        find_object(text, "a")


def test_foreign_and_repeated_ids_are_left_out() -> None:
    text = json.dumps({"ranked_ids": ["sample_00003", "query", 2, "sample_00001", "sample_00003", "Sample_00002"]})
    ranking = read_ranking(text, IDS)
    assert (ranking.order, ranking.foreign, ranking.repeated) == ((2, 0), 3, 1)


@pytest.mark.parametrize("text", ['{"ranked_ids": []}', '{"ranked_ids": "sample_00001"}', '{"ids": ["sample_00001"]}'])
def test_a_ranking_of_nothing_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_ranking(text, IDS)


@given(st.fixed_dictionaries({"ranked_ids": anything}))
def test_whatever_is_said_a_ranking_is_an_order_of_the_pool(reply: dict[str, object]) -> None:
    try:
        order = read_ranking(json.dumps(reply), IDS).order
    except UnreadableError:
        return
    assert order
    assert len(set(order)) == len(order)
    assert set(order) <= {0, 1, 2}


@pytest.mark.parametrize("value", ["101", "-1", "NaN", "Infinity", '"80"', "true", "null", "[80]"])
def test_ratings_outside_their_range_are_unreadable(value: str) -> None:
    for read in (read_similarity, read_match):
        with pytest.raises(UnreadableError):
            read(f'{{"similarity": {value}, "match": "yes", "confidence": {value}}}')
    with pytest.raises(UnreadableError):
        read_scores(f'{{"scores": {{"1": {value}}}}}', 2)


def test_a_match_is_its_confidence_and_a_mismatch_the_rest_to_a_hundred() -> None:
    assert read_similarity('{"similarity": 73}') == 73
    assert read_match('{"match": "yes", "confidence": 80}') == 80
    assert read_match('{"match": "no", "confidence": 80}') == 20
    with pytest.raises(UnreadableError):
        read_match('{"match": "maybe", "confidence": 80}')


def test_a_class_that_is_not_named_scores_zero() -> None:
    assert read_scores('{"scores": {"3": 70, "1": 20, "9": 99}}', 3).tolist() == [20, 0, 70]
    for text in ('{"scores": {"9": 99}}', '{"scores": [1, 2, 3]}', "{}"):
        with pytest.raises(UnreadableError):
            read_scores(text, 3)
