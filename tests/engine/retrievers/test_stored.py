"""Vectors of a large corpus: one file, block by block, begun again where it was left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine import vectors as module
from readbench.engine.encoders import Raw
from readbench.engine.retrievers import EmbeddingRetriever, NormalResidual
from readbench.engine.testing import sample_windows
from readbench.engine.vectors import StoredVectors
from readbench.engine.windows import WindowSet

WINDOWS = WindowSet.from_arrays(np.random.default_rng(0).random((23, 2, 6)).astype(np.float32))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STORED_BLOCK", 5)


def ends(windows: WindowSet) -> NDArray[np.float32]:
    """First and last value of each window."""
    return np.stack([window.values[0, [0, -1]] for window in windows])


class Counting:
    """An encoder that dies before a block."""

    def __init__(self, dies_at: int = 10**9) -> None:
        self.blocks = 0
        self.dies_at = dies_at

    def __call__(self, windows: WindowSet) -> NDArray[np.float32]:
        if self.blocks == self.dies_at:
            raise KeyboardInterrupt
        self.blocks += 1
        return ends(windows)


def test_vectors_are_those_of_all_windows_and_stay_on_disk(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    stored = StoredVectors(tmp_path / "v", "ends", progress=lambda *far: told.append(far))
    vectors = stored.fill(WINDOWS, ends)
    assert isinstance(vectors, np.memmap)
    np.testing.assert_array_equal(vectors, ends(WINDOWS))
    assert told == [("encoding", done, 23) for done in (10, 15, 20, 23)]
    assert stored.size >= vectors.nbytes
    stored.clear()
    assert not (tmp_path / "v").exists()


def test_an_interrupted_writer_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        StoredVectors(tmp_path, "ends").fill(WINDOWS, Counting(dies_at=3))
    again, later = Counting(), StoredVectors(tmp_path, "ends")
    np.testing.assert_array_equal(later.fill(WINDOWS, again), ends(WINDOWS))
    assert again.blocks == 2
    assert 0 < later.earlier < later.seconds
    assert StoredVectors(tmp_path, "ends").fill(WINDOWS, Counting(dies_at=0)).shape == (23, 2)


def test_vectors_of_something_else_are_made_again(tmp_path: Path) -> None:
    StoredVectors(tmp_path, "ends").fill(WINDOWS, ends)
    for key, windows in (("other", WINDOWS), ("other", WINDOWS[:20])):
        again = Counting()
        np.testing.assert_array_equal(StoredVectors(tmp_path, key).fill(windows, again), ends(windows))
        assert again.blocks == -(-len(windows) // 5)


def test_processes_side_by_side_store_the_same(tmp_path: Path) -> None:
    vectors = StoredVectors(tmp_path, "ends", jobs=2).fill(WINDOWS, ends)
    np.testing.assert_array_equal(vectors, ends(WINDOWS))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_retriever_finds_the_same_with_stored_vectors(jobs: int, tmp_path: Path) -> None:
    told: list[int] = []
    stored = StoredVectors(tmp_path, "raw", jobs, lambda _, done, __: told.append(done))
    corpus, queries = sample_windows(60), sample_windows(4, seed=1)
    normals = corpus[corpus.labels == 0]
    plain = EmbeddingRetriever(Raw(), (NormalResidual(k=3),), None).fit(corpus, normals)
    large = EmbeddingRetriever(Raw(), (NormalResidual(k=3),), None, stored).fit(corpus, normals)
    assert isinstance(large.vectors_, np.memmap)
    np.testing.assert_allclose(large.vectors_, plain.vectors_, atol=1e-6)
    np.testing.assert_array_equal(large.search(queries, 10).indices, plain.search(queries, 10).indices)
    assert large.encode_seconds > 0
    assert told[-1] == len(corpus)
