"""`readbench data verify` as a user runs it, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from readbench.cli import app
from readbench.errors import UsageError


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path / "imported"))
    monkeypatch.delenv("READBENCH_DATA", raising=False)


def readbench(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def published_task(path: Path, *, copied: bool = False) -> Path:
    """An archive with two easy faults; the first query may stand in the corpus, too."""
    rng = np.random.default_rng(0)
    labels = np.tile(["leak", "clog"], 30)
    time = np.arange(32)
    values = np.sin(time * np.where(labels == "leak", 0.2, 0.7)[:, None, None]) + rng.normal(0, 0.2, (60, 1, 32))
    if copied:
        values[20] = values[0]
    content = {"values": values, "label": labels, "group": np.array([f"run {k // 2}" for k in range(60)])}
    parts = {"queries": slice(0, 16), "corpus": slice(16, 60)}
    arrays: dict[str, Any] = {
        f"{name}_{key}": array[own] for name, own in parts.items() for key, array in content.items()
    }
    np.savez(path, **arrays)
    return path


def test_a_published_task_is_audited_on_one_page_in_three_forms(tmp_path: Path) -> None:
    path, pages = published_task(tmp_path / "published.npz"), [tmp_path / "page.md", tmp_path / "page.html"]
    done = readbench("data", "verify", str(path), "--out", str(pages[0]), "--out", str(pages[1]))
    assert done.exit_code == 0
    for text in (done.stdout, *(page.read_text() for page in pages)):
        assert "Audit of published (published.npz)" in text
        assert "Hazards: none." in " ".join(text.split())
        assert "Crop point" in text
    assert '<td class="name clean">clean</td>' in pages[1].read_text()
    assert 'id="theme"' in pages[1].read_text()  # the script of every page needs this button
    assert not list((tmp_path / "imported").glob("*/dataset.json"))  # nothing is kept


def test_a_copy_in_the_corpus_fails_it(tmp_path: Path) -> None:
    path = published_task(tmp_path / "published.npz", copied=True)
    told = readbench("data", "verify", str(path), "--json")
    assert told.exit_code == 1
    facts = json.loads(told.stdout)[0]
    assert not facts["sound"]
    assert len(facts["leaks"]["duplicates"]) == 1
    assert {f["name"]: f["verdict"] for f in facts["findings"]}["copies"] == "hazard"


def test_what_cannot_be_audited_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Name a dataset or a ready-made task"):
        readbench("data", "verify")
    with pytest.raises(UsageError, match="holds no ready-made task"):
        readbench("data", "verify", str(tmp_path))
    with pytest.raises(UsageError, match=r"ends with \.md or \.html"):
        readbench("data", "verify", "sim_tanks", "--out", "page.txt")


def test_all_names_the_sources_that_are_at_hand_and_why_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "data" / "skab" / "valve1").mkdir(parents=True)
    (tmp_path / "data" / "skab" / "valve1" / "0.csv").write_text("x")
    path = published_task(tmp_path / "published.npz")
    page = tmp_path / "audit.md"
    done = readbench("data", "verify", "--all", str(path), "--root", str(tmp_path / "data"), "--out", str(page))
    assert done.exit_code == 0
    text = page.read_text()
    assert "readbench data verify --all" in text
    assert "## published.npz" in text
    assert "## Not audited" in text
    assert "\nskab: " in text
