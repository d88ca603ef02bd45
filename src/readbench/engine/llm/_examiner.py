"""Asking one model about windows: how it is asked, tried again and paid only once.

`ReplyStore` keeps the answers that were paid for, so that none is paid for again. An answer is filed under the hash of
the whole request and of the profile that decides it. A file is written whole or not at all, as soon as its answer is
there: a killed run keeps every one. Neither keys nor questions are in it.

`ModelCaller` asks one model many questions. It takes answers from the store, asks the others at most so many at a time,
and asks again where that is worth it.

`Examiner` is one model at one task: its caller, its prompts, and how windows are shown to it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from readbench.common.files import cache_root, write_json
from readbench.engine.llm._exhibits import Blank, Plotter, Reduction, WindowExcerpt
from readbench.engine.llm._messages import ChatClient, ModelRequest, Reply, UnreadableError, Usage
from readbench.engine.llm._prompts import Composer, Item, Task, load_prompts
from readbench.engine.llm._providers import CallError, client_for
from readbench.engine.llm._settings import Images, Ledger, ModelOptions, Profile, Spending, estimate_cost, load_profile
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError


@dataclass(frozen=True)
class StoredReply:
    """How a request ended.

    Args:
        text: the last text that came back; one that cannot be read is as good as none.
        usage: of all tries.
        calls: how many tries.
        failures: how often a try failed, by kind.
        model: which model gave the text, as the provider says.
    """

    text: str
    usage: Usage
    calls: int
    failures: dict[str, int] = field(default_factory=dict)
    model: str = ""


class ReplyStore:
    """A folder of answers."""

    def __init__(self, root: Path, profile: Profile) -> None:
        self.root = root / "llm" / "answers"
        self.profile = profile

    def path(self, request: ModelRequest) -> Path:
        """Where the answer to a request is."""
        name = hashlib.sha256(f"{self.profile.identity} {request.digest()}".encode()).hexdigest()
        return self.root / name[:2] / f"{name[2:]}.json"

    def read(self, request: ModelRequest) -> StoredReply | None:
        """The answer, if there is one."""
        path = self.path(request)
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        return StoredReply(**(stored | {"usage": Usage(**stored["usage"])}))

    def write(self, request: ModelRequest, answer: StoredReply) -> None:
        """File an answer."""
        write_json(self.path(request), asdict(answer), indent=None)


TRIES = 4
REFUSAL, TRUNCATED = "refusal", "truncated"
FINAL = {REFUSAL, TRUNCATED}
"""Answers that the same question would get again."""
LONGEST_WAIT_S = 120.0
LOG = logging.getLogger("readbench.engine.llm")
T = TypeVar("T")
Read = Callable[[str], T]


class ModelCaller:
    """Asks one model.

    Args:
        name: of the profile.
        profile: how to ask.
        client: whom to ask.
        root: cache root.

    `usage` sums up what all answers so far took, whether they came from the model or from the store: questions, calls,
    tokens, dollars, failures by kind (`throttled`, `overloaded`, `unreachable`, `garbled`, `empty`, `unreadable`,
    `refusal`, `truncated`), and questions that were `given_up`. A refusal, or an answer that was cut off, would come
    again: neither is asked for twice.
    """

    def __init__(self, name: str, profile: Profile, client: ChatClient, root: Path) -> None:
        self.profile = profile
        self.client = client
        self.store = ReplyStore(root, profile)
        self.ledger = Ledger(root, name, profile)
        self.usage: dict[str, float] = {}

    def ask(self, requests: Sequence[ModelRequest], read: Sequence[Read[T]]) -> list[T | None]:
        """What each answer says, by its own reader; None where no try gave an answer that can be read.

        An estimate comes first: where the budget has no room for it, no call is made. A model that cannot be reached,
        or says no, raises `CallError`.
        """
        places = {self.store.path(request): place for place, request in reversed(list(enumerate(requests)))}
        missing = sorted(place for path, place in places.items() if not path.exists())
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

    def _announce(self, missing: Sequence[ModelRequest]) -> None:
        if missing:
            planned = estimate_cost(missing, self.profile)
            LOG.info("%s: up to %s, %s so far", self.ledger.name, planned, self.ledger.spent())
            self.ledger.require(planned)

    def _read(self, request: ModelRequest, read: Read[T]) -> T | None:
        answer = self.store.read(request)
        if answer is None:
            raise CallError("garbled", f"An answer vanished from {self.store.root} during the run. Run again.")
        taken = asdict(answer.usage)
        self.count(questions=1, calls=answer.calls, **taken, cost=self.profile.cost(**taken), **answer.failures)
        if REFUSAL not in answer.failures:
            try:
                return read(answer.text)
            except UnreadableError:
                pass
        self.count(given_up=1)
        return None

    def _answered(self, request: ModelRequest, read: Read[T]) -> None:
        """Ask until an answer can be read, at most `TRIES` times, and file it."""
        failures: Counter[str] = Counter()
        usage, text, model = Usage(), "", ""
        for attempt in range(TRIES):
            try:
                reply = self._call(request)
            except CallError as error:
                failures[error.failure] += 1
                self._back_off(attempt, error)
                continue
            usage, text, model = usage + reply.usage, reply.text, reply.model
            failure = _fault(reply, read)
            if failure:
                failures[failure] += 1
            if not failure or failure in FINAL:
                break
            self._back_off(attempt)
        self.store.write(request, StoredReply(text, usage, attempt + 1, dict(failures), model))

    def _call(self, request: ModelRequest) -> Reply:
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


def _fault(reply: Reply, read: Read[T]) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if reply.stop == REFUSAL:
        return REFUSAL
    try:
        read(reply.text)
    except UnreadableError:
        if reply.stop == TRUNCATED:
            return TRUNCATED
        return "unreadable" if reply.text.strip() else "empty"
    return ""


def caller_for(name: str, options: ModelOptions | None = None) -> ModelCaller:
    """The caller of a configured model."""
    profile = load_profile(name, options)
    return ModelCaller(name, profile, client_for(profile), cache_root())


Treatment = Literal["", "tsad", "evidence"]
Briefing = tuple[str, ModelOptions]
"""What the source says of itself, and what goes before the model's profile."""
NO_BRIEFING: Briefing = ("", ModelOptions())
POINTWISE: dict[str, Task] = {"chatts-http": "similarity", "toto-http": "match"}
"""Providers whose models judge one candidate at a time; all others order a list."""


def split_model(model: str) -> tuple[str, Treatment]:
    """A model as it stands in a method: the name of a profile, and what it is shown.

    >>> split_model("claude-tsad"), split_model("my-model")
    (('claude', 'tsad'), ('my-model', ''))
    """
    if not model:
        raise UsageError("Name a language model, as in llm(claude): a table of the file that READBENCH_LLM names.")
    name, _, end = model.rpartition("-")
    if name and end == "tsad":
        return name, "tsad"
    if name and end == "evidence":
        return name, "evidence"
    return model, ""


def ranking_task(profile: Profile) -> Task:
    """How a model is asked to rank."""
    return POINTWISE.get(str(profile.provider), "list")


def content_key(model: str, options: ModelOptions | None = None, *, classify: bool = False) -> str:
    """Hash of what decides a model's answers beside the parameters of the method: its profile and its prompts."""
    name, treatment = split_model(model)
    profile = load_profile(name, options)
    task = "classify" if classify else ranking_task(profile)
    prompts = load_prompts(profile.prompts)
    prompts.section(_section(task, treatment))
    return hashlib.sha256(f"{profile.identity} {prompts.digest}".encode()).hexdigest()[:16]


class Examiner:
    """Shows windows to a model and asks it.

    Args:
        model: as it stands in a method.
        reduction: how windows are reduced; the season goes for models that end in -tsad.
        briefing: the description of the data, and what goes before the model's profile.
        classify: ask for confidences instead of a ranking.
    """

    def __init__(
        self, model: str, reduction: Reduction, briefing: Briefing | None = None, *, classify: bool = False
    ) -> None:
        name, self.treatment = split_model(model)
        description, options = briefing or NO_BRIEFING
        self.caller: ModelCaller = caller_for(name, options)
        profile = self.caller.profile
        self.task: Task = "classify" if classify else ranking_task(profile)
        prompt = load_prompts(profile.prompts).section(_section(self.task, self.treatment))
        images: Images = "none" if profile.provider == "chatts-http" else profile.images
        self.composer = partial(Composer, self.task, prompt, images, description=description)
        self.reduction = replace(reduction, tsad=self.treatment == "tsad")

    def exhibit(self, windows: WindowSet, position: int) -> WindowExcerpt:
        """One window as the model sees it."""
        return self.reduction(windows, position)

    def ask(self, questions: Sequence[tuple[WindowExcerpt, Sequence[Item]]], read: Sequence[Read[T]]) -> list[T | None]:
        """What the model says about each query and its items; None where it gave no answer that can be read."""
        composer = self.composer(Plotter(cache_root()))
        return self.caller.ask([composer.request(query, items) for query, items in questions], read)

    def forecast(self, sample: Sequence[tuple[WindowExcerpt, Sequence[Item]]], calls: int) -> Spending:
        """The most that so many calls cost where all questions are like those of the sample."""
        composer = self.composer(Blank())
        known = estimate_cost([composer.request(query, items) for query, items in sample], self.caller.profile)
        return Spending(calls, known.cost * calls / known.calls)


def _section(task: Task, treatment: Treatment) -> str:
    return f"{task}-{treatment}" if treatment else task
