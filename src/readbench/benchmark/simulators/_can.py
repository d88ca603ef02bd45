"""A simulated car in traffic, seen through its CAN bus: signals in raw units, and six kinds of attack.

`readbench.benchmark.simulators._can_bus` holds cars, drivers and trips, the bus and its messages, and the attacks, with
the references. Here are the motion (`drive`), what the control units measure and send (`quantities`), and the source.

The motion is longitudinal and lateral, with engine, gearbox and temperatures. All runs advance together in steps of
50 ms:

* the driver follows the speed he wants with one foot, on the accelerator or on the brake;
* the engine answers the pedal position *on the bus*, so a forged position moves the car, and the driver brakes;
* the radiator fan follows the coolant temperature on the bus, traction control the wheel speeds on the bus;
* m (1 + f) dv/dt = traction - brakes - drag - rolling resistance - slope, with Gillespie's mass factor f;
* yaw rate follows from steering angle and understeer, wheel speeds from yaw rate and slip (Rajamani);
* coolant is one heat capacity between the engine's waste heat and the radiator behind its thermostat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import SourceInfo, read_info
from readbench.benchmark.simulators._base import RunBatch, Simulator, quantise
from readbench.benchmark.simulators._can_bus import (
    AIR_DENSITY,
    BRAKE_LIMIT,
    BUS,
    CHANNELS,
    CHECK_COLUMNS,
    COOLANT,
    DRAG_AREA,
    DRIVELINE,
    FINAL_DRIVE,
    GRAVITY,
    PEDAL,
    RATIOS,
    REVERSE_RATIO,
    SLIP_STIFFNESS,
    STEERING_RATIO,
    STEP_S,
    TRACK,
    UNDERSTEER,
    UPSHIFT,
    WHEELBASE,
    WHEELS,
    Array,
    AttackPlan,
    Cars,
    Flags,
    Trips,
    check,
    count,
    draw_cars,
    draw_plan,
    draw_trips,
    encode,
    forge,
    fuzz,
    hold,
)
from readbench.engine.registry import SOURCES

STATES = (
    "speed",
    "acceleration",
    "direction",
    "pedal_foot",
    "pedal",
    "brake",
    "torque",
    "engine_rpm",
    "gear",
    "shifting",
    "traction",
    "steering",
    "yaw_rate",
    "coolant",
    "coolant_bus",
    "oil",
    "gearbox_oil",
    "fan",
    "fuel_rate",
    "display",
)
"""What `drive` records, in this order."""

PEDAL_LAG, BRAKE_LAG, TORQUE_LAG, STEER_LAG = 0.25, 0.20, 0.15, 0.40  # s; typical of foot, hydraulics, engine, hands
SHIFT_STEPS = 8  # 0.4 s, a conventional automatic
PEAK_RPM, WIDTH_RPM = 3800.0, 5200.0  # torque parabola of a naturally aspirated engine
FRICTION = 18.0  # N m plus 0.004 per rpm: motored friction of a 2-litre engine (Heywood, ch. 13)
HEAT_CAPACITY = 60e3  # J/K: coolant and the block around it
THERMOSTAT = (88.0, 98.0)  # degrees Celsius, begins to open and fully open
FAN_ON = (97.0, 106.0)  # degrees Celsius, first and full speed
CORNERING = 2.5  # m/s2 of lateral acceleration that drivers accept
DISPLAY_LAG, OVERREAD = 0.3, 1.03  # s; speedometers never show too little (UN Regulation 39)
PETROL = 43e6 * 0.745  # J per litre


@dataclass(eq=False)
class _Car:
    """State of the cars, (B,) each; units as in `STATES` (SI, degrees Celsius, rpm)."""

    speed: Array
    reference: Array
    direction: Array
    foot: Array
    stuck: Array
    brake: Array
    torque: Array
    rpm: Array
    gear: NDArray[np.intp]
    shifting: Array
    bend: Array
    coolant: Array
    oil: Array
    gearbox_oil: Array
    fan: Array
    display: Array


class _Forged(NamedTuple):
    """(L, B) whether the engine, traction control, and fan and gauge see forged values."""

    pedal: Flags
    wheels: Flags
    coolant: Flags


def drive(cars: Cars, trips: Trips, plan: AttackPlan) -> dict[str, Array]:
    """Drive all runs; returns (L, B) per name in `STATES`."""
    car = _start(cars, trips)
    steps, runs = trips.aim.shape
    record = np.empty((len(STATES), steps, runs))
    forged = _Forged(plan.on(PEDAL), plan.on(WHEELS), plan.on(COOLANT))
    for t in range(steps):
        _step(cars, trips, plan, _Forged(*(flags[t] for flags in forged)), car, t, record[:, t])
    return dict(zip(STATES, record, strict=True))


def engine_torque(peak: Array, rpm: Array) -> Array:
    """Full-load torque in N m: a parabola around 3800 rpm."""
    full: Array = peak * np.maximum(1 - ((rpm - PEAK_RPM) / WIDTH_RPM) ** 2, 0.2)
    return full


def _start(cars: Cars, trips: Trips) -> _Car:
    """Rolling at the wanted speed in the fitting gear, temperatures as drawn."""
    zero = np.zeros_like(trips.start)
    gear = (trips.start[:, None] > UPSHIFT).sum(axis=1)
    return _Car(
        speed=trips.start.copy(),
        reference=trips.start.copy(),
        direction=np.where(trips.aim[0] < 0, -1.0, 1.0),
        foot=zero + 0.1,
        stuck=zero + 0.1,
        brake=zero.copy(),
        torque=zero + 20.0,
        rpm=cars.idle + 0.0,
        gear=gear,
        shifting=zero,
        bend=trips.bend[0] * 0.0,
        coolant=trips.coolant.copy(),
        oil=trips.ambient + 0.9 * (trips.coolant - trips.ambient),
        gearbox_oil=trips.ambient + 0.7 * (trips.coolant - trips.ambient),
        fan=zero.copy(),
        display=OVERREAD * trips.start,
    )


def _step(cars: Cars, trips: Trips, plan: AttackPlan, forged: _Forged, car: _Car, t: int, out: Array) -> None:
    """Advance by 50 ms and record the states."""
    ratio = np.where(car.direction > 0, RATIOS[car.gear], REVERSE_RATIO) * FINAL_DRIVE
    inertia = cars.mass * (1.04 + 0.0025 * ratio**2)
    resistance = 0.5 * AIR_DENSITY * DRAG_AREA * car.speed**2 + cars.mass * GRAVITY * (
        cars.rolling * np.minimum(car.speed / 0.2, 1.0) + car.direction * trips.grade[t]
    )
    full = engine_torque(cars.torque, car.rpm)
    # The torque converter multiplies torque at low speed.
    per_torque = ratio * DRIVELINE / cars.radius * (1 + 0.9 * np.clip(1 - car.speed / 6.0, 0.0, 1.0))
    _feet(trips, car, t, (inertia, resistance, full * per_torque), cars.mass)

    pedal = np.where(forged.pedal, np.where(plan.stuck, car.stuck, plan.pedal), car.foot)
    car.stuck = np.where(forged.pedal, car.stuck, np.maximum(car.foot, 0.15))
    _gearbox(car, pedal)

    friction = FRICTION + 0.004 * car.rpm
    limit = np.where(forged.wheels, plan.torque_left, 1.0)
    wanted = pedal * full * limit - friction * (1 - pedal) * np.clip((car.speed - 1.5) / 2, 0.0, 1.0)
    creep = 25.0 * np.clip(1 - car.speed / 2.0, 0.0, 1.0) * (car.brake < 0.05)
    car.torque += STEP_S / TORQUE_LAG * (wanted + creep - car.torque)
    traction = car.torque * per_torque * np.where(car.shifting > 0, 0.5, 1.0)

    before = car.speed
    pull = traction - resistance - car.brake * BRAKE_LIMIT * cars.mass * np.minimum(car.speed / 0.1 + 0.2, 1.0)
    car.speed = np.maximum(car.speed + STEP_S * pull / inertia, 0.0)
    turbine = car.speed / cars.radius * ratio * 60 / (2 * np.pi)
    flare = np.maximum(cars.idle, turbine) + 900 * pedal * np.clip(1 - car.speed / 8, 0.0, 1.0)
    car.rpm += STEP_S / 0.2 * (np.clip(flare, 0, 6500) - car.rpm)

    car.bend += STEP_S / STEER_LAG * (_held(trips.bend[t], car.speed) - car.bend)
    angle = car.bend * (WHEELBASE + UNDERSTEER * car.speed**2)
    bus_coolant = np.where(forged.coolant, plan.coolant, car.coolant)
    fuel = _heat(cars, trips.ambient, car, bus_coolant, friction)
    car.display += STEP_S / DISPLAY_LAG * (OVERREAD * car.speed - car.display)
    out[:] = (
        car.speed,
        (car.speed - before) / STEP_S * car.direction,
        car.direction,
        car.foot,
        pedal,
        car.brake,
        car.torque,
        car.rpm,
        np.where(car.direction > 0, car.gear + 1, -1),
        car.shifting > 0,
        traction,
        np.degrees(angle) * STEERING_RATIO,
        car.speed * car.direction * car.bend,
        car.coolant,
        bus_coolant,
        car.oil,
        car.gearbox_oil,
        car.fan,
        fuel,
        car.display,
    )


def _held(bend: Array, speed: Array) -> Array:
    """Curvature no sharper than comfort allows at this speed."""
    sharpest = CORNERING / np.maximum(speed, 3.0) ** 2
    return np.clip(bend, -sharpest, sharpest)


def _feet(trips: Trips, car: _Car, t: int, forces: tuple[Array, Array, Array], mass: Array) -> None:
    """The driver: direction, wanted speed, then accelerator or brake; `forces` = inertia, resistance, full traction."""
    inertia, resistance, full = forces
    wants = np.where(trips.aim[t] < 0, -1.0, 1.0)
    standing = (car.speed < 0.1) & (car.reference < 0.1)
    car.direction = np.where(standing & (trips.aim[t] != 0), wants, car.direction)
    aim = np.where(wants == car.direction, np.abs(trips.aim[t]), 0.0)
    change = np.clip(aim - car.reference, -trips.brakes * STEP_S, trips.eager * STEP_S)
    car.reference += change
    moving = np.minimum(car.reference, 1.0)
    wish = trips.gain * (car.reference - car.speed) + change / STEP_S + trips.unrest[t] * moving
    need = inertia * wish + resistance
    stop = car.reference < 0.1
    foot = np.where(stop, 0.0, np.clip(need / full, 0.0, 1.0))
    brake = np.where(stop & (car.speed < 0.5), 0.25, np.clip(-(need + 0.15 * mass) / (BRAKE_LIMIT * mass), 0.0, 0.9))
    car.foot += STEP_S / PEDAL_LAG * (foot - car.foot)
    car.brake += STEP_S / BRAKE_LAG * (brake - car.brake)


def _gearbox(car: _Car, pedal: Array) -> None:
    """Shift by speed and pedal, with hysteresis, one gear at a time."""
    car.shifting = np.maximum(car.shifting - 1, 0.0)
    up = car.speed > UPSHIFT[car.gear] * (0.85 + 0.9 * pedal)
    lower = np.where(car.gear > 0, UPSHIFT[car.gear - 1], 0.0)
    down = car.speed < 0.75 * lower * (0.85 + 0.9 * pedal)
    change = np.where(car.shifting > 0, 0, up.astype(np.intp) - (down & ~up))
    car.gear = np.clip(car.gear + change, 0, len(RATIOS) - 1)
    car.shifting = np.where(change != 0, SHIFT_STEPS, car.shifting)


def _heat(cars: Cars, ambient: Array, car: _Car, bus_coolant: Array, friction: Array) -> Array:
    """Temperatures and fan after the step; returns the fuel rate in litres per hour.

    Willans' line: fuel power is work and friction over 0.4; a third of it heats the coolant (Heywood, ch. 12).
    """
    power = (np.maximum(car.torque, 0.0) + friction) * car.rpm * 2 * np.pi / 60 / 0.4
    opened = np.clip((car.coolant - THERMOSTAT[0]) / (THERMOSTAT[1] - THERMOSTAT[0]), 0.0, 1.0)
    fan = np.clip((bus_coolant - FAN_ON[0]) / (FAN_ON[1] - FAN_ON[0]), 0.0, 1.0)
    car.fan += STEP_S / 1.0 * (fan - car.fan)
    radiator = 15.0 + opened * cars.cooling * (1.0 + 0.12 * car.speed + 2.0 * car.fan)
    car.coolant += STEP_S / HEAT_CAPACITY * (power / 3 - radiator * (car.coolant - ambient))
    car.oil += STEP_S / 60.0 * (car.coolant + 4.0 * power / 4e4 - car.oil)
    car.gearbox_oil += STEP_S / 120.0 * (0.85 * car.coolant - car.gearbox_oil)
    litres: Array = power / PETROL * 3600
    return litres


HOT = 115.0
"""Degrees Celsius at which the temperature lamp comes on."""
BRAKE_BAR = 90.0
"""Pressure of a full braking in bar."""


def quantities(cars: Cars, trips: Trips, motion: dict[str, Array]) -> dict[str, Array]:
    """All that the bus carries, (L, B) per name; `motion` is what `drive` recorded."""
    return motion | _wheels(cars, motion) | _engine(trips, motion) | _chassis(motion) | _body(trips, motion)


def _wheels(cars: Cars, motion: dict[str, Array]) -> dict[str, Array]:
    """Wheel speeds in m/s: outer wheels are faster in a bend, driven (front) ones when they pull."""
    speed, turn = motion["speed"] * motion["direction"], motion["yaw_rate"] * TRACK / 2
    bend = motion["yaw_rate"] / np.where(np.abs(speed) < 0.5, 0.5, np.abs(speed))
    front = (1 + 0.5 * (bend * WHEELBASE) ** 2) * (1 + motion["traction"] / SLIP_STIFFNESS)
    rear_axle = motion["speed"] * 60 / (2 * np.pi * cars.radius)
    ratio = np.where(motion["gear"] < 0, REVERSE_RATIO, RATIOS[np.abs(motion["gear"]).astype(np.intp) - 1])
    return {
        "wheel_fl": np.abs((speed - turn) * front),
        "wheel_fr": np.abs((speed + turn) * front),
        "wheel_rl": np.abs(speed - turn),
        "wheel_rr": np.abs(speed + turn),
        "speed_kmh": 3.6 * motion["speed"],
        "speed_mph": motion["speed"] / 0.44704,
        "display_kmh": 3.6 * motion["display"],
        "output_rpm": rear_axle * FINAL_DRIVE,
        "turbine_rpm": rear_axle * FINAL_DRIVE * ratio,
    }


def _engine(trips: Trips, motion: dict[str, Array]) -> dict[str, Array]:
    """Air, load and temperatures around the engine."""
    load = np.clip(motion["torque"] / 220, 0.0, 1.0)
    warm = np.clip((motion["coolant"] - 20) / 70, 0.0, 1.0)
    return {
        # The throttle opens more than in proportion at first; a cold engine idles on more air.
        "throttle": np.sqrt(motion["pedal"]) * 0.8 + 0.06 - 0.03 * warm,
        "manifold_kpa": 28 + 68 * np.sqrt(load),
        "intake_c": trips.ambient + 12 - 0.2 * np.minimum(motion["speed"], 30),
        "torque_request": 220 * motion["pedal"],
        "ambient": trips.ambient + np.zeros_like(load),
        "hot_lamp": (motion["coolant_bus"] > HOT) * 1.0,
    }


def _chassis(motion: dict[str, Array]) -> dict[str, Array]:
    """Brakes, steering, inertial sensors, selector lever."""
    rate = np.diff(motion["steering"], axis=0, prepend=motion["steering"][:1]) / STEP_S
    reversing = (motion["direction"] < 0) * 1.0
    return {
        "brake_bar": BRAKE_BAR * motion["brake"],
        "brake_travel": np.sqrt(motion["brake"]),
        "brake_lamp": (motion["brake"] > 0.02) * 1.0,
        "antilock": (motion["brake"] > 0.6) * 1.0,
        "steering_rate": rate,
        "steering_effort": motion["steering"] * 0.02 * np.minimum(motion["speed"] / 10, 1.0),
        "lateral": motion["yaw_rate"] * motion["speed"] * motion["direction"],
        "yaw_deg": np.degrees(motion["yaw_rate"]),
        "selector": np.where(motion["direction"] < 0, 1.0, 3.0),
        "reversing": reversing,
        "reverse_lamp": reversing,
    }


def _body(trips: Trips, motion: dict[str, Array]) -> dict[str, Array]:
    """Lights, climate, energy and tyres: mostly constant over a run."""
    time = np.arange(len(trips.aim))[:, None] * STEP_S
    still, habit = np.zeros_like(trips.aim), trips.habits.T
    way = np.cumsum(motion["speed"], axis=0) * STEP_S
    blinks = np.floor(time / 0.5) % 2
    consumers = 0.2 + 0.3 * habit[0] + 0.3 * habit[1]
    return {
        "trip_m": 25000 * habit[2] + way,
        # Rear sonar: echoes of what stands behind come and go with the way; silent (255) when driving forwards.
        "rear_gap": np.where(motion["direction"] < 0, 40 + 60 * np.abs(np.sin(way / 5 + habit[3])), 255.0),
        "turn_left": (motion["steering"] > 60) * blinks,
        "turn_right": (motion["steering"] < -60) * blinks,
        "lights": still + np.floor(3 * habit[0]),
        "wiper": still + np.floor(3 * np.maximum(habit[4] - 0.5, 0.0)),
        "cabin_c": 22 + (trips.ambient - 22) * np.exp(-(60 + time) / 200) * (1 - habit[5]),
        "blower": still + habit[1],
        "compressor": still + (trips.ambient > 18) * 1.0,
        "battery_v": 14.2 - 0.5 * consumers - 0.2 * (motion["engine_rpm"] < 900),
        "generator": consumers + 0.1 * (motion["engine_rpm"] < 900),
        "fuel_level": 15 + 80 * habit[6] - np.cumsum(motion["fuel_rate"], axis=0) * STEP_S / 3600,
        "cruise": still + ((trips.aim > 20) & (habit[7] > 0.5)) * 2.0,
        "tyre": still + 235.0,
    }


@SOURCES.register("sim_can")
@dataclass(frozen=True)
class Can(Simulator):
    """Runs of a car on the road, seen on its bus, undisturbed or under attack.

    `difficulty` divides the distance of forged values from the truth and the rate of fuzzing (0: double, 2: two
    thirds), and scales the differences between cars.

    >>> next(Can(runs=1).recordings()).values.shape
    (68, 768)
    """

    runs: int = 512
    seed: int = 42

    ASSETS: ClassVar[int] = 8
    RUN_LENGTH: ClassVar[int] = 768
    STEP: ClassVar[float] = STEP_S
    MIX: ClassVar[tuple[int, ...]] = (15, 10, 7, 8, 6, 3, 7)
    INFO: ClassVar[SourceInfo] = read_info(__name__, "sim_can", channels=CHANNELS)

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """See `Simulator.simulate`."""
        rng, spread = batch.rng, 0.6 + 0.4 * self.difficulty
        cars = draw_cars(self.asset_rng(), self.ASSETS, len(CHANNELS), spread).take(batch.asset)
        trips = draw_trips(rng, len(batch), self.RUN_LENGTH)
        plan = draw_plan(rng, batch.fault, trips, self.RUN_LENGTH, self.difficulty)
        phases = rng.integers(0, 256, (len(batch), len(BUS))).astype(np.float64)
        motion = drive(cars, trips, plan)
        raw = encode(rng, quantities(cars, trips, motion), cars.offsets)
        count(raw, phases)
        honest = check(raw)
        forge(plan, raw, motion["speed"])
        raw[:, CHECK_COLUMNS] = np.where(plan.careless[:, None, None], honest, check(raw))
        fuzz(rng, plan, raw)
        hold(raw, phases)
        labels = np.where(plan.active, batch.fault, 0).T.astype(np.int32)
        return quantise(raw, np.ones(len(CHANNELS))), labels
