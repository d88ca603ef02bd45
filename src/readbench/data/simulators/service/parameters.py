"""The simulated web shop: its call graph and the figures of each deployment.

Twelve services of our own naming call each other as in the public demonstrators Sock Shop and Online Boutique: an
edge proxy, a page server, business services, and shared stores at the bottom. Every service is a queueing station.
The figures in `TIERS` and `CALLS` are ours, chosen in the range such demonstrators show (milliseconds of processor
time, hundreds of megabytes), so that no station is always the bottleneck.

References:
    Kleinrock, Queueing Systems, Vol. 1, 1975 (stations, utilisation law).
    Little, A proof for the queuing formula L = lambda W, Operations Research 9(3), 1961 (requests in flight).
    Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013 (visit ratios, forced flow law, M/M/c).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEP_S = 10.0
"""Seconds between two scrapes of the metrics, and the time step of the model."""


class Tier(NamedTuple):
    """One service as it is designed, before a deployment changes it.

    Args:
        name: service name; channels are `<name>_<metric>`.
        demand_ms: processor time per request.
        io_ms: time per request without processor (disk, network).
        memory_mb: resident memory of an idle replica.
        scales: whether the autoscaler may change the number of replicas (stores are fixed).
        collected: whether memory shows the saw-tooth of a garbage collector.
    """

    name: str
    demand_ms: float
    io_ms: float
    memory_mb: float
    scales: bool = True
    collected: bool = True


TIERS = (
    Tier("edge", 3.0, 1.0, 120, collected=False),
    Tier("storefront", 12.0, 2.0, 380),
    Tier("account", 9.0, 1.5, 310),
    Tier("orders", 22.0, 3.0, 450),
    Tier("recommend", 26.0, 1.0, 520),
    Tier("catalog", 6.0, 1.5, 260),
    Tier("basket", 5.0, 1.0, 240),
    Tier("payment", 16.0, 8.0, 330),
    Tier("cache", 0.8, 0.4, 600, scales=False, collected=False),
    Tier("catalogdb", 5.0, 6.0, 900, scales=False, collected=False),
    Tier("recorddb", 6.0, 7.0, 1100, scales=False, collected=False),
    Tier("broker", 2.0, 3.0, 420, scales=False),
)
SERVICES = tuple(tier.name for tier in TIERS)

CALLS: dict[tuple[str, str], float] = {
    ("edge", "storefront"): 0.75,
    ("edge", "account"): 0.20,
    ("edge", "orders"): 0.12,
    ("storefront", "recommend"): 0.45,
    ("storefront", "catalog"): 0.80,
    ("storefront", "basket"): 0.35,
    ("account", "recorddb"): 0.90,
    ("orders", "basket"): 1.00,
    ("orders", "payment"): 1.00,
    ("orders", "broker"): 1.00,
    ("recommend", "catalog"): 1.20,
    ("catalog", "cache"): 1.00,
    ("catalog", "catalogdb"): 0.35,
    ("basket", "cache"): 1.30,
    ("payment", "recorddb"): 1.00,
    ("payment", "broker"): 0.60,
}
"""Mean calls that one request to the first service makes to the second."""

UNAWAITED = frozenset({("orders", "broker"), ("payment", "broker")})
"""Calls whose answer the caller does not wait for (messages)."""

DEPTH = 4
"""Longest chain of calls: edge, storefront, recommend, catalog, catalogdb."""


def design_calls(*, awaited: bool) -> Array:
    """(S, S) calls per request, caller by callee; only the awaited ones on request."""
    calls = np.zeros((len(SERVICES), len(SERVICES)))
    for pair, mean in CALLS.items():
        if not (awaited and pair in UNAWAITED):
            calls[SERVICES.index(pair[0]), SERVICES.index(pair[1])] = mean
    return calls


def visits(calls: Array, outside: Array) -> Array:
    """Arrival rates (..., S) that `outside` arrivals (..., S) cause at every service (forced flow law).

    The graph has no cycle, so `DEPTH` rounds are exact. Sums are written out: their order, and so every bit of the
    result, is the same on all processors.
    """
    rates = outside
    for _ in range(DEPTH):
        rates = outside + (calls * rates[..., :, None]).sum(axis=-2)
    return rates


@dataclass(frozen=True, eq=False)
class Deployment:
    """Figures of installed shops, one row per shop (or per run, after `of`).

    Args:
        load: (A,) usual requests per second at the edge.
        calls: (A, S, S) calls per request.
        awaited: (A, S, S) those the caller waits for.
        demand: (A, S) processor seconds per request.
        io: (A, S) other seconds per request.
        cores: (A, S) processor cores of a replica.
        replicas: (A, S) replicas at usual load.
        limit: (A, S) most replicas.
        pool: (A, S) connections (worker threads) of a replica.
        in_flight: (A, S) requests in flight at usual load (Little's law).
        timeout: (A, S) seconds after which callers give up.
        retries: (A, S) times that callers try again.
        target: (A, S) utilisation that the autoscaler aims at.
        start_up: (A, S) steps until an ordered replica serves.
        memory: (A, S) idle memory of a replica in MB.
        request_memory: (A, S) MB held by a request in flight.
        ceiling: (A, S) memory limit of a replica in MB.
        nursery: (A, S) MB that the garbage collector lets grow; 0 where there is none.
        failing: (A, S) share of requests that fail on a good day.
    """

    load: Array
    calls: Array
    awaited: Array
    demand: Array
    io: Array
    cores: Array
    replicas: Array
    limit: Array
    pool: Array
    in_flight: Array
    timeout: Array
    retries: Array
    target: Array
    start_up: Array
    memory: Array
    request_memory: Array
    ceiling: Array
    nursery: Array
    failing: Array

    def of(self, rows: NDArray[np.int32]) -> Self:
        """The figures of the given shops, in that order."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def deployments(rng: np.random.Generator, assets: int, spread: float) -> Deployment:
    """Draw `assets` shops: regional installations of the same software on different hardware.

    Operators size for their own load: replicas for the target utilisation and connection pools for the requests in
    flight (Little's law), with margins that differ from service to service.

    Args:
        rng: source of randomness.
        assets: number of shops A.
        spread: scales all log-normal differences between shops.
    """
    shape = (assets, len(SERVICES))

    def around(typical: Array | float, sigma: float) -> Array:
        return typical * np.exp(spread * sigma * np.clip(rng.standard_normal(shape), -2.5, 2.5))

    scales = np.array([tier.scales for tier in TIERS])
    collected = np.array([tier.collected for tier in TIERS])
    # 220 to 400 requests per second: a mid-size shop.
    load = 300.0 * np.exp(spread * 0.15 * np.clip(rng.standard_normal(assets), -2.0, 2.0))
    factor = around(1.0, 0.06)[:, None, :]
    calls, awaited = factor * design_calls(awaited=False), factor * design_calls(awaited=True)
    demand = around(np.array([tier.demand_ms for tier in TIERS]) / 1e3, 0.08)
    io = around(np.array([tier.io_ms for tier in TIERS]) / 1e3, 0.10)
    outside = np.zeros(shape)
    outside[:, 0] = load
    rates = visits(calls, outside)
    # Autoscalers aim at 50 to 75 % of the processor (Kubernetes examples use 50, operators go higher).
    target = rng.uniform(0.50, 0.75, shape)
    cores = rng.choice(np.array([1.0, 2.0]), shape)
    replicas = np.maximum(np.where(scales, 2.0, 1.0), np.ceil(rates * demand / (cores * target)))
    # Stores do not scale: they are bought with head room.
    replicas = np.where(scales, replicas, np.ceil(1.3 * replicas))
    in_flight = rates * chained(awaited, demand + io)
    memory = around(np.array([tier.memory_mb for tier in TIERS]), 0.06)
    return Deployment(
        load=load,
        calls=calls,
        awaited=awaited,
        demand=demand,
        io=io,
        cores=cores,
        replicas=replicas,
        limit=np.where(scales, np.ceil(replicas * rng.uniform(1.5, 2.5, shape)), replicas),
        # Eight to twenty times the usual requests in flight, at least 16 connections.
        pool=np.maximum(16.0, np.ceil(rng.uniform(8.0, 20.0, shape) * in_flight / replicas)),
        # Half a second to one and a half: internal calls are given up early.
        in_flight=in_flight,
        timeout=rng.uniform(0.5, 1.5, shape),
        retries=rng.choice(np.array([0.0, 1.0, 2.0]), shape),
        target=target,
        # Image start and readiness probe: 40 to 100 s.
        start_up=rng.integers(4, 11, shape).astype(np.float64),
        memory=memory,
        request_memory=rng.uniform(0.5, 3.0, shape),
        ceiling=memory * rng.uniform(1.7, 2.6, shape),
        nursery=np.where(collected, memory * rng.uniform(0.08, 0.25, shape), 0.0),
        # One request in 300 to 3000 fails without any fault.
        failing=np.exp(rng.uniform(np.log(1 / 3000), np.log(1 / 300), shape)),
    )


def chained(awaited: Array, own: Array) -> Array:
    """Seconds (..., S) a request stays at a service: its own time (..., S) and that of the calls it awaits."""
    total = own
    for _ in range(DEPTH):
        total = own + (awaited * total[..., None, :]).sum(axis=-1)
    return total
