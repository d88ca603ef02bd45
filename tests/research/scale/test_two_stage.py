"""A shortlist misses what it misses; seeds change nothing but the time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.common.progress import SILENT
from readbench.engine.abilities import Hits
from readbench.engine.ranking import rank
from readbench.engine.retrievers import DtwDependent, DtwIndependent, EmbeddingRetriever
from readbench.engine.testing import sample_windows
from readbench.errors import MethodError, ParameterError, UsageError
from research.scale import measuring as two_stage
from research.scale.measuring import ScaleCell, measure_two_stage, recall
from research.scale.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World("sim_tanks", 10, tmp_path_factory.mktemp("cache"))
    made.build((600,), 1, lambda *_: None)
    return made


@pytest.mark.parametrize("method", [DtwIndependent, DtwDependent])
@pytest.mark.parametrize("ragged", [False, True])
def test_the_best_of_candidates_score_as_in_the_whole(
    method: type[DtwIndependent | DtwDependent],
    ragged: bool,  # noqa: FBT001
) -> None:
    corpus, queries = sample_windows(300, ragged=ragged), sample_windows(7, ragged=ragged, seed=1)
    fitted = method().fit(corpus, corpus[:0])
    rng = np.random.default_rng(0)
    candidates = np.stack([rng.permutation(300)[:80] for _ in range(7)])
    scores = fitted.score(queries)
    masked = np.full_like(scores, -np.inf)
    np.put_along_axis(masked, candidates, np.take_along_axis(scores, candidates, axis=1), axis=1)
    top = rank(masked, 20)
    hits = fitted.among(queries, candidates, 20)
    np.testing.assert_array_equal(hits.indices, top)
    np.testing.assert_array_equal(hits.scores, np.take_along_axis(scores, top, axis=1))


def test_equally_near_candidates_keep_corpus_order() -> None:
    corpus = sample_windows(8)[[0, 1, 0, 1, 0, 1]]
    hits = DtwIndependent().fit(corpus, corpus[:0]).among(corpus[:1], [[4, 5, 2, 0]], 4)
    assert hits.indices.tolist() == [[0, 2, 4, 5]]


def test_candidates_must_be_places_in_the_corpus() -> None:
    corpus = sample_windows(8)
    with pytest.raises(ParameterError, match="positions below 8"):
        DtwIndependent().fit(corpus, corpus[:0]).among(corpus[:1], [[8]], 1)


def test_recall_counts_what_both_found() -> None:
    def hits(rows: list[list[int]]) -> Hits:
        return Hits(np.array(rows), np.zeros((len(rows), len(rows[0])), np.float32))

    assert recall(hits([[1, 2, 3, 4]]), hits([[2, 1, 9, 8]]), 2) == 1.0
    assert recall(hits([[1, 2, 3, 4], [5, 6, 7, 8]]), hits([[2, 1, 9, 8], [0, 1, 2, 5]]), 4) == (0.5 + 0.25) / 2


def test_longer_shortlists_find_more_and_the_whole_finds_all(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_stage, "SHORTLISTS", (50, 200, 599, 600))
    found = measure_two_stage(ScaleCell(world, 600, "raw+nr", tmp_path), SILENT)
    assert [one.shortlist for one in found] == [50, 200, 599]
    recalls = [one.recall_10 for one in found]
    assert recalls == sorted(recalls)
    assert recalls[0] < 1
    assert recalls[-1] > 0.98
    assert found[-1].ndcg == pytest.approx(found[-1].exact_ndcg, abs=0.02)
    assert found[0].saved_in_all < found[0].saved < 1


def test_an_encoder_is_asked_for(world: World, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes an encoder"):
        measure_two_stage(ScaleCell(world, 600, "euclidean", tmp_path), SILENT)


def test_a_seeded_search_that_finds_something_else_is_an_error(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = DtwIndependent.search

    def wrong(self: DtwIndependent, *given: object, **named: object) -> Hits:
        hits = plain(self, *given, **named)  # type: ignore[arg-type]
        return Hits(hits.indices + 1, hits.scores) if "seeds" in named else hits

    monkeypatch.setattr(DtwIndependent, "search", wrong)
    with pytest.raises(MethodError, match="with seeds"):
        measure_two_stage(ScaleCell(world, 600, "raw", tmp_path), SILENT)


def test_hits_of_an_encoder_seed_an_exact_search_to_the_bit(world: World) -> None:
    material = world.open(600)
    from readbench.engine.encoders import Raw  # noqa: PLC0415

    near = EmbeddingRetriever(Raw(), (), None).fit(material.corpus, material.normals).search(material.queries, 100)
    warping = DtwIndependent().fit(material.corpus, material.normals)
    plain, seeded = warping.search(material.queries, 20), warping.search(material.queries, 20, seeds=near.indices)
    np.testing.assert_array_equal(seeded.indices, plain.indices)
    np.testing.assert_array_equal(seeded.scores, plain.scores)
