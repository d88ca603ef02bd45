"""Tries, the store of answers, and the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from readbench.engine.llm import ModelRequest, Text, read_similarity
from readbench.engine.llm._examiner import ModelCaller
from readbench.engine.llm._providers import CallError, Scripted, client_for
from readbench.engine.llm._settings import Profile
from readbench.errors import RunError, UsageError
from tests.engine.llm.server import CUT, KEYS, REFUSED, SETTINGS, Answered, serving

GOOD = '{"similarity": 50}'


def question(text: str = "how alike?") -> ModelRequest:
    return ModelRequest("role", (Text(text),), {})


def caller_of(root: Path, script: Callable[[ModelRequest], str], **settings: Any) -> ModelCaller:  # noqa: ANN401
    defaults: dict[str, Any] = {"provider": "openai", "model": "m", "base_url": "http://nowhere", "backoff_s": 0.0}
    return ModelCaller("m", Profile(**(defaults | settings)), Scripted(script), root)


class Replies:
    """Says one thing after the other, or raises it; counts how often it was asked."""

    def __init__(self, *replies: str | CallError) -> None:
        self.left: Iterator[str | CallError] = iter(replies)
        self.count = 0

    def __call__(self, request: ModelRequest) -> str:  # noqa: ARG002
        self.count += 1
        reply = next(self.left)
        if isinstance(reply, CallError):
            raise reply
        return reply


def test_empty_and_unreadable_answers_and_throttling_are_tried_again(tmp_path: Path) -> None:
    caller = caller_of(tmp_path, Replies("", "no idea", CallError("throttled", "slower"), GOOD))
    assert caller.ask([question()], [read_similarity]) == [50.0]
    assert caller.usage["calls"] == 4
    assert {name: caller.usage[name] for name in ("empty", "unreadable", "throttled")} == {
        "empty": 1,
        "unreadable": 1,
        "throttled": 1,
    }
    assert "given_up" not in caller.usage


def test_what_cannot_be_read_is_asked_again_four_times_and_never_more(tmp_path: Path) -> None:
    replies = Replies(*["no idea"] * 9)
    for _ in range(2):
        caller = caller_of(tmp_path, replies)
        assert caller.ask([question()], [read_similarity]) == [None]
        assert (caller.usage["unreadable"], caller.usage["given_up"]) == (5, 1)
    assert replies.count == 5


@pytest.mark.parametrize(("kind", "calls"), [("throttled", 5), ("unreachable", 5), ("garbled", 5), ("refused", 1)])
def test_a_model_without_an_answer_is_an_error(tmp_path: Path, kind: Any, calls: int) -> None:  # noqa: ANN401
    replies = Replies(*[CallError(kind, "says why")] * 9)
    with pytest.raises(CallError, match="says why"):
        caller_of(tmp_path, replies).ask([question()], [read_similarity])
    assert replies.count == calls
    assert caller_of(tmp_path, Replies(GOOD)).ask([question()], [read_similarity]) == [50.0]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "openai", "chatts-http"])
@pytest.mark.parametrize(("reasons", "kind"), [(REFUSED, "refusal"), (CUT, "truncated")])
@pytest.mark.usefixtures("keys")
def test_refusals_and_truncations_are_counted_and_not_asked_for_again(
    provider: str, reasons: dict[str, str], kind: str, tmp_path: Path
) -> None:
    with serving(lambda _: Answered('{"similarity": 5', stop=reasons[provider])) as loopback:
        own: dict[str, Any] = {"provider": provider, "base_url": loopback.base(provider), **SETTINGS.get(provider, {})}
        profile = Profile(model="m", **own)
        caller = ModelCaller("m", profile, client_for(profile), tmp_path)
        for asked in (1, 2):
            assert caller.ask([question()], [read_similarity]) == [None]
            assert (caller.usage[kind], caller.usage["given_up"], caller.usage["questions"]) == (asked,) * 3
        assert len(loopback.asked) == 1


@pytest.mark.usefixtures("keys")
def test_a_refusal_with_a_number_in_it_is_no_answer_but_one_that_ends_late_is(tmp_path: Path) -> None:
    stops = iter(["refusal", "max_tokens"])
    with serving(lambda _: Answered(GOOD, stop=next(stops))) as loopback:
        profile = Profile(provider="anthropic", model="m", base_url=loopback.url, concurrency=1)
        caller = ModelCaller("m", profile, client_for(profile), tmp_path)
        assert caller.ask([question("a"), question("b")], [read_similarity] * 2) == [None, 50.0]
    assert "truncated" not in caller.usage


def test_waits_double_and_are_at_least_what_the_server_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    replies = Replies("", CallError("throttled", "slower", wait=9.0), "", GOOD)
    caller_of(tmp_path, replies, backoff_s=1.0).ask([question()], [read_similarity])
    assert waits == [1.0, 9.0, 4.0]


def test_words_that_cannot_be_read_are_asked_for_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("the server answered"))
    caller = caller_of(tmp_path, Replies("the first", "half of it", GOOD), backoff_s=1.0)
    assert caller.ask([question()], [read_similarity]) == [50.0]
    assert caller.usage["unreadable"] == 2


def test_what_was_answered_is_never_asked_again(tmp_path: Path) -> None:
    script = Replies(GOOD, '{"similarity": 70}')
    first = caller_of(tmp_path, script, concurrency=1)
    assert first.ask([question("a"), question("b"), question("a")], [read_similarity] * 3) == [50.0, 70.0, 50.0]
    again = caller_of(tmp_path, script)
    assert again.ask([question("b"), question("a")], [read_similarity] * 2) == [70.0, 50.0]
    assert script.count == 2


@pytest.mark.parametrize("changes", [{"max_tokens": 7}, {"thinking": "adaptive"}, {"structured": True}])
def test_another_way_of_asking_is_another_answer(tmp_path: Path, changes: dict[str, Any]) -> None:
    script = Replies(GOOD, '{"similarity": 70}')
    caller_of(tmp_path, script).ask([question()], [read_similarity])
    assert caller_of(tmp_path, script, **changes).ask([question()], [read_similarity]) == [70.0]


def test_another_address_speed_or_price_is_not(tmp_path: Path) -> None:
    script = Replies(GOOD)
    caller_of(tmp_path, script).ask([question()], [read_similarity])
    changes: dict[str, Any] = {"base_url": "http://elsewhere", "concurrency": 1, "input_price": 2.0}
    assert caller_of(tmp_path, script, **changes).ask([question()], [read_similarity]) == [50.0]


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    questions = [question(str(k)) for k in range(5)]
    broken = Replies(GOOD, GOOD, CallError("refused", "out"))
    with pytest.raises(CallError):
        caller_of(tmp_path, broken, concurrency=1).ask(questions, [read_similarity] * 5)
    rest = Replies(GOOD, GOOD, GOOD)
    assert caller_of(tmp_path, rest, concurrency=1).ask(questions, [read_similarity] * 5) == [50.0] * 5
    assert rest.count == 3


def test_calls_beyond_the_budget_are_refused_before_the_first(tmp_path: Path) -> None:
    script = Replies(GOOD, GOOD)
    with pytest.raises(RunError, match=r"needs up to 3 calls.*max_calls = 2"):
        caller_of(tmp_path, script, max_calls=2).ask([question(str(k)) for k in range(3)], [read_similarity] * 3)
    assert script.count == 0


def test_tries_count_against_the_budget_and_it_outlives_the_process(tmp_path: Path) -> None:
    script = Replies("", "", GOOD)
    caller_of(tmp_path, script, max_calls=3).ask([question("a")], [read_similarity])
    with pytest.raises(RunError, match="has spent 3 calls"):
        caller_of(tmp_path, script, max_calls=3).ask([question("b")], [read_similarity])
    assert caller_of(tmp_path, script, max_calls=3).ask([question("a")], [read_similarity]) == [50.0]


def test_a_try_beyond_the_budget_is_not_made(tmp_path: Path) -> None:
    script = Replies("", "", GOOD)
    with pytest.raises(RunError, match="max_calls = 2"):
        caller_of(tmp_path, script, max_calls=2).ask([question()], [read_similarity])
    assert script.count == 2


def test_costs_are_estimated_on_the_dear_side_and_then_counted_as_they_are(tmp_path: Path) -> None:
    prices: dict[str, Any] = {"input_price": 1.0, "output_price": 10.0, "max_tokens": 1000}
    caller = caller_of(tmp_path, Replies(GOOD), **prices, max_cost=0.02)
    caller.ask([question()], [read_similarity])
    exact = (question().tokens * 1.0 + len(GOOD) * 10.0) / 1e6
    assert caller.usage["cost"] == pytest.approx(exact)
    assert caller.ledger.spent().cost == pytest.approx(exact)
    with pytest.raises(RunError, match=r"up to 2 calls, \$0.02 more, beyond max_cost = 0.02"):
        caller.ask([question("b"), question("c")], [read_similarity] * 2)


def test_a_cost_without_prices_is_no_budget() -> None:
    with pytest.raises(UsageError, match="max_cost needs input_price"):
        Profile(provider="anthropic", model="m", max_cost=1.0)


def test_at_most_so_many_calls_at_a_time(tmp_path: Path) -> None:
    running, most = 0, 0

    def script(request: ModelRequest) -> str:  # noqa: ARG001
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1
        return GOOD

    caller_of(tmp_path, script, concurrency=3).ask([question(str(k)) for k in range(12)], [read_similarity] * 12)
    assert most == 3


@pytest.mark.usefixtures("keys")
def test_keys_and_questions_are_in_no_file(tmp_path: Path) -> None:
    with serving(lambda _: Answered(GOOD)) as loopback:
        profile = Profile(provider="anthropic", model="m", base_url=loopback.url)
        ModelCaller("m", profile, client_for(profile), tmp_path).ask([question("confidential")], [read_similarity])
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("similarity" in text for text in written)
    assert not any(word in text for text in written for word in ("confidential", *KEYS.values()))
