"""Parts of a run and their merger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from readbench.benchmark.runs import Plan, RunFolder, merge, parse_shard, run
from readbench.benchmark.runs._cells import Outcome
from readbench.benchmark.runs._plan import Shard
from readbench.cli import app
from readbench.errors import RunError, UsageError
from tests.benchmark.runs.helpers import assert_same_results, rows_without_times, small_plan


def run_parts(plan: Plan, count: int, folder: Path, cache: Path) -> list[Path]:
    folders = [folder / f"part-{number}" for number in range(1, count + 1)]
    for number, part in enumerate(folders, start=1):
        run(plan, part, shard=Shard(number, count), cache=cache)
    return folders


@given(jobs=st.integers(0, 40), count=st.integers(1, 12))
def test_parts_are_all_jobs_and_none_twice(jobs: int, count: int) -> None:
    numbers = list(range(jobs))
    parts = [Shard(number, count).of(numbers) for number in range(1, count + 1)]
    assert [job for part in parts for job in part] == numbers
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "-1/3", "a/b"])
def test_a_part_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_shard(text)


def test_merged_parts_are_the_same_bytes_as_one_run(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(seeds=(7, 8), methods=("random", "stats"))
    run(plan, tmp_path / "whole", cache=private_cache)
    parts = run_parts(plan, 3, tmp_path, tmp_path / "other cache")
    merge(parts[::-1], tmp_path / "merged")
    assert_same_results(tmp_path / "whole", tmp_path / "merged")
    for name in ("tasks/sim_tanks/seed-7.parquet", "tasks/sim_tanks/seed-8.parquet"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes(), name
    whole, merged = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("whole", "merged"))
    for manifest in (whole, merged):
        manifest.pop("wall_s")
        manifest.pop("executor")
    assert merged == whole
    assert run(plan, tmp_path / "merged", cache=private_cache).computed == 0


def test_a_part_that_is_not_given_is_named(tmp_path: Path, private_cache: Path) -> None:
    parts = run_parts(small_plan(levels=(0,)), 3, tmp_path, private_cache)
    with pytest.raises(RunError, match=r"Also give the folder of part 2/3\."):
        merge([parts[0], parts[2]], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_parts_of_different_plans_are_refused(tmp_path: Path, private_cache: Path) -> None:
    run(small_plan(levels=(0,)), tmp_path / "one", shard=Shard(1, 2), cache=private_cache)
    run(small_plan(levels=(10,)), tmp_path / "two", shard=Shard(2, 2), cache=private_cache)
    with pytest.raises(RunError, match=r"differ in plan \(levels: \[0\] and \[10\]\)"):
        merge([tmp_path / "one", tmp_path / "two"], tmp_path / "merged")


def test_parts_of_different_code_or_data_are_refused(tmp_path: Path, private_cache: Path) -> None:
    parts = run_parts(small_plan(levels=(0,)), 2, tmp_path, private_cache)
    path = parts[1] / "run.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"code": "other"}))
    with pytest.raises(RunError, match="differ in code"):
        merge(parts, tmp_path / "merged")
    path.write_text(json.dumps(manifest | {"tasks": {"sim_tanks/seed-7": "other"}}))
    with pytest.raises(RunError, match="different data"):
        merge(parts, tmp_path / "merged")
    known = json.loads((parts[0] / "run.json").read_text())["computed_by"]
    others = {method: made_by | {"packages": {"numpy": "1.0"}} for method, made_by in known.items()}
    path.write_text(json.dumps(manifest | {"computed_by": others}))
    with pytest.raises(RunError, match=r"numpy: 1\.0 and .* other packages or weights"):
        merge(parts, tmp_path / "merged")


def test_parts_of_versions_that_did_not_say_what_computed_them_are_merged(tmp_path: Path, private_cache: Path) -> None:
    parts = run_parts(small_plan(levels=(0,)), 2, tmp_path, private_cache)
    for path in (part / "run.json" for part in parts):
        manifest = json.loads(path.read_text())
        manifest.pop("computed_by")
        path.write_text(json.dumps(manifest))
    merge(parts, tmp_path / "merged")
    assert json.loads((tmp_path / "merged" / "run.json").read_text())["computed_by"] == {}


def test_a_success_goes_before_a_failure_of_the_same_cell(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("random",), levels=(0,))
    run(plan, tmp_path / "bad", cache=private_cache)
    run(plan, tmp_path / "good", cache=private_cache)
    RunFolder(tmp_path / "bad").save(Outcome(next(plan.cells()), "x", failure="out of memory"))
    merge([tmp_path / "bad", tmp_path / "good"], tmp_path / "merged")
    assert_same_results(tmp_path / "good", tmp_path / "merged")


def test_a_run_is_never_overwritten(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("random",), levels=(0,))
    run(plan, tmp_path, cache=private_cache)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(UsageError, match="already holds a run"):
        merge([tmp_path], tmp_path)
    assert (tmp_path / "run.json").read_bytes() == before


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    for content, reason in (("junk", "not a run folder"), ("[]", "not a run folder"), ("{}", "lacks cells, code")):
        (tmp_path / "run.json").write_text(content)
        with pytest.raises(RunError, match=reason):
            merge([tmp_path], tmp_path / "merged")


def test_the_commands_work_together(tmp_path: Path) -> None:
    runner = CliRunner()
    plan = ["--datasets", "sim_tanks", "--methods", "random,stats", "--seed", "7", "--rho", "0"]
    for part in ("1/2", "2/2"):
        result = runner.invoke(app, ["run", *plan, "--shard", part, "--out", str(tmp_path / part[0])])
        assert result.exit_code == 0, result.output
    result = runner.invoke(
        app, ["run", "--merge", str(tmp_path / "1"), "--merge", str(tmp_path / "2"), "--out", str(tmp_path / "whole")]
    )
    assert result.exit_code == 0, result.output
    assert [row["method"] for row in rows_without_times(tmp_path / "whole")] == ["random", "stats"]
    assert "Random" in result.stdout
