"""Every way in which a model fails, over the wire and through a method: none of them looks like a result."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from readbench.engine.llm import explain_silence, mark_unanswered, unanswered_share
from readbench.engine.llm._providers import CallError
from readbench.engine.method import Method
from readbench.testing import sample_windows
from tests.engine.llm.conftest import Configure
from tests.engine.llm.server import HANG_UP, Answered, Asked, serving

WINDOWS = sample_windows(6)
RERANK, CLASSIFY = "euclidean+llm(m,pool=3)", "classify(m)"
DRAFT = '<think>{"ranked_ids": ["sample_00003"], "scores": {"1": 90, "2": 0}}'
FOR_GOOD = {
    "refusal": (Answered("I cannot help with that.", stop="content_filter"), 1),
    "truncated": (Answered('{"ranked_ids": ["sample_0', stop="length"), 1),
    "empty": (Answered(""), 5),
    "unreadable": (Answered("The second one, I think."), 5),
}
"""How it answers, and how often it is asked for the same."""
PASSING = {
    "throttled": Answered(status=429, headers={"retry-after": "0"}, raw=b"{}"),
    "overloaded": Answered(status=529, raw=b"{}"),
    "overloaded, too slow": Answered(status=408, raw=b"{}"),
    "overloaded, in conflict": Answered(status=409, raw=b"{}"),
    "unreachable": Answered(status=HANG_UP),
    "garbled": Answered(raw=b"<html>bad gateway</html>"),
}


def good(asked: Asked) -> Answered:
    """The base order backwards, or the first class."""
    if "EXAMPLE 1" in asked.text:
        return Answered('{"scores": {"1": 5, "2": 1}}')
    ids = re.findall(r"^CANDIDATE (sample_\d{5})", asked.text, re.MULTILINE)
    return Answered(f'{{"ranked_ids": {ids[::-1]}}}'.replace("'", '"'))


def rank(method: str) -> tuple[np.ndarray, dict[str, float]]:
    ranking = Method(method).fit(WINDOWS, WINDOWS[:0]).rank(WINDOWS)
    return ranking.order, ranking.usage


@pytest.mark.parametrize("method", [RERANK, CLASSIFY])
@pytest.mark.parametrize("kind", FOR_GOOD)
def test_an_answer_that_is_none_is_counted_marked_and_no_result(kind: str, method: str, configure: Configure) -> None:
    answered, calls = FOR_GOOD[kind]
    with serving(lambda _: answered) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none")
        order, usage = rank(method)
        assert len(loopback.asked) == 6 * calls
    assert (usage["questions"], usage["given_up"], usage[kind]) == (6, 6, 6 * calls)
    assert mark_unanswered(unanswered_share(usage)) == " [! 100% unanswered]"
    assert f"no readable answer to 6 of 6 questions ({kind} {6 * calls})" in explain_silence(usage)
    if method == RERANK:
        np.testing.assert_array_equal(order, rank("euclidean")[0])


@pytest.mark.parametrize("kind", PASSING)
def test_a_failure_that_passes_is_counted_and_leaves_no_trace_in_the_lists(kind: str, configure: Configure) -> None:
    tries: Counter[str] = Counter()

    def model(asked: Asked) -> Answered:
        tries[asked.text] += 1
        return PASSING[kind] if tries[asked.text] == 1 else good(asked)

    with serving(model) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none")
        order, usage = rank(RERANK)
    assert (usage["calls"], usage[kind.partition(",")[0]], usage.get("given_up", 0)) == (12, 6, 0)
    base = rank("euclidean")[0]
    np.testing.assert_array_equal(order[:, :3], base[:, 2::-1])


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_call_that_is_refused_is_made_once_and_fails(status: int, configure: Configure) -> None:
    with serving(lambda _: Answered(status=status, raw=b"no such model")) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none", concurrency=1)
        with pytest.raises(CallError, match=f"status {status}: no such model.* Check the model's name"):
            rank(RERANK)
        texts = [asked.text for asked in loopback.asked]
        assert len(set(texts)) == len(texts) <= 2, "one may be on its way when the first is refused"


@pytest.mark.parametrize("method", [RERANK, CLASSIFY])
def test_a_draft_among_thoughts_never_wins(method: str, configure: Configure) -> None:
    with serving(lambda asked: Answered(f"{DRAFT}</think>{good(asked).text}")) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none")
        thought = rank(method)[0]
    with serving(good) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none", max_tokens=99)
        np.testing.assert_array_equal(thought, rank(method)[0])
    with serving(lambda _: Answered(DRAFT, stop="length")) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none", max_tokens=98)
        usage = rank(method)[1]
    assert (usage["truncated"], usage["given_up"], usage["calls"]) == (6, 6, 6)


def test_answers_of_another_model_are_told(configure: Configure) -> None:
    with serving(lambda asked: Answered(good(asked).text, model="a-smaller-one")) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none")
        usage = rank(RERANK)[1]
    assert (usage["other_model"], usage["model a-smaller-one"]) == (6, 6)
