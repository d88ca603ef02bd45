"""Keys that are secrets, an own cache, and a way to configure one model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.llm.server import KEYS, SETTINGS, write_profiles

Configure = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What one test pays for is no other test's, only windows are everybody's; no proxy stands before the loopback."""
    cache, windows = tmp_path / "cache", private_cache / "windows"
    windows.mkdir(parents=True, exist_ok=True)
    cache.mkdir()
    (cache / "windows").symlink_to(windows)
    monkeypatch.setenv("READBENCH_CACHE", str(cache))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("READBENCH_LLM", raising=False)
    return cache


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: None) -> Configure:  # noqa: ARG001
    """Writes the profile of one model and names its file in the environment."""

    def write(name: str, **settings: object) -> Path:
        needed = SETTINGS.get(str(settings.get("provider")), {})
        path = write_profiles(tmp_path / "llm.toml", {name: {"model": "m", "backoff_s": 0} | needed | settings})
        monkeypatch.setenv("READBENCH_LLM", str(path))
        return path

    return write
