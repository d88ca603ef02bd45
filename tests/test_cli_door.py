"""The door opens at once: help, version and wrong options cost little, and import nothing that computes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from readbench import cases
from readbench.benchmark import exchange as exported, protocol as data, runs as executors, runs as experiment
from readbench.benchmark.protocol import _source as data_source
from readbench.benchmark.report import _bundle as bundle
from readbench.benchmark.runs import _plan as shard, _suites as suites
from readbench.cases import Library
from readbench.cli import app, catalogue, options
from readbench.cli.former import FORMER, IN_A_CHECKOUT
from readbench.common.times import TimeUnit
from readbench.engine.spec import COMPOSED
from readbench.errors import UsageError

MOST_TIMES = 10
"""CPU time of the user against that of importing the library of the command line alone, by the same interpreter."""
SLOW = ("scipy", "matplotlib", "numba", "sklearn", "pyarrow", "numpy", "onnxruntime", "readbench.benchmark.protocol")
"""What a door must not import; `readbench.benchmark.protocol` are the simulators too."""
CHILD = """
import atexit, json, os, sys
out = open(sys.argv.pop(1), "w")
atexit.register(lambda: json.dump({"cpu": os.times().user, "modules": list(sys.modules)}, out))
from readbench.cli import main
main()
"""
PEER = "import os, typer, rich.console; print(os.times().user)"


def opened(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code of a call, and what it took."""
    told = tmp_path / "told.json"
    done = subprocess.run([sys.executable, "-c", CHILD, told, *arguments], capture_output=True, check=False)
    facts: dict[str, Any] = json.loads(told.read_text())
    return done.returncode, facts


@pytest.fixture(scope="module")
def peer_s() -> float:
    """CPU seconds of importing typer and rich, without anything of ours."""
    call = [sys.executable, "-c", PEER]
    return min(float(subprocess.run(call, capture_output=True, check=True).stdout) for _ in range(3))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("--version",), 0),
        (("run", "--help"), 0),
        (("cases", "--help"), 0),
        (("data", "--help"), 0),
        (("data", "import", "--help"), 0),
        (("nonsense",), 2),
        (("run", "--nonsense"), 2),
        (("run", "--jobs", "none"), 2),
        (("run", "--rho", "ten"), 2),
        (("run", "--cap", "0"), 2),
        (("run", "--methods", "euclidian"), 2),
        (("run", "--datasets", "sim_tank"), 2),
        (("cases", "search"), 2),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else f"exits with {given}",
)
def test_what_needs_no_work_is_answered_at_once(
    tmp_path: Path, peer_s: float, arguments: tuple[str, ...], code: int
) -> None:
    for _ in range(3):  # on a busy machine the same work takes longer at times
        found, facts = opened(tmp_path, *arguments)
        assert found == code
        assert not {name for name in facts["modules"] if name in SLOW}
        if facts["cpu"] < MOST_TIMES * peer_s:
            break
    assert facts["cpu"] < MOST_TIMES * peer_s


EVERY = """
import sys
from functools import cache
from typer import testing
from readbench.cli import app
vars(testing)["_get_command"] = cache(vars(testing)["_get_command"])  # all commands are built at each call otherwise
for line in sys.stdin.read().splitlines():
    for option, code in (("--help", 0), ("--no-such-option", 2)):
        done = testing.CliRunner().invoke(app, [*line.split(), option])
        assert done.exit_code == code, (line, option, done.output)
found = {name for name in sys.modules if name in %r}
assert not found, found
"""


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - typer's own classes
    """Every command and group, as it is typed."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from verbs(below, (*path, name))


def test_no_verb_imports_what_computes_before_it_runs() -> None:
    lines = [" ".join(path) for path in verbs(typer.main.get_command(app))]
    assert len(lines) > 40
    done = subprocess.run(
        [sys.executable, "-c", EVERY % (SLOW,)], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_version_is_told() -> None:
    done = subprocess.run([sys.executable, "-m", "readbench", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "readbench"
    assert done.stdout.split()[1][0].isdigit()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (options.ExecutorName, executors.ExecutorName),
        (options.SplitUnit, data_source.SplitUnit),
        (options.Form, exported.Form),
        (options.TimeUnit, TimeUnit),
        (options.LabelRule, data_source.LabelRule),
        (options.Missing, data_source.Missing),
        (options.BeforeRule, data_source.BeforeRule),
        (options.Domain, data_source.Domain),
    ],
    ids=lambda words: "/".join(get_args(words)),
)
def test_options_offer_what_the_rooms_take(ours: object, theirs: object) -> None:
    assert get_args(ours) == get_args(theirs) != ()


def test_defaults_are_those_of_the_rooms() -> None:
    assert list(options.SUITES) == list(suites.SUITES)
    assert list(options.SWEEPS) == list(suites.SWEEPS)
    assert list(catalogue.COMPOSED_SUMMARIES) == list(COMPOSED)
    assert options.LIBRARY_METHOD == cases.DEFAULT_METHOD
    assert options.numbers(options.DEFAULT_SEEDS, "--seeds") == experiment.DEFAULT_SEEDS
    assert shard.parse_shard(options.WHOLE_RUN) == shard.WHOLE
    assert options.SUBMISSION_SUFFIX == bundle.SUFFIX
    assert options.MAX_SEED == data.MOST_SEED
    assert data.Composition().split_by == get_args(options.SplitUnit)[0]


@pytest.mark.parametrize("name", [*FORMER, *IN_A_CHECKOUT])
def test_a_former_command_answers_with_the_present_one(name: str) -> None:
    with pytest.raises(UsageError, match=f"^readbench {name} is now") as told:
        CliRunner().invoke(app, [*name.split(), "plant", "desk"], catch_exceptions=False)
    now = str(told.value).removesuffix(".").partition("readbench ")[2].partition(": ")[2]
    command = typer.main.get_command(app)
    for word in now.removeprefix("readbench ").split()[:2] if name in FORMER else ():
        command = getattr(command, "commands", {}).get(word, command)
    assert name in IN_A_CHECKOUT or not hasattr(command, "commands")


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("run --merge a --rho 3 --out b", "--rho does not apply to --merge"),
        ("leaderboard . --rerun 2", "--rerun does not apply to a leaderboard without --check"),
        ("leaderboard . --check --out b", "--out does not apply to --check"),
        ("submit a --rows b --name c", "--name does not apply to --rows"),
        ("submit a --partly", "--partly does not apply to a submission without --rows"),
        ("report a --trec b --metric HR@1", "--metric does not apply to --trec"),
        ("cases list a --counts --tag b", "--tag does not apply to --counts"),
        ("cases review a --pairs 3", "--pairs does not apply to --what next"),
        ("cases optimise a --jobs 2", "--jobs does not apply to optimise without --warm"),
        ("cases init a --cases 3", "--cases does not apply to init without --demo"),
        ("cases key a --role admin", "--role does not apply to the list of keys"),
        ("cases key a desk --remove --role admin", "--role does not apply to --remove"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(command: str, refused: str, tmp_path: Path) -> None:
    library = str(tmp_path / "plant")
    if command.startswith("cases"):
        pytest.importorskip("lancedb", reason="needs lancedb: pip install 'readbench[cases]'")
        Library.create(library)
    words = [library if word == "a" and command.startswith("cases") else word for word in command.split()]
    with pytest.raises(UsageError, match=refused):
        CliRunner().invoke(app, words, catch_exceptions=False)
