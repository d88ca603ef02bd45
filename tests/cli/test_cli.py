from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from readbench.cli.report import _find_documents
from tests import warm

COMMANDS = [
    "run",
    "report",
    "study",
    "list",
    "submit",
    "leaderboard",
    "bench",
    "cache",
    "doctor",
    "data build",
    "data describe",
    "data verify",
]


def readbench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*warm.readbench(), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "small"
    options = ("--datasets", "sim_tanks", "--methods", "euclidean,random", "--methods", "stats", "--rho", "0,20")
    done = readbench("run", *options, "--seed", "7", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    assert "NDCG@10 over 1 dataset (simulated by us‡)" in done.stdout
    assert "6 cells computed" in done.stderr
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    done = readbench(*command.split(), "--help")
    assert done.returncode == 0
    assert "Example:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "--methods", "euclidian"), "Did you mean 'euclidean'?"),
        (("run", "--datasets", "sim_tank"), "Did you mean 'sim_tanks'"),
        (("run", "--suite", "quik"), "Did you mean 'quick'?"),
        (("run", "--methods", "euclidean(nrom=none)"), "Did you mean 'norm'?"),
        (("run", "--methods", "euclidean(norm=all)"), "The 'norm' parameter of euclidean must be one of"),
        (("run", "--methods", "euclidean("), "expected a value"),
        (("run", "--seed", "1", "--seeds", "1,2"), "either --seed or --seeds"),
        (("run", "--rho", "ten"), "--rho takes whole numbers"),
        (("run", "--cap", "0"), "--cap takes a positive number"),
        (("run", "--label-budget", "few"), "A label budget is a number of labels a query"),
        (("run", "--label-budget", "5,10%"), "not both"),
        (("data", "build", "sim_tonks"), "Did you mean 'sim_tanks'"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_right(arguments: tuple[str, ...], expected: str) -> None:
    done = readbench(*arguments)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_report_writes_markdown_and_csv(finished_run: Path) -> None:
    done = readbench("report", str(finished_run))
    assert done.returncode == 0, done.stderr
    page = (finished_run / "report" / "leaderboard.md").read_text()
    assert "| ED | none |" in page
    assert "simulated" in page
    table = (finished_run / "report" / "tables" / "leaderboard.csv").read_text()
    assert table.startswith("Method,Labels,ρ=0%,ρ=20%,Rank")


def test_a_run_over_label_budgets_says_what_it_leaves_out_and_is_reported_with_a_figure(
    tmp_path: Path, finished_run: Path
) -> None:
    options = ("--datasets", "sim_tanks", "--rho", "0", "--seed", "7", "--label-budget", "0,10", "--out", str(tmp_path))
    suite = readbench("run", "--suite", "classical", *options)
    assert suite.returncode == 0, suite.stderr
    told, _, _ = " ".join(suite.stderr.split()).partition("cells computed")
    assert "skipped: majority: majority learns from the labels of the whole corpus" in told
    methods = readbench("run", "--methods", "euclidean,euclidean+majvote", *options)
    assert "2 cells computed, 1 already there, 0 failed" in methods.stderr
    done = readbench("report", str(tmp_path))
    assert "known labels a query" in " ".join(done.stdout.split())
    assert (tmp_path / "report" / "figures" / "budgets.png").exists()
    assert (tmp_path / "report" / "tables" / "budgets.csv").read_text().startswith("Method,0,10\n")
    done = readbench("report", str(finished_run), "--with", str(tmp_path), "--out", str(tmp_path / "both"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "both" / "figures" / "budgets.png").exists()
    assert 'id="figure-budgets"' in (tmp_path / "both" / "index.html").read_text()


def test_report_of_something_else_says_what_to_do(tmp_path: Path) -> None:
    done = readbench("report", str(tmp_path))
    assert done.returncode == 1
    assert "is not a run folder" in done.stderr
    assert "readbench run" in done.stderr


def test_running_again_computes_nothing(finished_run: Path) -> None:
    options = ("--datasets", "sim_tanks", "--methods", "euclidean,random,stats", "--rho", "0,20", "--seed", "7")
    done = readbench("run", *options, "--out", str(finished_run))
    assert "0 cells computed, 6 already there" in done.stderr


def test_catalogues_are_readable_by_programs() -> None:
    methods = {fact["name"]: fact for fact in json.loads(readbench("list", "methods", "--json").stdout)}
    assert methods["euclidean"]["aliases"] == ["ed"]
    datasets = {fact["name"]: fact for fact in json.loads(readbench("list", "datasets", "--json").stdout)}
    assert datasets["sim_tanks"]["data_origin"] == "simulated by us"


def test_describe_shows_the_composition() -> None:
    facts = json.loads(readbench("data", "describe", "sim_tanks", "--json").stdout)
    assert facts["corpus"] == [1000, 1111, 1250]
    assert facts["queries"] == 100
    assert facts["counts"]["normal"]["queries"] == 0


def test_cache_shows_and_prunes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "a.npz").write_bytes(b"x" * 1000)
    (tmp_path / "windows" / "set").mkdir(parents=True)
    (tmp_path / "windows" / "set" / "part").write_bytes(b"x" * 500)
    shown = json.loads(readbench("cache", "--json").stdout)
    assert [(row["kind"], row["entries"], row["bytes"]) for row in shown["kinds"]] == [
        ("scores", 1, 1000),
        ("windows", 1, 500),
    ]
    readbench("cache", "--prune", "--kind", "scores", "--older-than", "1")
    assert (tmp_path / "scores" / "a.npz").exists()
    readbench("cache", "--prune", "--kind", "scores")
    assert not (tmp_path / "scores" / "a.npz").exists()
    assert (tmp_path / "windows" / "set" / "part").exists()
    assert readbench("cache", "--kind", "nothing").returncode == 2


def test_named_methods_are_compared_over_all_split_seeds(tmp_path: Path) -> None:
    done = readbench("run", "--methods", "random", "--datasets", "sim_ecg", "--rho", "0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    seeds = {line.split(",")[1] for line in (tmp_path / "scores.csv").read_text().splitlines()[1:]}
    assert seeds == {"0", "1", "2"}


def test_a_report_in_a_clone_links_to_the_documents_of_the_clone(tmp_path: Path) -> None:
    target = tmp_path / "results" / "report"
    assert not _find_documents(target)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "protocol.md").touch()
    assert _find_documents(target) == "../../docs"
