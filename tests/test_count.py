"""The count says what is there, tells moved lines from removed ones, and the table of the documentation is near it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tools import count
from tools.count import Change, Size

KEPT = 'def keep(values: list[float]) -> float:\n    """The largest."""\n    return max(values)  # of all\n'
LEAVES = (
    "def leave(first: int, second: int) -> int:\n    total = first + second + 1\n\n"
    "    return total\n\n\ndef beside(first: int) -> int:\n    return first\n"
)
GOES = 'LIMITS = {\n    "lowest temperature": 20,\n    "highest temperature of it": 80,\n}\n'
LITERAL = 'FACTS = Facts(\n    title="Pumps of three plants in a row",\n)\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit, and after it a function that moved to research, a constant that is gone and a literal in TOML."""
    write(tmp_path / "src/readbench/engine/_a.py", "import numpy as np\n\n" + KEPT + LEAVES + GOES)
    write(tmp_path / "src/readbench/cases/server/_b.py", LITERAL)
    write(tmp_path / "docs/page.md", "Four words of it.\n")
    write(tmp_path / ".gitignore", "*.log\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True)  # noqa: S607
    write(tmp_path / "src/readbench/engine/_a.py", "import numpy as np\n\n" + KEPT)
    write(tmp_path / "src/readbench/cases/server/_b.py", "FACTS = read_facts()\n")
    write(tmp_path / "src/readbench/cases/server/facts.toml", 'title = "Pumps of three plants in a row"\n')
    write(tmp_path / "research/_c.py", "import numpy as np\n\n\nclass Holder:\n" + indented(LEAVES))
    write(tmp_path / "src/readbench/ignored.log", "nothing\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def test_lines_that_stand_elsewhere_moved_and_others_were_removed(repository: Path) -> None:
    changes = count.compare(
        count.read_contents(count.read_revision(repository, "HEAD")),
        count.read_contents(count.read_files(repository)),
    )
    engine = changes["src", "engine", "python"]
    assert (engine.moved_out, engine.removed, engine.new) == (8, 4, 0)
    assert changes["research", "", "python"] == Change(new=4, moved_in=8, now=12)
    assert changes["src", "cases/server", "python"] == Change(before=3, moved_out=1, removed=1, now=1)
    assert changes["src", "cases/server", "data"] == Change(moved_in=1, new=0, now=1)
    for change in changes.values():
        came = change.new + change.moved_in
        assert change.now == change.before + came - change.moved_out - change.removed


def test_common_lines_and_imports_move_with_the_line_above_them() -> None:
    before = {"src/readbench/a/_a.py": "import numpy as np\nfrom pathlib import Path as Folder\n\n)\nreturn None\n"}
    now = {"tests/test_a.py": before["src/readbench/a/_a.py"]}
    changes = count.compare(count.read_contents(before), count.read_contents(now))
    assert changes["src", "a", "python"] == Change(before=5, removed=5)
    assert changes["tests", "", "python"] == Change(new=5, now=5)


def test_sizes_leave_out_what_is_blank_said_or_ignored(repository: Path) -> None:
    sizes = count.measure(count.read_files(repository))
    assert sizes["src", "engine", "python"] == Size(files=1, lines=5, code=3)
    assert sizes["src", "cases/server", "data"] == Size(files=1, lines=1, code=1)
    assert ("src", "", "data") not in sizes
    assert count.count_documentation(count.read_files(repository)) == {"documentation pages": 1, "words": 4}


def test_an_unknown_revision_is_named(repository: Path) -> None:
    with pytest.raises(SystemExit, match="git archive nowhere failed"):
        count.read_revision(repository, "nowhere")


def test_seconds_are_read_by_folder_from_what_pytest_recorded(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="{name}" time="{seconds}"/>'
        for name, seconds in [("tests.engine.test_a", 2), ("tests.engine.llm.test_b", 3), ("tests.test_c", 1)]
    )
    (tmp_path / "tests.xml").write_text(f'<testsuites><testsuite time="4">{cases}</testsuite></testsuites>')
    assert count.read_seconds(tmp_path / "tests.xml") == {"all": 4.0, "engine": 5.0, "": 1.0}
    assert count.read_seconds(tmp_path / "none.xml") == {}


def test_commands_options_and_suites_are_those_of_the_package() -> None:
    found = count.count_inventory(count.ROOT)
    assert found.keys() == {"commands", "options", "option names", "suites"}
    assert found["options"] > found["option names"] > found["commands"] > found["suites"] > 0


def test_the_table_of_the_documentation_is_near_what_is_there() -> None:
    match = count.MARKED.search(count.PAGE.read_text())
    assert match
    shown = read_rows(match[0])
    counted = read_rows(count.write_table(count.count(count.ROOT, recorded=Path("none"))))
    for place in shown.keys() | counted.keys():
        lines, told = counted.get(place, 0), shown.get(place, 0)
        near = abs(told - lines) <= max(lines / 5, 400)
        assert near, f"{place}: {lines} lines, {told} in the table; run `python -m tools.count --write`"


def read_rows(table: str) -> dict[tuple[str, str], int]:
    """Lines by folder and kind."""
    rows = re.findall(r"^\| (\S+) +\| (\S+) +\| +[\d,]+ \| +([\d,]+) \|", table, re.MULTILINE)
    return {(folder, kind): int(lines.replace(",", "")) for folder, kind, lines in rows}
