"""The chat completions that vLLM, Ollama, llama.cpp and most hosts speak, and ChatTS behind its own build of vLLM."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import numpy as np

from readbench.llm.messages import Image, Part, Reply, Request, Series, Usage
from readbench.llm.settings import Profile
from readbench.llm.wire import CallError, post
from readbench.windows import resample

SHORTEST, LONGEST = 64, 1024
"""Lengths of series that ChatTS was trained on."""
PLACEHOLDER = "<ts><ts/>"
"""Where ChatTS reads a series, as its processor spells it."""


class OpenAi:
    """POST {base_url}/chat/completions, with the key in `OPENAI_API_KEY` where the server wants one."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: Request) -> Reply:
        """Answer one request."""
        url = f"{self.profile.address}/chat/completions"
        secret = os.environ.get("OPENAI_API_KEY", "")
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        return _answer(post(url, headers, json.dumps(self.body(request)).encode(), self.profile.timeout_s), url)

    def body(self, request: Request) -> dict[str, Any]:
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

    def content(self, request: Request) -> list[dict[str, Any]]:
        """The parts in order, series as text."""
        return [_block(part) for part in request.parts]


class ChatTs(OpenAi):
    """One text with a placeholder for each series, then the series; greedy, no images."""

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent."""
        return super().body(request) | {"temperature": 0}

    def content(self, request: Request) -> list[dict[str, Any]]:
        """One text, then the series in the order of their placeholders."""
        words = [_words(part) for part in request.parts if not isinstance(part, Image)]
        series = [part for part in request.parts if isinstance(part, Series)]
        return [{"type": "text", "text": "\n".join(words)}, *({"timeseries": _fitting(s)} for s in series)]


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(part.png).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return {"type": "text", "text": part.text}


def _words(part: Part) -> str:
    return f"channel {part.channel}: {PLACEHOLDER}" if isinstance(part, Series) else getattr(part, "text", "")


def _fitting(series: Series) -> list[float]:
    """The values at a length that ChatTS knows."""
    length = int(np.clip(len(series.values), SHORTEST, LONGEST))
    return [float(value) for value in resample(series.values[None], length)[0]]


def _answer(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    try:
        text = reply["choices"][0]["message"]["content"] or ""
        usage = reply.get("usage") or {}
        taken = Usage(int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0)))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered with something that is no chat completion.") from None
    return Reply(str(text), taken)
