"""Opinions: coverage and false alarms on simulated groups, p-values by hand, new fault types in a toy archive."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.stats import binom

from readbench.common.calibration import auroc
from readbench.engine.protocols import View, unit_vectors
from readbench.engine.rerankers import sharpen
from readbench.engine.rerankers._opinion import (
    EXPONENTS,
    HeldOutValues,
    best_exponent,
    give_opinions,
    informative_cases,
    prediction_sets,
)
from readbench.engine.rerankers._ridge import FittedVerdict, fit_verdict

VALUES = st.lists(st.tuples(st.integers(0, 9).map(float), st.integers(0, 4)), min_size=1, max_size=30)


def naive_p(reference: list[tuple[float, int]], value: float) -> float:
    groups = sorted({group for _, group in reference})
    votes = 1.0
    for group in groups:
        own = [v for v, g in reference if g == group]
        votes += sum(v >= value for v in own) / len(own)
    return votes / (len(groups) + 1)


@given(VALUES, st.lists(st.integers(-1, 10).map(float), min_size=1, max_size=5))
def test_p_values_are_those_of_the_slow_version(reference: list[tuple[float, int]], asked: list[float]) -> None:
    values, groups = zip(*reference, strict=True)
    found = HeldOutValues.of(np.array(values), np.array(groups)).p_values(np.array(asked))
    np.testing.assert_allclose(found, [naive_p(reference, value) for value in asked], atol=1e-11)


def test_a_group_has_one_vote_however_many_cases_it_has() -> None:
    values, groups = np.array([0.0] * 98 + [5.0, 6.0]), np.array([0] * 98 + [1, 2])
    assert HeldOutValues.of(values, groups).p_values(np.array([4.0])) == pytest.approx(3 / 4)


def test_equal_p_values_are_equal_to_the_bit() -> None:
    reference = HeldOutValues.of(np.arange(9, dtype=np.float64), np.arange(9))
    assert reference.p_values(np.array([9.0, 8.5, 7.5])).tolist() == [0.1, 0.1, 0.2]


def grouped(rng: np.random.Generator, groups: int, size: int) -> NDArray[np.float64]:
    """(groups, size) values that resemble each other within a group."""
    return rng.standard_normal((groups, 1)) + 0.3 * rng.standard_normal((groups, size))


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_exchangeable_groups_are_covered_as_promised(alpha: float) -> None:
    """A new case of a new group has a p-value of at most alpha with that probability, and hardly less often."""
    rng, trials, groups = np.random.default_rng(0), 4000, 39
    missed = 0
    for _ in range(trials):
        values = grouped(rng, groups + 1, 6)
        sizes = rng.integers(1, 7, groups)
        kept = np.arange(6) < sizes[:, None]
        reference = HeldOutValues.of(values[1:][kept], np.repeat(np.arange(groups), sizes))
        missed += bool(reference.p_values(values[0, :1])[0] <= alpha)
    assert binom.ppf(1e-4, trials, alpha - 1 / (groups + 1)) <= missed <= binom.ppf(1 - 1e-4, trials, alpha)


def test_cases_taken_for_independent_would_break_the_promise() -> None:
    """Why groups vote: among few groups with many cases each, plain ranks of cases promise too much."""
    rng, trials, alpha = np.random.default_rng(1), 2000, 0.1
    alike, voting = 0, 0
    for _ in range(trials):
        values = grouped(rng, 5, 40)
        flat, owners = values[1:].ravel(), np.repeat(np.arange(4), 40)
        asked = values[0, :1]
        alike += bool(HeldOutValues.of(flat, np.arange(160)).p_values(asked)[0] <= alpha)
        voting += bool(HeldOutValues.of(flat, owners).p_values(asked)[0] <= alpha)
    limit = binom.ppf(1 - 1e-4, trials, alpha)
    assert voting <= limit < alike


def test_too_few_groups_rule_nothing_out() -> None:
    surprise = HeldOutValues.of(np.zeros(8), np.arange(8))
    assert prediction_sets(np.array([[0.99, 0.01]]), surprise, 0.1).all()
    assert prediction_sets(np.array([[0.99, 0.01]]), surprise, 0.12).tolist() == [[True, False]]


def test_the_most_likely_type_is_never_ruled_out() -> None:
    surprise = HeldOutValues.of(np.zeros(99), np.arange(99))
    assert prediction_sets(np.array([[0.3, 0.4, 0.3]]), surprise, 0.1).tolist() == [[False, True, False]]


def spoken(rng: np.random.Generator, cases: int, exponent: float) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Posteriors of three classes, off by an exponent, and classes drawn as the right posteriors say."""
    right = rng.dirichlet([0.5, 0.5, 0.5], cases)
    drawn = (rng.random((cases, 1)) > right.cumsum(axis=1)).sum(axis=1)
    return sharpen(right, 1.0 / exponent), drawn


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_posteriors_are_brought_back_to_what_cases_say(exponent: float) -> None:
    held_out, codes = spoken(np.random.default_rng(0), 4000, exponent)
    assert best_exponent(held_out, codes, np.arange(4000)) == pytest.approx(exponent, rel=0.1)


def test_the_exponent_is_that_of_a_search_by_hand_with_one_vote_a_group() -> None:
    rng = np.random.default_rng(1)
    held_out, codes = spoken(rng, 60, 1.5)
    groups = rng.integers(0, 7, 60)
    losses = []
    for exponent in EXPONENTS:
        votes = []
        for group in range(7):
            own = [
                p[c] ** exponent / sum(p**exponent)
                for p, c, g in zip(held_out, codes, groups, strict=True)
                if g == group
            ]
            votes.append(sum(-np.log(own)) / len(own))
        losses.append(sum(votes) / len(votes))
    assert best_exponent(held_out, codes, groups) == EXPONENTS[int(np.argmin(losses))]


def test_a_long_recording_does_not_decide_how_certain_to_be() -> None:
    """One recording of 900 cases is always right, thirty of one case are right as often as stated."""
    held_out = np.tile([0.7, 0.3], (930, 1))
    codes = np.array([0] * 900 + [0] * 21 + [1] * 9)
    groups = np.array([0] * 900 + list(range(1, 31)))
    assert best_exponent(held_out, codes, groups) < 1.3
    assert best_exponent(held_out, codes, np.arange(930)) > 3


def test_sharpening_keeps_order_and_sum_and_survives_zeros() -> None:
    posterior = np.array([[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]])
    for exponent in EXPONENTS:
        found = sharpen(posterior, exponent)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert (found.argmax(axis=1) == 0).all()
    np.testing.assert_allclose(sharpen(posterior, 1.0), posterior, atol=1e-12)


def test_cases_of_classes_with_several_groups_tell() -> None:
    codes = np.array([0, 0, 1, 1])
    assert informative_cases(codes, np.array([0, 1, 2, 2])).tolist() == [True, True, False, False]
    assert informative_cases(codes, np.array([0, 0, 2, 2])).all()


class Archive:
    """Fault types around centres of their own, several recordings each, and queries from recordings of their own."""

    WIDTH = 64

    def __init__(self, seed: int, *, classes: int = 6, recordings: int = 12, queries: int = 20) -> None:
        rng = np.random.default_rng(seed)
        self._centres = 0.8 * rng.standard_normal((classes, self.WIDTH))
        self.labels, self.groups, self.items = self._drawn(rng, classes, recordings, 4)
        self.asked, _, self.queries = self._drawn(rng, classes, queries, 1)

    def _drawn(
        self, rng: np.random.Generator, classes: int, recordings: int, windows: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float32]]:
        labels = np.repeat(np.arange(1, classes + 1), recordings)
        own = self._centres[labels - 1] + rng.standard_normal((len(labels), self.WIDTH))
        vectors = np.repeat(own, windows, axis=0) + 0.5 * rng.standard_normal((len(labels) * windows, self.WIDTH))
        groups = np.repeat(np.arange(len(labels)), windows)
        return np.repeat(labels, windows).astype(np.int32), groups, unit_vectors(vectors.astype(np.float32))

    def judgement(self, without: int = 0) -> FittedVerdict:
        kept = self.labels != without
        view = View(self.queries, self.items[kept])
        return fit_verdict((view,), np.arange(kept.sum()), self.labels[kept], self.groups[kept])


@pytest.fixture(scope="module")
def archive() -> Archive:
    return Archive(0)


def test_prediction_sets_cover_the_queries_of_new_recordings() -> None:
    hits, asked, sizes = 0, 0, []
    for seed in range(5):
        archive = Archive(seed)
        found = give_opinions(archive.judgement(), np.arange(len(archive.asked)), alpha=0.2)
        hits += sum(label in one.candidates for label, one in zip(archive.asked, found, strict=True))
        sizes += [len(one.candidates) for one in found]
        asked += len(found)
    assert hits >= binom.ppf(1e-3, asked, 0.8)
    assert np.mean(sizes) < 3


def test_opinions_are_consistent(archive: Archive) -> None:
    for one in give_opinions(archive.judgement(), np.arange(len(archive.asked))):
        assert one.posterior.sum() == pytest.approx(1.0)
        assert one.label == one.candidates[0]
        assert one.confidence == one.posterior.max()
        chances = [one.posterior[one.classes.tolist().index(label)] for label in one.candidates]
        assert chances == sorted(chances, reverse=True)
        assert 0 <= one.novelty < 1
        assert one.novel == (1 - one.novelty <= 0.05)


def test_a_stricter_level_never_takes_a_type_out_of_the_set(archive: Archive) -> None:
    queries = np.arange(len(archive.asked))
    loose, strict = (give_opinions(archive.judgement(), queries, alpha=alpha) for alpha in (0.3, 0.05))
    assert all(set(a.candidates) <= set(b.candidates) for a, b in zip(loose, strict, strict=True))


def test_queries_of_a_type_that_was_taken_out_are_the_strangest(archive: Archive) -> None:
    for label in range(1, 4):
        found = give_opinions(archive.judgement(without=label), np.arange(len(archive.asked)))
        strange = np.array([one.strangeness for one in found])
        novel = archive.asked == label
        assert auroc(strange[novel], strange[~novel]) > 0.85
        novelty = np.array([one.novelty for one in found])
        order = np.argsort(strange)
        assert (np.diff(novelty[order]) >= 0).all()


def test_known_types_are_called_novel_as_seldom_as_promised() -> None:
    alarms, asked = 0, 0
    for seed in range(5):
        archive = Archive(seed)
        found = give_opinions(archive.judgement(), np.arange(len(archive.asked)), false_alarms=0.1)
        alarms += sum(one.novel for one in found)
        asked += len(found)
    assert alarms <= binom.ppf(1 - 1e-3, asked, 0.1)


def test_one_known_type_still_tells_what_is_unlike_it(archive: Archive) -> None:
    kept = archive.labels == 1
    view = View(archive.queries, archive.items[kept])
    judgement = fit_verdict((view,), np.arange(kept.sum()), archive.labels[kept], archive.groups[kept])
    found = give_opinions(judgement, np.arange(len(archive.asked)))
    strange = np.array([one.strangeness for one in found])
    assert {one.candidates for one in found} == {(1,)}
    assert auroc(strange[archive.asked != 1], strange[archive.asked == 1]) > 0.9


def test_one_recording_cannot_call_anything_novel(archive: Archive) -> None:
    judgement = fit_verdict(
        (View(archive.queries, archive.items[:4]),), np.arange(4), archive.labels[:4], np.zeros(4, int)
    )
    assert not any(one.novel for one in give_opinions(judgement, np.arange(len(archive.asked))))
