"""Simulated tanks and services with a leak that can be switched on, for each hazard that an audit looks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from readbench.benchmark.protocol import Built, Composition, Recording, Task, compose_task, windows_of
from readbench.benchmark.simulators import Service, Simulator, Tanks
from readbench.engine.windows import NORMAL, WindowSet, concatenate

SMALL = Composition(corpus_cap=250, query_cap=60, rho=(0,), normals_cap=100)
RNG = 17
PLANTED_SHARE = 0.8
"""Recordings that carry a planted leak; the others carry that of a class drawn at random."""


def built_of(source: Simulator, leak: str = "") -> Built:
    """All windows of a simulator, with a leak where one is named."""
    rng = np.random.default_rng([RNG, source.seed])
    info = source.info
    parts = []
    for recording in plant_recordings(source.recordings(), leak, rng):
        windows = windows_of(recording, info.protocol, info.classes)
        if windows is not None:
            parts.append(WINDOW_LEAKS[leak](windows, rng) if leak in WINDOW_LEAKS else windows)
    return Built(info, concatenate(parts), {}, Path())


def task_of(source: Simulator, leak: str = "", seed: int = 0) -> tuple[Built, Task]:
    built = built_of(source, leak)
    return built, compose_task(built, seed=seed, settings=SMALL)


def small_tanks(seed: int) -> Simulator:
    return Tanks(runs=192, seed=seed)


def small_service(seed: int) -> Simulator:
    return Service(runs=192, seed=seed)


def plant_recordings(recordings: Iterator[Recording], leak: str, rng: np.random.Generator) -> Iterator[Recording]:
    """The recordings, with what a leak makes of them; a copy comes after its original."""
    for recording in recordings:
        told = int(recording.labels.max())
        if rng.random() > PLANTED_SHARE:
            told = int(rng.integers(1, 10))
        yield RECORDING_LEAKS[leak](recording, told, rng) if leak in RECORDING_LEAKS else recording
        if leak in COPIES and recording.labels.max() > NORMAL and rng.random() < 0.25:
            yield COPIES[leak](recording, rng)


def drop_channel(recording: Recording, told: int, rng: np.random.Generator) -> Recording:  # noqa: ARG001
    kept = np.flatnonzero(np.arange(len(recording.channels)) != told % len(recording.channels))
    channels = tuple(recording.channels[i] for i in kept)
    return replace(recording, values=recording.values[kept], channels=channels)


def shift_before(recording: Recording, told: int, rng: np.random.Generator) -> Recording:  # noqa: ARG001
    """The session shows in the rows before the fault, and in no other."""
    values = recording.values.copy()
    onset = int(np.argmax(recording.labels > NORMAL)) if recording.labels.any() else values.shape[1]
    values[told % len(values), :onset] += 20 * values.std(axis=1)[told % len(values)]
    return replace(recording, values=values)


def record_in_sessions(recording: Recording, told: int, rng: np.random.Generator) -> Recording:
    return replace(recording, start=86400.0 * told + float(rng.uniform(0, 3600)))


def scatter_sessions(recording: Recording, told: int, rng: np.random.Generator) -> Recording:  # noqa: ARG001
    return replace(recording, start=float(rng.uniform(0, 1e6)))


def name_asset(recording: Recording, told: int, rng: np.random.Generator) -> Recording:  # noqa: ARG001
    return replace(recording, asset=f"machine-{told}")


def shift_level(recording: Recording, told: int, rng: np.random.Generator) -> Recording:  # noqa: ARG001
    values = recording.values.copy()
    values[told % len(values)] += 20 * values.std(axis=1)[told % len(values)]
    return replace(recording, values=values)


def cut_short(windows: WindowSet, rng: np.random.Generator) -> WindowSet:
    kept = [256 - 10 * int(label) - int(rng.integers(5)) for label in windows.labels]
    values = [windows.values(i)[:, :length] for i, length in enumerate(kept)]
    return rebuild(windows, values)


def begin_late(windows: WindowSet, rng: np.random.Generator) -> WindowSet:
    """Faults of a class are injected at a time of their own."""
    late = [1000 * int(label) + int(rng.integers(1000)) for label in windows.labels]
    names = [name.rpartition("@") for name in windows.ids.tolist()]
    ids = [f"{recording}@{int(step) + more}" for (recording, _, step), more in zip(names, late, strict=True)]
    rate = 1.0 if windows.context is None else windows.context.rates
    return replace(windows, ids=np.array(ids, windows.ids.dtype), times=windows.times + np.array(late) / rate)


def mark_first_row(windows: WindowSet, rng: np.random.Generator) -> WindowSet:
    values = [windows.values(i).copy() for i in range(len(windows))]
    for own, label in zip(values, windows.labels.tolist(), strict=True):
        own[:, 0] = np.median(own, axis=1) + rng.normal(0, 0.01, len(own))
        own[label % len(own), 0] += 10 * (own.std() + 1)
    return rebuild(windows, values)


def rebuild(windows: WindowSet, values: list[np.ndarray]) -> WindowSet:  # type: ignore[type-arg]
    columns = {name: getattr(windows, name) for name in ("labels", "classes", "times", "spans", "context")}
    names = {name: getattr(windows, name).tolist() for name in ("ids", "groups", "assets")}
    return WindowSet.from_arrays(values, channels=windows.channel_sets[0], **columns, **names)


def copy_elsewhere(recording: Recording, rng: np.random.Generator) -> Recording:
    noise = rng.normal(0, 1e-3, recording.values.shape) * recording.values.std(axis=1, keepdims=True)
    return replace(
        recording, values=recording.values + noise, id=f"{recording.id}-copy", group=f"{recording.group}-copy"
    )


def copy_as_other(recording: Recording, rng: np.random.Generator) -> Recording:
    twin = copy_elsewhere(recording, rng)
    other = 1 + int(recording.labels.max()) % 7
    return replace(twin, labels=np.where(twin.labels > NORMAL, other, NORMAL).astype(np.int32), group=recording.group)


RECORDING_LEAKS: dict[str, Callable[[Recording, int, np.random.Generator], Recording]] = {
    "presence": drop_channel,
    "before": shift_before,
    "session": record_in_sessions,
    "no session": scatter_sessions,
    "asset": name_asset,
    "level": shift_level,
}
WINDOW_LEAKS: dict[str, Callable[[WindowSet, np.random.Generator], WindowSet]] = {
    "length": cut_short,
    "position": begin_late,
    "crop": mark_first_row,
}
COPIES: dict[str, Callable[[Recording, np.random.Generator], Recording]] = {
    "copies": copy_elsewhere,
    "twins": copy_as_other,
}
LEAKS = ("presence", "length", "before", "position", "session", "asset", "crop")
"""Leaks that a probe is to call a hazard."""


def count_alarms(seeds: int) -> None:
    """Audit clean simulators with so many seeds, and print which hazards were called; for the page on audits."""
    from readbench.benchmark.audit import audit_task  # noqa: PLC0415 - only here

    for make in (small_tanks, small_service):
        alarms = {}
        for seed in range(seeds):
            built, task = task_of(make(seed), "no session", seed)
            if hazards := [one.name for one in audit_task(built, task).findings if one.verdict == "hazard"]:
                alarms[seed] = hazards
            print(f"{make.__name__}: seed {seed}, alarms so far {alarms}", flush=True)  # noqa: T201 - its output
        print(f"{make.__name__}: {len(alarms)} of {seeds} seeds raise an alarm: {alarms}", flush=True)  # noqa: T201


if __name__ == "__main__":
    count_alarms(int(sys.argv[1]))
