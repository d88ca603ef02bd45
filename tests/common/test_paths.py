from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from readbench.common.files import cache_root, data_root, imported_root


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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the platform decides, and platformdirs knows it")
@pytest.mark.parametrize(
    ("root", "own", "variable", "default"),
    [
        (cache_root, "READBENCH_CACHE", "XDG_CACHE_HOME", ".cache/readbench"),
        (imported_root, "READBENCH_IMPORTED", "XDG_DATA_HOME", ".local/share/readbench/imported"),
    ],
)
def test_on_linux_folders_lie_where_they_always_lay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Callable[[], Path], own: str, variable: str, default: str
) -> None:
    """What users have there must be found again by every version."""
    monkeypatch.delenv(own, raising=False)
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert root() == tmp_path / default
    monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert root() == tmp_path / "given" / "readbench" / default.partition("readbench/")[2]
