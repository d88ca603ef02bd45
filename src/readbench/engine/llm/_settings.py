"""Profiles of language models, and their budgets.

The environment variable `READBENCH_LLM` names a file of profiles, one table per model:

```toml
[claude]
like = "paper-claude"        # start from a shipped profile (`SHIPPED`); settings given here replace its settings
region = "eu-central-1"
max_cost = 20.0
input_price = 3.0
output_price = 15.0
```

`openai:MODEL@URL` names a model on a server without a file. Without either nothing leaves the machine. Keys are not
part of the file: they are read from the environment at the time of a call, from the variable in `key_env`. Options of a
run for prompts and budget override the file.

Costs are estimated before the first call. The `Ledger` stores the total of a profile's name per cache, over all
processes: a run that is killed and started again, or works in several processes, has one budget. A call is entered at
its maximum cost before it is made and corrected when the answer arrives; a killed call stays entered.
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
"""Name of the shipped file of profiles: models and settings of the paper."""
Provider = Literal["anthropic", "bedrock", "vertex", "openai", "chatts-http", "toto-http"]
Thinking = Literal["unset", "disabled", "between_tools", "adaptive"]
Effort = Literal["unset", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
Images = Literal["sheet", "channels", "none"]
Treatment = Literal["", "tsad", "evidence"]
DEFAULT_ADDRESSES = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""Default addresses of providers."""
REGIONAL_PROVIDERS = ("bedrock", "vertex")
"""Providers whose address follows from the region."""
KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Default key variables; a key is sent only to its provider's default address."""
CACHE_PRICES = {"anthropic": (0.1, 1.25), "bedrock": (0.1, 1.25), "vertex": (0.1, 1.25)}
"""Prices of cache reads and writes as a share of the input price; 1 elsewhere."""
BATCH_PROVIDERS = ("anthropic", "openai")
"""Providers with a batch interface."""
BATCH_PRICE_SHARE = 0.5
"""Price in a batch as a share of the normal price."""
PACKAGES = {
    **dict.fromkeys(("anthropic", "bedrock", "vertex"), "anthropic"),
    **dict.fromkeys(("openai", "chatts-http"), "openai"),
}
"""Python package of each provider that has one."""
CHATTS_MAX_SERIES = 15
"""Maximum series per question of ChatTS's server as its authors start it."""


@dataclass(frozen=True)
class Profile:
    """Settings of a language model: one table of the file.

    Args:
        provider: protocol of its server.
        model: name of the model at the provider.
        base_url: address of the server; that of bedrock and vertex follows from the region.
        key_env: environment variable with the key; see `KEY_VARIABLES`.
        region: of bedrock or vertex; that of bedrock may be in AWS_REGION.
        project: of vertex.
        aws_profile: of bedrock, in the files of the AWS command line; supports single sign-on.
        max_tokens: maximum tokens of an answer, including thinking.
        thinking: setting for thinking in requests (Claude): none, off, only between tools (the minimum of newer
            models), or adaptive.
        effort: amount of thinking, for models with this setting.
        temperature: of sampling; default of the provider.
        top_p: of sampling; default of the provider.
        seed: of sampling, for servers that support one.
        extra: further fields of the request, as a JSON object.
        structured: let the server enforce the JSON schema of the answer.
        caching: mark the part shared by questions for the provider's cache (Claude; others cache automatically), and
            put it first.
        images: one image per window (`sheet`), one per channel, or none. Models behind chatts-http see none.
        batch: send the questions of a cell together at half the price and wait up to a day; for `BATCH_PROVIDERS`.
        concurrency: simultaneous calls.
        timeout_s: seconds until a call fails.
        backoff_s: seconds before the second try; doubled for each further one.
        input_price: dollars per million input tokens.
        output_price: dollars per million output tokens.
        cache_read_price: dollars per million tokens read from the provider's cache; see `CACHE_PRICES`.
        cache_write_price: dollars per million tokens written to it.
        max_calls: maximum total calls of this name with this cache.
        max_cost: maximum total dollars of this name with this cache.
        max_series: maximum series per question; 15 for ChatTS, as its authors start their server.
        prompts: a file of prompts, or the name of a shipped set.
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
        if self.batch and self.provider not in BATCH_PROVIDERS:
            raise UsageError(f"batch = true works with the providers {' and '.join(BATCH_PROVIDERS)} only.")
        if self.provider == "vertex" and not (self.region and self.project):
            raise UsageError("vertex needs a region and a project.")
        if self.provider not in REGIONAL_PROVIDERS and urlsplit(self.address).scheme not in ("http", "https"):
            raise UsageError(f"{self.provider} needs a base_url that begins with http:// or https://.")

    @property
    def address(self) -> str:
        """Address of the server, without a trailing slash; "" if it follows from the region."""
        return (self.base_url or DEFAULT_ADDRESSES.get(self.provider or "", "")).rstrip("/")

    @property
    def identity(self) -> str:
        """Settings that decide an answer: model and request options, but not address or price."""
        asked = (self.provider, self.model, self.max_tokens, self.thinking, self.structured, self.images)
        return repr((*asked, *sorted(self.decoding.items())))

    @property
    def decoding(self) -> dict[str, Any]:
        """Decoding settings that are not left to the provider."""
        given = {name: getattr(self, name) for name in ("temperature", "top_p", "seed")}
        given |= {"effort": self.effort if self.effort != "unset" else None, "extra": self.extra or None}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def priced(self) -> bool:
        """Whether token prices are known."""
        return None not in (self.input_price, self.output_price)

    def describe(self, spending: Spending) -> str:
        """Format calls, and dollars if prices are known."""
        return f"{spending.calls} calls{f', ${spending.cost:.2f}' if self.priced else ''}"

    @property
    def further(self) -> dict[str, Any]:
        """`extra`, parsed."""
        return dict(_json(self.extra))

    @property
    def most_series(self) -> int | None:
        """Maximum series per question; None without a limit."""
        return self.max_series or (CHATTS_MAX_SERIES if self.provider == "chatts-http" else None)

    @property
    def key_variable(self) -> str:
        """Environment variable with the key; "" if the provider or server needs none."""
        hosted = self.address == DEFAULT_ADDRESSES.get(str(self.provider))
        return self.key_env or (KEY_VARIABLES.get(str(self.provider), "") if hosted else "")

    def cost(
        self, input_tokens: float, output_tokens: float, cache_read_tokens: float = 0, cache_write_tokens: float = 0
    ) -> float:
        """Dollars for these tokens; 0 without prices."""
        read, write = (share * (self.input_price or 0.0) for share in CACHE_PRICES.get(str(self.provider), (1.0, 1.0)))
        read = read if self.cache_read_price is None else self.cache_read_price
        write = write if self.cache_write_price is None else self.cache_write_price
        cached = cache_read_tokens * read + cache_write_tokens * write
        whole = input_tokens * (self.input_price or 0.0) + output_tokens * (self.output_price or 0.0) + cached
        return whole * (BATCH_PRICE_SHARE if self.batch else 1.0) / 1e6


def _json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse a JSON text; None if it is invalid, an empty object if it is empty."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return None


def explain_no_models() -> str:
    """Why no model can be queried, and the remedy; "" if a file of profiles is set."""
    path = os.environ.get(VARIABLE)
    if not path:
        return f"needs a language model: export {VARIABLE}=FILE of profiles (docs/language-models.md)"
    return "" if Path(path).is_file() else f"needs the file {path}, which {VARIABLE} names"


@dataclass(frozen=True)
class ModelOptions:
    """Options of a run that override every profile.

    Args:
        prompts: a file of prompts.
        max_calls: maximum total calls of a name with this cache.
        max_cost: maximum total dollars of a name with this cache.
        transcripts: folder for questions and answers; answers in it are not requested again.
    """

    prompts: str | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    transcripts: str | None = None

    def over(self, table: dict[str, Any]) -> dict[str, Any]:
        """Override a profile's table by the options that are set.

        >>> ModelOptions(max_calls=3).over({"model": "m", "max_calls": 9})
        {'model': 'm', 'max_calls': 3}
        """
        given = {name: value for name, value in asdict(self).items() if value is not None and name != "transcripts"}
        return table | given


def load_profile(name: str, options: ModelOptions | None = None) -> Profile:
    """Load a profile by name; `UsageError` names errors in the file."""
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
"""A model on a server, without a file."""


def list_profiles() -> list[str]:
    """Names of the profiles in the user's file; none without a file."""
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
    given = {key: value for key, value in tables[name].items() if key != "like"}
    if like := tables[name].get("like"):
        if like not in _shipped():
            raise UnknownNameError(f"profile of the package (like, {where})", str(like), _shipped())
        given = _shipped()[like] | given
    return _checked(options.over(given), where)


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
    """Number of calls, and dollars if prices are known."""

    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.calls + other.calls, self.cost + other.cost)


def estimate_cost(requests: Sequence[ModelRequest], profile: Profile) -> Spending:
    """Maximum cost of requests if each is answered at the first try."""
    return Spending(len(requests), sum(_most(request, profile) for request in requests))


class Ledger:
    """Total calls and costs of a profile's name, stored below the cache root, and checked against its limits."""

    def __init__(self, root: Path, name: str, profile: Profile) -> None:
        self.path = root / "llm" / "spent" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.json"
        self.name = name
        self.profile = profile
        self._threads = threading.Lock()

    def spent(self) -> Spending:
        """Total so far."""
        return Spending(**json.loads(self.path.read_text())) if self.path.exists() else Spending()

    def require(self, planned: Spending) -> None:
        """Raise `RunError` if the budget is too small for the planned spending."""
        self._check(self.spent(), planned)

    def pay(self, request: ModelRequest, client: ChatClient) -> Reply:
        """Make a call and account for it; a failed call costs nothing."""
        self.enter(request)
        usage = Usage()
        try:
            reply = client.complete(request)
            usage = reply.usage
        finally:
            self.correct(request, usage)
        return reply

    def enter(self, request: ModelRequest) -> None:
        """Enter the maximum cost of a call before it is made; `RunError` if the budget is too small."""
        self._add(Spending(1, _most(request, self.profile)), checked=True)

    def correct(self, request: ModelRequest, usage: Usage) -> None:
        """Replace the maximum cost of a call by its actual cost, which is 0 for a failed call."""
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
            f" {limit}. Raise the limit and run again: all answers are kept."
        )


def describe_spending(name: str, planned: Sequence[Spending] = (), options: ModelOptions | None = None) -> list[str]:
    """Maximum cost of each plan with a configured model, as text; last its total so far and its budget."""
    profile = load_profile(name, options)
    limits = [f"{profile.max_calls} calls"] if profile.max_calls is not None else []
    limits += [f"${profile.max_cost:.2f}"] if profile.max_cost is not None else []
    spent = profile.describe(Ledger(cache_root(), name, profile).spent())
    budget = f"spent so far {spent}; budget {' and '.join(limits) or 'without limit'}"
    budget += "" if profile.priced else "; dollars are not known without input_price and output_price"
    return [*(f"up to {profile.describe(plan)}" for plan in planned), budget]


def describe_profiles() -> list[tuple[str, str, str, str, str]]:
    """Name, provider, model, state and spending of each profile in the file; errors are in the state."""
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
    """Split a model in a method text into the name of a profile and its treatment of windows.

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
    """What a profile lacks to be queried, and the remedy; "" if nothing."""
    package = PACKAGES.get(str(profile.provider), "")
    if package and find_spec(package) is None:
        return f"needs {package}: pip install 'readbench[llm]'"
    if profile.key_variable and not os.environ.get(profile.key_variable):
        return f"needs a key: export {profile.key_variable}=..."
    return ""


def _most(request: ModelRequest, profile: Profile) -> float:
    return profile.cost(request.tokens, profile.max_tokens)
