"""The paper's datasets are there in the shape that its composition table gives, and say what was not verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import PAPER_COMPOSITION, Source, load_task
from readbench.engine.spec import build_source

UNVERIFIED = ("damadics", "exathlon", "hai", "rats40k", "rcaeval", "telecomts", "voraus")
OTHER_CHANNELS = {"petrobras_3w": 7, "rats40k": 1, "rcaeval": 0}
"""Where channels differ from window to window, or follow from the files."""
OTHER_CLASSES = {"ctsr": 0, "rats40k": 21, "rcaeval": 6}
"""Where classes follow from the files, or the official files have more than the paper counts."""


@pytest.mark.parametrize("name", PAPER_COMPOSITION)
def test_the_paper_s_datasets_have_its_shape(name: str) -> None:
    source: Source = build_source(name)
    info, paper = source.info, PAPER_COMPOSITION[name]
    assert str(info.protocol.length or "16-128") == paper.length
    assert len(info.channels) == OTHER_CHANNELS.get(name) or str(len(info.channels)) == paper.channels
    assert len(info.faults) == OTHER_CLASSES.get(name, paper.classes)


@pytest.mark.parametrize("name", UNVERIFIED)
def test_what_was_not_verified_says_so(name: str) -> None:
    source: Source = build_source(name)
    assert source.info.description.endswith("Not verified against the official files.")


def test_a_collection_is_chosen_in_the_grammar() -> None:
    source = build_source("rcaeval(collection=sock-shop-1)")
    assert source.collection == "sock-shop-1"


RATES = {
    "bearings": 20_000.0,
    "damadics": 1.0,
    "dbsherlock": 1.0,
    "exathlon": 1.0,
    "haizhe_auv": 20.0,
    "itu_5gc": 0.1,
    "itsc_motor": 1000.0,
    "lbnl_ahu": 1 / 60,
    "mit_bih": 360.0,
    "nppad": 0.1,
    "petrobras_3w": 1.0,
    "phmap23": 1000.0,
    "rcaeval": 1.0,
    "road": 100.0,
    "robot_failures": 15 / 0.315,
    "sim_ecg": 360.0,
    "sim_tanks": 0.5,
    "skab": 1.0,
    "tennessee_eastman": 1 / 180,
}
UNKNOWN = ("ctsr", "voraus")
"""Series of many origins; and recordings stretched onto one length, whose rate would tell how long they were."""


@pytest.mark.parametrize("name", [*RATES, *UNKNOWN])
def test_the_rate_is_that_of_the_recorder(name: str, real_data: Path) -> None:
    recording = next(iter(build_source(name).recordings(real_data)))
    assert recording.rate == pytest.approx(RATES.get(name, np.nan), nan_ok=True)
    if name in RATES:
        assert recording.rate == pytest.approx(1 / recording.step)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("dbsherlock", 1.0),
        ("itu_5gc", 1.0),
        ("skab", 1.0),
        ("tennessee_eastman", 1.0),
        ("mit_bih", 0.95),
        ("petrobras_3w", 0.75),
    ],
)
def test_real_queries_bring_the_time_before_them(name: str, share: float, real_data: Path, private_cache: Path) -> None:
    queries = load_task(name, seed=0, root=real_data, cache=private_cache).queries
    assert queries.context is not None
    assert queries.context.has_before.mean() >= share
    units = {channel.name: channel.unit for channel in build_source(name).info.channels}
    assert queries[0].units == tuple(units[name] for name in queries[0].channels)
