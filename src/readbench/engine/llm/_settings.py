"""Which models are configured, and what they may spend.

Profiles stand in the file that `READBENCH_LLM` names, one table a model:

```toml
[claude]
like = "paper-claude"        # one of those that the package ships, `SHIPPED`, with own settings instead of its own
region = "eu-central-1"
max_cost = 20.0
input_price = 3.0
output_price = 15.0
```

A model on a server of one's own needs no file: `openai:MODEL@URL` is a name of it. Without either nothing ever leaves
the machine. Keys are not part of the file: they are read from the environment at the moment of a call, from the
variable that `key_env` names. What a run is told of prompts and budget goes before the file.

The cost of a model is estimated before the first call, and its total outlives the process (`Ledger`). The total counts
every call that was ever made under a profile's name with one cache, from whichever process: a run that is killed and
started again, or that works in several processes, has one budget. A call is entered at the most it can cost before it
is made, and corrected when its answer is there; one that is killed on the way stays entered.
"""

from __future__ import annotations

import json
import os
import re
import threading
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from readbench.common.files import cache_root, exclusive, write_json
from readbench.engine.llm._messages import ChatClient, ModelRequest, Reply, Usage
from readbench.engine.parameters import ParameterRange, parameters_of
from readbench.errors import RunError, UnknownNameError, UsageError

VARIABLE = "READBENCH_LLM"
SHIPPED = "profiles"
"""The package's own file of profiles: models and settings of the paper."""
Provider = Literal["anthropic", "bedrock", "vertex", "openai", "chatts-http", "toto-http"]
Thinking = Literal["unset", "disabled", "between_tools", "adaptive"]
Effort = Literal["unset", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
Images = Literal["sheet", "channels", "none"]
Treatment = Literal["", "tsad", "evidence"]
HOSTED = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""Where a provider is when no address is given."""
OWN_ADDRESS = ("bedrock", "vertex")
"""Providers whose address follows from the region."""
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Variables that hold a key where a profile names none; each goes to its provider's own address alone."""
CACHE_PRICES = {"anthropic": (0.1, 1.25), "bedrock": (0.1, 1.25), "vertex": (0.1, 1.25)}
"""What tokens of a provider's cache cost to read and to write, as a share of the price of reading; 1 elsewhere."""
BATCHED = ("anthropic", "openai")
"""Providers with an interface for batches."""
BATCH_PRICE = 0.5
"""What tokens cost in a batch, as a share of their price."""
PACKAGES = {
    **dict.fromkeys(("anthropic", "bedrock", "vertex"), "anthropic"),
    **dict.fromkeys(("openai", "chatts-http"), "openai"),
}
"""Of each provider that has one."""
CHATTS_SERIES = 15
"""Series in one question that ChatTS' server takes as its authors start it."""


@dataclass(frozen=True)
class Profile:
    """One table of the file.

    Args:
        provider: which protocol its server speaks.
        model: the model's name at the provider.
        base_url: address of the server; that of bedrock and vertex follows from the region.
        key_env: variable of the environment that holds the key; see `KEYS`.
        region: of bedrock or vertex; bedrock's may stand in AWS_REGION.
        project: of vertex.
        aws_profile: of bedrock, in the files of the AWS command line; single sign-on works as it does there.
        max_tokens: most tokens of an answer, thinking included.
        thinking: what the request says about thinking (Claude): nothing, off, between tools alone (the least that newer
            models allow), or as the model likes.
        effort: how much it is to think, where the model knows such a setting.
        temperature: of sampling; the provider's own where it is not set.
        top_p: likewise.
        seed: of sampling, for servers that take one.
        extra: further fields of the request, a JSON object as text.
        structured: ask the server to enforce the JSON schema of the answer.
        caching: mark what questions share, so that the provider keeps it (Claude; others do so by themselves), and put
            what they share first.
        images: one sheet a window, one picture a channel, or none. The models behind chatts-http see none.
        batch: send the questions of a cell together, at half the price, and wait for them up to a day; for `BATCHED`.
        concurrency: calls at a time.
        timeout_s: seconds until a call counts as lost.
        backoff_s: seconds before the second try; they double with each further one.
        input_price: dollars for a million tokens read.
        output_price: dollars for a million tokens written.
        cache_read_price: dollars for a million tokens read from the provider's cache; see `CACHE_PRICES`.
        cache_write_price: dollars for a million tokens that are read and put there.
        max_calls: most calls that this name may ever make with this cache.
        max_cost: most dollars that this name may ever cost with this cache.
        max_series: most series in one question; 15 for ChatTS, as its authors start their server.
        prompts: a file of prompts instead of the package's own, or the name of a set that it ships.
    """

    provider: Provider | None = None
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    region: str = ""
    project: str = ""
    aws_profile: str = ""
    max_tokens: Annotated[int, ParameterRange(1)] = 2048
    thinking: Thinking = "unset"
    effort: Effort = "unset"
    temperature: Annotated[float, ParameterRange(0)] | None = None
    top_p: Annotated[float, ParameterRange(0, 1)] | None = None
    seed: int | None = None
    extra: str = ""
    structured: bool = False
    caching: bool = False
    images: Images = "sheet"
    batch: bool = False
    concurrency: Annotated[int, ParameterRange(1)] = 4
    timeout_s: Annotated[float, ParameterRange(0.01)] = 300.0
    backoff_s: Annotated[float, ParameterRange(0)] = 1.0
    input_price: Annotated[float, ParameterRange(0)] | None = None
    output_price: Annotated[float, ParameterRange(0)] | None = None
    cache_read_price: Annotated[float, ParameterRange(0)] | None = None
    cache_write_price: Annotated[float, ParameterRange(0)] | None = None
    max_calls: Annotated[int, ParameterRange(0)] | None = None
    max_cost: Annotated[float, ParameterRange(0)] | None = None
    max_series: Annotated[int, ParameterRange(1)] | None = None
    prompts: str = ""

    def __post_init__(self) -> None:
        if self.provider is None or not self.model:
            raise UsageError("it needs a provider and a model.")
        if self.max_cost is not None and not self.priced:
            raise UsageError("max_cost needs input_price and output_price, in dollars for a million tokens.")
        if not isinstance(_json(self.extra), dict):
            raise UsageError(f"extra must be a JSON object, as in '{{\"top_k\": 5}}'. Got {self.extra!r}.")
        if self.batch and self.provider not in BATCHED:
            raise UsageError(f"batch = true works with the providers {' and '.join(BATCHED)} only.")
        if self.provider == "vertex" and not (self.region and self.project):
            raise UsageError("vertex needs a region and a project.")
        if self.provider not in OWN_ADDRESS and urlsplit(self.address).scheme not in ("http", "https"):
            raise UsageError(f"{self.provider} needs a base_url that begins with http:// or https://.")

    @property
    def address(self) -> str:
        """Where the server is, without a slash at the end; empty where it follows from the region."""
        return (self.base_url or HOSTED.get(self.provider or "", "")).rstrip("/")

    @property
    def identity(self) -> str:
        """What of the profile decides an answer: the model and how it is asked, not where or at what price."""
        asked = (self.provider, self.model, self.max_tokens, self.thinking, self.structured, self.images)
        return repr((*asked, *sorted(self.decoding.items())))

    @property
    def decoding(self) -> dict[str, Any]:
        """Settings of decoding that are not left to the provider."""
        own = {name: getattr(self, name) for name in ("temperature", "top_p", "seed")}
        own |= {"effort": self.effort if self.effort != "unset" else None, "extra": self.extra or None}
        return {name: value for name, value in own.items() if value is not None}

    @property
    def priced(self) -> bool:
        """Whether it is known what tokens cost."""
        return None not in (self.input_price, self.output_price)

    def describe(self, spending: Spending) -> str:
        """Calls in words, and dollars where prices are known."""
        return f"{spending.calls} calls{f', ${spending.cost:.2f}' if self.priced else ''}"

    @property
    def further(self) -> dict[str, Any]:
        """`extra` as what it means."""
        return dict(_json(self.extra))

    @property
    def most_series(self) -> int | None:
        """Most series in one question; None without limit."""
        return self.max_series or (CHATTS_SERIES if self.provider == "chatts-http" else None)

    @property
    def key_variable(self) -> str:
        """The variable that holds the key; empty where the provider has another way, or its server needs none."""
        hosted = self.address == HOSTED.get(str(self.provider))
        return self.key_env or (KEYS.get(str(self.provider), "") if hosted else "")

    def cost(
        self, input_tokens: float, output_tokens: float, cache_read_tokens: float = 0, cache_write_tokens: float = 0
    ) -> float:
        """Dollars for so many tokens; 0 where prices are not given."""
        read, write = (share * (self.input_price or 0.0) for share in CACHE_PRICES.get(str(self.provider), (1.0, 1.0)))
        read = read if self.cache_read_price is None else self.cache_read_price
        write = write if self.cache_write_price is None else self.cache_write_price
        cached = cache_read_tokens * read + cache_write_tokens * write
        whole = input_tokens * (self.input_price or 0.0) + output_tokens * (self.output_price or 0.0) + cached
        return whole * (BATCH_PRICE if self.batch else 1.0) / 1e6


def _json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """What a text holds; None where it is no JSON, an object without fields where it is empty."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return None


def explain_no_models() -> str:
    """Why no model can be asked, and what to do; empty where a file of profiles is named."""
    path = os.environ.get(VARIABLE)
    if not path:
        return f"needs a language model: export {VARIABLE}=FILE of profiles (docs/language-models.md)"
    return "" if Path(path).is_file() else f"needs the file {path}, which {VARIABLE} names"


@dataclass(frozen=True)
class ModelOptions:
    """What goes before every profile of the file: what a run is told of prompts and budget.

    Args:
        prompts: a file of prompts.
        max_calls: most calls that a name may ever make with this cache.
        max_cost: most dollars that a name may ever cost with this cache.
        transcripts: a folder that keeps questions and answers; answers that are there are not asked for again.
    """

    prompts: str | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    transcripts: str | None = None

    def over(self, table: dict[str, Any]) -> dict[str, Any]:
        """A profile's table with what is set here in place of its own.

        >>> ModelOptions(max_calls=3).over({"model": "m", "max_calls": 9})
        {'model': 'm', 'max_calls': 3}
        """
        own = {name: value for name, value in asdict(self).items() if value is not None and name != "transcripts"}
        return table | own


def load_profile(name: str, options: ModelOptions | None = None) -> Profile:
    """The profile of a name; `UsageError` says what is wrong with the file."""
    options = options or ModelOptions()
    if address := _ADDRESS.fullmatch(name):
        return _checked(options.over(address.groupdict()), name)
    if name in _shipped():
        return _checked(options.over(_shipped()[name]), f"[{name}] of the package")
    if reason := explain_no_models():
        raise UsageError(f"{name} {reason}.")
    path = Path(os.environ[VARIABLE])
    return _profile(path, name, path.read_text(), options)


_ADDRESS = re.compile(r"(?P<provider>openai|chatts-http|toto-http):(?P<model>[^@]+)@(?P<base_url>https?://.+)")
"""A model on a server of one's own, without a file."""


def list_profiles() -> list[str]:
    """Names of the file that the variable names; none where there is no file."""
    if explain_no_models():
        return []
    path = Path(os.environ[VARIABLE])
    return list(_tables(path, path.read_text()))


def _shipped() -> dict[str, dict[str, Any]]:
    text = (files("readbench.engine.llm") / "wording" / f"{SHIPPED}.toml").read_text()
    return _tables(Path(SHIPPED), text)


@lru_cache(maxsize=8)
def _tables(path: Path, text: str) -> dict[str, dict[str, Any]]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}.") from None


@lru_cache(maxsize=32)
def _profile(path: Path, name: str, text: str, options: ModelOptions) -> Profile:
    tables, where = _tables(path, text), f"[{name}] in {path}"
    if name not in tables:
        raise UnknownNameError(f"language model (in {path})", name, [*tables, *_shipped()])
    if not isinstance(tables[name], dict):
        raise UsageError(f"{where} must be a table.")
    own = {key: value for key, value in tables[name].items() if key != "like"}
    if like := tables[name].get("like"):
        if like not in _shipped():
            raise UnknownNameError(f"profile of the package (like, {where})", str(like), _shipped())
        own = _shipped()[like] | own
    return _checked(options.over(own), where)


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
        self.path = root / "llm" / "spent" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.json"
        self.name = name
        self.profile = profile
        self._threads = threading.Lock()

    def spent(self) -> Spending:
        """The total so far."""
        return Spending(**json.loads(self.path.read_text())) if self.path.exists() else Spending()

    def require(self, planned: Spending) -> None:
        """Raise `RunError` unless the budget has room for what is planned."""
        self._check(self.spent(), planned)

    def pay(self, request: ModelRequest, client: ChatClient) -> Reply:
        """The answer to a call, which is entered before it is made; one that fails costs nothing."""
        self.enter(request)
        usage = Usage()
        try:
            reply = client.complete(request)
            usage = reply.usage
        finally:
            self.correct(request, usage)
        return reply

    def enter(self, request: ModelRequest) -> None:
        """Enter a call that is about to be made; `RunError` where the budget has no room for it."""
        self._add(Spending(1, _most(request, self.profile)), checked=True)

    def correct(self, request: ModelRequest, usage: Usage) -> None:
        """Put what a call took in place of the most it could take; a call that failed took nothing."""
        taken = self.profile.cost(**asdict(usage))
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
            f"{self.name} has spent {profile.describe(spent)} and needs up to {profile.describe(planned)} more, beyond"
            f" {limit}. Raise the"
            " limit and run again: everything that was answered is kept."
        )


def describe_spending(name: str, planned: Sequence[Spending] = (), options: ModelOptions | None = None) -> list[str]:
    """What each of several plans may cost with a configured model, in words; last what it has spent and may spend."""
    profile = load_profile(name, options)
    limits = [f"{profile.max_calls} calls"] if profile.max_calls is not None else []
    limits += [f"${profile.max_cost:.2f}"] if profile.max_cost is not None else []
    spent = profile.describe(Ledger(cache_root(), name, profile).spent())
    budget = f"spent so far {spent}; budget {' and '.join(limits) or 'without limit'}"
    budget += "" if profile.priced else "; dollars are not known without input_price and output_price"
    return [*(f"up to {profile.describe(plan)}" for plan in planned), budget]


def describe_profiles() -> list[tuple[str, str, str, str, str]]:
    """Name, provider, model, state and spending of each profile of the file; what is wrong with one is its state."""
    rows = []
    for name in list_profiles():
        try:
            profile = load_profile(name)
        except UsageError as error:
            rows.append((name, "", "", f"broken: {error}", ""))
            continue
        lacking = explain_profile(profile)
        rows.append((name, str(profile.provider), profile.model, lacking or "ready", describe_spending(name)[-1]))
    return rows


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


def explain_profile(profile: Profile) -> str:
    """What a profile lacks to be asked, and what to do; empty where it lacks nothing that can be seen from here."""
    package = PACKAGES.get(str(profile.provider), "")
    if package and find_spec(package) is None:
        return f"needs {package}: pip install 'readbench[llm]'"
    if profile.key_variable and not os.environ.get(profile.key_variable):
        return f"needs a key: export {profile.key_variable}=..."
    return ""


def _most(request: ModelRequest, profile: Profile) -> float:
    return profile.cost(request.tokens, profile.max_tokens)
