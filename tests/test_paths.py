from __future__ import annotations

import sys
from pathlib import Path

import pytest

from readbench.paths import cache_root, data_root


def test_the_data_root_is_the_argument_then_the_variable_then_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_DATA", "/data/variable")
    assert data_root(Path("/data/argument")) == Path("/data/argument")
    assert data_root() == Path("/data/variable")
    monkeypatch.setenv("READBENCH_DATA", "")
    assert data_root() is None
    monkeypatch.delenv("READBENCH_DATA")
    assert data_root() is None


def test_the_cache_variable_beats_every_platform_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", "/fast/disk")
    assert cache_root() == Path("/fast/disk")


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", None, ".cache/readbench"),
        ("linux", "XDG_CACHE_HOME", "given/readbench"),
        ("darwin", None, "Library/Caches/readbench"),
        ("win32", None, "AppData/Local/readbench"),
        ("win32", "LOCALAPPDATA", "given/readbench"),
    ],
)
def test_the_cache_lies_where_the_platform_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, variable: str | None, expected: str
) -> None:
    for name in ("READBENCH_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert cache_root() == tmp_path / expected
