"""The watch: departures are seen, the right case is told once, and neither a restart nor a lost source changes that."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Answer, Library
from readbench.cases.watch import Notice, NoticeLog, WatchedEvent, Watcher, WatchSettings, _watcher
from readbench.cases.watch._watcher import LEARN_WINDOWS
from readbench.errors import DataError, UsageError
from tests.cases.samples import CHANNELS, FAST
from tests.cases.watch.conftest import LEARNED, SETTINGS, W, Watch, go
from tests.cases.watch.plant import T0, Plant


def test_a_fault_is_told_once_with_the_right_case_first(watch: Watch) -> None:
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    onset = LEARNED + 100
    plant.fail("pump 0", "leak", onset)
    watcher = watch(plant, said)
    told = go(watcher, plant, 300)
    assert [own.kind for own in told] == ["fault"], said
    notice = told[0]
    assert notice.faults[0].label == "leak"
    assert notice.cases[0].label == "leak"
    assert notice.cases[0].notes == "Mended leak."
    assert {own.channel for own in notice.evidence if own.same_way} == {"pressure", "flow"}
    assert abs(notice.onset - (T0 + onset)) < W / 2
    assert notice.told - (T0 + onset) <= W + 10
    assert notice.text.startswith("pump 0: leak (")
    assert [own.key for own in watcher.log.latest(5)] == [notice.key]


class Desk:
    """A receiver in memory."""

    shown = key = "desk"

    def __init__(self) -> None:
        self.received: list[Notice] = []

    def send(self, notice: Notice) -> None:
        self.received.append(notice)


def once_normal(judge: Callable[..., object]) -> Callable[..., object]:
    """At the end of the usual looks an event is normal operation."""

    def first(self: Watcher, event: WatchedEvent, answer: Answer, *, last: bool) -> object:
        if not event.outcome:
            return "normal" if last else None
        return judge(self, event, answer, last=last)

    return first


def test_normal_operation_is_left_in_peace(watch: Watch) -> None:
    plant = Plant(["pump 0", "pump 1"], seed=3)
    plant.now = T0 + LEARNED
    said: list[str] = []
    assert go(watch(plant, said), plant, 3000, every=20) == []
    assert not any("departs (" in words for words in said)


@pytest.mark.parametrize("moment", ["the log", "the state"])
def test_killed_while_it_tells_it_neither_loses_nor_repeats_a_notice(
    watch: Watch, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, desk = Plant(), Desk()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 10)
    first = watch(plant, hooks=[desk])
    place: object = NoticeLog if moment == "the log" else Watcher
    name = "write" if moment == "the log" else "_save"

    def die(*_: object, **__: object) -> None:
        if moment == "the log" or first.log.latest(1):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, name, die)
        with pytest.raises(KeyboardInterrupt):
            go(first, plant, 100)
    assert desk.received == []
    again = watch(plant, hooks=[desk])
    go(again, plant, 300)
    kept = NoticeLog(tmp_path / "state" / "notices.jsonl").latest(9)
    assert [own.faults[0].label for own in kept] == ["leak"]
    assert [own.key for own in desk.received] == [kept[0].key]


def test_what_was_taken_for_normal_is_asked_about_again_while_it_departs(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that begins harmlessly must not hide the fault that comes of it."""
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    onset = LEARNED + 50
    plant.values["pump 0"][2, onset : onset + 60] += 6.0  # of the speed: no fault of the library
    plant.fail("pump 0", "leak", onset + 60)
    watcher = watch(plant, said)
    monkeypatch.setattr(Watcher, "_judge", once_normal(Watcher._judge))
    told = go(watcher, plant, 250)
    assert any("takes it for normal" in words for words in said)
    assert [(own.kind, own.faults[0].label, own.follows) for own in told] == [("fault", "leak", "")]


def test_a_fault_that_is_known_late_is_told_after_a_notice_that_did_not_know_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20, 80)
    watcher = watch(plant)
    judge = Watcher._judge

    def unsure(self: Watcher, event: WatchedEvent, answer: Answer, *, last: bool) -> object:
        return judge(self, event, answer, last=last) if event.outcome else ("unclear" if last else None)

    monkeypatch.setattr(Watcher, "_judge", unsure)
    first, second = go(watcher, plant, 200)
    assert (first.kind, first.follows) == ("unclear", "")
    assert (second.kind, second.faults[0].label, second.follows) == ("fault", "leak", first.key)
    assert second.key != first.key


def test_an_event_ends_after_half_a_quiet_window_however_often_is_looked(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20, 60)
    watcher, quiet = watch(plant), 0
    assert go(watcher, plant, 80, every=1)
    track = watcher.tracks["pump 0"]
    while track.event is not None:
        go(watcher, plant, 1, every=1)
        quiet = 0 if track.scores[-1] > 1.0 else quiet + 1
    assert quiet == W // 2


@pytest.mark.parametrize("stop", [20, 30, 60, 120])
def test_a_restart_neither_loses_nor_repeats_a_notice(watch: Watch, stop: int, tmp_path: Path) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 10)
    first = watch(plant)
    told = go(first, plant, stop)
    del first  # killed: nothing is closed
    plant.now += 45  # nobody watches
    second = watch(plant)
    told += go(second, plant, 300)
    assert [own.faults[0].label for own in told] == ["leak"]
    assert len({own.key for own in told}) == 1
    assert len(NoticeLog(tmp_path / "state" / "notices.jsonl").latest(9)) == 1


def test_what_is_normal_is_not_learned_again_from_a_fault(watch: Watch, tmp_path: Path) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    first = watch(plant)
    limit = first.tracks["pump 0"].detector
    plant.values["pump 0"][:, LEARNED:] += 50.0
    plant.now += 2000
    again = watch(plant).tracks["pump 0"].detector
    assert limit is not None
    assert again is not None
    assert again.limits.tolist() == limit.limits.tolist()
    (tmp_path / "state" / "normals.json").write_text("{")
    with pytest.raises(DataError, match="Remove it"):
        watch(plant)


def test_a_source_that_goes_away_loses_nothing(watch: Watch) -> None:
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "stuck valve", LEARNED + 20)
    watcher = watch(plant, said)
    plant.away = True
    assert go(watcher, plant, 80) == []
    plant.away = False
    told = go(watcher, plant, 100)
    assert [own.cases[0].label for own in told] == ["stuck valve"]
    assert said.count("plant://memory/ does not answer: it is away.") == 1
    assert sum("answers again" in words for words in said) == 1
    blind, sees = [own for own in reversed(watcher.log.latest(9)) if own.kind in {"trouble", "recovered"}]
    assert "reading the source fails: nothing was read for 60 s" in blind.text
    assert (sees.kind, sees.follows, sees.onset) == ("recovered", blind.key, blind.onset)


def test_a_second_event_is_told_after_the_first_has_ended(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20)
    plant.fail("pump 0", "noise", LEARNED + 220)
    told = go(watch(plant), plant, 500)
    assert [own.faults[0].label for own in told] == ["leak", "noise"]


def test_a_renamed_channel_a_vanished_one_and_a_changed_unit_are_said_and_survived(watch: Watch) -> None:
    plant, said = Plant(), list[str]()
    plant.units["pressure"] = "bar"
    plant.now = T0 + LEARNED
    watcher = watch(plant, said)
    go(watcher, plant, 50)
    plant.names["speed"] = "SI-3"
    plant.units["pressure"] = "kPa"
    plant.values["pump 0"][0, LEARNED + 51 :] *= 100
    told = go(watcher, plant, 400)
    assert told == []
    assert any("SI-3 is new" in words for words in said)
    assert any("speed is silent" in words for words in said)
    track = watcher.tracks["pump 0"]
    assert np.nanstd(track.values[0]) < 2  # kilopascals became bars


def test_false_alarms_are_those_that_are_stated_now(watch: Watch) -> None:
    plant = Plant(["pump 0", "pump 1"])
    plant.now = T0 + LEARNED
    watch(plant).close()
    plant.values["pump 2"], said = plant.values["pump 1"], list[str]()
    again = watch(plant, said, settings=replace(SETTINGS, false_alarms_a_day=9.0))
    assert [own.detector and own.detector.false_alarms_a_day for own in again.tracks.values()] == [3.0] * 3
    assert sum("normal operation from" in words for words in said) == 1, "those of the others are kept"


def test_what_an_earlier_version_kept_is_learned_and_seen_anew(watch: Watch, tmp_path: Path) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20)
    first = watch(plant, settings=replace(SETTINGS, firm=0.999))
    while first.tracks["pump 0"].event is None:
        assert go(first, plant, 1, every=1) == []
    first.close()
    normals, state = (tmp_path / "state" / name for name in ("normals.json", "state.json"))
    learned, kept = json.loads(normals.read_text()), json.loads(state.read_text())
    learned["pump 0"].pop("units")
    kept["assets"]["pump 0"]["event"]["looks"] = []
    normals.write_text(json.dumps(learned))
    state.write_text(json.dumps(kept))
    assert [own.faults[0].label for own in go(watch(plant), plant, 200)] == ["leak"]


def test_a_unit_that_changes_while_nobody_watches_is_no_departure(watch: Watch) -> None:
    plant, said = Plant(), list[str]()
    plant.units["pressure"] = "bar"
    plant.now = T0 + LEARNED
    watch(plant).close()
    plant.units["pressure"] = "kPa"
    plant.values["pump 0"][0] *= 100
    again = watch(plant, said)
    assert go(again, plant, 200) == []
    assert not any("departs (" in words for words in said)
    assert np.nanstd(again.tracks["pump 0"].values[0]) < 2


def test_readings_that_come_in_batches_count_where_the_lag_says_so(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20)
    watcher = watch(plant, settings=replace(SETTINGS, lag_s=40.0))
    plant.batch_s = 30.0
    told = go(watcher, plant, 200)
    assert [own.faults[0].label for own in told] == ["leak"]
    assert np.isfinite(watcher.tracks["pump 0"].values).all()


def test_a_source_in_disorder_is_asked_again(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20)
    watcher = watch(plant, said)
    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> None:
            raise DataError("There is no table readings.")

        patch.setattr(plant, "read", refuse)
        assert go(watcher, plant, 20) == []
    assert said.count("There is no table readings.") == 1
    assert [own.faults[0].label for own in go(watcher, plant, 200)] == ["leak"]


def test_what_has_no_history_is_learned_while_it_is_followed(watch: Watch) -> None:
    plant, said = Plant(steps=9000), list[str]()
    plant.now = T0 + 10
    watcher = watch(plant, said)
    assert watcher.tracks["pump 0"].detector is None
    assert any("until it was followed" in words for words in said)
    onset = 10 + LEARN_WINDOWS * W + 200
    plant.fail("pump 0", "leak", onset)
    told = go(watcher, plant, onset + 100)
    assert [own.faults[0].label for own in told] == ["leak"], said
    assert watcher.tracks["pump 0"].channels == list(CHANNELS)
    assert watch(plant).tracks["pump 0"].detector is not None, "it is kept"


def test_an_alert_leads_to_one_search(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED - 40, 41)
    watcher = watch(plant, settings=WatchSettings(method=FAST, normals="none", firm=0.6))
    assert watcher.tracks["pump 0"].detector is None
    assert watcher.alert("pump 0", T0 + LEARNED - 40, "PressureLow", "k1")
    assert not watcher.alert("pump 0", T0 + LEARNED - 40, "PressureLow", "k1")
    told = go(watcher, plant, 10)
    assert [(own.trigger, own.faults[0].label) for own in told] == [("PressureLow", "leak")]
    again = watch(plant, settings=WatchSettings(method=FAST, normals="none"))
    assert not again.alert("pump 0", T0 + LEARNED - 40, "PressureLow", "k1")


def test_an_alert_that_came_while_the_watch_was_ended_is_searched_by_the_next(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED - 40, 41)
    settings = WatchSettings(method=FAST, normals="none", firm=0.6)
    assert watch(plant, settings=settings).alert("pump 0", T0 + LEARNED - 40, "PressureLow", "k1")
    again = watch(plant, settings=settings)  # the first one was killed before its next round
    assert [own.trigger for own in go(again, plant, 10)] == ["PressureLow"]
    assert go(watch(plant, settings=settings), plant, 20) == []


def test_an_alert_is_told_where_the_library_takes_the_departure_for_normal(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20, 200)
    watcher = watch(plant, said)
    judge = Watcher._judge

    def normal(self: Watcher, event: WatchedEvent, answer: Answer, *, last: bool) -> object:
        if event.trigger == "departure":
            return "normal" if last else None
        return judge(self, event, answer, last=last)

    monkeypatch.setattr(Watcher, "_judge", normal)
    assert go(watcher, plant, 100) == []
    assert any("takes it for normal" in words for words in said)
    assert watcher.alert("pump 0", plant.now - 60, "PressureLow", "k1")
    assert [(own.trigger, own.faults[0].label) for own in go(watcher, plant, 20)] == [("PressureLow", "leak")]


@pytest.mark.parametrize("restart", [False, True])
def test_a_clock_that_ran_ahead_and_was_set_right_leaves_nobody_blind(
    watch: Watch,
    restart: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_watcher, "MOST_CATCH_UP_S", 600.0)
    plant, said = Plant(), list[str]()
    plant.now = T0 + LEARNED
    watcher = watch(plant, said)
    go(watcher, plant, 50)
    right, plant.now = plant.now, plant.now + 20 * 365 * 86400.0
    assert watcher.tick() == []
    watcher.close()
    plant.now = right
    plant.fail("pump 0", "leak", LEARNED + 100)
    told = go(watch(plant, said) if restart else watcher, plant, 200)
    assert [own.faults[0].label for own in told] == ["leak"], said


def test_assets_that_come_and_go_are_forgotten(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watcher, "FORGET_S", 500.0)
    plant, said = Plant(["pump 0", "pump 1"]), list[str]()
    plant.now = T0 + LEARNED
    watcher = watch(plant, said)
    del plant.values["pump 1"]
    go(watcher, plant, 480, every=20)
    assert set(watcher.tracks) == {"pump 0", "pump 1"}
    go(watcher, plant, 120, every=20)
    assert set(watcher.tracks) == {"pump 0"}
    assert any("pump 1 has been silent for a week" in words for words in said)
    assert set(json.loads((watcher.folder / "normals.json").read_text())) == {"pump 0"}


def test_memory_does_not_grow(watch: Watch) -> None:
    plant = Plant(steps=12_000)
    plant.now = T0 + LEARNED
    watcher = watch(plant)
    go(watcher, plant, 200)
    before = watcher.held_bytes
    go(watcher, plant, 3000, every=30)
    assert watcher.held_bytes <= 1.2 * before
    assert (watcher.folder / "state.json").stat().st_size < 5000


def test_normals_of_the_library_serve_where_the_source_has_no_history(watch: Watch) -> None:
    plant = Plant(["pump 0", "pump 1"])
    plant.now = T0 + 30
    said: list[str] = []
    watcher = watch(plant, said, settings=WatchSettings(method=FAST, normals="library"))
    assert watcher.tracks["pump 0"].detector is None  # ten windows of it are too few
    assert any("10 stretches" in words and "only for alerts" in words for words in said)


@pytest.mark.parametrize("normals", ["none", "auto"])
def test_an_alert_is_heard_also_after_an_event_that_was_not_understood(watch: Watch, normals: str) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.values["pump 0"][2, LEARNED : LEARNED + 150] += 6.0  # of the speed: no fault of the library
    watcher = watch(plant, settings=WatchSettings(method=FAST, normals=normals, firm=0.999))
    watcher.alert("pump 0", plant.now, "First", "k1")
    assert [own.kind for own in go(watcher, plant, 60)] == ["unclear"]
    watcher.alert("pump 0", plant.now, "Second", "k2")
    assert [(own.kind, own.trigger) for own in go(watcher, plant, 60)] == [("unclear", "Second")]


def test_without_a_detector_nobody_knows_that_it_goes_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, asked = Plant(), list[object]()
    plant.now = T0 + LEARNED
    watcher = watch(plant, settings=WatchSettings(method=FAST, normals="none", firm=0.999))
    search = watcher.library.search

    def counted(*words: object, **more: object) -> object:
        asked.append(words)
        return search(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(watcher.library, "search", counted)
    watcher.alert("pump 0", plant.now, "PressureLow", "k1")
    go(watcher, plant, 60)
    before = len(asked)
    go(watcher, plant, 400)
    assert len(asked) == before


def test_what_a_watch_needs_is_named(tmp_path: Path) -> None:
    empty = Library.create(tmp_path / "empty")
    with pytest.raises(UsageError, match="--rate"):
        Watcher(empty, Plant(), tmp_path / "state", SETTINGS)
    with pytest.raises(UsageError, match="no case"):
        Watcher(empty, Plant(), tmp_path / "state", WatchSettings(rate=1.0))


def test_the_state_is_written_whole(watch: Watch) -> None:
    plant = Plant()
    plant.now = T0 + LEARNED
    watcher = watch(plant)
    go(watcher, plant, 60)
    state = json.loads((watcher.folder / "state.json").read_text())
    assert state["assets"]["pump 0"]["last"] > T0
    assert not list(watcher.folder.glob("*.partial"))
