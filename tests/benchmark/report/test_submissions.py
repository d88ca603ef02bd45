"""Submissions: packed, checked without being believed, and put on a leaderboard."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from readbench.benchmark.report import (
    Declared,
    rank_submissions,
    read_bundle,
    read_results,
    write_bundle,
    write_standings,
)
from readbench.benchmark.report._standings import Standings
from readbench.benchmark.runs import Plan, RunFolder, run
from readbench.benchmark.runs._cells import Outcome
from readbench.benchmark.runs._plan import Shard
from readbench.cli import app
from readbench.errors import DataError, RunError
from tests.benchmark.runs.helpers import small_plan

Contents = dict[str, bytes]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that share a method."""
    folder = tmp_path_factory.mktemp("submissions")
    run(small_plan(methods=("random", "stats")), folder / "one", cache=folder / "cache")
    run(small_plan(methods=("stats", "euclidean")), folder / "two", cache=folder / "cache")
    return folder


def packed(base: Path, run_name: str, target: Path, **declared: Any) -> Path:  # noqa: ANN401
    name = declared.pop("name", target.name.split(".")[0])
    return write_bundle(read_results(base / run_name), Declared(name=name, **declared), target)


def changed(path: Path, change: Callable[[Contents], object], *, honest: bool = True) -> Path:
    """Change the files of a bundle; an honest forger also writes the checksums anew."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    change(contents)
    if honest and "bundle.json" in contents:
        manifest = json.loads(contents["bundle.json"])
        manifest["files"] = {n: hashlib.sha256(contents[n]).hexdigest() for n in manifest["files"] if n in contents}
        contents["bundle.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def edit_manifest(**entries: Any) -> Callable[[Contents], object]:  # noqa: ANN401
    def change(contents: Contents) -> None:
        contents["bundle.json"] = json.dumps(json.loads(contents["bundle.json"]) | entries).encode()

    return change


def as_before(contents: Contents) -> None:
    """A bundle of a version that listed what is simulated."""
    manifest = json.loads(contents["bundle.json"])
    assert manifest.pop("origins") == {"sim_tanks": "simulated by us"}
    contents["bundle.json"] = json.dumps(manifest | {"simulated": ["sim_tanks"]}).encode()


def test_bundles_of_an_older_version_tell_what_is_simulated(base: Path, tmp_path: Path) -> None:
    path = changed(packed(base, "one", tmp_path / "old.zip"), as_before)
    assert read_bundle(path).manifest.origins == {"sim_tanks": "simulated by us"}
    with pytest.raises(DataError):
        read_bundle(changed(path, edit_manifest(simulated=3)))


def edit_table(name: str, edit: Callable[[list[dict[str, Any]]], object]) -> Callable[[Contents], object]:
    def change(contents: Contents) -> None:
        table = pq.read_table(io.BytesIO(contents[name]))
        rows = table.to_pylist()
        edit(rows)
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, table.schema), sink)
        contents[name] = sink.getvalue()

    return change


def better_scores(contents: Contents) -> None:
    lines = contents["scores.csv"].decode().splitlines(keepends=True)
    cells = lines[1].split(",")
    cells[lines[0].split(",").index("NDCG@10")] = "0.999000"
    contents["scores.csv"] = "".join([lines[0], ",".join(cells), *lines[2:]]).encode()


def swapped(rows: list[dict[str, Any]]) -> None:
    rows[0]["items"] = rows[0]["items"][::-1]


def twice(rows: list[dict[str, Any]]) -> None:
    rows[0]["items"] = [rows[0]["items"][0]] * len(rows[0]["items"])


def outside(rows: list[dict[str, Any]]) -> None:
    rows[0]["items"][0] = 10**6


def polluted(contents: Contents) -> None:
    """Put an item of the polluted corpus into a list of the clean one."""
    levels = pq.read_table(io.BytesIO(contents["labels.parquet"]))["level"].to_pylist()
    item = [level for level in levels if level >= 0].index(20)
    edit_table("rankings.parquet", lambda rows: rows[0]["items"].__setitem__(0, item))(contents)


FORGERIES: dict[str, tuple[Callable[[Contents], object], bool, str]] = {
    "better scores": (better_scores, True, "but its lists and labels give"),
    "checksums": (better_scores, False, "checksum differs"),
    "another order": (edit_table("rankings.parquet", swapped), True, "but its lists and labels give"),
    "one item twice": (edit_table("rankings.parquet", twice), True, "same corpus item twice"),
    "no such item": (edit_table("rankings.parquet", outside), True, "not in its corpus"),
    "an item of another level": (polluted, True, "not in its corpus"),
    "a query left out": (edit_table("rankings.parquet", lambda rows: rows.pop(0)), True, "each query once"),
    "labels left out": (edit_table("labels.parquet", list.clear), True, "no labels"),
    "a file left out": (lambda contents: contents.pop("labels.parquet"), True, "expected"),
    "a file too many": (lambda contents: contents.update(extra=b""), True, "expected"),
    "no manifest at all": (lambda contents: contents.update({"bundle.json": b"{"}), False, "malformed"),
    "an unknown format": (edit_manifest(format="readbench-bundle-9"), True, "malformed at format"),
    "an unknown entry": (edit_manifest(extra=1), True, "malformed at extra"),
    "a cell left out": (
        lambda c: c.update({"scores.csv": b"".join(c["scores.csv"].splitlines(keepends=True)[:-1])}),
        True,
        "does not follow its plan",
    ),
    "a method without facts": (edit_manifest(methods={}), True, "cannot be read"),
    "not a table": (lambda contents: contents.update({"rankings.parquet": b"junk"}), True, "cannot be read"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_submission_is_refused_with_its_reason(forgery: str, base: Path, tmp_path: Path) -> None:
    change, honest, reason = FORGERIES[forgery]
    path = changed(packed(base, "one", tmp_path / "a.zip"), change, honest=honest)
    with pytest.raises(DataError, match=reason):
        read_bundle(path)


def test_the_same_run_gives_the_same_bytes(base: Path, tmp_path: Path) -> None:
    one = packed(base, "one", tmp_path / "one.zip", name="x")
    shutil.copytree(base / "one", tmp_path / "moved" / "one")
    two = packed(tmp_path / "moved", "one", tmp_path / "two.zip", name="x")
    assert one.read_bytes() == two.read_bytes()
    bundle = read_bundle(one)
    assert bundle.name == "x"
    assert len(bundle.rows) == 4
    assert len(one.read_bytes()) < 100_000


def test_a_failed_cell_may_be_submitted(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "one", tmp_path / "one")
    plan, store = small_plan(methods=("random", "stats")), RunFolder(tmp_path / "one")
    store.save(Outcome(next(plan.cells()), "", failure="out of memory"))
    store.write_tables(plan)
    board = rank_submissions([packed(tmp_path, "one", tmp_path / "a.zip", trained_on=())])
    assert [(entry.method, entry.partial) for entry in board.entries] == [("stats", False), ("random", True)]
    assert board.entries[1].flags == ("partial: 0 of 1 tasks",)


def test_a_part_of_a_run_is_not_a_submission(base: Path, tmp_path: Path) -> None:
    run(small_plan(methods=("random", "stats")), tmp_path, shard=Shard(1, 2), cache=base / "cache")
    with pytest.raises(RunError, match="merge all parts first"):
        packed(tmp_path.parent, tmp_path.name, tmp_path / "a.zip")


def board_of(*files: Path, reference: Path | None = None) -> Standings:
    return rank_submissions(files, reference)


def test_methods_are_ranked_and_the_same_result_counts_once(base: Path, tmp_path: Path) -> None:
    board = board_of(
        packed(base, "one", tmp_path / "a.zip", trained_on=("sim_tanks",)),
        packed(base, "two", tmp_path / "b.zip", trained_on=()),
    )
    values = [entry.means[0] for entry in board.entries]
    assert values == sorted(values, reverse=True)
    entries = {entry.method: entry for entry in board.entries}
    assert entries.keys() == {"random", "stats", "euclidean"}
    assert (entries["stats"].submission, entries["stats"].also) == ("a", ("b",))
    assert entries["random"].flags == ("possible leakage: trained on sim_tanks",)
    assert entries["stats"].flags == entries["euclidean"].flags == ()
    assert not board.rejected


def test_what_was_not_declared_is_said(base: Path, tmp_path: Path) -> None:
    board = board_of(packed(base, "one", tmp_path / "a.zip"))
    assert {entry.flags for entry in board.entries} == {("training data not declared",)}


def test_duplicates_and_taken_names_are_refused(base: Path, tmp_path: Path) -> None:
    files = [packed(base, "one", tmp_path / name, name=name[0]) for name in ("a.zip", "b.zip")]
    changed(files[1], edit_table("rankings.parquet", lambda rows: rows.reverse()))
    files.append(packed(base, "two", tmp_path / "c.zip", name="a"))
    rejected = {one.file: one.reason for one in board_of(*files).rejected}
    assert rejected == {"b.zip": "it holds the same results as a.zip", "c.zip": "the name a is taken by a.zip"}


def other_labels(rows: list[dict[str, Any]]) -> None:
    """Exchange the ids of two queries: every metric stays as it is."""
    rows[0]["id"], rows[1]["id"] = rows[1]["id"], rows[0]["id"]


def test_other_data_and_other_labels_are_refused(base: Path, tmp_path: Path) -> None:
    first, second = packed(base, "one", tmp_path / "a.zip"), packed(base, "two", tmp_path / "b.zip")
    data = changed(packed(base, "one", tmp_path / "c.zip"), edit_manifest(tasks={"sim_tanks/seed-7": "0" * 16}))
    labels = changed(packed(base, "two", tmp_path / "d.zip"), edit_table("labels.parquet", other_labels))
    rejected = {one.file: one.reason for one in board_of(first, second, data, labels).rejected}
    assert rejected.keys() == {"c.zip", "d.zip"}
    assert "it ran on other data: sim_tanks seed 7 is 0000" in rejected["c.zip"]
    assert "its labels of sim_tanks seed 7 are not those" in rejected["d.zip"]
    rejected = {one.file: one.reason for one in board_of(first, second, data, reference=data).rejected}
    assert rejected.keys() == {"a.zip", "b.zip"}


def test_a_submission_with_fewer_tasks_has_no_place(base: Path, tmp_path: Path) -> None:
    wider: Plan = small_plan(methods=("random",), seeds=(7, 8))
    run(wider, tmp_path / "wider", cache=base / "cache")
    board = board_of(packed(base, "two", tmp_path / "a.zip"), packed(tmp_path, "wider", tmp_path / "b.zip"))
    assert (board.entries[0].method, board.entries[0].partial) == ("random", False)
    assert all("partial: 1 of 2 tasks" in entry.flags for entry in board.entries[1:])


def test_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("junk")
    with pytest.raises(DataError, match=r"a\.zip: it cannot be read"):
        rank_submissions([tmp_path / "a.zip"])


def test_the_page_escapes_names_and_needs_nothing_else(base: Path, tmp_path: Path) -> None:
    (tmp_path / "<b>.zip").write_text("junk")
    board = board_of(packed(base, "one", tmp_path / "a.zip"), tmp_path / "<b>.zip")
    write_standings(board, tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text()
    assert "&lt;b&gt;.zip" in page
    assert "<b>.zip" not in page
    assert not re.search(r"<[^>]*\b(src|href)=", page)
    assert re.search(r'Content-Security-Policy" content="default-src \'none\'; script-src data: \'sha256-', page)
    facts = json.loads((tmp_path / "page" / "leaderboard.json").read_text())
    assert facts["rejected"][0]["file"] == "<b>.zip"
    assert len((tmp_path / "page" / "leaderboard.csv").read_text().splitlines()) == 3


def test_the_commands_work_together(base: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for number, name in enumerate(("one", "two")):
        command = [
            "submit",
            str(base / name),
            "--trained-on",
            "none",
            "--out",
            str(tmp_path / f"{number}.readbench.zip"),
        ]
        result = runner.invoke(app, command)
        assert result.exit_code == 0, result.output
    result = runner.invoke(app, ["leaderboard", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "Stats" in result.stdout
    assert (tmp_path / "leaderboard" / "index.html").exists()
    result = runner.invoke(app, ["submit", str(base / "one"), "--trained-on", "sim_tank"])
    assert "Did you mean 'sim_tanks'" in str(result.exception)
    result = runner.invoke(app, ["report", str(base / "one"), "--trec", str(tmp_path / "trec")])
    assert "wrote 6 files" in result.stdout
