"""Networks that somebody brings as a file."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from readbench.engine.encoders import Charm, Onnx, Program
from readbench.engine.encoders._programs import FileEncoder
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, MethodError
from readbench.testing import sample_windows
from tests.engine.encoders.checkpoints import write_onnx, write_program

RAGGED = sample_windows(9, channels=4, length=90, ragged=True)


@pytest.fixture(params=["onnx", "program"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> FileEncoder:
    if request.param == "onnx":
        pytest.importorskip("onnxruntime")
        return Onnx(str(write_onnx(tmp_path)), batch=4)
    pytest.importorskip("torch")
    return Program(str(write_program(tmp_path)), batch=4, device="cpu")


def test_windows_of_any_shape_get_vectors(encoder: FileEncoder) -> None:
    with pytest.raises(MethodError, match="first"):
        encoder.encode(RAGGED)
    vectors = encoder.fit(RAGGED, RAGGED[:0]).encode(RAGGED)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.unique(vectors.round(5), axis=0).shape[0] == 9
    alone = np.concatenate([encoder.encode(RAGGED[[i]]) for i in range(9)])
    np.testing.assert_allclose(alone, vectors, rtol=1e-5, atol=1e-6)
    turned = WindowSet.from_arrays(
        [w.values[::-1] for w in RAGGED], channels=[tuple(reversed(w.channels)) for w in RAGGED]
    )
    np.testing.assert_allclose(encoder.encode(turned), vectors, rtol=1e-5, atol=1e-6)
    assert len(encoder.encode(RAGGED[:0])) == 0
    travelled: FileEncoder = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(travelled.encode(RAGGED), vectors)
    assert travelled.fingerprint() == encoder.fingerprint()


def test_a_damaged_or_foreign_file_is_named(encoder: FileEncoder, tmp_path: Path) -> None:
    encoder.fit(RAGGED, RAGGED[:0])
    encoder.path().write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=f"{tmp_path}.* cannot be run by {encoder.name}"):
        encoder.encode(RAGGED)
    with pytest.raises(DataError, match="finds no"):
        type(encoder)(str(tmp_path / "nowhere.bin")).fit(RAGGED, RAGGED[:0])
    with pytest.raises(DataError, match=f"{encoder.name} needs a file"):
        type(encoder)().fit(RAGGED, RAGGED[:0])


def test_the_fingerprint_follows_the_file_and_the_grid(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    first, other = (Onnx(str(write_onnx(tmp_path / str(seed), seed))) for seed in (0, 1))
    own = first.fit(RAGGED, RAGGED[:0]).fingerprint()
    assert own != other.fit(RAGGED, RAGGED[:0]).fingerprint()
    assert own != Onnx(first.weights, length=40).fit(RAGGED, RAGGED[:0]).fingerprint()
    assert own == Onnx(str(first.path()), batch=1).fit(RAGGED, RAGGED[:0]).fingerprint()


def test_a_network_may_read_the_names_of_channels(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    values = sample_windows(4, channels=2, length=40)
    renamed = WindowSet.from_arrays([w.values for w in values], channels=("pressure", "flow"))
    named, plain = (
        Program(str(write_program(tmp_path / str(named), named=named)), norm="none", device="cpu")
        for named in (True, False)
    )
    one, other = (named.fit(own, own[:0]).encode(own) for own in (values, renamed))
    assert not np.allclose(one, other)
    one, other = (plain.fit(own, own[:0]).encode(own) for own in (values, renamed))
    np.testing.assert_array_equal(one, other)


def test_they_are_part_of_methods(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    spec = Method(f"onnx({write_onnx(tmp_path) / 'network.onnx'})|dtw-i").spec
    assert "onnx" in str(spec)


def test_charm_without_weights_says_that_none_are_public() -> None:
    with pytest.raises(DataError, match=r"charm needs weights, which are not public.*charm\(FILE\)"):
        Charm().fit(RAGGED, RAGGED[:0])


def test_charm_of_another_width_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    right = Charm(str(write_program(tmp_path, name="charm") / "charm.pt2"), device="cpu")
    assert right.fit(RAGGED, RAGGED[:0]).encode(RAGGED).shape == (9, 384)
    wrong = Charm(str(write_program(tmp_path / "wrong", width=100, name="charm")), device="cpu")
    with pytest.raises(DataError, match=r"must give \(B, 384\)"):
        wrong.fit(RAGGED, RAGGED[:0]).encode(RAGGED)
