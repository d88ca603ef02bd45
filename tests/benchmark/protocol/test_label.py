from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Protocol, windows_of
from readbench.benchmark.protocol._cut import (
    check_vocabulary,
    coverage_labels,
    fault_spans,
    majority_labels,
    merge_onsets,
)
from readbench.errors import DataError
from tests.benchmark.protocol.fakes import recording
from tests.naive import labels as naive

Rule = Callable[[NDArray[np.int32], NDArray[np.intp], int], NDArray[np.int32]]


@dataclass(frozen=True)
class Case:
    """Per-timestep labels and the windows over them."""

    labels: list[int]
    starts: list[int]
    length: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Stretches of few classes, so that halves, ties and interrupted faults are common; windows may overlap."""
    stretches = draw(st.lists(st.tuples(st.integers(-1, 3), st.integers(1, 5)), min_size=1, max_size=12))
    labels = [label for label, length in stretches for _ in range(length)]
    length = draw(st.integers(1, len(labels)))
    starts = draw(st.lists(st.integers(0, len(labels) - length), max_size=6))
    return Case(labels, starts, length)


NASTY = [
    Case([0, 0, 1, 1], [0], 4),  # exactly half
    Case([0, 1, 1, 1], [0], 4),
    Case([2, 2, 2, 0, 1, 1, 1, 0], [0], 8),  # a tie between faults
    Case([2, 2, 0, 0, 0, 1, 1, 0], [0], 8),
    Case([1, 0, 2, 2, 0, 0, 0, 0], [0], 8),  # the longer fault has the higher index
    Case([3, 0, 0, 3, 0, 0, 0, 0], [0], 8),  # half of its own extent
    Case([3, 0, 3, 0, 0, 0, 0, 0], [0], 8),  # two thirds of its own extent
    Case([0, 0, 0, 0, 0, 0, 0, 2], [0], 8),  # one step
    Case([2, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0], [4], 8),  # an occurrence outside the window
    Case([-1, -1, 1, 1], [0], 4),
    Case([-1, -1, 0, 1, 1, 1, 0, 0], [0], 8),
    Case([1], [0], 1),
    Case([], [], 4),
]


def run(rule: Rule, case: Case) -> list[int]:
    starts = np.array(case.starts, np.intp)
    result: list[int] = rule(np.array(case.labels, np.int32), starts, case.length).tolist()
    return result


def assert_majority(rule: Rule, case: Case) -> None:
    expected = [naive.by_majority(window) for window in naive.windows(case.labels, case.starts, case.length)]
    assert run(rule, case) == expected, case


def assert_coverage(rule: Rule, case: Case, least: Fraction = Fraction(0)) -> None:
    windows = naive.windows(case.labels, case.starts, case.length)
    assert run(rule, case) == [naive.by_coverage(window, least) for window in windows], case


def at_least(share: float) -> Rule:
    return lambda labels, starts, length: coverage_labels(labels, starts, length, share)


@given(cases())
def test_majority_agrees_with_the_naive_twin(case: Case) -> None:
    assert_majority(majority_labels, case)


@given(cases())
def test_coverage_agrees_with_equation_two(case: Case) -> None:
    assert_coverage(coverage_labels, case)


@given(cases(), st.integers(0, 100))
def test_coverage_with_a_least_share_agrees_with_the_naive_twin(case: Case, percent: int) -> None:
    assert_coverage(at_least(percent / 100), case, Fraction(percent, 100))


@pytest.mark.parametrize("case", NASTY, ids=str)
def test_the_twins_agree_on_nasty_windows(case: Case) -> None:
    assert_majority(majority_labels, case)
    assert_coverage(coverage_labels, case)


@given(cases())
def test_coverage_never_changes_a_window_that_a_majority_decides(case: Case) -> None:
    pairs = zip(run(majority_labels, case), run(coverage_labels, case), strict=True)
    assert all(covered == decided for decided, covered in pairs if decided != 0)


def assert_spans(case: Case, spans: list[list[int]], labels: list[int]) -> None:
    windows = naive.windows(case.labels, case.starts, case.length)
    assert spans == [list(naive.span(window, label)) for window, label in zip(windows, labels, strict=True)]


@given(cases())
def test_spans_reach_from_the_first_to_the_last_step_of_the_window_s_own_fault(case: Case) -> None:
    own = run(coverage_labels, case)
    series, starts = np.array(case.labels, np.int32), np.array(case.starts, np.intp)
    assert_spans(case, fault_spans(series, starts, case.length, np.array(own, np.int32)).tolist(), own)


def majority(*labels: int) -> int:
    return run(majority_labels, Case(list(labels), [0], len(labels)))[0]


def coverage(*labels: int, least: float = 0.0) -> int:
    return run(at_least(least), Case(list(labels), [0], len(labels)))[0]


def test_half_of_a_window_is_no_majority() -> None:
    assert majority(0, 0, 1, 1) == 0
    assert majority(0, 1, 1, 1) == 1
    assert majority(0, 0, 1, 1, 1) == 1


def test_two_faults_without_a_majority_leave_a_window_normal() -> None:
    assert majority(1, 1, 2, 2, 3) == 0


def test_one_faulty_timestep_labels_a_window_under_coverage() -> None:
    """The paper's rule read literally; `min_coverage` is the way to ask for more."""
    assert coverage(*[0] * 255, 3) == 3
    assert majority(*[0] * 255, 3) == 0
    assert coverage(*[0] * 255, 3, least=0.1) == 0


def test_a_fault_that_fills_half_of_its_own_extent_does_not_claim_the_window() -> None:
    assert coverage(3, 0, 0, 3, 0, 0, 0, 0, 0, 0) == 0
    assert coverage(3, 0, 3, 0, 0, 0, 0, 0, 0, 0) == 3


def test_the_extent_of_a_fault_ends_with_the_window() -> None:
    labels = [2, *[0] * 5, 2, 2, *[0] * 6]
    assert run(coverage_labels, Case(labels, [0, 4], 10)) == [0, 2]


def test_the_longer_of_two_short_faults_claims_the_window_and_a_tie_goes_to_the_lower_index() -> None:
    assert coverage(1, 0, 2, 2, 0, 0, 0, 0) == 2
    assert coverage(2, 2, 0, 1, 1, 0, 0, 0) == 1
    assert coverage(3, 0, 2, 0, 0, 0, 0, 0) == 2


def test_a_fault_claims_a_window_from_exactly_the_least_share() -> None:
    """Also where share times length is not exact in floating point, as 0.07 x 100."""
    for steps in range(1, 50):
        window = [1] * steps + [0] * (100 - steps)
        assert coverage(*window, least=steps / 100) == 1
        assert coverage(*window, least=(steps + 1) / 100) == 0


def test_a_window_half_unlabelled_is_unlabelled_by_either_rule() -> None:
    assert majority(-1, -1, 0, 0) == -1
    assert coverage(-1, -1, 0, 1) == -1
    assert coverage(-1, 0, 0, 1) == 1


@given(st.lists(st.sampled_from([-1, 0, 1, 2, 101, 102]), max_size=20))
def test_onset_codes_become_their_steady_fault_and_nothing_else_changes(labels: list[int]) -> None:
    before = np.array(labels, np.int32)
    merged = merge_onsets(before, ((101, 1), (102, 2)))
    assert merged.tolist() == [{101: 1, 102: 2}.get(label, label) for label in labels]
    assert before.tolist() == labels


def test_onset_and_steady_phase_reach_a_majority_together() -> None:
    series = recording([0, 101, 101, 1, 1, 0, 0])
    merged = windows_of(series, Protocol(length=7, onset_codes=((101, 1),)), ("normal", "leak"))
    assert merged is not None
    assert merged.labels.tolist() == [1]


@pytest.mark.parametrize("wrong", [3, 7, -2])
def test_a_label_outside_the_vocabulary_names_recording_and_step(wrong: int) -> None:
    series = recording([0, 1, 2, wrong, 9], name="plant-4")
    with pytest.raises(DataError, match=rf"plant-4.*label {wrong} at step 3.*0\.\.2"):
        windows_of(series, Protocol(length=2), ("normal", "leak", "stuck"))


def test_all_classes_and_unlabelled_are_in_the_vocabulary() -> None:
    check_vocabulary(np.array([-1, 0, 1, 2], np.int32), 3, "here")
    with pytest.raises(DataError, match="here"):
        check_vocabulary(np.array([-1, 0, 1, 2], np.int32), 2, "here")


def test_an_onset_code_that_nothing_merges_is_outside_the_vocabulary() -> None:
    with pytest.raises(DataError, match="label 101 at step 1"):
        windows_of(recording([0, 101]), Protocol(length=2), ("normal", "leak"))


# The rules, broken on purpose: the same checks must see it.


def one_by_one(decide: Callable[[list[int]], int]) -> Rule:
    def rule(labels: NDArray[np.int32], starts: NDArray[np.intp], length: int) -> NDArray[np.int32]:
        return np.array([decide(labels[s : s + length].tolist()) for s in starts], np.int32)

    return rule


def assert_caught(check: Callable[[Rule, Case], None], rule: Rule) -> None:
    caught = 0
    for case in NASTY:
        try:
            check(rule, case)
        except AssertionError:
            caught += 1
    assert caught, "no case told the broken rule from the right one"


def plurality(window: list[int]) -> int:
    return max(sorted(set(window)), key=window.count)


def half_is_enough(window: list[int]) -> int:
    return next((f for f in naive.faults(window) if 2 * window.count(f) >= len(window)), 0)


def unlabelled_is_normal(window: list[int]) -> int:
    return naive.by_majority([max(step, 0) for step in window])


@pytest.mark.parametrize("decide", [plurality, half_is_enough, unlabelled_is_normal])
def test_another_majority_is_caught(decide: Callable[[list[int]], int]) -> None:
    assert_caught(assert_majority, one_by_one(decide))


def any_fault(window: list[int]) -> int:
    return naive.by_majority(window) or next(iter(naive.faults(window)), 0)


def ties_to_the_higher_index(window: list[int]) -> int:
    mirrored = naive.by_coverage([10 - step if step > 0 else step for step in window])
    return 10 - mirrored if mirrored > 0 else mirrored


def lowest_index_first(window: list[int]) -> int:
    decided = naive.by_majority(window)
    claims = [f for f in naive.faults(window) if naive.by_coverage([f if s == f else min(s, 0) for s in window])]
    return decided or next(iter(claims), 0)


@pytest.mark.parametrize("decide", [naive.by_majority, any_fault, ties_to_the_higher_index, lowest_index_first])
def test_another_coverage_is_caught(decide: Callable[[list[int]], int]) -> None:
    assert_caught(assert_coverage, one_by_one(decide))


def test_an_extent_over_the_whole_recording_is_caught() -> None:
    def rule(labels: NDArray[np.int32], starts: NDArray[np.intp], length: int) -> NDArray[np.int32]:
        right = coverage_labels(labels, starts, length)
        for w, fault in enumerate(right):
            steps = np.flatnonzero(labels == fault)
            if fault > 0 and 2 * len(steps) <= steps[-1] - steps[0] + 1:
                right[w] = 0
        return right

    assert_caught(assert_coverage, rule)


def test_wrong_spans_are_caught() -> None:
    case = Case([0, 2, 2, 0, 2, 1], [0], 6)
    assert_spans(case, [[1, 5]], [2])
    for wrong in ([[1, 4]], [[1, 3]], [[0, 6]], [[0, 0]]):
        with pytest.raises(AssertionError):
            assert_spans(case, wrong, [2])


def test_a_rule_that_is_right_passes_unseen() -> None:
    with pytest.raises(AssertionError, match="no case"):
        assert_caught(assert_coverage, coverage_labels)
