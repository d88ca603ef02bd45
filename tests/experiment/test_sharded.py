"""A corpus searched in parts gives the answer of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.data import load_task
from readbench.data.simulators import Tanks
from readbench.data.task import Task
from readbench.errors import UsageError
from readbench.experiment.executors import Local, Processes
from readbench.experiment.sharded import Archive, search_in_parts
from readbench.pipeline import System
from readbench.ranking import rank
from readbench.windows import save_windows


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load_task(Tanks(), seed=7, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def archive(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("archive")
    save_windows(task.corpus[:300].with_stats(None), folder / "corpus")
    save_windows(task.normals[:50], folder / "normals")
    return Archive(folder / "corpus", folder / "normals")


def whole(task: Task, method: str, k: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    system = System(method).fit(task.corpus[:300].with_stats(None), task.normals[:50])
    scores = system.score(task.queries[:9])
    order = rank(scores, k)
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("method", ["sbd-i", "sbd-d", "dtw-i", "dtw-d", "raw+nr(3)", "raw(metric=cosine)"])
def test_parts_give_the_answer_of_the_whole_to_the_bit(method: str, task: Task, archive: Archive) -> None:
    one, seven = (
        search_in_parts(archive, method, task.queries[:9], 10, parts=parts, executor=Local()) for parts in (1, 7)
    )
    np.testing.assert_array_equal(seven.indices, one.indices)
    np.testing.assert_array_equal(seven.scores, one.scores)
    np.testing.assert_array_equal(one.indices, whole(task, method, 10)[0])


@pytest.mark.parametrize("method", ["euclidean", "euclidean(norm=normals)"])
def test_products_of_matrices_agree_to_their_precision(method: str, task: Task, archive: Archive) -> None:
    hits = search_in_parts(archive, method, task.queries[:9], 10, parts=7, executor=Local())
    np.testing.assert_allclose(hits.scores, whole(task, method, 10)[1], rtol=1e-5)


def test_parts_are_searched_in_other_processes(task: Task, archive: Archive) -> None:
    hits = search_in_parts(archive, "dtw-i", task.queries[:9], 500, parts=3, executor=Processes(1))
    assert hits.indices.shape == (9, 300)
    np.testing.assert_array_equal(hits.indices, whole(task, "dtw-i", 500)[0])


@pytest.mark.parametrize("method", ["sax-bm25", "majority", "euclidean|sbd-d", "euclidean+prf"])
def test_methods_that_see_the_whole_corpus_are_refused(method: str, task: Task, archive: Archive) -> None:
    with pytest.raises(UsageError):
        search_in_parts(archive, method, task.queries[:1], 10, parts=2, executor=Local())
