"""The rows in `results`, and the documents that quote them: no marked block shows what the rows do not give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.report import check_submissions, published_bundle, read_results
from readbench.benchmark.report._methods import marks_of
from readbench.benchmark.report._origins import FEW_NORMALS
from readbench.benchmark.runs import Cell, PublishedFolder
from tools.docs.blocks import BLOCKS, find_blocks, find_stale

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
MOST_BYTES = 20_000_000
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(RESULTS.glob("*.md")))
    if find_blocks(path.read_text(encoding="utf-8"))
]


def test_the_rows_are_small_enough_to_be_kept_beside_the_code() -> None:
    files = [path for path in RESULTS.rglob("*") if path.is_file() and "report" not in path.relative_to(RESULTS).parts]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.slow
def test_every_marked_block_shows_what_the_rows_give() -> None:
    assert {"README.md", "results.md", "tables.md", "claims.md", "settings.md"} <= {path.name for path in DOCUMENTS}
    stale = find_stale(DOCUMENTS, read_results(RESULTS))
    assert not stale, "write them anew: python -m tools.docs fill results README.md docs/results.md results/*.md"


def test_documents_name_blocks_that_exist() -> None:
    for path in DOCUMENTS:
        for found in find_blocks(path.read_text(encoding="utf-8")):
            assert found["name"] in BLOCKS, path


def test_published_scores_follow_from_published_lists() -> None:
    """Another way than that of the reader: means of one dataset from lists and labels."""
    folder = PublishedFolder(RESULTS)
    checked = 0
    for row in folder.read_scores()[1]:
        if row["dataset"] != "skab":
            continue
        cell = Cell(row["dataset"], int(row["seed"]), int(row["rho"]), row["method"], row["labels"])
        qrels = folder.read_qrels(cell.dataset, cell.seed)
        ids, labels = qrels.at(cell.rho)
        places = {item: i for i, item in enumerate(ids.tolist())}
        ranking = np.array([[places[qrels.items[n]] for n in listed] for listed in folder.places(cell).tolist()])
        means = evaluate(ranking, qrels.query_labels, labels).means()
        assert means["NDCG@10"] == pytest.approx(float(row["NDCG@10"]), abs=1e-6)
        assert means["macro_F1"] == pytest.approx(float(row["macro_F1"]), abs=1e-6)
        checked += 1
    assert checked >= 9


def test_the_folder_of_submissions_passes_its_own_check() -> None:
    results = read_results(RESULTS)
    assert [one for one in check_submissions(ROOT / "submissions", results) if one.reasons] == []
    assert published_bundle(results).name == "readbench"


def test_every_published_cell_has_a_fingerprint_and_a_task() -> None:
    folder = PublishedFolder(RESULTS)
    cells = {
        Cell(r["dataset"], int(r["seed"]), int(r["rho"]), r["method"], r["labels"]) for r in folder.read_scores()[1]
    }
    assert cells == folder.fingerprints.keys()
    tasks = folder.read_manifest()["tasks"]
    assert all(tasks[f"{cell.dataset}/seed-{cell.seed}"] for cell in cells)
    computed = folder.read_manifest()["computed_by"]
    assert {cell.method for cell in cells} <= computed.keys()


def test_datasets_with_fewer_normals_than_a_level_says_are_marked_wherever_it_is_shown() -> None:
    results = read_results(RESULTS)
    short = {name for name in results.datasets if marks_of(results, name).endswith(FEW_NORMALS)}
    assert short == {"haizhe_auv", "nppad"}
    for page in ("tables.md", "settings.md"):
        text = (RESULTS / page).read_text()
        for name in short:
            headers = [line for line in text.splitlines() if line.startswith("|") and "20 %" in line and name in line]
            assert all(f"{name}{marks_of(results, name)}" in line for line in headers)
    assert all(name in (ROOT / "docs" / "protocol.md").read_text() for name in short)
