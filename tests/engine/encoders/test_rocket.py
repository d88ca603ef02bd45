"""Our MiniRocket is aeon's and the definition's; as an encoder it keeps the contract."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine import protocols as base
from readbench.engine.encoders import Rocket, _rocket as rocket
from readbench.engine.kernels.rocket import Bank, add_levels, dilations_of, fit_bank, transform
from readbench.engine.preparation import ChannelStats
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import DataError, NotFiniteError, UsageError
from readbench.testing import sample_windows
from tests.naive import rocket as naive

Floats = NDArray[np.float32]
SHAPES = [(3, 1, 9), (2, 1, 40), (3, 2, 10), (2, 5, 17), (2, 12, 33)]
RAGGED = sample_windows(9, channels=4, length=40, ragged=True)
FEW = 84 * 8


def exact_windows(count: int, channels: int, length: int, seed: int = 0) -> Floats:
    """Random walks in steps of 1/16: sums of them are exact in float32, in whatever order they are taken."""
    walks = np.random.default_rng(seed).integers(-30, 31, (count, channels, length)).cumsum(axis=2)
    return (walks / 16).astype(np.float32)


def features_of(bank: Bank, windows: Floats) -> Floats:
    out = np.full((len(windows), len(bank.levels)), np.nan, np.float32)
    transform(bank, windows, out)
    return out


def fitted(corpus: WindowSet = RAGGED, **parameters: Any) -> Rocket:  # noqa: ANN401
    return Rocket(**{"features": FEW, **parameters}).fit(corpus, corpus[:0])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_features_follow_the_definition(shape: tuple[int, int, int]) -> None:
    windows = exact_windows(*shape)
    bank = fit_bank(exact_windows(*shape, seed=1), 84 * 5, seed=3)
    np.testing.assert_allclose(features_of(bank, windows), naive.features(bank, windows), atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_levels_are_quantiles_of_responses(channels: int) -> None:
    windows = exact_windows(4, channels, 24)
    bank = fit_bank(windows, 84 * 5, seed=0)
    heavy = (0, 1, 2)
    own = bank.channels[: bank.begins[1]]
    answers = [naive.response(w[own].astype(float).sum(axis=0), 1, heavy) for w in windows]
    golden = (1 + np.sqrt(5)) / 2
    expected = [[np.quantile(a, golden * (f + 1) % 1) for f in range(bank.widths[0])] for a in answers]
    assert np.abs(np.array(expected) - bank.levels[: bank.widths[0]]).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("channels", [1, 3])
def test_a_constant_stretch_has_a_response_of_exactly_zero(channels: int) -> None:
    bank = fit_bank(exact_windows(3, channels, 50), 84, seed=0)._replace(levels=np.zeros(84, np.float32))
    flat = np.full((1, channels, 50), 0.1, np.float32)
    assert not features_of(bank, flat)[0, 1::2].any()


def test_values_near_the_largest_float_do_not_break_it() -> None:
    huge = exact_windows(3, 2, 20) * np.float32(1e37)
    bank = fit_bank(huge, 84 * 3, seed=0)
    assert np.isfinite(features_of(bank, huge)).all()


def aeon_module() -> Any:  # noqa: ANN401 - an optional package
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("aeon.transformations.collection.convolution_based._minirocket")


def aeon_draws(seed: int, windows: int, count: int) -> NDArray[np.int64]:
    """The windows that aeon's compiled code draws: numba has a generator of its own."""
    numba = pytest.importorskip("numba")

    @numba.njit  # type: ignore[untyped-decorator]
    def draw(seed: int, windows: int, count: int) -> NDArray[np.int64]:
        np.random.seed(seed)  # noqa: NPY002
        return np.array([np.random.randint(windows) for _ in range(count)])  # noqa: NPY002

    drawn: NDArray[np.int64] = draw(seed, windows, count)
    return drawn


def test_dilations_are_those_of_aeon() -> None:
    aeon = aeon_module()
    for length in (9, 10, 15, 17, 64, 100, 257, 512, 1024):
        for features in (84, 500, 2000, 9996, 20000):
            ours, theirs = dilations_of(length, features), aeon._fit_dilations(length, features, 32)
            for mine, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("shape", [(6, 1, 50), (5, 7, 31), (4, 15, 9)], ids=str)
def test_features_and_levels_are_those_of_aeon(shape: tuple[int, int, int]) -> None:
    aeon = aeon_module()
    windows, others = exact_windows(*shape), exact_windows(*shape, seed=1)
    theirs = aeon.MiniRocket(n_kernels=84 * 12, random_state=4).fit(windows)
    counts, channels, dilations, widths, levels = theirs.parameters
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    parts = (dilations.astype(np.int64), widths.astype(np.int64), begins, channels.astype(np.int64))
    draws = aeon_draws(4, len(windows), len(counts))
    bank = add_levels(Bank(*parts, np.zeros_like(levels)), windows, draws)
    np.testing.assert_allclose(bank.levels, levels, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(features_of(bank._replace(levels=levels), others), theirs.transform(others), atol=1e-6)


def test_ragged_windows_get_distinct_vectors_of_one_width() -> None:
    vectors = fitted().encode(RAGGED)
    assert vectors.dtype == np.float32
    assert vectors.shape[1] <= FEW
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors, axis=0)) == 9


def test_windows_of_other_lengths_and_channels_can_be_encoded() -> None:
    others = sample_windows(5, channels=7, length=90, ragged=True, seed=1)
    assert np.isfinite(fitted().encode(others)).all()


@pytest.mark.parametrize(("channels", "length"), [(1, 1), (1, 2), (3, 8), (2, 9)])
def test_series_shorter_than_a_kernel_are_interpolated(channels: int, length: int) -> None:
    short = WindowSet.from_arrays(exact_windows(6, channels, length))
    vectors = fitted(short).encode(short)
    assert vectors.shape[1] > 0
    assert np.isfinite(vectors).all()


def test_features_are_standardised_over_the_corpus() -> None:
    corpus = sample_windows(30, length=50)
    vectors = fitted(corpus).encode(corpus)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(vectors.std(axis=0), 1, atol=1e-4)


def test_features_that_never_vary_are_dropped_unless_none_would_be_left() -> None:
    corpus = sample_windows(20)
    plain, standardised = fitted(corpus, standardise=False), fitted(corpus)
    shares = plain.encode(corpus)
    assert shares.shape[1] == FEW
    assert ((shares >= 0) & (shares <= 1)).all()
    assert standardised.encode(corpus).shape[1] == (np.ptp(shares, axis=0) > 0).sum()
    flat = WindowSet.from_arrays(np.full((4, 2, 20), 3.0))
    for alike in (corpus[:1], flat):
        np.testing.assert_array_equal(fitted(alike).encode(alike), fitted(alike, standardise=False).encode(alike))


def test_neither_order_nor_batches_nor_threads_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = fitted()
    together = encoder.encode(RAGGED)
    order = np.random.default_rng(0).permutation(9)
    assert encoder.encode(RAGGED[order]).tobytes() == together[order].tobytes()
    monkeypatch.setattr(base, "MAX_BATCH_NUMBERS", 1)
    for threads in ("1", "3"):
        monkeypatch.setenv("READBENCH_THREADS", threads)
        assert encoder.encode(RAGGED).tobytes() == together.tobytes()


def test_equal_windows_get_equal_vectors() -> None:
    vectors = fitted().encode(concatenate([RAGGED, RAGGED]))
    np.testing.assert_array_equal(vectors[:9], vectors[9:])


def test_a_seed_decides() -> None:
    first, again, other = (fitted(seed=seed) for seed in (0, 0, 1))
    assert first.encode(RAGGED).tobytes() == again.encode(RAGGED).tobytes()
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_levels_of_a_large_corpus_come_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = fitted()
    monkeypatch.setattr(rocket, "MAX_SAMPLE_NUMBERS", 1)
    sampled = fitted()
    assert sampled.fingerprint() == fitted().fingerprint() != everything.fingerprint()
    assert np.isfinite(sampled.encode(RAGGED)).all()


def test_statistics_that_the_corpus_carries_scale_the_windows() -> None:
    stats = ChannelStats.of(sample_windows(3, channels=4, seed=7))
    assert fitted(RAGGED.with_stats(stats)).fingerprint() != fitted().fingerprint()


def test_fingerprint_tells_vectors_apart_and_travels() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"standardise": False},
        {"norm": "none"},
        {"features": 84 * 4},
        {"corpus": RAGGED[:5]},
    ]
    assert len({fitted(**variant).fingerprint() for variant in variants}) == len(variants)
    encoder = fitted()
    assert encoder.fingerprint() == fitted(metric="euclidean").fingerprint()
    copy: Rocket = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    assert copy.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(copy.encode(RAGGED), encoder.encode(RAGGED))


def test_missing_values_and_an_empty_corpus_are_refused() -> None:
    bad = WindowSet.from_arrays([[[1.0, np.nan]]], channels=("sensor 0",))
    with pytest.raises(NotFiniteError, match="sensor 0"):
        fitted().encode(bad)
    with pytest.raises(NotFiniteError, match="sensor 0"):
        fitted(bad)
    with pytest.raises(DataError, match="empty"):
        fitted(RAGGED[:0])


def test_no_windows_give_no_vectors_of_the_same_width() -> None:
    encoder = fitted()
    assert encoder.encode(RAGGED[:0]).shape == (0, encoder.encode(RAGGED).shape[1])


def test_it_is_registered() -> None:
    encoder = ENCODERS.get("rocket").build()
    assert (encoder.metric, encoder.corpus_dependent, encoder.features) == ("cosine", True, 9996)


@pytest.mark.parametrize("kind", ["multi", "hydra"])
@pytest.mark.parametrize("corpus", [RAGGED, sample_windows(1, channels=1, length=5)], ids=len)
def test_the_other_kinds_keep_the_contract(kind: str, corpus: WindowSet) -> None:
    aeon_module()
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder, again = fitted(corpus, kind=kind), fitted(corpus, kind=kind)
        vectors = encoder.encode(RAGGED)
        alone = np.concatenate([again.encode(RAGGED[[i]]) for i in range(3)])
    assert np.isfinite(vectors).all()
    assert encoder.fingerprint() == again.fingerprint()
    np.testing.assert_allclose(alone, vectors[:3], rtol=1e-4, atol=1e-4)


def test_the_other_kinds_leave_global_generators_alone() -> None:
    aeon_module()
    torch = pytest.importorskip("torch")
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index] # noqa: NPY002
    for kind in ("multi", "hydra"):
        fitted(kind=kind).encode(RAGGED)
    after = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index] # noqa: NPY002
    assert before == after


@pytest.mark.parametrize("kind", ["multi", "hydra"])
def test_a_missing_package_is_named_with_its_remedy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aeon", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=rf"rocket\(kind={kind}\) needs (aeon|torch): pip install"):
        fitted(kind=kind)


def test_importing_the_encoder_compiles_nothing() -> None:
    code = "import sys, readbench.engine.encoders._rocket; assert not {'numba', 'torch', 'aeon'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
