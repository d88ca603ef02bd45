from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pytest

from readbench.engine.protocols import Metric, Vectors
from readbench.engine.retrievers import EmbeddingRetriever
from readbench.engine.vectors import VectorFolder, encode_missing, window_digests
from readbench.engine.windows import WindowSet
from readbench.testing import sample_windows


class Counting:
    """Embeds a window as its mean and size, and counts how many it was given."""

    metric: Metric = "euclidean"
    corpus_dependent = False

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.encoded = 0

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        return self

    def encode(self, windows: WindowSet) -> Vectors:
        self.encoded += len(windows)
        return np.array([[w.values.mean(), w.values.size] for w in windows], np.float32)

    def fingerprint(self) -> str:
        return self.name


def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    windows, encoder = sample_windows(20), Counting()
    first = encode_missing(VectorFolder(tmp_path), encoder, windows)
    second = encode_missing(VectorFolder(tmp_path), encoder, windows[::-1])
    assert encoder.encoded == 20
    np.testing.assert_array_equal(first, second[::-1])
    np.testing.assert_array_equal(first, encoder.encode(windows))


class Doubling(Counting):
    """Other code under the same fingerprint, as of an encoder that was edited."""

    def encode(self, windows: WindowSet) -> Vectors:
        return 2 * super().encode(windows)


def test_an_edited_encoder_does_not_find_the_vectors_it_gave_before(tmp_path: Path) -> None:
    windows = sample_windows(5)
    before = encode_missing(VectorFolder(tmp_path), Counting(), windows)
    after = encode_missing(VectorFolder(tmp_path), Doubling(), windows)
    np.testing.assert_array_equal(after, 2 * before)


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    windows, encoder = sample_windows(20), Counting()
    encode_missing(VectorFolder(tmp_path), encoder, windows[:15])
    encode_missing(VectorFolder(tmp_path), encoder, windows[10:])
    assert encoder.encoded == 20


def test_equal_windows_are_computed_once(tmp_path: Path) -> None:
    windows, encoder = sample_windows(5), Counting()
    vectors = encode_missing(VectorFolder(tmp_path), encoder, windows[[0, 1, 0, 0, 2, 1]])
    assert encoder.encoded == 3
    np.testing.assert_array_equal(vectors, Counting().encode(windows[[0, 1, 0, 0, 2, 1]]))


def test_progress_counts_what_was_known_and_what_is_filed(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []

    def encode(windows: WindowSet) -> None:
        encode_missing(
            VectorFolder(tmp_path), Counting(), windows, lambda _, done, total: told.append((done, total)), block=4
        )

    encode(sample_windows(20)[:7])
    assert told == [(0, 7), (4, 7), (7, 7)]
    told.clear()
    encode(sample_windows(20))
    assert told == [(7, 20), (11, 20), (15, 20), (19, 20), (20, 20)]
    told.clear()
    encode(sample_windows(20))
    assert told == []


def test_encoders_of_other_fingerprints_do_not_share(tmp_path: Path) -> None:
    windows = sample_windows(3)
    for name in ("one", "two"):
        encoder = Counting(name)
        encode_missing(VectorFolder(tmp_path), encoder, windows)
        assert encoder.encoded == 3


def test_a_killed_encoding_keeps_its_finished_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows, encoder = sample_windows(12), Counting()
    original = encoder.encode

    def dies_in_the_third_block(part: WindowSet) -> Vectors:
        if encoder.encoded >= 8:
            raise KeyboardInterrupt
        return original(part)

    monkeypatch.setattr(encoder, "encode", dies_in_the_third_block)
    with pytest.raises(KeyboardInterrupt):
        encode_missing(VectorFolder(tmp_path), encoder, windows, block=4)
    monkeypatch.undo()
    encode_missing(VectorFolder(tmp_path), encoder, windows)
    assert encoder.encoded == 12


def test_a_half_written_file_is_never_read(tmp_path: Path) -> None:
    windows, encoder = sample_windows(3), Counting()
    encode_missing(VectorFolder(tmp_path), encoder, windows)
    (folder,) = (tmp_path / "embeddings").iterdir()
    assert folder.name.startswith("counting-")
    (folder / "half.npz.123.partial").write_bytes(b"PK\x03\x04")
    encode_missing(VectorFolder(tmp_path), encoder, windows)
    assert encoder.encoded == 3


def test_digests_tell_apart_values_shapes_and_names() -> None:
    values = np.arange(12.0)
    sets = [
        WindowSet.from_arrays([values.reshape(2, 6)]),
        WindowSet.from_arrays([values.reshape(3, 4)]),
        WindowSet.from_arrays([values.reshape(2, 6)], channels=("x", "y")),
        WindowSet.from_arrays([values.reshape(2, 6) + 1]),
    ]
    assert len({window_digests(s)[0] for s in sets}) == 4


def test_an_embedding_retriever_reports_the_time_for_encoding(tmp_path: Path) -> None:
    retriever = EmbeddingRetriever(Counting(), (), VectorFolder(tmp_path))
    windows = sample_windows(6)
    scores = retriever.fit(windows, windows[:0]).score(windows[:2])
    assert scores.shape == (2, 6)
    assert scores[0].argmax() == 0
    assert retriever.encode_seconds > 0
