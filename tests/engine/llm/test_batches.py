"""Batches: half the price, paid once whenever the run is killed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readbench.common.files import write_json
from readbench.engine.llm import _batches as module
from readbench.engine.llm._examiner import ModelCaller, ReplyStore
from readbench.engine.llm._messages import read_similarity
from readbench.engine.llm._providers import CallError, client_for
from readbench.engine.llm._settings import Profile
from readbench.errors import UsageError
from tests.engine.llm.server import BAD, SETTINGS, Answered, Loopback, serving
from tests.engine.llm.test_caller import GOOD, question

PROVIDERS = ("anthropic", "openai")
QUESTIONS = [question(str(k)) for k in range(5)]
COST = (100 * 3.0 + 10 * 15.0) / 1e6 / 2
"""Of one answer of the server, at half the price."""
pytestmark = pytest.mark.usefixtures("keys")


def caller_of(loopback: Loopback, provider: str, root: Path, **more: object) -> ModelCaller:
    own: dict[str, Any] = {"input_price": 3.0, "output_price": 15.0, "backoff_s": 0.01, "batch": True}
    own |= SETTINGS.get(provider, {}) | more
    profile = Profile(provider=provider, model="m", base_url=loopback.base(provider), **own)  # type: ignore[arg-type]
    return ModelCaller("m", profile, client_for(profile), root)


def ask(caller: ModelCaller) -> list[float | None]:
    return caller.ask(QUESTIONS, [read_similarity] * len(QUESTIONS))


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def while_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(time, "sleep", killed)


def before_the_number_is_noted(patch: pytest.MonkeyPatch) -> None:
    write = write_json

    def noting(path: Path, content: dict[str, Any], **more: Any) -> None:  # noqa: ANN401
        if content["id"]:
            raise KeyboardInterrupt
        write(path, content, **more)

    patch.setattr(module, "write_json", noting)


def while_answers_are_filed(patch: pytest.MonkeyPatch) -> None:
    write = ReplyStore.write
    filed: list[Any] = []

    def filing(self: ReplyStore, request: Any, answer: Any) -> None:  # noqa: ANN401
        if len(filed) == 2:
            raise KeyboardInterrupt
        filed.append(request)
        write(self, request, answer)

    patch.setattr(ReplyStore, "write", filing)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_costs_half_and_each_answer_ends_as_it_would_alone(provider: str, tmp_path: Path) -> None:
    refused = "refusal" if provider == "anthropic" else "content_filter"
    said = iter([Answered("no idea"), Answered(status=500), Answered("no", stop=refused), *[Answered(GOOD)] * 9])
    with serving(lambda _: next(said)) as loopback:
        caller = caller_of(loopback, provider, tmp_path)
        assert ask(caller) == [50.0, 50.0, None, 50.0, 50.0]
        assert [len(requests) for requests in loopback.batches.values()] == [5, 2]
    assert (caller.usage["calls"], caller.usage["refusal"], caller.usage["overloaded"]) == (7, 1, 1)
    assert caller.usage["cost"] == pytest.approx(6 * COST)
    assert caller.ledger.spent().cost == pytest.approx(6 * COST, rel=1e-6)
    assert not list((tmp_path / "llm" / "batches").iterdir())


@pytest.mark.parametrize(
    ("provider", "moment"),
    [
        *((provider, moment) for provider in PROVIDERS for moment in (while_waiting, while_answers_are_filed)),
        ("openai", before_the_number_is_noted),
    ],
)
def test_a_killed_run_pays_once_whenever_it_is_killed(
    provider: str, moment: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda _: Answered(GOOD)) as loopback:
        with monkeypatch.context() as patch:
            moment(patch)
            with pytest.raises(KeyboardInterrupt):
                ask(caller_of(loopback, provider, tmp_path))
        caller = caller_of(loopback, provider, tmp_path)
        assert ask(caller) == [50.0] * 5
        assert [len(requests) for requests in loopback.batches.values()] == [5]
    spent = caller.ledger.spent()
    assert spent.calls == 5
    assert spent.cost == pytest.approx(5 * COST, rel=1e-6)


def test_what_goes_up_is_what_the_service_documents(tmp_path: Path) -> None:
    with serving(lambda _: Answered(GOOD)) as loopback:
        ask(caller_of(loopback, "openai", tmp_path, extra=json.dumps({"top_k": 5})))
        row = loopback.batches["batch_0"][0]
    assert set(row) == {"custom_id", "method", "url", "body"}
    assert (row["method"], row["url"], row["body"]["model"]) == ("POST", "/v1/chat/completions", "m")
    assert row["body"]["top_k"] == 5
    assert len(row["custom_id"]) <= 64


def test_what_expired_is_asked_again(tmp_path: Path) -> None:
    with serving(lambda _: Answered(GOOD)) as loopback:
        loopback.end = "expired"
        loopback.files["answers_batch_0"] = b""
        caller = caller_of(loopback, "openai", tmp_path)
        assert ask(caller) == [50.0] * 5
    assert (caller.usage["overloaded"], caller.usage["calls"]) == (5, 10)


def test_a_batch_that_the_service_would_not_take_says_why_and_is_forgotten(tmp_path: Path) -> None:
    with serving(lambda _: Answered(GOOD)) as loopback:
        loopback.end = "failed"
        with pytest.raises(CallError, match=r"would not take a batch: line 1 is no request\."):
            ask(caller_of(loopback, "openai", tmp_path))
        assert not list((tmp_path / "llm" / "batches").iterdir())
        loopback.end = "completed"
        assert ask(caller_of(loopback, "openai", tmp_path)) == [50.0] * 5


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_question_that_the_service_refuses_says_why_at_once_and_others_are_kept(
    provider: str, tmp_path: Path
) -> None:
    said = iter([Answered(GOOD), Answered(status=BAD), *[Answered(GOOD)] * 4])
    with serving(lambda _: next(said)) as loopback:
        caller = caller_of(loopback, provider, tmp_path)
        with pytest.raises(CallError, match=r"no such setting.*Check the model's name") as refused:
            ask(caller)
        assert refused.value.failure == "refused"
        assert ask(caller_of(loopback, provider, tmp_path)) == [50.0] * 5
        assert [len(requests) for requests in loopback.batches.values()] == [5, 1]
    assert caller.ledger.spent().cost == pytest.approx(5 * COST, rel=1e-6)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_questions_that_fail_in_every_batch_say_why(provider: str, tmp_path: Path) -> None:
    with serving(lambda _: Answered(status=500)) as loopback:
        with pytest.raises(CallError, match=r"5 questions failed in 5 batches: .*no such setting"):
            ask(caller_of(loopback, provider, tmp_path))
        assert len(loopback.batches) == 5


def test_large_batches_are_sent_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.CompletionBatches, "most_requests", 2)
    with serving(lambda _: Answered(GOOD)) as loopback:
        assert ask(caller_of(loopback, "openai", tmp_path)) == [50.0] * 5
        assert [len(requests) for requests in loopback.batches.values()] == [2, 2, 1]


def test_providers_without_batches_are_refused() -> None:
    with pytest.raises(UsageError, match="anthropic and openai only"):
        Profile(provider="bedrock", model="m", batch=True)
