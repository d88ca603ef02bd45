from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.kernels import correlation, correlation as correlator
from readbench.engine.kernels.correlation import Correlator, Transforms, transform_size
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats, WindowRows, channel_axis
from readbench.engine.retrievers import _sbd as sbd
from readbench.engine.testing import sample_windows
from readbench.engine.windows import WindowSet
from readbench.testing import RETRIEVER_CHECKS, RetrieverCheck
from tests.naive import sbd as naive

METHODS = ["sbd-i", "sbd-d", "sbd-i(norm=window)", "sbd-d(norm=none,align=position)"]


def distances(method: str, corpus: WindowSet, queries: WindowSet) -> NDArray[np.float32]:
    return -Method(method).fit(corpus, corpus[:0]).score(queries)


def expected(method: str, x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    return naive.sbd_independent(x, y) if method == "sbd-i" else naive.sbd_dependent(x, y)


def compare(method: str, corpus: WindowSet, queries: WindowSet) -> None:
    """Against the twin, on the channels that at least one window of a pair has."""
    found = distances(f"{method}(norm=none)", corpus, queries)
    for q in range(len(queries)):
        for n in range(len(corpus)):
            axis = channel_axis(queries[q : q + 1], corpus[n : n + 1])
            x, y = (WindowRows.of(s[i : i + 1], axis, "name").values[0] for s, i in ((queries, q), (corpus, n)))
            pair = expected(method, x[:, : queries.lengths[q]], y[:, : corpus.lengths[n]])
            assert found[q, n] == pytest.approx(pair, abs=2e-6 * len(axis)), (q, n)


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_the_contract_is_kept(method: str, check: RetrieverCheck) -> None:
    check(method)


@pytest.mark.parametrize("size", [8, 16, 32, 128, 2048])
def test_the_transform_is_the_discrete_fourier_transform(size: int) -> None:
    rng = np.random.default_rng(size)
    re, im = rng.standard_normal((2, size, correlation.LANES)).astype(np.float32)
    wanted = np.fft.fft(re + 1j * im, axis=0)
    correlation.transform(re, im, correlation.turns(size))
    found = (re + 1j * im)[correlation.places(size)]
    np.testing.assert_allclose(found, wanted, atol=2e-6 * size)


@pytest.mark.parametrize("method", ["sbd-i", "sbd-d"])
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_the_slow_twin_on_ragged_windows(method: str, seed: int) -> None:
    corpus = sample_windows(7, channels=5, length=30, ragged=True, seed=seed)
    compare(method, corpus, sample_windows(5, channels=6, length=47, ragged=True, seed=seed + 100))


@pytest.mark.parametrize("method", ["sbd-i", "sbd-d"])
def test_it_equals_the_slow_twin_on_nasty_windows(method: str) -> None:
    rng = np.random.default_rng(5)
    windows = WindowSet.from_arrays(
        [
            np.full((2, 9), 7.0),
            1e6 + rng.standard_normal((2, 13)),
            1e30 * rng.standard_normal((2, 6)),
            1e-30 * rng.standard_normal((2, 11)),
            np.zeros((2, 8)),
            [[3.0], [-2.0]],
            -np.ones((2, 5)),
            np.stack([np.zeros(10), rng.standard_normal(10)]),
        ]
    )
    compare(method, windows, windows)


def test_opposite_windows_are_further_apart_than_unrelated_ones() -> None:
    """All overlaps are negative here, and lags without any overlap must not count as zero."""
    windows = WindowSet.from_arrays([np.ones((1, 5)), -np.ones((1, 5))])
    assert distances("sbd-d(norm=none)", windows[:1], windows[1:]).item() == pytest.approx(1.2)


def test_a_window_without_signal_has_no_correlation_with_anything() -> None:
    corpus = WindowSet.from_arrays([np.zeros((3, 8)), np.ones((3, 8))])
    assert distances("sbd-d(norm=none)", corpus, corpus[:1]).tolist() == [[1.0, 1.0]]
    assert distances("sbd-i(norm=none)", corpus, corpus[:1]).tolist() == [[3.0, 3.0]]


def pulses(*starts: int) -> NDArray[np.float64]:
    """One channel per start, each with the same pulse there."""
    values = np.zeros((len(starts), 40))
    for channel, start in zip(values, starts, strict=True):
        channel[start : start + 5] = [1, 4, -3, 2, 1]
    return values


def test_a_common_shift_costs_nothing() -> None:
    corpus, queries = (WindowSet.from_arrays([pulses(*starts)]) for starts in ((5, 20), (14, 29)))
    for method in ("sbd-i(norm=none)", "sbd-d(norm=none)"):
        assert distances(method, corpus, queries).item() == pytest.approx(0, abs=1e-6)


def test_shifts_of_their_own_cost_only_where_channels_move_together() -> None:
    corpus, queries = (WindowSet.from_arrays([pulses(*starts)]) for starts in ((5, 20), (14, 21)))
    assert distances("sbd-i(norm=none)", corpus, queries).item() == pytest.approx(0, abs=1e-6)
    assert distances("sbd-d(norm=none)", corpus, queries).item() == pytest.approx(0.5, abs=1e-6)


def test_a_channel_that_other_windows_have_changes_nothing() -> None:
    alone = WindowSet.from_arrays([pulses(3, 9), pulses(8, 9)], channels=("a", "b"))
    beside = WindowSet.from_arrays([pulses(3, 9), pulses(8, 9), pulses(1)], channels=[("a", "b"), ("a", "b"), ("c",)])
    for method in ("sbd-i(norm=none)", "sbd-d(norm=none)"):
        together = distances(method, beside, beside)[:2, :2]
        np.testing.assert_allclose(together, distances(method, alone, alone), atol=1e-6)


@pytest.mark.parametrize("method", ["sbd-i", "sbd-d"])
def test_tiles_and_batches_leave_no_seams(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More items than a tile holds, more queries than a batch, odd numbers of both."""
    corpus = sample_windows(2 * correlation.LANES + 3, channels=2, length=20, ragged=True)
    corpus = corpus.with_stats(ChannelStats.of(corpus))
    queries = sample_windows(correlation.LANES + 5, channels=3, length=20, ragged=True, seed=1)
    whole = distances(method, corpus, queries)
    np.testing.assert_allclose(distances(method, corpus[-1:], queries[-1:]), whole[-1:, -1:], atol=1e-5)
    monkeypatch.setattr(sbd, "QUERY_BYTES", 0)
    np.testing.assert_allclose(distances(method, corpus, queries), whole, atol=1e-5)


def test_no_queries_and_no_corpus_give_no_scores() -> None:
    corpus = sample_windows(4)
    assert distances("sbd-d", corpus, corpus[:0]).shape == (0, 4)
    assert sbd.IndependentShapeBased(norm="none").fit(corpus[:0], corpus[:0]).score(corpus).shape == (4, 0)


class Spectra:
    """Counts the tiles of which spectra are computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        original = correlation.tile_spectra

        def tile_spectra(*arguments: NDArray[np.float32]) -> NDArray[np.float32]:
            self.made += 1
            return original(*arguments)

        monkeypatch.setattr(correlator, "tile_spectra", tile_spectra)


@pytest.mark.parametrize("method", [sbd.IndependentShapeBased, sbd.DependentShapeBased])
def test_kept_spectra_spare_work_and_change_no_bit(
    method: type[sbd.IndependentShapeBased | sbd.DependentShapeBased], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = sample_windows(2 * correlation.LANES + 3, channels=2, length=20, ragged=True)
    queries, longer = (sample_windows(5, channels=3, length=length, ragged=True, seed=1) for length in (20, 90))
    fitted, counter = method().fit(corpus, corpus[:0]), Spectra(monkeypatch)
    made, answers = [], []
    for some in (queries, queries, longer, queries, queries[:1]):
        answers.append(fitted.score(some))
        made.append(counter.made)
    assert np.diff([0, *made]).tolist() == [4, 1, 4, 4, 1]  # the queries' own, and the three of the corpus
    monkeypatch.setenv("READBENCH_KEPT_MB", "0")
    streamed, before = method().fit(corpus, corpus[:0]), counter.made
    for some, kept in zip((queries, queries, longer), answers, strict=False):
        np.testing.assert_array_equal(streamed.score(some), kept)
    assert counter.made - before == 12
    np.testing.assert_allclose(answers[-1], answers[0][:1], atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3, 32])
def test_it_agrees_with_tslearn(channels: int) -> None:
    cycc = pytest.importorskip("tslearn.metrics.cycc")
    rng = np.random.default_rng(channels)
    left, right = (rng.standard_normal((n, channels, 50)).cumsum(axis=2).astype(np.float32) for n in (4, 6))
    peer = cycc.cdist_normalized_cc(
        np.ascontiguousarray(left.transpose(0, 2, 1), np.float64),
        np.ascontiguousarray(right.transpose(0, 2, 1), np.float64),
        -np.ones(4),
        -np.ones(6),
        self_similarity=False,
    )
    transforms = Transforms(transform_size(50, 50), channels, joint=True)
    peaks = Correlator(WindowRows(left, np.full(4, 50)), transforms).peaks(
        transforms.tile(WindowRows(right, np.full(6, 50)))
    )
    np.testing.assert_allclose(peaks, peer, atol=1e-6)
