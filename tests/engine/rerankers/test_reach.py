"""How far cases reach: against a slow version that inverts again, and what makes a window strange to a type."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.protocols import unit_vectors
from readbench.engine.rerankers._novelty import weigh_sign
from readbench.engine.rerankers._reach import MIN_VARIANCE, PENALTY, Reach
from tests.naive import reach as naive

Numbers = NDArray[np.intp]


def draw(seed: int, shape: str) -> tuple[NDArray[np.float64], Numbers, Numbers, Numbers]:
    """Likenesses of cases of three types in recordings, which are held out with their assets."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [14, 9, 1 if shape == "a type of one case" else 5])
    vectors = rng.standard_normal((len(codes), 12)) + 2 * np.eye(12)[codes]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = rng.integers(0, 9, len(codes))
    apart = groups // 2
    if shape == "recordings of one type":
        groups = codes * 10 + np.arange(len(codes)) % 3
        apart = groups
    if shape == "a type of one recording":
        groups[codes == 2], apart[codes == 2] = 20, 20
    return vectors @ vectors.T, codes, groups, apart


@pytest.mark.parametrize(
    "shape", ["mixed recordings", "recordings of one type", "a type of one recording", "a type of one case"]
)
def test_reach_is_that_of_inverting_again(shape: str) -> None:
    kernel, codes, groups, apart = draw(0, shape)
    found = Reach.of(kernel, codes, groups, apart)
    lists = codes.tolist(), groups.tolist(), apart.tolist()
    np.testing.assert_allclose(found.held_out, naive.held_out(kernel, lists[2], PENALTY, MIN_VARIANCE), atol=1e-9)
    slow = naive.forgotten(kernel, lists[0], lists[2], PENALTY, MIN_VARIANCE)
    np.testing.assert_allclose(found.forgotten, slow, atol=1e-9)
    np.testing.assert_allclose(
        found.by_type, naive.by_type(kernel, *lists, PENALTY, MIN_VARIANCE), rtol=1e-6, atol=1e-8
    )


def test_a_query_is_measured_as_the_cases_are() -> None:
    kernel, codes, groups, apart = draw(1, "recordings of one type")
    asked = kernel[:1, 1:]
    found = Reach.of(kernel[1:, 1:], codes[1:], groups[1:], apart[1:])
    whole, by_type = found.measure(asked)
    every = list(range(len(codes) - 1))
    assert whole[0] == pytest.approx(naive.unexplained(kernel[1:, 1:], asked[0], every, PENALTY, MIN_VARIANCE))
    assert by_type.shape == (1, 3)


def test_a_narrow_type_finds_strange_what_a_wide_one_does_not() -> None:
    rng = np.random.default_rng(2)
    centres, spread = np.eye(40)[:2] * 8, np.repeat([0.3, 2.0], 30)
    codes = np.repeat([0, 1], 30)
    groups = np.arange(60) // 3
    cases = unit_vectors((centres[codes] + spread[:, None] * rng.standard_normal((60, 40))).astype(np.float32))
    asked = unit_vectors((centres + rng.standard_normal((2, 40))).astype(np.float32))
    found = Reach.of((cases @ cases.T).astype(np.float64), codes, groups, groups)
    _, by_type = found.measure((asked @ cases.T).astype(np.float64))
    assert by_type[0, 0] > 3.0, "as far from a narrow type"
    assert by_type[1, 1] < 1.0, "as from a wide one"


def test_a_sign_is_worth_what_it_tells_and_groups_have_one_vote() -> None:
    codes = np.array([0, 0, 1, 1])
    groups, use = np.arange(4), np.ones(4, bool)
    known = np.zeros(4)
    assert weigh_sign(known, np.ones(4), codes, groups, use) == pytest.approx(0.5)
    assert weigh_sign(known, -np.ones(4), codes, groups, use) == 0.0
    assert weigh_sign(known, np.zeros(4), codes, groups, use) == 0.0
    assert weigh_sign(known, np.full(4, np.nan), codes, groups, use) == 0.0
    long = np.array([0, 0, 0, 0, 0, 1])  # five windows of one recording that show nothing, one of another that does
    codes, new = np.array([0] * 6 + [1]), np.array([-1.0] * 5 + [1.0, -1.0])
    one = weigh_sign(np.zeros(7), new, codes, np.append(long, 2), np.ones(7, bool))
    assert one == pytest.approx(max((0.5 + 0.0) / 2 - 0.5, 0.0))
