"""Vectors first: the same bytes, and nothing left to encode for the cells."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from readbench.benchmark.runs import Local, Processes, Setting, encode_first, run
from readbench.benchmark.runs._execute import load_cell_task
from readbench.common.progress import SILENT
from readbench.engine.encoders import _raw as raw
from tests.benchmark.runs.helpers import assert_same_results, small_plan

PLAN = small_plan(methods=("raw+nr", "raw|stats"))


def vectors(cache: Path) -> dict[str, bytes]:
    """Files of vectors by name."""
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("embeddings/*/*.npz")}


def refuse(*_: object) -> NoReturn:
    raise AssertionError("encoded again")


def test_vectors_first_are_those_of_the_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(PLAN, tmp_path / "plain", cache=tmp_path / "one")
    setting = Setting.of(PLAN, tmp_path / "first", cache=tmp_path / "two")
    count = encode_first(list(PLAN.jobs()), setting, Processes(2), SILENT)
    task, _ = load_cell_task("sim_tanks", 7, setting)
    assert count == len({*task.corpus.ids, *task.normals.ids, *task.queries.ids})
    assert vectors(tmp_path / "one") == vectors(tmp_path / "two")
    monkeypatch.setattr(raw.Raw, "encode_batch", refuse)
    assert not run(PLAN, tmp_path / "first", cache=tmp_path / "two").failures
    assert_same_results(tmp_path / "plain", tmp_path / "first")


def test_what_cannot_be_encoded_fails_its_own_cells_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw.Raw, "encode_batch", refuse)
    plan = small_plan(methods=("raw", "stats"), levels=(0,))
    setting = Setting.of(plan, tmp_path / "run", cache=tmp_path / "cache")
    assert encode_first(list(plan.jobs()), setting, Local(), SILENT) == 0
    summary = run(plan, tmp_path / "run", cache=tmp_path / "cache")
    assert [report.cell.method for report in summary.failures] == ["raw"]
    assert "encoded again" in summary.failures[0].failure
