"""What the documentation shows works: python and shell blocks run, commands and options exist, files parse.

A page's blocks run in the order of the page, in one fresh folder. A comment directly above a block, which readers do
not see, says why it is not run, or what has to be there first:

    <!-- not run: needs a GPU -->

    <!-- setup
    values = [1.0, 2.0]
    -->

    <!-- setup: NAME -->    a file of tests/pages, where this is long

    <!-- output -->         what the page's python blocks before this one print, numbers to two hundredths
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from readbench.cli import app
from readbench.engine.registry import SOURCES
from readbench.engine.spec import parse, split_specs
from readbench.errors import UsageError
from tests import warm

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / "results" / f"{name}.md" for name in ("audit", "claims", "settings", "tables")),
    ROOT / "research" / "training" / "ABLATIONS.md",
]
SHELL, PYTHON = ("sh", "bash", "shell", "console"), ("python", "py")
DATA = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
READBENCH = ("readbench", ".venv/bin/readbench")
HARMLESS = {*READBENCH, "ir_measures", "cat", "ls"}
"""Commands that a block may hold and still be run here."""
READERS_OWN = {"peak", "pumps", "mine", "quiet", "NAME", "..."}
"""Names of methods, datasets and commands that stand for the reader's."""
NO_MODULES = {"readbench.plugins", "readbench.zip"}
"""Dotted names that are not modules: the group of entry points, and how the files of submissions end."""
ROOTS = (ROOT, ROOT / "src" / "readbench")
"""Where the paths begin that the documentation names."""
CONTROL = {"do", "done", "then", "else", "fi", "!"}
"""Words of the shell after which another command begins, or none."""


@dataclass(frozen=True)
class Block:
    """One fenced block: where it is, what it is, and what the comment above it says."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str = ""
    setup: str = ""
    output: bool = False

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, with the comment that ends on the line above their fence."""
    text = page.read_text()
    found = []
    for match in re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        above = re.search(
            r"<!--\s*(not run:|setup:|setup\b|output\b)((?:(?!-->).)*)-->\n\Z", text[: match.start()], re.DOTALL
        )
        kind, said = (above[1], above[2].strip()) if above else ("", "")
        if kind == "setup:":
            kind, said = "setup", (ROOT / "tests" / "pages" / said).read_text()
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, match.start(2)) + 1,
                language=match[1],
                code=match[2],
                not_run=said if kind == "not run:" else "",
                setup=said if kind == "setup" else "",
                output=kind == "output",
            )
        )
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def commands_in(code: str) -> list[list[str]]:
    """The simple commands of a shell text, as words."""
    bare = re.sub(r"(^|\s)#.*$", "", code.replace("\\\n", " "), flags=re.MULTILINE)
    lexer = shlex.shlex(bare, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";&|()<>\n") or (word in CONTROL and not commands[-1]):
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def shown_commands(block: Block) -> list[list[str]]:
    """Commands of a shell block; of an unnamed one, which shows output, the lines behind a prompt."""
    if block.language in SHELL:
        return commands_in(block.code)
    prompted = [line[2:] for line in block.code.splitlines() if line.startswith("$ ")]
    return commands_in("\n".join(prompted)) if not block.language else []


@cache
def command_line() -> Any:  # noqa: ANN401 - of the library under typer, whichever it is
    return typer.main.get_command(app)


def complaint(words: list[str]) -> str:
    """What is wrong with the arguments of `readbench`, by the real command line; empty when nothing is."""
    command = command_line()
    context = command.context_class(command, info_name="readbench")
    words = list(words)
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            break
        name = words.pop(0)
        below = command.get_command(context, name)
        if below is None:
            return "" if name in READERS_OWN else f"{context.command_path} has no command {name!r}"
        command, context = below, below.context_class(below, info_name=name, parent=context)
    try:
        values, rest, _ = command.make_parser(context).parse_args(words)
    except Exception as error:  # noqa: BLE001 - of the library under typer, whichever it is
        return f"{context.command_path}: {error}"
    if set(rest) - {"..."} and not hasattr(command, "commands"):
        return f"{context.command_path}: too many arguments: {rest}"
    return unknown_names(values)


def unknown_names(values: dict[str, Any]) -> str:
    """Methods and datasets among the values of options that do not exist; empty when all do."""
    methods, datasets = (
        [own] if isinstance(own := values.get(name) or [], str) else own for name in ("methods", "datasets")
    )
    try:
        for text in split_specs(methods):
            if text.partition("(")[0] not in READERS_OWN:
                parse(text)
        for name in split_specs(datasets):
            if name.partition("(")[0] not in READERS_OWN:
                SOURCES.get(name.partition("(")[0])
    except UsageError as error:
        return str(error)
    return ""


def test_every_command_shown_exists_with_its_options() -> None:
    wrong = [
        f"{block.place}: {reason}"
        for block in BLOCKS
        for command in shown_commands(block)
        if command[0] in READBENCH and (reason := complaint(command[1:]))
    ]
    for page in PAGES:
        for match in re.finditer(r"(?<!`)`readbench ([^`]+)`(?!`)", page.read_text()):
            reason = complaint(commands_in(match[1].replace("\n", " "))[0])
            wrong += [f"{page.relative_to(ROOT)}: {match[0]}: {reason}"] if reason else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("readbench run --metods random", "No such option"),
        ("readbench rum", "has no command 'rum'"),
        ("readbench cases serach plant", "has no command 'serach'"),
        ("readbench list methods one two three", "too many arguments"),
        ("readbench run --methods random,eucldean", "Did you mean 'euclidean'"),
        ("readbench run --datasets sim_tank", "Did you mean 'sim_tanks'"),
        ("readbench cases init plant --demo --new new && readbench cases search plant new/4.csv --time step -k 3", ""),
        ('readbench run --methods "rocket+nr|dtw-i+gpc" --out runs/x  # a comment', ""),
        ("for axis in a b; do readbench run --sweep $axis --jobs 16; done", ""),
    ],
)
def test_a_wrong_command_is_found(command: str, reason: str) -> None:
    found = [complaint(words[1:]) for words in commands_in(command) if words[0] in READBENCH]
    assert found
    assert reason in found[0] if reason else not any(found)


def test_every_target_of_make_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {
        (word, block.place)
        for block in BLOCKS
        for command in shown_commands(block)
        if command[0] == "make"
        for word in command[1:]
        if "=" not in word
    }
    assert shown
    assert not [(word, place) for word, place in shown if word not in targets]


def test_every_block_is_run_parsed_or_marked() -> None:
    """Nothing is left out silently: a language that is not known here and a command that cannot be run are marked."""
    wrong = []
    for block in BLOCKS:
        if block.not_run or block.output or block.language in (*PYTHON, ""):
            continue
        if block.language in DATA:
            DATA[block.language](block.code)
        elif block.language in SHELL:
            others = sorted({command[0] for command in commands_in(block.code)} - HARMLESS)
            wrong += [f"{block.place}: {', '.join(others)}: mark it <!-- not run: why -->"] if others else []
        else:
            wrong.append(f"{block.place}: blocks of {block.language!r} are not known")
    assert not wrong, "\n".join(wrong)


def test_every_import_shown_exists() -> None:
    """Also in blocks that are not run."""
    missing = []
    for block in BLOCKS:
        if block.language not in PYTHON:
            continue
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("readbench"):
                module = importlib.import_module(node.module or "")
                missing += [f"{block.place}: {node.module}.{a.name}" for a in node.names if not hasattr(module, a.name)]
    assert not missing, "\n".join(missing)


def test_every_module_and_file_named_exists() -> None:
    """Dotted names of the package and paths of its files, in running text too; names of users' files are not paths."""
    pytest.importorskip("lancedb")
    pytest.importorskip("fastapi")
    wrong = []
    for page in PAGES:
        text = page.read_text()
        for name in set(re.findall(r"(?<![\w./-])(?:readbench|research)(?:\.\w+)+", text)):
            wrong += [] if name in NO_MODULES or importable(name) else [f"{page.name}: {name}"]
        for path in set(
            re.findall(r"`((?:(?:src|tests|common|engine|benchmark|cases|cli|research)/)[a-z0-9_/.]+)`", text)
        ):
            wrong += [] if any((root / path).exists() for root in ROOTS) else [f"{page.name}: {path}"]
    assert not wrong, "\n".join(wrong)


def importable(name: str) -> bool:
    """Whether a dotted name is a module, or what one holds; a module that needs packages that are not here counts."""
    place = name.replace(".", "/")
    if any((root / own).exists() for root in (ROOT, ROOT / "src") for own in (f"{place}.py", f"{place}/__init__.py")):
        return True
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_link_to_a_page_or_picture_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"(?:\]\(|src=\")([^)#\s\"]+)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def test_every_link_into_a_page_finds_its_heading() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in PAGES
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text())
        if anchor not in anchors_of((page.parent / target) if target else page)
    ]
    assert not broken, "\n".join(broken)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def environment(folder: Path) -> dict[str, str]:
    """Everything private to the folder; `readbench` and `.venv/bin/readbench` are this package on this interpreter."""
    command = folder / ".venv" / "bin" / "readbench"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.join(warm.readbench())} "$@"\n')
    command.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("READBENCH_")}
    return kept | {
        "PATH": os.pathsep.join([str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "READBENCH_CACHE": os.environ["READBENCH_CACHE"],
        "READBENCH_IMPORTED": str(folder / "imported"),
        "COLUMNS": "120",
    }


def runnable(languages: tuple[str, ...]) -> dict[Path, list[Block]]:
    """Blocks to run of each page that has any."""
    pages = {
        page: [b for b in BLOCKS if b.page == page and b.language in languages and not b.not_run] for page in PAGES
    }
    return {page: blocks for page, blocks in pages.items() if blocks}


def run(command: list[str], folder: Path, variables: dict[str, str], place: str) -> str:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{place} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def require_packages_of(page: Path) -> None:
    """Pages about the case library, language models and networks need their extras."""
    if page.stem in ("cases", "service", "backtest", "connect", "bring-your-plant", "extending"):
        pytest.importorskip("lancedb")
    if page.stem == "service":
        pytest.importorskip("fastapi")
        pytest.importorskip("mcp")
    if page.stem == "language-models":
        pytest.importorskip("openai")
    if page.stem == "encoders":
        pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.parametrize("page", runnable(SHELL), ids=lambda page: page.stem)
def test_commands_of_a_page_work_in_their_order(page: Path, tmp_path: Path) -> None:
    require_packages_of(page)
    variables = environment(tmp_path)
    for block in runnable(SHELL)[page]:
        run(["bash", "-euo", "pipefail", "-c", f"{block.setup}\n{block.code}"], tmp_path, variables, block.place)


@pytest.mark.slow
@pytest.mark.parametrize("page", runnable(PYTHON), ids=lambda page: page.stem)
def test_python_of_a_page_works_in_its_order(page: Path, tmp_path: Path) -> None:
    """As one module, in a process of its own, since blocks register things; tests that a block shows are run, too."""
    require_packages_of(page)
    parts = [f"{block.setup}\n# {block.place}\n{block.code}" for block in runnable(PYTHON)[page]]
    (tmp_path / "page.py").write_text("\n".join(parts))
    shows_tests = any("\ndef test_" in part for part in parts)
    tested = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    way = tested if shows_tests else warm.python()
    printed = run([*way, "page.py"], tmp_path, environment(tmp_path), page.name)
    for shown in (block for block in BLOCKS if block.page == page and block.output):
        assert is_like(printed, shown.code), f"{shown.place} shows\n{shown.code}\nand the page prints\n{printed}"


NUMBER = re.compile(r"-?\d+\.\d+")


def is_like(printed: str, shown: str) -> bool:
    """Whether two texts differ by blanks and by small differences of their decimal numbers at most."""
    texts = [NUMBER.sub("#", text).split() for text in (printed, shown)]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
    return texts[0] == texts[1] and numbers[0] == pytest.approx(numbers[1], abs=0.02)


def test_another_output_is_found() -> None:
    assert is_like("a  0.301\n", "a 0.30")
    assert not is_like("a 0.301", "a 0.40")
    assert not is_like("b 0.301", "a 0.301")
