"""Whole runs against the loopback: exact rankings, resuming after a kill, and what the results say."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from readbench.benchmark.report import (
    Declared,
    TableStudy,
    method_tables,
    overview,
    paper_tables,
    rank_submissions,
    read_results,
    write_bundle,
    write_standings,
)
from readbench.benchmark.report.site import write_site
from readbench.benchmark.runs import Plan, run
from tests.engine.llm.conftest import Configure
from tests.engine.llm.server import Answered, Asked, serving
from tests.engine.llm.test_rerank import backwards

POOL = 4
LIST = f"euclidean+llm(model=m,pool={POOL},channels=2,points=16)"
BASE = "euclidean"
CLASSIFY = "classify(model=m,channels=2,points=16)"


def plan(*datasets: str, methods: tuple[str, ...] = (BASE, LIST)) -> Plan:
    return Plan(datasets=datasets, methods=methods, seeds=(0,), levels=(0,))


def rankings(folder: Path, dataset: str) -> dict[str, dict[str, list[str]]]:
    """Method -> query -> items from the best on."""
    rows = pq.read_table(folder / "rankings" / f"{dataset}.parquet").to_pylist()
    found: dict[str, dict[str, list[str]]] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        found.setdefault(row["method"], {}).setdefault(row["query"], []).append(row["item"])
    return found


def usage(folder: Path) -> dict[str, float]:
    with (folder / "usage.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["what"]: float(row["value"]) for row in rows}


def assert_backwards(folder: Path, dataset: str) -> None:
    found = rankings(folder, dataset)
    assert found[LIST]
    for query, items in found[BASE].items():
        assert found[LIST][query] == items[:POOL][::-1] + items[POOL:]


def statuses(folder: Path) -> set[str]:
    with (folder / "scores.csv").open(newline="") as file:
        return {row["status"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "openai"])
def test_a_run_over_two_simulated_datasets_gives_the_rankings_that_the_model_gave(
    provider: str, configure: Configure, tmp_path: Path
) -> None:
    with serving(backwards) as loopback:
        configure("m", provider=provider, base_url=loopback.base(provider), images="none")
        run(plan("sim_tanks", "sim_ecg"), tmp_path / "run")
        assert len(loopback.asked) == 200
        assert all("Dataset context" in json.dumps(asked.body) for asked in loopback.asked)
    assert statuses(tmp_path / "run") == {"ok"}
    for dataset in ("sim_tanks", "sim_ecg"):
        assert_backwards(tmp_path / "run", dataset)
    assert usage(tmp_path / "run")["calls"] == 100


def test_a_model_that_fails_fails_its_own_cells_and_says_why(configure: Configure, tmp_path: Path) -> None:
    with serving(lambda _: Answered(status=401, raw=b"who are you?")) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, images="none")
        summary = run(plan("sim_ecg"), tmp_path / "run")
    assert (summary.computed, len(summary.failures)) == (1, 1)
    assert "status 401: who are you?" in summary.failures[0].failure


@pytest.mark.parametrize(
    ("share", "method"), [(0.04, LIST), (0.3, LIST), (0.6, LIST), (0.6, CLASSIFY), (0.3, CLASSIFY)]
)
def test_unanswered_questions_are_marked_everywhere_and_fail_the_cell_where_most_are(
    share: float, method: str, configure: Configure, tmp_path: Path
) -> None:
    answered = iter(range(1000))

    def model(asked: Asked) -> Answered:
        if next(answered) % 100 < 100 * share:
            return Answered("I cannot help", stop="refusal")
        return Answered('{"scores": {"1": 5}}') if "EXAMPLE 1" in asked.text else backwards(asked)

    with serving(model) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, images="none", concurrency=1)
        summary = run(plan("sim_ecg", methods=(BASE, method)), tmp_path / "run")
        assert len(loopback.asked) == 100
    assert usage(tmp_path / "run")["refusal"] == usage(tmp_path / "run")["given_up"] == 100 * share
    results = read_results(tmp_path / "run")
    if share > 0.5:
        assert "no readable answer to 60 of 100 questions (refusal 60)" in summary.failures[0].failure
        return
    mark = {0.04: "[4% unanswered]", 0.3: "[! 30% unanswered]"}[share]
    assert not summary.failures
    assert results.title(method).endswith(mark)
    assert results.title(BASE) == "ED"
    shown = [*overview(results).tables, *paper_tables(TableStudy(results)), *method_tables(TableStudy(results))]
    judged = [table for table in shown if not table.name.startswith("settings-")]  # those speak of parts, not of runs
    named = [table for table in judged if "LLM" in table.markdown() or "Classify" in table.markdown()]
    assert {"leaderboard", "datasets", "answers", "language-models"} <= {table.name for table in named}
    assert all(mark in table.markdown() for table in named)
    assert mark in write_site(tmp_path / "run", tmp_path / "site").read_text()
    bundle = write_bundle(results, Declared(name="one", trained_on=()), tmp_path / "one.readbench.zip")
    board = write_standings(rank_submissions([bundle]), tmp_path / "board")
    assert all(mark in path.read_text() for path in board if path.suffix in (".md", ".html"))
    assert ("have no answer" in (tmp_path / "board" / "leaderboard.md").read_text()) == (share > 0.05)


def test_a_model_that_is_not_configured_fails_its_own_cells_and_says_what_to_do(tmp_path: Path) -> None:
    summary = run(plan("sim_ecg"), tmp_path / "run")
    assert (summary.computed, len(summary.failures)) == (1, 1)
    assert "READBENCH_LLM" in summary.failures[0].failure


def test_other_prompts_and_another_model_compute_the_cell_again(configure: Configure, tmp_path: Path) -> None:
    with serving(backwards) as loopback:
        for model, computed in (("a", 2), ("a", 0), ("b", 1)):
            configure("m", provider="anthropic", base_url=loopback.url, images="none", model=model)
            assert run(plan("sim_ecg"), tmp_path / "run").computed == computed


def test_a_killed_run_pays_for_no_answer_twice(configure: Configure, own_cache: Path, tmp_path: Path) -> None:
    enough, gate = threading.Event(), threading.Event()

    def model(asked: Asked) -> Answered:
        if len(loopback.asked) > 40:
            enough.set()
            gate.wait(60)
        return backwards(asked)

    with serving(model) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, images="none", concurrency=2)
        options = ["--datasets", "sim_ecg", "--methods", BASE, "--methods", LIST, "--rho", "0", "--seed", "0"]
        command = [sys.executable, "-m", "readbench", "run", *options, "--out", str(tmp_path / "run")]
        process = subprocess.Popen(command, env=os.environ | {"READBENCH_CACHE": str(own_cache)})
        assert enough.wait(120)
        process.kill()
        process.wait()
        gate.set()
        paid = len(list((own_cache / "llm" / "answers").rglob("*.json")))
        assert 38 <= paid < 100
        before = len(loopback.asked)
        loopback.script = backwards
        run(plan("sim_ecg"), tmp_path / "run")
        assert len(loopback.asked) - before == 100 - paid
    assert_backwards(tmp_path / "run", "sim_ecg")
    assert usage(tmp_path / "run")["calls"] == 100
