from __future__ import annotations

from dataclasses import replace

import numpy as np

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Task
from readbench.engine.windows import WindowSet, concatenate
from readbench.testing import sample_windows
from tests.benchmark.protocol.fakes import info


def sound_task() -> Task:
    windows = sample_windows(16)
    windows = replace(
        windows, ids=np.array([f"rec {i}@0" for i in range(16)], windows.ids.dtype), groups=windows.ids.copy()
    )
    faulty = np.flatnonzero(windows.labels > 0)
    return task_of(windows[faulty[:3]], windows[faulty[3:]])


def task_of(queries: WindowSet, corpus: WindowSet) -> Task:
    return Task(info(3), 0, queries, corpus, {0: np.arange(len(corpus))}, corpus[:0])


def planted(task: Task, **changes: object) -> Task:
    """The task with a copy of its first query in the corpus, under other names unless changed."""
    query = task.queries[:1]
    names = {"ids": np.array(["copy@0"], query.ids.dtype), "groups": np.array(["elsewhere"], query.ids.dtype)}
    copy = replace(query, **(names | changes))  # type: ignore[arg-type]
    return task_of(task.queries, concatenate([task.corpus, copy]))


def test_a_sound_task_has_no_leak() -> None:
    assert find_leaks(sound_task()).sound


def test_a_copy_of_a_query_in_the_corpus_is_found() -> None:
    found = find_leaks(planted(sound_task()))
    assert not found.sound
    assert found.duplicates == ((sound_task().queries[0].id, "copy@0"),)


def test_a_copy_with_tiny_noise_is_found_and_another_window_is_not() -> None:
    task = sound_task()
    values = task.queries[0].values
    for noise, expected in ((5e-7, 1), (1e-3, 0)):
        near = WindowSet.from_arrays([values + noise], channels=task.queries[0].channels, ids=["near@0"])
        corpus = concatenate([task.corpus, near])
        assert len(find_leaks(task_of(task.queries, corpus)).duplicates) == expected


def test_a_group_on_both_sides_is_found() -> None:
    task = sound_task()
    found = find_leaks(planted(task, groups=task.queries.groups[:1]))
    assert found.shared_groups == (task.queries[0].group,)


def test_overlapping_samples_of_one_recording_are_found() -> None:
    task = sound_task()
    recording = task.queries[0].id.rpartition("@")[0]
    for start, expected in ((31, 1), (32, 0)):
        other = replace(task.corpus[:1], ids=np.array([f"{recording}@{start}"], task.corpus.ids.dtype))
        found = find_leaks(task_of(task.queries, concatenate([task.corpus, other])))
        assert len(found.overlaps) == expected


def test_constant_windows_are_counted_and_are_no_duplicates() -> None:
    task = sound_task()
    flat = WindowSet.from_arrays(np.zeros((2, 3, 32)), channels=task.queries[0].channels, ids=["flat a@0", "flat b@0"])
    found = find_leaks(task_of(concatenate([task.queries, flat[:1]]), concatenate([task.corpus, flat[1:]])))
    assert found.sound
    assert found.constant == 1
