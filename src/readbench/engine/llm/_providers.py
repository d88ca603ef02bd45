"""Clients of those who serve models, one for each protocol, over one way of posting JSON.

* `Scripted`: a model that says what it was told to say, for tests and rehearsals.
* `Anthropic`: Anthropic's Messages API.
* `Bedrock`: Claude on AWS Bedrock, the same messages at another address, signed instead of keyed (AWS Signature
  Version 4, as far as one POST or GET needs it).
* `OpenAi`: the chat completions that vLLM, Ollama, llama.cpp and most hosts speak; `ChatTs`: ChatTS behind its own
  build of vLLM.
* `Toto`: Toto-1.0-QA behind a small server of one's own; docs/language-models.md describes what it must answer.

Keys are read from the environment at the moment of a call and kept nowhere. They travel in headers only. Nothing here
logs, and messages of errors hold the address and what the server said, never a header. Redirects are not followed, so
that a key never reaches a host that nobody configured. `CallError` says what each way of failing means.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import numpy as np

from readbench.engine.llm._messages import ChatClient, Image, ModelRequest, Part, Reply, SeriesPart, Stop, Text, Usage
from readbench.engine.llm._settings import Profile
from readbench.engine.preparation import resample
from readbench.errors import MethodError, UsageError


def key(variable: str) -> str:
    """The value of a variable that must be set."""
    if value := os.environ.get(variable):
        return value
    raise UsageError(f"Set {variable} in the environment: the provider does not answer without it.")


class Scripted:
    """Answers by a function of the request; no call leaves the process.

    Args:
        script: the text of the answer; may raise `CallError`.

    >>> Scripted(lambda request: request.system).complete(ModelRequest("hello", (), {})).text
    'hello'
    """

    def __init__(self, script: Callable[[ModelRequest], str]) -> None:
        self.script = script

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        text = self.script(request)
        return Reply(text, Usage(request.tokens, len(text)))


ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, repr=False)
class Credentials:
    """Keys of an AWS account; `token` belongs to temporary ones. Not shown when printed."""

    access_key: str
    secret_key: str
    token: str = ""


@dataclass(frozen=True)
class Scope:
    """What a signature is good for: one service in one region, on one day."""

    when: datetime
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.when:%Y%m%d}/{self.region}/{self.service}/aws4_request"


def sign_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes, credentials: Credentials, scope: Scope
) -> dict[str, str]:
    """The headers with host, date and signature; `headers` have lower-case names, and the query is in order."""
    parts = urlsplit(url)
    own = {**headers, "host": parts.netloc, "x-amz-date": f"{scope.when:%Y%m%dT%H%M%SZ}"}
    if credentials.token:
        own["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(own))
    canonical = "\n".join(
        [
            method,
            quote(parts.path or "/", safe="/-_.~"),  # a path that is quoted already is quoted once more
            parts.query,
            *(f"{name}:{own[name].strip()}" for name in sorted(own)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    message = "\n".join([ALGORITHM, own["x-amz-date"], str(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(_key(credentials.secret_key, scope), message.encode(), hashlib.sha256).hexdigest()
    proof = f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return own | {"authorization": proof}


def _key(secret: str, scope: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in str(scope).split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


Failure = Literal["throttled", "overloaded", "unreachable", "garbled", "refused"]
"""Ways in which a call fails. All but `refused` may pass when it is tried again."""
EXCERPT = 300
THROTTLED, OVERLOADED = 429, 500


class CallError(MethodError):
    """A call without an answer.

    Args:
        failure: which way it failed.
        message: what happened, and what to do.
        wait: seconds that the server asks to wait.
    """

    def __init__(self, failure: Failure, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.failure = failure
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the failure that it is."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Any:  # noqa: ANN401 - any JSON
    """The JSON that a server answers to a JSON body; `CallError` where it does not."""
    request = urllib.request.Request(url, body, dict(headers) | {"content-type": "application/json"}, method="POST")  # noqa: S310 - checked by `Profile`
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            content = response.read()
    except urllib.error.HTTPError as error:
        raise _refusal(url, error) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise CallError("unreachable", f"{url} did not answer: {reason}. Is the server running?") from None
    try:
        return json.loads(content)
    except ValueError:
        raise CallError("garbled", f"{url} answered with something that is no JSON: {_excerpt(content)}") from None


def _refusal(url: str, error: urllib.error.HTTPError) -> CallError:
    with error:
        try:
            said = _excerpt(error.read())
        except (OSError, HTTPException):
            said = ""
    message = f"{url} answered with status {error.code}: {said or error.reason}"
    if error.code == THROTTLED:
        return CallError("throttled", message, _seconds(error.headers.get("retry-after", "")))
    if error.code >= OVERLOADED:
        return CallError("overloaded", message, _seconds(error.headers.get("retry-after", "")))
    return CallError("refused", f"{message}. Check the model's name, its address and its key.")


def _excerpt(content: bytes) -> str:
    return " ".join(content.decode(errors="replace").split())[:EXCERPT]


def _seconds(text: str) -> float:
    """A `retry-after` in seconds; dates are not worth parsing, backing off does as well."""
    return float(text) if text.strip().isdecimal() else 0.0


STOPS: dict[str, Stop] = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "guardrail_intervened": "refusal",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "length": "truncated",
}
"""Reasons to stop, in the words of the providers, that leave no whole answer."""
ANTHROPIC_VERSION = "2023-06-01"


class Anthropic:
    """POST /v1/messages with the key in `ANTHROPIC_API_KEY`."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        body = {"model": self.profile.model, **message(request, self.profile)}
        headers = {"x-api-key": key("ANTHROPIC_API_KEY"), "anthropic-version": ANTHROPIC_VERSION}
        url = f"{self.profile.address}/v1/messages"
        return answer(post(url, headers, json.dumps(body).encode(), self.profile.timeout_s), url)


def message(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    """The body of a message but for the model, which bedrock has in the address."""
    body: dict[str, Any] = {
        "max_tokens": profile.max_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": [_anthropic_block(part) for part in request.parts]}],
    }
    if profile.thinking != "unset":
        body["thinking"] = {"type": profile.thinking}
    if profile.structured:
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    return body


def answer(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    """The text of a message; thinking is not part of it."""
    try:
        text = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
        usage = Usage(int(reply["usage"]["input_tokens"]), int(reply["usage"]["output_tokens"]))
    except (KeyError, TypeError, ValueError):
        raise CallError("garbled", f"{url} answered with something that is no message of the API.") from None
    return Reply(text, usage, STOPS.get(str(reply.get("stop_reason")), "end"), str(reply.get("model") or ""))


def _anthropic_block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(part.png).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    return {"type": "text", "text": part.text}


BEDROCK_VERSION = "bedrock-2023-05-31"


class Bedrock:
    """POST /model/ID/invoke, signed with the keys in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.

    `AWS_REGION` says where; `AWS_SESSION_TOKEN` belongs to temporary keys.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        region = key("AWS_REGION")
        address = self.profile.address or f"https://bedrock-runtime.{region}.amazonaws.com"
        url = f"{address}/model/{quote(self.profile.model, safe='')}/invoke"
        body = json.dumps({"anthropic_version": BEDROCK_VERSION, **message(request, self.profile)}).encode()
        credentials = Credentials(
            key("AWS_ACCESS_KEY_ID"), key("AWS_SECRET_ACCESS_KEY"), os.environ.get("AWS_SESSION_TOKEN", "")
        )
        scope = Scope(datetime.now(UTC), region, "bedrock")
        headers = sign_request("POST", url, {"content-type": "application/json"}, body, credentials, scope)
        return answer(post(url, headers, body, self.profile.timeout_s), url)


SHORTEST, LONGEST = 64, 1024
"""Lengths of series that ChatTS was trained on."""
PLACEHOLDER = "<ts><ts/>"
"""Where ChatTS reads a series, as its processor spells it."""


class OpenAi:
    """POST {base_url}/chat/completions, with the key in `OPENAI_API_KEY` where the server wants one."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        url = f"{self.profile.address}/chat/completions"
        secret = os.environ.get("OPENAI_API_KEY", "")
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        return _openai_answer(post(url, headers, json.dumps(self.body(request)).encode(), self.profile.timeout_s), url)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """What is sent."""
        body: dict[str, Any] = {
            "model": self.profile.model,
            "max_tokens": self.profile.max_tokens,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": self.content(request)},
            ],
        }
        if self.profile.structured:
            form = {"name": "answer", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def content(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The parts in order, series as text."""
        return [_openai_block(part) for part in request.parts]


class ChatTs(OpenAi):
    """One text with a placeholder for each series, then the series; greedy, no images."""

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """What is sent."""
        return super().body(request) | {"temperature": 0}

    def content(self, request: ModelRequest) -> list[dict[str, Any]]:
        """One text, then the series in the order of their placeholders."""
        words = [_words(part) for part in request.parts if not isinstance(part, Image)]
        series = [part for part in request.parts if isinstance(part, SeriesPart)]
        return [{"type": "text", "text": "\n".join(words)}, *({"timeseries": _fitting(s)} for s in series)]


def _openai_block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(part.png).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return {"type": "text", "text": part.text}


def _words(part: Part) -> str:
    return f"channel {part.channel}: {PLACEHOLDER}" if isinstance(part, SeriesPart) else getattr(part, "text", "")


def _fitting(series: SeriesPart) -> list[float]:
    """The values at a length that ChatTS knows."""
    length = int(np.clip(len(series.values), SHORTEST, LONGEST))
    return [float(value) for value in resample(series.values[None], length)[0]]


def _openai_answer(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    try:
        choice = reply["choices"][0]
        text, refused = choice["message"]["content"] or "", choice["message"].get("refusal")
        usage = reply.get("usage") or {}
        taken = Usage(int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0)))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered with something that is no chat completion.") from None
    stop = "refusal" if refused else STOPS.get(str(choice.get("finish_reason")), "end")
    return Reply(str(text), taken, stop, str(reply.get("model") or ""))


class Toto:
    """POST {base_url}/answer: the text, the images, and all channels with the number of their window."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        url = f"{self.profile.address}/answer"
        return _toto_answer(post(url, {}, json.dumps(self.body(request)).encode(), self.profile.timeout_s), url)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """What is sent."""
        series = [part for part in request.parts if isinstance(part, SeriesPart)]
        return {
            "model": self.profile.model,
            "max_tokens": self.profile.max_tokens,
            "system": request.system,
            "question": "\n".join(part.text for part in request.parts if isinstance(part, Text)),
            "images": [base64.b64encode(part.png).decode() for part in request.parts if isinstance(part, Image)],
            "series": [[float(value) for value in part.values] for part in series],
            "ids": [part.entity for part in series],
            "channels": [part.channel for part in series],
        }


def _toto_answer(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    try:
        usage = reply.get("usage") or {}
        taken = Usage(int(usage.get("input_tokens", 0)), int(usage.get("output_tokens", 0)))
        return Reply(str(reply["text"] or ""), taken)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered without a text.") from None


CLIENTS: dict[str, Callable[[Profile], ChatClient]] = {
    "anthropic": Anthropic,
    "bedrock": Bedrock,
    "openai": OpenAi,
    "chatts-http": ChatTs,
    "toto-http": Toto,
}


def client_for(profile: Profile) -> ChatClient:
    """The client that speaks a profile's protocol."""
    return CLIENTS[str(profile.provider)](profile)
