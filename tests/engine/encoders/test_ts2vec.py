from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.encoders import TS2Vec, _ts2vec as contrast, _ts2vec as module
from readbench.engine.encoders._ts2vec import Weights, hierarchical_loss, initial_weights, represent
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, NotFiniteError
from readbench.testing import sample_windows

torch = pytest.importorskip("torch")

RAGGED = sample_windows(9, channels=4, length=40, ragged=True)


def fitted(corpus: WindowSet = RAGGED, steps: int = 2, seed: int = 0, norm: str = "channel") -> TS2Vec:
    return TS2Vec(steps=steps, seed=seed, norm=norm).fit(corpus, corpus[:0])  # type: ignore[arg-type]


def naive_loss(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """The paper's formulas term by term, both views as anchors; (B, T, D)."""
    total, levels = 0.0, 0
    while True:
        count, length, _ = left.shape
        terms = []
        for own, other in ((left, right), (right, left)):
            for i in range(count):
                for t in range(length):
                    anchor, partner = own[i, t], anchor_exp(own[i, t], other[i, t])
                    steps = sum(anchor_exp(anchor, other[i, s]) for s in range(length))
                    steps += sum(anchor_exp(anchor, own[i, s]) for s in range(length) if s != t)
                    windows = sum(anchor_exp(anchor, other[j, t]) for j in range(count))
                    windows += sum(anchor_exp(anchor, own[j, t]) for j in range(count) if j != i)
                    terms.append(-np.log(partner / steps) - np.log(partner / windows))
        total, levels = total + float(np.mean(terms)), levels + 1
        if length == 1:
            return total / levels
        even = length // 2 * 2
        left, right = (v[:, :even].reshape(count, even // 2, 2, -1).max(axis=2) for v in (left, right))


def anchor_exp(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.exp(a @ b))


@pytest.mark.parametrize(("count", "length"), [(3, 8), (2, 5), (1, 4), (3, 1)])
def test_the_loss_is_the_formula_of_the_paper(count: int, length: int) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, count, length, 3))
    views = (torch.from_numpy(view.transpose(0, 2, 1).copy()) for view in (left, right))
    assert float(hierarchical_loss(*views)) == pytest.approx(naive_loss(left, right), rel=1e-9)


def test_training_finds_the_same_step_of_the_other_view_better() -> None:
    def loss(encoder: TS2Vec) -> float:
        rng = np.random.default_rng(5)
        weights = {name: torch.from_numpy(value) for name, value in encoder.weights_.items()}
        values = torch.from_numpy(encoder._inputs(RAGGED))
        return float(np.mean([hierarchical_loss(*contrast._views(weights, values, rng)) for _ in range(5)]))

    assert loss(fitted(steps=25)) < 0.8 * loss(fitted(steps=1))


def test_both_views_show_the_same_steps_of_a_window_where_they_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrast, "represent", lambda _, values, keep: values + 0 * keep)
    monkeypatch.setattr(contrast, "DROPOUT", 0.0)
    values = torch.arange(60.0).reshape(3, 1, 20)
    rng = np.random.default_rng(1)
    seen = [contrast._views({}, values, rng) for _ in range(50)]
    assert all(torch.equal(left, right) for left, right in seen)
    starts = [tuple((left[:, 0, 0] % 20).tolist()) for left, _ in seen]
    assert any(len(set(places)) > 1 for places in starts)  # windows of a batch are cut at places of their own


def test_what_encodes_is_the_mean_of_all_weights_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    trail: list[np.ndarray] = []

    class Watched(torch.optim.AdamW):  # type: ignore[name-defined,misc]  # torch is imported as a value here
        def step(self, closure: None = None) -> None:
            super().step(closure)
            trail.append(self.param_groups[0]["params"][0].detach().numpy().copy())

    monkeypatch.setattr(torch.optim, "AdamW", Watched)
    start = initial_weights(4, 0)
    values = np.random.default_rng(0).standard_normal((9, 4, 30)).astype(np.float32)
    found = contrast.train(start, lambda rows: values[rows], windows=9, steps=3, batch=8, seed=0, device="cpu")
    expected = np.mean([start["input.weight"], *trail], axis=0)
    assert len(trail) == 3
    np.testing.assert_allclose(found["input.weight"], expected, rtol=1e-5, atol=1e-7)


def test_a_masked_step_hides_its_readings() -> None:
    weights = {name: torch.from_numpy(value) for name, value in initial_weights(2, 0).items()}
    values = torch.randn(1, 2, 20, generator=torch.Generator().manual_seed(0))
    keep = torch.ones(1, 1, 20)
    keep[..., 7] = 0
    changed = values.clone()
    changed[..., 7] += 5
    assert torch.equal(represent(weights, values, keep), represent(weights, changed, keep))
    assert not torch.allclose(represent(weights, values), represent(weights, changed))


def test_vectors_are_finite_and_differ() -> None:
    vectors = fitted().encode(RAGGED)
    assert vectors.shape == (9, 320)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.unique(vectors.round(5), axis=0).shape[0] == 9


@pytest.mark.parametrize(
    "corpus",
    [
        sample_windows(1),
        sample_windows(3, channels=1, length=2),
        WindowSet.from_arrays(list(np.full((4, 2, 20), 3.0))),
        WindowSet.from_arrays([[[1.0]], [[2.0]]]),
    ],
    ids=["one window", "two steps", "constant", "one step"],
)
def test_a_poor_corpus_is_enough(corpus: WindowSet) -> None:
    assert np.isfinite(fitted(corpus).encode(corpus)).all()


def test_a_wild_reading_does_not_break_the_training() -> None:
    values = [w.values.copy() for w in sample_windows(8, length=24)]
    values[3][0, 5] = 1e30
    windows = WindowSet.from_arrays(values)
    assert np.isfinite(fitted(windows, steps=5, norm="none").encode(windows)).all()


def test_windows_unlike_the_corpus_are_encoded() -> None:
    encoder = fitted()
    others = sample_windows(4, channels=6, length=77, ragged=True, seed=1)
    assert np.isfinite(encoder.encode(others)).all()
    assert encoder.encode(RAGGED[:0]).shape[0] == 0


def test_channels_are_matched_by_name() -> None:
    encoder = fitted()
    turned = WindowSet.from_arrays(
        [w.values[::-1] for w in RAGGED], channels=[tuple(reversed(w.channels)) for w in RAGGED]
    )
    np.testing.assert_allclose(encoder.encode(turned), encoder.encode(RAGGED), rtol=1e-5, atol=1e-6)


def test_the_order_of_windows_changes_nothing() -> None:
    encoder = fitted()
    together = encoder.encode(RAGGED)
    np.testing.assert_allclose(encoder.encode(RAGGED[::-1])[::-1], together, rtol=1e-5, atol=1e-6)
    alone = np.concatenate([encoder.encode(RAGGED[[i]]) for i in range(9)])
    np.testing.assert_allclose(alone, together, rtol=1e-5, atol=1e-6)


def test_training_twice_gives_the_same_bytes_whatever_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / str(threads)))
        encoder = fitted()
        results.append((encoder.fingerprint(), encoder.encode(RAGGED).tobytes()))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert results[0] == results[1]


def count_trainings(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Training is replaced by a note of its options."""
    calls: list[dict[str, object]] = []

    def train(weights: Weights, _: object, **options: object) -> Weights:
        calls.append(options)
        return weights

    monkeypatch.setattr(module, "train", train)
    return calls


def test_what_was_trained_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    calls = count_trainings(monkeypatch)
    first = fitted()
    relabelled = replace(RAGGED, labels=np.roll(RAGGED.labels, 1), ids=RAGGED.groups)
    assert fitted(relabelled).fingerprint() == first.fingerprint()
    assert len(calls) == 1
    for other in (fitted(seed=1), fitted(RAGGED[:8]), fitted(steps=3), fitted(norm="window")):
        assert len(other.encode(RAGGED)) == 9
    assert len(calls) == 5
    assert [path.suffix for path in tmp_path.rglob("*.partial")] == []


def test_damaged_weights_are_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    calls = count_trainings(monkeypatch)
    first = fitted()
    (path,) = (tmp_path / "models" / "ts2vec").glob("*.npz")
    path.write_bytes(path.read_bytes()[:-200])
    assert fitted().fingerprint() == first.fingerprint()
    assert len(calls) == 2


def test_a_small_corpus_gets_fewer_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path))
    calls = count_trainings(monkeypatch)
    for windows in (sample_windows(4), sample_windows(80, channels=2, length=700)):
        TS2Vec().fit(windows, windows[:0])
    assert [call["steps"] for call in calls] == [200, 600]


def test_it_travels_between_processes() -> None:
    encoder = fitted()
    travelled: TS2Vec = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(travelled.encode(RAGGED), encoder.encode(RAGGED))


def test_missing_values_are_refused() -> None:
    bad = WindowSet.from_arrays([[[1.0, np.nan, 2.0]]])
    with pytest.raises(NotFiniteError, match="ch0"):
        fitted(bad)
    with pytest.raises(NotFiniteError, match="ch0"):
        fitted().encode(bad)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(DataError, match="empty"):
        fitted(RAGGED[:0])
