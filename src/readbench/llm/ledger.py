"""What a model may cost: an estimate before the first call, and a total that outlives the process.

The total counts every call that was ever made under a profile's name with one cache, from whichever process: a run that
is killed and started again, or that works in several processes, has one budget. A call is entered at the most it can
cost before it is made, and corrected when its answer is there; one that is killed on the way stays entered.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from readbench.errors import RunError
from readbench.llm.messages import Request, Usage
from readbench.llm.settings import ModelOptions, Profile, load_profile
from readbench.locks import exclusive
from readbench.paths import cache_root


@dataclass(frozen=True)
class Spending:
    """Calls, and dollars where prices are known."""

    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.calls + other.calls, self.cost + other.cost)

    def __str__(self) -> str:
        return f"{self.calls} calls, ${self.cost:.2f}"


def estimate(requests: Sequence[Request], profile: Profile) -> Spending:
    """The most that requests can cost if each is answered at the first try."""
    return Spending(len(requests), sum(_most(request, profile) for request in requests))


class Ledger:
    """The total of one name.

    Args:
        root: cache root.
        name: of the profile.
        profile: with its limits.
    """

    def __init__(self, root: Path, name: str, profile: Profile) -> None:
        self.path = root / "llm" / "spent" / f"{name}.json"
        self.name = name
        self.profile = profile
        self._threads = threading.Lock()

    def spent(self) -> Spending:
        """The total so far."""
        return Spending(**json.loads(self.path.read_text())) if self.path.exists() else Spending()

    def require(self, planned: Spending) -> None:
        """Raise `RunError` unless the budget has room for what is planned."""
        self._check(self.spent(), planned)

    def enter(self, request: Request) -> None:
        """Enter a call that is about to be made; `RunError` where the budget has no room for it."""
        self._add(Spending(1, _most(request, self.profile)), checked=True)

    def correct(self, request: Request, usage: Usage) -> None:
        """Put what a call took in place of the most it could take; a call that failed took nothing."""
        taken = self.profile.cost(usage.input_tokens, usage.output_tokens)
        self._add(Spending(0, taken - _most(request, self.profile)), checked=False)

    def _add(self, change: Spending, *, checked: bool) -> None:
        with self._threads, exclusive(self.path.with_suffix(".lock")):
            before = self.spent()
            if checked:
                self._check(before, change)
            partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
            partial.write_text(json.dumps(asdict(before + change)))
            partial.replace(self.path)

    def _check(self, spent: Spending, planned: Spending) -> None:
        after, profile = spent + planned, self.profile
        if profile.max_calls is not None and after.calls > profile.max_calls:
            limit = f"max_calls = {profile.max_calls}"
        elif profile.max_cost is not None and after.cost > profile.max_cost:
            limit = f"max_cost = {profile.max_cost:g}"
        else:
            return
        raise RunError(
            f"{self.name} has spent {spent} and needs up to {planned} more, beyond {limit}. Raise the"
            " limit and run again: everything that was answered is kept."
        )


def standing(name: str, options: ModelOptions | None = None) -> str:
    """What a configured model has spent so far and what its budget is, in words."""
    profile = load_profile(name, options)
    limits = [f"{profile.max_calls} calls"] if profile.max_calls is not None else []
    limits += [f"${profile.max_cost:.2f}"] if profile.max_cost is not None else []
    return (
        f"spent so far {Ledger(cache_root(), name, profile).spent()}; budget {' and '.join(limits) or 'without limit'}"
    )


def _most(request: Request, profile: Profile) -> float:
    return profile.cost(request.tokens, profile.max_tokens)
