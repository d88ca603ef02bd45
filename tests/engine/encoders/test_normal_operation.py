from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from readbench.engine.encoders._channels import COMPRESSION_POWER, DEVIATION_OFFSET, MIN_VECTORS, NormalOperation
from readbench.engine.protocols import Vectors

RNG = np.random.default_rng(0)
NAMES = np.array(["pump", "valve"] * 30)
USUAL = (RNG.normal(size=(60, 16)) + np.where(NAMES == "pump", 5.0, -2.0)[:, None]).astype(np.float32)
NORMAL = NormalOperation.of(USUAL, NAMES)
THREE = np.full(3, 3)


def slowly(usual: Vectors, names: NDArray[np.str_], vector: Vectors, name: str, channels: int) -> list[float]:
    """The departure of one vector of a known channel, number by number."""
    own = [row for row, other in zip(usual.tolist(), names, strict=True) if other == name]
    residual = []
    for d, value in enumerate(vector.tolist()):
        column = [row[d] for row in own]
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((number - mean) ** 2 for number in column) / len(column))
        residual.append((value - mean) / (deviation + DEVIATION_OFFSET))
    away = sum(number**2 for number in residual) / len(residual)
    power = COMPRESSION_POWER * math.log10(1 + channels)
    return [number / math.sqrt(away + 1e-6) * math.log(1 + away) ** power for number in residual]


def loudness(vector: Vectors, name: str, channels: int = 30) -> float:
    return float(np.linalg.norm(NORMAL.departures(vector[None], np.array([name]), np.array([channels]))))


def test_departures_equal_those_of_a_slow_loop() -> None:
    vectors, names = (3 * RNG.normal(size=(6, 16))).astype(np.float32), np.array(["valve", "pump"] * 3)
    counts = np.array([1, 2, 3, 20, 50, 700])
    expected = [
        slowly(USUAL, NAMES, vector, str(name), int(count))
        for vector, name, count in zip(vectors, names, counts, strict=True)
    ]
    np.testing.assert_allclose(NORMAL.departures(vectors, names, counts), expected, rtol=1e-4, atol=1e-5)


def test_usual_channels_are_quieter_where_there_are_many() -> None:
    contrast = [loudness(USUAL[0] + 5, "pump", count) / loudness(USUAL[0], "pump", count) for count in (1, 5, 50)]
    assert contrast == sorted(contrast)
    assert contrast[2] > 3 * contrast[0]


def test_a_channel_as_usual_weighs_less_than_one_that_departs() -> None:
    usual = max(loudness(vector, str(name)) for vector, name in zip(USUAL, NAMES, strict=True))
    assert loudness(USUAL[0] + 5, "pump") > 2 * usual
    assert loudness(USUAL[0] + 50, "pump") > loudness(USUAL[0] + 5, "pump")


def test_how_far_a_channel_went_counts_with_its_logarithm_only() -> None:
    assert loudness(USUAL[0] + 5000, "pump") < 100 * loudness(USUAL[0] + 5, "pump")


def test_each_channel_is_measured_by_its_own_normal_operation() -> None:
    pump = USUAL[NAMES == "pump"][0]
    assert loudness(pump, "valve") > 3 * loudness(pump, "pump")


def test_an_unknown_channel_is_measured_by_the_mean_of_the_known_ones() -> None:
    mean = NormalOperation(("any",), NORMAL.mean.mean(axis=0)[None], NORMAL.deviation.mean(axis=0)[None])
    np.testing.assert_array_equal(
        NORMAL.departures(USUAL[:3], np.array(["new"] * 3), THREE),
        mean.departures(USUAL[:3], np.array(["any"] * 3), THREE),
    )


def test_a_channel_seen_too_rarely_is_unknown() -> None:
    names = np.array(["often"] * MIN_VECTORS + ["rare"] * (MIN_VECTORS - 1))
    assert NormalOperation.of(USUAL[: len(names)], names).names == ("often",)


def test_without_any_known_channel_vectors_stay_as_they_are() -> None:
    nothing = NormalOperation.of(USUAL[:0], NAMES[:0])
    np.testing.assert_array_equal(nothing.departures(USUAL, NAMES, np.full(len(USUAL), 2)), USUAL)


def test_dimensions_that_never_moved_give_finite_departures() -> None:
    still = NormalOperation.of(np.ones((MIN_VECTORS, 4), np.float32), np.array(["a"] * MIN_VECTORS))
    found = still.departures(np.array([[1, 1, 1, 1], [1, 1, 1, 9]], np.float32), np.array(["a", "a"]), THREE[:2])
    assert np.isfinite(found).all()
    assert not found[0].any()


def test_the_fingerprint_follows_names_and_numbers() -> None:
    renamed = NormalOperation(("pump", "value"), NORMAL.mean, NORMAL.deviation)
    moved = NormalOperation(NORMAL.names, NORMAL.mean + 1, NORMAL.deviation)
    wider = NormalOperation(NORMAL.names, NORMAL.mean, NORMAL.deviation + 1)
    same = NormalOperation.of(USUAL, NAMES)
    assert len({usual.fingerprint() for usual in (NORMAL, renamed, moved, wider)}) == 4
    assert same.fingerprint() == NORMAL.fingerprint()
