"""The queueing network of the simulated shop: from disturbances to exact metrics.

Each step of ten seconds is long against a request (milliseconds), so stations are quasi-stationary inside a step and
only backlog, memory, replicas and failures carry over:

* the forced flow law gives the requests offered to each service, retries included;
* processor time and connections both limit what it serves; what waits beyond the callers' patience is dropped;
* waiting follows Sakasegawa's M/M/c approximation plus the backlog; a request holds a connection for its own time and
  for all calls it awaits, so slowness below fills the pools above (Little's law);
* failures are time-outs, drops, lost packets and failed calls; callers try again, which loads the services further;
* a threshold autoscaler follows the processor's utilisation with delay.

References, beside those of the sibling modules:
    Sakasegawa, An approximation formula L_q = alpha rho^beta / (1 - rho), Ann. Inst. Statist. Math. 29, 1977.
    Kubernetes documentation, Horizontal Pod Autoscaling (rule, tolerance 0.1, stabilisation window 300 s).
    RFC 6298, Computing TCP's retransmission timer, 2011 (200 ms is the usual floor of implementations).
    Bronson et al., Metastable failures in distributed systems, HotOS 2021 (retries that keep an overload alive).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from readbench.data.simulators.service.disturbances import Disturbances
from readbench.data.simulators.service.parameters import DEPTH, STEP_S, Array, Deployment, chained, visits

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


def waiting(busy: Array, servers: Array, service: Array) -> Array:
    """Mean wait in an M/M/c queue (Sakasegawa 1977), in the unit of `service`.

    Args:
        busy: utilisation, below 1.
        servers: number of servers c.
        service: mean service time.

    Returns:
        The wait; exact for one server:

        >>> float(waiting(np.array(0.5), np.array(1.0), np.array(1.0)))
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
        hold=chained(shop.awaited, shop.demand + shop.io),
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
    return own, waiting(full, can.cores, computing) + waiting(pool_full, can.connections, hold)


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
