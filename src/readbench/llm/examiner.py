"""One model at one task: its caller, its prompts, and how windows are shown to it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from readbench.errors import UsageError
from readbench.llm.caller import Caller, Read, T, caller_for
from readbench.llm.drawing import Blank, Plotter
from readbench.llm.exhibits import Exhibit, Reduction
from readbench.llm.ledger import Spending, estimate
from readbench.llm.prompts import load_prompts
from readbench.llm.requests import Composer, Item, Task
from readbench.llm.settings import Images, ModelOptions, Profile, load_profile
from readbench.paths import cache_root
from readbench.windows import WindowSet

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
        self.caller: Caller = caller_for(name, options)
        profile = self.caller.profile
        self.task: Task = "classify" if classify else ranking_task(profile)
        prompt = load_prompts(profile.prompts).section(_section(self.task, self.treatment))
        images: Images = "none" if profile.provider == "chatts-http" else profile.images
        self.composer = partial(Composer, self.task, prompt, images, description=description)
        self.reduction = replace(reduction, tsad=self.treatment == "tsad")

    def exhibit(self, windows: WindowSet, position: int) -> Exhibit:
        """One window as the model sees it."""
        return self.reduction(windows, position)

    def ask(self, questions: Sequence[tuple[Exhibit, Sequence[Item]]], read: Sequence[Read[T]]) -> list[T | None]:
        """What the model says about each query and its items; None where it gave no answer that can be read."""
        composer = self.composer(Plotter(cache_root()))
        return self.caller.ask([composer.request(query, items) for query, items in questions], read)

    def forecast(self, sample: Sequence[tuple[Exhibit, Sequence[Item]]], calls: int) -> Spending:
        """The most that so many calls cost where all questions are like those of the sample."""
        composer = self.composer(Blank())
        known = estimate([composer.request(query, items) for query, items in sample], self.caller.profile)
        return Spending(calls, known.cost * calls / known.calls)


def _section(task: Task, treatment: Treatment) -> str:
    return f"{task}-{treatment}" if treatment else task
