"""Prometheus metrics of a library: number, duration and certainty of answers, and number of cases."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from readbench.cases import NORMAL_OPERATION, UNLIKE, Answer, Summary

MIN_PROBABILITY = 0.5
"""Smallest probability of a named fault."""
SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
BELIEF = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
MAX_LABELS = 200
"""Largest number of fault types with a separate metric, the most frequent, to bound the load on Prometheus."""


class LibraryMetrics:
    """Metrics of answers and cases.

    Args:
        registry: registry of the service.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.searches = Counter(
            "readbench_searches",
            "Windows that were answered, by what was said: a fault, unlike anything, normal operation, nothing clear,"
            " or that they cannot be judged.",
            ["said"],
            registry=registry,
        )
        self.seconds = Histogram("readbench_search_seconds", "Time of a search.", buckets=SECONDS, registry=registry)
        self.belief = Histogram(
            "readbench_belief", "Probability of the most likely option.", buckets=BELIEF, registry=registry
        )
        self.labels = Gauge(
            "readbench_cases_by_label", "Cases by fault; open ones without.", ["label"], registry=registry
        )
        self.normals = Gauge("readbench_normals", "Windows of normal operation.", registry=registry)
        self.change = Gauge("readbench_change", "Number of the last change of the library.", registry=registry)
        for said in ("fault", "unlike", "normal", "unclear", "not judged", "unlabelled"):
            self.searches.labels(said)

    def hear(self, answer: Answer, seconds: float) -> None:
        """Count an answer."""
        self.searches.labels(classify(answer)).inc()
        self.seconds.observe(seconds)
        if answer.faults:
            self.belief.observe(answer.faults[0].probability)

    def count(self, held: Summary) -> None:
        """Set the number of cases."""
        self.normals.set(held.normals)
        self.change.set(held.change)
        self.labels.clear()
        frequent = sorted(held.labels.items(), key=lambda item: -item[1])[:MAX_LABELS]
        for label, count in frequent:
            self.labels.labels(label).set(count)


def classify(answer: Answer) -> str:
    """Kind of an answer, in one word."""
    if not answer.faults:
        return "unlabelled"
    if not answer.judgeable:
        return "not judged"
    best = answer.faults[0]
    if best.probability < MIN_PROBABILITY:
        return "unclear"
    return {UNLIKE: "unlike", NORMAL_OPERATION: "normal"}.get(best.label, "fault")
