"""Profiles: no model without a file, and what is wrong with a file is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from readbench.engine.llm import content_key, split_model
from readbench.engine.llm._settings import load_profile
from readbench.engine.registry import RERANKERS, RETRIEVERS
from readbench.errors import UsageError
from tests.engine.llm.conftest import Configure


def test_without_a_file_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in (RERANKERS.get("llm"), RETRIEVERS.get("classify")):
        assert "READBENCH_LLM" in entry.unavailable()
    with pytest.raises(UsageError, match="export READBENCH_LLM=FILE of profiles"):
        load_profile("claude")
    monkeypatch.setenv("READBENCH_LLM", "/nowhere/llm.toml")
    with pytest.raises(UsageError, match=r"needs the file /nowhere/llm\.toml"):
        load_profile("claude")


def test_a_profile_is_read_by_its_name(configure: Configure) -> None:
    configure("claude", provider="anthropic", model="claude-x", max_tokens=100)
    profile = load_profile("claude")
    assert (profile.provider, profile.model, profile.max_tokens) == ("anthropic", "claude-x", 100)
    assert profile.address == "https://api.anthropic.com"
    assert RERANKERS.get("llm").unavailable() == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"provider": "antropic"}, "'provider' parameter .* must be one of 'anthropic'"),
        ({"provider": "anthropic", "max_tokens": 0}, "'max_tokens' parameter of .claude. in .*llm.toml must be"),
        ({"provider": "anthropic", "modell": "x"}, "Did you mean 'model'"),
        ({"provider": "anthropic", "api_key": "x"}, "Unknown setting"),
        ({"provider": "anthropic", "model": ""}, "needs a provider and a model"),
        ({"model": "x"}, "needs a provider and a model"),
        ({"provider": "toto-http"}, "toto-http needs a base_url"),
        ({"provider": "openai", "base_url": "file:///etc/passwd"}, "http:// or https://"),
        ({"provider": "anthropic", "max_cost": 3.0}, "needs input_price"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], message: str, configure: Configure) -> None:
    configure("claude", **settings)
    with pytest.raises(UsageError, match=message):
        load_profile("claude")


def test_an_unknown_model_is_answered_with_those_there_are(configure: Configure) -> None:
    path = configure("claude", provider="anthropic")
    with pytest.raises(UsageError, match="Did you mean 'claude'"):
        load_profile("claud")
    path.write_text("claude = 3")
    with pytest.raises(UsageError, match="must be a table"):
        load_profile("claude")
    path.write_text("[claude")
    with pytest.raises(UsageError, match="cannot be read as TOML"):
        load_profile("claude")


def test_models_end_in_what_they_are_shown() -> None:
    assert split_model("claude-evidence") == ("claude", "evidence")
    assert split_model("tsad") == ("tsad", "")
    with pytest.raises(UsageError, match="as in llm"):
        split_model("")


def test_the_content_key_follows_model_and_prompts_only(configure: Configure, tmp_path: Path) -> None:
    def key(**settings: object) -> str:
        configure("claude", **({"provider": "anthropic", "model": "a"} | settings))
        return content_key("claude")

    base = key()
    assert key(base_url="http://elsewhere", concurrency=9, max_calls=3) == base
    assert key(model="b") != base
    assert key(thinking="disabled") != base
    prompts = tmp_path / "mine.toml"
    fields = 'context = ""\nquery = ""\nitem = ""\nlabel = ""\nsystem = ""\nquestion = "?"\n'
    prompts.write_text(f"[list]\n{fields}")
    assert key(prompts=str(prompts)) != base
    with pytest.raises(UsageError, match="'list-tsad'"):
        content_key("claude-tsad")
