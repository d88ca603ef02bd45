"""What version 0.1 said and left behind, before its modules were moved: later states say the same, and open it.

`recipes.py` has the commands, `make.py` wrote the files. Lists, names and texts must be the same, numbers to `EXACT`.
Where a change was meant, `EXCEPTIONS` says how far results may move; nothing else may.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.frozen import recipes
from tests.frozen.recipes import GOLDEN, PACKED, environment, keyed, readbench, unpack

EXACT = 1e-6


@dataclass(frozen=True)
class Allowance:
    """How far results may be from the frozen ones.

    Args:
        numbers: largest difference of a number: a score, a probability, a distance.
        lists: largest share of rankings, or of answers, in which anything but numbers differs.
    """

    numbers: float = EXACT
    lists: float = 0.0


NONE = Allowance()
EXCEPTIONS: dict[str, Allowance] = {
    # Euclidean distances, and embedders that are compared by them.
    "euclidean": Allowance(numbers=1e-5),
    # Probabilities: what processors round differently in single-precision legs, a fit of weights makes larger.
    "verdict": Allowance(numbers=1e-5),
    # Answers of libraries about windows with gaps, and of libraries whose cases came in with gaps.
    "gaps": Allowance(numbers=1.25, lists=1.0),
    # "Unlike anything here": its probability, and whether it cannot be ruled out.
    "unseen": Allowance(numbers=0.0015),
    # `cases explain`: path and distance of dynamic time warping, and what is aligned by it.
    "evidence": Allowance(),
}
EUCLIDEAN = re.compile(r"euclidean|^raw\b(?!\(metric=cosine)|^moments\b")
"""Methods that compare by Euclidean distances."""
UNLIKE = "unlike anything here"


@dataclass
class Found:
    """Differences from what is frozen, gathered until all are known.

    Args:
        numbers: the largest of each kind, and where.
        changed: of each kind, the places where something else than a number differs.
        compared: of each kind, how many rankings or answers were compared.
    """

    numbers: dict[str, tuple[float, str]] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)

    def number(self, kind: str, place: str, expected: float, got: float) -> None:
        """Compare two numbers."""
        difference = abs(expected - got)
        if not difference <= self.numbers.get(kind, (0.0, ""))[0]:  # NaN is a difference
            self.numbers[kind] = (difference, f"{place}: {expected} was, {got} is")

    def same(self, kind: str, place: str, *, same: bool) -> None:
        """Count one comparison of a list or an answer."""
        self.compared[kind] = self.compared.get(kind, 0) + 1
        if not same:
            self.changed.setdefault(kind, []).append(place)

    def check(self) -> None:
        """Fail with all that differs by more than is allowed."""
        failures = []
        for kind, (largest, where) in self.numbers.items():
            allowed = EXCEPTIONS.get(kind, NONE).numbers
            if not largest <= allowed:
                failures.append(f"{kind}: numbers differ by {largest:g}, allowed are {allowed:g}; {where}")
        for kind, places in self.changed.items():
            share, allowed = len(places) / self.compared[kind], EXCEPTIONS.get(kind, NONE).lists
            if share > allowed:
                named = f"{len(places)} of {self.compared[kind]}: {'; '.join(places[:5])}"
                failures.append(f"{kind}: {share:.1%} changed, allowed are {allowed:.1%}; {named}")
        assert not failures, "\n".join(failures)


# Scores, rankings, opinions


@pytest.mark.parametrize("name", recipes.RUNS)
def test_runs_score_and_rank_as_before(name: str, tmp_path: Path) -> None:
    recipes.run(tmp_path / "run", name)
    compare_run(tmp_path / "run", name)


def test_methods_score_and_rank_real_data_as_before(real_data: Path, tmp_path: Path) -> None:
    if recipes.sum_of_copy(real_data) != recipes.REAL_COPY:
        pytest.skip(f"{real_data} has another copy of {', '.join(recipes.REAL_DATASETS)} than the frozen run read")
    readbench("run", *recipes.REAL_RUN, "--root", real_data, "--out", tmp_path / "run")
    compare_run(tmp_path / "run", "real")


def test_tables_of_a_report_are_the_same_bytes(tmp_path: Path) -> None:
    """Where a table is redesigned, its new bytes are frozen with it: `packed/report.tar.xz`."""
    kept = unpack("report", tmp_path / "kept")
    got = recipes.report(unpack("reported", tmp_path / "runs"))
    assert sorted(got) == sorted(path.relative_to(kept).as_posix() for path in kept.rglob("*.*"))
    for name, content in got.items():
        assert content.decode() == (kept / name).read_bytes().decode(), name


def compare_run(folder: Path, name: str, *, bring_more: bool = False) -> None:
    """Compare a run folder with what is kept of the same run.

    Args:
        folder: of the run.
        name: of what is kept.
        bring_more: the windows bring context that they did not bring then, so that their tasks are others.
    """
    kept = json.loads((GOLDEN / f"{name}.json").read_text())
    assert bring_more or recipes.read_tasks(folder) == kept["tasks"], "other tasks: nothing else can be compared"
    found = Found()
    compare_scores(found, recipes.read_scores(GOLDEN / f"{name}.csv"), recipes.read_scores(folder / "scores.csv"))
    compare_cells(found, kept["rankings"], keyed(recipes.read_rankings(folder)))
    compare_cells(found, kept["opinions"], keyed(recipes.read_opinions(folder)))
    found.check()


def compare_scores(
    found: Found, kept: Mapping[recipes.Key, Mapping[str, str]], got: Mapping[recipes.Key, Mapping[str, str]]
) -> None:
    """Compare all columns that are kept; new ones may have come."""
    assert list(got) == list(kept), "other cells, or in another order"
    for key, columns in kept.items():
        for column, text in columns.items():
            place = f"{' / '.join(key)} {column}"
            if column == "status":
                found.same("status", f"{place}: {got[key][column]}", same=got[key][column] == text)
            else:
                found.number(kind_of(key[-1]), place, float(text), float(got[key][column]))


def compare_cells(found: Found, kept: Mapping[str, Mapping[str, Any]], got: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare what is kept of each query of each cell: the check sum of a list, or two probabilities."""
    assert got.keys() == kept.keys()
    for cell, queries in kept.items():
        kind = kind_of(cell.rsplit(" / ", 1)[1])
        assert list(got[cell]) == list(queries), f"{cell}: other queries, or in another order"
        for query, expected in queries.items():
            if isinstance(expected, str):
                found.same(kind, f"{cell}, query {query}", same=got[cell][query] == expected)
                continue
            for before, now in zip(expected, got[cell][query], strict=True):
                found.number(kind, f"{cell}, query {query}", before, now)


def kind_of(method: str) -> str:
    """Which exception a method falls under; its own text where it falls under none."""
    if EUCLIDEAN.search(method):
        return "euclidean"
    return "verdict" if "+verdict" in method else method


# The library


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("inputs", tmp_path_factory.mktemp("inputs"))


def test_a_library_of_whole_windows_answers_as_before(inputs: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    recipes.make_library(tmp_path / "plant", inputs, "cases-whole.csv")
    got = recipes.ask(tmp_path / "plant", inputs, recipes.WHOLE) | recipes.ask_about(tmp_path / "plant")
    compare_answers("library-whole", got)


def test_a_library_of_windows_with_gaps_answers_as_before(inputs: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    recipes.make_library(tmp_path / "plant", inputs, "cases-gaps.csv")
    windows = (*recipes.WHOLE, *recipes.GAPPY)
    got = recipes.ask(tmp_path / "plant", inputs, windows) | recipes.ask_about(tmp_path / "plant")
    compare_answers("library-gaps", got, gaps=True)


def test_a_library_of_the_state_before_opens_and_answers_as_before(inputs: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    library = unpack("library", tmp_path / "plant")
    got = recipes.ask(library, inputs, (*recipes.WHOLE, *recipes.GAPPY)) | recipes.ask_about(library)
    compare_answers("library-before", got)  # its cases were filled when they came in, and have no end
    readbench("cases", "label", library, "case-099", "surge")
    readbench("cases", "undo", library)
    assert "undo" in readbench("cases", "history", library)


def test_an_exported_library_of_the_state_before_is_imported(inputs: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    readbench("cases", "init", tmp_path / "plant")
    readbench("cases", "import", tmp_path / "plant", inputs / "exported.parquet")
    stats = json.loads(readbench("cases", "list", tmp_path / "plant", "--counts", "--json"))
    kept = json.loads((GOLDEN / "library-gaps.json").read_text())["stats"]
    assert {name: stats[name] for name in ("cases", "normals", "labels", "assets")} == {
        name: kept[name] for name in ("cases", "normals", "labels", "assets")
    }


def compare_answers(name: str, got: Mapping[str, Any], *, gaps: bool = False) -> None:
    """Compare answers with those that are kept; all of `got` must be among these."""
    kept = json.loads((GOLDEN / f"{name}.json").read_text())
    found = Found()
    for question, answer in got.items():
        compare_answer(found, question, kept[question], answer, kind=kind_of_question(question, gaps=gaps))
    found.check()


def kind_of_question(question: str, *, gaps: bool) -> str:
    """Which exception a question falls under; its own text where it falls under none."""
    if "explain" in question:
        return "evidence"
    return "gaps" if gaps or question.startswith("gaps-") else kind_of(question)


def compare_answer(found: Found, question: str, kept: Any, got: Any, kind: str) -> None:  # noqa: ANN401 - any JSON
    """Compare one answer: what it says of types nobody has seen apart from the rest."""
    before, now = dict(leaves(given_known(kept))), dict(leaves(given_known(got)))
    kinds = {path: "unseen" if path.startswith("/unseen") and kind != "gaps" else kind for path in before | now}
    changed: dict[str, list[str]] = {own: [] for own in kinds.values()}
    for path, own in sorted(kinds.items()):
        if isinstance(before.get(path), float) and isinstance(now.get(path), float):
            found.number(own, question + path, before[path], now[path])
        elif before.get(path) != now.get(path):
            changed[own].append(f"{path}: {before.get(path)} was, {now.get(path)} is")
    for own, places in changed.items():
        found.same(own, f"{question} ({', '.join(places[:3])})", same=not places)


def given_known(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    """An answer whose probabilities are given that the type is known; that it is not stands apart as `unseen`."""
    if not isinstance(answer, dict) or not answer.get("faults"):
        return answer
    unlike = next(fault for fault in answer["faults"] if fault["label"] == UNLIKE)
    known = 1.0 - unlike["probability"]

    def given(part: dict[str, Any]) -> dict[str, Any]:
        return part | {"probability": part["probability"] / known}

    return answer | {
        "unseen": {"probability": unlike["probability"], "possible": unlike["possible"]},
        "faults": [given(fault) for fault in answer["faults"] if fault is not unlike],
        "hits": [given(hit) for hit in answer["hits"]],
    }


def leaves(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON
    """All values by path; entries of a list go by their name, and the order of these is a value of its own."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from leaves(value, f"{path}/{name}")
    elif isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        names = [name_of(part) for part in content]
        yield f"{path}/order", names
        for name, part in zip(names, content, strict=True):
            yield from leaves(part, f"{path}/{name}")
    else:
        yield path, content


def name_of(part: Mapping[str, Any]) -> str:
    """What an entry of a list is called: its case, its fault type, its channel, its words; "" for no fault type."""
    case = part.get("case")
    own = next((part[key] for key in ("label", "name", "words") if key in part), None)
    return str(case["id"] if isinstance(case, dict) else own or "")


# Files of the state before


def test_a_run_folder_of_the_state_before_is_reported(tmp_path: Path) -> None:
    folder = unpack("run", tmp_path / "run")
    printed = readbench("report", folder)
    assert "ED" in printed
    assert "MiniRocket" in printed
    assert (folder / "report" / "index.html").stat().st_size > 1000
    compared = readbench("compare", folder, "--methods", "euclidean", "--methods", "rocket(features=84)")
    assert "NDCG@10" in compared


def test_a_run_folder_of_the_state_before_goes_on_without_mixing(tmp_path: Path) -> None:
    folder = unpack("run", tmp_path / "run")
    gone = max(folder.glob("cells/**/*.parquet"))
    gone.unlink()
    readbench("run", *recipes.TINY_RUN, "--out", folder)
    readbench("run", *recipes.TINY_RUN, "--out", tmp_path / "fresh")
    compare_run(folder, "tiny")
    tables = ("per_query.parquet", "scores_mean.csv", f"rankings/{recipes.TINY}.parquet")
    for table in tables:  # their bytes tell the cells that they were made of
        assert (folder / table).read_bytes() == (tmp_path / "fresh" / table).read_bytes(), table
    assert version(folder) == version(tmp_path / "fresh")


def version(folder: Path) -> str:
    """The version of the code that a run names."""
    return str(json.loads((folder / "run.json").read_text())["code"])


def test_a_cache_of_the_state_before_serves_or_is_passed_over(tmp_path: Path) -> None:
    with environment(READBENCH_CACHE=unpack("cache", tmp_path / "cache")):
        readbench("run", *recipes.TINY_RUN, "--out", tmp_path / "run")
        compare_run(tmp_path / "run", "tiny")
        stored = readbench("cache", "--json")
    assert {"windows", "embeddings", "scores"} <= set(re.findall(r'"(\w+)"', stored))


def test_imported_datasets_of_the_state_before_are_the_same_tasks(tmp_path: Path) -> None:
    with environment(READBENCH_IMPORTED=unpack("imported", tmp_path / "imported")):
        readbench("run", *recipes.OWN_RUN, "--out", tmp_path / "run")
    compare_run(tmp_path / "run", "imported")


def test_the_same_tables_are_imported_as_the_same_tasks(tmp_path: Path) -> None:
    tables = unpack("tables", tmp_path / "tables")
    with environment(READBENCH_IMPORTED=tmp_path / "imported"):
        readbench("data", "import", recipes.OWN, tables / "pumps.csv", *recipes.OWN_COLUMNS)
        readbench("data", "import", recipes.DIVIDED, tables / "task.npz")
        readbench("run", *recipes.OWN_RUN, "--out", tmp_path / "run")
    compare_run(tmp_path / "run", "imported", bring_more=True)  # the rate, and the time before each fault


@pytest.mark.parametrize("study", recipes.STUDIES)
def test_studies_measure_as_before_in_a_folder_of_the_state_before(study: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / study, tmp_path / study)
    readbench("study", study, *recipes.STUDIED, "--out", tmp_path / study)
    for kept in sorted((GOLDEN / study).glob("*.csv")):
        assert rows(tmp_path / study / kept.name) == rows(kept), kept.name


def rows(path: Path) -> list[list[str]]:
    """Rows of a table; its numbers are rounded to what people read."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_submission_of_the_state_before_is_believed(tmp_path: Path) -> None:
    shutil.copy(PACKED / recipes.SUBMISSION, tmp_path)
    printed = readbench("leaderboard", tmp_path)
    assert "frozen" in printed
    assert "Not taken" not in printed


def test_a_plugin_loads_and_scores_as_before(tmp_path: Path) -> None:
    site = recipes.install_plugin(tmp_path / "site")
    run = [*warm.readbench(), "run", *recipes.PLUGGED_RUN, "--out", str(tmp_path / "run")]
    ended = subprocess.run(run, env=recipes.with_site(site), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "could not be loaded" not in ended.stderr
    compare_run(tmp_path / "run", "plugin")


def test_the_python_of_the_front_page_scores_as_before(tmp_path: Path) -> None:
    script = recipes.install_plugin(tmp_path / "site") / "front_page.py"
    printed = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "cache")], capture_output=True, text=True, check=False
    )
    assert printed.returncode == 0, printed.stderr
    kept, got = json.loads((GOLDEN / "front-page.json").read_text()), json.loads(printed.stdout)
    assert got.pop("scores") == pytest.approx(kept.pop("scores"), abs=EXACT)
    assert got == kept
