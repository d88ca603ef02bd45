"""Answers that were paid for once are never paid for again.

An answer is filed under the hash of the whole request and of the profile that decides it. A file is written whole or
not at all, as soon as its answer is there: a killed run keeps every one. Neither keys nor questions are in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path

from readbench.llm.messages import Request, Usage
from readbench.llm.settings import Profile


@dataclass(frozen=True)
class Answer:
    """How a request ended.

    Args:
        text: the last text that came back; one that cannot be read is as good as none.
        usage: of all tries.
        calls: how many tries.
        failures: how often a try failed, by kind.
    """

    text: str
    usage: Usage
    calls: int
    failures: dict[str, int] = field(default_factory=dict)


class AnswerStore:
    """A folder of answers."""

    def __init__(self, root: Path, profile: Profile) -> None:
        self.root = root / "llm" / "answers"
        self.profile = profile

    def path(self, request: Request) -> Path:
        """Where the answer to a request is."""
        name = hashlib.sha256(f"{self.profile.identity} {request.digest()}".encode()).hexdigest()
        return self.root / name[:2] / f"{name[2:]}.json"

    def read(self, request: Request) -> Answer | None:
        """The answer, if there is one."""
        path = self.path(request)
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        return Answer(**(stored | {"usage": Usage(**stored["usage"])}))

    def write(self, request: Request, answer: Answer) -> None:
        """File an answer."""
        path = self.path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
        partial.write_text(json.dumps(asdict(answer)))
        partial.replace(path)
