"""Counters in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0)


class Metrics:
    """What one service counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "readbench_requests", "Requests by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "readbench_request_seconds", "Time to answer.", ["route"], buckets=BUCKETS, registry=self.registry
        )
        self.running = Gauge("readbench_running", "Requests being worked on or waiting.", registry=self.registry)
        self.cases = Gauge("readbench_cases", "Cases in the library.", registry=self.registry)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self.registry)
