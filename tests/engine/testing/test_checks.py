"""Each check of rerankers and encoders fails for an implementation that breaks its rule, and passes an honest one."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.abilities import GivesOpinion, Pretrained
from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Metric, Pool, Scores, Vectors
from readbench.engine.registry import ENCODERS, RERANKERS
from readbench.engine.rerankers import LabelModel, Opinion, Verdict
from readbench.engine.testing import _encoders as of_encoders, _rerankers as of_rerankers
from readbench.engine.windows import WindowSet
from readbench.testing import ENCODER_CHECKS, RERANKER_CHECKS, EncoderCheck, RerankerCheck


class Honest:
    """Puts candidates of the class of the first labelled hit first."""

    uses_labels = True

    def __init__(self, pool: Annotated[int, ParameterRange(1)] = 20) -> None:
        self.pool = pool

    @property
    def depth(self) -> int | None:
        return self.pool

    def rerank(self, pool: Pool) -> Scores:
        scores = np.array(pool.scores, np.float32)
        for query, labels in enumerate(pool.labels):
            known = labels[labels >= 0]
            if len(known):
                scores[query] += 100.0 * (labels == known[0])
        return scores


class TooFew(Honest):
    def rerank(self, pool: Pool) -> Scores:
        return super().rerank(pool)[:, :-1]


class DividesBySpread(Honest):
    def rerank(self, pool: Pool) -> Scores:
        with np.errstate(all="ignore"):
            spread = pool.scores.std(axis=1, keepdims=True) if pool.scores.shape[1] > 1 else np.float32(1)
            return (super().rerank(pool) / spread).astype(np.float32)


class WritesIntoThePool(Honest):
    def rerank(self, pool: Pool) -> Scores:
        pool.scores[...] = 0
        return super().rerank(pool)


class ComparesQueries(Honest):
    def rerank(self, pool: Pool) -> Scores:
        scores = super().rerank(pool)
        return (scores * np.arange(1, len(scores) + 1)[:, None]).astype(np.float32)


class RollsDice(Honest):
    def rerank(self, pool: Pool) -> Scores:
        noise = 1e-3 * np.random.default_rng().random(pool.scores.shape)
        return (super().rerank(pool) + noise).astype(np.float32)


class ReadsLabelsInSecret(Honest):
    uses_labels = False


class ShufflesWithoutLabels(Honest):
    def rerank(self, pool: Pool) -> Scores:
        return super().rerank(pool) if pool.labelled.any() else -pool.scores


class PoolsAllLabels(Honest):
    def rerank(self, pool: Pool) -> Scores:
        scores = np.array(pool.scores, np.float32)
        known = pool.labels[pool.labelled]
        return scores + 100.0 * (pool.labels == np.bincount(known).argmax()) if len(known) else scores


class CountsWithLabels(Honest):
    def rerank(self, pool: Pool) -> Scores:
        return np.where(pool.labelled.any(axis=1, keepdims=True), pool.labels, pool.scores).astype(np.float32)


class DeafToItsPool(Honest):
    @property
    def depth(self) -> int:
        return 20


class BoastsOfOpinions(Honest):
    declares = (GivesOpinion,)


class Exaggerated(LabelModel):
    power = 1.5

    def opinions(self, ruled_out: NDArray[np.bool_] | None = None) -> list[Opinion]:
        own = [(opinion, opinion.posterior**self.power) for opinion in super().opinions(ruled_out)]
        return [replace(opinion, posterior=raised / raised.sum()) for opinion, raised in own]


class TooModest(Exaggerated):
    power = 0.66


class TooSure(Verdict):
    """Learns as it should and says more than it knows."""

    declares = (GivesOpinion,)
    lessons: type[Exaggerated] = Exaggerated

    def learn(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None = None,
        assets: NDArray[np.int64] | None = None,
    ) -> LabelModel | None:
        lesson = super().learn(items, labels, groups, rejected, assets)
        return self.lessons(lesson.fitted, lesson.queries) if lesson else None


class TooShy(TooSure):
    """Says less than it knows."""

    declares = (GivesOpinion,)
    lessons = TooModest


class CannotTravel(Honest):
    def __init__(self, pool: Annotated[int, ParameterRange(1)] = 20) -> None:
        super().__init__(pool)
        self.local = lambda: pool


BROKEN_RERANKERS: list[tuple[type[Any], RerankerCheck]] = [
    (TooFew, of_rerankers.every_candidate_gets_a_score),
    (DividesBySpread, of_rerankers.candidates_all_alike_do_not_break_it),
    (WritesIntoThePool, of_rerankers.the_pool_stays_as_it_was),
    (ComparesQueries, of_rerankers.one_query_is_a_batch),
    (RollsDice, of_rerankers.results_repeat),
    (ReadsLabelsInSecret, of_rerankers.labels_are_read_only_where_declared),
    (ShufflesWithoutLabels, of_rerankers.without_labels_the_base_order_stays),
    (PoolsAllLabels, of_rerankers.labels_of_other_queries_are_not_read),
    (CountsWithLabels, of_rerankers.names_of_classes_do_not_matter),
    (DeafToItsPool, of_rerankers.its_pool_can_be_widened),
    (BoastsOfOpinions, of_rerankers.declared_abilities_are_there),
    (TooSure, of_rerankers.stated_probabilities_hold),
    (CannotTravel, of_rerankers.it_travels_between_processes),
]


class Faithful:
    """Mean, deviation and largest value, less the corpus's mean."""

    metric: Metric = "euclidean"
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        self.mean_ = np.float32(np.mean([w.values.mean() for w in corpus]))
        return self

    def encode(self, windows: WindowSet) -> Vectors:
        facts = [[w.values.mean() - self.mean_, w.values.std(), w.values.max()] for w in windows]
        return np.array(facts, np.float32).reshape(-1, 3)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.mean_.tobytes()).hexdigest()


class AsLongAsTheWindow(Faithful):
    def encode(self, windows: WindowSet) -> Vectors:
        return np.zeros((len(windows), int(windows.lengths.max())), np.float32)


class NeedsTwoWindows(Faithful):
    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        super().fit(corpus, normals)
        self.mean_ = self.mean_ if len(corpus) > 1 else np.float32(np.nan)
        return self


class NeedsMovement(Faithful):
    def encode(self, windows: WindowSet) -> Vectors:
        vectors = super().encode(windows)
        with np.errstate(all="ignore"):
            return vectors / vectors[:, 1:2]


class CentresTheBatch(Faithful):
    def encode(self, windows: WindowSet) -> Vectors:
        vectors = super().encode(windows)
        return (vectors - vectors.mean(axis=0)).astype(np.float32)


class RandomWeights(Faithful):
    def encode(self, windows: WindowSet) -> Vectors:
        return super().encode(windows) * np.float32(np.random.default_rng().random())


class OneNameForAll(Faithful):
    def fingerprint(self) -> str:
        return "mine"


class WritesIntoWindows(Faithful):
    def encode(self, windows: WindowSet) -> Vectors:
        windows.values(0)[0, 0] += 1
        return super().encode(windows)


class LearnsFromLabels(Faithful):
    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        super().fit(corpus, normals)
        self.mean_ = np.float32(corpus.labels[0])
        return self


class DeniesItsCorpus(Faithful):
    corpus_dependent = False


class ForgetsItsWeights(Faithful):
    declares = (Pretrained,)
    fits = 0

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        self.fits += 1
        return super().fit(corpus, normals)

    def weights_fingerprint(self) -> str:
        return f"weights after {self.fits} fits"


class PromisesWeights(Faithful):
    declares = (Pretrained,)


class StaysHere(Faithful):
    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        super().fit(corpus, normals)
        self.local = lambda: corpus
        return self


BROKEN_ENCODERS: list[tuple[type[Faithful], EncoderCheck]] = [
    (AsLongAsTheWindow, of_encoders.vectors_have_one_length),
    (NeedsTwoWindows, of_encoders.one_channel_and_one_window_are_enough),
    (NeedsMovement, of_encoders.constant_channels_do_not_break_it),
    (CentresTheBatch, of_encoders.one_window_is_a_batch),
    (RandomWeights, of_encoders.results_repeat),
    (OneNameForAll, of_encoders.other_vectors_have_another_fingerprint),
    (WritesIntoWindows, of_encoders.inputs_stay_as_they_were),
    (LearnsFromLabels, of_encoders.labels_are_not_read),
    (DeniesItsCorpus, of_encoders.corpus_dependence_is_declared),
    (ForgetsItsWeights, of_encoders.weights_are_known_before_fitting),
    (PromisesWeights, of_encoders.declared_abilities_are_there),
    (StaysHere, of_encoders.it_travels_between_processes),
]
CAUGHT = (AssertionError, AttributeError, pickle.PicklingError)
Register = Callable[[type[Any]], str]


@pytest.fixture
def reranker() -> Iterator[Register]:
    def register(factory: type[Any]) -> str:
        RERANKERS.register("under-test", family="test", abilities=vars(factory).get("declares", ()))(factory)
        return "under-test"

    yield register
    RERANKERS._entries.pop("under-test", None)


@pytest.fixture
def encoder() -> Iterator[Register]:
    def register(factory: type[Any]) -> str:
        ENCODERS.register("under-test", family="test", abilities=vars(factory).get("declares", ()))(factory)
        return "under-test"

    yield register
    ENCODERS._entries.pop("under-test", None)


@pytest.mark.parametrize("check", RERANKER_CHECKS, ids=lambda check: check.__name__)
def test_an_honest_reranker_passes(reranker: Register, check: RerankerCheck) -> None:
    check(reranker(Honest))


@pytest.mark.parametrize(("factory", "check"), BROKEN_RERANKERS, ids=lambda part: part.__name__)
def test_a_broken_reranker_is_caught(reranker: Register, factory: type[Any], check: RerankerCheck) -> None:
    name = reranker(factory)
    with pytest.raises(CAUGHT):
        check(name)


def test_probabilities_that_say_too_little_are_caught_too(reranker: Register) -> None:
    name = reranker(TooShy)
    with pytest.raises(AssertionError, match=r"expected calibration error 0\.0[6-9]|0\.1"):
        of_rerankers.stated_probabilities_hold(name)


@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
def test_a_faithful_encoder_passes(encoder: Register, check: EncoderCheck) -> None:
    check(encoder(Faithful))


@pytest.mark.parametrize(("factory", "check"), BROKEN_ENCODERS, ids=lambda part: part.__name__)
def test_a_broken_encoder_is_caught(encoder: Register, factory: type[Faithful], check: EncoderCheck) -> None:
    name = encoder(factory)
    with pytest.raises(CAUGHT):
        check(name)


def test_every_check_has_its_counterexample() -> None:
    assert [check for _, check in BROKEN_RERANKERS] == list(RERANKER_CHECKS)
    assert [check for _, check in BROKEN_ENCODERS] == list(ENCODER_CHECKS)
