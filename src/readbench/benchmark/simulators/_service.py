"""A simulated microservice system: a web shop as a network of queues, with seven kinds of injected fault.

**Shop** (`TIERS`, `CALLS`, `Deployment`). Twelve services of our own naming call each other as in the public
demonstrators Sock Shop and Online Boutique: an edge proxy, a page server, business services, and shared stores at the
bottom. Every service is a queueing station. The figures in `TIERS` and `CALLS` are ours, chosen in the range such
demonstrators show (milliseconds of processor time, hundreds of megabytes), so that no station is always the bottleneck.

**Disturbances** (`disturb`). User load, everyday events and the injected fault come from outside. All of it is drawn
before the queueing network runs, and drawn for every run whatever its class: a faulty run and its healthy twin (same
seed, class 0) differ in nothing but the fault.

**Network** (`run_network`), from disturbances to exact metrics. Each step of ten seconds is long against a request
(milliseconds), so stations are quasi-stationary inside a step and only backlog, memory, replicas and failures carry
over:

* the forced flow law gives the requests offered to each service, retries included;
* processor time and connections both limit what it serves; what waits beyond the callers' patience is dropped;
* waiting follows Sakasegawa's M/M/c approximation plus the backlog; a request holds a connection for its own time and
  for all calls it awaits, so slowness below fills the pools above (Little's law);
* failures are time-outs, drops, lost packets and failed calls; callers try again, which loads the services further;
* a threshold autoscaler follows the processor's utilisation with delay.

The source, at the end, measures and labels.

References:
    Kleinrock, Queueing Systems, Vol. 1, 1975 (stations, utilisation law).
    Little, A proof for the queuing formula L = lambda W, Operations Research 9(3), 1961 (requests in flight).
    Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013 (visit ratios, forced flow law, M/M/c).
    Fischer and Meier-Hellstern, The Markov-modulated Poisson process (MMPP) cookbook, Performance Evaluation 18, 1993.
    Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39, 1960; Elliott, ibid. 42, 1963.
    Pham et al., RCAEval: a benchmark for root cause analysis of microservice systems, 2025 (the injected kinds).
    Sakasegawa, An approximation formula L_q = alpha rho^beta / (1 - rho), Ann. Inst. Statist. Math. 29, 1977.
    Kubernetes documentation, Horizontal Pod Autoscaling (rule, tolerance 0.1, stabilisation window 300 s).
    RFC 6298, Computing TCP's retransmission timer, 2011 (200 ms is the usual floor of implementations).
    Bronson et al., Metastable failures in distributed systems, HotOS 2021 (retries that keep an overload alive).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, SourceInfo, read_info
from readbench.benchmark.simulators._base import ColumnTable, RunBatch, Simulator, quantise, switch_states
from readbench.engine.registry import SOURCES

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
class Deployment(ColumnTable):
    """Figures of installed shops, one row per shop (or per run, after `take`).

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
    in_flight = rates * add_awaited_times(awaited, demand + io)
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


def add_awaited_times(awaited: Array, own: Array) -> Array:
    """Seconds (..., S) a request stays at a service: its own time (..., S) and that of the calls it awaits."""
    total = own
    for _ in range(DEPTH):
        total = own + (awaited * total[..., None, :]).sum(axis=-1)
    return total


CPU, LEAK, DELAY, LOSS, DISK, BURST, POOL = range(1, 8)
"""Class numbers of the faults."""

SEVERITY: dict[int, tuple[float, float]] = {
    CPU: (0.25, 0.70),  # share of the cores that another process takes
    LEAK: (0.35, 1.40),  # share of the free memory lost per 100 steps at usual load
    DELAY: (0.04, 0.40),  # seconds added to every answer
    LOSS: (0.05, 0.30),  # share of packets lost while the channel is bad
    DISK: (8.0, 60.0),  # factor on the input/output time while the disk stalls
    BURST: (0.7, 2.8),  # extra requests, in multiples of the usual rate at the place
    POOL: (0.8, 2.8),  # requests usually in flight per connection that is still given back
}
"""Least and greatest severity, drawn log-uniformly; chosen so that the mildest hide in the daily swing of the load and
the worst reach the edge."""

EVENTS = 5
"""Everyday events per run: scheduled jobs, short network jitter, rolling restarts."""


@dataclass(frozen=True, eq=False)
class Disturbances:
    """Inputs of the queueing network, time first.

    Args:
        outside: (L, B, S) requests per second from outside the shop.
        hog: (L, B, S) share of the cores taken by other processes.
        leak: (L, B, S) MB lost per request and replica.
        delay: (L, B, S) seconds added to every answer.
        loss: (L, B, S) share of packets lost.
        slow_disk: (L, B, S) factor on the input/output time.
        pool: (L, B, S) share of the connections that still work.
        up: (L, B, S) share of the replicas that are not being restarted.
        labels: (B, L) class of each step.
    """

    outside: Array
    hog: Array
    leak: Array
    delay: Array
    loss: Array
    slow_disk: Array
    pool: Array
    up: Array
    labels: NDArray[np.int32]


def disturb(
    rng: np.random.Generator, fault: NDArray[np.int32], shop: Deployment, steps: int, difficulty: float
) -> Disturbances:
    """Draw load, everyday events and faults.

    Args:
        rng: source of randomness.
        fault: (B,) class of each run.
        shop: figures of each run's shop.
        steps: run length L.
        difficulty: scales the number of everyday events and divides the severity of faults.
    """
    runs, services = len(fault), len(SERVICES)
    usual = np.zeros((runs, services))
    usual[:, 0] = shop.load
    usual = visits(shop.calls, usual)
    swing = user_load(rng, runs, steps)
    at = np.eye(services)[rng.integers(services, size=runs)]
    strength, active = course(rng, fault, steps, difficulty)
    # Mean stays in steps of 10 s, ours: bad spells of two minutes, stalls of one, surges of two between longer lulls.
    spots = switching(rng, np.array(12.0), np.array(8.0), runs, steps)
    stalls = switching(rng, np.array(5.0), np.array(9.0), runs, steps)
    surges = switching(rng, np.array(10.0), np.array(20.0), runs, steps)

    def place(kind: int, shape: Array) -> Array:
        """(L, B, S) `shape` (L, B) at the place of the fault, in the runs of this class."""
        return np.where(fault == kind, shape, 0.0)[:, :, None] * at

    jobs, jitter, restarting = everyday(rng, runs, steps, difficulty)
    outside = place(BURST, strength * np.where(surges, 1.25, 0.75)) * usual
    outside[:, :, 0] += swing * shop.load
    per_request = (shop.ceiling - shop.memory) * shop.replicas / (usual * 100 * STEP_S)
    return Disturbances(
        outside=outside,
        hog=np.minimum(jobs + place(CPU, strength), 0.85),
        leak=place(LEAK, strength) * per_request,
        delay=jitter * (shop.demand + shop.io) + place(DELAY, strength),
        loss=place(LOSS, strength * np.where(spots, 1.0, 0.15)),
        slow_disk=1.0 + place(DISK, strength * stalls),
        pool=1.0 / (1.0 + place(POOL, strength) * shop.pool * shop.replicas / shop.in_flight),
        up=1.0 - restarting,
        labels=np.where(active, fault, 0).T.astype(np.int32),
    )


def user_load(rng: np.random.Generator, runs: int, steps: int) -> Array:
    """(L, B) load at the edge in multiples of the usual one: time of day, bursts, and short-term wander.

    Each run begins at its own hour. Two on/off sources make the arrivals a four-state Markov-modulated process.
    """
    hour = 24 * rng.random(runs) + np.arange(steps)[:, None] * STEP_S / 3600
    daily = 0.85 + 0.20 * np.sin(2 * np.pi * (hour - 9) / 24) + 0.05 * np.sin(4 * np.pi * (hour - 3) / 24)
    level = np.exp(0.10 * rng.standard_normal(runs))
    crowd = switching(rng, rng.uniform(20, 60, runs), rng.uniform(40, 160, runs), runs, steps)
    rush = switching(rng, rng.uniform(4, 12, runs), rng.uniform(30, 90, runs), runs, steps)
    modulated = 1.0 + rng.uniform(0.05, 0.3, runs) * crowd + rng.uniform(0.05, 0.4, runs) * rush
    wander, noise = np.zeros(runs), 0.02 * rng.standard_normal((steps, runs))
    walk = np.empty((steps, runs))
    for t in range(steps):
        wander = 0.95 * wander + noise[t]
        walk[t] = wander
    return np.maximum(0.05, level * daily * modulated * (1.0 + walk))


def switching(rng: np.random.Generator, on: Array, off: Array, runs: int, steps: int) -> NDArray[np.bool_]:
    """(L, B) two-state Markov chains with mean stays of `on` and `off` steps, started in their steady state."""
    draws = rng.random((steps + 1, runs))
    state = draws[0] < on / (on + off)
    return switch_states(draws[1:], state, on, off)


def course(
    rng: np.random.Generator, fault: NDArray[np.int32], steps: int, difficulty: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Severity (L, B) over time and whether the fault is active (L, B).

    Half of the faults strike within a few steps, half grow slowly; three in ten are repaired before the run ends.
    """
    runs, time = len(fault), np.arange(steps)[:, None]
    onset = rng.integers(96, 224, runs)
    repaired = rng.integers(onset + 256, steps + 1)
    end = np.where(rng.random(runs) < 0.3, repaired, steps)
    slow, quick = rng.uniform(30, 150, runs), rng.uniform(1, 4, runs)
    rise = np.where(rng.random(runs) < 0.5, slow, quick)
    bounds = np.array([SEVERITY.get(int(f), (1.0, 1.0)) for f in fault])
    drawn = bounds[:, 0] * (bounds[:, 1] / bounds[:, 0]) ** rng.random(runs)
    peak = drawn / (0.5 + 0.5 * difficulty)
    active = (time >= onset) & (time < end) & (fault > 0)
    return peak * np.clip((time - onset + 1) / rise, 0.0, 1.0) * active, active


def everyday(rng: np.random.Generator, runs: int, steps: int, difficulty: float) -> tuple[Array, Array, Array]:
    """Harmless events: scheduled jobs (share of cores), jitter (s) and restarts (share of replicas), (L, B, S) each.

    They last up to four minutes and hit any service, so that a short processor peak or a slow minute alone is no fault.
    """
    services, time = len(SERVICES), np.arange(steps)[:, None]
    jobs, jitter, restarting = (np.zeros((steps, runs, services)) for _ in range(3))
    happens = np.minimum(1.0, 0.6 * difficulty)
    for _ in range(EVENTS):
        at = np.eye(services)[rng.integers(services, size=runs)]
        start, lasts = rng.integers(0, steps, runs), rng.integers(4, 25, runs)
        kind, size = rng.integers(3, size=runs), rng.random(runs)
        here = (time >= start) & (time < start + lasts) & (rng.random(runs) < happens)
        jobs += (here * (kind == 0) * (0.08 + 0.27 * size))[:, :, None] * at
        jitter += (here * (kind == 1) * (0.5 + 1.5 * size))[:, :, None] * at
        restarting += (here * (kind == 2) * (0.1 + 0.3 * size))[:, :, None] * at
    return jobs, jitter, np.minimum(restarting, 0.6)


PACKETS = 6.0
"""Packets of a request and its answer: a few kilobytes."""
TAIL = 0.4
"""Share of losses that only the timer notices; the others are repaired within a round trip."""
RETRANSMISSION_S = 0.2
"""What such a loss costs (RFC 6298)."""
COLLECTOR_ONSET, COLLECTOR_SHARE = 0.75, 0.5
"""The collector takes processor time once memory passes this share of its limit, up to this share of the cores."""
RESTART_STEPS, RESTART_LEFT = 4, 0.35
"""Replicas killed for memory are back after 40 s; meanwhile this share of the capacity is left."""
TOLERANCE, SCALE_DOWN_STEPS = 0.1, 30.0
"""Of the autoscaler: no change within 10 % of the target; 300 s before it shrinks."""
FEWEST = 2.0
"""Replicas that the autoscaler always keeps, so that one may fail."""
SETTLING = 0.35
"""How far the shares and times that services see of each other move to their new value in a step: balances between
full pools above and idle services below settle within half a minute instead of swinging from step to step."""
IDLE = 0.01
"""Processor share of an idle replica."""
FULLEST = 0.97
"""Utilisation at which the stationary formula ends and the backlog takes over."""


@dataclass(eq=False)
class _State:
    """What carries over between steps, (B, S) each.

    Args:
        ready: replicas that serve.
        goal: replicas that the autoscaler has decided on.
        timer: steps until the decision takes effect; 0 where none is under way.
        average: smoothed utilisation that the autoscaler reads.
        backlog: requests waiting.
        passed: share of the offered requests that was served in the last step.
        failing: share of requests that failed in the last step.
        hold: seconds that a request holds a connection.
        leaked: MB lost by each replica.
        killed: steps until replicas killed for memory are back.
        nursery: MB of garbage since the last collection.
    """

    ready: Array
    goal: Array
    timer: Array
    average: Array
    backlog: Array
    passed: Array
    failing: Array
    hold: Array
    leaked: Array
    killed: Array
    nursery: Array


def run_network(shop: Deployment, events: Disturbances) -> Array:
    """Exact metrics (5, L, B, S): utilisation (share), memory (MB), latency (s), served and failed (1/s)."""
    steps = len(events.outside)
    state = _start(shop, events)
    metrics = np.empty((5, *events.outside.shape))
    for t in range(steps):
        _advance(shop, events, state, t, metrics[:, t])
    return metrics


def waiting_time(busy: Array, servers: Array, service: Array) -> Array:
    """Mean wait in an M/M/c queue (Sakasegawa 1977), in the unit of `service`.

    Args:
        busy: utilisation, below 1.
        servers: number of servers c.
        service: mean service time.

    Returns:
        The wait; exact for one server:

        >>> float(waiting_time(np.array(0.5), np.array(1.0), np.array(1.0)))
        1.0
    """
    wait: Array = service * busy ** (np.sqrt(2 * (servers + 1)) - 1) / (servers * (1 - busy))
    return wait


def _start(shop: Deployment, events: Disturbances) -> _State:
    """Replicas fit the load of the first step; nothing waits; collectors are anywhere in their cycle."""
    zero = np.zeros_like(shop.demand)
    rates = visits(shop.calls, events.outside[0])
    fit = np.clip(np.ceil(rates * shop.demand / (shop.cores * shop.target)), FEWEST, shop.limit)
    ready = np.where(shop.limit > shop.replicas, fit, shop.replicas)
    # The golden ratio spreads phases evenly without a draw.
    phase = (0.618034 * np.arange(zero.size).reshape(zero.shape)) % 1.0
    return _State(
        ready=ready,
        goal=ready,
        timer=zero,
        average=rates * shop.demand / (ready * shop.cores),
        backlog=zero,
        passed=np.ones_like(zero),
        failing=shop.failing.copy(),
        hold=add_awaited_times(shop.awaited, shop.demand + shop.io),
        leaked=zero,
        killed=zero,
        nursery=phase * shop.nursery,
    )


class _Capacity(NamedTuple):
    """What a service can do in this step, (B, S) each: replicas, cores, requests per second by cores, connections."""

    alive: Array
    cores: Array
    by_cores: Array
    connections: Array


def _advance(shop: Deployment, events: Disturbances, state: _State, t: int, out: Array) -> None:
    """One step of all runs; writes the five metrics (5, B, S) into `out`."""
    memory = shop.memory + state.leaked + state.nursery
    pressure = np.clip((memory / shop.ceiling - COLLECTOR_ONSET) / (1 - COLLECTOR_ONSET), 0.0, 1.0)
    collecting = COLLECTOR_SHARE * pressure * pressure
    can = _capacity(shop, events, state, t, collecting)
    capacity = np.minimum(can.by_cores, can.connections / state.hold)

    tries = 1.0 + state.failing * (shop.retries > 0) + state.failing**2 * (shop.retries > 1)
    offered = visits(shop.calls * (state.passed[:, :, None] * tries[:, None, :]), events.outside[t])
    asked = offered * STEP_S + state.backlog
    served = np.minimum(asked / STEP_S, capacity)
    left = asked - served * STEP_S
    # Callers give up: nobody waits longer than the time-out.
    backlog = np.minimum(left, capacity * shop.timeout)
    dropped = (left - backlog) / np.maximum(asked, 1e-9)

    own, queued = _own_times(shop, events, t, served, can, state.hold)
    queued = np.minimum(queued + backlog / capacity, shop.timeout)
    latency, failing = _chain(shop, own, queued, dropped, events.loss[t])

    used = np.minimum(served * shop.demand / can.cores, 1.0)
    busy = np.minimum(used * (1 + collecting) + collecting + events.hog[t] + IDLE, 1.0)
    out[0], out[2], out[3] = busy, latency, served
    out[1] = memory + shop.request_memory * served * latency / can.alive
    out[4] = served * failing + dropped * asked / STEP_S

    state.backlog = backlog
    state.failing += SETTLING * (failing - state.failing)
    state.passed += SETTLING * (np.minimum(served / np.maximum(offered, 1e-9), 1.0) - state.passed)
    state.hold += SETTLING * (latency - queued - state.hold)
    _remember(shop, events.leak[t], state, served / can.alive, memory)
    _scale(shop, state, busy)


def _capacity(shop: Deployment, events: Disturbances, state: _State, t: int, collecting: Array) -> _Capacity:
    """Replicas that are up, and what their cores and connections allow."""
    alive = state.ready * events.up[t] * np.where(state.killed > 0, RESTART_LEFT, 1.0)
    cores = alive * shop.cores
    return _Capacity(
        alive=alive,
        cores=cores,
        by_cores=cores * (1 - events.hog[t]) * (1 - collecting) / shop.demand,
        connections=np.maximum(shop.pool * alive * events.pool[t], 1.0),
    )


def _own_times(
    shop: Deployment, events: Disturbances, t: int, served: Array, can: _Capacity, hold: Array
) -> tuple[Array, Array]:
    """Seconds of service and of waiting (B, S) at each service itself."""
    loss = events.loss[t]
    network = events.delay[t] + PACKETS * TAIL * RETRANSMISSION_S * loss / (1 - loss)
    computing = can.cores / can.by_cores
    own = computing + shop.io * events.slow_disk[t] + network
    full = np.minimum(served / can.by_cores, FULLEST)
    pool_full = np.minimum(served * hold / can.connections, FULLEST)
    return own, waiting_time(full, can.cores, computing) + waiting_time(pool_full, can.connections, hold)


def _chain(shop: Deployment, own: Array, queued: Array, dropped: Array, loss: Array) -> tuple[Array, Array]:
    """Latency (s) and share of failures (B, S) with those of the awaited calls, callers giving up at the time-out."""
    alone = own + queued
    intact = (1 - shop.failing) * (1 - dropped) * (1 - loss**2)
    latency, failing = alone, 1 - intact
    for _ in range(DEPTH):
        seen = np.minimum(latency, shop.timeout) * (1 + failing * (shop.retries > 0))
        latency = alone + (shop.awaited * seen[:, None, :]).sum(axis=-1)
        final = failing ** (1 + shop.retries)
        broken = np.minimum((shop.awaited * final[:, None, :]).sum(axis=-1), 1.0)
        failing = 1 - intact * (1 - broken) * (1 - np.exp(-shop.timeout / latency))
    return latency, failing


def _remember(shop: Deployment, leak: Array, state: _State, per_replica: Array, memory: Array) -> None:
    """Memory after the step: leaks and garbage grow with the requests; too much of either restarts or collects."""
    dead = memory > shop.ceiling
    state.killed = np.where(dead, RESTART_STEPS, np.maximum(state.killed - 1, 0.0))
    state.leaked = np.where(dead, 0.0, state.leaked + leak * per_replica * STEP_S)
    # 20 kB of garbage per request.
    garbage = state.nursery + 0.02 * per_replica * STEP_S
    state.nursery = np.where(garbage > shop.nursery, 0.0, garbage)


def _scale(shop: Deployment, state: _State, busy: Array) -> None:
    """The autoscaler: replicas times utilisation over target, rounded up, after a delay."""
    state.average = 0.8 * state.average + 0.2 * busy
    ratio = state.average / shop.target
    wished = np.where(np.abs(ratio - 1) > TOLERANCE, np.ceil(state.ready * ratio), state.ready)
    wished = np.clip(wished, FEWEST, shop.limit)
    wished = np.where(shop.limit > shop.replicas, wished, state.ready)
    waits = state.timer > 0
    due = state.timer == 1
    state.goal = np.where(waits, np.maximum(state.goal, wished), wished)
    delay = np.where(wished > state.ready, shop.start_up, np.where(wished < state.ready, SCALE_DOWN_STEPS, 0.0))
    state.ready = np.where(due, state.goal, state.ready)
    state.timer = np.where(waits, state.timer - 1, delay)


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
    INFO: ClassVar[SourceInfo] = read_info(
        __name__,
        "sim_service",
        channels=tuple(
            Channel(f"{service}_{metric.name}", metric.unit, f"{metric.description} of {service}")
            for service in SERVICES
            for metric in METRICS
        ),
    )

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """See `Simulator.simulate`."""
        spread = 0.6 + 0.4 * self.difficulty
        shop = deployments(self.asset_rng(), self.ASSETS, spread).take(batch.asset)
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
