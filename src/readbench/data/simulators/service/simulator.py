"""A simulated microservice system: a web shop as a network of queues, with seven kinds of injected fault.

`parameters` holds the call graph and what differs between shops, `disturbances` the load, everyday
events and faults, `network` the queues. This module measures and labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.base import RunBatch, Simulator, quantise
from readbench.data.simulators.service.disturbances import disturb
from readbench.data.simulators.service.network import run_network
from readbench.data.simulators.service.parameters import SERVICES, STEP_S, Array, deployments
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.registry import SOURCES

METRICS = (
    Channel("cpu", "%", "processor utilisation, mean over replicas"),
    Channel("memory", "MB", "resident memory, mean over replicas"),
    Channel("latency", "ms", "mean response time seen by callers"),
    Channel("rate", "1/s", "requests served"),
    Channel("errors", "1/s", "requests failed"),
)
RESOLUTION = np.array([0.1, 1.0, 0.1, 0.1, 0.1])
"""Step of each metric as exported; a tenth per second is one request per scrape."""


@SOURCES.register("sim_service")
@dataclass(frozen=True)
class Service(Simulator):
    """Runs of a microservice system; see the module for the model.

    `difficulty` divides the severity of faults (0: double, 2: two thirds), and scales the number of everyday events and
    the differences between shops.

    >>> next(Service(runs=1).recordings()).values.shape
    (60, 640)
    """

    runs: int = 704
    seed: int = 41

    ASSETS: ClassVar[int] = 8
    RUN_LENGTH: ClassVar[int] = 640
    STEP: ClassVar[float] = STEP_S
    MIX: ClassVar[tuple[int, ...]] = (12, 6, 4, 7, 5, 4, 4, 3)
    INFO: ClassVar[SourceInfo] = SourceInfo(
        name="sim_service",
        title="Services (simulated)",
        domain="microservice and telecom operations",
        description=(
            "A web shop of twelve services that call each other, simulated as a network of queues with retries, "
            "time-outs, connection pools and an autoscaler. Five metrics per service are read every ten seconds: "
            "processor, memory, latency, request rate and error rate. Load follows the hour and comes in bursts; "
            "scheduled jobs, jitter and rolling restarts happen in every run. Each faulty run has one injected fault "
            "at one service, labelled from its onset until repair or the end of the run; the same kind of fault at "
            "another service is the same class."
        ),
        channels=tuple(
            Channel(f"{service}_{metric.name}", metric.unit, f"{metric.description} of {service}")
            for service in SERVICES
            for metric in METRICS
        ),
        faults=(
            "cpu hog",
            "memory leak",
            "added delay",
            "packet loss",
            "disk stall",
            "traffic burst",
            "pool exhaustion",
        ),
        protocol=Protocol(length=256, stride=128),
        split_unit="simulation run",
        asset_unit="shop",
        licence="Apache-2.0",
        citation=(
            "Queueing network after Kleinrock (1975), Sakasegawa (1977) and Harchol-Balter (2013); fault kinds after "
            "Pham et al., RCAEval (2025)."
        ),
        size="generated, about 110 MB",
        simulated=True,
        verified=True,
        redistributable=True,
    )

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """See `Simulator.simulate`."""
        spread = 0.6 + 0.4 * self.difficulty
        shop = deployments(self.asset_rng(), self.ASSETS, spread).of(batch.asset)
        events = disturb(batch.rng, batch.fault, shop, self.RUN_LENGTH, self.difficulty)
        exact = run_network(shop, events)
        values = measure(batch.rng, exact).transpose(2, 3, 0, 1)
        flat = values.reshape(len(batch), -1, self.RUN_LENGTH)
        return quantise(flat, np.tile(RESOLUTION, len(SERVICES))), events.labels


def measure(rng: np.random.Generator, exact: Array) -> Array:
    """Add the noise of finite counts and sampling to exact metrics (5, L, B, S)."""
    cpu, memory, latency, rate, errors = exact
    noise = rng.standard_normal(exact.shape)
    requests = np.maximum(rate * STEP_S, 1.0)
    # A mean over n requests of squared variation 2; plus what the scraper's clock adds.
    jitter = np.sqrt(2.0 / requests + 0.03**2)
    failed = errors * STEP_S
    readings = (
        np.clip(cpu * (1 + 0.03 * noise[0]) + 0.003 * np.abs(noise[0]), 0.0, 1.0) * 100,
        memory * (1 + 0.004 * noise[1]),
        latency * 1e3 * np.exp(jitter * np.clip(noise[2], -3, 3)),
        np.maximum(0.0, rate + np.sqrt(rate / STEP_S) * noise[3]),
        # The square root of a Poisson count has a spread of one half, whatever its mean.
        np.floor(np.maximum(0.0, np.sqrt(failed) + 0.5 * noise[4]) ** 2) / STEP_S,
    )
    return np.stack(readings)
