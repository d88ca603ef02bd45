from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import load_task
from readbench.benchmark.simulators import Ecg, Tanks
from readbench.benchmark.studies import probe_shortcuts


def test_random_is_near_its_class_prior_expectation(private_cache: Path) -> None:
    found = probe_shortcuts(load_task(Ecg(), seed=0, cache=private_cache))
    assert found.ndcg["random"] == pytest.approx(found.chance, abs=0.05)


def test_no_hit_comes_from_the_own_asset_when_patients_are_held_out(private_cache: Path) -> None:
    found = probe_shortcuts(load_task(Ecg(), seed=0, cache=private_cache))
    assert found.own_asset == 0.0
    assert found.own_asset_expected == 0.0


def test_the_time_before_alone_is_probed_where_there_is_any(private_cache: Path) -> None:
    found = probe_shortcuts(load_task(Tanks(), seed=0, cache=private_cache))
    assert found.ndcg["before-level"] == pytest.approx(found.chance, abs=0.1)  # the fault has not begun
    bare = load_task(Tanks(before="none"), seed=0, cache=private_cache)
    queries, corpus = bare.queries.with_context(None), bare.corpus.with_context(None)
    assert np.isnan(probe_shortcuts(replace(bare, queries=queries, corpus=corpus)).ndcg["before-level"])
