"""Faults of one long series stand alone after cutting, and none is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from readbench.benchmark.sources._episodes import Episode, runs, stretches


def episodes_of(active: list[bool]) -> list[Episode]:
    return [Episode(str(k), 1 + k % 3, *run) for k, run in enumerate(runs(np.array(active, bool)))]


@given(st.lists(st.booleans(), max_size=60))
def test_runs_are_those_that_a_loop_finds(active: list[bool]) -> None:
    found: list[list[int]] = []
    for step, on in enumerate(active):
        if on and (step == 0 or not active[step - 1]):
            found.append([step, step])
        if on:
            found[-1][1] = step + 1
    assert runs(np.array(active, bool)) == [tuple(run) for run in found]


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_stretches_tile_the_series_and_hold_one_whole_fault_each(active: list[bool]) -> None:
    episodes = episodes_of(active)
    parts = list(stretches(len(active), episodes))
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == len(active)
    assert [part.episode for part in parts if part.episode] == episodes
    labels = np.concatenate([part.labels() for part in parts])
    expected = np.zeros(len(active), int)
    for episode in episodes:
        expected[episode.start : episode.stop] = episode.label
    np.testing.assert_array_equal(labels, expected)
    for part in parts:
        assert len(set(part.labels().tolist()) - {0}) == (part.episode is not None)


def test_the_cut_is_half_way_between_two_faults() -> None:
    parts = list(stretches(100, [Episode("a", 1, 10, 20), Episode("b", 2, 60, 61)]))
    assert [(part.start, part.stop) for part in parts] == [(0, 40), (40, 100)]
