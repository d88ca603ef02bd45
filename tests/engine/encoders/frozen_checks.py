"""What every encoder around a pretrained network promises; each takes a function that builds one."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from readbench.engine import protocols as base
from readbench.engine.encoders._channels import VECTOR_NUMBERS
from readbench.engine.encoders._pretrained import FrozenEncoder
from readbench.engine.protocols import Vectors
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, NotFiniteError, UsageError
from readbench.testing import sample_windows

Build = Callable[..., FrozenEncoder]
"""The encoder with tiny random weights and these parameters; `seed` chooses other weights."""
RAGGED = sample_windows(9, channels=4, length=90, ragged=True)


def ragged_windows_get_vectors_of_one_width(build: Build) -> None:
    vectors = fitted(build).encode(RAGGED)
    assert vectors.shape == (9, vectors.shape[1])
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.unique(vectors.round(5), axis=0).shape[0] == 9


def constant_channels_and_single_steps_give_finite_vectors(build: Build) -> None:
    flat = WindowSet.from_arrays(
        [np.full((2, 40), 3.0), np.full((1, 1), 7.0), np.zeros((3, 2)), np.full((1, 40), 1e15)]
    )
    assert np.isfinite(build(norm="none").encode(flat)).all()


def the_order_of_windows_changes_nothing(build: Build) -> None:
    encoder = fitted(build, batch=5)
    together = encoder.encode(RAGGED)
    order = np.random.default_rng(0).permutation(len(RAGGED))
    np.testing.assert_allclose(encoder.encode(RAGGED[order]), together[order], rtol=1e-5, atol=1e-6)
    alone = np.concatenate([encoder.encode(RAGGED[[i]]) for i in range(len(RAGGED))])
    np.testing.assert_allclose(alone, together, rtol=1e-5, atol=1e-6)


def the_order_of_channels_changes_nothing_under_mean_pooling(build: Build) -> None:
    encoder = fitted(build)
    turned = WindowSet.from_arrays(
        [w.values[::-1] for w in RAGGED], channels=[tuple(reversed(w.channels)) for w in RAGGED]
    )
    np.testing.assert_allclose(encoder.encode(turned), encoder.encode(RAGGED), rtol=1e-5, atol=1e-6)


def a_window_is_the_mean_of_its_channels(build: Build) -> None:
    encoder, window = fitted(build), RAGGED[int(np.argmax(RAGGED.channel_counts))]
    channels = WindowSet.from_arrays([row[None] for row in window.values], channels=[(c,) for c in window.channels])
    whole = WindowSet.from_arrays([window.values], channels=[window.channels])
    expected = encoder.encode(channels).mean(axis=0)
    np.testing.assert_allclose(encoder.encode(whole)[0], expected, rtol=1e-5, atol=1e-6)


def the_size_of_a_batch_changes_nothing(build: Build) -> None:
    one, many = fitted(build, batch=1), fitted(build, batch=64)
    np.testing.assert_allclose(one.encode(RAGGED), many.encode(RAGGED), rtol=1e-5, atol=1e-6)
    assert one.fingerprint() == many.fingerprint()


def windows_of_many_channels_are_encoded_in_parts(build: Build) -> None:
    expected = fitted(build).encode(RAGGED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "MAX_BATCH_NUMBERS", 5 * VECTOR_NUMBERS)
        np.testing.assert_allclose(fitted(build).encode(RAGGED), expected, rtol=1e-5, atol=1e-6)


def the_number_of_threads_changes_no_byte(build: Build) -> None:
    torch = pytest.importorskip("torch")
    before, found, seen = torch.get_num_threads(), [], set()

    def noting(embed: Callable[[Vectors], Vectors]) -> Callable[[Vectors], Vectors]:
        def noted(series: Vectors) -> Vectors:
            seen.add((threading.get_ident(), torch.get_num_threads()))
            return embed(series)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for threads in (1, 3):
            patch.setenv("READBENCH_THREADS", str(threads))
            torch.set_num_threads(threads)
            encoder = fitted(build, batch=3, device="cpu")
            patch.setattr(encoder, "embed", noting(encoder.embed))
            found.append(encoder.encode(RAGGED).tobytes())
            assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert found[0] == found[1]
    assert {inside for _, inside in seen} == {1}
    assert len(seen) > 1


def half_precision_stays_close(build: Build) -> None:
    exact, rounded = fitted(build), fitted(build, dtype="bfloat16")
    vectors = exact.encode(RAGGED)
    error = np.linalg.norm(rounded.encode(RAGGED) - vectors, axis=1) / np.linalg.norm(vectors, axis=1)
    assert 0 < error.max() < 0.05
    assert exact.fingerprint() != rounded.fingerprint()


def a_gpu_gives_the_vectors_of_a_cpu(build: Build) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("torch sees no GPU")
    here, there = (fitted(build, device=device).encode(RAGGED) for device in ("cpu", "cuda"))
    assert np.linalg.norm(there - here, axis=1).max() < 0.02 * np.linalg.norm(here, axis=1).min()


def encoding_twice_gives_the_same_bytes(build: Build) -> None:
    assert fitted(build).encode(RAGGED).tobytes() == fitted(build).encode(RAGGED).tobytes()


def inputs_stay_as_they_were(build: Build) -> None:
    before = RAGGED.fingerprint()
    fitted(build).encode(RAGGED)
    assert RAGGED.fingerprint() == before


def it_travels_between_processes_without_its_network(build: Build) -> None:
    encoder = fitted(build)
    vectors = encoder.encode(RAGGED)
    travelled: FrozenEncoder = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(travelled.encode(RAGGED), vectors)
    assert travelled.fingerprint() == encoder.fingerprint()


def the_fingerprint_follows_what_shapes_a_vector(build: Build) -> None:
    own = fitted(build).fingerprint()
    assert own == fitted(build, device="cpu", metric="cosine").fingerprint()
    assert own != fitted(build, seed=1).fingerprint()
    assert own != fitted(build, pool="stats").fingerprint()
    assert own != build().fit(RAGGED[:5], RAGGED[:0]).fingerprint()


def labels_are_not_read(build: Build) -> None:
    other = replace(RAGGED, labels=np.roll(RAGGED.labels, 1))
    assert fitted(build).fingerprint() == build().fit(other, other[:0]).fingerprint()


def the_global_random_state_is_left_alone(build: Build) -> None:
    torch = pytest.importorskip("torch")
    encoder = fitted(build)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    encoder.encode(RAGGED[:1])
    assert torch.equal(torch.rand(3), expected)


def missing_values_are_refused(build: Build) -> None:
    with pytest.raises(NotFiniteError, match="ch0"):
        build(norm="none").encode(WindowSet.from_arrays([[[1.0, np.nan, 2.0]]]))


def scaling_by_the_corpus_needs_a_corpus(build: Build) -> None:
    with pytest.raises(UsageError, match="Fit the encoder first"):
        build().encode(RAGGED)


def no_windows_give_no_vectors(build: Build) -> None:
    assert len(fitted(build).encode(RAGGED[:0])) == 0


def damaged_weights_are_named(build: Build) -> None:
    encoder = fitted(build)
    for path in encoder.paths():
        path.write_bytes(b"{}")
    with pytest.raises(DataError, match=str(encoder.paths()[-1].parent)):
        encoder.encode(RAGGED)


FROZEN_CHECKS: tuple[Callable[[Build], None], ...] = (
    ragged_windows_get_vectors_of_one_width,
    constant_channels_and_single_steps_give_finite_vectors,
    the_order_of_windows_changes_nothing,
    the_order_of_channels_changes_nothing_under_mean_pooling,
    a_window_is_the_mean_of_its_channels,
    the_size_of_a_batch_changes_nothing,
    windows_of_many_channels_are_encoded_in_parts,
    the_number_of_threads_changes_no_byte,
    half_precision_stays_close,
    a_gpu_gives_the_vectors_of_a_cpu,
    encoding_twice_gives_the_same_bytes,
    inputs_stay_as_they_were,
    it_travels_between_processes_without_its_network,
    the_fingerprint_follows_what_shapes_a_vector,
    labels_are_not_read,
    the_global_random_state_is_left_alone,
    missing_values_are_refused,
    scaling_by_the_corpus_needs_a_corpus,
    no_windows_give_no_vectors,
    damaged_weights_are_named,
)


def fitted(build: Build, **parameters: Any) -> FrozenEncoder:  # noqa: ANN401 - parameters of any encoder
    """An encoder that knows the statistics of `RAGGED`."""
    return build(**parameters).fit(RAGGED, RAGGED[:0])
