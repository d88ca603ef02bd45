"""Places, statements, blocks in documents, comparison with the published, and conclusions."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench import evaluate
from readbench.benchmark.metrics import expect
from readbench.benchmark.protocol import load_task
from readbench.benchmark.report import (
    compare_with_published,
    find_published,
    overview,
    place_methods,
    places_table,
    read_results,
    read_scored_cells,
    retained_shares,
    retained_table,
    state_method,
)
from readbench.benchmark.runs import open_folder, publish, run
from readbench.cli import app
from readbench.engine.method import Method
from readbench.engine.registry import Entry
from readbench.engine.spec import COMPOSED, parse
from readbench.errors import DataError, RunError, UnknownNameError, UsageError
from tests.benchmark.report.made_up import made_up_run
from tests.benchmark.runs.helpers import small_plan
from tools.docs.__main__ import main as write_documents
from tools.docs.blocks import BLOCKS, fill_blocks, find_stale, write_block
from tools.docs.conclusions import CLAIMS, OWN_CLAIMS, RERANKER_CLAIMS, Claim, judge_claims


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published rows of two methods, and a run of another one on the same tasks."""
    folder = tmp_path_factory.mktemp("honest")
    run(small_plan(methods=("random", "stats", "majority")), folder / "one", cache=folder / "cache")
    run(small_plan(methods=("euclidean",)), folder / "mine", cache=folder / "cache")
    publish([folder / "one"], folder / "results")
    return folder


@pytest.mark.parametrize(
    ("method", "labels", "normals"),
    [
        ("dtw-i", "none", False),
        ("euclidean(norm=normals)", "none", True),
        ("sonde", "none", True),
        ("sonde(reference=none)", "none", False),
        ("rocket+nr", "none", True),
        ("rocket+gpc", "pool of 20", False),
        ("flagship", "all", True),
        ("flagship-pool", "pool of 20", True),
        ("rocket+verdict(drop_normals=false)", "all", False),
        ("majority", "all", False),
        ("rocket+prf", "none", False),
        ("no-such-method", "unknown", False),
    ],
)
def test_what_a_method_knows_is_stated(method: str, labels: str, normals: bool) -> None:  # noqa: FBT001
    found = state_method(method)
    assert (found.label_text, found.normals) == (labels, normals)


def test_our_systems_say_which_datasets_were_in_sight_and_published_ones_none() -> None:
    assert state_method("dtw-i").chosen_on == ()
    for text in COMPOSED.values():
        found = state_method(text)
        assert {"skab", "ctsr"} <= set(found.chosen_on)
        assert found.said


def test_like_is_ranked_among_like(tmp_path: Path) -> None:
    methods = ("euclidean", "dtw-i", "random", "majority", "sbd-d", "dtw-i+gpc")
    results = read_results(made_up_run(tmp_path / "run", methods=methods))
    rows = place_methods(results).rows
    assert [row.stated.labels for row in rows] == ["none"] * 4 + ["pool", "all"]
    assert {row.rivals for row in rows if row.stated.labels == "none"} == {4}
    for use in ("none", "pool"):
        own = [row.mean for row in rows if row.stated.labels == use]
        assert own == sorted(own, reverse=True)
    table = places_table(results)
    assert table is not None
    assert table.columns[:3] == ["Labels", "Method", "Normals"]
    assert "HR@10" in table.columns


def test_datasets_in_sight_are_counted_and_each_set_is_named_once(tmp_path: Path) -> None:
    methods = ("euclidean", COMPOSED["ours"], COMPOSED["ours-dtw"], "sonde", "sonde(size=small)")
    table = places_table(read_results(made_up_run(tmp_path / "run", methods=methods)))
    assert table is not None
    chosen = {row[1]: row[-1] for row in table.rows}
    assert chosen["ED"] == "none"
    assert chosen["Ours"] == chosen["Sonde(size=small)"]
    assert chosen["Ours-dtw"] == chosen["Sonde"] != chosen["Ours"]
    assert chosen["Sonde"].startswith("5 (")
    names = ", ".join(state_method("sonde").chosen_on)
    assert table.caption.count(f"{chosen['Sonde'][2:]} {names}") == 1


def test_no_p_value_is_shown_where_none_could_be_small(tmp_path: Path) -> None:
    results = read_results(made_up_run(tmp_path / "run", methods=("euclidean", "dtw-i", "random")))
    seen = overview(results)
    tables = {table.name: table for table in seen.tables}
    assert "p" not in tables["comparisons"].columns
    assert any(line.startswith("No p-values: with 4 datasets") for line in seen.remarks)


def test_a_method_that_lacks_datasets_says_on_how_many_it_is(tmp_path: Path) -> None:
    folder = made_up_run(tmp_path / "run", methods=("euclidean", "dtw-i", "random"), failed=("hai", "dtw-i"))
    table = overview(read_results(folder)).tables[0]
    row = next(row for row in table.rows if row[0] == "DTW-I")
    assert row[2].endswith("(3 of 4)")
    assert row is table.rows[-1]


def test_a_block_shows_what_the_rows_give_and_an_edited_number_is_found(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = read_results(base / "results")
    document = tmp_path / "page.md"
    marked = "".join(f"<!-- results: {name} -->\n<!-- end -->\n" for name in BLOCKS)
    document.write_text(fill_blocks(f"Before\n{marked}After\n", results))
    text = document.read_text()
    assert text.startswith("Before\n")
    assert text.endswith("After\n")
    assert not find_stale([document], results)
    assert fill_blocks(text, results) == text
    number = re.search(r"\.\d{3}", write_block("classical", results))
    assert number is not None
    document.write_text(text.replace(number[0], ".999"))
    assert {stale.name for stale in find_stale([document], results)} >= {"classical"}
    assert write_documents(["check", str(base / "results"), str(document)]) == 1
    assert "the block classical is not what the rows" in capsys.readouterr().out
    assert write_documents(["fill", str(base / "results"), str(document)]) == 0
    assert document.read_text() == text


@pytest.mark.parametrize(
    "example",
    [
        "    <!-- results: no-such-block -->\n    ...\n    <!-- end -->\n",
        "```html\n<!-- results: no-such-block -->\n<!-- end -->\n```\n",
        "~~~\n<!-- results: classical -->\n~~~\n",
    ],
)
def test_marks_that_are_indented_or_in_a_fence_are_examples(example: str, base: Path, tmp_path: Path) -> None:
    results = read_results(base / "results")
    assert fill_blocks(example, results) == example
    document = tmp_path / "page.md"
    document.write_text(f"{example}\n<!-- results: rows -->\nold\n<!-- end -->\n\n{example}")
    assert [stale.name for stale in find_stale([document], results)] == ["rows"]
    filled = fill_blocks(document.read_text(), results)
    assert filled == f"{example}\n<!-- results: rows -->\n{write_block('rows', results)}<!-- end -->\n\n{example}"


def test_unknown_and_open_blocks_are_errors(base: Path) -> None:
    results = read_results(base / "results")
    with pytest.raises(UnknownNameError):
        fill_blocks("<!-- results: classicl -->\n<!-- end -->", results)
    with pytest.raises(DataError, match="does not close"):
        fill_blocks("<!-- results: classical -->\n", results)


def test_a_method_stands_beside_the_published_on_the_same_queries(base: Path) -> None:
    mine = read_results(base / "mine")
    cells = read_scored_cells(mine, "euclidean")
    rows = compare_with_published(cells, base / "results", labels="none")
    assert {row.published for row in rows} == {"random", "stats"}
    published = read_results(base / "results")
    for row in rows:
        there = published.at("NDCG@10", row.rho)[..., published.methods.index(row.published)].mean()
        here = mine.at("NDCG@10", row.rho)[..., 0].mean()
        assert row.theirs == pytest.approx(there, abs=1e-6)
        assert row.difference.mean == pytest.approx(here - there, abs=1e-6)
    assert next(row for row in rows if row.published == "random").outcome == "ahead"
    done = CliRunner().invoke(app, ["compare", str(base / "mine"), str(base / "results")])
    assert done.exit_code == 0
    assert "beside the published" in done.output
    assert "uses is unknown" not in done.output


def test_a_method_of_a_file_that_was_not_named_stands_beside_all_and_is_told(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readbench.benchmark.report.state_method", lambda _: state_method("no-such-method"))
    done = CliRunner().invoke(app, ["compare", str(base / "mine"), str(base / "results")])
    assert done.exit_code == 0
    assert "Which labels euclidean reads is not known here" in done.stderr
    assert "Majority" in done.output


def test_other_data_are_refused_in_a_sentence(base: Path) -> None:
    cells = read_scored_cells(read_results(base / "mine"), "euclidean")
    other = [type(c)(c.dataset, c.seed, c.rho, "another", c.queries, c.values) for c in cells]
    with pytest.raises(RunError, match="is another task than the published one"):
        compare_with_published(other, base / "results")
    with pytest.raises(UsageError, match="is no published task"):
        compare_with_published([type(c)("skab", 0, 0, "x", c.queries, c.values) for c in cells], base / "results")
    with pytest.raises(RunError, match="no finished cell"):
        compare_with_published([], base / "results")


def test_an_evaluation_can_be_asked_against_the_published(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_task("sim_tanks", 7, cache=base / "cache")
    found = evaluate("euclidean", task, levels=(0,), cache=base / "cache", against=base / "results")
    rows = {row["published"]: row for row in found.against}
    assert rows["Random"]["outcome"] == "ahead"
    assert rows["Random"]["own"] == pytest.approx(found["NDCG@10"][0])
    monkeypatch.setenv("READBENCH_RESULTS", str(base / "results"))
    assert find_published() == base / "results"
    with pytest.raises(UsageError, match=r"sim_tanks/seed-8 is no published task.* has the seeds 7 of sim_tanks\."):
        evaluate(
            "euclidean", load_task("sim_tanks", 8, cache=base / "cache"), cache=base / "cache", against="published"
        )
    first = evaluate("euclidean", task, levels=(0,), metrics=["P@1"], cache=base / "cache", against="published")
    assert {row["own"] for row in first.against} == {first["P@1"][0]}
    with pytest.raises(UsageError, match="macro_F1 has no value for a single query"):
        evaluate("euclidean", task, metrics=["macro_F1"], cache=base / "cache", against="published")
    monkeypatch.setenv("READBENCH_RESULTS", str(tmp_path))
    with pytest.raises(UsageError, match="Clone it"):
        find_published()
    with pytest.raises(UsageError, match="holds no published rows"):
        find_published(base / "mine")


def test_a_task_of_rows_inside_the_published_is_pointed_to(base: Path, tmp_path: Path) -> None:
    inside = shutil.copytree(base / "results", tmp_path / "results") / "embedded"
    run(small_plan(methods=("random",), seeds=(8,)), tmp_path / "more", cache=base / "cache")
    publish([tmp_path / "more"], inside)
    with pytest.raises(UsageError, match=f"{inside} has it: name that folder"):
        evaluate("euclidean", "sim_tanks", seeds=(8,), cache=base / "cache", against=tmp_path / "results")


def test_claims_are_judged_by_the_rows_alone(tmp_path: Path) -> None:
    def scores(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:
        gain = {"rocket+nr": 0.1, "rocket": 0.0, "sbd-d": -0.2, "dtw-i": 0.0}.get(method, 0.0)
        return 0.5 + gain + 0.01 * (len(dataset) % 3) * (method == "dtw-i") - rho / 1000 + 0 * seed * len(metric)

    folder = made_up_run(tmp_path / "run", methods=("rocket", "rocket+nr", "sbd-d", "dtw-i"), scores=scores)
    results = read_results(folder)
    found = {(f.claim.says, f.claim.rho): f for f in judge_claims(results)}
    helped = found["Normal residuals help rocket", 0]
    assert helped.effect is not None
    assert helped.effect.mean == pytest.approx(0.1)
    assert (helped.verdict, helped.positive, helped.datasets) == ("holds here by the interval alone", 4, 4)
    embedders = "Embedders find more than distances, which the paper denies"
    assert found[f"{embedders}: rocket than dtw-i", 0].verdict == "not shown here"
    assert found[f"{embedders}: sonde than dtw-i", 0].verdict == "not computed"
    assert found["Pollution of 20 % costs rocket something", 0].effect is not None
    six = ("skab", "road", "sim_tanks", "hai", "sim_ecg", "sim_can")
    more = read_results(made_up_run(tmp_path / "six", methods=("rocket", "rocket+nr"), datasets=six, scores=scores))
    shown = {(f.claim.says, f.claim.rho): f for f in judge_claims(more)}["Normal residuals help rocket", 0]
    assert (shown.verdict, shown.p_value) == ("holds here", 0.03125)
    turned = judge_claims(results, [Claim("turned", (("sbd-d", "rocket"),), 0)])[0]
    assert turned.verdict == "the opposite holds here by the interval alone"


def test_every_claim_names_methods_of_the_grammar() -> None:
    for claim in (*CLAIMS, *OWN_CLAIMS, *RERANKER_CLAIMS):
        for pair in claim.pairs:
            assert all(str(parse(name)) == name for name in pair if name), claim


def test_missing_rows_leave_a_block_that_says_so(base: Path, tmp_path: Path) -> None:
    run(small_plan(methods=("random", "euclidean"), seeds=(7, 9)), tmp_path / "more", cache=base / "cache")
    for file in (tmp_path / "more" / "cells").rglob("euclidean*.parquet"):
        if "seed-9" in str(file):
            file.unlink()
    shutil.copytree(base / "results", tmp_path / "results")
    publish([tmp_path / "more"], tmp_path / "results")
    results = read_results(tmp_path / "results")
    assert results.missing()["euclidean"] == 2
    assert "Planned, not computed (cells)" in write_block("rows", results)
    assert np.isnan(results.values["NDCG@10"][..., results.methods.index("euclidean")]).sum() == 2


@pytest.fixture(scope="module")
def parted(base: Path) -> Path:
    """Published rows with recordings and with assets held out, and a method that is planned on one seed."""
    plan = small_plan(methods=("random", "stats"), levels=(0,), seeds=(7, 8), corpus_cap=60)
    run(plan, base / "few", cache=base / "cache")
    run(replace(plan, methods=("euclidean",), seeds=(8,)), base / "part", cache=base / "cache")
    run(replace(plan, split_by="asset"), base / "away", cache=base / "cache")
    publish([base / "few"], base / "parted")
    publish([base / "part"], base / "parted", partly=True)
    publish([base / "away"], base / "parted" / "assets")
    return base / "parted"


def test_a_method_that_is_planned_on_a_part_lacks_nothing_elsewhere(base: Path, parted: Path) -> None:
    results = read_results(parted)
    assert results.missing() == {}
    assert "5 of 5 planned cells" in write_block("rows", results)
    assert results.methods.index("euclidean") not in results.complete()
    assert "`parted/assets`, whole assets held out: 4 of 4 planned cells" in write_block("rows", results)
    again = publish([base / "few"], parted)
    assert (again.computed, again.planned) == (5, 5)
    planned = publish([base / "few"], parted, ["euclidean"])
    assert (planned.computed, planned.planned) == (5, 6)


def test_what_is_left_on_unseen_assets_is_corrected_for_chance(parted: Path) -> None:
    results = read_results(parted)
    found = retained_shares(results)
    assert set(found) == {"random", "stats"}
    assert found["stats"].share is None  # one dataset is no sample of datasets
    wanted = []
    for path in (parted, parted / "assets"):
        own, folder = read_results(path), open_folder(path)
        tasks = [folder.read_qrels("sim_tanks", seed) for seed in (7, 8)]
        chance = np.mean([expect(q.query_labels, q.at(0)[1], "NDCG@10").mean() for q in tasks])
        score = own.at("NDCG@10", 0)[0, :, own.methods.index("stats")].mean()
        wanted.append((score - chance) / (1 - chance))
    assert found["stats"].means == pytest.approx(wanted)
    assert abs(found["random"].means[0]) < 0.1
    places = places_table(results)
    assert places is not None
    assert "Unseen assets retain" in places.header
    table = retained_table(results)
    assert table is not None
    assert table.rows[0][0] == "Stats"
    assert retained_table(read_results(parted / "assets")) is None


def test_label_use_is_known_of_methods_whose_packages_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entry, "missing_modules", lambda entry: list(entry.requires))
    with pytest.raises(UsageError, match="needs"):
        Method("mr-hydra")
    found = {text: state_method.__wrapped__(text).label_text for text in ("mr-hydra", "ts2vec", "ts2vec+gpc")}
    assert found == {"mr-hydra": "all", "ts2vec": "none", "ts2vec+gpc": "pool of 20"}
