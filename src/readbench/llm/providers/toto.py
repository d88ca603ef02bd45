"""Toto-1.0-QA behind a small server of one's own; docs/language-models.md describes what it must answer."""

from __future__ import annotations

import base64
import json
from typing import Any

from readbench.llm.messages import Image, Reply, Request, Series, Text, Usage
from readbench.llm.settings import Profile
from readbench.llm.wire import CallError, post


class Toto:
    """POST {base_url}/answer: the text, the images, and all channels with the number of their window."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: Request) -> Reply:
        """Answer one request."""
        url = f"{self.profile.address}/answer"
        return _answer(post(url, {}, json.dumps(self.body(request)).encode(), self.profile.timeout_s), url)

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent."""
        series = [part for part in request.parts if isinstance(part, Series)]
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


def _answer(reply: Any, url: str) -> Reply:  # noqa: ANN401 - any JSON
    try:
        usage = reply.get("usage") or {}
        taken = Usage(int(usage.get("input_tokens", 0)), int(usage.get("output_tokens", 0)))
        return Reply(str(reply["text"] or ""), taken)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError("garbled", f"{url} answered without a text.") from None
