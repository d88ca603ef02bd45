"""Which models are configured, and what they may spend.

Profiles stand in the file that `READBENCH_LLM` names, one table a model:

```toml
[claude]
provider = "anthropic"
model = "claude-sonnet-4-5"
max_cost = 20.0
input_price = 3.0
output_price = 15.0
```

Without the variable there is no model, and nothing ever leaves the machine. Keys are not part of the file: they are
read from the environment at the moment of a call. What a run is told of prompts and budget goes before the file.

The cost of a model is estimated before the first call, and its total outlives the process (`Ledger`). The total counts
every call that was ever made under a profile's name with one cache, from whichever process: a run that is killed and
started again, or that works in several processes, has one budget. A call is entered at the most it can cost before it
is made, and corrected when its answer is there; one that is killed on the way stays entered.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from readbench.common.files import cache_root, exclusive, write_json
from readbench.engine.llm._messages import ModelRequest, Usage
from readbench.engine.parameters import ParameterRange, parameters_of
from readbench.errors import RunError, UnknownNameError, UsageError

VARIABLE = "READBENCH_LLM"
Provider = Literal["anthropic", "bedrock", "openai", "chatts-http", "toto-http"]
Thinking = Literal["unset", "disabled", "adaptive"]
Images = Literal["sheet", "channels", "none"]
HOSTED = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""Where a provider is when no address is given."""


@dataclass(frozen=True)
class Profile:
    """One table of the file.

    Args:
        provider: which protocol its server speaks.
        model: the model's name at the provider.
        base_url: address of the server; bedrock's follows from the region.
        max_tokens: most tokens of an answer, thinking included.
        thinking: what the request says about thinking (anthropic and bedrock): nothing, off, or as the model likes.
        structured: ask the server to enforce the JSON schema of the answer.
        images: one sheet a window, one picture a channel, or none. The models behind chatts-http see none.
        concurrency: calls at a time.
        timeout_s: seconds until a call counts as lost.
        backoff_s: seconds before the second try; they double with each further one.
        input_price: dollars for a million tokens read.
        output_price: dollars for a million tokens written.
        max_calls: most calls that this name may ever make with this cache.
        max_cost: most dollars that this name may ever cost with this cache.
        prompts: a file of prompts instead of the package's own.
    """

    provider: Provider | None = None
    model: str = ""
    base_url: str = ""
    max_tokens: Annotated[int, ParameterRange(1)] = 2048
    thinking: Thinking = "unset"
    structured: bool = False
    images: Images = "sheet"
    concurrency: Annotated[int, ParameterRange(1)] = 4
    timeout_s: Annotated[float, ParameterRange(0.01)] = 300.0
    backoff_s: Annotated[float, ParameterRange(0)] = 1.0
    input_price: Annotated[float, ParameterRange(0)] | None = None
    output_price: Annotated[float, ParameterRange(0)] | None = None
    max_calls: Annotated[int, ParameterRange(0)] | None = None
    max_cost: Annotated[float, ParameterRange(0)] | None = None
    prompts: str = ""

    def __post_init__(self) -> None:
        if self.provider is None or not self.model:
            raise UsageError("it needs a provider and a model.")
        if self.max_cost is not None and None in (self.input_price, self.output_price):
            raise UsageError("max_cost needs input_price and output_price, in dollars for a million tokens.")
        if self.provider != "bedrock" and urlsplit(self.address).scheme not in ("http", "https"):
            raise UsageError(f"{self.provider} needs a base_url that begins with http:// or https://.")

    @property
    def address(self) -> str:
        """Where the server is, without a slash at the end; empty for bedrock, whose address follows from the region."""
        return (self.base_url or HOSTED.get(self.provider or "", "")).rstrip("/")

    @property
    def identity(self) -> str:
        """What of the profile decides an answer: the model and how it is asked, not where or at what price."""
        return repr((self.provider, self.model, self.max_tokens, self.thinking, self.structured, self.images))

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Dollars for so many tokens; 0 where prices are not given."""
        return (input_tokens * (self.input_price or 0.0) + output_tokens * (self.output_price or 0.0)) / 1e6


def explain_no_models() -> str:
    """Why no model can be asked, and what to do; empty where a file of profiles is named."""
    path = os.environ.get(VARIABLE)
    if not path:
        return f"needs a language model: name a file of profiles in {VARIABLE} (docs/language-models.md)"
    return "" if Path(path).is_file() else f"needs the file {path}, which {VARIABLE} names"


@dataclass(frozen=True)
class ModelOptions:
    """What goes before every profile of the file: what a run is told of prompts and budget.

    Args:
        prompts: a file of prompts.
        max_calls: most calls that a name may ever make with this cache.
        max_cost: most dollars that a name may ever cost with this cache.
    """

    prompts: str | None = None
    max_calls: int | None = None
    max_cost: float | None = None

    def over(self, table: dict[str, Any]) -> dict[str, Any]:
        """A profile's table with what is set here in place of its own.

        >>> ModelOptions(max_calls=3).over({"model": "m", "max_calls": 9})
        {'model': 'm', 'max_calls': 3}
        """
        return table | {name: value for name, value in asdict(self).items() if value is not None}


def load_profile(name: str, options: ModelOptions | None = None) -> Profile:
    """The profile of a name; `UsageError` says what is wrong with the file."""
    if reason := explain_no_models():
        raise UsageError(f"{name} {reason}.")
    path = Path(os.environ[VARIABLE])
    return _profile(path, name, hashlib.sha256(path.read_bytes()).hexdigest(), options or ModelOptions())


@lru_cache(maxsize=32)
def _profile(path: Path, name: str, content: str, options: ModelOptions) -> Profile:  # noqa: ARG001 - a changed file is read again
    try:
        tables = tomllib.loads(path.read_text())
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}.") from None
    if name not in tables:
        raise UnknownNameError(f"language model (in {path})", name, tables)
    where = f"[{name}] in {path}"
    if not isinstance(tables[name], dict):
        raise UsageError(f"{where} must be a table.")
    return _checked(options.over(tables[name]), where)


def _checked(table: dict[str, Any], where: str) -> Profile:
    declared = parameters_of(Profile)
    for key, value in table.items():
        if key not in declared:
            raise UnknownNameError(f"setting of {where}", key, declared)
        declared[key].check(where, value)
    try:
        return Profile(**table)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


@dataclass(frozen=True)
class Spending:
    """Calls, and dollars where prices are known."""

    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.calls + other.calls, self.cost + other.cost)

    def __str__(self) -> str:
        return f"{self.calls} calls, ${self.cost:.2f}"


def estimate_cost(requests: Sequence[ModelRequest], profile: Profile) -> Spending:
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

    def enter(self, request: ModelRequest) -> None:
        """Enter a call that is about to be made; `RunError` where the budget has no room for it."""
        self._add(Spending(1, _most(request, self.profile)), checked=True)

    def correct(self, request: ModelRequest, usage: Usage) -> None:
        """Put what a call took in place of the most it could take; a call that failed took nothing."""
        taken = self.profile.cost(usage.input_tokens, usage.output_tokens)
        self._add(Spending(0, taken - _most(request, self.profile)), checked=False)

    def _add(self, change: Spending, *, checked: bool) -> None:
        with self._threads, exclusive(self.path.with_suffix(".lock")):
            before = self.spent()
            if checked:
                self._check(before, change)
            write_json(self.path, asdict(before + change), indent=None)

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


def describe_spending(name: str, options: ModelOptions | None = None) -> str:
    """What a configured model has spent so far and what its budget is, in words."""
    profile = load_profile(name, options)
    limits = [f"{profile.max_calls} calls"] if profile.max_calls is not None else []
    limits += [f"${profile.max_cost:.2f}"] if profile.max_cost is not None else []
    return (
        f"spent so far {Ledger(cache_root(), name, profile).spent()}; budget {' and '.join(limits) or 'without limit'}"
    )


def _most(request: ModelRequest, profile: Profile) -> float:
    return profile.cost(request.tokens, profile.max_tokens)
