"""Batches of questions at a provider: half the price, answers within a day.

A batch is recorded with the names of its questions from before it is sent until its answers are stored: a run that is
killed and started again waits for the same batch and pays once. If it was killed between sending and learning the id of
the batch, OpenAI is searched for a note in its metadata; Anthropic's batches have none and are sent again.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from readbench.common.files import write_json
from readbench.engine.llm._messages import ModelRequest, Reply
from readbench.engine.llm._providers import (
    Anthropic,
    CallError,
    OpenAi,
    explain_status,
    message,
    reach,
    reach_raw,
    read_completion,
    read_message,
)
from readbench.engine.llm._settings import Profile

MAX_WAIT_S = 60.0
MAX_TRIES = 4
"""Maximum tries of a call to the batch service, not of a question."""
NOTE = "readbench"
"""Metadata key by which a batch is found again."""
RETRIED_ERRORS = ("rate_limit_error", "overloaded_error", "api_error", "timeout_error")
"""Error types in Anthropic's batches that may succeed when retried."""
OK = 200
T = TypeVar("T")
Body = dict[str, Any]
Outcome = Reply | CallError
"""Outcome of one question of a batch."""


class Batches(ABC):
    """Batches of a profile at its provider; `root` is the cache root."""

    most_bytes: ClassVar[int]
    most_requests: ClassVar[int]
    """Limits of one batch, below those of the service."""

    def __init__(self, profile: Profile, root: Path) -> None:
        self.profile = profile
        self.root = root / "llm" / "batches"

    @abstractmethod
    def body(self, request: ModelRequest) -> Body:
        """Convert a question to its form in a batch."""

    @abstractmethod
    def send(self, part: Mapping[str, Body], note: str) -> str:
        """Send questions by name; return the id of the batch."""

    @abstractmethod
    def find(self, note: str) -> str:
        """Find the id of the batch with a note; "" if there is none, or it cannot be searched for."""

    @abstractmethod
    def ended(self, batch: str) -> bool:
        """Whether a batch has ended; `CallError` if the service rejected it."""

    @abstractmethod
    def results(self, batch: str) -> dict[str, Outcome]:
        """Outcomes by question name; unprocessed questions are missing."""

    def remembered(self) -> set[str]:
        """Names of questions in recorded batches, sent or about to be sent."""
        return {name for record in self.root.glob("*.json") for name in _read(record)["names"]}

    def complete(self, requests: Mapping[str, ModelRequest]) -> Iterator[tuple[list[str], dict[str, Outcome]]]:
        """Yield names and outcomes of the questions of each finished batch; store them before the next iteration."""
        left = dict(requests)
        for record in sorted(self.root.glob("*.json")):
            known = _read(record)
            names = [name for name in known["names"] if name in left]
            batch = names and (known["id"] or self._try(partial(self.find, record.stem)))
            if batch:
                yield from self._settle(record, batch, names)
                left = {name: request for name, request in left.items() if name not in names}
        for part in self._parts(left):
            note = hashlib.sha256(" ".join(sorted(part)).encode()).hexdigest()
            record = self.root / f"{note}.json"
            write_json(record, {"id": "", "names": list(part)}, indent=None)
            batch = self._try(partial(self.send, part, note))
            write_json(record, {"id": batch, "names": list(part)}, indent=None)
            yield from self._settle(record, batch, list(part))

    def _settle(self, record: Path, batch: str, names: list[str]) -> Iterator[tuple[list[str], dict[str, Outcome]]]:
        wait = self.profile.backoff_s
        try:
            while not self._try(partial(self.ended, batch)):
                time.sleep(min(wait, MAX_WAIT_S))
                wait *= 2
            replies = self._try(partial(self.results, batch))
        except CallError as error:
            if error.failure == "refused":
                record.unlink(missing_ok=True)
            raise
        yield names, replies
        record.unlink(missing_ok=True)

    def _parts(self, requests: Mapping[str, ModelRequest]) -> Iterator[dict[str, Body]]:
        part: dict[str, Body] = {}
        size = 0
        for name, request in requests.items():
            body = self.body(request)
            body |= body.pop("extra_body", {})
            length = len(json.dumps(body))
            if part and (size + length > self.most_bytes or len(part) == self.most_requests):
                yield part
                part, size = {}, 0
            part[name] = body
            size += length
        if part:
            yield part

    def _try(self, call: Callable[[], T]) -> T:
        """Call with retries, so that a temporary failure does not lose a batch."""
        for attempt in range(MAX_TRIES):
            try:
                return call()
            except CallError as error:
                if error.failure == "refused" or attempt + 1 == MAX_TRIES:
                    raise
                time.sleep(min(max(self.profile.backoff_s * 2**attempt, error.wait), MAX_WAIT_S))
        raise AssertionError  # the last try returns or raises


def _read(record: Path) -> dict[str, Any]:
    """Read the record of a batch; those of earlier releases have no names and are ignored."""
    return {"id": "", "names": []} | dict(json.loads(record.read_text()))


class MessageBatches(Batches):
    """Batches of messages at Anthropic."""

    most_bytes = 200_000_000
    most_requests = 100_000

    def __init__(self, profile: Profile, root: Path) -> None:
        super().__init__(profile, root)
        self.client = Anthropic(profile)

    def body(self, request: ModelRequest) -> Body:
        """Build the arguments of a message."""
        return message(request, self.profile)

    def send(self, part: Mapping[str, Body], note: str) -> str:  # noqa: ARG002 - there is no place for it
        """Send questions by name; return the id of the batch."""
        asked = [{"custom_id": name, "params": body} for name, body in part.items()]
        return str(self._call("create", requests=asked)["id"])

    def find(self, note: str) -> str:  # noqa: ARG002 - the same
        """Return "": batches have no note."""
        return ""

    def ended(self, batch: str) -> bool:
        """Whether a batch has ended."""
        return bool(self._call("retrieve", message_batch_id=batch).get("processing_status") == "ended")

    def results(self, batch: str) -> dict[str, Outcome]:
        """Outcomes by question name; expired and cancelled questions are missing."""
        results = self.client.sdk.messages.batches.results
        rows = reach_raw("anthropic", lambda: [row.to_dict() for row in results(batch)], {}, self._where)
        found = {row["custom_id"]: _message_outcome(row["result"], self._where) for row in rows}
        return {name: outcome for name, outcome in found.items() if outcome}

    @property
    def _where(self) -> str:
        return f"{str(self.client.sdk.base_url).rstrip('/')}/v1/messages/batches"

    def _call(self, verb: str, **arguments: Any) -> Any:  # noqa: ANN401 - any JSON
        batches = self.client.sdk.messages.batches.with_raw_response
        return reach("anthropic", getattr(batches, verb), arguments, self._where)


def _message_outcome(result: Any, where: str) -> Outcome | None:  # noqa: ANN401 - any JSON
    """Convert a result of Anthropic; None for an unprocessed question."""
    if result["type"] == "succeeded":
        return _read_or_error(read_message, result["message"], where)
    if result["type"] != "errored":
        return None
    error = result["error"].get("error") or {}
    said = f"{where}: {error.get('type')}: {error.get('message')}"
    if error.get("type") in RETRIED_ERRORS:
        return CallError("overloaded", said)
    return CallError("refused", f"{said}. Check the model's name and the settings of its profile.")


def _completion_outcome(response: Body, where: str) -> Outcome:
    status, body = int(response.get("status_code") or 0), response.get("body")
    if status != OK:
        return explain_status(where, status, json.dumps(body), {})
    return _read_or_error(read_completion, body, where)


def _read_or_error(read: Callable[[Any, str], Reply], body: Any, where: str) -> Outcome:  # noqa: ANN401 - any JSON
    try:
        return read(body, where)
    except CallError as error:
        return error


class CompletionBatches(Batches):
    """Batches of chat completions at OpenAI: upload a file of questions, download a file of answers."""

    most_bytes = 150_000_000
    most_requests = 50_000
    endpoint = "/v1/chat/completions"

    def __init__(self, profile: Profile, root: Path) -> None:
        super().__init__(profile, root)
        self.client = OpenAi(profile)

    def body(self, request: ModelRequest) -> Body:
        """Build the arguments of a completion."""
        return self.client.body(request)

    def send(self, part: Mapping[str, Body], note: str) -> str:
        """Send questions by name; return the id of the batch."""
        rows = [
            {"custom_id": name, "method": "POST", "url": self.endpoint, "body": body} for name, body in part.items()
        ]
        lines = "\n".join(map(json.dumps, rows)).encode()
        file = self._call("files", "create", file=(f"{note}.jsonl", lines), purpose="batch")["id"]
        told = {"endpoint": self.endpoint, "completion_window": "24h", "metadata": {NOTE: note}}
        return str(self._call("batches", "create", input_file_id=file, **told)["id"])

    def find(self, note: str) -> str:
        """Find the id of the batch with a note, among the last hundred."""
        known = self._call("batches", "list", limit=100).get("data", ())
        return next((str(batch["id"]) for batch in known if (batch.get("metadata") or {}).get(NOTE) == note), "")

    def ended(self, batch: str) -> bool:
        """Whether a batch has ended; `CallError` if it failed."""
        told = self._call("batches", "retrieve", batch_id=batch)
        if told.get("status") == "failed":
            said = [str(error.get("message")) for error in (told.get("errors") or {}).get("data") or ()]
            raise CallError("refused", f"{self._where} would not take a batch: {'; '.join(said) or 'no reason given'}.")
        return told.get("status") in ("completed", "expired", "cancelled")

    def results(self, batch: str) -> dict[str, Outcome]:
        """Outcomes by question name: answers are in one file, failures in another; an expired batch has some."""
        told = self._call("batches", "retrieve", batch_id=batch)
        rows = [row for kind in ("output", "error") for row in self._rows(told.get(f"{kind}_file_id"))]
        ended = [(row["custom_id"], row.get("response") or {}) for row in rows]
        return {name: _completion_outcome(response, self._where) for name, response in ended if response}

    def _rows(self, file: str | None) -> list[Any]:
        if not file:
            return []
        create = self.client.sdk.files.with_raw_response.content
        text = reach_raw("openai", create, self.client.named({"file_id": file}), self._where).http_response.text
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    @property
    def _where(self) -> str:
        return f"{self.profile.address}/batches"

    def _call(self, what: str, verb: str, **arguments: Any) -> Any:  # noqa: ANN401 - any JSON
        resource = getattr(self.client.sdk, what).with_raw_response
        return reach("openai", getattr(resource, verb), self.client.named(arguments), self._where)


def batches_for(profile: Profile, root: Path) -> Batches:
    """Create the batches of a profile's provider."""
    return (MessageBatches if profile.provider == "anthropic" else CompletionBatches)(profile, root)
