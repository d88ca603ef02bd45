"""A call of the warm process is like a process of its own: streams, folder, variables, modules and exit code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from readbench import __version__
from tests import warm
from tests.plugins import command_line, install


def called(code: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    (folder / "page.py").write_text(code)
    return subprocess.run(
        [*warm.python(), "page.py", "one", "two words"],
        cwd=folder,
        env=os.environ | given,
        input="said",
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_call_has_its_arguments_streams_folder_and_variables(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv[1:], sys.stdin.read(), os.getcwd(), os.environ['OWN']); sys.exit('said so')"
    done = called(code, tmp_path, OWN="mine")
    assert done.stdout.split("\n")[0] == f"['one', 'two words'] said {tmp_path} mine"
    assert done.stderr == "said so\n"
    assert done.returncode == 1


def test_calls_share_no_state(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.py").write_text("")
    there = called("import mine, readbench; readbench.mark = 1", tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert there.returncode == 0, there.stderr
    assert "No module named 'mine'" in called("import mine", tmp_path).stderr
    assert called("import readbench; assert not hasattr(readbench, 'mark')", tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("code", "expected"), [("raise ValueError('no')", 1), ("import os; os._exit(7)", 7), ("import os; os.abort()", 250)]
)
def test_however_a_call_ends_the_caller_is_told(code: str, expected: int, tmp_path: Path) -> None:
    done = called(code, tmp_path)
    assert done.returncode == expected
    assert ("ValueError: no" in done.stderr) == (expected == 1)


def test_a_call_finds_packages_of_its_own_path(tmp_path: Path) -> None:
    code = "from readbench import register_retriever\n@register_retriever('mine')\nclass Mine: uses_labels = False"
    install(tmp_path / "site", "their-methods", code)
    listed = json.loads(command_line(tmp_path / "site", tmp_path)("list", "methods", "--json").stdout)
    assert {entry["name"]: entry["origin"] for entry in listed}["mine"] == "their-methods 1.2.3"


def test_the_command_is_this_package() -> None:
    done = subprocess.run([*warm.readbench(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"readbench {__version__}"
    wrong = subprocess.run([*warm.readbench(), "rum"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "No such command 'rum'" in wrong.stderr
