"""DTW on a GPU against the kernels of the CPU; runs where torch finds a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.kernels import dtw_cuda
from readbench.engine.kernels.dtw_cuda import STEP, WIDEST, Band, bands
from readbench.engine.retrievers import DtwDependent, DtwIndependent
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from readbench.testing import sample_windows

FORMS = (DtwIndependent, DtwDependent)
torch = pytest.importorskip("torch", reason="device=cuda needs torch")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("form", FORMS)
def test_without_a_gpu_it_says_so(form: type[DtwIndependent | DtwDependent]) -> None:
    windows = sample_windows(5)
    with pytest.raises(UsageError, match="finds no CUDA GPU"):
        form(device="cuda").fit(windows, windows[:0]).score(windows)


def test_tiles_of_one_radius_need_no_check_and_others_share_few_kernels() -> None:
    radii = np.array([[3, 3], [3, 9], [26, 26], [10, 16], [26, 26]])
    found = {band: tiles.tolist() for band, tiles in bands(radii, joint=False)}
    assert found == {
        Band(3, checked=False, joint=False): [0],
        Band(26, checked=False, joint=False): [2, 4],
        Band(2 * STEP, checked=True, joint=False): [1, 3],
    }


def test_rows_that_fit_in_registers_stay_there() -> None:
    assert Band(26, checked=False, joint=False).settings["QUERIES"] == 2
    assert not Band(WIDEST, checked=False, joint=False).settings["WIDE"]
    assert Band(WIDEST + 1, checked=False, joint=False).settings["WIDE"]
    assert Band(26, checked=False, joint=True).settings["WIDE"]


@on_gpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("ragged", "length", "band"), [(True, 90, 0.1), (True, 60, 1.0), (False, 256, 0.1), (False, 1500, 0.1)]
)
def test_distances_equal_those_of_the_processor(
    form: type[DtwIndependent | DtwDependent], length: int, band: float, *, ragged: bool
) -> None:
    corpus = sample_windows(70, channels=3, length=length, ragged=ragged)
    queries = sample_windows(7, channels=4, length=length, ragged=ragged, seed=1)
    assert_same(form, corpus, queries, band)


@on_gpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_corpus_of_many_blocks_is_compared_whole(
    form: type[DtwIndependent | DtwDependent], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dtw_cuda, "BLOCK_BYTES", 100_000)
    monkeypatch.setattr(dtw_cuda, "KEPT_SHARE", share)
    assert_same(form, sample_windows(500, channels=3, ragged=True), sample_windows(7, channels=4, seed=1), 0.1)


@on_gpu
def test_a_search_that_was_broken_off_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtw_cuda, "BLOCK_BYTES", 50_000)
    corpus, queries = sample_windows(300, channels=2, length=64), sample_windows(4, channels=2, length=64, seed=1)
    there, scan = DtwIndependent(device="cuda").fit(corpus, corpus[:0]), dtw_cuda.CudaCorpus._scan
    scans = iter([True, False])

    def interrupted(self: dtw_cuda.CudaCorpus, *tiles: dtw_cuda.OnGpu) -> dtw_cuda.Floats:
        if not next(scans):
            raise KeyboardInterrupt
        return scan(self, *tiles)

    with monkeypatch.context() as patched:
        patched.setattr(dtw_cuda.CudaCorpus, "_scan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            there.score(queries)
    here = DtwIndependent().fit(corpus, corpus[:0])
    np.testing.assert_allclose(there.score(queries), here.score(queries), rtol=1e-4)


def assert_same(form: type[DtwIndependent | DtwDependent], corpus: WindowSet, queries: WindowSet, band: float) -> None:
    here, there = (form(band=band, device=device).fit(corpus, corpus[:0]) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there.score(queries), here.score(queries), rtol=1e-4)
    np.testing.assert_array_equal(there.search(queries, 5).indices, here.search(queries, 5).indices)
