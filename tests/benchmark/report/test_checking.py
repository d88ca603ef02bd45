"""Submissions by pull request: honest ones are taken; what leaks, copies or was edited is refused with the reason."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import load_task
from readbench.benchmark.report import (
    Declared,
    check_submissions,
    published_bundle,
    rank_submissions,
    read_results,
    write_bundle,
)
from readbench.benchmark.report._checking import find_leaps, values_by_method
from readbench.benchmark.report._statements import LABEL_USES, state_method
from readbench.benchmark.runs import Plan, Qrels, publish, run
from readbench.cli import app
from readbench.engine.registry import METRICS, RETRIEVERS
from readbench.engine.windows import Window, WindowSet
from readbench.errors import UsageError
from tests.benchmark.report.test_submissions import Contents, better_scores, changed
from tests.benchmark.runs.helpers import small_plan

PUBLISHED = Path(__file__).parents[3] / "results"
SAID: dict[str, Any] = {"authors": "A. Author", "trained_on": (), "chosen_on": (), "labels": "none"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checking")
    run(small_plan(methods=("random", "stats")), folder / "ours", cache=folder / "cache")
    run(small_plan(methods=("euclidean",)), folder / "theirs", cache=folder / "cache")
    run(small_plan(methods=("euclidean",), levels=(0, 10, 20, 30)), folder / "other", cache=folder / "cache")
    publish([folder / "ours"], folder / "results")
    return folder


def submitted(base: Path, folder: Path, name: str = "mine", run_name: str = "theirs", **said: Any) -> Path:  # noqa: ANN401
    folder.mkdir(exist_ok=True)
    declared = Declared(name=name, **(SAID | said))
    return write_bundle(read_results(base / run_name), declared, folder / f"{name}.readbench.zip")


def reasons(base: Path, folder: Path) -> dict[str, tuple[str, ...]]:
    found = check_submissions(folder, read_results(base / "results"))
    return {one.file.removesuffix(".readbench.zip"): one.reasons for one in found}


def test_an_honest_submission_is_taken_and_stands_beside_the_published(base: Path, tmp_path: Path) -> None:
    path = submitted(base, tmp_path / "in")
    (tmp_path / "in" / "README.md").write_text("How to submit")
    assert reasons(base, tmp_path / "in") == {"mine": ()}
    board = rank_submissions([path], published=read_results(base / "results"))
    assert {entry.method for entry in board.entries} == {"random", "stats", "euclidean"}
    assert {entry.submission for entry in board.entries} == {"mine", "readbench"}
    done = CliRunner().invoke(
        app, ["leaderboard", "--check", str(tmp_path / "in"), "--published", str(base / "results")]
    )
    assert done.exit_code == 0
    assert "mine.readbench.zip: accepted: euclidean" in done.output


def test_our_own_rows_pass_as_a_submission(base: Path) -> None:
    bundle = published_bundle(read_results(base / "results"))
    assert bundle.name == "readbench"
    assert bundle.plan.methods == ("random", "stats")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"trained_on": None}, "does not say what it was trained on"),
        ({"chosen_on": None}, "does not say which datasets its settings were chosen on"),
        ({"labels": None}, "does not say which labels it reads"),
        ({"authors": ""}, "does not say who made it"),
        ({"trained_on": ("sim_tanks",)}, "trained on sim_tanks, which it is measured on"),
        ({"name": "readbench"}, "is that of the published rows"),
    ],
)
def test_missing_or_telling_statements_are_refused(base: Path, tmp_path: Path, said: Any, reason: str) -> None:  # noqa: ANN401
    submitted(base, tmp_path / "in", **said)
    found = next(iter(reasons(base, tmp_path / "in").values()))
    assert len(found) == 1
    assert reason in found[0]


def test_an_edited_score_is_refused_by_cell(base: Path, tmp_path: Path) -> None:
    changed(submitted(base, tmp_path / "in"), better_scores)
    (reason,) = reasons(base, tmp_path / "in")["mine"]
    assert "NDCG@10 of sim_tanks seed 7 rho 0 euclidean is 0.999" in reason
    done = CliRunner().invoke(
        app, ["leaderboard", "--check", str(tmp_path / "in"), "--published", str(base / "results")]
    )
    assert done.exit_code == 1
    assert "1 refused" in done.output


def test_copies_are_refused_under_any_name(base: Path, tmp_path: Path) -> None:
    submitted(base, tmp_path / "in", "first")
    submitted(base, tmp_path / "in", "second")
    submitted(base, tmp_path / "in", "third", "ours")
    found = reasons(base, tmp_path / "in")
    assert found["first"] == ()
    assert found["second"] == ("the lists of euclidean are those of euclidean in first.readbench.zip",)
    assert "the lists of random are those of the published random" in found["third"]


def test_other_files_and_names_are_refused(base: Path, tmp_path: Path) -> None:
    path = submitted(base, tmp_path / "in")
    path.rename(path.with_name("other.readbench.zip"))
    (tmp_path / "in" / "rows.csv").write_text("NDCG@10\n1.0\n")
    found = reasons(base, tmp_path / "in")
    assert "must be called mine.readbench.zip" in found["other"][0]
    assert "does not end with" in found["rows.csv"][0]
    with pytest.raises(UsageError, match="There is no folder"):
        check_submissions(tmp_path / "nothing", read_results(base / "results"))
    with pytest.raises(UsageError, match="no published rows"):
        check_submissions(tmp_path / "in", read_results(base / "ours"))


def test_other_data_are_refused(base: Path, tmp_path: Path) -> None:
    submitted(base, tmp_path / "in", run_name="other")
    (reason,) = reasons(base, tmp_path / "in")["mine"]
    assert "it ran on other data: sim_tanks seed 7" in reason


Row = dict[str, Any]


def with_lists(choose: Callable[[Row, Qrels], list[int]]) -> Callable[[Contents], None]:
    """Forge all lists by a rule, and the scores that they give."""

    def change(contents: Contents) -> None:
        labels = pq.read_table(io.BytesIO(contents["labels.parquet"]))
        kept = labels.drop_columns(["dataset", "seed"]).replace_schema_metadata({"readbench": '{"fingerprint": "x"}'})
        qrels = Qrels.from_table(kept)
        lists = pq.read_table(io.BytesIO(contents["rankings.parquet"]))
        rows = lists.to_pylist()
        for row in rows:
            row["items"] = choose(row, qrels)
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, lists.schema), sink)
        contents["rankings.parquet"] = sink.getvalue()
        reader = csv.DictReader(io.StringIO(contents["scores.csv"].decode()))
        scores = list(reader)
        for score in scores:
            rho = int(score["rho"])
            own = [row for row in rows if (row["rho"], row["method"]) == (rho, score["method"])]
            here = qrels.item_levels <= rho
            positions = (np.cumsum(here) - 1)[np.array([row["items"] for row in own])]
            asked = qrels.query_labels[[row["query"] for row in own]]
            means = evaluate(positions, asked, qrels.item_labels[here]).means()
            score.update({name: f"{means[name]:.6f}" for name in METRICS.names()})
        text = io.StringIO()
        writer = csv.DictWriter(text, list(reader.fieldnames or ()), lineterminator="\n")
        writer.writeheader()
        writer.writerows(scores)
        contents["scores.csv"] = text.getvalue().encode()

    return change


def perfect(row: Row, qrels: Qrels) -> list[int]:
    here = np.flatnonzero(qrels.item_levels <= row["rho"])
    return here[np.argsort(qrels.item_labels[here] != qrels.query_labels[row["query"]], kind="stable")][:20].tolist()


def nearly_perfect(row: Row, qrels: Qrels) -> list[int]:
    """The last place of the first query is wrong."""
    found = perfect(row, qrels)
    here = np.flatnonzero((qrels.item_levels <= row["rho"]) & (qrels.item_labels != qrels.query_labels[row["query"]]))
    return [*found[:-1], int(here[-1])] if row["query"] == 0 else found


def never_normal(row: Row, qrels: Qrels) -> list[int]:
    """Half of the places wrong, none of them normal."""
    here = np.flatnonzero(qrels.item_levels <= row["rho"])
    label = qrels.query_labels[row["query"]]
    right = here[qrels.item_labels[here] == label][:10]
    wrong = here[(qrels.item_labels[here] != label) & (qrels.item_labels[here] > 0)][: 20 - len(right)]
    return [*wrong.tolist(), *right.tolist()]


def edited(row: Row, qrels: Qrels) -> list[int]:  # noqa: ARG001 - of the list alone
    """Two last places of one list change."""
    items: list[int] = row["items"]
    return [*items[:-2], *items[:-3:-1]] if row["query"] == 0 else items


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (perfect, "are perfect, where the best published method that reads no more labels has"),
        (nearly_perfect, "99 of 100 lists of sim_tanks seed 7 at 0 % are perfect"),
        (never_normal, "none holds a normal window: it knows which items are normal"),
    ],
)
def test_lists_made_with_the_answers_are_refused(base: Path, tmp_path: Path, rule: Any, reason: str) -> None:  # noqa: ANN401
    changed(submitted(base, tmp_path / "in"), with_lists(rule))
    (found,) = reasons(base, tmp_path / "in")["mine"]
    assert reason in found


def test_a_copy_with_a_few_places_edited_is_refused(base: Path, tmp_path: Path) -> None:
    changed(submitted(base, tmp_path / "in", run_name="ours"), with_lists(edited))
    found = reasons(base, tmp_path / "in")["mine"]
    assert any(re.fullmatch(r"\d+ of \d+ lists of random are those of the published random", one) for one in found)


def test_parts_whose_settings_were_chosen_on_real_data_are_told(base: Path, tmp_path: Path) -> None:
    run(small_plan(methods=("departure",)), base / "departure", cache=base / "cache")
    submitted(base, tmp_path / "in", run_name="departure")
    (reason,) = reasons(base, tmp_path / "in")["mine"]
    assert "parts of departure were chosen with petrobras_3w in sight" in reason
    submitted(base, tmp_path / "in", run_name="departure", chosen_on=("petrobras_3w",))
    assert reasons(base, tmp_path / "in")["mine"] == ()


def test_a_method_that_reads_more_labels_than_it_says_is_refused(base: Path, tmp_path: Path) -> None:
    run(small_plan(methods=("majority",)), base / "majority", cache=base / "cache")
    submitted(base, tmp_path / "in", run_name="majority")
    assert "majority reads labels (all), and the submission says none" in reasons(base, tmp_path / "in")["mine"][0]
    submitted(base, tmp_path / "in", run_name="majority", labels="all")
    assert reasons(base, tmp_path / "in")["mine"] == ()


def test_the_command_packs_statements(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.readbench.zip"
    line = ["submit", str(base / "theirs"), "--name", "x", "--authors", "A", "--trained-on", "none", "--out", str(path)]
    assert CliRunner().invoke(app, [*line, "--chosen-on", "skab", "--labels", "none"]).exit_code == 0
    with zipfile.ZipFile(path) as archive:
        declared = archive.read("bundle.json").decode()
    assert '"chosen_on": [\n' in declared
    assert CliRunner().invoke(app, [*line, "--labels", "some"]).exit_code != 0


class Memo:
    """Knows the labels of all windows by heart, and errs on purpose."""

    uses_labels = False
    corpus_dependent = False

    def __init__(self, err: float = 0.1) -> None:
        self.err = err

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        self.known_ = np.array([BY_HEART[content(window)] for window in corpus])
        return self

    def score(self, queries: WindowSet) -> NDArray[np.float32]:
        rng = np.random.default_rng(1)
        rows = []
        for window in queries:
            label = BY_HEART[content(window)] if rng.random() > self.err else rng.integers(1, 5)
            rows.append((self.known_ == label) + rng.random(len(self.known_)) * (1 + 2 * self.err))
        return np.array(rows, np.float32)


BY_HEART: dict[bytes, int] = {}


def content(window: Window) -> bytes:
    return hashlib.sha1(np.ascontiguousarray(window.values).tobytes(), usedforsecurity=False).digest()


def cheat(folder: Path, plan: Plan, cache: Path) -> None:
    """A run of a method that learned the labels of its tasks beforehand."""
    for dataset in plan.datasets:
        for seed in plan.seeds:
            task = load_task(dataset, seed=seed, cache=cache)
            BY_HEART.update({content(window): window.label for part in (task.queries, task.corpus) for window in part})
    RETRIEVERS.register("memo", title="Memo", family="distance")(Memo)
    try:
        run(replace(plan, methods=("memo",)), folder, cache=cache)
    finally:
        del RETRIEVERS._entries["memo"]


def test_a_cheat_that_errs_is_held_with_what_was_found(base: Path, tmp_path: Path) -> None:
    """Nine of ten places right, where the best published method that reads no label has far less."""
    cheat(base / "memo", small_plan(), base / "cache")
    path = submitted(base, tmp_path / "in", run_name="memo")
    (found,) = check_submissions(tmp_path / "in", read_results(base / "results"), rerun=1)
    assert found.reasons == ()
    assert re.match(r"memo: NDCG@20 0\.9\d\d on sim_tanks at 0 %, where the best published", found.doubts[0])
    assert "it cannot be built here" in found.missing[0]
    command = ["leaderboard", "--check", str(tmp_path / "in"), "--published", str(base / "results")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert f"{path.name}: held for review: memo: NDCG@20" in done.output
    done = CliRunner().invoke(app, [*command, "--reviewed", "mine"])
    assert done.exit_code == 0
    assert "accepted: memo; not reproduced: memo: it cannot be built here" in done.output


def test_a_cheat_on_real_data_is_held(real_data: Path, private_cache: Path, tmp_path: Path) -> None:
    """Among the published rows a method that reads all labels is as good; no other is."""
    del real_data
    plan = small_plan(datasets=("skab",), seeds=(0, 1, 2), levels=(0, 10, 20))
    cheat(tmp_path / "memo", plan, private_cache)
    submitted(tmp_path, tmp_path / "in", run_name="memo")
    (found,) = check_submissions(tmp_path / "in", read_results(PUBLISHED))
    assert [one[:5] for one in found.doubts] == ["memo:"] * 3


@pytest.mark.parametrize("part", ["", "stages", "splits", "assets", "embedded", "sweeps", "scaling"])
def test_no_published_method_would_be_held(part: str) -> None:
    """Each held against all the others of its rows and of the main ones."""
    with (PUBLISHED / part / "scores.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    rivals = values_by_method(rows)
    order = {name: LABEL_USES.index(state_method(name).labels) for name in rivals}
    for name, own in rivals.items():
        others = {other: v for other, v in rivals.items() if other != name and order[other] <= order[name]}
        assert list(find_leaps(own, others, dict.fromkeys(own, 100))) == [], name


def test_a_sample_is_run_again(base: Path, tmp_path: Path) -> None:
    submitted(base, tmp_path / "in")
    (honest,) = check_submissions(tmp_path / "in", read_results(base / "results"), rerun=1)
    assert (honest.reasons, honest.doubts, honest.missing) == ((), (), ())


def test_lists_that_the_method_does_not_give_are_refused(base: Path, tmp_path: Path) -> None:
    changed(submitted(base, tmp_path / "in"), with_lists(nine_of_ten))
    (forged,) = check_submissions(tmp_path / "in", read_results(base / "results"), rerun=1)
    assert re.match(r"euclidean on sim_tanks seed 7 at 0 % has NDCG@10 0\.\d+ in the submission", forged.reasons[0])


def nine_of_ten(row: Row, qrels: Qrels) -> list[int]:
    """Every tenth list is that of another query."""
    return perfect(row if row["query"] % 10 else row | {"query": 0}, qrels)
