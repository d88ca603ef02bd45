"""Tables that documents show of published rows, and what the rows of assets held out say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from readbench.benchmark.report import (
    labelling_table,
    place_methods,
    read_results,
    settings_tables,
)
from readbench.benchmark.report._settings import RULES
from readbench.engine.registry import SOURCES
from readbench.engine.spec import COMPOSED, parse
from tests.benchmark.report.made_up import made_up_run
from tools.docs.__main__ import main as docs
from tools.docs.blocks import write_block
from tools.docs.conclusions import OWN_CLAIMS, Claim, judge_claims
from tools.docs.row_tables import splits_table

JOINT = "mr-hydra(form=joint)"


def test_a_method_that_lacks_datasets_comes_last_and_says_on_how_many_it_is(tmp_path: Path) -> None:
    methods, better = ("euclidean", "dtw-i", "random"), {"dtw-i": 0.9}

    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        return better.get(method, 0.5) + 0 * seed * rho * len(dataset + metric)

    results = read_results(made_up_run(tmp_path, methods=methods, failed=("hai", "dtw-i"), scores=scores))
    rows = [line for line in write_block("label-free", results).splitlines() if line.startswith("| DTW-I")]
    assert rows[0].startswith("| DTW-I | .900 ±.000 (3 of 4) | .900 |")
    lines = write_block("label-free", results).splitlines()
    assert lines.index(rows[0]) > next(i for i, line in enumerate(lines) if line.startswith("| ED"))
    front = write_block("front", results)
    assert "| DTW-I | none | .900 | .900 | .900 | – |" in front
    assert "the ones of 4 that all of these methods have" in front


def test_a_rival_stands_beside_others_on_the_queries_that_all_have(tmp_path: Path) -> None:
    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        gain = {"ts2vec": 0.1, "sonde": 0.3}.get(method, 0.0)
        return 0.3 + gain * (dataset != "hai") + 0 * seed * rho * len(metric)

    methods = ("ts2vec", "sonde", COMPOSED["ours"])
    text = write_block("against-ts2vec", read_results(made_up_run(tmp_path, methods=methods, scores=scores)))
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert lines["skab"].startswith("| skab | 12 | .400 | .600 | .300 | **+0.200 [+0.200, +0.200]**")
    assert "**-0.100" in lines["skab"]
    assert lines["hai"].count("+0.000 [+0.000, +0.000]") == 2
    assert "+0.150 [+0.050, +0.200]" in lines["mean of 4"]


def test_claims_can_be_asked_of_datasets_that_were_not_in_sight_and_by_other_metrics(tmp_path: Path) -> None:
    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        seen = dataset == "skab"
        return (
            0.2 + 0.5 * (method == "sonde" and seen) + 0.1 * (metric == "HR@10" and method == "rocket") + 0 * seed * rho
        )

    results = read_results(made_up_run(tmp_path, methods=("sonde", "rocket"), scores=scores))
    pair = (("sonde", "rocket"),)
    everywhere, unseen, hits = judge_claims(
        results,
        [Claim("a", pair, 0), Claim("b", pair, 0, unseen=True), Claim("c", pair, 0, metric="HR@10", unseen=True)],
    )
    assert (everywhere.datasets, everywhere.positive) == (4, 1)
    assert (unseen.datasets, unseen.positive) == (3, 0)
    assert hits.effect is not None
    assert hits.effect.mean == pytest.approx(-0.1)
    for claim in OWN_CLAIMS:
        assert all(str(parse(name)) == name for pair in claim.pairs for name in pair), claim


def test_both_orders_are_judged_by_hits_too(tmp_path: Path) -> None:
    methods = (COMPOSED["flagship"], COMPOSED["flagship-spread"], JOINT)
    text = write_block("orders", read_results(made_up_run(tmp_path, methods=methods)))
    assert "| NDCG@10, ρ = 0 % | HR@10, ρ = 0 % |" in text
    assert [line.split(" | ")[0] for line in text.splitlines()[3:6]] == [
        "| Flagship",
        "| Flagship-spread",
        "| MR-Hydra(form=joint)",
    ]


def test_many_splits_say_how_far_they_differ_and_on_which_datasets(tmp_path: Path) -> None:
    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        return 0.3 + 0.1 * seed + 0.2 * (method == "dtw-i") + 0 * rho * len(dataset + metric)

    folder = made_up_run(tmp_path, methods=("euclidean", "dtw-i"), failed=("hai", "dtw-i"), scores=scores)
    results = read_results(folder)
    lines = splits_table(results).splitlines()
    low, high = (f".{3 + seed}00" for seed in (min(results.seeds), max(results.seeds)))
    assert f"({low} to {high})" in lines[2]
    assert lines[2].startswith("| ED |")
    assert lines[3].startswith("| DTW-I |")
    assert "(3 of 4)" in lines[3]
    assert lines[3].count("–") == 1


def test_our_defaults_are_the_papers_settings(tmp_path: Path) -> None:
    results = read_results(made_up_run(tmp_path, methods=("dtw-i", "rocket|ws(alpha=0.7)|dtw-i+gpc")))
    rows = {row[0]: row for table in settings_tables(results) for row in table.rows}
    compared = (
        "DTW-I",
        "SAX-BM25",
        "SFA-BM25",
        "NR",
        "RRF",
        "WS",
        "2-step",
        "PRF",
        "Purity",
        "Majority-Vote",
        "QPurity",
    )
    for part in compared:
        ours, paper = ({float(n) for n in re.findall(r"\d+(?:\.\d+)?", rows[part][i])} for i in (3, 5))
        assert paper - {1.0} <= ours, part
    assert rows["WS"][1] == "yes"
    assert rows["WS"][4] == "alpha = 0.7"
    assert rows["GPC"][2] == "labels of 20 hits"
    assert rows["NR"][1:3] == ["no", "known normals"]


def test_the_labelling_of_every_source_is_told_and_agrees_with_the_papers(tmp_path: Path) -> None:
    built_in = tuple(e.name for e in SOURCES if e.origin == "readbench")
    table = labelling_table(read_results(made_up_run(tmp_path, methods=("random",), datasets=built_in, seeds=(0,))))
    assert table is not None
    here = [row for row in table.rows if row[1] == "here"]
    assert len(here) == len(built_in)
    for own, paper in zip(table.rows, table.rows[1:], strict=False):
        if paper[1] == "paper" and "mit_bih" not in own[0]:  # the source itself takes the majority there
            assert own[3] == paper[3], own
    assert {row[3] for row in here} <= set(RULES.values())


def test_what_was_compiled_in_the_first_task_is_no_part_of_the_seconds(tmp_path: Path) -> None:
    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        slow = metric.endswith("_s") and seed == 0
        return 100.0 if slow else 0.5 + 0 * rho * len(dataset + method)

    results = read_results(made_up_run(tmp_path, methods=("random", "stats"), seeds=(0, 1, 2), scores=scores))
    assert {row.seconds for row in place_methods(results).rows} == {4 * 5.0}


def test_the_command_fills_documents_and_finds_stale_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, page = made_up_run(tmp_path / "run"), tmp_path / "page.md"
    page.write_text("<!-- results: label-free -->\n<!-- end -->\n")
    asked = [str(rows), str(page)]
    assert docs(["check", *asked]) == 1
    assert "the block label-free is not what the rows" in capsys.readouterr().out
    assert docs(["fill", *asked]) == 0
    assert docs(["check", *asked]) == 0
