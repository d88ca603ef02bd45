"""Each provider over the wire, against a server that speaks its protocol."""

from __future__ import annotations

import base64
import json
import re
import socket
import time
import typing
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from readbench.engine.llm import Image, ModelRequest, SeriesPart, Text, Usage
from readbench.engine.llm._providers import CallError, OpenAi, client_for
from readbench.engine.llm._settings import Effort, Profile, Thinking
from readbench.errors import UsageError
from tests.engine.llm.server import KEYS, PROVIDERS, SETTINGS, Answered, Loopback, serving

pytestmark = pytest.mark.usefixtures("keys")
VALUES = np.arange(32, dtype=np.float32)
REQUEST = ModelRequest(
    "the role",
    (Text("QUERY"), Image(b"png", 10, 10), SeriesPart(0, '"a"', VALUES, 'channel "a": 0 1 2'), Text("the question")),
    {"type": "object"},
)
IMAGE = base64.b64encode(b"png").decode()


def profile(loopback: Loopback, provider: str, **settings: Any) -> Profile:  # noqa: ANN401
    own = {"model": "m:1", "timeout_s": 5.0, "base_url": loopback.base(provider)} | SETTINGS.get(provider, {})
    settings = own | settings
    return Profile(provider=provider, **settings)  # type: ignore[arg-type]


def sent(provider: str, **settings: Any) -> tuple[str, dict[str, str], dict[str, Any]]:  # noqa: ANN401
    """What reaches the server, which says hello."""
    with serving(lambda _: Answered("hello")) as loopback:
        reply = client_for(profile(loopback, provider, **settings)).complete(REQUEST)
        assert (reply.text, reply.usage) == ("hello", Usage(100, 10))
        asked = loopback.asked[0]
    return asked.path, asked.headers, asked.body


def failure(provider: str, answered: Answered, **settings: Any) -> CallError:  # noqa: ANN401
    with serving(lambda _: answered) as loopback, pytest.raises(CallError) as caught:
        client_for(profile(loopback, provider, **settings)).complete(REQUEST)
    return caught.value


def test_anthropic_gets_a_message() -> None:
    path, headers, body = sent("anthropic")
    assert path == "/v1/messages"
    assert headers["authorization"] == f"Bearer {KEYS['ANTHROPIC_API_KEY']}"
    assert headers["anthropic-version"]
    assert body == {
        "model": "m:1",
        "max_tokens": 2048,
        "system": "the role",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "QUERY"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
                    {"type": "text", "text": 'channel "a": 0 1 2'},
                    {"type": "text", "text": "the question"},
                ],
            }
        ],
    }


def test_thinking_and_the_schema_are_sent_where_the_profile_says_so() -> None:
    _, _, body = sent("anthropic", thinking="disabled", structured=True)
    assert body["thinking"] == {"type": "disabled"}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}


def test_bedrock_gets_the_same_message_signed() -> None:
    path, headers, body = sent("bedrock")
    assert path == "/model/m:1/invoke"
    assert "model" not in body
    assert body["anthropic_version"]
    assert body["messages"] == sent("anthropic")[2]["messages"]
    pattern = (
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/bedrock/aws4_request,"
        r" SignedHeaders=[a-z0-9;-]+, Signature=[0-9a-f]{64}"
    )
    assert re.fullmatch(pattern, headers["authorization"])
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(headers)


def test_temporary_keys_are_part_of_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "passing")
    _, headers, _ = sent("bedrock", region="us-west-2")
    assert headers["x-amz-security-token"] == "passing"
    assert "x-amz-security-token" in headers["authorization"]


def test_openai_gets_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    path, headers, body = sent("openai", structured=True)
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEYS['OPENAI_API_KEY']}"
    assert body["messages"][0] == {"role": "system", "content": "the role"}
    assert body["messages"][1]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{IMAGE}"},
    }
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert body["max_tokens"] == 2048
    monkeypatch.delenv("OPENAI_API_KEY")
    _, headers, body = sent("openai", key_env="")
    assert "authorization" not in headers
    assert "response_format" not in body


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_key_of_a_provider_goes_to_its_own_address_alone(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret-token")
    _, headers, _ = sent(provider, key_env="")
    assert not {"authorization", "x-api-key"} & set(headers)
    assert not any("secret" in value for value in headers.values())
    assert Profile(provider=provider, model="m").key_variable == f"{provider.upper()}_API_KEY"  # type: ignore[arg-type]


def test_openai_itself_takes_the_newer_name_of_the_limit() -> None:
    assert OpenAi(Profile(provider="openai", model="m")).body(REQUEST)["max_completion_tokens"] == 2048


def test_settings_know_what_the_packages_know() -> None:
    """Thinking with a budget of tokens is for older models; `extra` can ask for it."""
    types = pytest.importorskip("anthropic.types", reason="needs the extra llm")
    told = typing.get_type_hints(types.OutputConfigParam)["effort"]
    shared = pytest.importorskip("openai.types.shared_params.reasoning_effort", reason="needs the extra llm")
    for known in (told, shared.ReasoningEffort):
        (efforts,) = (own for own in typing.get_args(known) if own is not type(None))
        assert set(typing.get_args(efforts)) <= set(typing.get_args(Effort))
    kinds = (typing.get_type_hints(own)["type"] for own in typing.get_args(types.ThinkingConfigParam))
    assert {typing.get_args(kind)[0] for kind in kinds} - {"enabled"} <= set(typing.get_args(Thinking))


def test_settings_of_decoding_are_sent_where_they_are_set() -> None:
    chosen = {"temperature": 0.5, "top_p": 0.9, "effort": "low", "extra": '{"top_k": 5}'}
    _, _, body = sent("anthropic", **chosen)
    assert (body["temperature"], body["top_p"], body["top_k"]) == (0.5, 0.9, 5)
    assert body["output_config"] == {"effort": "low"}
    _, _, body = sent("openai", seed=7, **chosen)
    assert (body["temperature"], body["seed"], body["top_k"], body["reasoning_effort"]) == (0.5, 7, 5, "low")
    with pytest.raises(UsageError, match="extra must be a JSON object"):
        Profile(provider="anthropic", model="m", extra="5")


def test_what_questions_share_is_marked_for_the_provider_s_cache_and_paid_at_its_price() -> None:
    used = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    raw = json.dumps({"content": [{"type": "text", "text": "hello"}], "usage": used}).encode()
    with serving(lambda _: Answered(raw=raw)) as loopback:
        own = profile(loopback, "anthropic", caching=True, input_price=1.0, output_price=2.0)
        reply = client_for(own).complete(replace(REQUEST, shared=2))
        body = loopback.asked[0].body
    blocks = [*body["system"], *body["messages"][0]["content"]]
    assert ["cache_control" in block for block in blocks] == [True, False, True, False, False]
    assert reply.usage == Usage(10, 1, 100, 20)
    assert own.cost(**asdict(reply.usage)) == pytest.approx((10 + 2 + 100 * 0.1 + 20 * 1.25) / 1e6)


def test_vertex_gets_the_same_message_with_a_token() -> None:
    path, headers, body = sent("vertex")
    assert path == "/projects/p/locations/europe-west1/publishers/anthropic/models/m:1:rawPredict"
    assert headers["authorization"] == "Bearer secret-vertex"
    assert body["messages"] == sent("anthropic")[2]["messages"]


def test_the_model_that_answers_is_told() -> None:
    with serving(lambda _: Answered("hello", model="m:1-2026")) as loopback:
        for provider in ("anthropic", "bedrock", "vertex", "openai", "chatts-http"):
            assert client_for(profile(loopback, provider)).complete(REQUEST).model == "m:1-2026"


def test_chatts_gets_one_text_with_a_placeholder_for_each_series() -> None:
    _, _, body = sent("chatts-http")
    text, *series = body["messages"][1]["content"]
    assert text["text"] == 'QUERY\nchannel "a": <ts><ts/>\nthe question'
    assert [len(part["timeseries"]) for part in series] == [64]
    assert (series[0]["timeseries"][0], series[0]["timeseries"][-1]) == (0.0, 31.0)
    assert body["temperature"] == 0


def test_toto_gets_text_images_and_series_with_the_number_of_their_window() -> None:
    path, _, body = sent("toto-http")
    assert path == "/answer"
    assert body == {
        "model": "m:1",
        "max_tokens": 2048,
        "system": "the role",
        "question": "QUERY\nthe question",
        "images": [IMAGE],
        "series": [VALUES.tolist()],
        "ids": [0],
        "channels": ['"a"'],
    }


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "throttled"),
        (500, "overloaded"),
        (529, "overloaded"),
        (401, "refused"),
        (400, "refused"),
        (408, "overloaded"),
        (409, "overloaded"),
    ],
)
def test_status_codes_tell_what_is_worth_another_try(provider: str, status: int, kind: str) -> None:
    answered = Answered(status=status, headers={"retry-after": "7"}, raw=b'{"error": "says why"}')
    error = failure(provider, answered)
    assert error.failure == kind
    assert "says why" in str(error)
    assert error.wait == (0.0 if kind == "refused" else 7.0)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("raw", [b"<html>", b"", b"[]", b'"text"', b"{}", b'{"choices": [], "content": 3}', b"null"])
def test_replies_that_are_none_are_garbled(provider: str, raw: bytes) -> None:
    assert failure(provider, Answered(raw=raw)).failure == "garbled"


def test_a_redirect_is_not_followed() -> None:
    with serving(lambda _: Answered("stolen")) as other:
        answered = Answered(status=307, headers={"location": f"{other.url}/v1/messages"}, raw=b"")
        assert failure("anthropic", answered).failure == "refused"
        assert other.asked == []


def test_a_slow_server_is_not_waited_for() -> None:
    def slow(_: object) -> Answered:
        time.sleep(1.0)
        return Answered("late")

    with serving(slow) as loopback, pytest.raises(CallError) as caught:
        client_for(profile(loopback, "openai", timeout_s=0.1)).complete(REQUEST)
    assert caught.value.failure == "unreachable"


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CallError, match="Is the server running") as caught:
        client_for(Profile(provider="toto-http", model="m", base_url=url)).complete(REQUEST)
    assert caught.value.failure == "unreachable"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_keys_are_in_no_error(provider: str) -> None:
    error = failure(provider, Answered(status=403, raw=b"no"))
    assert not any(secret in str(error) + repr(error) for name, secret in KEYS.items() if name != "AWS_REGION")


@pytest.mark.parametrize(("provider", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("bedrock", "AWS_REGION")])
def test_a_missing_key_is_named(provider: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    with serving(lambda _: Answered("hello")) as loopback, pytest.raises(UsageError, match=variable):
        client_for(profile(loopback, provider)).complete(REQUEST)
