"""A user's first lines need one import: names, conversions, sentences and representations of the front page."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import readbench
from readbench.benchmark.evaluation import ScoreTable
from readbench.benchmark.runs import Plan
from readbench.engine.registry import ENCODERS, FUSIONS, METRICS, RERANKERS, RETRIEVERS, SOURCES, TRANSFORMS
from readbench.engine.spec import build_source
from readbench.engine.testing import sample_windows
from readbench.errors import DataError, MethodError, UnknownNameError, UsageError

SMALL = "sim_ecg(runs=24)"


class Mean:
    """Compares the means of windows; nobody registered it."""

    uses_labels = False
    corpus_dependent = False

    def fit(self, corpus: readbench.WindowSet, normals: readbench.WindowSet) -> Self:
        assert (corpus.labels == -1).all()
        assert (normals.labels == -1).all()
        self.means_ = self._means(corpus)
        return self

    def score(self, queries: readbench.WindowSet) -> np.ndarray[Any, np.dtype[np.float32]]:
        return -np.abs(self._means(queries)[:, None] - self.means_)

    def _means(self, windows: readbench.WindowSet) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.array([window.values.mean() for window in windows], np.float32)


@pytest.fixture(scope="module")
def task() -> readbench.Task:
    return readbench.load_task(SMALL)


@pytest.fixture(scope="module")
def evaluation(task: readbench.Task) -> readbench.Evaluation:
    return readbench.evaluate("sbd-d", task)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> readbench.RunResults:
    out = tmp_path_factory.mktemp("runs") / "first"
    return readbench.run(SMALL, "sbd-d, random", out=str(out), seeds=[0], levels=(0, 20))


# --- names -------------------------------------------------------------------------------------------------------


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in dir(readbench):
        found = getattr(readbench, name)
        assert name == "__version__" or inspect.getdoc(found), name


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        readbench.evalute  # type: ignore[attr-defined] # noqa: B018


def test_importing_the_package_imports_nothing_that_computes() -> None:
    code = """
import sys
import readbench
slow = {"numpy", "scipy", "pandas", "pyarrow", "readbench.engine", "readbench.benchmark", "readbench.cases"}
assert not slow & set(sys.modules), slow & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- tasks and evaluations ---------------------------------------------------------------------------------------


def test_tasks_are_loaded_by_text_or_source_with_paths_as_texts(task: readbench.Task, tmp_path: Path) -> None:
    again = readbench.load_task(build_source(SMALL), 0, cache=str(tmp_path))
    assert again.fingerprint() == task.fingerprint()
    assert list(tmp_path.iterdir())
    assert readbench.load_task(SMALL, seed=1).fingerprint() != task.fingerprint()
    with pytest.raises(UnknownNameError, match=r"Did you mean 'sim_tanks'"):
        readbench.load_task("sim_tank")


def test_an_evaluation_has_the_numbers_of_a_run(
    evaluation: readbench.Evaluation, finished: readbench.RunResults
) -> None:
    ours = {row["rho"]: row for row in evaluation.rows()}
    theirs = {row["rho"]: row for row in finished.rows() if row["method"] == "sbd-d"}
    assert set(theirs) == {0, 20}
    for rho, row in theirs.items():
        for name in METRICS.names():
            assert ours[rho][name] == pytest.approx(row[name], abs=1e-6), name


def test_an_evaluation_is_read_by_metric_by_row_and_by_query(
    evaluation: readbench.Evaluation, task: readbench.Task
) -> None:
    assert list(evaluation["ndcg@10"]) == [0, 10, 20]
    assert [row["NDCG@10"] for row in evaluation.rows()] == list(evaluation["NDCG@10"].values())
    queries = evaluation.per_query
    assert len(queries) == 3 * len(task.queries)
    first = [row["P@1"] for row in queries if row["rho"] == 0]
    assert np.mean(first) == pytest.approx(evaluation["P@1"][0])
    assert all((row["P@1"] == 1) == (row["fault"] == row["first"]) for row in queries)
    with pytest.raises(UnknownNameError, match=r"Unknown metric 'NDGC@10'\. Did you mean 'NDCG@10'"):
        evaluation["NDGC@10"]


def test_several_tasks_are_averaged(task: readbench.Task) -> None:
    both = readbench.evaluate("random", [task, SMALL], seeds=(1,), levels=[0], metrics=["P@1", "ndcg@10"])
    assert [(row["seed"], row["rho"]) for row in both.rows()] == [(0, 0), (1, 0)]
    assert both["P@1"] == {0: pytest.approx(np.mean([row["P@1"] for row in both.rows()]))}
    assert set(both.means()[0]) == {"P@1", "NDCG@10"}


def test_a_level_that_a_task_does_not_have_is_refused(task: readbench.Task) -> None:
    with pytest.raises(UsageError, match=r"sim_ecg has no pollution level 30: its levels are 0, 10, 20\."):
        readbench.evaluate("random", task, levels=[30])


def test_methods_objects_and_texts_are_evaluated_alike(task: readbench.Task, evaluation: readbench.Evaluation) -> None:
    assert readbench.evaluate(readbench.Method("sbd-d"), task).rows()[:] == evaluation.rows()[:]
    registered = RETRIEVERS.get("sbd-d").build()
    assert readbench.evaluate(registered, task)["NDCG@10"] == pytest.approx(evaluation["NDCG@10"])


def test_an_object_that_nobody_registered_is_evaluated_and_stays_as_it_was(task: readbench.Task) -> None:
    own = Mean()
    result = readbench.evaluate(own, task, levels=[0])
    assert result.method == "Mean"
    order = np.argsort(-Mean().fit(task.corpus_at(0).anonymous(), task.normals.anonymous()).score(task.queries), axis=1)
    hits = task.corpus_at(0).labels[order[:, 0]] == task.queries.labels
    assert result["P@1"][0] == pytest.approx(hits.mean())
    assert not hasattr(own, "means_")


def test_what_is_no_retriever_is_told_what_it_lacks() -> None:
    with pytest.raises(
        UsageError, match=r"dict is no retriever: it has no uses_labels, corpus_dependent, fit, score\."
    ):
        readbench.evaluate({}, "sim_ecg")  # type: ignore[arg-type]


def test_frames_need_pandas_and_say_so(monkeypatch: pytest.MonkeyPatch, evaluation: readbench.Evaluation) -> None:
    pandas = pytest.importorskip("pandas")
    frame = evaluation.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["NDCG@10"].tolist() == list(evaluation["NDCG@10"].values())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        evaluation.to_frame()


# --- runs --------------------------------------------------------------------------------------------------------


def test_a_run_is_read_back(finished: readbench.RunResults) -> None:
    pytest.importorskip("pandas")
    again = readbench.read_run(str(finished.folder))
    assert (finished.computed + finished.reused, again.failures) == (4, ())
    assert again.scores.shape == (4, len(again.rows()[0]))
    board = again.leaderboard()
    assert {row["method"] for row in board} == {"sbd-d", "random"}
    assert board[0]["NDCG@10 rho 0"] >= board[1]["NDCG@10 rho 0"]
    by_precision = again.leaderboard("P@1")
    assert by_precision[0]["P@1 rho 0"] >= by_precision[1]["P@1 rho 0"]


def test_a_run_takes_a_plan_and_continues(finished: readbench.RunResults) -> None:
    plan = Plan((SMALL,), ("sbd-d", "random"), seeds=(0,), levels=(0, 20))
    again = readbench.run(plan, finished.folder)
    assert (again.computed, again.reused) == (0, 4)


def test_a_run_without_a_folder_is_refused() -> None:
    with pytest.raises(UsageError, match="Say where the results go"):
        readbench.run(SMALL, "random")


def test_a_folder_that_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(readbench.errors.RunError, match="is not a run folder"):
        readbench.read_run(str(tmp_path))


# --- arrays are windows ------------------------------------------------------------------------------------------


@pytest.fixture
def arrays() -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(0).normal(size=(6, 2, 30))


def test_arrays_lists_and_windows_are_ranked_like_a_set(arrays: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    method = readbench.Method("euclidean")
    expected = method.fit(readbench.WindowSet.from_arrays(arrays)).rank(readbench.WindowSet.from_arrays(arrays[3:4]))
    for corpus in (arrays, list(arrays), arrays.tolist(), list(readbench.WindowSet.of(arrays))):
        fitted = method.fit(corpus)
        for query in (arrays[3:4], arrays[3], [arrays[3]], readbench.WindowSet.of(arrays)[3]):
            np.testing.assert_array_equal(fitted.rank(query).order, expected.order)
            np.testing.assert_array_equal(fitted.score(query), expected.scores)
            assert fitted.search(query, 1).indices.tolist() == [[3]]


def test_arrays_take_the_channel_names_of_the_corpus_where_there_is_no_doubt() -> None:
    corpus = sample_windows(4, channels=3)
    same = replace(corpus, channel_set=np.zeros(4, np.int32), channel_sets=(("a", "b", "c"),))
    assert readbench.WindowSet.of(np.zeros((3, 8)), like=same).channels(0) == ("a", "b", "c")
    assert readbench.WindowSet.of(np.zeros((2, 8)), like=same).channels(0) == ("ch0", "ch1")
    assert readbench.WindowSet.of(np.zeros((3, 8)), like=corpus).channels(0) == ("ch0", "ch1", "ch2")


def test_windows_keep_what_is_known_of_them() -> None:
    windows = sample_windows(4)
    again = readbench.WindowSet.of([windows[2], windows[0]])
    assert again.ids.tolist() == [windows[2].id, windows[0].id]
    assert again.labels.tolist() == [windows[2].label, windows[0].label]
    assert again.channels(0) == windows.channels(2)
    assert readbench.WindowSet.of(windows) is windows


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros((1, 2, 3, 4)), 3.0, "sim_tanks"], ids=str)
def test_what_is_no_window_is_told(wrong: Any) -> None:  # noqa: ANN401 - whatever a user tries
    with pytest.raises(DataError, match=r"channels"):
        readbench.WindowSet.of(wrong)


@pytest.mark.parametrize("verb", ["rank", "score", "search", "ask"])
def test_a_method_that_is_not_fitted_says_so(verb: str) -> None:
    method = readbench.Method("dtw-i")
    with pytest.raises(UsageError, match=r"^Method\('dtw-i'\) is not fitted yet: call fit\(corpus\) first\.$"):
        getattr(method, verb)(np.zeros((2, 8)), k=3)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(MethodError, match="the corpus is empty"):
        readbench.Method("euclidean").fit([])


# --- representations ---------------------------------------------------------------------------------------------


def shown(task: readbench.Task, evaluation: readbench.Evaluation, finished: readbench.RunResults) -> dict[str, object]:
    """One of each public object, large where size could matter."""
    many = sample_windows(400, channels=40, length=300, ragged=True)
    fitted = readbench.Method("flagship").fit(many)
    wordy = Plan(tuple(SOURCES.names()), tuple(f"euclidean|dtw-i(band=0.{i})" for i in range(1, 90)))
    recording = next(iter(build_source(SMALL).recordings(None)))
    ranked = readbench.Method("euclidean+verdict").fit(many).rank(many[:3])
    entries = [
        entry for home in (RETRIEVERS, ENCODERS, TRANSFORMS, FUSIONS, RERANKERS, SOURCES, METRICS) for entry in home
    ]
    return {
        "windows": many,
        "no windows": many[:0],
        "window": many[0],
        "task": task,
        "source info": task.info,
        "source": build_source(SMALL),
        "recording": recording,
        "method": readbench.Method("flagship"),
        "unregistered": readbench.Method(Mean()),
        "leg": fitted.method.legs[0],
        "fitted": fitted,
        "fitted leg": fitted.legs[0],
        "asked": fitted.ask(many[:5]),
        "ranking": ranked,
        "opinion": ranked.opinions[0] if ranked.opinions else None,
        "knowledge": readbench.Knowledge(many.labels),
        "spec": fitted.method.spec,
        "evaluation": evaluation,
        "level": evaluation.levels[0],
        "per query": evaluation.per_query,
        "run": finished,
        "results": finished.results,
        "leaderboard": finished.leaderboard(),
        "no rows": ScoreTable([]),
        "plan": wordy,
        "retrievers": RETRIEVERS,
        "sources": SOURCES,
        "metrics": METRICS,
        **{f"{entry.name}": entry for entry in entries},
    }


def test_every_public_object_is_shown_on_five_lines(
    task: readbench.Task, evaluation: readbench.Evaluation, finished: readbench.RunResults
) -> None:
    wrong = {}
    for name, thing in shown(task, evaluation, finished).items():
        text = repr(thing)
        lines = text.splitlines()
        if not 1 <= len(lines) <= 5 or max(map(len, lines)) > 500 or " object at 0x" in text:
            wrong[name] = text[:300]
    assert not wrong


def test_representations_say_what_matters(evaluation: readbench.Evaluation, finished: readbench.RunResults) -> None:
    assert "sbd-d" in repr(evaluation)
    assert f"{evaluation['NDCG@10'][0]:.3f}" in repr(evaluation)
    assert str(finished.folder) in repr(finished)
    assert "sbd-d" in repr(finished)
    assert repr(sample_windows(4)).startswith("WindowSet(4 windows, 3 channels x 32 steps; 4 labelled, classes: normal")


def test_one_seed_level_or_metric_needs_no_list(task: readbench.Task, tmp_path: Path) -> None:
    found = readbench.evaluate("stats", task, levels=20, metrics="HR@10")
    assert list(found.rows()[0])[-1] == "HR@10"
    assert list(found["HR@10"]) == [20]
    run = readbench.run(SMALL, "random", out=tmp_path, seeds=1, levels=0, labels="all")
    assert [(row["seed"], row["rho"], row["labels"]) for row in run.rows()] == [(1, 0, "all")]


@pytest.mark.parametrize("seed", ["0", 1.5, None, -1, 2**32])
def test_a_seed_that_is_none_is_refused_in_a_sentence(seed: Any, tmp_path: Path) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(UsageError, match=r"Split seeds are whole numbers from 0 on"):
        readbench.load_task(SMALL, seed)
    with pytest.raises(UsageError, match=r"Split seeds are whole numbers from 0 on"):
        readbench.run(SMALL, "random", out=tmp_path, seeds=[seed])
