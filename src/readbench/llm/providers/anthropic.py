"""Anthropic's Messages API."""

from __future__ import annotations

import base64
import json
from typing import Any

from readbench.llm.messages import Image, Part, Reply, Request, Usage
from readbench.llm.providers.keys import key
from readbench.llm.settings import Profile
from readbench.llm.wire import CallError, post

VERSION = "2023-06-01"


class Anthropic:
    """POST /v1/messages with the key in `ANTHROPIC_API_KEY`."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: Request) -> Reply:
        """Answer one request."""
        body = {"model": self.profile.model, **message(request, self.profile)}
        headers = {"x-api-key": key("ANTHROPIC_API_KEY"), "anthropic-version": VERSION}
        url = f"{self.profile.address}/v1/messages"
        return answer(post(url, headers, json.dumps(body).encode(), self.profile.timeout_s), url)


def message(request: Request, profile: Profile) -> dict[str, Any]:
    """The body of a message but for the model, which bedrock has in the address."""
    body: dict[str, Any] = {
        "max_tokens": profile.max_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": [_block(part) for part in request.parts]}],
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
    return Reply(text, usage)


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(part.png).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    return {"type": "text", "text": part.text}
