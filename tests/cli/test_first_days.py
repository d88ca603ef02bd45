"""What a new user meets in the first days: folders that stay, files with own methods, a cache with a limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from readbench.benchmark.runs import Plan, run
from readbench.cli import app
from readbench.common.cache import choose_surplus, keep_limit, list_cache, parse_size
from readbench.common.files import require_folder, write_text
from readbench.errors import UsageError

PEAK = '''
from typing import Self

import numpy as np

from readbench import WindowSet, register_retriever


@register_retriever("own_peak", title="Peak", family="distance")
class OwnPeak:
    """Compares the largest excursion of each window."""

    uses_labels = False
    corpus_dependent = False

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        self.peaks_ = self._peaks(corpus)
        return self

    def score(self, queries: WindowSet) -> np.ndarray:
        return -np.abs(self._peaks(queries)[:, None] - self.peaks_)

    def _peaks(self, windows: WindowSet) -> np.ndarray:
        return np.array([np.abs(w.values).max() for w in windows], np.float32)
'''
SMALL = ("--datasets", "sim_ecg", "--rho", "0", "--seed", "0")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("READBENCH_DATA", raising=False)
    return tmp_path


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_a_run_without_a_folder_never_writes_over_another(here: Path) -> None:
    first = typed("run", *SMALL, "--methods", "random", "--methods", "stats")
    assert first.exit_code == 0
    kept = (here / "runs" / "quick" / "scores.csv").read_bytes()
    other = typed("run", *SMALL, "--methods", "random")
    assert "runs/quick holds another run. This run is written to runs/quick-2." in other.stderr
    assert (here / "runs" / "quick" / "scores.csv").read_bytes() == kept
    again = typed("run", *SMALL, "--methods", "random")
    assert "goes to runs/quick-2" in again.stderr
    assert "0 cells computed, 1 already there" in again.stderr
    same = typed("run", *SMALL, "--methods", "random", "--methods", "stats")
    assert "0 cells computed, 2 already there" in same.stderr
    assert "another run" not in same.stderr


def test_a_named_folder_with_another_run_is_said_so(here: Path) -> None:
    typed("run", *SMALL, "--methods", "random", "--out", "mine")
    (here / "mine" / "run.json").write_text("{")
    told = typed("run", *SMALL, "--methods", "stats", "--out", "mine")
    assert "mine holds another run. Its cells are kept" in told.stderr
    assert told.exit_code == 0


@pytest.mark.parametrize(
    "options", [("--method", "random", "--dataset", "sim_ecg"), ("--methods", "random", "--datasets", "sim_ecg")]
)
def test_one_and_many_are_the_same_option(here: Path, options: tuple[str, ...]) -> None:
    assert typed("run", *options, "--rho", "0", "--seed", "0", "--out", "run").exit_code == 0
    assert (here / "run" / "scores.csv").exists()


def test_datasets_may_be_repeated_or_separated_by_commas() -> None:
    for options in (("--dataset", "sim_ecg", "--dataset", "sim_tanks"), ("--datasets", "sim_ecg,sim_tanks")):
        done = typed("run", *options, "--methods", "random", "--rho", "0", "--seed", "0", "--out", "run")
        assert "2 cells computed" in done.stderr or "2 already there" in done.stderr


@pytest.mark.parametrize("place", ["before the command", "after it"])
def test_a_file_with_a_method_needs_no_package_also_in_other_processes(here: Path, place: str) -> None:
    (here / "own_peak.py").write_text(PEAK)
    arguments = ["run", *SMALL, "--method", "own_peak", "--method", "random", "--jobs", "2", "--out", "run"]
    plugin = ["--plugin", "own_peak.py"]
    line = [*plugin, *arguments] if place == "before the command" else [*arguments, *plugin]
    done = subprocess.run([sys.executable, "-m", "readbench", *line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Peak" in done.stdout
    assert "2 cells computed" in done.stderr


def test_a_file_that_is_named_like_a_module_is_refused(here: Path) -> None:
    (here / "json.py").write_text(PEAK)
    with pytest.raises(UsageError, match="has the name of another module, json"):
        typed("list", "methods", "--plugin", "json.py")


def test_our_whole_methods_and_the_suites_are_told() -> None:
    methods = {fact["name"]: fact for fact in json.loads(typed("list", "methods", "--json").stdout)}
    assert methods["ours"]["stands_for"] == "sonde(size=small)|ws(alpha=0.7)|rocket+nr"
    assert methods["flagship"]["kind"] == "whole method"
    shown = typed("list", "methods").stdout
    assert "flagship-pool" in shown
    assert "label-free" in typed("run", "--help").stdout


def test_sizes_that_depend_on_files_are_not_told_as_none() -> None:
    rows = {line.split("│")[1].strip(): line for line in typed("list", "datasets").stdout.splitlines() if "│" in line}
    assert "varies" in rows["rats40k"]
    assert "None" not in "".join(rows.values())
    assert [part.strip() for part in rows["ctsr"].split("│")][6] == "varies"  # faults


def test_a_damaged_score_in_the_cache_is_computed_again(here: Path) -> None:
    plan = Plan(("sim_ecg",), ("euclidean",), seeds=(0,), levels=(0,))
    run(plan, here / "one", cache=here / "cache")
    (scores,) = (here / "cache" / "scores").glob("*.npz")
    whole = scores.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"\0" * 1000):
        scores.write_bytes(damaged)
        other = here / f"run-{len(damaged)}"
        assert not run(plan, other, cache=here / "cache").failures
        assert (other / "per_query.parquet").read_bytes() == (here / "one" / "per_query.parquet").read_bytes()
        assert scores.stat().st_size == len(whole)


def test_damaged_vectors_in_the_cache_are_computed_again(here: Path) -> None:
    plan = Plan(("sim_ecg",), ("rocket(features=504)",), seeds=(0,), levels=(0,))
    run(plan, here / "one", cache=here / "cache")
    for scores in (here / "cache" / "scores").glob("*"):
        scores.unlink()
    blocks = sorted((here / "cache" / "embeddings").rglob("*.npz"))
    blocks[0].write_bytes(blocks[0].read_bytes()[:500])
    assert not run(plan, here / "two", cache=here / "cache").failures
    assert (here / "two" / "per_query.parquet").read_bytes() == (here / "one" / "per_query.parquet").read_bytes()


def test_a_damaged_cell_is_computed_again(here: Path) -> None:
    plan = Plan(("sim_ecg",), ("random", "stats"), seeds=(0,), levels=(0,))
    run(plan, here / "run")
    table = (here / "run" / "per_query.parquet").read_bytes()
    cell = min((here / "run" / "cells").rglob("*.parquet"))
    cell.write_bytes(cell.read_bytes()[:200])
    (here / "run" / "per_query.parquet").write_bytes(b"PAR1")
    summary = run(plan, here / "run")
    assert (summary.computed, summary.reused, summary.failures) == (1, 1, [])
    assert (here / "run" / "per_query.parquet").read_bytes() == table


def fill_cache(root: Path) -> list[Path]:
    """Three entries of 1000 bytes, the first one used longest ago; and what a language model has cost."""
    paths = [root / "scores" / "a.npz", root / "embeddings" / "rocket" / "b.npz", root / "windows" / "set" / "part"]
    for age, path in zip((30, 20, 10), paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
        for own in (path, *([path.parent] if "windows" in path.parts else [])):
            os.utime(own, (time.time() - age * 86_400,) * 2)
    write_text(root / "llm" / "spent" / "model.json", "{}")
    return paths


def test_the_cache_is_cut_to_a_size_by_what_was_used_longest_ago(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(here))
    oldest, middle, newest = fill_cache(here)
    assert [own.kind for own in list_cache()] == ["scores", "embeddings", "windows"]
    assert sum(own.size for own in choose_surplus(list_cache(), 2500)) == 1000
    typed("cache", "--prune", "--most", "2.5kB")
    assert [path.exists() for path in (oldest, middle, newest)] == [False, True, True]
    typed("cache", "--prune")
    assert not middle.exists()
    assert (here / "llm" / "spent" / "model.json").exists()


def test_a_limit_in_the_environment_spares_what_is_in_use(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(here))
    paths = fill_cache(here)
    assert keep_limit() == 0
    monkeypatch.setenv("READBENCH_CACHE_GB", "0")
    os.utime(paths[2])
    assert keep_limit() == 2000
    assert [path.exists() for path in paths] == [False, False, True]
    monkeypatch.setenv("READBENCH_CACHE_GB", "much")
    with pytest.raises(UsageError, match="READBENCH_CACHE_GB takes a number"):
        keep_limit()


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2XB", "1 2"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A size is a number"):
        parse_size(text)


def test_a_forgotten_time_column_is_hinted_at(here: Path) -> None:
    lines = [
        f"{step / 2},{fault},{run},{(step * (2 + run)) % 11}"
        for run, fault in enumerate(("leak", "leak", "leak", "stuck", "stuck", "stuck", "normal", "normal"))
        for step in range(32)
    ]
    (here / "pumps.csv").write_text("\n".join(["clock,fault,run,flow", *lines]))
    command = (
        "data",
        "import",
        "pumps",
        "pumps.csv",
        "--label",
        "fault",
        "--group",
        "run",
        "--window",
        "16",
        "--dry-run",
    )
    told = "'clock' rises with every row. If it is the time, say so: --time 'clock'."
    assert told in typed(*command).stdout
    assert told not in typed(*command, "--time", "clock").stdout


def test_history_says_what_changed(here: Path) -> None:
    pytest.importorskip("lancedb", reason="needs lancedb: pip install 'readbench[cases]'")
    from tests.cases.samples import filled  # noqa: PLC0415 - needs lancedb

    library = filled(here / "plant", 4)
    library.label("w1", "worn seal")
    library.edit("w2", notes="Valve replaced.", tags=("urgent",))
    library.undo()
    library.label("w1", None)
    library.delete(["w3"])
    told = {own.number: own.detail for own in library.ask("history", limit=100)}
    first = max(told) - 4
    assert told[first] == "w1: label stuck valve -> worn seal"
    assert told[first + 1] == "w2: notes, tags"
    assert told[first + 3] == "w1: label worn seal -> none"
    assert told[first + 4] == "w3"
    assert "and 1 more" in " ".join(told.values())
    assert "label stuck valve -> worn seal" in " ".join(typed("cases", "history", "plant").stdout.split())


def test_a_folder_is_tried_before_work_begins(here: Path) -> None:
    (here / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        require_folder(here / "file")
    np.testing.assert_equal(len(list(here.iterdir())), 1)
