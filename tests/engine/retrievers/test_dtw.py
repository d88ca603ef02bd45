"""DTW-I and DTW-D: the recursion, ragged windows, scaling, and what must not change a bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.kernels import dtw_corpus
from readbench.engine.kernels.dtw import LANES, radius
from readbench.engine.preparation import ChannelStats, Normalisation, Scaler
from readbench.engine.retrievers import DtwDependent, DtwIndependent
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import NotFiniteError, ParameterError
from readbench.testing import RETRIEVER_CHECKS, RetrieverCheck, sample_windows
from tests.naive import dtw as naive

Method = type[DtwIndependent] | type[DtwDependent]
METHODS = (DtwIndependent, DtwDependent)
TWINS = {DtwIndependent: naive.dtw_i, DtwDependent: naive.dtw_d}
both = pytest.mark.parametrize("method", METHODS)


def scores(method: Method, corpus: WindowSet, queries: WindowSet, **parameters: object) -> NDArray[np.float32]:
    return method(**parameters).fit(corpus, corpus[:0]).score(queries)  # type: ignore[arg-type]


def expected(method: Method, corpus: WindowSet, queries: WindowSet, band: float = 0.1) -> NDArray[np.float64]:
    """Distances by the twin, on the union of all channels."""
    axis = sorted({name for windows in (corpus, queries) for names in windows.channel_sets for name in names})
    left, right = ([naive.on_axis(w.values, w.channels, axis) for w in windows] for windows in (queries, corpus))
    return np.array([[TWINS[method](a, b, band) for b in right] for a in left])


def ragged(count: int, longest: int, seed: int, *, channels: str = "abc", shortest: int = 1) -> WindowSet:
    """Random walks of any length and any of the channels, in any order."""
    rng = np.random.default_rng(seed)
    values, names = [], []
    for _ in range(count):
        own = rng.permutation(list(channels))[: rng.integers(1, len(channels) + 1)]
        names.append(tuple(own.tolist()))
        values.append(rng.standard_normal((len(own), rng.integers(shortest, longest + 1))).cumsum(axis=1))
    return WindowSet.from_arrays(values, channels=names)


def rounding(corpus: WindowSet, queries: WindowSet) -> float:
    """The error that the kernels promise to stay below."""
    return (int(corpus.lengths.max()) + int(queries.lengths.max()) + 6 + 2) * 2.0**-24


@both
@pytest.mark.parametrize("band", [0.0, 0.1, 0.4, 1.0])
def test_windows_of_any_length_and_channels_are_compared_as_the_recursion_says(method: Method, band: float) -> None:
    corpus, queries = ragged(LANES + 3, 14, 0), ragged(4, 17, 1, channels="bcd")
    found = -scores(method, corpus, queries, norm="none", band=band)
    np.testing.assert_allclose(found, expected(method, corpus, queries, band), rtol=rounding(corpus, queries))


@both
@pytest.mark.parametrize("length", [1, 2, 3, 16, 25, 45])
def test_windows_of_one_length_are_compared_as_the_recursion_says(method: Method, length: int) -> None:
    values = np.random.default_rng(length).standard_normal((9, 2, length)).cumsum(axis=2)
    corpus, queries = WindowSet.from_arrays(values[:6]), WindowSet.from_arrays(values[6:])
    found = -scores(method, corpus, queries, norm="none")
    np.testing.assert_allclose(found, expected(method, corpus, queries), rtol=rounding(corpus, queries))


@both
@pytest.mark.parametrize(("scale", "offset"), [(0.0, 3.0), (1e-12, 0.0), (1.0, 1e6), (1e15, 0.0)])
def test_constant_tiny_and_distant_values_are_no_exception(method: Method, scale: float, offset: float) -> None:
    values = np.random.default_rng(0).standard_normal((8, 2, 20)) * scale + offset
    corpus, queries = WindowSet.from_arrays(values[:5]), WindowSet.from_arrays(values[5:])
    found = -scores(method, corpus, queries, norm="none")
    np.testing.assert_allclose(found, expected(method, corpus, queries), rtol=rounding(corpus, queries))


@both
def test_what_float32_cannot_hold_is_still_a_finite_score(method: Method) -> None:
    values = np.full((3, 1, 8), 3e38) * np.array([1, -1, 0.5])[:, None, None]
    windows = WindowSet.from_arrays(values)
    found = scores(method, windows, windows, norm="none")
    assert np.isfinite(found).all()
    assert found.argmax(axis=1).tolist() == [0, 1, 2]


@both
@pytest.mark.parametrize("norm", ["channel", "window", "normals"])
def test_windows_are_scaled_before_they_are_padded(method: Method, norm: Normalisation) -> None:
    corpus, queries = sample_windows(8, length=12, ragged=True), sample_windows(3, length=12, ragged=True, seed=1)
    left, right = (Scaler.of(norm, corpus, corpus[:5])(w) for w in (queries, corpus))
    found = -method(norm=norm).fit(corpus, corpus[:5]).score(queries)
    np.testing.assert_allclose(found, expected(method, right, left), rtol=1e-5, atol=1e-5)


@both
def test_channels_can_be_matched_by_position(method: Method) -> None:
    corpus, queries = ragged(5, 9, 0), ragged(3, 9, 1)
    found = scores(method, corpus, queries, norm="none", align="position")
    unnamed = [WindowSet.from_arrays([w.values for w in windows]) for windows in (corpus, queries)]
    np.testing.assert_array_equal(found, scores(method, *unnamed, norm="none"))


@both
def test_a_window_is_at_no_distance_from_itself(method: Method) -> None:
    corpus = sample_windows(5, length=50, ragged=True)
    np.testing.assert_array_equal(np.diag(scores(method, corpus, corpus)), 0)


def test_one_path_for_all_channels_costs_at_least_as_much_as_one_for_each() -> None:
    corpus, queries = sample_windows(40), sample_windows(3, seed=1)
    assert (scores(DtwDependent, corpus, queries) <= scores(DtwIndependent, corpus, queries)).all()


@both
def test_neighbours_in_memory_change_nothing(method: Method) -> None:
    """Bits do not depend on the other windows, their order, or the buffers that hold them."""
    corpus, queries = ragged(2 * LANES + 5, 20, 0), ragged(3, 20, 1)
    whole = scores(method, corpus, queries, norm="none")
    order = np.random.default_rng(0).permutation(len(corpus))
    pieces = concatenate([corpus[order[:7]].compact(), corpus[order[7:100]].compact(), corpus[order[100:]].compact()])
    axis_first = concatenate([corpus, pieces])  # the same channel axis
    np.testing.assert_array_equal(scores(method, axis_first, queries, norm="none")[:, len(corpus) :], whole[:, order])


@both
def test_streaming_and_threads_change_nothing(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = ragged(5 * LANES, 20, 0), ragged(3, 20, 1)
    monkeypatch.setenv("READBENCH_THREADS", "1")
    whole = scores(method, corpus, queries, norm="window")
    monkeypatch.setattr(dtw_corpus, "BLOCK_BYTES", 2 * LANES * 20 * 3 * 4)
    monkeypatch.setenv("READBENCH_KEPT_MB", "0")
    monkeypatch.setenv("READBENCH_THREADS", "3")
    np.testing.assert_array_equal(scores(method, corpus, queries, norm="window"), whole)


@both
def test_scoring_twice_from_kept_tiles_gives_the_same(method: Method) -> None:
    corpus, queries = sample_windows(20), sample_windows(4, seed=1)
    fitted = method().fit(corpus, corpus[:0])
    first = fitted.score(queries)
    fitted.score(queries[:2])
    np.testing.assert_array_equal(fitted.score(queries), first)


@both
def test_missing_values_are_refused_where_they_are_read(method: Method) -> None:
    values = np.zeros((3, 2, 8))
    values[1, 0, 7] = np.nan
    bad, good = WindowSet.from_arrays(values), WindowSet.from_arrays(values[:1])
    for corpus, queries in ((bad, good), (good, bad)):
        with pytest.raises(NotFiniteError, match="Window 1 holds nan in channel 'ch0' at step 7"):
            scores(method, corpus, queries, norm="none")


def test_a_channel_that_only_the_query_has_counts_where_it_can_be_scaled() -> None:
    corpus = WindowSet.from_arrays([[[0.0, 1.0]]], channels=("level",))
    query = WindowSet.from_arrays([[[0.0, 1.0], [3.0, 4.0]]], channels=("level", "flow"))
    assert scores(DtwIndependent, corpus, query, norm="none").tolist() == [[-25.0]]
    assert scores(DtwIndependent, corpus, query, norm="channel").tolist() == [[0.0]]
    known = corpus.with_stats(ChannelStats.of(query))
    assert scores(DtwIndependent, known, query, norm="channel")[0, 0] < -1


def test_the_band_rounds_as_python_does_and_leaves_room_for_a_path() -> None:
    pairs = [(left, right) for left in range(1, 60) for right in range(1, 60)]
    assert [radius(*pair, 0.1) for pair in pairs] == [naive.radius(*pair, 0.1) for pair in pairs]


def test_normals_are_asked_for_where_there_are_none() -> None:
    corpus = sample_windows(4)
    with pytest.raises(ParameterError, match="norm=normals needs normal windows"):
        DtwIndependent(norm="normals").fit(corpus, corpus[:0])


def test_an_empty_side_gives_an_empty_matrix() -> None:
    corpus = sample_windows(4)
    assert scores(DtwIndependent, corpus, corpus[:0]).shape == (0, 4)
    assert scores(DtwDependent, corpus[:0], corpus, norm="none").shape == (4, 0)


@pytest.mark.parametrize("threads", ["0", "many", "-2"])
def test_a_senseless_number_of_threads_is_refused(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_THREADS", threads)
    with pytest.raises(ParameterError, match="READBENCH_THREADS must be a whole number"):
        scores(DtwIndependent, sample_windows(4), sample_windows(1))


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("text", ["dtw-i(norm=window)", "dtw-d(align=position)", "dtw-d(norm=none, band=0.3)"])
def test_the_contract_is_kept_with_other_parameters(text: str, check: RetrieverCheck) -> None:
    check(text)


@both
@pytest.mark.filterwarnings("ignore:.*unsafe cast")
def test_aeon_agrees(method: Method) -> None:
    """Its band is a share of the length, rounded down: half a step more makes it ours."""
    aeon = pytest.importorskip("aeon.distances", reason="needs the extra `bench`")
    walks = np.random.default_rng(0).standard_normal((33, 2, 100)).cumsum(axis=2)
    left, right = walks[:3], walks[3:]
    found = -scores(method, WindowSet.from_arrays(right), WindowSet.from_arrays(left), norm="none")
    parts = [slice(0, 2)] if method is DtwDependent else [slice(0, 1), slice(1, 2)]
    pairs = [[np.ascontiguousarray(side[:, part]) for side in (left, right)] for part in parts]
    theirs = sum(aeon.dtw_pairwise_distance(*pair, window=10.5 / 100) for pair in pairs)
    np.testing.assert_allclose(found, theirs, rtol=1e-5)
    np.testing.assert_array_equal(found.argsort(axis=1, kind="stable"), theirs.argsort(axis=1, kind="stable"))
