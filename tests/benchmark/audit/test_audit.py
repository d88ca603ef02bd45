from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.audit import (
    Finding,
    doubt_labels,
    expect_by_chance,
    find_copies,
    find_leaks,
    judge_copies,
    judge_labels,
    judge_power,
    judge_probes,
    judge_twins,
    measure_gain,
    measure_power,
    share_discounts,
)
from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.sources import _phmap23
from readbench.engine.windows import WindowSet
from tests.benchmark.audit.planted import LEAKS, small_tanks, task_of
from tests.benchmark.protocol.fakes import info

GAIN = 0.6
"""What the best cheap method gains over chance on the small tanks."""


def judge(task: Task, gain: float = GAIN) -> dict[str, Finding]:
    corpus = task.corpus_at(0)
    chance = expect_by_chance(task.queries.labels, corpus.labels)
    return {finding.name: finding for finding in judge_probes(task, corpus, chance, gain)}


def test_without_ties_the_gain_is_the_metric_and_a_probe_that_sees_nothing_is_at_chance() -> None:
    rng = np.random.default_rng(0)
    queries, corpus = rng.integers(1, 4, 7).astype(np.int32), rng.integers(1, 4, 40).astype(np.int32)
    scores = rng.random((7, 40))
    expected = evaluate(np.argsort(-scores, axis=1), queries, corpus, ["NDCG@10"]).values["NDCG@10"]
    assert measure_gain(share_discounts(scores), queries, corpus) == pytest.approx(expected)
    blind = measure_gain(share_discounts(np.zeros((7, 40))), queries, corpus)
    assert blind == pytest.approx(expect_by_chance(queries, corpus))


def test_chance_is_what_random_orders_score() -> None:
    rng = np.random.default_rng(1)
    queries, corpus = np.array([1, 2], np.int32), np.repeat([1, 2], [3, 27]).astype(np.int32)
    orders = np.stack([rng.permutation(30) for _ in range(4000)])
    for label, chance in zip(queries, expect_by_chance(queries, corpus), strict=True):
        scored = evaluate(orders, np.full(4000, label, np.int32), corpus, ["NDCG@10"]).values["NDCG@10"]
        assert scored.mean() == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_a_hazard_and_no_other_is(leak: str) -> None:
    found = judge(task_of(small_tanks(1), leak)[1])
    assert found[leak].verdict == "hazard", found[leak].sentence
    assert {name for name, finding in found.items() if finding.verdict == "hazard"} == {leak}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_clean_simulator_raises_no_alarm(seed: int) -> None:
    found = judge(task_of(small_tanks(seed), "no session")[1])
    assert {finding.verdict for finding in found.values()} <= {"clean", "-", "watch"}
    assert found["session"].verdict == found["asset"].verdict == found["before"].verdict == "clean"
    assert found["presence"].verdict == found["length"].verdict == "-"


def test_a_level_that_tells_the_class_is_watched_since_it_may_be_the_fault() -> None:
    found = judge(task_of(small_tanks(1), "level")[1])
    assert found["level"].verdict == found["first-row"].verdict == "watch"
    assert found["crop"].verdict == "clean"


@pytest.mark.parametrize("few", [3, 4])
def test_with_too_few_groups_nothing_is_called_a_hazard(few: int) -> None:
    _, task = task_of(small_tanks(1), "session")
    kept = np.isin(task.queries.groups, np.unique(task.queries.groups)[:few])
    found = judge(Task(task.info, 0, task.queries[kept], task.corpus, task.levels, task.normals))
    assert found["session"].verdict == "unclear"


def test_near_copies_in_another_group_and_copies_under_another_label_are_found() -> None:
    for leak, clean in (("copies", False), ("twins", False), ("", True)):
        _, task = task_of(small_tanks(1), leak)
        leaks, copies = find_leaks(task), find_copies(task)
        across, twins = judge_copies(leaks, copies, len(task.queries)), judge_twins(copies, len(task.corpus_at(0)))
        assert leaks.sound  # they are not equal, value by value
        assert across.verdict == ("hazard" if leak == "copies" else "clean")
        assert twins.verdict == ("hazard" if leak == "twins" else "clean")
        assert clean == (not copies.across and not copies.within)


def test_a_shared_group_is_a_hazard() -> None:
    _, task = task_of(small_tanks(1))
    shared = Task(task.info, 0, task.queries, task.queries, {0: np.arange(len(task.queries))}, task.normals)
    assert judge_copies(find_leaks(shared), find_copies(shared), len(task.queries)).verdict == "hazard"


def labelled_task(wrong: int) -> Task:
    """Two easy faults in 60 groups of four windows, of which the first so many carry the other's label."""
    rng = np.random.default_rng(5)
    truth = np.repeat(np.tile([1, 2], 30), 4)
    time = np.arange(64)
    values = np.sin(time[None, None] * np.where(truth == 1, 0.2, 0.7)[:, None, None]) + rng.normal(0, 0.3, (240, 2, 64))
    groups = np.repeat([f"g{k:02d}" for k in range(60)], 4)
    labels = np.where(np.arange(240) < 4 * wrong, 3 - truth, truth)
    windows = WindowSet.from_arrays(values, labels=labels, classes=("normal", "a", "b"), groups=groups.tolist())
    held = np.arange(240) % 20 < 4
    return Task(info(2), 0, windows[held], windows[~held], {0: np.arange(192)}, windows[:0])


def test_labels_of_mislabelled_groups_are_contradicted_and_others_are_not() -> None:
    clean, flipped = doubt_labels(labelled_task(0)), doubt_labels(labelled_task(6))
    assert not isinstance(clean, str)
    assert not isinstance(flipped, str)
    assert judge_labels(clean).verdict == "clean"
    assert judge_labels(flipped).verdict == "hazard"
    assert {one.group for one in flipped.found} == {f"g{k:02d}" for k in range(6)}


def test_one_group_has_nobody_to_contradict_it() -> None:
    task = labelled_task(0)
    one = WindowSet.from_arrays(np.zeros((4, 2, 64)), labels=[1, 1, 2, 2], classes=("", "a", "b"), groups=["g"] * 4)
    said = doubt_labels(Task(task.info, 0, one[:2], one[2:], {0: np.arange(2)}, one[:0]))
    assert isinstance(said, str)
    assert judge_labels(said).verdict == "-"


def test_the_power_is_that_of_the_groups_and_not_of_the_queries() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat([f"g{k:03d}" for k in range(100)], 5)
    queries = WindowSet.from_arrays(np.zeros((500, 1, 2)), labels=np.ones(500), groups=groups.tolist())
    by_group = np.repeat(rng.normal(0, 0.2, 100), 5)
    found = measure_power([by_group, np.zeros(500)], queries)
    assert found == pytest.approx(2.80 * 0.2 / 10, rel=0.2)
    assert [judge_power(0.04, groups).verdict for groups in (4, 100)] == ["unclear", "clean"]


@pytest.mark.parametrize(
    ("dataset", "gain", "expected"),
    [
        ("skab", 0.55, {"session": "hazard", "before": "hazard"}),
        ("dbsherlock", 0.9, {"before": "hazard"}),
        ("itsc_motor(starts=crop)", 0.87, {"crop": "hazard"}),
        ("itsc_motor", 0.83, {"crop": "clean"}),
        ("haizhe_auv(levels=true)", 0.73, {"first-row": "watch", "level": "watch"}),
        ("petrobras_3w", 0.66, {"presence": "hazard", "asset": "hazard"}),
    ],
)
def test_the_known_hazards_of_real_data_are_found(
    real_data: Path, private_cache: Path, dataset: str, gain: float, expected: dict[str, str]
) -> None:
    found = judge(load_task(dataset, seed=0, root=real_data, cache=private_cache), gain)
    assert {name: found[name].verdict for name in expected} == expected


def test_the_copies_of_phmap23_are_found_where_its_reader_keeps_them(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_phmap23, "_drop_copies", dict)
    task = load_task("phmap23", seed=0, root=real_data, cache=tmp_path)
    copies = find_copies(task)
    pairs = {tuple(sorted((pair.first[4:7], pair.second[4:7]))) for pair in (*copies.across, *copies.within)}
    known = {("155", "178"), ("154", "193"), ("157", "196")}
    held = {name[4:7] for part in (task.queries, task.corpus_at(0)) for name in part.ids.tolist()}
    asked = {name[4:7] for name in task.queries.ids.tolist()}
    assert pairs >= {pair for pair in known if set(pair) <= held and not set(pair) <= asked}
    assert judge_copies(find_leaks(task), copies, len(task.queries)).verdict == "hazard"
