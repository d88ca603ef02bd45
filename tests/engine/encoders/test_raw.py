"""The raw encoder: windows on the corpus's grid, flattened."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from readbench.engine import protocols as base
from readbench.engine.encoders import Raw
from readbench.engine.preparation import ChannelStats, Normalisation, Scaler, channel_axis, dense
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.errors import NotFiniteError, ParameterError
from readbench.testing import sample_windows

RAGGED = sample_windows(9, channels=4, length=40, ragged=True)


def fitted(corpus: WindowSet = RAGGED, norm: Normalisation = "channel") -> Raw:
    return Raw(norm=norm).fit(corpus, corpus[:0])


def test_vectors_are_scaled_windows_on_the_grid_of_the_corpus() -> None:
    scaled = Scaler.of("channel", RAGGED)(RAGGED)
    expected = dense(scaled, channels=channel_axis(RAGGED), length=int(RAGGED.lengths.max())).reshape(9, -1)
    np.testing.assert_array_equal(fitted().encode(RAGGED), expected)


def test_other_windows_come_to_the_same_grid() -> None:
    corpus = WindowSet.from_arrays([[[0.0, 2.0, 4.0]]], channels=("a",))
    others = WindowSet.from_arrays([[[1.0, 3.0], [9.0, 9.0]], [[5.0] * 5]], channels=[("a", "b"), ("c",)])
    assert fitted(corpus, "none").encode(others).tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]


def test_batches_of_windows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = fitted()
    together = encoder.encode(RAGGED)
    monkeypatch.setattr(base, "MAX_BATCH_NUMBERS", 1)
    np.testing.assert_array_equal(encoder.encode(RAGGED), together)
    order = np.random.default_rng(0).permutation(9)
    np.testing.assert_array_equal(encoder.encode(RAGGED[order]), together[order])


def test_statistics_that_the_corpus_carries_come_first() -> None:
    corpus, stats = sample_windows(6), ChannelStats.of(sample_windows(3, seed=7))
    vectors = fitted(corpus.with_stats(stats)).encode(corpus)
    assert np.abs(vectors - fitted(corpus).encode(corpus)).max() > 0.1
    np.testing.assert_array_equal(fitted(corpus[:3].with_stats(stats)).encode(corpus), vectors)


def test_constant_and_single_channels_give_finite_vectors() -> None:
    flat = WindowSet.from_arrays([np.full((1, 5), 3.0), np.full((2, 1), 1e15)])
    assert np.isfinite(fitted(flat).encode(flat)).all()


def test_missing_values_are_refused() -> None:
    bad = WindowSet.from_arrays([[[1.0, np.nan]]], channels=("sensor 0",))
    with pytest.raises(NotFiniteError, match="sensor 0"):
        fitted().encode(bad)


def test_normals_are_needed_only_where_asked_for() -> None:
    with pytest.raises(ParameterError, match="norm=channel"):
        fitted(norm="normals")
    assert Raw(norm="normals").fit(RAGGED[4:], RAGGED[:4]).encode(RAGGED).shape[0] == 9


def test_fingerprint_tells_grids_apart_and_travels() -> None:
    encoder = fitted()
    assert encoder.fingerprint() == fitted().fingerprint()
    assert len({e.fingerprint() for e in (encoder, fitted(norm="none"), fitted(RAGGED[:3]))}) == 3
    copy: Raw = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    assert copy.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(copy.encode(RAGGED), encoder.encode(RAGGED))


def test_it_is_registered_and_pairwise() -> None:
    encoder = ENCODERS.get("raw").build(metric="cosine")
    assert (encoder.metric, encoder.corpus_dependent) == ("cosine", False)
