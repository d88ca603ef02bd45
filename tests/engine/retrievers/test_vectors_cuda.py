"""Vector search on a GPU gives what the CPU gives; its kernel runs on any device of torch, so also here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.abilities import Hits
from readbench.engine.devices import Device, device_of, use_exact_products
from readbench.engine.encoders import Raw, Sonde
from readbench.engine.encoders._sonde import Reference, Runtime
from readbench.engine.kernels import vectors_cuda
from readbench.engine.kernels.threads import Team
from readbench.engine.protocols import Metric
from readbench.engine.retrievers import EmbeddingRetriever, _embedding as embedding, _vector_search as vectors, top_k
from readbench.errors import NotFiniteError, ParameterError, UsageError
from readbench.testing import sample_windows
from tests.engine.retrievers.test_vectors import METRICS, sample

torch = pytest.importorskip("torch", reason="device=cuda needs torch")
Floats = NDArray[np.float32]
KINDS = ("plain", "ties", "nearly equal", "far from zero", "heavy tails", "all scales", "mostly zero")
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
DEVICES = ("cpu", pytest.param("cuda", marks=GPU))


def there(queries: Floats, corpus: Floats, k: int, metric: Metric, device: str) -> tuple[NDArray[np.int64], Floats]:
    """The kernel as `top_k` calls it."""
    centre = vectors._centre(corpus, metric)
    with Team(2) as team:
        return vectors_cuda.nearest(
            queries, corpus, centre, min(k, len(corpus)), cosine=metric == "cosine", device=device, team=team
        )


def assert_same(queries: Floats, corpus: Floats, k: int, metric: Metric, device: str) -> None:
    """Scores agree up to the last bit; positions wherever scores leave the order beyond doubt."""
    here, (items, scores) = top_k(queries, corpus, k, metric), there(queries, corpus, k, metric, device)
    np.testing.assert_allclose(scores, here.scores, rtol=1e-6, atol=1e-7)
    apart = np.abs(scores[:, :, None] - scores[:, None, :]) > 1e-6 * np.abs(scores[:, :, None])
    clear = apart.sum(axis=2) == scores.shape[1] - 1
    clear[:, -1] = False  # what is next to the last place is not seen
    np.testing.assert_array_equal(items[clear], here.indices[clear])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_cuda, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(vectors_cuda, "TILE_SCORES", 200)
    monkeypatch.setattr(vectors_cuda, "PAIR_NUMBERS", 300)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "items", "width"), [(1, 1, 1), (3, 33, 7), (11, 700, 64), (23, 100, 385)])
def test_hits_are_those_of_the_processor(
    metric: Metric, kind: str, device: str, count: int, items: int, width: int
) -> None:
    assert_same(sample(kind, (count, width), 1), sample(kind, (items, width), 2), 20, metric, device)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("metric", METRICS)
def test_equal_vectors_keep_corpus_order_through_all_blocks(metric: Metric, device: str) -> None:
    corpus = np.tile(sample("plain", (10, 50), 0), (50, 1))
    items, scores = there(corpus[3:5], corpus, 60, metric, device)
    assert items[0, :50].tolist() == list(range(3, 500, 10))
    assert items[1, :50].tolist() == list(range(4, 500, 10))
    assert (scores[0, :50] == scores[0, 0]).all()


@pytest.mark.parametrize("metric", METRICS)
def test_what_rounding_hides_from_the_first_look_is_found(metric: Metric) -> None:
    """Vectors that differ by less than a product in single precision can tell."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal(3000).astype(np.float32)
    corpus = base + (1e-6 * rng.standard_normal((400, 3000))).astype(np.float32)
    products = base @ corpus.T
    wrong = {int(i) for i in np.argsort(-products, kind="stable")[:5]}
    own = top_k(base[None], corpus, 5, metric)
    items, _ = there(base[None], corpus, 5, metric, "cpu")
    assert items.tolist() == own.indices.tolist()
    assert set(items[0].tolist()) != wrong


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("metric", METRICS)
def test_few_pairs_are_compared_twice(metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is of use: hardly more than the hits are looked at in double precision."""
    compared = 0
    compare = vectors_cuda._compare

    def counting(queries: vectors_cuda.Operand, block: vectors_cuda.Operand, items: Any, *, cosine: bool) -> Any:  # noqa: ANN401
        nonlocal compared
        compared += items.numel()
        return compare(queries, block, items, cosine=cosine)

    monkeypatch.setattr(vectors_cuda, "_compare", counting)
    monkeypatch.setattr(vectors_cuda, "BLOCK_BYTES", 2**20)
    there(sample("plain", (5, 64), 1), sample("plain", (20_000, 64), 2), 10, metric, "cpu")
    assert compared < 0.02 * 5 * 20_000


@pytest.mark.parametrize("device", DEVICES)
def test_a_corpus_on_disk_is_read_block_by_block(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_cuda, "BLOCK_BYTES", 4 * 32 * 30)
    corpus = sample("plain", (200, 32), 0)
    np.save(tmp_path / "corpus.npy", corpus)
    mapped = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    with Team(3) as team:
        blocks = [
            (start, part.cpu().numpy().copy()) for start, part in vectors_cuda.stream_blocks(mapped, device, team)
        ]
    assert [start for start, _ in blocks] == list(range(0, 200, 30))
    np.testing.assert_array_equal(np.concatenate([part for _, part in blocks]), corpus)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_cannot_be_compared_is_named(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_cuda, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(vectors, "pick_device", lambda *_: "cuda")
    kernel = vectors_cuda.nearest
    monkeypatch.setattr(vectors_cuda, "nearest", lambda *a, **o: kernel(*a, **(o | {"device": "cpu"})))
    corpus = np.ones((600, 3), np.float32)
    corpus[500, 1] = value
    with pytest.raises(NotFiniteError, match="Vector 500 of the corpus"):
        top_k(corpus[:2], corpus, 3, "cosine", device="cuda")
    corpus[500, 1] = 3e38
    with pytest.raises(ParameterError, match="Vector 500 of the corpus vectors is too large"):
        top_k(-corpus[500:501], corpus, 600, device="cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_auto_uses_the_processor() -> None:
    corpus = sample("plain", (20, 4), 0)
    with pytest.raises(UsageError, match=r"top_k\(device=cuda\) finds no CUDA GPU"):
        top_k(corpus[:1], corpus, 3, device="cuda")
    assert top_k(corpus[:1], corpus, 3, device="auto").indices[0, 0] == 0


def test_vectors_are_searched_where_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of(None) == "cpu"
    assert device_of(Sonde()) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of(Sonde(device="cuda")) == "cuda"


def test_a_method_searches_where_its_encoder_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spy(*arguments: Any, device: Device) -> Hits:  # noqa: ANN401 - those of `top_k`
        asked.append(device)
        return top_k(*arguments)

    monkeypatch.setattr(embedding, "top_k", spy)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    windows = sample_windows(6)
    gpu = OnGpu()
    for retriever in (EmbeddingRetriever(Raw()), EmbeddingRetriever(gpu, device=gpu)):
        retriever.fit(windows, windows[:0]).search(windows, 2)
    assert asked == ["cpu", "cuda"]


class OnGpu(Raw):
    """An encoder that says it runs on a GPU."""

    device = "cuda"


@GPU
@pytest.mark.parametrize("reference", ["none", "normals"])
def test_sonde_and_search_on_a_gpu_find_what_the_processor_finds(reference: Reference) -> None:
    corpus, queries, normals = sample_windows(300), sample_windows(9, seed=1), sample_windows(20, seed=2)
    encoders = (Sonde(device=device, reference=reference) for device in get_args(Runtime))
    here, there = (
        EmbeddingRetriever(encoder, device=encoder).fit(corpus, normals).search(queries, 5) for encoder in encoders
    )
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-4)
    assert (there.indices[:, 0] == here.indices[:, 0]).all()


def test_products_stay_whole_and_the_setting_comes_back() -> None:
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    with use_exact_products():
        assert settings.fp32_precision == "ieee"
    assert settings.fp32_precision == before
