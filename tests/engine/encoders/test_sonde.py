from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.encoders import Sonde, _sonde as sonde
from readbench.engine.encoders._channels import KEYED_WIDTH, MIN_VECTORS, Pooling, names_of
from readbench.engine.encoders._sonde import MAX_REFERENCE_WINDOWS
from readbench.engine.preparation import MIN_SPREAD_SHARE, ChannelStats, operating_statistics
from readbench.engine.protocols import Vectors
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import NotFiniteError, ParameterError, UsageError
from readbench.testing import ENCODER_CHECKS, EncoderCheck, sample_windows

RAGGED = sample_windows(9, channels=4, length=90, ragged=True)
NORMALS = sample_windows(30, channels=4, length=90, ragged=True, seed=3)
WEIGHTS = files("readbench.engine.encoders").joinpath("models/sonde.onnx")


def assert_same(found: Vectors, expected: Vectors) -> None:
    """Up to rounding: what stands beside a window changes the order of sums within the runtime, by 1e-6 or less."""
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that nothing was written to yet; where Sonde keeps its files in it."""
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    return tmp_path / "models" / "sonde"


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many series each call of the network was given."""
    seen: list[int] = []
    plain = Sonde.embed

    def noted(self: Sonde, series: NDArray[np.float32]) -> Vectors:
        seen.append(len(series))
        return plain(self, series)

    monkeypatch.setattr(Sonde, "embed", noted)
    return seen


def windows_of(*values: NDArray[np.floating], channels: tuple[str, ...] | None = None) -> WindowSet:
    return WindowSet.from_arrays(list(values), channels=channels)


def turned(windows: WindowSet) -> WindowSet:
    """The same windows with their channels in the opposite order."""
    return WindowSet.from_arrays([w.values[::-1] for w in windows], channels=[w.channels[::-1] for w in windows])


def cosines(vectors: Vectors) -> NDArray[np.float64]:
    units = vectors.astype(np.float64) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units @ units.T


@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("text", ["sonde", "sonde(pool=mean)", "sonde(pool=stats,reference=none)"])
def test_it_keeps_the_contract(text: str, check: EncoderCheck) -> None:
    check(text)


@pytest.mark.parametrize(("pool", "width"), [("keyed", KEYED_WIDTH), ("mean", 512), ("stats", 3 * 512)])
def test_ragged_windows_get_vectors_of_one_width(pool: Pooling, width: int) -> None:
    vectors = Sonde(pool=pool).fit(RAGGED, NORMALS).encode(RAGGED)
    assert vectors.shape == (9, width)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.unique(vectors.round(3), axis=0).shape[0] == 9


@pytest.mark.parametrize("pool", ["keyed", "mean"])
def test_neither_the_order_of_windows_nor_that_of_channels_matters(pool: Pooling) -> None:
    encoder = Sonde(pool=pool, batch=5).fit(RAGGED, NORMALS)
    together, order = encoder.encode(RAGGED), np.random.default_rng(0).permutation(9)
    alone = np.concatenate([encoder.encode(RAGGED[[i]]) for i in range(9)])
    assert_same(encoder.encode(RAGGED[order]), together[order])
    assert_same(alone, together)
    assert_same(encoder.encode(turned(RAGGED)), together)


def test_the_size_of_a_batch_changes_neither_vectors_nor_their_fingerprint() -> None:
    one, many = (Sonde(reference="none", batch=batch).fit(RAGGED, NORMALS) for batch in (1, 64))
    assert_same(one.encode(RAGGED), many.encode(RAGGED))
    assert one.fingerprint() == many.fingerprint()


def test_the_number_of_threads_changes_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, found = Sonde(batch=3).fit(RAGGED, NORMALS), set()
    for threads in ("1", "3"):
        monkeypatch.setenv("READBENCH_THREADS", threads)
        found.add(encoder.encode(RAGGED).tobytes())
    assert len(found) == 1
    assert sonde.open_session(sonde.find_shipped_weights()).get_session_options().intra_op_num_threads == 1


def test_a_renamed_channel_changes_the_keyed_vector_and_not_the_mean() -> None:
    values = sample_windows(1, channels=2)[0].values
    one, other = (windows_of(values, channels=names) for names in (("a", "b"), ("a", "c")))
    likeness = {}
    for pool in ("keyed", "mean"):
        encoder = Sonde(pool=pool, reference="none").fit(windows_of(values, channels=("z", "y")), NORMALS[:0])
        likeness[pool] = cosines(encoder.encode(concatenate([one, other])))[0, 1]
    assert likeness["keyed"] < 0.9
    assert likeness["mean"] == pytest.approx(1, abs=1e-6)


def test_keyed_vectors_compare_like_the_channels_side_by_side() -> None:
    windows = sample_windows(8, channels=6, length=64)
    windows = WindowSet.from_arrays([w.values for w in windows], channels=[f"c{k}" for k in range(6)])
    encoder = Sonde(pool="keyed").fit(windows, windows)
    assert encoder.usual_ is not None
    assert encoder.scale_ is not None
    departures = encoder.usual_.departures(
        encoder.channel_vectors(encoder.scale_(windows)), names_of(windows), np.full(48, 6)
    )
    beside, keyed = cosines(departures.reshape(8, -1)), cosines(encoder.encode(windows))
    assert np.abs(keyed - beside).max() < 4 / np.sqrt(KEYED_WIDTH)
    assert np.abs(beside[~np.eye(8, dtype=bool)]).max() > 8 / np.sqrt(KEYED_WIDTH)


@pytest.mark.parametrize("length", [1, 2, 5000])
def test_any_length_gives_finite_vectors(length: int) -> None:
    window = windows_of(np.random.default_rng(0).normal(size=(2, length)), channels=("sensor 0", "sensor 1"))
    assert np.isfinite(Sonde().fit(RAGGED, NORMALS).encode(window)).all()


@pytest.mark.parametrize("count", [0, 1, MIN_VECTORS - 1])
def test_few_normals_or_none_give_finite_vectors(count: int) -> None:
    normals = windows_of(*np.random.default_rng(0).normal(size=(count, 2, 40)), channels=("sensor 0", "sensor 1"))
    vectors = Sonde().fit(RAGGED, normals).encode(RAGGED)
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()


def test_unknown_and_constant_channels_give_finite_vectors() -> None:
    flat = windows_of(np.full((2, 40), 3.0), np.full((2, 40), 1e9), channels=("sensor 0", "never seen"))
    assert np.isfinite(Sonde().fit(RAGGED, NORMALS).encode(flat)).all()
    assert np.isfinite(Sonde().fit(flat, flat).encode(flat)).all()


def test_a_fault_is_louder_than_normal_operation() -> None:
    rng = np.random.default_rng(0)
    windows = windows_of(*rng.normal(size=(24, 2, 64)), channels=("a", "b"))
    faulty = windows_of(*rng.normal(size=(4, 2, 64)) + np.array([[6.0], [0.0]]), channels=("a", "b"))
    encoder = Sonde(pool="keyed").fit(windows, windows[:16])
    assert (
        np.linalg.norm(encoder.encode(faulty), axis=1).min()
        > np.linalg.norm(encoder.encode(windows[16:]), axis=1).max()
    )


def test_channels_are_scaled_by_normal_operation_unless_it_hardly_moves() -> None:
    rng = np.random.default_rng(0)
    corpus = windows_of(*10 * rng.normal(size=(6, 3, 50)) + 4, channels=("moving", "still", "corpus only"))
    normals = windows_of(*(np.array([[2.0], [0.0]]) * rng.normal(size=(6, 2, 50)) + 1), channels=("moving", "still"))
    whole, own, found = ChannelStats.of(corpus), ChannelStats.of(normals), operating_statistics(corpus, normals)
    assert found.mean == own.mean | {"corpus only": whole.mean["corpus only"]}
    assert found.std["moving"] == own.std["moving"]
    assert found.std["still"] == MIN_SPREAD_SHARE * whole.std["still"]
    assert found.std["corpus only"] == whole.std["corpus only"]
    assert operating_statistics(corpus, normals[:0]).fingerprint() == whole.fingerprint()


def test_the_reference_is_taken_from_a_bounded_number_of_normals(own_cache: Path, embedded: list[int]) -> None:
    normals = windows_of(*np.random.default_rng(0).normal(size=(MAX_REFERENCE_WINDOWS + 40, 1, 16)), channels=("a",))
    Sonde().fit(normals, normals)
    assert sum(embedded) == MAX_REFERENCE_WINDOWS
    assert own_cache.exists()


def test_normals_are_encoded_once(own_cache: Path, embedded: list[int]) -> None:
    one = Sonde().fit(RAGGED, NORMALS)
    before = len(embedded)
    two = Sonde(pool="mean").fit(RAGGED, NORMALS)
    assert before > 0
    assert len(embedded) == before
    assert one.usual_ is not None
    assert two.usual_ is not None
    assert one.usual_.fingerprint() == two.usual_.fingerprint()
    Sonde().fit(RAGGED, NORMALS[:20])
    assert len(embedded) > before
    assert len(list(own_cache.glob("*.npz"))) == 2


def test_a_half_written_file_is_never_read(
    own_cache: Path, embedded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(file: object, **_: object) -> NoReturn:
        file.write(b"PK half a file")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", torn)
        with pytest.raises(KeyboardInterrupt):
            Sonde().fit(RAGGED, NORMALS)
    assert not list(own_cache.glob("*.npz"))
    before = len(embedded)
    assert np.isfinite(Sonde().fit(RAGGED, NORMALS).encode(RAGGED)).all()
    assert len(embedded) > before


@pytest.mark.parametrize("content", [b"", b"PK half a file", None], ids=["empty", "torn", "cut off"])
def test_a_damaged_file_is_computed_again(own_cache: Path, embedded: list[int], content: bytes | None) -> None:
    vectors = Sonde().fit(RAGGED, NORMALS).encode(RAGGED)
    (path,) = own_cache.glob("*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    before = len(embedded)
    np.testing.assert_array_equal(Sonde().fit(RAGGED, NORMALS).encode(RAGGED), vectors)
    assert len(embedded) > before
    assert path.read_bytes() == whole


def test_the_fingerprint_follows_what_shapes_a_vector() -> None:
    plain = Sonde().fit(RAGGED, NORMALS)
    others = [
        Sonde(pool="mean").fit(RAGGED, NORMALS),
        Sonde(reference="none").fit(RAGGED, NORMALS),
        Sonde().fit(RAGGED, NORMALS[:20]),
        Sonde().fit(RAGGED[:5], NORMALS[:0]),
    ]
    assert len({encoder.fingerprint() for encoder in (plain, *others)}) == 5
    elsewhere = Sonde(reference="none", metric="euclidean", device="cuda").fit(RAGGED, NORMALS)
    assert elsewhere.fingerprint() == others[1].fingerprint()


def test_the_fingerprint_follows_the_reference_even_where_the_scale_is_the_same() -> None:
    """Whole numbers, one window turned around in time: the same mean and spread to the bit, other vectors."""
    values = np.random.default_rng(0).integers(-9, 9, size=(MIN_VECTORS, 1, 32)).astype(np.float64)
    values[:, :, 0] = 0
    other = values.copy()
    other[1] = other[1, :, ::-1]
    one, two = (Sonde().fit(RAGGED, windows_of(*own, channels=("a",))) for own in (values, other))
    assert one.scale_ is not None
    assert two.scale_ is not None
    assert one.scale_.fingerprint() == two.scale_.fingerprint()
    assert one.fingerprint() != two.fingerprint()


def test_it_must_be_fitted_and_given_finite_values() -> None:
    with pytest.raises(UsageError, match="Fit the encoder first"):
        Sonde().encode(RAGGED)
    with pytest.raises(NotFiniteError, match="sensor 0"):
        Sonde().fit(RAGGED, NORMALS).encode(windows_of(np.array([[1.0, np.nan]]), channels=("sensor 0",)))


def test_the_shipped_file_says_what_it_is() -> None:
    metadata = sonde.open_session(sonde.find_shipped_weights()).get_modelmeta().custom_metadata_map
    said = {name: json.loads(value) for name, value in metadata.items()}
    assert said["licence"] == "Apache-2.0"
    assert said["data"].startswith("synthetic only")
    assert said["config"]["shape"]["width"] * 2 == sonde.WIDTH
    assert len(WEIGHTS.read_bytes()) < 20e6


@pytest.mark.parametrize("size", ["full", "small"])
def test_torch_and_the_shipped_runtime_give_the_same_vectors(size: sonde.Size) -> None:
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("readbench.engine.encoders.sonde_network", reason="needs the extra 'training'")
    series = np.random.default_rng(0).normal(size=(4, sonde.LENGTH)).cumsum(axis=1).astype(np.float32)
    with torch.inference_mode():
        vectors = export.load(sonde.find_shipped_weights(size))(torch.from_numpy(series)).numpy()
    np.testing.assert_allclose(vectors, Sonde(size=size).embed(series), atol=1e-3)


def test_the_small_network_sees_what_the_full_one_sees() -> None:
    """Windows that the one calls alike, the other calls alike: the vectors' cosines go together."""
    series = np.random.default_rng(0).normal(size=(40, sonde.LENGTH)).cumsum(axis=1).astype(np.float32)
    likeness = []
    for size in ("full", "small"):
        vectors = Sonde(size=size).embed(series)
        vectors = vectors - vectors.mean(axis=0)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        likeness.append((vectors @ vectors.T)[np.triu_indices(40, 1)])
    assert np.corrcoef(likeness)[0, 1] > 0.9
    assert sonde.find_shipped_weights("small").stat().st_size < 2e6


def test_differences_are_further_channels() -> None:
    """What the network sees of a window with its differences is what it sees of a window that has them as channels."""
    values = np.random.default_rng(0).normal(size=(12, 2, 60)).cumsum(axis=2).astype(np.float32)
    normals = np.random.default_rng(1).normal(size=(20, 2, 60)).cumsum(axis=2).astype(np.float32)
    names = ("a", "b")

    def widened(arrays: NDArray[np.float32]) -> WindowSet:
        changes = np.concatenate([np.zeros((len(arrays), 2, 1), np.float32), np.diff(arrays, axis=2)], axis=2)
        both = np.concatenate([arrays, changes], axis=1)
        return windows_of(*both, channels=(*names, *(f"(change) {name}" for name in names)))

    plain, own = windows_of(*values, channels=names), windows_of(*normals, channels=names)
    seen = Sonde(size="small", views="difference").fit(plain, own).encode(plain)
    expected = Sonde(size="small").fit(widened(values), widened(normals)).encode(widened(values))
    assert_same(seen, expected)
    with pytest.raises(ParameterError, match="sees values only"):
        Sonde(reference="before", views="difference")


def test_a_gpu_gives_the_vectors_of_a_cpu() -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("torch sees no GPU")
    here, there = (Sonde(device=device).fit(RAGGED, NORMALS).encode(RAGGED) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there, here, rtol=1e-2, atol=1e-2)


def test_a_missing_gpu_is_said() -> None:
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("torch sees a GPU")
    with pytest.raises(UsageError, match="Use device=cpu"):
        Sonde(device="cuda", reference="none").fit(RAGGED, NORMALS).encode(RAGGED)
