"""Each provider over the wire, against a server that speaks its protocol."""

from __future__ import annotations

import base64
import re
import socket
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from readbench.engine.llm import Image, ModelRequest, SeriesPart, Text, Usage
from readbench.engine.llm._providers import CallError, Credentials, Scope, client_for, sign_request
from readbench.engine.llm._settings import Profile
from readbench.errors import UsageError
from tests.engine.llm.server import KEYS, PROVIDERS, Answered, Loopback, serving

pytestmark = pytest.mark.usefixtures("keys")
VALUES = np.arange(32, dtype=np.float32)
REQUEST = ModelRequest(
    "the role",
    (Text("QUERY"), Image(b"png", 10, 10), SeriesPart(0, '"a"', VALUES, 'channel "a": 0 1 2'), Text("the question")),
    {"type": "object"},
)
IMAGE = base64.b64encode(b"png").decode()


def profile(loopback: Loopback, provider: str, **settings: Any) -> Profile:  # noqa: ANN401
    settings = {"model": "m:1", "timeout_s": 5.0, "base_url": loopback.base(provider)} | settings
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
    assert headers["x-api-key"] == KEYS["ANTHROPIC_API_KEY"]
    assert headers["anthropic-version"] == "2023-06-01"
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
    assert path == "/model/m%3A1/invoke"
    assert "model" not in body
    assert body["anthropic_version"] == "bedrock-2023-05-31"
    assert body["messages"] == sent("anthropic")[2]["messages"]
    pattern = (
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/bedrock/aws4_request,"
        r" SignedHeaders=content-type;host;x-amz-date, Signature=[0-9a-f]{64}"
    )
    assert re.fullmatch(pattern, headers["authorization"])
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(headers)


def test_signatures_are_those_of_the_published_example() -> None:
    headers = sign_request(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        {"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
        b"",
        Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        Scope(datetime(2015, 8, 30, 12, 36, tzinfo=UTC), "us-east-1", "iam"),
    )
    assert headers["authorization"].endswith("5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")


def test_temporary_keys_are_part_of_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "passing")
    _, headers, _ = sent("bedrock")
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
    monkeypatch.delenv("OPENAI_API_KEY")
    _, headers, body = sent("openai")
    assert "authorization" not in headers
    assert "response_format" not in body


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
    [(429, "throttled"), (500, "overloaded"), (529, "overloaded"), (401, "refused"), (400, "refused")],
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
    assert "secret" not in repr(Credentials("secret", "secret"))


@pytest.mark.parametrize(("provider", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("bedrock", "AWS_REGION")])
def test_a_missing_key_is_named(provider: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    with serving(lambda _: Answered("hello")) as loopback, pytest.raises(UsageError, match=variable):
        client_for(profile(loopback, provider)).complete(REQUEST)
