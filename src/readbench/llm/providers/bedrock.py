"""Claude on AWS Bedrock: the same messages at another address, signed instead of keyed."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from urllib.parse import quote

from readbench.llm.messages import Reply, Request
from readbench.llm.providers.anthropic import answer, message
from readbench.llm.providers.keys import key
from readbench.llm.settings import Profile
from readbench.llm.sigv4 import Credentials, Scope, signed
from readbench.llm.wire import post

VERSION = "bedrock-2023-05-31"


class Bedrock:
    """POST /model/ID/invoke, signed with the keys in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.

    `AWS_REGION` says where; `AWS_SESSION_TOKEN` belongs to temporary keys.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def complete(self, request: Request) -> Reply:
        """Answer one request."""
        region = key("AWS_REGION")
        address = self.profile.address or f"https://bedrock-runtime.{region}.amazonaws.com"
        url = f"{address}/model/{quote(self.profile.model, safe='')}/invoke"
        body = json.dumps({"anthropic_version": VERSION, **message(request, self.profile)}).encode()
        credentials = Credentials(
            key("AWS_ACCESS_KEY_ID"), key("AWS_SECRET_ACCESS_KEY"), os.environ.get("AWS_SESSION_TOKEN", "")
        )
        scope = Scope(datetime.now(UTC), region, "bedrock")
        headers = signed("POST", url, {"content-type": "application/json"}, body, credentials, scope)
        return answer(post(url, headers, body, self.profile.timeout_s), url)
