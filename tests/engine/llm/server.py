"""A loopback server that speaks the providers' protocols, and profiles that point at it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.serving import answering

PROVIDERS = ("anthropic", "bedrock", "vertex", "openai", "chatts-http", "toto-http")
KEYS = {
    "ANTHROPIC_API_KEY": "secret-anthropic",
    "OPENAI_API_KEY": "secret-openai",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret-aws",
    "AWS_REGION": "eu-central-1",
    "VERTEX_TOKEN": "secret-vertex",
}
SETTINGS: dict[str, dict[str, object]] = {
    "anthropic": {"key_env": "ANTHROPIC_API_KEY"},
    "openai": {"key_env": "OPENAI_API_KEY"},
    "chatts-http": {"key_env": "OPENAI_API_KEY"},
    "vertex": {"key_env": "VERTEX_TOKEN", "region": "europe-west1", "project": "p"},
}
"""What profiles of a provider need here beside an address."""


BAD = 400
"""As a status: the request cannot be right, however often it is made."""
HANG_UP = 0
"""As a status: the server says nothing and closes the connection."""


@dataclass
class Asked:
    """One request as it came over the wire."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Everything in words that the model was told, the system prompt aside."""
        if "question" in self.body:
            return str(self.body["question"])
        content = self.body["messages"][-1]["content"]
        return "\n".join(block["text"] for block in content if block.get("type") == "text")

    @property
    def system(self) -> str:
        """The system prompt."""
        return str(self.body["system"] if "system" in self.body else self.body["messages"][0]["content"])

    @property
    def model(self) -> str:
        """The model's name, which bedrock and vertex have in the address."""
        if self.path.startswith("/projects/"):
            return self.path.rpartition("/")[2].partition(":")[0]
        return str(self.body.get("model") or self.path.split("/")[2])


@dataclass
class Answered:
    """What goes back over the wire; `text` is wrapped as the protocol of the path wants it.

    `stop` is a reason to stop in the protocol's own words, `model` the model that answers; by default it was done, and
    the one that was asked.
    """

    text: str = ""
    status: int = 200
    stop: str = ""
    model: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Script = Callable[[Asked], Answered]


@dataclass
class Loopback:
    """A running server: where it is, what it says, and what it was asked."""

    url: str
    script: Script
    asked: list[Asked] = field(default_factory=list)
    batches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    polls: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    end: str = "completed"
    """How OpenAI's batches end."""

    def base(self, provider: str) -> str:
        return f"{self.url}/v1" if provider in ("openai", "chatts-http") else self.url


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that are killed hang up."""


@contextmanager
def serving(script: Script) -> Iterator[Loopback]:
    """Serve until the block ends; clients of the providers must be installed to ask."""
    for package in ("anthropic", "openai", "boto3", "google.auth"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'readbench[llm]'")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            told = taken_for_later(loopback, self.path, self.headers["content-type"], sent)
            if told is not None:
                self._send(json.dumps(told).encode())
                return
            asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(sent))
            loopback.asked.append(asked)
            answered = loopback.script(asked)
            if answered.status == HANG_UP:
                self.close_connection = True
                return
            content = json.dumps(wrapped(asked, answered)).encode() if answered.raw is None else answered.raw
            self.send_response(answered.status)
            for name, value in answered.headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            """A batch, which has ended when it is asked for the third time, or its results; or all of OpenAI's."""
            self._send(looked_up(loopback, self.path))

        def _send(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    loopback = Loopback("", script)
    with answering(_Server(("127.0.0.1", 0), Handler)) as loopback.url:
        yield loopback


_CLAUDE, _CHAT = ("anthropic", "bedrock", "vertex"), ("openai", "chatts-http")
REFUSED = dict.fromkeys(_CLAUDE, "refusal") | dict.fromkeys(_CHAT, "content_filter")
CUT = dict.fromkeys(_CLAUDE, "max_tokens") | dict.fromkeys(_CHAT, "length")
"""How providers say that a model would not answer, and that its answer was cut off."""


def wrapped(asked: Asked, answered: Answered) -> dict[str, Any]:
    """A reply in the form of the protocol."""
    path, text, model = asked.path, answered.text, answered.model or asked.model
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        choice = {"index": 0, "message": message, "finish_reason": answered.stop or "stop"}
        head = {"id": "c", "object": "chat.completion", "created": 0, "model": model}
        return {**head, "choices": [choice], "usage": usage}
    usage = {"input_tokens": 100, "output_tokens": 10}
    if path.endswith("/answer"):
        return {"text": text, "usage": usage}
    thinking = {"type": "thinking", "thinking": '{"ranked_ids": ["sample_00001"]}', "signature": "x"}
    content = [thinking, {"type": "text", "text": text}]
    head = {"id": "m", "type": "message", "role": "assistant", "model": model}
    return {**head, "content": content, "stop_reason": answered.stop or "end_turn", "usage": usage}


def taken_for_later(loopback: Loopback, path: str, kind: str, sent: bytes) -> dict[str, Any] | None:
    """What is said to a file or a batch that comes; None to what is neither."""
    batch = f"batch_{len(loopback.batches)}"
    if path == "/v1/files":
        name = f"file_{len(loopback.files)}"
        loopback.files[name] = uploaded(kind, sent)
        return {"id": name, "object": "file"}
    if path == "/v1/batches":
        body = json.loads(sent)
        loopback.batches[batch] = list(map(json.loads, loopback.files[body["input_file_id"]].splitlines()))
        loopback.notes[batch] = body["metadata"]
        return completion_batch_of(loopback, batch)
    if path == "/v1/messages/batches":
        loopback.batches[batch] = json.loads(sent)["requests"]
        return batch_of(loopback, batch)
    return None


def looked_up(loopback: Loopback, path: str) -> bytes:
    """A file, a batch, all batches of OpenAI, or the results of one of Anthropic."""
    parts = path.partition("?")[0].split("/")
    if path.startswith("/v1/files/"):
        return loopback.files[parts[3]]
    if path.endswith("/results"):
        return "\n".join(map(json.dumps, results_of(loopback, parts[4]))).encode()
    if path.startswith("/v1/batches?"):
        known = [completion_batch_of(loopback, name) for name in loopback.notes]
        return json.dumps({"object": "list", "data": known}).encode()
    loopback.polls += 1
    told = completion_batch_of(loopback, parts[3]) if parts[2] == "batches" else batch_of(loopback, parts[4])
    return json.dumps(told).encode()


def batch_of(loopback: Loopback, name: str) -> dict[str, Any]:
    """A batch as Anthropic describes it."""
    status = "ended" if loopback.polls > 2 else "in_progress"
    results = f"{loopback.url}/v1/messages/batches/{name}/results"
    return {"id": name, "type": "message_batch", "processing_status": status, "results_url": results}


def results_of(loopback: Loopback, name: str) -> Iterator[dict[str, Any]]:
    """The script's answers; one with a status other than 200 is an error."""
    for request in loopback.batches[name]:
        asked = Asked("/v1/messages", {}, request["params"])
        loopback.asked.append(asked)
        answered = loopback.script(asked)
        kind = "invalid_request_error" if answered.status == BAD else "api_error"
        failed = {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": "no such setting"}}}
        done = {"type": "succeeded", "message": wrapped(asked, answered)}
        yield {"custom_id": request["custom_id"], "result": done if answered.status == 200 else failed}


def uploaded(kind: str, body: bytes) -> bytes:
    """The file in a form that was sent."""
    form = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
    return next(bytes(part.get_payload(decode=True)) for part in form.walk() if part.get_filename())


def completion_batch_of(loopback: Loopback, name: str) -> dict[str, Any]:
    """A batch as OpenAI describes it; once it is done, a file holds the answers, and another what failed."""
    head = {"id": name, "object": "batch", "metadata": loopback.notes[name], "created_at": 0}
    if loopback.polls <= 2:
        return head | {"status": "in_progress"}
    if loopback.end == "failed":
        return head | {"status": "failed", "errors": {"data": [{"message": "line 1 is no request"}]}}
    answers, errors = f"answers_{name}", f"errors_{name}"
    if answers not in loopback.files:
        rows = list(completions_of(loopback, name))
        done = [row for row in rows if row["response"]["status_code"] == 200]
        failed = [row for row in rows if row not in done]
        for file, content in ((answers, done), (errors, failed)):
            loopback.files[file] = "\n".join(map(json.dumps, content)).encode()
    told = {"output_file_id": answers, "error_file_id": errors if loopback.files.get(errors) else None}
    return head | {"status": loopback.end} | told


def completions_of(loopback: Loopback, name: str) -> Iterator[dict[str, Any]]:
    """The script's answers; one with a status other than 200 has failed."""
    for request in loopback.batches[name]:
        asked = Asked(request["url"], {}, request["body"])
        loopback.asked.append(asked)
        answered = loopback.script(asked)
        failed = {"error": {"message": "no such setting", "type": "invalid_request_error"}}
        body = wrapped(asked, answered) if answered.status == 200 else failed
        response = {"status_code": answered.status, "body": body}
        yield {"custom_id": request["custom_id"], "response": response, "error": None}


def write_profiles(path: Path, profiles: Mapping[str, Mapping[str, object]]) -> Path:
    """A file of profiles."""
    lines = []
    for name, settings in profiles.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items()), ""]
    path.write_text("\n".join(lines))
    return path
