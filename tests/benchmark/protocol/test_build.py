from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import Built, Protocol, Recording, SourceInfo, build, build_fingerprint
from readbench.common.progress import Progress
from readbench.errors import DataError
from tests.benchmark.protocol.fakes import LENGTH, WINDOWED, FakeSource, SeekableSource, info, recording, runs, source

OTHER = Protocol(
    length=LENGTH + 1,
    stride=2,
    normal_stride=1,
    label_rule="majority-or-coverage",
    min_coverage=0.1,
    missing="drop",
    onset_codes=((101, 1),),
    test_share=0.3,
    native_split=True,
    composition="query-classes",
    before="preceding",
    before_steps=7,
    before_least=3,
)
"""Differs from `WINDOWED` in every field."""


@dataclass
class Restless(FakeSource):
    """A source that names itself differently at every look."""

    looks: int = 0

    def fingerprint(self, root: Path | None) -> str:
        self.looks += 1
        return f"{super().fingerprint(root)} {self.looks}"


@dataclass
class Archive(FakeSource):
    """A source that knows its classes only once it has seen its files."""

    def resolved(self, root: Path | None) -> FakeSource:
        return FakeSource(replace(self.info, faults=(f"seen under {root}",)), self.made, self.version)


def assert_built_once(made: FakeSource, cache: Path) -> None:
    """The second build reads no recording and gives the same windows."""
    first = build(made, None, cache)
    given = made.given
    second = build(made, None, cache)
    assert made.given == given == len(made.made)
    assert second.windows.fingerprint() == first.windows.fingerprint()
    assert (second.sides, second.folder, second.info) == (first.sides, first.folder, made.info)


def kept_in(cache: Path) -> list[str]:
    """What builds have left, but for their locks, which are empty and stay."""
    return sorted(path.name for path in cache.glob("windows/*") if path.suffix != ".lock" or path.stat().st_size)


def assert_nothing_is_left(cache: Path) -> None:
    assert kept_in(cache) == []


def test_a_second_build_does_not_read_the_recordings(tmp_path: Path) -> None:
    assert_built_once(source([3, 2, 2]), tmp_path)


def test_all_windows_come_in_the_order_of_the_recordings(tmp_path: Path) -> None:
    made = source([2, 3, 2], windows=2)
    windows = build(made, None, tmp_path).windows
    assert windows.ids.tolist() == [f"{r.id}@{start}" for r in made.made for start in (0, LENGTH)]
    assert windows.classes == ("normal", "fault-1", "fault-2")
    expected = [r.values[:, s : s + LENGTH].astype(np.float32) for r in made.made for s in (0, LENGTH)]
    assert [w.values.tolist() for w in windows] == [values.tolist() for values in expected]


def test_recordings_that_give_no_window_are_passed_over(tmp_path: Path) -> None:
    made = FakeSource(info(1), [recording([1] * LENGTH, name="a"), recording([1], name="b"), *runs([0, 1])])
    assert build(made, None, tmp_path).windows.ids.tolist()[:2] == ["a@0", "run-1-0@0"]


def test_progress_hears_of_every_recording(tmp_path: Path) -> None:
    made = FakeSource(info(1), [recording([1] * LENGTH, name="a"), recording([1], name="b"), *runs([0, 1], windows=3)])
    heard: list[tuple[str, int, int | None]] = []
    build(made, None, tmp_path, lambda *told: heard.append(told))
    assert {what for what, *_ in heard} == {f"building {made.info.name}"}
    assert [far for _, *far in heard] == [[0, None], [1, None], [2, None], [3, None], [3, 3]]


def test_a_simulator_says_how_much_there_is_to_build(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int | None]] = []
    build("sim_ecg(runs=40)", None, tmp_path, lambda *told: heard.append(told))
    assert (heard[0], heard[-1]) == (("building sim_ecg", 0, 40), ("building sim_ecg", 40, 40))


@pytest.mark.parametrize("read", [0, 1, 4])
def test_a_build_that_breaks_off_leaves_nothing_and_the_next_one_succeeds(read: int, tmp_path: Path) -> None:
    made = source([3, 2])
    made.breaks_after = read
    with pytest.raises(OSError, match="the disk went away"):
        build(made, None, tmp_path)
    assert_nothing_is_left(tmp_path)
    made.breaks_after = None
    again = build(made, None, tmp_path)
    assert again.windows.fingerprint() == build(source([3, 2]), None, tmp_path / "fresh").windows.fingerprint()


def stop_after(count: int) -> Progress:
    """Progress of a user who loses patience."""

    def stop(_: str, recordings: int, __: int | None) -> None:
        if recordings == count:
            raise KeyboardInterrupt

    return stop


def assert_goes_on(made: FakeSource, cache: Path, *, done: int, reads: int) -> None:
    """A build stopped after `done` recordings shows nothing, and the next one reads `reads` and does the rest."""
    with pytest.raises(KeyboardInterrupt):
        build(made, None, cache, stop_after(done))
    assert not list(cache.rglob("windows.json"))
    given = made.given
    heard: list[int] = []
    resumed = build(made, None, cache, lambda _, recordings, __: heard.append(recordings))
    assert heard == [*range(done, len(made.made) + 1), len(made.made)]
    assert made.given == given + reads
    fresh = build(FakeSource(made.info, made.made), None, cache / "fresh")
    assert resumed.windows.fingerprint() == fresh.windows.fingerprint()
    assert resumed.sides == fresh.sides
    assert kept_in(cache) == [resumed.folder.name]


@pytest.mark.parametrize("done", [1, 3, 7])
def test_a_build_that_the_user_stops_goes_on_where_it_was(
    done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readbench.engine.window_files.PART_BYTES", 1)
    assert_goes_on(source([3, 2, 2]), tmp_path / "read", done=done, reads=7)
    made = source([3, 2, 2])
    assert_goes_on(SeekableSource(made.info, made.made), tmp_path / "sought", done=done, reads=7 - done)


def test_a_build_that_goes_on_knows_the_sides_of_what_was_done_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readbench.engine.window_files.PART_BYTES", 1)
    made = source([0, 3, 3], replace(WINDOWED, native_split=True))
    for kind in (FakeSource, SeekableSource):
        assert_goes_on(kind(made.info, made.made), tmp_path / kind.__name__, done=4, reads=6)


def test_a_build_stopped_before_anything_was_stored_starts_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(source([3, 2]), None, tmp_path, stop_after(2))
    again = build(source([3, 2]), None, tmp_path)
    assert again.windows.fingerprint() == build(source([3, 2]), None, tmp_path / "fresh").windows.fingerprint()


def test_a_label_outside_the_vocabulary_stops_the_build(tmp_path: Path) -> None:
    made = FakeSource(info(1), [*runs([1, 1]), recording([2] * LENGTH, name="odd")])
    with pytest.raises(DataError, match="Recording odd: label 2 at step 0"):
        build(made, None, tmp_path)
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("labels", [[-1] * LENGTH, [1] * (LENGTH - 1)], ids=["unlabelled", "too short"])
def test_a_source_without_a_labelled_window_is_refused(labels: list[int], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fake: the recordings gave no labelled window"):
        build(FakeSource(info(1), [recording(labels)]), None, tmp_path)
    assert_nothing_is_left(tmp_path)


def test_a_source_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no labelled window"):
        build(FakeSource(info(1), []), None, tmp_path)


def test_sides_of_a_native_split_are_remembered(tmp_path: Path) -> None:
    made = source([0, 3, 3], replace(WINDOWED, native_split=True))
    for _ in range(2):
        assert build(made, None, tmp_path).sides == {r.group: r.side for r in made.made}
    assert build(source([0, 3]), None, tmp_path).sides == {}


def test_a_source_that_depends_on_its_files_is_resolved_before_it_is_built(tmp_path: Path) -> None:
    made = source([2, 2])
    built = build(Archive(replace(made.info, faults=()), made.made), tmp_path / "data", tmp_path)
    assert built.info.faults == (f"seen under {tmp_path / 'data'}",)
    assert built.windows.classes == built.info.classes
    assert set(built.windows.labels.tolist()) == {0, 1}


@pytest.mark.parametrize("lost", ["sides.json", "windows.json", "part-00000.arrow"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["gone", "empty"])
def test_a_damaged_folder_is_built_again(lost: str, harm: Callable[[Path], object], tmp_path: Path) -> None:
    made = source([2, 2])
    first = build(made, None, tmp_path)
    harm(first.folder / lost)
    assert len(build(made, None, tmp_path).windows) == 12
    assert made.given == 2 * len(made.made)


@pytest.mark.parametrize("name", [field.name for field in fields(Protocol)])
def test_the_fingerprint_reacts_to_every_field_of_the_protocol(name: str) -> None:
    assert getattr(OTHER, name) != getattr(WINDOWED, name), "give the new field another value in OTHER"
    changed = replace(WINDOWED, **{name: getattr(OTHER, name)})
    assert build_fingerprint(source([1, 1], changed), None) != build_fingerprint(source([1, 1]), None)


@pytest.mark.parametrize(
    "change",
    [lambda i: replace(i, name="other"), lambda i: replace(i, faults=("renamed",))],
    ids=["name", "classes"],
)
def test_the_fingerprint_reacts_to_name_and_classes(change: Callable[[SourceInfo], SourceInfo]) -> None:
    made = source([1, 1])
    assert build_fingerprint(replace(made, info=change(made.info)), None) != build_fingerprint(made, None)


def test_the_fingerprint_reacts_to_the_source_s_own_and_to_nothing_that_is_only_said() -> None:
    made = source([1, 1])
    assert build_fingerprint(replace(made, version="2"), None) != build_fingerprint(made, None)
    described = replace(made, info=replace(made.info, title="Another", description="Other words.", licence="MIT"))
    assert build_fingerprint(described, None) == build_fingerprint(made, None)


def test_builds_of_two_protocols_live_side_by_side(tmp_path: Path) -> None:
    one, other = source([2, 2]), source([2, 2], replace(WINDOWED, stride=2))
    kept: list[Built] = [build(made, None, tmp_path) for made in (one, other)]
    assert len(kept[0].windows) != len(kept[1].windows)
    assert len({made.folder for made in kept}) == 2
    given = (one.given, other.given)
    build(one, None, tmp_path)
    build(other, None, tmp_path)
    assert (one.given, other.given) == given


# The rules, broken on purpose: the same checks must see it.


def test_a_build_that_is_not_kept_is_caught(tmp_path: Path) -> None:
    made = source([2, 2])
    with pytest.raises(AssertionError):
        assert_built_once(Restless(made.info, made.made), tmp_path)


def test_a_build_that_does_not_go_on_or_goes_on_in_the_wrong_place_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass
    class OneTooFar(FakeSource):
        def recordings_from(self, first: int) -> Iterator[Recording]:
            return self._stream(first + 1)

    made = source([3, 2, 2])
    with pytest.raises(AssertionError):
        assert_goes_on(made, tmp_path / "nothing stored", done=3, reads=7)
    monkeypatch.setattr("readbench.engine.window_files.PART_BYTES", 1)
    with pytest.raises(AssertionError):
        assert_goes_on(OneTooFar(made.info, made.made), tmp_path / "skipped", done=3, reads=4)


def test_what_a_broken_build_leaves_is_caught(tmp_path: Path) -> None:
    partial = tmp_path / "windows" / "fake-0123.partial-1"
    partial.mkdir(parents=True)
    with pytest.raises(AssertionError):
        assert_nothing_is_left(tmp_path)
