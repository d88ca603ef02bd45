"""Faults of an asset searched three ways: who is in which pool, and who never is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readbench.benchmark.protocol import Built, Composition, PoolTask, assets_of, build, compose_pools
from readbench.benchmark.protocol._pools import QUERIES_A_TYPE, deal_folds
from readbench.engine.windows import NORMAL, WindowSet, strings
from readbench.errors import DataError

SETTINGS = Composition(corpus_cap=200)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build("sim_tanks(runs=160)", cache=tmp_path_factory.mktemp("pools"))


@pytest.fixture(scope="module")
def asset(built: Built) -> str:
    """The one with most recordings."""
    groups = {name: len(set(built.windows.groups[built.windows.assets == name])) for name in assets_of(built)}
    return max(groups, key=lambda name: groups[name])


@pytest.fixture(scope="module")
def pools(built: Built, asset: str) -> list[PoolTask]:
    return compose_pools(built, asset, seed=0, settings=SETTINGS)


def windows_of(own: PoolTask) -> tuple[WindowSet, ...]:
    return own.task.corpus, own.task.normals


def test_a_pool_never_holds_a_group_of_its_queries(pools: list[PoolTask]) -> None:
    assert [own.pool for own in pools] == ["other", *["same", "all", "matched"] * 2]
    for own in pools:
        for part in windows_of(own):
            assert not set(own.task.queries.groups) & set(part.groups)


def test_groups_that_span_assets_stay_out_too(built: Built, asset: str) -> None:
    windows = built.windows
    group = str(windows.groups[np.flatnonzero((windows.assets == asset) & (windows.labels > NORMAL))[0]])
    moved = np.flatnonzero((windows.assets != asset) & (windows.labels > NORMAL))[::2]
    groups = windows.groups.tolist()
    for i in moved:
        groups[i] = group
    shared = replace(built, windows=replace(windows, groups=strings(groups, len(windows))))
    found = compose_pools(shared, asset, seed=0, settings=SETTINGS)
    assert any(group in own.task.queries.groups for own in found)
    for own in found:
        for part in windows_of(own):
            assert not set(own.task.queries.groups) & set(part.groups)


def test_pools_hold_the_assets_that_their_names_say(pools: list[PoolTask], asset: str) -> None:
    for own in pools:
        assert set(own.task.queries.assets) == {asset}
        for part in windows_of(own):
            assert (set(part.assets) <= {asset}) == (own.pool == "same")
            assert (asset in part.assets) == (own.pool in {"same", "all"})


def test_all_cases_are_those_of_both(pools: list[PoolTask]) -> None:
    other, *rest = pools
    for same, everything in zip(rest[::3], rest[1::3], strict=True):
        faults = [set(own.task.corpus_at(0).ids) for own in (same, other, everything)]
        assert faults[0] | faults[1] == faults[2]


def test_matched_pools_have_as_many_cases_of_each_type(pools: list[PoolTask]) -> None:
    other = np.bincount(pools[0].task.corpus_at(0).labels, minlength=20)
    for same, matched in zip(pools[1::3], pools[3::3], strict=True):
        counts = [np.bincount(own.task.corpus_at(0).labels, minlength=20) for own in (same, matched)]
        np.testing.assert_array_equal(counts[1], np.minimum(counts[0], other))
        assert set(matched.task.corpus_at(0).ids) <= set(pools[0].task.corpus_at(0).ids)


def test_every_group_with_faults_is_asked_about_once(built: Built, pools: list[PoolTask], asset: str) -> None:
    windows = built.windows
    own = np.flatnonzero((windows.assets == asset) & (windows.labels > NORMAL))
    asked = pools[0].task.queries
    assert len(set(asked.ids)) == len(asked)
    assert (asked.labels > NORMAL).all()
    if all((windows.labels[own] == label).sum() <= QUERIES_A_TYPE for label in set(windows.labels[own].tolist())):
        assert set(asked.groups) == set(windows.groups[own])
    halves = [set(task.task.queries.ids) for task in pools if task.pool == "same"]
    assert halves[0] | halves[1] == set(asked.ids)
    assert not halves[0] & halves[1]
    for half in halves:
        labels = [label for name, label in zip(asked.ids, asked.labels, strict=True) if name in half]
        assert max(np.bincount(labels)) <= QUERIES_A_TYPE


def test_fault_types_with_several_groups_are_in_both_folds(built: Built, asset: str) -> None:
    windows = built.windows
    first, second = deal_folds(windows, asset, seed=0)
    for label in set(windows.labels[[*first, *second]].tolist()) - {NORMAL}:
        groups = {windows.groups[i] for i in (*first, *second) if windows.labels[i] == label}
        assert (label in windows.labels[first] and label in windows.labels[second]) == (len(groups) > 1)


def test_an_asset_of_one_group_has_no_history(built: Built, asset: str) -> None:
    windows = built.windows
    groups = np.where(windows.assets == asset, "one", np.array(windows.groups.tolist()))
    alone = replace(built, windows=replace(windows, groups=strings(groups.tolist(), len(windows))))
    assert [own.pool for own in compose_pools(alone, asset, seed=0, settings=SETTINGS)] == ["other"]


def test_one_machine_is_told_to_be_too_few(built: Built) -> None:
    windows = built.windows
    names = ["simulated" if i % 2 else "rig" for i in range(len(windows))]
    with pytest.raises(DataError, match="faults of 1 asset: two are needed"):
        assets_of(replace(built, windows=replace(windows, assets=strings(names, len(windows)))))
