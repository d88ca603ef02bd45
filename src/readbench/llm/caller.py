"""Asking a model many questions: from the store, else at most so many at a time, again where it is worth it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from readbench.llm.ledger import Ledger, estimate
from readbench.llm.messages import ChatClient, Reply, Request, Usage
from readbench.llm.providers import client_for
from readbench.llm.replies import UnreadableError
from readbench.llm.settings import ModelOptions, Profile, load_profile
from readbench.llm.store import Answer, AnswerStore
from readbench.llm.wire import CallError
from readbench.paths import cache_root

TRIES = 4
LONGEST_WAIT_S = 120.0
LOG = logging.getLogger("readbench.llm")
T = TypeVar("T")
Read = Callable[[str], T]


class Caller:
    """Asks one model.

    Args:
        name: of the profile.
        profile: how to ask.
        client: whom to ask.
        root: cache root.

    `usage` sums up what all answers so far took, whether they came from the model or from the store: calls, tokens,
    dollars, failures by kind (`throttled`, `overloaded`, `unreachable`, `garbled`, `empty`, `unreadable`), and requests
    that were `given_up` after the last try.
    """

    def __init__(self, name: str, profile: Profile, client: ChatClient, root: Path) -> None:
        self.profile = profile
        self.client = client
        self.store = AnswerStore(root, profile)
        self.ledger = Ledger(root, name, profile)
        self.usage: dict[str, float] = {}

    def ask(self, requests: Sequence[Request], read: Sequence[Read[T]]) -> list[T | None]:
        """What each answer says, by its own reader; None where no try gave an answer that can be read.

        An estimate comes first: where the budget has no room for it, no call is made. A model that cannot be reached,
        or says no, raises `CallError`.
        """
        places = {self.store.path(request): place for place, request in reversed(list(enumerate(requests)))}
        missing = [place for path, place in places.items() if not path.exists()]
        self._announce([requests[place] for place in missing])
        with ThreadPoolExecutor(self.profile.concurrency) as pool:
            futures = [pool.submit(self._answered, requests[place], read[place]) for place in missing]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [self._read(request, own) for request, own in zip(requests, read, strict=True)]

    def count(self, **facts: float) -> None:
        """Add to `usage`."""
        for name, value in facts.items():
            self.usage[name] = self.usage.get(name, 0) + value

    def _announce(self, missing: Sequence[Request]) -> None:
        if missing:
            planned = estimate(missing, self.profile)
            LOG.info("%s: up to %s, %s so far", self.ledger.name, planned, self.ledger.spent())
            self.ledger.require(planned)

    def _read(self, request: Request, read: Read[T]) -> T | None:
        answer = self.store.read(request)
        if answer is None:
            raise CallError("garbled", f"An answer vanished from {self.store.root} during the run. Run again.")
        taken = asdict(answer.usage)
        self.count(calls=answer.calls, **taken, cost=self.profile.cost(**taken), **answer.failures)
        try:
            return read(answer.text)
        except UnreadableError:
            self.count(given_up=1)
            return None

    def _answered(self, request: Request, read: Read[T]) -> None:
        """Ask until an answer can be read, at most `TRIES` times, and file it."""
        failures: Counter[str] = Counter()
        usage, text = Usage(), ""
        for attempt in range(TRIES):
            try:
                reply = self._call(request)
            except CallError as error:
                failures[error.failure] += 1
                self._back_off(attempt, error)
                continue
            usage, text = usage + reply.usage, reply.text
            failure = _fault(text, read)
            if not failure:
                break
            failures[failure] += 1
            self._back_off(attempt)
        self.store.write(request, Answer(text, usage, attempt + 1, dict(failures)))

    def _call(self, request: Request) -> Reply:
        self.ledger.enter(request)
        usage = Usage()
        try:
            reply = self.client.complete(request)
            usage = reply.usage
        finally:
            self.ledger.correct(request, usage)
        return reply

    def _back_off(self, attempt: int, error: CallError | None = None) -> None:
        """Wait before the next try; raise the error where there is none, or where trying again is no use."""
        if error is not None and (error.failure == "refused" or attempt + 1 == TRIES):
            raise error
        if attempt + 1 < TRIES:
            wait = max(self.profile.backoff_s * 2**attempt, error.wait if error else 0.0)
            time.sleep(min(wait, LONGEST_WAIT_S))


def _fault(text: str, read: Read[T]) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if not text.strip():
        return "empty"
    try:
        read(text)
    except UnreadableError:
        return "unreadable"
    return ""


def caller_for(name: str, options: ModelOptions | None = None) -> Caller:
    """The caller of a configured model."""
    profile = load_profile(name, options)
    return Caller(name, profile, client_for(profile), cache_root())
