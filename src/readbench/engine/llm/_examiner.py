"""Query a language model about windows: retries, cached answers and budgets.

`ReplyStore` caches paid answers. An answer is stored under the hash of the whole request and of the profile that
decides it, atomically and as soon as it arrives, so that a killed run keeps every answer. It contains neither keys nor
questions. A run folder stores answers with their questions (`transcripts`), from which results can be computed again
without a model.

`ModelCaller` asks one model many questions: cached answers are read, the others are requested concurrently and retried
where that may help.

`Examiner` combines a caller with the prompts of one task and the presentation of windows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from readbench.common.files import cache_root, write_bytes, write_json
from readbench.common.progress import SILENT, Progress
from readbench.engine.llm._answers import ANSWERED_BY
from readbench.engine.llm._batches import batches_for
from readbench.engine.llm._exhibits import Blank, Plotter, Reduction, WindowExcerpt
from readbench.engine.llm._messages import ChatClient, ModelRequest, Reply, UnreadableError, Usage
from readbench.engine.llm._prompts import Asking, Composer, Item, Task, load_prompts
from readbench.engine.llm._providers import CallError, client_for
from readbench.engine.llm._settings import (
    PACKAGES,
    Images,
    Ledger,
    ModelOptions,
    Profile,
    Spending,
    Treatment,
    estimate_cost,
    load_profile,
    split_model,
)
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError


@dataclass(frozen=True)
class StoredReply:
    """Outcome of a request.

    Args:
        text: last text returned; it may be unreadable.
        usage: of all tries.
        calls: number of tries.
        failures: number of failed tries by kind.
        model: model that gave the text, as stated by the provider.
    """

    text: str
    usage: Usage
    calls: int
    failures: dict[str, int] = field(default_factory=dict)
    model: str = ""


class ReplyStore:
    """A folder of answers.

    Args:
        root: cache root.
        profile: profile that decides the answers.
        transcripts: folder for answers with their questions; none by default.
    """

    def __init__(self, root: Path, profile: Profile, transcripts: Path | None = None) -> None:
        self.root = root / "llm" / "answers"
        self.profile = profile
        self.transcripts = transcripts

    def name(self, request: ModelRequest) -> str:
        """Key of the answer to a request."""
        return hashlib.sha256(f"{self.profile.identity} {request.digest()}".encode()).hexdigest()

    def read(self, request: ModelRequest) -> StoredReply | None:
        """Read the answer, if there is one, and copy it to the cache or transcripts if it is missing there."""
        path, transcript = self._path(request), self._transcript(request)
        if path.exists():
            stored = json.loads(path.read_text())
        elif transcript and transcript.exists():
            stored = json.loads(gzip.decompress(transcript.read_bytes()))["answer"]
        else:
            return None
        found = StoredReply(**(stored | {"usage": Usage(**stored["usage"])}))
        if not path.exists() or (transcript and not transcript.exists()):
            self.write(request, found)
        return found

    def write(self, request: ModelRequest, answer: StoredReply) -> None:
        """Store an answer."""
        write_json(self._path(request), asdict(answer), indent=None)
        if transcript := self._transcript(request):
            said = {"profile": self.profile.identity, "question": request.transcript(), "answer": asdict(answer)}
            write_bytes(transcript, gzip.compress(json.dumps(said).encode(), mtime=0))

    def _path(self, request: ModelRequest) -> Path:
        name = self.name(request)
        return self.root / name[:2] / f"{name[2:]}.json"

    def _transcript(self, request: ModelRequest) -> Path | None:
        name = self.name(request)
        return self.transcripts / name[:2] / f"{name[2:]}.json.gz" if self.transcripts else None


MAX_RETRIES = 4
"""Maximum retries of a question, as in the paper."""
MAX_TRIES = 1 + MAX_RETRIES
REFUSAL, TRUNCATED, EMPTY = "refusal", "truncated", "empty"
REFUSED = "refused"
"""A call that the service rejects; a refusal comes from the model."""
PERMANENT_FAILURES = {REFUSAL, TRUNCATED}
"""Failures that the same question would have again."""
MAX_WAIT_S = 120.0
EXPIRED = CallError("overloaded", "the service did not come to them in time. Run again later.")
"""Outcome of a question without a result in its batch."""
LOG = logging.getLogger("readbench.engine.llm")
T = TypeVar("T")
Read = Callable[[str], T]


class ModelCaller:
    """Asks one model.

    Args:
        name: of the profile.
        profile: the profile.
        client: client of the provider.
        root: cache root.
        transcripts: folder for questions and answers; none by default.
        progress: receives the number of answers and their cost so far.

    `usage` sums over all answers, cached or new: questions, calls, tokens, dollars, failures by kind (`throttled`,
    `overloaded`, `unreachable`, `garbled`, `empty`, `unreadable`, `refusal`, `truncated`), and questions that were
    `given_up`. A refusal or truncated answer would occur again, so it is not retried.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        client: ChatClient,
        root: Path,
        transcripts: Path | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self.profile = profile
        self.client = client
        self.progress = progress
        self.root = root
        self.store = ReplyStore(root, profile, transcripts)
        self.ledger = Ledger(root, name, profile)
        self.usage: dict[str, float] = {}

    def ask(self, requests: Sequence[ModelRequest], read: Sequence[Read[T]]) -> list[T | None]:
        """Parse each answer with its reader; None if no try gave a readable answer.

        Costs are estimated first; if the budget is too small, no call is made. A model that cannot be reached, or
        rejects a call, raises `CallError`.
        """
        places = {self.store.name(request): place for place, request in reversed(list(enumerate(requests)))}
        missing = [place for place in sorted(places.values()) if self.store.read(requests[place]) is None]
        planned = self._announce([requests[place] for place in missing])
        before = self.ledger.spent()
        if self.profile.batch:
            self._answer_together({self.store.name(requests[p]): (requests[p], read[p]) for p in missing})
            missing = []
        with ThreadPoolExecutor(self.profile.concurrency) as pool:
            futures = [pool.submit(self._answered, requests[place], read[place]) for place in missing]
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    future.result()
                    self._tell(done, len(missing), before, planned)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [self._read(request, parse) for request, parse in zip(requests, read, strict=True)]

    def count(self, **facts: float) -> None:
        """Add to `usage`."""
        for name, value in facts.items():
            self.usage[name] = self.usage.get(name, 0) + value

    def _announce(self, missing: Sequence[ModelRequest]) -> Spending:
        planned = estimate_cost(missing, self.profile)
        if missing:
            told = self.profile.describe(planned), self.profile.describe(self.ledger.spent())
            LOG.info("%s: up to %s; so far %s", self.ledger.name, *told)
            self.ledger.require(planned)
            self._tell(0, len(missing), self.ledger.spent(), planned)
        return planned

    def _tell(self, done: int, count: int, before: Spending, planned: Spending) -> None:
        """Report the number of answers; and, with known prices, the cents spent of the planned maximum."""
        self.progress(f"{self.ledger.name}: answers", done, count)
        if planned.cost:
            total = max(round(100 * planned.cost), 1)
            spent = total if done == count else min(round(100 * (self.ledger.spent().cost - before.cost)), total - 1)
            self.progress(f"{self.ledger.name}: cents spent of at most", max(spent, 0), total)

    def _read(self, request: ModelRequest, read: Read[T]) -> T | None:
        answer = self.store.read(request)
        if answer is None:
            raise CallError("garbled", f"An answer vanished from {self.store.root} during the run. Run again.")
        taken = asdict(answer.usage)
        if answer.model:
            self.count(**{f"{ANSWERED_BY}{answer.model}": 1})
        if answer.model and not same_model(self.profile.model, answer.model):
            self.count(other_model=1)
        self.count(questions=1, calls=answer.calls, **taken, cost=self.profile.cost(**taken), **answer.failures)
        if REFUSAL not in answer.failures:
            try:
                return read(answer.text)
            except UnreadableError:
                pass
        self.count(given_up=1)
        return None

    def _answered(self, request: ModelRequest, read: Read[T]) -> None:
        """Ask until an answer is readable, at most `MAX_TRIES` times, and store it."""
        failures: Counter[str] = Counter()
        usage, text, model = Usage(), "", ""
        for attempt in range(MAX_TRIES):
            try:
                reply = self.ledger.pay(request, self.client)
            except CallError as error:
                failures[error.failure] += 1
                self._back_off(attempt, error)
                continue
            usage, text, model = usage + reply.usage, reply.text, reply.model
            failure = _fault(reply, read)
            if failure:
                failures[failure] += 1
            if not failure or failure in PERMANENT_FAILURES:
                break
            if failure == EMPTY:  # a sign of a busy server; an unreadable text is none
                self._back_off(attempt)
        self.store.write(request, StoredReply(text, usage, attempt + 1, dict(failures), model))

    def _answer_together(self, waiting: dict[str, tuple[ModelRequest, Read[T]]]) -> None:
        """Answer questions in batches, at most `MAX_TRIES` of them."""
        batches = batches_for(self.profile, self.root)
        answers = {name: StoredReply("", Usage(), 0) for name in waiting}
        error = EXPIRED
        for attempt in range(MAX_TRIES):
            known = batches.remembered()  # entered in the ledger by a process that was killed
            for request in (request for name, (request, _) in waiting.items() if name not in known):
                self.ledger.enter(request)
            for names, ended in batches.complete({name: request for name, (request, _) in waiting.items()}):
                for name in names:
                    request, read = waiting[name]
                    outcome = ended.get(name, EXPIRED)
                    reply = outcome if isinstance(outcome, Reply) else None
                    failure = _fault(outcome, read)
                    answers[name] = _add_try(answers[name], reply, failure)
                    if isinstance(outcome, CallError) and error.failure != REFUSED:
                        error = outcome
                    if not failure or failure in PERMANENT_FAILURES or (reply and attempt + 1 == MAX_TRIES):
                        self.store.write(request, answers[name])
                        del waiting[name]
                    self.ledger.correct(request, reply.usage if reply else Usage())  # last: if killed before, overpaid
            if error.failure == REFUSED:
                raise error
        if waiting:
            raise CallError(error.failure, f"{len(waiting)} questions failed in {MAX_TRIES} batches: {error}")

    def _back_off(self, attempt: int, error: CallError | None = None) -> None:
        """Wait before the next try; raise the error after the last try, or if retrying is useless."""
        if error is not None and (error.failure == REFUSED or attempt + 1 == MAX_TRIES):
            raise error
        if attempt + 1 < MAX_TRIES:
            wait = max(self.profile.backoff_s * 2**attempt, error.wait if error else 0.0)
            time.sleep(min(wait, MAX_WAIT_S))


def _add_try(answer: StoredReply, reply: Reply | None, failure: str) -> StoredReply:
    """Update the outcome of a question by one more try."""
    failures = dict(Counter(answer.failures) + Counter([failure] if failure else []))
    if reply is None:
        return replace(answer, calls=answer.calls + 1, failures=failures)
    return StoredReply(reply.text, answer.usage + reply.usage, answer.calls + 1, failures, reply.model)


def _fault(reply: Reply | CallError, read: Read[T]) -> str:
    """Kind of failure of an answer; "" for none."""
    if isinstance(reply, CallError):
        return reply.failure
    if reply.stop == REFUSAL:
        return REFUSAL
    try:
        read(reply.text)
    except UnreadableError:
        if reply.stop == TRUNCATED:
            return TRUNCATED
        return "unreadable" if reply.text.strip() else EMPTY
    return ""


_ADDED = re.compile(r"\d+|v\d+|latest|q\d\w*|k|[sml]|gguf|fp\d+|bf16|int\d+|awq|gptq")
"""Suffixes that two names of the same model may differ by: dates, versions, number formats."""


def same_model(asked: str, returned: str) -> bool:
    """Whether the answering model may be the requested one: providers add dates, regions and versions to names.

    >>> same_model("gpt-5", "gpt-5-2026-01-01"), same_model("us.anthropic.claude-sonnet-5-v1:0", "claude-sonnet-5")
    (True, True)
    >>> same_model("Qwen/Qwen3-8B", "qwen3-8b-q4_k_m.gguf"), same_model("gpt-5", "gpt-5-mini"), same_model("o3", "o30")
    (True, False, False)
    """
    names = (re.split(r"[^a-z0-9]+", name.rpartition("/")[2].lower()) for name in (asked, returned))
    short, long = sorted(names, key=len)
    places = [place for place in range(len(long) - len(short) + 1) if long[place : place + len(short)] == short]
    return any(all(map(_ADDED.fullmatch, long[place + len(short) :])) for place in places)


def caller_for(name: str, options: ModelOptions | None = None, progress: Progress = SILENT) -> ModelCaller:
    """Create the caller of a configured model."""
    profile = load_profile(name, options)
    kept = Path(options.transcripts) if options and options.transcripts else None
    return ModelCaller(name, profile, client_for(profile), cache_root(), kept, progress)


@dataclass(frozen=True)
class Briefing:
    """Settings of a part that queries a model.

    Args:
        description: the source's description of its data.
        options: overrides of the model's profile.
        progress: receives the number of answers.
    """

    description: str = ""
    options: ModelOptions = field(default_factory=ModelOptions)
    progress: Progress = SILENT


NO_BRIEFING = Briefing()
POINTWISE: dict[str, Task] = {"chatts-http": "similarity", "toto-http": "match"}
"""Providers whose models rate one candidate at a time; all others order a list."""


def ranking_task(profile: Profile) -> Task:
    """The task by which a model ranks."""
    return POINTWISE.get(str(profile.provider), "list")


def content_key(model: str, options: ModelOptions | None = None, *, classify: bool = False) -> str:
    """Hash of a model's profile and prompts, which decide its answers beside the method's parameters."""
    name, treatment = split_model(model)
    profile = load_profile(name, options)
    asking = choose_asking(profile, treatment, classify=classify)
    first = " items first" if asking.items_first else ""
    return hashlib.sha256(f"{profile.identity} {asking.prompts.digest}{first}".encode()).hexdigest()[:16]


def describe_model(model: str, options: ModelOptions | None = None, *, classify: bool = False) -> dict[str, Any]:
    """Facts to reproduce a model's answers: provider, id, settings, prompts; no key."""
    name, treatment = split_model(model)
    profile = load_profile(name, options)
    asking = choose_asking(profile, treatment, classify=classify)
    settings = ("provider", "model", "max_tokens", "thinking", "structured", "caching")
    said = {name: getattr(profile, name) for name in settings} | {"images": asking.images, "decoding": profile.decoding}
    told = {"name": asking.prompts.name, "section": asking.section, "digest": asking.prompts.digest}
    client = PACKAGES.get(str(profile.provider), "")
    said |= {"client": f"{client} {version(client)}" if client and find_spec(client) else client}
    return {"profile": name, **said, "prompts": told | {"text": asdict(asking.prompt)}}


def choose_asking(profile: Profile, treatment: Treatment, *, classify: bool = False) -> Asking:
    """Choose task, prompts and images for a profile.

    A section `-shared` shows the examples before the query; `-entries` is for models without images.
    """
    task: Task = "classify" if classify else ranking_task(profile)
    prompts, section = load_prompts(profile.prompts), _section(task, treatment)
    images: Images = "none" if profile.provider == "chatts-http" else profile.images
    if classify and profile.caching and f"{section}-shared" in dict(prompts.sections):
        return Asking(task, f"{section}-shared", prompts, images, items_first=True)
    if images == "none" and f"{section}-entries" in dict(prompts.sections):
        section = f"{section}-entries"
    prompts.section(section)
    return Asking(task, section, prompts, images)


class Examiner:
    """Shows windows to a model and asks it.

    Args:
        model: as in a method text.
        reduction: reduction of windows; models that end in -tsad also lose the season.
        briefing: description of the data, and overrides of the profile.
        classify: ask for confidences instead of a ranking.
    """

    def __init__(
        self, model: str, reduction: Reduction, briefing: Briefing | None = None, *, classify: bool = False
    ) -> None:
        name, self.treatment = split_model(model)
        told = briefing or NO_BRIEFING
        self.caller: ModelCaller = caller_for(name, told.options, told.progress)
        asking = choose_asking(self.caller.profile, self.treatment, classify=classify)
        self.task: Task = asking.task
        self.composer = partial(Composer, asking, description=told.description)
        self.reduction = replace(reduction, tsad=self.treatment == "tsad")

    def exhibit(self, windows: WindowSet, position: int) -> WindowExcerpt:
        """One window as the model sees it."""
        return self.reduction(windows, position)

    def ask(
        self, questions: Sequence[tuple[WindowExcerpt, Sequence[Item]]], read: Sequence[Read[T]], sample: int = 0
    ) -> list[T | None]:
        """Ask about each query and its items; None for answers that are not readable."""
        self._check_series(questions)
        composer = self.composer(Plotter(cache_root()))
        return self.caller.ask([composer.request(query, items, sample) for query, items in questions], read)

    def _check_series(self, questions: Sequence[tuple[WindowExcerpt, Sequence[Item]]]) -> None:
        """Refuse questions with more series than the model's server accepts, before any is sent."""
        profile, most = self.caller.profile, self.caller.profile.most_series
        windows = max((1 + len(items) for _, items in questions), default=0)
        counts = (len(q.channels) + sum(len(item.exhibit.channels) for item in items) for q, items in questions)
        if most is None or (needed := max(counts, default=0)) <= most:
            return
        fitting = f"channels={most // windows} fits" if most >= windows else f"{windows} windows never fit"
        raise UsageError(
            f"{profile.model} takes at most {most} series in a question, and one has {needed} in {windows} windows:"
            f" {fitting}. Or start its server for more and set max_series of the profile."
        )

    def forecast(self, sample: Sequence[tuple[WindowExcerpt, Sequence[Item]]], calls: int) -> Spending:
        """Maximum cost of `calls` questions like those of the sample."""
        composer = self.composer(Blank())
        known = estimate_cost([composer.request(query, items) for query, items in sample], self.caller.profile)
        return Spending(calls, known.cost * calls / known.calls)


def _section(task: Task, treatment: Treatment) -> str:
    return f"{task}-{treatment}" if treatment else task
