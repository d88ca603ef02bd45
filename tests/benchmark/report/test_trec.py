"""Other people's tools score our exports to our numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pyarrow.parquet as pq
import pytest
from ir_measures import P, Success, nDCG

from readbench.benchmark.report import read_results, write_trec
from readbench.benchmark.report._trec import qrels_lines, token
from readbench.benchmark.runs import Cell, Qrels, RunFolder, run
from readbench.errors import RunError
from tests.benchmark.runs.helpers import small_plan

MEASURES = {"NDCG@10": nDCG @ 10, "P@1": P @ 1, "HR@5": Success @ 5, "NDCG@20": nDCG @ 20}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("trec")
    run(small_plan(methods=("random", "stats", "euclidean|stats")), base / "run", cache=base / "cache")
    return base / "run"


def read_qrels_file(path: Path) -> list[Any]:
    return list(ir_measures.read_trec_qrels(str(path)))  # type: ignore[no-untyped-call]


def read_run_file(path: Path) -> list[Any]:
    return list(ir_measures.read_trec_run(str(path)))  # type: ignore[no-untyped-call]


def test_ir_measures_gives_our_numbers(folder: Path, tmp_path: Path) -> None:
    files = write_trec(read_results(folder), tmp_path)
    assert len(files) == 2 * (1 + 3)
    for rho in (0, 20):
        place = tmp_path / "sim_tanks" / "seed-7" / f"rho-{rho}"
        qrels = read_qrels_file(place / "qrels.txt")
        for method in ("random", "stats", "euclidean|stats"):
            path = RunFolder(folder).cell_path(Cell("sim_tanks", 7, rho, method)).with_suffix(".run").name
            listed = read_run_file(place / path)
            for name, measure in MEASURES.items():
                theirs = {v.query_id: v.value for v in ir_measures.iter_calc([measure], qrels, listed)}
                wanted = [("rho", "=", rho), ("method", "=", method), ("metric", "=", name)]
                own = pq.read_table(folder / "per_query.parquet", filters=wanted).to_pylist()
                ours = {token(row["query"]): row["value"] for row in own}
                assert theirs.keys() == ours.keys()
                assert max(abs(theirs[query] - ours[query]) for query in ours) < 1e-9, (rho, method, name)


def test_a_query_without_relevant_items_counts_as_zero(tmp_path: Path) -> None:
    queries, labels = np.array(["q 1", "q2"]), np.array([2, 0], np.int32)
    qrels = Qrels("", queries, labels, np.array(["a", "b"]), np.array([1, 0], np.int32), np.zeros(2, np.int32))
    lines = list(qrels_lines(qrels, 0))
    assert lines == ["q%201 0 a 0", "q2 0 a 0"]
    (tmp_path / "qrels.txt").write_text("\n".join(lines))
    (tmp_path / "one.run").write_text("q%201 Q0 a 1 2 x\nq2 Q0 b 1 2 x\n")
    judged, listed = read_qrels_file(tmp_path / "qrels.txt"), read_run_file(tmp_path / "one.run")
    assert [found.value for found in ir_measures.iter_calc([nDCG @ 10], judged, listed)] == [0, 0]


def test_a_folder_without_labels_says_how_to_get_them(folder: Path) -> None:
    with pytest.raises(RunError, match="Run the same command again"):
        RunFolder(folder).read_qrels("sim_tanks", 99)
