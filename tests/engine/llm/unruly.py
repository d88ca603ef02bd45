"""A model server that misbehaves by rule, in each provider's own way, and remembers what it did."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256

from tests.engine.llm.server import HANG_UP, KEYS, Answered, Asked

SLOW_S = 0.5
"""How long some of the answers take."""
GONE = "gone"
"""A model that the provider does not have."""
OK = "ok"
MISCHIEF = {
    "throttled": Answered(status=429, headers={"retry-after": "0"}, raw=b'{"error": {"type": "rate_limit_error"}}'),
    "overloaded": Answered(status=529, raw=b'{"error": {"type": "overloaded_error", "message": "Overloaded"}}'),
    "unreachable": Answered(status=HANG_UP),
    "garbled": Answered(raw=b"<html>bad gateway</html>"),
    "empty": Answered(""),
    "unreadable": Answered("I would rather not say."),
}
ANSWERED = {OK, "empty", "unreadable"}
"""What a provider charges for."""


@dataclass
class Unruly:
    """Answers by the classes that it is shown; what goes wrong first is decided by the question.

    Args:
        hold_after: from this request on nothing is answered until `gate` is open.
    """

    hold_after: int
    enough: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)
    epoch: int = 0
    tries: dict[tuple[str, bytes], dict[int, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, asked: Asked) -> Answered:
        if not authorised(asked):
            return Answered(status=401, raw=b"no key")
        if asked.model == GONE:
            return Answered(status=404, raw=b'{"error": {"type": "not_found_error", "message": "model: gone"}}')
        kind = self._tried(asked)
        if self.count() > self.hold_after:
            self.enough.set()
            self.gate.wait(60)
        if len(asked.text) % 16 == 0:
            time.sleep(SLOW_S)
        return MISCHIEF.get(kind) or reply(asked)

    def _tried(self, asked: Asked) -> str:
        """Decide how a try ends, and remember it."""
        digest = sha256(json.dumps(asked.body).encode()).digest()
        with self._lock:
            own = self.tries[method_of(asked), digest][self.epoch]
            own.append(_fate(asked, digest, len(own)))
            return own[-1]

    def count(self) -> int:
        """Requests so far."""
        with self._lock:  # a table that grows cannot be walked
            return sum(len(tries) for epochs in self.tries.values() for tries in epochs.values())

    def asked_in(self, epoch: int) -> set[tuple[str, bytes]]:
        """Questions of one epoch."""
        return {question for question, epochs in self.tries.items() if epoch in epochs}

    def answered(self, method: str) -> Counter[str]:
        """Questions of a method, and answers by model: the last try is kept, if it brought a text of a known model."""
        kept = [epochs[max(epochs)] for (own, _), epochs in self.tries.items() if own == method]
        model = method.partition("(")[2].rstrip(")").removesuffix("-tsad").removesuffix("-evidence")
        named = 0 if model == "toto" else sum(bool(ANSWERED & set(tries)) for tries in kept)
        return Counter({"questions": len(kept), f"model {model}": named})

    def told(self, method: str) -> Counter[str]:
        """What the tries of a method came to, of those that led to an answer: a killed process forgets others."""
        total: Counter[str] = Counter()
        for (own, _), epochs in self.tries.items():
            if own == method:
                kept = epochs[max(epochs)]
                total += Counter(kept) + Counter(calls=len(kept), given_up=int(kept[-1] != OK))
        return total


def _fate(asked: Asked, digest: bytes, before: int) -> str:
    """How a try ends after so many others."""
    if stubborn(asked):
        return "unreadable"
    fates = [*MISCHIEF, OK, OK, OK]
    return OK if before else fates[digest[0] % len(fates)]


def authorised(asked: Asked) -> bool:
    """Whether a request carries what its protocol wants."""
    if asked.path == "/v1/messages":
        key = f"Bearer {KEYS['ANTHROPIC_API_KEY']}"
        return asked.headers.get("authorization") == key and "anthropic-version" in asked.headers
    if asked.path.startswith("/model/"):
        return asked.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    if asked.path == "/v1/chat/completions":
        return asked.headers.get("authorization") == f"Bearer {KEYS['OPENAI_API_KEY']}"
    return asked.path == "/answer"


def method_of(asked: Asked) -> str:
    """The method that asks, without its parameters: `llm(claude-tsad)`."""
    treatment = "-tsad" if "seasonal part" in asked.system else "-evidence" if "statistics" in asked.system else ""
    return f"{'classify' if 'EXAMPLE 1' in asked.text else 'llm'}({asked.model}{treatment})"


def shown_classes(asked: Asked) -> list[str]:
    """Classes of the candidates."""
    return re.findall(r'filed under the class "([^"]*)"', asked.text)


def stubborn(asked: Asked) -> bool:
    """Whether a question is never answered."""
    return "EXAMPLE 1" not in asked.text and hopeless(list(map(len, shown_classes(asked))))


def hopeless(letters: list[int]) -> bool:
    """The same, by the lengths of the names of the classes that are shown."""
    return sum(letters) % 11 == 0  # at most half of the questions of any cell: with more it would fail


def reply(asked: Asked) -> Answered:
    """A list backwards, a rating or a confidence by the length of a name: rules that a test can apply as well."""
    if "EXAMPLE 1" in asked.text:
        options = re.findall(r'^(\d+): "([^"]*)"$', asked.text, re.MULTILINE)
        return Answered(json.dumps({"scores": {number: len(name) for number, name in options}}))
    ids = re.findall(r"^CANDIDATE (sample_\d{5})", asked.text, re.MULTILINE)
    letters = len(shown_classes(asked)[0])
    rating = {"similarity": letters, "match": "yes", "confidence": letters}
    return Answered(f"I see.\n{json.dumps({'ranked_ids': ids[::-1]} | rating)}")
