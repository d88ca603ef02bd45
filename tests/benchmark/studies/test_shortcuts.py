from __future__ import annotations

from pathlib import Path

import pytest

from readbench.benchmark.protocol import load_task
from readbench.benchmark.simulators import Ecg
from readbench.benchmark.studies import probe_shortcuts


def test_random_is_near_its_class_prior_expectation(private_cache: Path) -> None:
    found = probe_shortcuts(load_task(Ecg(), seed=0, cache=private_cache))
    assert found.ndcg["random"] == pytest.approx(found.chance, abs=0.05)


def test_no_hit_comes_from_the_own_asset_when_patients_are_held_out(private_cache: Path) -> None:
    found = probe_shortcuts(load_task(Ecg(), seed=0, cache=private_cache))
    assert found.own_asset == 0.0
    assert found.own_asset_expected == 0.0
