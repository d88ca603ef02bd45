"""Threads never change a bit: neither those of matrix products, nor those that ask a method side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, Self

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from readbench.engine.method import FittedMethod, Knowledge, Method
from readbench.engine.protocols import Scores
from readbench.engine.retrievers._sbd import IndependentShapeBased
from readbench.engine.testing import sample_windows
from readbench.engine.windows import UNLABELLED, WindowSet

METHODS = ("departure", "rocket+nr", "euclidean+verdict", "rocket|ws|departure+verdict(views=pooled)")


def answer(method: str, corpus: WindowSet, queries: WindowSet, threads: int) -> tuple[bytes, list[float]]:
    with threadpool_limits(threads):
        ranking = Method(method).fit(corpus, corpus[corpus.labels == 0]).rank(queries)
    return ranking.scores.tobytes(), [opinion.strangeness for opinion in ranking.opinions or ()]


@pytest.mark.parametrize("method", METHODS)
def test_threads_of_products_do_not_change_a_bit(method: str) -> None:
    corpus, queries = (sample_windows(n, channels=8, befores=0.8, seed=n) for n in (300, 64))
    assert answer(method, corpus, queries, 1) == answer(method, corpus, queries, 2)


class Slow:
    """A retriever that, while it is fitted, waits for another thread to fit it too."""

    uses_labels = False
    corpus_dependent = False
    fits: list[int]

    def __init__(self) -> None:
        self.fits = []
        self.second = Event()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002 - part of the protocol
        self.fits.append(len(corpus))
        if len(self.fits) > 1:
            self.second.set()
        self.second.wait(1)
        self.size = len(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        return np.zeros((len(queries), self.size), np.float32)


def test_of_several_threads_that_need_a_fitted_leg_one_fits_it() -> None:
    slow = Slow()
    fitted = Method(slow).fit(sample_windows(12))
    with ThreadPoolExecutor(4) as team:
        list(team.map(lambda _: fitted.prepare(), range(4)))
    assert slow.fits == [12]


class Interrupted(FittedMethod):
    """Another thread asks with other labels right after each lesson is kept."""

    others: Knowledge

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_learned" and value[0] != self.others.key:  # type: ignore[index]
            self.lesson(self.others)


def test_a_lesson_is_of_the_labels_that_were_asked_for() -> None:
    corpus = sample_windows(24)
    fitted, known = Method("rocket(features=84)+verdict").fit(corpus), Knowledge(corpus.labels)
    expected = fitted.lesson(known)
    few = Knowledge(np.where(np.arange(24) < 9, corpus.labels, UNLABELLED).astype(np.int32))
    fitted.lesson(few)
    Interrupted.others = few
    fitted.__class__ = Interrupted
    found = fitted.lesson(known)
    assert found is not None
    assert expected is not None
    np.testing.assert_array_equal(found.cases, expected.cases)


class Overtaken(IndependentShapeBased):
    """Another thread asks with longer queries right after the spectra for these are kept."""

    longer = 0

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_spectra" and value is not None and self.longer:
            longer, self.longer = self.longer, 0
            self._corpus(longer)
            self.longer = longer


def test_spectra_are_of_the_length_that_was_asked_for() -> None:
    corpus, queries = sample_windows(12), sample_windows(4, seed=1)
    expected = IndependentShapeBased().fit(corpus, corpus[:0]).score(queries)
    overtaken = Overtaken().fit(corpus, corpus[:0])
    overtaken.longer = 400
    np.testing.assert_array_equal(overtaken.score(queries), expected)
