"""From the motion of the simulated car to the quantities its control units measure and send."""

from __future__ import annotations

import numpy as np

from readbench.data.simulators.can.parameters import (
    FINAL_DRIVE,
    RATIOS,
    REVERSE_RATIO,
    SLIP_STIFFNESS,
    STEP_S,
    TRACK,
    WHEELBASE,
    Array,
    Cars,
    Trips,
)

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
