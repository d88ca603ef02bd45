"""DTW top-k: what the full scan would find, for less."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.kernels import dtw_corpus, dtw_search
from readbench.engine.kernels.dtw import LANES, Tiles
from readbench.engine.kernels.dtw_corpus import TiledCorpus
from readbench.engine.kernels.dtw_search import Nearest, _range_of_points, bound, ranges
from readbench.engine.kernels.threads import Team
from readbench.engine.ranking import rank
from readbench.engine.retrievers import DtwIndependent
from readbench.engine.windows import WindowSet
from readbench.errors import ParameterError
from tests.engine.retrievers.test_dtw import METHODS, Method, both, ragged


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a few tiles, so that a small corpus has many of them, and lists of waiting windows that cost nothing."""
    monkeypatch.setattr(dtw_search, "MOST_TILES", dtw_search.FEWEST_TILES)
    monkeypatch.setattr(dtw_search, "WAITING_TILES", 2)
    monkeypatch.setattr(dtw_search, "QUERY_OPERATIONS", 0)


def groups(count: int, seed: int, *, spread: float = 0.3) -> WindowSet:
    """Noisy windows around eight shapes, far from each other."""
    rng = np.random.default_rng(seed)
    centres = 10 * np.random.default_rng(99).standard_normal((8, 2, 1)) + np.sin(np.arange(60) / 5)
    kind = rng.integers(0, 8, count)
    return WindowSet.from_arrays((centres[kind] + spread * rng.standard_normal((count, 2, 60))).astype(np.float32))


def assert_search_finds_the_top(
    method: Method, corpus: WindowSet, queries: WindowSet, k: int, **parameters: object
) -> None:
    fitted = method(**parameters).fit(corpus, corpus[:0])  # type: ignore[arg-type]
    scores, hits = fitted.score(queries), fitted.search(queries, k)
    top = rank(scores, k)
    np.testing.assert_array_equal(hits.indices, top)
    np.testing.assert_array_equal(hits.scores, np.take_along_axis(scores, top, axis=1))


@pytest.mark.usefixtures("small_steps")
@both
@pytest.mark.parametrize("k", [1, 7, LANES + 1, 10_000])
@pytest.mark.parametrize("queries", [1, 6])
def test_search_is_the_top_of_the_full_scan(method: Method, k: int, queries: int) -> None:
    assert_search_finds_the_top(method, groups(30 * LANES + 5, 0), groups(queries, 1), k, norm="none")


@pytest.mark.usefixtures("small_steps")
@both
def test_search_takes_windows_of_any_length_and_channels(method: Method) -> None:
    corpus, queries = ragged(20 * LANES, 40, 0, shortest=25), ragged(5, 44, 1, channels="bcd", shortest=25)
    assert_search_finds_the_top(method, corpus, queries, 9)


@pytest.mark.usefixtures("small_steps")
@both
def test_equally_near_windows_keep_corpus_order(method: Method) -> None:
    few = groups(40, 0)
    corpus = few[np.random.default_rng(0).integers(0, 40, 20 * LANES)]
    assert_search_finds_the_top(method, corpus, groups(5, 1), 50, norm="none")


@pytest.mark.usefixtures("small_steps")
@both
def test_equal_windows_keep_corpus_order_even_where_they_pass_by_in_another(method: Method) -> None:
    """The second window passes by last, because it names its channels in another order."""
    near, far = groups(1, 0).values(0), groups(1, 0).values(0) + 100
    count = 20 * LANES - 2
    values, names = [far] * count, [("a", "b")] * count
    values[1:4], values[-1] = [near[::-1], near, near], near
    names[1] = ("b", "a")
    corpus = WindowSet.from_arrays(values, channels=names)
    fitted = method(norm="none", band=0.4).fit(corpus, corpus[:0])
    for queries in (corpus[2:3], corpus[[2] * 6]):
        assert fitted.search(queries, 2).indices.tolist() == [[1, 2]] * len(queries)


@pytest.mark.usefixtures("small_steps")
@both
@pytest.mark.parametrize("channels", [2, 20])
def test_windows_that_bounds_cannot_tell_apart_are_compared_once(
    method: Method, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(0).standard_normal((20 * LANES + 5, channels, 40))
    corpus, queries = WindowSet.from_arrays(noise[5:]), WindowSet.from_arrays(noise[:5])
    assert_search_finds_the_top(method, corpus, queries, 5)
    fitted, counter = method().fit(corpus, corpus[:0]), Counter(monkeypatch)
    fitted.search(queries, 5)
    assert counter.pairs == len(queries) * len(corpus)


def test_a_small_corpus_is_compared_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, trying bounds would cost more than it may spare."""
    corpus = groups(8 * LANES, 0)
    fitted, counter = DtwIndependent().fit(corpus, corpus[:0]), Counter(monkeypatch)
    for queries in (1, 6):
        counter.scans = 0
        fitted.search(groups(queries, 1), 5)
        assert counter.scans == 1


@pytest.mark.usefixtures("small_steps")
@both
def test_streaming_and_threads_change_nothing(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = groups(20 * LANES, 0), groups(6, 1)
    monkeypatch.setenv("READBENCH_THREADS", "1")
    alone = method().fit(corpus, corpus[:0]).search(queries, 10)
    monkeypatch.setenv("READBENCH_THREADS", "3")
    monkeypatch.setenv("READBENCH_KEPT_MB", "0")
    monkeypatch.setattr(dtw_corpus, "BLOCK_BYTES", 7 * LANES * 60 * 2 * 4)
    together = method().fit(corpus, corpus[:0]).search(queries, 10)
    np.testing.assert_array_equal(together.indices, alone.indices)
    np.testing.assert_array_equal(together.scores, alone.scores)


@both
@pytest.mark.parametrize("count", [2, 6])
def test_bounds_stay_below_the_distances(method: Method, count: int) -> None:
    """In both directions (many queries) and in one (few)."""
    corpus, queries = ragged(3 * LANES, 40, 0, shortest=10), ragged(count, 44, 1, channels="bcd", shortest=10)
    fitted = method(norm="none").fit(corpus, corpus[:0])
    with Team(1) as team:
        asked, tiled = fitted._queries(queries), fitted._corpus()
        assert isinstance(tiled, TiledCorpus)
        for tiles in tiled.blocks(team):
            bounds = np.empty((count, tiles.items.size), np.float32)
            scratch, joint = ranges(asked, int(tiles.depth.max())), fitted._joint
            bound(asked, tiles, 0, len(tiles.start), joint, count > 4, 1, 0.1, scratch, bounds.reshape(-1))
            distances = tiled.scan(asked, tiles, team)
            assert (bounds <= distances * (1 + 1e-5)).all()
            assert np.median(bounds / distances) > 0.2


@pytest.mark.parametrize(
    ("depth", "length", "reach"), [(40, 40, 4), (200, 180, 70), (3, 90, 88), (64, 64, 1), (1, 1, 1)]
)
def test_ranges_are_those_of_the_points_in_reach(depth: int, length: int, reach: int) -> None:
    points = np.random.default_rng(0).standard_normal(length).astype(np.float32)
    upper, lower = np.empty((2, depth), np.float32)
    spare = np.full((2, 2 * (depth + length) + 3 + 2 * LANES), np.nan, np.float32)
    _range_of_points(points, depth, reach, upper, lower, *spare)
    near = [points[max(0, j - reach) : j + reach + 1] for j in range(1, depth)]
    assert upper.tolist() == [points[0], *(own.max(initial=-np.inf) for own in near)]
    assert lower.tolist() == [points[0], *(own.min(initial=np.inf) for own in near)]


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_the_nearest_are_those_of_a_full_sort(k: int) -> None:
    """With many ties, in portions, in any order, with places that are empty."""
    rng = np.random.default_rng(k)
    items = np.append(rng.permutation(60), np.full(5, -1))
    distances = rng.integers(0, 9, (3, 65)).astype(np.float32)
    nearest = Nearest(3, k)
    for part in np.split(np.arange(65), [1, 20, 64]):
        nearest.offer(np.array([0, 2]), items[part], np.ascontiguousarray(distances[::2, part]))
    found, near = nearest.rank()
    for query in (0, 2):
        order = np.lexsort((items[:60], distances[query, :60]))[:k]
        np.testing.assert_array_equal(found[query], items[order])
        np.testing.assert_array_equal(near[query], distances[query, order])
        assert nearest.within[query] == near[query, -1]
    assert np.isinf(near[1]).all()


class Counter:
    """Counts the pairs of query and lane that are compared, and in how many goes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs = self.scans = 0
        original = TiledCorpus.scan

        def scan(corpus: TiledCorpus, queries: Tiles, tiles: Tiles, team: Team) -> object:
            self.pairs += len(queries.start) * tiles.items.size
            self.scans += 1
            return original(corpus, queries, tiles, team)

        monkeypatch.setattr(TiledCorpus, "scan", scan)


@pytest.mark.usefixtures("small_steps")
@both
@pytest.mark.parametrize("queries", [1, 6])
def test_windows_of_other_shapes_are_hardly_compared(
    method: Method, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = groups(60 * LANES, 0)
    fitted = method(norm="none", band=1.0).fit(corpus, corpus[:0])
    counter = Counter(monkeypatch)
    fitted.search(groups(queries, 1), 5)
    assert counter.pairs < 0.4 * queries * len(corpus)


@pytest.mark.usefixtures("small_steps")
def test_seeds_spare_comparisons_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = groups(40 * LANES, 0), groups(6, 1)
    fitted = DtwIndependent(norm="none", band=0.4).fit(corpus, corpus[:0])
    counter = Counter(monkeypatch)
    plain = fitted.search(queries, 5)
    without, counter.pairs = counter.pairs, 0
    seeded = fitted.search(queries, 5, seeds=np.hstack([plain.indices[:, ::-1], np.full((6, 2), -1)]))
    assert counter.pairs < without
    np.testing.assert_array_equal(seeded.indices, plain.indices)
    np.testing.assert_array_equal(seeded.scores, plain.scores)


def test_seeds_that_are_few_repeated_or_far_do_no_harm() -> None:
    corpus, queries = groups(200, 0), groups(3, 1)
    fitted = DtwIndependent().fit(corpus, corpus[:0])
    plain = fitted.search(queries, 4)
    for seeds in ([[1]] * 3, plain.indices[:, [0] * 10], [list(range(50))] * 3, np.empty((3, 0), int)):
        np.testing.assert_array_equal(fitted.search(queries, 4, seeds=seeds).indices, plain.indices)


@pytest.mark.parametrize("seeds", [[[0, 8]] * 3, [[0]] * 2, [0, 1, 2], [[0.5]] * 3])
def test_seeds_must_be_places_in_the_corpus(seeds: object) -> None:
    corpus = groups(8, 0)
    with pytest.raises(ParameterError, match="seeds must be positions below 8"):
        DtwIndependent().fit(corpus, corpus[:0]).search(groups(3, 1), 2, seeds=seeds)  # type: ignore[arg-type]


@both
def test_values_beyond_float32_are_ranked_last(method: Method) -> None:
    values = np.zeros((3 * LANES, 1, 40))
    values[:5] = 3e38
    corpus = WindowSet.from_arrays(values)
    assert_search_finds_the_top(method, corpus, corpus[100:102], 3 * LANES, norm="none")


@both
def test_no_queries_and_no_corpus_find_nothing(method: Method) -> None:
    corpus = groups(8, 0)
    assert method().fit(corpus, corpus[:0]).search(corpus[:0], 3).indices.shape == (0, 3)
    assert method(norm="none").fit(corpus[:0], corpus[:0]).search(corpus, 3).scores.shape == (8, 0)


def test_at_least_one_place_is_filled() -> None:
    corpus = groups(8, 0)
    with pytest.raises(ParameterError, match="'k' parameter of search"):
        METHODS[0]().fit(corpus, corpus[:0]).search(corpus, 0)
