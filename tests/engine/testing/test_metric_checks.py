"""Each check of metrics fails for one that breaks its rule, and passes an honest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark import testing as of_metrics
from readbench.benchmark.metrics import Judgement
from readbench.engine.registry import METRICS
from readbench.errors import MethodError
from readbench.testing import METRIC_CHECKS, MetricCheck

Floats = NDArray[np.float64]
Register = Callable[..., None]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers a metric as `Mine` for one test."""

    def under_its_name(compute: Callable[..., Any], **declared: Any) -> None:  # noqa: ANN401
        METRICS.register("Mine", **({"depth": 20} | declared))(compute)

    yield under_its_name
    METRICS._entries.pop("mine", None)


def missed(judged: Judgement) -> Floats:
    """Share of places without a relevant item."""
    return 1.0 - judged.hits.mean(axis=1)


def found(judged: Judgement) -> Floats:
    """Share of places with a relevant item."""
    return 1.0 - missed(judged)


def counted(judged: Judgement) -> Floats:
    """How many places have a relevant item."""
    return judged.hits.sum(axis=1).astype(np.float64)


def recalled(judged: Judgement) -> Floats:
    """Relevant items of the list over those of the corpus."""
    with np.errstate(all="ignore"):
        return judged.hits.sum(axis=1) / judged.relevant


def numbered(judged: Judgement) -> Floats:
    """More for later queries."""
    return found(judged) * np.arange(len(judged)) / len(judged)


def labelled(judged: Judgement) -> Floats:
    """More for faults with large numbers."""
    return found(judged) * judged.query_labels / (1 + np.abs(judged.query_labels).max())


def erased(judged: Judgement) -> Floats:
    """Forgets the labels on the way."""
    share = found(judged)
    judged.labels[...] = 0
    return share


def constant(judged: Judgement) -> Floats:
    """The same for all."""
    return np.full(len(judged), 0.5)


def half(judged: Judgement) -> Floats:
    """Not what random lists reach."""
    return np.full(len(judged), 0.5)


def wordless(judged: Judgement) -> Floats:
    return found(judged)


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("metric", "upwards"), [(found, True), (missed, False)])
def test_an_honest_metric_passes(
    register: Register, check: MetricCheck, metric: Callable[..., Any], *, upwards: bool
) -> None:
    register(metric, larger_is_better=upwards)
    check("Mine")


@pytest.mark.parametrize(
    ("check", "metric", "declared"),
    [
        (of_metrics.values_stay_within_the_bounds, counted, {}),
        (of_metrics.perfect_lists_are_the_best, missed, {}),
        (of_metrics.perfect_lists_are_the_best, constant, {}),
        (of_metrics.queries_without_anything_relevant_have_a_value, recalled, {}),
        (of_metrics.order_of_queries_does_not_matter, numbered, {}),
        (of_metrics.names_of_faults_do_not_matter, labelled, {}),
        (of_metrics.lists_stay_as_they_were, erased, {}),
        (of_metrics.chance_is_what_random_lists_reach, found, {"chance": half}),
        (of_metrics.it_says_what_it_is, wordless, {}),
    ],
)
def test_a_broken_rule_is_found(
    register: Register, check: MetricCheck, metric: Callable[..., Any], declared: dict[str, Any]
) -> None:
    register(metric, **declared)
    with pytest.raises((AssertionError, MethodError)):
        check("Mine")
