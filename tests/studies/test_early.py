"""Early retrieval: where onsets are, what grows into them, what counts as notice, and that a study goes on."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.protocol import (
    SHARES,
    Composition,
    Protocol,
    Recording,
    SourceInfo,
    build,
    build_onsets,
    compose_onsets,
    find_source,
    windows_of,
)
from readbench.benchmark.protocol._onsets import OnsetSource, cut_onsets, find_onsets
from readbench.cli import app
from readbench.engine.method import Ranking
from readbench.engine.windows import NORMAL
from readbench.errors import DataError
from readbench.studies import STUDIES, StudyCell, run_study
from readbench.studies._early import (
    EarlyResult,
    draw_early,
    early_table,
    find_departures,
    judge_early,
    notice_table,
    read_answers,
    set_threshold,
)

SOURCE = "sim_tanks(runs=120)"
LENGTH = 16


def recording(labels: list[int], before: int = 0) -> Recording:
    """One channel that counts its steps from 0 at the first labelled one."""
    earlier = np.arange(-before, 0, dtype=np.float32)[None] if before else None
    steps = np.arange(len(labels), dtype=np.float32)[None]
    return Recording("r", steps, ("x",), np.array(labels, np.int32), "g", before=earlier, start=100.0)


def test_an_onset_has_time_before_it_and_no_other_fault_after_it() -> None:
    labels = np.array([0] * 8 + [1] * 8 + [0] * 2 + [2] * 12 + [-1] * 8 + [3] * 20, np.int32)
    assert [(onset.step, onset.lead, onset.label) for onset in find_onsets(labels, 8, 1.0)] == [
        (8, 8, 1),
        (18, 2, 2),
        (38, 8, 3),
    ]
    assert [onset.step for onset in find_onsets(labels, 16, 1.0)] == [38], "2 comes too soon, 1 is followed by 2"
    assert [onset.step for onset in find_onsets(labels[:50], 16, 1.0)] == [], "too little after it"
    assert [onset.step for onset in find_onsets(labels[:50], 16, 0.5)] == [8, 38]


def test_windows_end_so_long_after_the_onset_and_bring_what_was_before() -> None:
    protocol = Protocol(length=LENGTH, before_steps=12)
    (own,) = cut_onsets(recording([0] * 40 + [1] * 30), protocol, SHARES)
    windows = windows_of(own, protocol, ("normal", "fault"))
    assert windows is not None
    assert [window.values[0, -1] + 1 - 40 for window in windows] == [share * LENGTH for share in SHARES]
    assert {window.values.shape for window in windows} == {(1, LENGTH)}
    assert windows.labels.tolist() == [1] * len(SHARES)
    first = windows[0]
    assert first.before is not None
    assert first.before[0].tolist() == list(range(12, 24)), "the last rows before the window"
    last = windows[len(SHARES) - 1]
    assert last.before is not None
    assert last.before[0].tolist() == list(range(28, 40)), "nothing after the onset"
    assert windows.times[0] == 100 + 40 - LENGTH


def test_a_short_time_before_is_played_backwards() -> None:
    protocol = Protocol(length=LENGTH)
    (own,) = cut_onsets(recording([0] * 3 + [1] * 30, before=2), protocol, SHARES)
    lead = own.values[0, :LENGTH].tolist()
    assert lead[-5:] == [-2, -1, 0, 1, 2]
    assert lead[-10:-5] == [2, 1, 0, -1, -2]
    assert own.values[0, LENGTH:].tolist() == list(range(3, 3 + LENGTH))


@dataclass
class NamedSource:
    """One faulty recording that brings normal rows along, of a source of some name."""

    name: str

    @property
    def info(self) -> SourceInfo:
        return replace(find_source("sim_tanks").info, name=self.name, protocol=Protocol(length=LENGTH))

    def fingerprint(self, root: Path | None) -> str:
        return f"{self.name} {root}"

    def recordings(self, _root: Path | None) -> Iterator[Recording]:
        yield recording([1] * 30, before=20)


@pytest.mark.parametrize(("name", "count"), [("itu_5gc", 1), ("rcaeval", 0)])
def test_rows_of_another_day_are_not_the_time_before_an_onset(name: str, count: int) -> None:
    source = OnsetSource(NamedSource(name))
    assert len(list(source.recordings(None))) == count
    assert source.fingerprint(None) != OnsetSource(NamedSource("other")).fingerprint(None)


def test_onsets_are_of_the_held_out_side(tmp_path: Path) -> None:
    source = find_source(SOURCE)
    built, onsets = build(source, None, tmp_path), build_onsets(source, None, tmp_path)
    own = compose_onsets(built, onsets, seed=0, settings=Composition(rho=(0, 20)))
    queries, task = own.task.queries, own.task
    growing = len(SHARES) * own.onsets
    assert set(queries.groups).isdisjoint(set(task.corpus.groups) | set(task.normals.groups))
    labels = queries.labels[:growing].reshape(len(SHARES), own.onsets)
    assert (labels == labels[0]).all()
    assert (labels > NORMAL).all()
    assert (queries.labels[growing:] == NORMAL).all()
    assert len(own.calibrated) == len(queries) - growing
    quiet = queries.groups[growing:]
    assert set(quiet[own.calibrated]).isdisjoint(quiet[~own.calibrated]), "the threshold is seen on other recordings"


def test_a_source_without_onsets_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.benchmark.protocol._onsets.LEAST_LEAD", 9.0)
    with pytest.raises(DataError, match="no recording has an onset"):
        build_onsets(find_source("sim_tanks(runs=8)"), None, tmp_path)


def test_answers_of_methods_without_an_opinion() -> None:
    corpus = np.array([1] * 10 + [2] * 5 + [NORMAL], np.int32)
    scores = np.zeros((4, 16), np.float32)
    scores[0, :10] = 1
    scores[1, :10] = 2  # as many agree, nearer
    scores[2, 10:15] = 3
    scores[3, 15] = 9
    order = np.argsort(-scores, axis=1, kind="stable")
    answers, firm = read_answers(Ranking(order, scores, {}, {}), corpus)
    assert answers.tolist() == [1, 1, 2, NORMAL]
    assert firm[1] > firm[0] > firm[2] > firm[3] == 0


@pytest.mark.parametrize("count", [19, 40, 99, 200])
def test_a_new_quiet_window_exceeds_the_threshold_as_rarely_as_promised(count: int) -> None:
    rng = np.random.default_rng(0)
    exceeded = [rng.random() > set_threshold(rng.random(count)) for _ in range(4000)]
    assert np.mean(exceeded) == pytest.approx(0.05, abs=0.02)


def result(
    right: list[list[int]], notice: list[list[int]], dataset: str = "sim_tanks", method: str = "rocket"
) -> EarlyResult:
    own = np.array(right, bool)
    count = len(own[0])
    names = np.array([str(i) for i in range(count)])
    shares = np.array(SHARES[: len(own)])
    return EarlyResult(
        StudyCell(dataset, method, rho=20),
        way="asked",
        shares=shares,
        scores=np.stack([own, own]).astype(float),
        right=own,
        notice=np.array(notice, bool),
        false_notices=0.04,
        quiet=25,
        groups=names,
        faults=names,
    )


def test_the_first_right_and_firm_answer() -> None:
    one = result([[0, 1, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 1], [1, 0, 1], [1, 1, 0]])
    assert one.first_right.tolist() == [SHARES[1], SHARES[2], np.inf]
    assert one.noticed_right == pytest.approx(1 / 3)
    row = dict(zip((table := notice_table([one])).header, table.rows[0], strict=True))
    assert (row["At onset"], row["by T/8"], row["Median"]) == ("0.667", "0.667", "1/8")


def test_after_a_detector_only_departures_are_given_notice(tmp_path: Path) -> None:
    source = find_source(SOURCE)
    built, onsets = build(source, None, tmp_path), build_onsets(source, None, tmp_path)
    own = compose_onsets(built, onsets, seed=0, settings=Composition(rho=(20,), corpus_cap=100))
    departs = find_departures(own)
    assert departs is not None
    growing = len(own.shares) * own.onsets
    assert departs[growing:].mean() < departs[growing - own.onsets : growing].mean(), "faults depart, normals do not"
    corpus = own.task.corpus_at(20)
    scores = np.random.default_rng(0).random((len(own.task.queries), len(corpus))).astype(np.float32)
    scores[:growing] += corpus.labels == 1  # firm of all but the normal windows
    ranking = Ranking(np.argsort(-scores, axis=1, kind="stable"), scores, {}, {})
    asked, after = judge_early(own, 20, ranking, departs)
    assert (asked["way"], after["way"]) == ("asked", "after a detector")
    assert (asked["scores"], asked["right"]) == (after["scores"], after["right"])
    assert np.array(asked["notice"]).all()
    assert np.array_equal(after["notice"], departs[:growing].reshape(len(own.shares), -1))
    assert len(judge_early(own, 20, ranking, None)) == 1
    few = replace(own, task=replace(own.task, normals=own.task.normals[:5]))
    assert find_departures(few) is None, "too little is known of normal operation"


def test_tables_and_picture_leave_blank_what_a_source_does_not_reach() -> None:
    full = [[1, 0]] * len(SHARES)
    measured = [
        result(full, full),
        result(full[:6], full[:6], "itu_5gc"),
        replace(result(full, full), false_notices=np.nan),
    ]
    table = early_table(measured)
    short = next(row for row in table.rows if row[0].startswith("itu_5gc"))
    assert short[-2:] == ["", ""]
    assert draw_early(measured).axes


def test_the_study_goes_on_where_it_was(tmp_path: Path) -> None:
    study, axes = STUDIES.get("early"), {"datasets": [SOURCE], "methods": ["stats", "random"]}
    grid = study.grid(axes, ["cap=100"], out=tmp_path / "out", cache=tmp_path / "cache")
    found = run_study(study, grid)
    assert not found.failures
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    again = run_study(study, grid)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()} == files
    assert [one.scores.tolist() for one in again.results] == [one.scores.tolist() for one in found.results]


def test_the_command_writes_tables_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "cache"))
    folders = ["--root", str(tmp_path), "--out", str(tmp_path / "out")]
    asked = ["--datasets", SOURCE, "--methods", "stats,random", "--seed", "0"]
    done = CliRunner().invoke(app, ["study", "early", *asked, *folders])
    assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "early-notices.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    methods = ["Stats", "detector, then Stats", "Random", "detector, then Random"]
    assert [row["Method"] for row in rows] == methods
    assert 0 <= float(rows[0]["False"]) <= 0.3
    assert (tmp_path / "out" / "early.svg").stat().st_size > 5000


def test_the_study_is_over_sources_with_known_onsets(tmp_path: Path) -> None:
    (tmp_path / "skab").mkdir()
    (tmp_path / "bearings").mkdir()
    plan = STUDIES.get("early").grid(root=tmp_path)
    assert "skab" in plan.datasets
    assert "bearings" not in plan.datasets
    assert "sim_tanks" in plan.datasets
    assert (plan.levels, plan.seeds) == ((20,), (0,))
