"""Adding and relabelling cases gives what a new fit gives."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from readbench.encoders import unit
from readbench.errors import UsageError
from readbench.rerank import View
from readbench.rerank import ridge as fitting
from readbench.rerank.growing import Growing, ridge_at
from readbench.rerank.ridge import Ridge, fit_ridge
from readbench.rerank.verdict import judged

EXACT = 1e-9


class Library:
    """Three fault types in two views, the second of which is mostly noise; recordings of three cases."""

    def __init__(self, seed: int, cases: int = 60) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(1, 4, cases).astype(np.int32)
        self.groups = np.arange(cases) // 3
        centres = rng.standard_normal((4, 8))
        strengths = (1.0, 0.1)
        self.items = [
            unit((s * centres[self.labels] + rng.standard_normal((cases, 8))).astype(np.float32)) for s in strengths
        ]

    def growing(self, known: int) -> Growing:
        """The first cases of the library, learned from scratch."""
        views = tuple(View(own[:0], own) for own in self.items)
        return Growing(judged(views, np.arange(known), self.labels, self.groups))

    def added(self, growing: Growing, case: int) -> None:
        vectors = [self.items[v][case] for v in growing.chosen]
        growing.add(vectors, int(self.labels[case]), int(self.groups[case]))

    def fitted(self, growing: Growing, monkeypatch: pytest.MonkeyPatch) -> Ridge:
        """All cases learned from scratch, with the views and the penalty of the growing ones."""
        monkeypatch.setattr(fitting, "PENALTIES", (growing.penalty,))
        kernel = np.mean([self.items[v].astype(np.float64) @ self.items[v].T for v in growing.chosen], axis=0)
        return fit_ridge(kernel, growing.labels, growing.groups)


def assert_same(one: Ridge, two: Ridge) -> None:
    assert one.classes.tolist() == two.classes.tolist()
    assert (one.penalty, one.temperature) == (two.penalty, two.temperature)
    assert one.loss == pytest.approx(two.loss, abs=EXACT)
    np.testing.assert_allclose(one.held_out, two.held_out, atol=EXACT)
    np.testing.assert_allclose(one.dual, two.dual, atol=EXACT)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(fitting.PENALTIES))
def test_one_penalty_is_fitted_as_among_several(seed: int, penalty: float) -> None:
    library = Library(seed, cases=24)
    kernel = library.items[0].astype(np.float64) @ library.items[0].T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "PENALTIES", (penalty,))
        expected = fit_ridge(kernel, library.labels, library.groups)
    assert_same(ridge_at(kernel, library.labels, library.groups, penalty), expected)


def test_cases_added_one_by_one_teach_what_a_new_fit_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(0)
    growing = library.growing(known=50)
    for case in range(50, 60):
        library.added(growing, case)
    assert growing.labels.tolist() == library.labels.tolist()
    assert_same(growing.ridge(), library.fitted(growing, monkeypatch))


def test_relabelled_cases_teach_what_a_new_fit_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(1)
    growing = library.growing(known=60)
    before = growing.ridge()
    growing.relabel(7, 9)
    growing.relabel(8, 1 + int(library.labels[8] == 1))
    after = growing.ridge()
    assert after.classes.tolist() == [1, 2, 3, 9]
    assert before.classes.tolist() == [1, 2, 3]
    assert_same(after, library.fitted(growing, monkeypatch))


def test_the_library_s_own_labels_are_not_written_to() -> None:
    library = Library(2)
    before = library.labels.copy()
    library.growing(known=60).relabel(0, 9)
    assert (library.labels == before).all()


def test_a_choice_is_stale_after_a_tenth_has_changed() -> None:
    growing = Library(3).growing(known=50)
    for case in range(5):
        growing.relabel(case, 1)
        assert not growing.stale
    growing.relabel(5, 1)
    assert growing.stale


def test_one_fault_type_is_certain() -> None:
    ridge = ridge_at(np.eye(3), np.full(3, 2, np.int32), np.arange(3), 0.1)
    assert ridge.posterior(np.eye(3)).tolist() == [[1.0]] * 3


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    library = Library(4)
    growing = library.growing(known=30)
    with pytest.raises(UsageError, match="numbered from 0"):
        growing.relabel(30, 1)
    with pytest.raises(UsageError, match="a vector for each"):
        growing.add([], 1, 1)
    with pytest.raises(UsageError, match="no kernel"):
        ridge_at(-5.0 * np.eye(4), np.array([1, 1, 2, 2], np.int32), np.arange(4), 0.1)
    assert len(growing.labels) == 30
    assert not growing.stale
