"""`readbench data status | fetch | import | export` as a user runs them, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from readbench.benchmark.exchange import OFFICIAL, Extent, Official, RemoteFile
from readbench.cli import app
from readbench.errors import ReadbenchError, UsageError
from tests.benchmark.exchange.server import Site, serving
from tests.benchmark.exchange.tables import onset_rows, rows, write_cases, write_wide
from tests.benchmark.exchange.test_divided import archive, arrays


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path / "imported"))
    monkeypatch.delenv("READBENCH_DATA", raising=False)


def readbench(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def refused(*arguments: str) -> ReadbenchError:
    with pytest.raises(ReadbenchError) as error:
        readbench(*arguments)
    return error.value


@pytest.mark.parametrize("command", ["status", "fetch", "import", "export"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    done = readbench("data", command, "--help")
    assert done.exit_code == 0
    assert "Example:" in done.stdout


def test_status_tells_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "skab" / "valve1").mkdir(parents=True)
    (tmp_path / "skab" / "valve1" / "0.csv").write_text("x")
    done = readbench("data", "status", "--json", "--root", str(tmp_path))
    facts = {fact["name"]: fact for fact in json.loads(done.stdout)}
    assert facts["skab"]["state"] == "partial"
    assert facts["skab"]["found"] == "1 of 35 experiments"
    assert facts["hai"]["state"] == "absent"
    assert facts["hai"]["verified"] is False
    assert facts["mit_bih"]["get"] == "fetch"
    assert "1 of 35 experiments" in readbench("data", "status", "--root", str(tmp_path)).stdout


def test_a_licence_is_shown_and_must_be_accepted(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["data", "fetch", "skab", "--root", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert "--accept-licence" in str(done.exception)
    assert "Licence: GPL-3.0" in done.stdout
    assert "35 files, 4" in done.stdout
    assert "checksums: known" in done.stdout
    assert not list(tmp_path.glob("skab"))


def test_what_needs_a_login_gets_instructions(tmp_path: Path) -> None:
    done = readbench("data", "fetch", "ctsr", "--root", str(tmp_path))
    assert done.exit_code == 0
    assert "password" in done.stdout
    assert str(tmp_path / "ctsr") in done.stdout
    assert "nothing to fetch" in str(refused("data", "fetch", "sim_tanks", "--root", str(tmp_path)))
    assert "No data root" in str(refused("data", "fetch", "skab"))


def test_files_come_into_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site({"lp1.data": b"x", "lp2.data": b"y"})) as site:
        files = tuple(RemoteFile(site.url(name), name) for name in site.content)
        monkeypatch.setitem(OFFICIAL, "robot_failures", Official((Extent(("lp*.data",), 2, "files"),), files))
        command = ("data", "fetch", "robot_failures", "--accept-licence", "--root", str(tmp_path))
        assert "2 files fetched" in readbench(*command).stdout
        assert "is complete: 2 files" in readbench(*command).stdout
    assert (tmp_path / "robot_failures" / "lp2.data").read_bytes() == b"y"


def test_tables_become_a_dataset_that_runs(tmp_path: Path) -> None:
    columns = ("--time", "t", "--label", "fault", "--group", "run", "--asset", "plant", "--window", "16")
    command = ("data", "import", "mine", str(write_wide(tmp_path / "runs.csv", rows())), *columns)
    tried = readbench(*command, "--dry-run")
    assert "54 windows of 2 channels" in tried.stdout
    assert "Nothing was imported" in tried.stdout
    assert "Unknown dataset" in str(refused("data", "describe", "mine"))
    assert "readbench run --datasets mine" in readbench(*command).stdout
    done = readbench("run", "--datasets", "mine", "--methods", "stats", "--rho", "0", "--out", str(tmp_path / "run"))
    assert done.exit_code == 0
    listed = {fact["name"]: fact for fact in json.loads(readbench("list", "datasets", "--json").stdout)}
    assert listed["mine"]["origin"] == "imported"
    assert "is there already" in str(refused(*command))


def test_one_file_per_case_becomes_a_dataset(tmp_path: Path) -> None:
    cases = write_cases(tmp_path / "cases", rows())
    done = readbench("data", "import", "incidents", "--cases", str(cases), "--time", "t")
    assert "18 tables, wide" in done.stdout
    assert "18 windows of 2 channels and 32 steps, from 18 groups and 4 known assets" in done.stdout


def test_a_ready_made_task_runs_with_any_method(tmp_path: Path) -> None:
    path = archive(tmp_path / "task.npz", arrays())
    assert "20 corpus items, 4 queries, 40 normals" in readbench("data", "import", "ready", str(path)).stdout
    methods = ("--methods", "dtw-i", "--methods", "rocket(features=84)+nr|euclidean+gpc")
    done = readbench("run", "--datasets", "ready", *methods, "--seed", "0", "--out", str(tmp_path / "run"))
    assert done.exit_code == 0
    assert "6 cells computed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "skab", "a.csv"), "is the name of a dataset of readbench"),
        (("import", "mine", "none.csv"), "no such file or folder"),
        (("import", "mine"), "Give either tables and folders"),
        (("import", "mine", "a.csv", "--label", "folt"), "Did you mean 'fault'"),
        (("import", "mine", "a.csv", "--channel", "flow"), "needs both"),
        (("import", "mine", "task.npz", "--label", "fault"), "Leave out the options for columns"),
        (("import", "mine", "a.csv", "--unit", "flow"), "--unit takes a channel and its unit"),
        (("import", "mine", "a.csv", "--onset", "begin"), "Unknown column of a.csv 'begin'"),
        (("import", "mine", "task.npz", "--onset", "began"), "Leave out the options for columns"),
        (("export", "sim_tonks"), "Did you mean 'sim_tanks'"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    write_wide(tmp_path / "a.csv", rows(1))
    np.savez(tmp_path / "task.npz", queries_values=np.zeros((1, 1, 2)))
    command, *others = arguments
    there = [str(tmp_path / text) if "." in text else text for text in others]
    assert message in str(refused("data", command, *there))


def test_a_task_goes_out_and_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = readbench("data", "export", "sim_ecg(runs=80)", "--format", "beir", "--out", str(out))
    fingerprint = done.stdout.split()[-1]
    done = readbench("data", "import", "back", str(out))
    assert "Exported from sim_ecg, split seed 0" in done.stdout
    facts = json.loads(readbench("data", "describe", "back", "--json").stdout)
    told = json.loads((out / "task.json").read_text())
    assert (told["made_from"], told["fingerprint"]) == (fingerprint, facts["fingerprint"])


def fingerprint_of(name: str) -> str:
    found: str = json.loads(readbench("data", "describe", name, "--json").stdout)["fingerprint"]
    return found


@pytest.mark.parametrize("form", ["hf", "beir"])
def test_a_table_with_an_onset_goes_in_out_and_in_again(tmp_path: Path, form: str) -> None:
    write_wide(tmp_path / "runs.csv", onset_rows())
    columns = ("--time", "t", "--label", "fault", "--group", "run", "--asset", "plant", "--onset", "began")
    context = ("--fact", "speed", "--unit", "flow=m3/h", "--unit", "heat=K")
    done = readbench("data", "import", "told", str(tmp_path / "runs.csv"), *columns, *context, "--window", "16")
    assert "Context: the time before 36 of 42 windows (16 to 32 steps); rate 1 Hz; units: K, m3/h" in done.stdout
    done = readbench("data", "export", "told", "--format", form, "--out", str(tmp_path / "out"), "--private")
    fingerprint = done.stdout.split()[-1]
    assert fingerprint == fingerprint_of("told")
    assert "Context: the time before" in readbench("data", "import", "back", str(tmp_path / "out")).stdout
    told = json.loads((tmp_path / "out" / "task.json").read_text())
    assert (told["made_from"], told["fingerprint"]) == (fingerprint, fingerprint_of("back"))


def test_a_table_that_nobody_told_about_has_the_windows_that_it_had(tmp_path: Path) -> None:
    """Without times and onset, in cases with one label each: nothing of it is context."""
    content = [
        {"run": f"R{run}", "fault": fault, "flow": (run * 7 + step * step) % 23, "heat": step % 5}
        for run, fault in enumerate(["normal", "leak", "jam"] * 6)
        for step in range(16)
    ]
    write_wide(tmp_path / "runs.csv", content)
    readbench("data", "import", "plain", str(tmp_path / "runs.csv"), "--label", "fault", "--group", "run")
    assert fingerprint_of("plain") == "d6a582419221d990"
