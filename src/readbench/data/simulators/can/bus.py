"""The messages of the simulated car bus: which signals each frame carries, how often, and in which raw units.

As on a real bus seen without the maker's data base, every channel is a raw integer: physical values with their own gain
and offset, single bits, message counters and check sums. Some quantities appear twice, in other units and at another
rate. A signal keeps its last value until the next frame of its message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from readbench.data.simulators.can.parameters import Array
from readbench.data.source import Channel

COUNTER, CHECKSUM = "counter", "check sum"


class Signal(NamedTuple):
    """One signal: raw = round(gain * (quantity + bias * offset of the car + noise) + zero), kept within its bits.

    Args:
        source: name of the quantity, or `COUNTER` or `CHECKSUM`.
        bits: width; raw values lie in 0 .. 2**bits - 1.
        gain: raw units per physical unit.
        zero: raw value of physical zero.
        noise: standard deviation of the sensor's noise in physical units.
        bias: standard deviation of its offset between cars in physical units.
    """

    source: str
    bits: int = 1
    gain: float = 1.0
    zero: float = 0.0
    noise: float = 0.0
    bias: float = 0.0


class Message(NamedTuple):
    """One message: identifier, period in steps of 50 ms, signals."""

    identifier: int
    period: int
    signals: tuple[Signal, ...]


BUS = (
    Message(
        0x0A1,
        1,
        (
            Signal("engine_rpm", 15, 4.0, noise=4.0),
            Signal("torque", 12, 4.0, 800, noise=1.0, bias=1.0),
            Signal("throttle", 8, 250.0, 2, noise=0.003, bias=0.004),
            Signal("pedal", 8, 250.0, 0, noise=0.001),
            Signal(COUNTER, 4),
        ),
    ),
    Message(
        0x0B4,
        2,
        (
            Signal("manifold_kpa", 8, 2.0, noise=0.6, bias=0.8),
            Signal("fuel_rate", 12, 50.0, noise=0.05),
            Signal("intake_c", 8, 1.0, 40, bias=1.0),
            Signal("torque_request", 10, 2.0, 100),
            Signal(CHECKSUM, 8),
        ),
    ),
    Message(
        0x0D0,
        2,
        (
            Signal("display_kmh", 14, 60.0),
            Signal("reverse_lamp"),
            Signal("brake_lamp"),
            Signal("trip_m", 16, 2.0),
            Signal(COUNTER, 4),
            Signal(CHECKSUM, 8),
        ),
    ),
    Message(
        0x125,
        1,
        (
            Signal("steering", 15, 10.0, 8000, noise=0.15, bias=1.0),
            Signal("steering_rate", 12, 2.0, 2048, noise=1.0),
            Signal("steering_effort", 10, 50.0, 512, noise=0.1, bias=0.05),
            Signal(COUNTER, 4),
        ),
    ),
    Message(
        0x1F3,
        1,
        (
            Signal("brake_bar", 10, 8.0, 4, noise=0.2, bias=0.3),
            Signal("brake_lamp"),
            Signal("antilock"),
            Signal("speed_kmh", 15, 100.0, noise=0.02),
            Signal(CHECKSUM, 8),
        ),
    ),
    Message(
        0x220,
        1,
        (
            Signal("acceleration", 12, 100.0, 2048, noise=0.08, bias=0.06),
            Signal("lateral", 12, 100.0, 2048, noise=0.08, bias=0.06),
            Signal("yaw_deg", 12, 40.0, 2048, noise=0.15, bias=0.10),
            Signal(CHECKSUM, 8),
        ),
    ),
    Message(
        0x2A8,
        2,
        (Signal("rear_gap", 8, 1.0), Signal("reversing")),
    ),
    Message(
        0x2C4,
        2,
        (
            Signal("gear", 4, 1.0, 1),
            Signal("selector", 3),
            Signal("turbine_rpm", 14, 2.0, noise=4.0),
            Signal("output_rpm", 14, 2.0, noise=2.0),
            Signal("gearbox_oil", 8, 1.0, 40, bias=0.5),
            Signal("shifting"),
        ),
    ),
    Message(
        0x3A0,
        10,
        (
            Signal("coolant", 8, 1.4, 56, bias=0.8),
            Signal("oil", 8, 1.0, 40, bias=1.0),
            Signal("ambient", 8, 2.0, 80, bias=0.5),
            Signal("fan", 8, 200.0),
            Signal("hot_lamp"),
        ),
    ),
    Message(
        0x3B1,
        10,
        (Signal("turn_left"), Signal("turn_right"), Signal("lights", 2), Signal("wiper", 2)),
    ),
    Message(
        0x410,
        20,
        (Signal("cabin_c", 8, 4.0, 40, noise=0.05), Signal("blower", 4, 10.0), Signal("compressor")),
    ),
    Message(
        0x42F,
        4,
        (
            Signal("battery_v", 8, 14.0, noise=0.04, bias=0.05),
            Signal("generator", 8, 200.0, noise=0.01),
            Signal("fuel_level", 8, 2.0, noise=0.4),
        ),
    ),
    Message(
        0x4C2,
        2,
        (
            Signal("pedal_foot", 12, 3300.0, 410, noise=0.002, bias=0.003),
            Signal("brake_travel", 8, 180.0, 12, noise=0.004, bias=0.005),
            Signal("cruise", 2),
        ),
    ),
    Message(
        0x51A,
        4,
        (
            Signal("speed_mph", 8, 1.0),
            Signal("engine_rpm", 8, 1 / 32),
            Signal("pedal", 7, 100.0),
            Signal(COUNTER, 8),
        ),
    ),
    Message(
        0x5E1,
        20,
        (
            Signal("tyre", 8, 0.8, bias=6.0),
            Signal("tyre", 8, 0.8, bias=6.0),
            Signal("tyre", 8, 0.8, bias=6.0),
            Signal("tyre", 8, 0.8, bias=6.0),
        ),
    ),
    Message(
        0x6E0,
        1,
        (
            Signal("wheel_fl", 15, 256.0, noise=0.012),
            Signal("wheel_fr", 15, 256.0, noise=0.012),
            Signal("wheel_rl", 15, 256.0, noise=0.012),
            Signal("wheel_rr", 15, 256.0, noise=0.012),
            Signal(COUNTER, 8),
        ),
    ),
)
"""Gains, offsets and rates are ours, of the kind found in public data bases of passenger cars; identifiers 0x0D0 and
0x6E0 carry what they carry in ROAD."""

SIGNALS = tuple(signal for message in BUS for signal in message.signals)
FIRST = tuple(int(n) for n in np.cumsum([0] + [len(message.signals) for message in BUS]))
"""Where each message's signals begin in `SIGNALS`."""
CHANNELS = tuple(
    Channel(f"id_{message.identifier:03x}_{k}", "raw", signal.source.replace("_", " "))
    for message in BUS
    for k, signal in enumerate(message.signals, start=1)
)
TOP = np.array([2.0**signal.bits - 1 for signal in SIGNALS])
"""Greatest raw value of each signal."""


def message_of(identifier: int) -> int:
    """Index of a message in `BUS`."""
    return next(m for m, message in enumerate(BUS) if message.identifier == identifier)


def columns_of(message: int) -> slice:
    """Columns of a message's signals."""
    return slice(FIRST[message], FIRST[message + 1])


def column(identifier: int, source: str) -> int:
    """Column of the first signal of a message that carries `source`.

    >>> CHANNELS[column(0x0D0, "display_kmh")].name
    'id_0d0_1'
    """
    message = message_of(identifier)
    return FIRST[message] + next(k for k, s in enumerate(BUS[message].signals) if s.source == source)


def encode(rng: np.random.Generator, quantities: dict[str, Array], offsets: Array) -> Array:
    """Raw values (B, C, L) of physical quantities (L, B), before counters and check sums.

    Args:
        rng: source of sensor noise.
        quantities: (L, B) per name.
        offsets: (B, C) offsets of each car's sensors in standard units.
    """
    steps, runs = next(iter(quantities.values())).shape
    raw = np.zeros((runs, len(SIGNALS), steps))
    for c, signal in enumerate(SIGNALS):
        if signal.source in {COUNTER, CHECKSUM}:
            continue
        value = quantities[signal.source].T + signal.bias * offsets[:, c, None]
        if signal.noise:
            value = value + signal.noise * rng.standard_normal((runs, steps))
        raw[:, c] = np.clip(np.round(signal.gain * value + signal.zero), 0, TOP[c])
    return raw


def count(raw: Array, phases: Array) -> None:
    """Write the message counters: one more with each frame."""
    time = np.arange(raw.shape[2])
    for c, message in _columns(COUNTER):
        frame = np.floor((time - phases[:, message, None] % BUS[message].period) / BUS[message].period)
        raw[:, c] = (frame + phases[:, message, None]) % (TOP[c] + 1)


def check(raw: Array) -> Array:
    """Check sums (B, n, L) of the frames as they are: weighted sum of the other signals, modulo 256."""
    sums = []
    for c, message in _columns(CHECKSUM):
        own = np.arange(FIRST[message], FIRST[message + 1])
        weights = np.where(own == c, 0.0, 2.0 * np.arange(len(own)) + 1)
        sums.append((raw[:, columns_of(message)] * weights[:, None]).sum(axis=1) % 256)
    return np.stack(sums, axis=1)


CHECK_COLUMNS = np.array([c for c, s in enumerate(SIGNALS) if s.source == CHECKSUM])


def hold(raw: Array, phases: Array) -> None:
    """Keep each message's values until its next frame; `phases` (B, M) is when each message is first sent."""
    time = np.arange(raw.shape[2])
    for m, message in enumerate(BUS):
        if message.period > 1:
            phase = phases[:, m, None] % message.period
            sent = np.maximum((time - phase) // message.period * message.period + phase, 0).astype(np.intp)
            part = raw[:, columns_of(m)]
            raw[:, columns_of(m)] = np.take_along_axis(part, np.broadcast_to(sent[:, None], part.shape), axis=2)


def _columns(source: str) -> list[tuple[int, int]]:
    """(column, message) of all signals of a source."""
    owner = [m for m, message in enumerate(BUS) for _ in message.signals]
    return [(c, owner[c]) for c, signal in enumerate(SIGNALS) if signal.source == source]
