"""`readbench models`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cli import app
from readbench.errors import DataError, UsageError


def typed(*words: str) -> str:
    return CliRunner().invoke(app, ["models", *words], catch_exceptions=False).output


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("READBENCH_MODELS", raising=False)
    return tmp_path


def test_the_list_knows_what_the_cache_of_the_hub_holds(hub: Path) -> None:
    before = {fact["encoder"]: fact for fact in json.loads(typed("list", "--json"))["encoders"]}
    assert set(before) == {"mantis", "chronos-2", "chronos-bolt", "tirex", "timesfm"}
    assert not any(fact["where"] for fact in before.values())
    assert all(fact["licence"] for fact in before.values())
    snapshot = hub / "models--amazon--chronos-2" / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"weights")
    reference = hub / "models--amazon--chronos-2" / "refs" / "main"
    reference.parent.mkdir()
    reference.write_text("abc123")
    fact = next(own for own in json.loads(typed("list", "--json"))["encoders"] if own["encoder"] == "chronos-2")
    assert (fact["where"], fact["revision"], fact["bytes"]) == (str(snapshot), "abc123", 9)
    assert fact["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert "models fetch mantis" in " ".join(typed("list").split())
    assert str(snapshot) in typed("fetch", "chronos-2").replace("\n", "")


def test_the_list_tells_models_that_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[local]\nprovider = "openai"\nmodel = "qwen3"\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("READBENCH_LLM", str(file))
    (told,) = json.loads(typed("list", "--json"))["language_models"]
    assert (told["profile"], told["provider"], told["model"]) == ("local", "openai", "qwen3")
    assert "qwen3" in typed("list")


def test_fetch_refuses_what_is_not_published() -> None:
    with pytest.raises(UsageError, match="has no published weights"):
        typed("fetch", "rocket")


def test_fetch_says_what_to_do_without_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="READBENCH_MODELS"):
        typed("fetch", "mantis", "--revision", "nowhere")
