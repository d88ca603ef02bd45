from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition, Protocol, Task, load_task
from readbench.benchmark.protocol._split import count_held_out, split_by_group
from readbench.errors import DataError
from tests.benchmark.protocol.fakes import LENGTH, FakeSource, info, recording, source

SHARE = 0.2
NATIVE = Protocol(length=LENGTH, native_split=True)


@dataclass(frozen=True, eq=False)
class Windows:
    """(N,) labels and group codes of windows."""

    labels: NDArray[np.int32]
    groups: NDArray[np.intp]

    def classes_of(self, group: int) -> set[int]:
        """Faults that a group holds."""
        return {int(label) for label in self.labels[self.groups == group] if label > 0}

    def holders(self) -> dict[int, list[int]]:
        """Groups by the fault they hold; groups without a fault are under 0."""
        holders: dict[int, list[int]] = {}
        for group in range(int(self.groups.max()) + 1):
            for label in self.classes_of(group) or {0}:
                holders.setdefault(label, []).append(group)
        return holders


def windows(holds: Sequence[Sequence[int]], seed: int = 0) -> Windows:
    """One group for each list of labels, the windows of all groups in mixed order."""
    pairs = [(label, group) for group, labels in enumerate(holds) for label in labels]
    order = np.random.default_rng(seed).permutation(len(pairs))
    mixed = np.array(pairs)[order]
    return Windows(mixed[:, 0].astype(np.int32), mixed[:, 1].astype(np.intp))


@st.composite
def one_fault_each(draw: st.DrawFn) -> Windows:
    """Groups of a single fault, or none, with normal windows beside it."""
    group = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2))
    drawn = draw(st.lists(group, min_size=1, max_size=25))
    return windows([[label] * count + [0] * normals for label, count, normals in drawn], draw(st.integers(0, 9)))


@st.composite
def several_faults_each(draw: st.DrawFn) -> Windows:
    """Few groups, at least one of them with two faults."""
    drawn = draw(st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=7))
    return windows([[1, 2], *map(sorted, drawn)], draw(st.integers(0, 9)))


def split(data: Windows, seed: int = 0, share: float = SHARE) -> NDArray[np.bool_]:
    return split_by_group(data.labels, data.groups, share=share, seed=seed).test


def held_groups(data: Windows, test: NDArray[np.bool_]) -> set[int]:
    return set(data.groups[test].tolist())


def rounded(count: int, share: Fraction) -> int:
    """At least one, halves up; none of a single group."""
    return 0 if count < 2 else max(1, int(share * count + Fraction(1, 2)))


def assert_groups_do_not_straddle(data: Windows, test: NDArray[np.bool_]) -> None:
    for group in set(data.groups.tolist()):
        assert len(set(test[data.groups == group].tolist())) == 1, f"group {group} is on both sides"


def assert_held_out_share(data: Windows, test: NDArray[np.bool_], share: Fraction = Fraction(1, 5)) -> None:
    held = held_groups(data, test)
    for label, groups in data.holders().items():
        assert len(held.intersection(groups)) == rounded(len(groups), share), f"class {label}"


def assert_single_groups_stay(data: Windows, test: NDArray[np.bool_]) -> None:
    held = held_groups(data, test)
    assert not [groups for label, groups in data.holders().items() if label and len(groups) == 1 and groups[0] in held]


def one_sided(data: Windows, held: set[int]) -> int:
    """Faults of two groups or more that are on one side only."""
    several = [set(groups) for label, groups in data.holders().items() if label and len(groups) >= 2]
    return sum(1 for groups in several if groups <= held or not groups & held)


def assert_as_many_on_both_sides_as_possible(data: Windows, test: NDArray[np.bool_]) -> None:
    """No choice of the right number of movable groups leaves fewer faults on one side."""
    sole = {groups[0] for label, groups in data.holders().items() if label and len(groups) == 1}
    movable = [group for group in range(int(data.groups.max()) + 1) if group not in sole]
    count = rounded(len(movable), Fraction(1, 5))
    held = held_groups(data, test)
    assert len(held) == count
    fewest = min(one_sided(data, set(choice)) for choice in combinations(movable, count))
    assert one_sided(data, held) == fewest


def assert_sides_are_native(task: Task, made: FakeSource) -> None:
    side = {r.group: r.side for r in made.made}
    assert {side[group] for group in task.queries.groups.tolist()} == {"test"}
    assert {side[group] for group in task.corpus.groups.tolist()} == {"train"}
    assert {side[group] for group in task.normals.groups.tolist()} <= {"train"}


@given(one_fault_each() | several_faults_each(), st.integers(0, 5))
def test_groups_never_straddle(data: Windows, seed: int) -> None:
    assert_groups_do_not_straddle(data, split(data, seed))


@given(one_fault_each(), st.integers(0, 5))
def test_of_each_class_the_asked_share_of_groups_is_held_out(data: Windows, seed: int) -> None:
    assert_held_out_share(data, split(data, seed))


@given(one_fault_each())
def test_another_share_is_held_out_when_asked(data: Windows) -> None:
    assert_held_out_share(data, split(data, share=0.3), Fraction(3, 10))


@given(one_fault_each() | several_faults_each(), st.integers(0, 5))
def test_a_class_with_a_single_group_stays_in_the_corpus(data: Windows, seed: int) -> None:
    assert_single_groups_stay(data, split(data, seed))


@settings(max_examples=30)
@given(several_faults_each(), st.integers(0, 5))
def test_groups_of_several_classes_are_drawn_so_that_classes_are_on_both_sides(data: Windows, seed: int) -> None:
    assert_as_many_on_both_sides_as_possible(data, split(data, seed))


def test_a_split_that_cannot_serve_every_class_says_so() -> None:
    # Both groups of fault 1 are the only holders of another fault, so neither may leave the corpus.
    impossible = windows([[1, 2], [1, 3], [4], [4]])
    chosen = split_by_group(impossible.labels, impossible.groups, share=SHARE, seed=0)
    assert len(chosen.notes) == 1
    assert "1 classes are on one side only" in chosen.notes[0]
    assert held_groups(impossible, chosen.test) <= {2, 3}


def test_a_split_that_serves_every_class_says_nothing() -> None:
    for possible in (windows([[1], [1], [2], [2]]), windows([[1, 2], [1, 2], [1], [2]])):
        assert split_by_group(possible.labels, possible.groups, share=SHARE, seed=0).notes == ()


@given(one_fault_each() | several_faults_each(), st.integers(0, 5))
def test_the_same_seed_gives_the_same_split(data: Windows, seed: int) -> None:
    assert split(data, seed).tolist() == split(data, seed).tolist()


@pytest.mark.parametrize("holds", [[[1]] * 10 + [[2]] * 10, [[1, 2]] * 20])
def test_other_seeds_give_other_splits(holds: list[list[int]]) -> None:
    many = windows(holds)
    assert len({tuple(split(many, seed).tolist()) for seed in range(5)}) > 1


def test_every_group_can_be_held_out() -> None:
    many = windows([[1]] * 6)
    ever = {group for seed in range(40) for group in held_groups(many, split(many, seed))}
    assert ever == set(range(6))


def test_recordings_without_a_fault_are_held_out_as_a_class_of_their_own() -> None:
    data = windows([[0]] * 10 + [[1]] * 5)
    held = held_groups(data, split(data))
    assert len(held & set(range(10))) == 2
    assert len(held & set(range(10, 15))) == 1


def test_a_share_rounds_to_the_nearest_number_of_groups_and_halves_up() -> None:
    assert [count_held_out(n, 0.2) for n in (0, 1, 2, 5, 7, 8, 12, 13, 1000)] == [0, 0, 1, 1, 1, 2, 2, 3, 200]
    assert [count_held_out(n, 0.3) for n in (2, 5, 15, 25)] == [1, 2, 5, 8]
    assert [count_held_out(n, 0.25) for n in (2, 6, 10)] == [1, 2, 3]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_native_split_is_kept_whatever_the_seed(seed: int, tmp_path: Path) -> None:
    made = source([6, 6, 6], NATIVE)
    assert_sides_are_native(load_task(made, seed=seed, cache=tmp_path), made)


def test_a_group_on_both_sides_of_a_native_split_is_refused(tmp_path: Path) -> None:
    both = [
        recording([1] * LENGTH, name="a", group="engine-7", side="train"),
        recording([1] * LENGTH, name="b", group="engine-7", side="test"),
    ]
    with pytest.raises(DataError, match=r"engine-7.*both sides"):
        load_task(FakeSource(info(1, NATIVE), both), seed=0, cache=tmp_path)


def test_a_group_without_a_side_is_refused_where_the_source_declares_a_split(tmp_path: Path) -> None:
    made = source([3, 3], NATIVE)
    made.made = [replace(r, side=None) if r.group == "run-1-2" else r for r in made.made]
    with pytest.raises(DataError, match=r"run-1-2.*no side"):
        load_task(made, seed=0, cache=tmp_path)


def wells(assets: Sequence[tuple[str, int, int]]) -> FakeSource:
    """For each (asset, class, count) that many recordings, each its own group."""
    made = [
        recording([label] * LENGTH, np.full((1, LENGTH), 10.0 * i + j), name=f"{asset}-{label}-{j}", asset=asset)
        for i, (asset, label, count) in enumerate(assets)
        for j in range(count)
    ]
    return FakeSource(info(max(label for _, label, _ in assets)), made)


def assert_assets_do_not_straddle(task: Task) -> None:
    held = set(task.queries.assets.tolist())
    assert not held & set(task.corpus.assets.tolist())
    assert not held & set(task.normals.assets.tolist())


WELLS = wells([("a", 1, 4), ("b", 1, 4), ("c", 2, 4), ("d", 2, 4), ("e", 3, 4), ("a", 0, 4), ("d", 0, 4)])
BY_ASSET = Composition(split_by="asset")


@pytest.mark.parametrize("seed", range(5))
def test_assets_do_not_straddle_a_split_by_asset(seed: int, tmp_path: Path) -> None:
    task = load_task(WELLS, seed=seed, cache=tmp_path, settings=BY_ASSET)
    assert_assets_do_not_straddle(task)
    assert set(task.queries.labels.tolist()) == {1, 2}


def test_a_split_by_asset_names_the_classes_of_a_single_asset(tmp_path: Path) -> None:
    notes = load_task(WELLS, seed=0, cache=tmp_path, settings=BY_ASSET).notes
    assert [note for note in notes if "assets are held out" in note and note.endswith(": fault-3")]
    assert not [note for note in load_task(WELLS, seed=0, cache=tmp_path).notes if "asset" in note]


def test_a_split_by_asset_needs_to_know_the_assets(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fake does not know its assets"):
        load_task(source([3, 3]), seed=0, cache=tmp_path, settings=BY_ASSET)


def test_the_order_of_the_recordings_does_not_move_the_split(tmp_path: Path) -> None:
    made = source([5, 5, 5])
    turned = FakeSource(made.info, list(reversed(made.made)), version="turned")
    one, other = (load_task(s, seed=3, cache=tmp_path) for s in (made, turned))
    assert set(one.queries.groups.tolist()) == set(other.queries.groups.tolist())


# The rules, broken on purpose: the same checks must see it.

TEN = windows([[1, 1, 0]] * 8 + [[2, 2]] * 2 + [[3]])


def by_window(data: Windows) -> NDArray[np.bool_]:
    return np.random.default_rng(0).random(len(data.labels)) < SHARE


def holding_out(*held: int) -> Callable[[Windows], NDArray[np.bool_]]:
    return lambda data: np.isin(data.groups, held)


def test_a_split_by_window_is_caught() -> None:
    with pytest.raises(AssertionError, match="both sides"):
        assert_groups_do_not_straddle(TEN, by_window(TEN))


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(holding_out(0, 8), id="rounded down"),
        pytest.param(holding_out(0, 1, 2, 8), id="one too many"),
        pytest.param(holding_out(0, 1), id="a class of two groups without a query"),
        pytest.param(holding_out(0, 1, 8, 9), id="a class of two groups without a corpus item"),
        pytest.param(holding_out(0, 1, 8, 10), id="the only group of a class"),
    ],
)
def test_a_wrong_share_is_caught(broken: Callable[[Windows], NDArray[np.bool_]]) -> None:
    assert_held_out_share(TEN, holding_out(0, 1, 8)(TEN))
    with pytest.raises(AssertionError):
        assert_held_out_share(TEN, broken(TEN))


def test_holding_out_the_only_group_of_a_class_is_caught() -> None:
    with pytest.raises(AssertionError):
        assert_single_groups_stay(TEN, holding_out(0, 1, 8, 10)(TEN))


def test_a_class_left_on_one_side_is_caught() -> None:
    records = windows([[1, 2], [1], [2], [2], [1]])
    assert_as_many_on_both_sides_as_possible(records, holding_out(0)(records))
    for wrong in (holding_out(1), holding_out(2), holding_out(0, 1)):
        with pytest.raises(AssertionError):
            assert_as_many_on_both_sides_as_possible(records, wrong(records))


def test_assets_on_both_sides_are_caught(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        assert_assets_do_not_straddle(load_task(WELLS, seed=0, cache=tmp_path))


def test_a_redrawn_native_split_is_caught(tmp_path: Path) -> None:
    made = source([6, 6, 6], NATIVE)
    redrawn = FakeSource(replace(made.info, protocol=Protocol(length=LENGTH)), made.made)
    with pytest.raises(AssertionError):
        assert_sides_are_native(load_task(redrawn, seed=0, cache=tmp_path), made)
