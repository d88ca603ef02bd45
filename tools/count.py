"""Count what the project holds, and what changed since a git revision: `python -m tools.count --against main`.

Files, lines and code lines of every room (a folder of `src`, `research`, `tools` or `tests`), then commands, options,
suites, documentation pages and words, and the seconds of the last recorded test run. `make lint` ends with the short
form; `--write` puts the table into docs/architecture.md.

A line that left a room was *moved* if a line of the same words is new elsewhere in the repository, and *removed*
otherwise. Words alone are compared, so that a literal that became TOML or a call that was indented has moved.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
RECORDED = ROOT / "build" / "tests.xml"
"""Where `make test` records how long each test took."""
AREAS = ("src", "research", "tools", "tests", "docs")
KINDS = {
    ".py": "python",
    **dict.fromkeys((".toml", ".csv", ".txt", ".json"), "data"),
    **dict.fromkeys((".js", ".css", ".html", ".cu"), "scripts"),
    ".md": "pages",
}
"""Kind of a file by its suffix; others are not counted."""
MARKED = re.compile(r"(?<=^<!-- count -->\n).*?(?=^<!-- end -->$)", re.DOTALL | re.MULTILINE)
"""The table in docs/architecture.md."""
MIN_WORDS, MIN_LETTERS = 4, 20
"""A line with less, and every import, is too common to be recognised: it goes with the line above it."""
IMPORT = re.compile(r"\s*(import|from)\s")
INVENTORY = """
import json, typer
from readbench.cli import app
from readbench.benchmark.runs import SUITES
commands, options = [], []
def walk(command):
    options.extend(p.opts[0] for p in command.params if p.param_type_name == "option" and p.name != "help")
    below = getattr(command, "commands", None)
    for each in (below or {}).values():
        walk(each)
    commands.extend([] if below else [command])
walk(typer.main.get_command(app))
print(json.dumps({"commands": len(commands), "options": len(options), "option names": len(set(options)),
                  "suites": len(SUITES)}))
"""
"""Printed by a process that imports the package of the counted state, which may be an earlier one."""

Files = Mapping[str, str]
"""Texts of the counted files by their paths from the root of the repository."""
Place = tuple[str, str, str]
"""Area, room and kind of a file."""
Contents = Mapping[Place, Counter[str]]
"""How many lines stand under each content, by place."""


@dataclass(frozen=True)
class Size:
    """Size of a place.

    Args:
        files: how many there are.
        lines: all lines.
        code: lines that are neither blank, comment nor docstring.
    """

    files: int = 0
    lines: int = 0
    code: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.code + other.code)


@dataclass(frozen=True)
class Change:
    """Lines of a place before and now: `now == before + new + moved_in - moved_out - removed`."""

    before: int = 0
    new: int = 0
    moved_in: int = 0
    moved_out: int = 0
    removed: int = 0
    now: int = 0

    def __add__(self, other: Change) -> Change:
        return Change(*(getattr(self, own.name) + getattr(other, own.name) for own in fields(self)))


# What is there


def read_files(root: Path) -> Files:
    """The files of the working tree that git tracks or would; without git, all."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", *AREAS)
    if listed is None:
        paths = (path for area in AREAS for path in (root / area).rglob("*") if "__pycache__" not in path.parts)
    else:
        paths = (root / name for name in listed.decode().splitlines())
    counted = sorted(path for path in paths if path.suffix in KINDS and path.is_file())
    return {path.relative_to(root).as_posix(): _decode(path.read_bytes()) for path in counted}


def read_revision(root: Path, revision: str) -> Files:
    """The files of a git revision.

    Raises:
        SystemExit: git does not know the revision.
    """
    packed = _git(root, "archive", "--format=tar", revision)
    if packed is None:
        raise SystemExit(f"git archive {revision} failed in {root}: name a revision that `git log` shows.")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = [m for m in tar if m.isfile() and m.name.startswith(AREAS) and Path(m.name).suffix in KINDS]
        return {member.name: _decode(held.read()) for member in members if (held := tar.extractfile(member))}


def place_of(path: str) -> Place:
    """Area, room and kind; a room is at most two folders deep, below `src/readbench` in `src`.

    >>> place_of("src/readbench/cases/server/_app.py")
    ('src', 'cases/server', 'python')
    """
    area, *folders, name = path.split("/")
    folders = folders[1:] if area == "src" else folders[:1]
    return area, "/".join(folders[:2]), KINDS[Path(name).suffix]


def measure(files: Files) -> dict[Place, Size]:
    """The size of each place."""
    sizes: dict[Place, Size] = {}
    for path, text in files.items():
        code = count_code(text) if path.endswith(".py") else sum(1 for line in text.splitlines() if line.strip())
        place = place_of(path)
        sizes[place] = sizes.get(place, Size()) + Size(1, len(text.splitlines()), code)
    return sizes


def count_code(text: str) -> int:
    """Lines of a Python module that are neither blank, comment nor docstring."""
    tree, said = ast.parse(text), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in said
        for number, line in enumerate(text.splitlines(), start=1)
    )


def count_inventory(root: Path) -> dict[str, int]:
    """Commands, options and suites of the package in a folder; nothing where it cannot be imported."""
    source = {"PYTHONPATH": str(root / "src")}
    done = subprocess.run(  # noqa: S603 - our text
        [sys.executable, "-c", INVENTORY], env=os.environ | source, capture_output=True, text=True, check=False
    )
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


def count_documentation(files: Files) -> dict[str, int]:
    """Pages of the documentation, and words in them."""
    pages = [text for path, text in files.items() if place_of(path) == ("docs", "", "pages")]
    return {"documentation pages": len(pages), "words": sum(len(text.split()) for text in pages)}


def read_seconds(recorded: Path) -> dict[str, float]:
    """Seconds of each folder of tests from a JUnit file, and from begin to end as "all"; empty where there is none."""
    if not recorded.is_file():
        return {}
    suites = list(ET.parse(recorded).iter("testsuite"))  # noqa: S314 - pytest wrote it
    seconds: dict[str, float] = {"all": sum(float(suite.get("time", 0)) for suite in suites)}
    for case in (case for suite in suites for case in suite.iter("testcase")):
        area, *folders = case.get("classname", "").split(".")
        room = folders[0] if len(folders) > 1 else ""
        if area == "tests":
            seconds[room] = seconds.get(room, 0.0) + float(case.get("time", 0))
    return seconds


# What changed


def read_contents(files: Files, place: Callable[[str], Place] = place_of) -> dict[Place, Counter[str]]:
    """How many lines stand under each content, by place."""
    contents: dict[Place, Counter[str]] = {}
    for path, text in files.items():
        contents.setdefault(place(path), Counter()).update(_contents_of(text))
    return contents


def _contents_of(text: str) -> Iterator[str]:
    """The content of each line: its words, or for a common line those of the line above it that is not."""
    content = ""
    for line in text.splitlines():
        words = re.findall(r"\w+", line)
        if len(words) >= MIN_WORDS and sum(map(len, words)) >= MIN_LETTERS and not IMPORT.match(line):
            content = " ".join(words)
        yield content


def compare(before: Contents, now: Contents) -> dict[Place, Change]:
    """The change of each place; lines of one content move between places as far as both sides reach."""
    lost = {place: held - now.get(place, Counter()) for place, held in before.items()}
    found = {place: held - before.get(place, Counter()) for place, held in now.items()}
    gone, come = _sum(lost.values()), _sum(found.values())
    moved = gone & come
    moved[""] = 0  # lines before the first that can be recognised
    out, into = dict(moved), dict(moved)
    changes = {}
    for place in sorted(before.keys() | now.keys()):
        left, arrived = _take(lost.get(place, Counter()), out), _take(found.get(place, Counter()), into)
        changes[place] = Change(
            before=before.get(place, Counter()).total(),
            new=found.get(place, Counter()).total() - arrived,
            moved_in=arrived,
            moved_out=left,
            removed=lost.get(place, Counter()).total() - left,
            now=now.get(place, Counter()).total(),
        )
    return changes


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _take(wanted: Counter[str], moved: dict[str, int]) -> int:
    """Lines of a place that moved; what it takes is no longer there for other places."""
    taken = 0
    for content, lines in wanted.items():
        own = min(lines, moved.get(content, 0))
        if own:
            moved[content] -= own
            taken += own
    return taken


# What is printed


@dataclass(frozen=True)
class Count:
    """What the project holds, and what changed.

    Args:
        sizes: by place.
        things: commands, options, suites, pages and words.
        earlier: the same of the revision; empty without one.
        changes: by place; empty without a revision.
        seconds: of each folder of tests.
    """

    sizes: Mapping[Place, Size]
    things: Mapping[str, int]
    earlier: Mapping[str, int]
    changes: Mapping[Place, Change]
    seconds: Mapping[str, float]


def count(root: Path, against: str = "", recorded: Path = RECORDED, *, short: bool = False) -> Count:
    """Count a repository.

    Args:
        root: its folder.
        against: a git revision to compare with; "" for none.
        recorded: JUnit file of a test run.
        short: whole areas instead of rooms: what moved between rooms of one area did not move.
    """
    place = _area_of if short else place_of
    files = read_files(root)
    sizes: dict[Place, Size] = {}
    for (area, room, kind), size in measure(files).items():
        key = (area, "" if short else room, kind)
        sizes[key] = sizes.get(key, Size()) + size
    things = count_inventory(root) | count_documentation(files)
    if not against:
        return Count(sizes, things, {}, {}, read_seconds(recorded))
    old = read_revision(root, against)
    changes = compare(read_contents(old, place), read_contents(files, place))
    with tempfile.TemporaryDirectory() as folder:
        for path, text in old.items():
            if path.startswith("src/"):
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        earlier = count_inventory(Path(folder)) | count_documentation(old)
    return Count(sizes, things, earlier, changes, read_seconds(recorded))


def _area_of(path: str) -> Place:
    area, _, kind = place_of(path)
    return area, "", kind


def write_table(counted: Count) -> str:
    """A Markdown table with a row per place, and a line of what else was counted."""
    head = ["folder", "kind", "files", "lines", "code"]
    head += ["before", "new", "moved in", "moved out", "removed"] if counted.changes else []
    rows = [row for area in AREAS for row in _rows_of(counted, area)]
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [head, *shown]) for column in range(len(head))]
    lines = [_line(head, widths), "|" + "|".join(_rule(column, width) for column, width in enumerate(widths)) + "|"]
    return "\n".join([*lines, *(_line(row, widths) for row in shown), "", *_write_things(counted)])


def _rows_of(counted: Count, area: str) -> Iterator[list[str | int]]:
    """Rows of an area: its rooms, then their sum by kind where there are several."""
    sums: dict[str, list[tuple[Size, Change]]] = {}
    for place in sorted(set(counted.sizes) | set(counted.changes)):
        if place[0] == area:
            both = counted.sizes.get(place, Size()), counted.changes.get(place, Change())
            sums.setdefault(place[2], []).append(both)
            yield _row("/".join(filter(None, place[:2])), place[2], *both, changed=bool(counted.changes))
    for kind, parts in sorted(sums.items()):
        if len(parts) > 1:
            size, change = Size(), Change()
            for own_size, own_change in parts:
                size, change = size + own_size, change + own_change
            yield _row(f"**{area}**", kind, size, change, changed=bool(counted.changes))


def _row(name: str, kind: str, size: Size, change: Change, *, changed: bool) -> list[str | int]:
    row: list[str | int] = [name, kind, size.files, size.lines, size.code]
    if changed:
        row += [change.before, change.new, change.moved_in, change.moved_out, change.removed]
    return row


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    texts = (
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(texts)} |"


def _rule(column: int, width: int) -> str:
    return "-" * (width + 2) if column < 2 else "-" * (width + 1) + ":"


def _write_things(counted: Count) -> Iterator[str]:
    told = (
        f"{number:,} {name}"
        + (f" ({number - before:+,})" if (before := counted.earlier.get(name, number)) != number else "")
        for name, number in counted.things.items()
    )
    yield ", ".join(told) + "."
    if counted.seconds:
        rooms = sorted(((own, room) for room, own in counted.seconds.items() if room != "all"), reverse=True)
        told = (f"{room or 'tests'} {own:,.0f}" for own, room in rooms)
        yield f"Tests: {counted.seconds['all']:,.0f} s from begin to end; {', '.join(told)} s of each folder."


def update_page(page: Path, table: str) -> None:
    """Put the table between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(MARKED.sub(lambda _: f"\n{table}\n\n", text), encoding="utf-8")


def _git(root: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails or is not installed."""
    try:
        return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True).stdout  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return None


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def main(words: Sequence[str] | None = None) -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.count", description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="", metavar="REVISION", help="git revision to compare with")
    parser.add_argument("--short", action="store_true", help="a row per area instead of per room")
    parser.add_argument("--tests", type=Path, default=RECORDED, metavar="FILE", help="JUnit file of a test run")
    parser.add_argument("--write", action="store_true", help="write the table into docs/architecture.md")
    options = parser.parse_args(words)
    counted = count(ROOT, options.against, options.tests, short=options.short)
    if options.write:
        update_page(PAGE, write_table(counted))
    else:
        sys.stdout.write(write_table(counted) + "\n")


if __name__ == "__main__":
    main()
