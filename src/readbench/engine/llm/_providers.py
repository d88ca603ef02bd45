"""Clients of model providers, on top of the providers' packages.

* `Scripted`: a model with scripted answers, for tests and rehearsals.
* `Anthropic`: Claude at Anthropic, on AWS Bedrock and on Google Vertex, by the package `anthropic`.
* `OpenAi`: chat completions of OpenAI, vLLM, Ollama, llama.cpp and most hosts, by the package `openai`; `ChatTs`:
  ChatTS on its build of vLLM.
* `Toto`: Toto-1.0-QA on a small server around its authors' code, `research/toto_server.py`.

Keys are read from the environment at the first call and stored nowhere else. They travel in headers only. Nothing here
logs, and error messages contain the address and the server's text, never a header. Redirects are not followed, so that
a key never reaches another host. The caller retries, with the packages' retries turned off. `CallError` classifies
failures.
"""

from __future__ import annotations

import base64
import importlib
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from readbench.engine.llm._messages import ChatClient, Image, ModelRequest, Part, Reply, SeriesPart, Stop, Text, Usage
from readbench.engine.llm._settings import Profile
from readbench.engine.preparation import resample
from readbench.errors import MethodError, UsageError


def key(variable: str) -> str:
    """Read a required environment variable."""
    if value := os.environ.get(variable):
        return value
    raise UsageError(f"Set {variable} in the environment: the provider does not answer without it.")


class Scripted:
    """Answers by a function of the request; no call leaves the process.

    Args:
        script: returns the text of the answer; may raise `CallError`.

    >>> Scripted(lambda request: request.system).complete(ModelRequest("hello", (), {})).text
    'hello'
    """

    def __init__(self, script: Callable[[ModelRequest], str]) -> None:
        self.script = script

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        text = self.script(request)
        return Reply(text, Usage(request.tokens, len(text)))


Failure = Literal["throttled", "overloaded", "unreachable", "garbled", "refused"]
"""Kinds of failed calls; all but `refused` may succeed when retried."""
MAX_EXCERPT_CHARACTERS = 300
THROTTLED, OVERLOADED = 429, 500
RETRIED_STATUSES = (408, 409)
"""Further statuses that may succeed when retried: timeout and conflict."""


class CallError(MethodError):
    """A call without an answer.

    Args:
        failure: kind of failure.
        message: what happened, and the remedy.
        wait: seconds that the server asks to wait.
    """

    def __init__(self, failure: Failure, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.failure = failure
        self.wait = wait


def explain_status(url: str, status: int, said: str, headers: Mapping[str, str]) -> CallError:
    """Convert an unsuccessful status to a `CallError`."""
    message = f"{url} answered with status {status}: {' '.join(said.split())[:MAX_EXCERPT_CHARACTERS]}"
    wait = _seconds(headers.get("retry-after", ""))
    if status == THROTTLED:
        return CallError("throttled", message, wait)
    if status >= OVERLOADED or status in RETRIED_STATUSES:
        return CallError("overloaded", message, wait)
    return CallError("refused", f"{message}. Check the model's name, its address and its key.")


def _lost(url: str, error: Exception) -> CallError:
    reason = str(error.__cause__ or error).rstrip(".")
    return CallError("unreachable", f"{url} did not answer: {reason}. Is the server running?")


def _seconds(text: str) -> float:
    """Parse `retry-after` in seconds; a date gives 0, since backing off suffices."""
    return float(text) if text.strip().isdecimal() else 0.0


def _package(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(f"The package {name} is not installed: pip install 'readbench[llm]'.") from None


def reach(name: str, create: Callable[..., Any], body: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401 - any JSON
    """Call a provider and return its JSON; `CallError` if there is none.

    Args:
        name: of the package; those of Anthropic and OpenAI have the same errors.
        create: the package's function for raw responses.
        body: of the request.
        where: address, for messages.
    """
    raw = reach_raw(name, create, body, where).http_response
    try:
        return raw.json()
    except ValueError:
        said = " ".join(raw.text.split())[:MAX_EXCERPT_CHARACTERS]
        raise CallError("garbled", f"{where} answered with something that is no JSON: {said}") from None


def reach_raw(name: str, create: Callable[..., Any], body: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401
    """Call a function of a provider's package; convert its errors to `CallError`."""
    package = _package(name)
    try:
        return create(**body)
    except package.APIStatusError as error:
        raise explain_status(where, error.status_code, error.response.text, error.response.headers) from None
    except package.APIConnectionError as error:
        raise _lost(where, error) from None
    except package.APIResponseValidationError:
        raise CallError("garbled", f"{where} answered with something that is no JSON.") from None
    except Exception as error:  # noqa: BLE001 - clouds raise many errors for missing credentials
        raise CallError("refused", f"{where} could not be called ({type(error).__name__}): {error}") from None


STOPS: dict[str, Stop] = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "guardrail_intervened": "refusal",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "length": "truncated",
}
"""Stop reasons of the providers that leave no complete answer."""


class Anthropic:
    """Messages to Claude at any host."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        create = self.sdk.messages.with_raw_response.create
        where = str(self.sdk.base_url).rstrip("/")
        return read_message(reach("anthropic", create, message(request, self.profile), where), where)

    @cached_property
    def sdk(self) -> Any:  # noqa: ANN401 - of an optional package
        """The package's client."""
        package, profile = _package("anthropic"), self.profile
        shared = {
            "base_url": profile.address or None,
            "timeout": profile.timeout_s,
            "max_retries": 0,
            "http_client": package.DefaultHttpxClient(follow_redirects=False),
        }
        if profile.provider == "bedrock":
            region = profile.region or os.environ.get("AWS_DEFAULT_REGION") or key("AWS_REGION")
            token = key(profile.key_env) if profile.key_env else None
            chosen = profile.aws_profile or None
            return package.AnthropicBedrock(aws_region=region, aws_profile=chosen, api_key=token, **shared)
        if profile.provider == "vertex":
            token = key(profile.key_env) if profile.key_env else None
            where = {"region": profile.region, "project_id": profile.project}
            return package.AnthropicVertex(**where, access_token=token, **shared)
        if profile.key_variable:
            return package.Anthropic(api_key=key(profile.key_variable), **shared)
        unsigned = dict.fromkeys(("Authorization", "X-Api-Key"), package.Omit())
        return package.Anthropic(api_key="none", default_headers=unsigned, **shared)


def message(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    """Build the arguments of a message."""
    blocks = [_anthropic_block(part) for part in request.parts]
    system: Any = request.system
    if profile.caching:
        system = [{"type": "text", "text": request.system, **CACHED}]
        if request.shared:
            blocks[request.shared - 1] |= CACHED
    body: dict[str, Any] = {
        "model": profile.model,
        "max_tokens": profile.max_tokens,
        "system": system,
        "messages": [{"role": "user", "content": blocks}],
    }
    if profile.thinking != "unset":
        body["thinking"] = {"type": profile.thinking}
    output: dict[str, Any] = {"effort": profile.effort} if profile.effort != "unset" else {}
    if profile.structured:
        output["format"] = {"type": "json_schema", "schema": request.schema}
    further = {name: profile.decoding[name] for name in ("temperature", "top_p") if name in profile.decoding}
    further |= ({"output_config": output} if output else {}) | profile.further
    return body | ({"extra_body": further} if further else {})


CACHED = {"cache_control": {"type": "ephemeral"}}
"""Marks the end of the part that the provider should cache."""


def read_message(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    """Parse a message; thinking is not part of its text."""
    try:
        text = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
        used = reply["usage"]
        cached = (int(used.get(f"cache_{what}_input_tokens") or 0) for what in ("read", "creation"))
        usage = Usage(int(used["input_tokens"]), int(used["output_tokens"]), *cached)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered with something that is no message of the API.") from None
    return Reply(text, usage, STOPS.get(str(reply.get("stop_reason")), "end"), str(reply.get("model") or ""))


def _anthropic_block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(part.png).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    return {"type": "text", "text": part.text}


SHORTEST, LONGEST = 64, 1024
"""Lengths of series that ChatTS was trained on."""
PLACEHOLDER = "<ts><ts/>"
NEWER_LIMIT = ("openai.com", "azure.com")
"""Hosts that name the token limit of an answer `max_completion_tokens`."""


class OpenAi:
    """Chat completions."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        where, create = self.profile.address, self.sdk.chat.completions.with_raw_response.create
        return read_completion(reach("openai", create, self.named(self.body(request)), where), where)

    def named(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Remove the authorization header from a call if there is no key."""
        if self.profile.key_variable:
            return arguments
        return arguments | {"extra_headers": {"Authorization": _package("openai").Omit()}}

    @cached_property
    def sdk(self) -> Any:  # noqa: ANN401 - of an optional package
        """The package's client."""
        package, profile = _package("openai"), self.profile
        secret = key(profile.key_variable) if profile.key_variable else ""
        return package.OpenAI(
            api_key=secret or "none",
            base_url=profile.address,
            timeout=profile.timeout_s,
            max_retries=0,
            http_client=package.DefaultHttpxClient(follow_redirects=False),
        )

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Build the arguments of a completion."""
        profile = self.profile
        host = urlsplit(profile.address).hostname or ""
        limit = "max_completion_tokens" if host.endswith(NEWER_LIMIT) else "max_tokens"
        body: dict[str, Any] = {
            "model": profile.model,
            limit: profile.max_tokens,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": self.content(request)},
            ],
        }
        if profile.structured:
            named = {"name": "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        body |= {name: profile.decoding[name] for name in ("temperature", "top_p", "seed") if name in profile.decoding}
        body |= {"reasoning_effort": profile.effort} if profile.effort != "unset" else {}
        return body | ({"extra_body": profile.further} if profile.further else {})

    def content(self, request: ModelRequest) -> list[dict[str, Any]]:
        """Texts and images in order."""
        return [_openai_block(part) for part in request.parts]


class ChatTs(OpenAi):
    """Sends one text with a placeholder per series, then the series; greedy, without images."""

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Build the arguments of a completion."""
        return {"temperature": 0} | super().body(request)

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
    """Resample to a length that ChatTS was trained on."""
    length = int(np.clip(len(series.values), SHORTEST, LONGEST))
    return [float(value) for value in resample(series.values[None], length)[0]]


def read_completion(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    """Parse a completion."""
    try:
        choice = reply["choices"][0]
        text, refused = choice["message"]["content"] or "", choice["message"].get("refusal")
        used = reply.get("usage") or {}
        cached = int((used.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        usage = Usage(int(used.get("prompt_tokens", 0)) - cached, int(used.get("completion_tokens", 0)), cached)
        stop = STOPS.get(str(choice.get("finish_reason")), "end")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered with something that is no chat completion.") from None
    return Reply(str(text), usage, "refusal" if refused else stop, str(reply.get("model") or ""))


class Toto:
    """Client of POST {base_url}/answer: text, images, and all channels with the index of their window."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        import requests  # noqa: PLC0415 - slow to import, needed only here

        url = f"{self.profile.address}/answer"
        try:
            sent = requests.post(url, json=self.body(request), timeout=self.profile.timeout_s, allow_redirects=False)
        except (requests.RequestException, OSError) as error:
            raise _lost(url, error) from None
        if sent.status_code != requests.codes.ok:
            raise explain_status(url, sent.status_code, sent.text, sent.headers)
        try:
            return _toto_answer(sent.json(), url)
        except ValueError:
            raise CallError("garbled", f"{url} answered with something that is no JSON.") from None

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Build the request."""
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
        stop = STOPS.get(str(reply.get("stop")), "end")
        return Reply(str(reply["text"] or ""), taken, stop, str(reply.get("model") or ""))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered without a text.") from None


CLIENTS: dict[str, Callable[[Profile], ChatClient]] = {
    "anthropic": Anthropic,
    "bedrock": Anthropic,
    "vertex": Anthropic,
    "openai": OpenAi,
    "chatts-http": ChatTs,
    "toto-http": Toto,
}


def client_for(profile: Profile) -> ChatClient:
    """Create the client of a profile."""
    return CLIENTS[str(profile.provider)](profile)
