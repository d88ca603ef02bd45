"""Check a configured model with one small question: reachable, readable answer, expected model."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import numpy as np

from readbench.common.files import cache_root
from readbench.engine.llm._examiner import choose_asking, same_model
from readbench.engine.llm._exhibits import Plotter, WindowExcerpt
from readbench.engine.llm._messages import UnreadableError, read_match, read_ranking, read_similarity
from readbench.engine.llm._prompts import Composer, Item, item_id
from readbench.engine.llm._providers import client_for
from readbench.engine.llm._settings import Ledger, load_profile, split_model

STEPS = 64
MAX_EXCERPT_CHARACTERS = 200


@dataclass(frozen=True)
class ModelCheck:
    """Result of a check.

    Args:
        facts: values by name, in order of display.
        complaint: what is wrong, and the remedy; "" if nothing.
    """

    facts: dict[str, str]
    complaint: str


def check_model(model: str) -> ModelCheck:
    """Ask a model to rank three synthetic windows; the call counts in the budget.

    Args:
        model: as in a method text.
    """
    name, treatment = split_model(model)
    profile = load_profile(name)
    asking = choose_asking(profile, treatment)
    query, items = _drawn()
    shown = items if asking.task == "list" else items[:1]
    composer = Composer(asking, Plotter(cache_root()), "Drawn windows, to see whether this works.")
    request = composer.request(query, shown)
    began = time.perf_counter()
    reply = Ledger(cache_root(), name, profile).pay(request, client_for(profile))
    seconds = time.perf_counter() - began
    told = {
        "provider": str(profile.provider),
        "address": profile.address or f"of region {profile.region or 'in AWS_REGION'}",
        "key": profile.key_variable or "none, or the cloud's sign-in",
        "asked": profile.model,
        "answered by": reply.model or "not told",
        "settings": f"max_tokens {profile.max_tokens}, thinking {profile.thinking}, {profile.decoding or 'no more'}",
        "prompts": f"{asking.prompts.name} [{asking.section}] sha256 {asking.prompts.digest[:12]}",
        "stopped": reply.stop,
        "seconds": f"{seconds:.1f}",
        "tokens": ", ".join(f"{name} {count}" for name, count in asdict(reply.usage).items() if count),
        "cost": f"${profile.cost(**asdict(reply.usage)):.4f}" if profile.priced else "no prices in the profile",
        "said": " ".join(reply.text.split())[:MAX_EXCERPT_CHARACTERS],
    }
    return ModelCheck(told, _complain(reply.text, reply.stop, profile.model, reply.model, asking.task))


def _complain(text: str, stop: str, asked: str, answered_by: str, task: str) -> str:
    """What is wrong with an answer, and the remedy; "" if nothing."""
    if stop == "refusal":
        return "The model would not answer. Ask another one, or with other prompts."
    try:
        if task == "list":
            read_ranking(text, [item_id(place) for place in range(3)])
        else:
            (read_similarity if task == "similarity" else read_match)(text)
    except UnreadableError as error:
        help_ = "Raise max_tokens." if stop == "truncated" else "Set structured = true, or ask another model."
        return f"The answer cannot be read: {error} {help_}"
    if answered_by and not same_model(asked, answered_by):
        return f"{answered_by} answered where {asked} was asked. Check the profile's model and its server."
    return ""


def _drawn() -> tuple[WindowExcerpt, list[Item]]:
    """A step as query, and as candidates a sine, a later step and a ramp."""
    steps = np.arange(STEPS)
    shapes = (steps > 32, np.sin(steps / 4), steps > 36, steps / STEPS)
    made = [WindowExcerpt(("level",), np.asarray(shape, np.float32)[None], ("",)) for shape in shapes]
    return made[0], [Item(window, name) for window, name in zip(made[1:], ("sine", "step", "ramp"), strict=True)]
