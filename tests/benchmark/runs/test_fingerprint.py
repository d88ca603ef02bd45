"""A fingerprint moves with everything that can move a number, and with nothing else.

The package is copied and edited; the fingerprint of the copy is computed without importing it. That nothing is
overlooked is seen from the other side: functions that a real cell calls are all among those that count.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

import readbench
from readbench.benchmark.protocol import build_fingerprint, builders_of
from readbench.benchmark.protocol._build import BESIDE
from readbench.benchmark.runs import TaskOpinions, fingerprint_of
from readbench.benchmark.runs._cells import _cell_roots, provenance_of_cells
from readbench.benchmark.runs._fingerprint import provenance_of, route_of
from readbench.common.provenance import EXCLUDED_MODULES, Code, Root, Sources, trace_code
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source, parse
from tests.benchmark.runs.encoders import Filed

PACKAGE = Path(readbench.__file__).parent
WHOLE = "sonde+nr|dtw-i+gpc"
METHODS = (
    WHOLE,
    "euclidean",
    "dtw-i(device=cuda)",
    "flagship",
    "sax-bm25|2step|sbd-i+majvote",
    "rocket(kind=hydra)",
    "chronos-2+prf",
    "classify",
)


def modules_of(roots: Iterable[Root]) -> list[str]:
    return [root.__module__ for root in roots]


class EditedPackage:
    """A copy of the package, in which files can be edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "readbench"
        shutil.copytree(PACKAGE, self.folder, ignore=shutil.ignore_patterns("__pycache__", "*.onnx"))

    def trace(self, method: str) -> Code:
        """The code of a method's cells in the copy as it is now."""
        route = route_of(_cell_roots(), parse(method))
        return Sources({"readbench": self.folder}).trace(modules_of(route.roots), route.shut)

    def path(self, module: str) -> Path:
        place = self.folder.joinpath(*module.split(".")[1:])
        return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")

    def modules(self) -> Iterator[str]:
        for path in sorted(self.folder.rglob("*.py")):
            names = ("readbench", *path.relative_to(self.folder).with_suffix("").parts)
            yield ".".join(names).removesuffix(".__init__")

    def digest_with(self, method: str, path: Path, text: str) -> str:
        """Of a method where one file says something else; the file is put back."""
        before = path.read_text()
        path.write_text(text)
        try:
            return self.trace(method).digest
        finally:
            path.write_text(before)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> EditedPackage:
    """For tests that put back what they edit."""
    return EditedPackage(tmp_path_factory.mktemp("edited"))


@lru_cache(maxsize=512)
def constants_in(text: str) -> list[ast.expr]:
    """A constant of each statement of a module, a number if there is one, else a name."""
    found: list[ast.expr] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.If):
            continue
        nodes = list(ast.walk(statement))
        said = {id(n.value) for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
        said -= {id(n) for n in nodes if isinstance(n, ast.Constant) and not isinstance(n.value, str)}
        said |= {id(part) for n in nodes if isinstance(n, ast.JoinedStr) for part in ast.walk(n)}
        own = [n for n in nodes if isinstance(n, ast.Constant | ast.Name) and id(n) not in said]
        own.sort(key=lambda n: (not is_number(n), isinstance(n, ast.Name)))
        found += own[:1]
    return found


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def change(text: str, node: ast.expr) -> str:
    """A source with one constant or name changed."""
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    old = text.encode()[start:end]
    other = old + b"1" if isinstance(node, ast.Name) else b"'another'"
    if is_number(node):
        other = b"(" + old + b" + 1)"
    return (text.encode()[:start] + other + text.encode()[end:]).decode()


def edits_of(path: Path) -> Iterator[str]:
    """A source with one constant changed, once for each statement."""
    text = path.read_text()
    return (change(text, node) for node in constants_in(text))


def say_otherwise(text: str) -> str:
    """A source with other docstrings, without comments, and formatted by another hand."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = "Other words."
    return "# another licence\n" + ast.unparse(tree) + "\n\n# the end\n"


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_in_any_file_on_the_way_moves_a_cell(package: EditedPackage, method: str) -> None:
    code = package.trace(method)
    edits = {module: next(edits_of(package.path(module))) for module in code.modules}
    still = [m for m, text in edits.items() if package.digest_with(method, package.path(m), text) == code.digest]
    assert not still
    assert len(edits) > 20


@pytest.mark.parametrize("step", [pytest.param(1, id="each", marks=pytest.mark.long), pytest.param(5, id="some")])
def test_a_constant_in_any_definition_on_the_way_moves_a_cell(package: EditedPackage, step: int) -> None:
    code = package.trace(WHOLE)
    edits = [(module, text) for module in code.modules for text in edits_of(package.path(module))]
    still = [
        module
        for module, text in edits[::step]
        if package.digest_with(WHOLE, package.path(module), text) == code.digest
    ]
    assert not still


def test_words_and_formatting_move_nothing(tmp_path: Path) -> None:
    package = EditedPackage(tmp_path)
    before = {method: package.trace(method).digest for method in METHODS}
    for module in package.modules():
        path = package.path(module)
        path.write_text(say_otherwise(path.read_text()))
    kernel = package.folder / "engine/kernels/dtw_cuda.cu"
    kernel.write_text(f"// another licence\n/* two\n lines */{kernel.read_text()}\n\n")
    assert {method: package.trace(method).digest for method in METHODS} == before


@pytest.mark.parametrize("method", ["euclidean", WHOLE, "rocket"])
def test_what_a_cell_does_not_use_leaves_it_alone(tmp_path: Path, method: str) -> None:
    """All other modules are edited at once."""
    package = EditedPackage(tmp_path)
    code = package.trace(method)
    for module in package.modules():
        path = package.path(module)
        if module not in code.modules:
            path.write_text(edit_everything(path.read_text()))
    assert package.trace(method).digest == code.digest


@pytest.mark.parametrize(
    ("method", "other"),
    [
        ("euclidean", "engine/retrievers/_sbd.py"),
        ("euclidean", "engine/kernels/dtw.py"),
        ("euclidean", "engine/rerankers/_ridge.py"),
        ("euclidean", "engine/retrievers/_embedding.py"),
        ("dtw-i", "engine/kernels/dtw_cuda.cu"),
        ("dtw-i+gpc", "engine/llm/_providers.py"),
        (WHOLE, "cli/run.py"),
        (WHOLE, "benchmark/report/_table.py"),
        (WHOLE, "engine/encoders/_foundation.py"),
    ],
)
def test_files_of_others_do_not_count(package: EditedPackage, method: str, other: str) -> None:
    assert package.digest_with(method, package.folder / other, "") == package.trace(method).digest


@pytest.mark.parametrize(
    ("method", "file", "old", "new"),
    [
        ("dtw-i(device=cuda)", "engine/kernels/dtw_cuda.cu", "FAR 1e18f", "FAR 1e17f"),
        ("classify", "engine/llm/wording/readbench-1.toml", "fault", "failure"),
    ],
)
def test_files_that_are_no_python_count_where_they_are_read(
    package: EditedPackage, method: str, file: str, old: str, new: str
) -> None:
    path = package.folder / file
    edited = path.read_text().replace(old, new, 1)
    assert edited != path.read_text()
    assert package.digest_with(method, path, edited) != package.trace(method).digest


def test_every_shipped_file_that_can_move_a_number_counts_somewhere() -> None:
    """A file that no trace finds would be changed without notice."""
    methods = (provenance_of_cells(parse(method)).code for method in METHODS)
    sources = (trace_code(builders_of(build_source(name))) for name in SOURCES.names())
    found = {path for code in (*methods, *sources) for path in code.files}
    rooms = ("engine", "benchmark/protocol", "benchmark/sources", "benchmark/simulators", "benchmark/metrics")
    shipped = {path for room in rooms for path in (PACKAGE / room).rglob("*") if path.is_file()}
    shipped = {path for path in shipped if path.suffix not in {".py", ".pyc", ".onnx", ".nbi", ".nbc"}}
    compared_only = {PACKAGE / "benchmark/protocol/paper.csv"}
    assert shipped - found == compared_only


def test_an_edited_reader_builds_windows_again(tmp_path: Path) -> None:
    package = EditedPackage(tmp_path)
    roots = modules_of(builders_of(build_source("hai")))
    sources = {"readbench": package.folder}
    before = Sources(sources).trace(roots).digest
    for file in (
        "sources/_hai.py",
        "sources/hai/attacks.csv",
        "sources/facts/hai.toml",
        "protocol/_cut.py",
        "protocol/_clean.py",
    ):
        path = package.folder / "benchmark" / file
        text = path.read_text()
        more = {".csv": "\n1,2", ".toml": "\nother = 1"}
        path.write_text(text + more[path.suffix] if path.suffix in more else edit_everything(text))
        assert Sources(sources).trace(roots).digest != before, file
        path.write_text(text)
    assert Sources(sources).trace(roots).digest == before


def edit_everything(text: str) -> str:
    for node in reversed(constants_in(text)):
        text = change(text, node)
    return text


def test_windows_of_two_sources_have_their_own_code() -> None:
    digests = {trace_code(builders_of(build_source(name))).digest for name in SOURCES.names()}
    assert len(digests) == len(SOURCES.names())
    assert build_fingerprint(build_source("sim_tanks"), None) == build_fingerprint(build_source("sim_tanks"), None)


def test_packages_that_compute_are_part_of_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("aeon")
    spec = parse(WHOLE)
    packages = provenance_of_cells(spec).packages
    assert {"numpy", "scipy", "numba", "onnxruntime"} <= set(packages)
    assert not {"torch", "pyarrow", "pydantic", "matplotlib"} & set(packages)
    assert "torch" in provenance_of_cells(parse("dtw-i(device=cuda)")).packages
    assert {"aeon", "torch"} <= set(provenance_of_cells(parse("rocket(kind=hydra)")).packages)
    assert not {"scipy", "sklearn", "onnxruntime", "torch"} & set(provenance_of_cells(parse("random")).packages)
    before = fingerprint_of(*_cell_roots(), spec=spec)
    provenance_of.cache_clear()
    monkeypatch.setattr("readbench.common.provenance._version", lambda _: "0.0")
    assert fingerprint_of(*_cell_roots(), spec=spec) != before
    provenance_of.cache_clear()


def test_a_root_behind_a_door_opens_it() -> None:
    route = route_of((TaskOpinions,), parse("euclidean"))
    assert TaskOpinions.__module__ in trace_code(route.roots, route.shut).modules


def test_a_component_of_another_package_counts_with_what_it_leads_to() -> None:
    code = trace_code([Filed])
    assert "tests.benchmark.runs.encoders" in code.modules
    assert "readbench.engine.windows" in code.modules
    assert "hashlib" not in code.packages


PROFILED = """
import json, sys, threading
from dataclasses import replace
from pathlib import Path
from readbench.benchmark.metrics import *  # the body of a class is no call when its module is there already
from readbench.benchmark.protocol import *
from readbench.engine.rerankers import *
from readbench.benchmark.protocol import Composition, load_task, write_windows_of
from readbench.benchmark.runs._budget import ALL
from readbench.benchmark.runs._cells import Setup, judge, rank_level
from readbench.benchmark.runs._plan import Cell
from readbench.engine.spec import build_source, parse

package, cache, methods = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
called = {}

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package):
        called.setdefault(current, set()).add((code.co_filename, code.co_name))

def profile(name, work):
    global current
    current = name
    threading.setprofile(note)
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    threading.setprofile(None)

def compute(method):
    ranking = rank_level(setup, method, 10, ALL)
    judge(Cell("sim_tanks", 7, 10, str(method)), "", task, ranking)

source = build_source("sim_tanks(runs=48)")
profile("sim_tanks", lambda: write_windows_of(source, None, cache / "windows"))
task = load_task(source, seed=7, cache=cache, settings=Composition(corpus_cap=40))
task = replace(task, queries=task.queries[:6], normals=task.normals[:6])
setup = Setup.of(task, cache)
for text in methods:
    method = setup.method(parse(text))
    profile(text, lambda: compute(method))
print(json.dumps({name: sorted(found) for name, found in called.items()}))
"""
PROFILED_METHODS = ("euclidean", WHOLE, "sax-bm25|2step|rocket+majvote", "raw|ws|stats+prf+purity+verdict")


def test_a_real_cell_calls_nothing_that_does_not_count(tmp_path: Path) -> None:
    """Modules that are silent by declaration aside: files, processes, progress, errors, the fingerprint itself."""
    command = [sys.executable, "-c", PROFILED, str(PACKAGE), str(tmp_path), *PROFILED_METHODS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    overlooked = set()
    for name, called in json.loads(done.stdout).items():
        code = code_of_windows(name) if name == "sim_tanks" else provenance_of_cells(parse(name)).code
        assert len(called) > 50
        for file, function in called:
            module = ".".join(("readbench", *Path(file).relative_to(PACKAGE).with_suffix("").parts))
            if not (module in EXCLUDED_MODULES or function == "<module>" or module in code.modules):
                overlooked.add((name, module, function))
    assert not overlooked


def code_of_windows(source: str) -> Code:
    return trace_code(builders_of(build_source(source)), BESIDE)
