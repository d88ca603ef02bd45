"""All questions of a cell in one batch: half the price, answers within a day.

A batch that was sent is remembered by what it asks: a run that is killed while it waits, and started again, waits for
the same one and pays for it once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from readbench.common.files import write_json
from readbench.engine.llm._messages import ModelRequest, Reply
from readbench.engine.llm._providers import Anthropic, message, reach, read_message
from readbench.engine.llm._settings import Profile

MOST_BYTES = 200_000_000
"""Of one batch; the service takes 256 MB."""
LONGEST_WAIT_S = 60.0


class MessageBatches:
    """Batches of messages at Anthropic.

    Args:
        profile: how to ask.
        root: cache root.
    """

    def __init__(self, profile: Profile, root: Path) -> None:
        self.profile = profile
        self.client = Anthropic(profile)
        self.root = root / "llm" / "batches"

    def complete(self, requests: Mapping[str, ModelRequest]) -> dict[str, Reply]:
        """Answers by the names of their questions; those that the service failed at are not there."""
        replies: dict[str, Reply] = {}
        for part in self._parts(requests):
            replies |= self._wait(part)
        return replies

    def _parts(self, requests: Mapping[str, ModelRequest]) -> Iterator[dict[str, dict[str, Any]]]:
        part: dict[str, dict[str, Any]] = {}
        size = 0
        for name, request in requests.items():
            body = message(request, self.profile)
            body |= body.pop("extra_body", {})
            length = len(json.dumps(body))
            if part and size + length > MOST_BYTES:
                yield part
                part, size = {}, 0
            part[name] = body
            size += length
        if part:
            yield part

    def _wait(self, part: Mapping[str, dict[str, Any]]) -> dict[str, Reply]:
        sent = self.root / f"{hashlib.sha256(' '.join(sorted(part)).encode()).hexdigest()}.json"
        if not sent.exists():
            asked = [{"custom_id": name, "params": body} for name, body in part.items()]
            write_json(sent, {"id": str(self._call("create", requests=asked)["id"])}, indent=None)
        batch = json.loads(sent.read_text())["id"]
        wait = self.profile.backoff_s
        while self._call("retrieve", message_batch_id=batch).get("processing_status") != "ended":
            time.sleep(min(wait, LONGEST_WAIT_S))
            wait *= 2
        rows = [row.to_dict() for row in self.client.sdk.messages.batches.results(batch)]
        sent.unlink()
        ended = [(row["custom_id"], row["result"]) for row in rows if row["result"]["type"] == "succeeded"]
        return {name: read_message(result["message"], batch) for name, result in ended}

    def _call(self, verb: str, **arguments: Any) -> Any:  # noqa: ANN401 - any JSON
        return reach(
            "anthropic", getattr(self.client.sdk.messages.batches.with_raw_response, verb), arguments, "batches"
        )
