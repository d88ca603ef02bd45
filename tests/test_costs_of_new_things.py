"""What a new thing costs: each example of docs/adding-*.md and extending.md is one file, plugged in or in the package.

The same examples are installed as packages of one module with an entry point, and put as one new module each into the
rooms of a copy of this package. Nothing else is written or edited, and both have to show them everywhere.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import readbench
from tests.benchmark.report.test_site import embedded
from tests.plugins import Readbench, command_line, install

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[1] / "docs"
ROOMS = {
    "peak": "engine/retrievers",
    "extremes": "engine/encoders",
    "first-fault": "engine/rerankers",
    "MRR": "benchmark/metrics",
    "pollution-cost": "benchmark/report",
    "pumps": "benchmark/sources",
    "corpus-size": "studies",
}
"""Name of an example -> the room it would have in this package."""
METHODS = ("peak(power=2)", "extremes", "extremes|peak", "peak+first-fault(pool=30)")


def read_examples() -> dict[str, str]:
    """The code of each thing that the documentation adds, by its name."""
    blocks = (
        block
        for page in (*sorted(DOCS.glob("adding-a-*.md")), DOCS / "extending.md")
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    )
    named = ((re.search(r'\b(?:register|register_\w+)\(\s*(?:Study\(\s*)?"([^"]+)"', block), block) for block in blocks)
    return {found[1]: block for found, block in named if found}


EXAMPLES = read_examples()


@dataclass(frozen=True)
class House:
    """A place where all examples were added, and a run there."""

    readbench: Readbench
    folder: Path
    site: Path
    origin: str


def write_pumps(root: Path) -> None:
    """Recordings as the example of a dataset reads them: both faults, and runs without any."""
    rng = np.random.default_rng(0)
    (root / "pumps").mkdir(parents=True)
    for number in range(15):
        fault = number % 3
        table = rng.standard_normal((1024, 3))
        table[:, 2] = np.where(np.arange(1024) >= 300, fault, 0)
        table[300:, 0] += 3 * fault
        np.savetxt(root / "pumps" / f"p{number % 4}-{number}.csv", table, delimiter=",", header="flow,pressure,label")


def add_as_plugins(site: Path) -> str:
    for name, code in EXAMPLES.items():
        install(site, f"their-{name.lower()}", code)
    return "their-"


def add_inside(site: Path) -> str:
    """With the compiled kernels, which know their sources by content and time."""
    package = Path(readbench.__file__).parent
    shutil.copytree(package, site / "readbench", ignore=shutil.ignore_patterns("*.pyc*", "*.tmp.*"))
    for name, code in EXAMPLES.items():
        (site / "readbench" / ROOMS[name] / f"_{name.lower().replace('-', '_')}.py").write_text(code)
    return "readbench"


@pytest.fixture(scope="module", params=[add_as_plugins, add_inside], ids=["plug-in", "inside"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    folder = tmp_path_factory.mktemp("house")
    origin = request.param(folder / "site")
    write_pumps(folder / "data")
    made = House(command_line(folder / "site", folder), folder, folder / "site", origin)
    chosen = [part for method in METHODS for part in ("--methods", method)]
    plan = ("--datasets", "pumps", "--root", "data", *chosen, "--rho", "0,10", "--seed", "0", "--out", "run")
    passed(made.readbench("run", *plan))
    return made


def passed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert "could not be" not in done.stderr
    return done.stdout


def rows_of(house: House) -> list[dict[str, str]]:
    with (house.folder / "run" / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_documentation_has_an_example_of_each() -> None:
    assert set(ROOMS) <= EXAMPLES.keys()
    assert EXAMPLES.keys() <= set(ROOMS), "say in ROOMS where a new example belongs"


def test_each_is_one_file(house: House) -> None:
    codes = {code.strip() for code in EXAMPLES.values()}
    known = {path.name for path in Path(readbench.__file__).parent.rglob("*.py")}
    new = [p for p in house.site.rglob("*.py") if p.read_text().strip() and p.name not in known]
    assert sorted(path.read_text().strip() for path in new) == sorted(codes)


def test_methods_are_listed(house: House) -> None:
    listed = {entry["name"]: entry for entry in json.loads(passed(house.readbench("list", "methods", "--json")))}
    for name in ("peak", "extremes", "first-fault"):
        assert listed[name]["origin"].startswith(house.origin)
        assert listed[name]["summary"]


def test_a_dataset_is_listed_and_keeps_the_contract_of_sources(house: House) -> None:
    assert "pumps" in {entry["name"] for entry in json.loads(passed(house.readbench("list", "datasets", "--json")))}
    code = (
        "from pathlib import Path\n"
        "from readbench.engine.registry import SOURCES\n"
        "from readbench.testing import SOURCE_CHECKS\n"
        "for check in SOURCE_CHECKS: check(SOURCES.get('pumps').build(), Path('data'))\n"
    )
    path = os.pathsep.join([str(house.site), *filter(None, [os.environ.get("PYTHONPATH")])])
    passed(
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=house.folder,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    )


def test_methods_run_on_the_dataset_and_the_metric_has_its_columns(house: House) -> None:
    rows = rows_of(house)
    assert [(row["dataset"], row["rho"], row["method"]) for row in rows] == [
        ("pumps", rho, method) for rho in ("0", "10") for method in METHODS
    ]
    assert all(row["status"] == "ok" for row in rows)
    assert all(0 < float(row["MRR@10"]) <= 1 for row in rows)
    assert len({row["NDCG@10"] for row in rows}) > 2, "methods are told apart"


def test_the_report_has_the_figure_and_the_page_shows_it(house: House) -> None:
    text = passed(house.readbench("report", "run", "--metric", "MRR@10"))
    assert "MRR@10 over" in text
    report = house.folder / "run" / "report"
    drawing = (report / "figures" / "pollution-cost.svg").read_text()
    assert drawing.count("<path") > len(METHODS)
    data: dict[str, Any] = json.loads(embedded((report / "index.html").read_text(), "data"))
    assert "pollution-cost" in {figure["name"] for figure in data["figures"]}
    assert "pollution-cost" not in (report / "tables.md").read_text()


@pytest.mark.parametrize("house", [add_as_plugins], ids=["plug-in"], indirect=True)
def test_a_run_without_what_the_figure_needs_says_so(house: House) -> None:
    plan = ("--datasets", "pumps", "--root", "data", "--methods", "peak", "--rho", "0", "--seed", "0", "--out", "one")
    passed(house.readbench("run", *plan))
    passed(house.readbench("report", "one"))
    assert "- `pollution-cost`: two pollution levels" in (house.folder / "one" / "report" / "tables.md").read_text()


def test_the_study_is_listed_and_its_command_writes_its_table_and_figure(house: House) -> None:
    listed = {entry["name"]: entry for entry in json.loads(passed(house.readbench("list", "studies", "--json")))}
    assert listed["corpus-size"]["origin"].startswith(house.origin)
    asked = ("--datasets", "pumps", "--root", "data", "--methods", "peak", "--seed", "0", "--out", "size")
    for _ in range(2):
        assert "pumps seed 0 rho 0 peak" in passed(house.readbench("study", "corpus-size", *asked))
    written = {path.name for path in (house.folder / "size").iterdir()}
    assert written == {"cells", "corpus-size.md", "size.csv", "size.svg", "size.png"}
    refused = house.readbench("study", "corpus-size", *asked, "--set", "share=1")
    assert "The study corpus-size has no settings" in refused.stderr
