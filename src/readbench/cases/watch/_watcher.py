"""The watch: it follows a source, sees departures, asks the library as an event grows, and says what it believes.

Each asset has a detector of departures (`readbench.engine.departures`). From the onset of an event on, the library is
asked at `LOOKS` of a usual window about the window that ends then. When two looks in a row say the same fault firmly,
or one says it very firmly, that is told. At the last of these looks something is told in any case, unless the library
takes the event for normal operation. Where no fault was told and the asset goes on departing, the library is asked
again, ever more rarely (`LATER`), and a fault of which it becomes firm is told, too. After a fault an asset says
nothing more until it was quiet for half a window.

What must survive a restart is in three files, written whole: `normals.json`, what is normal of each asset;
`alerts.json`, alerts that came, written before they are acknowledged; and `state.json`: how far each asset was
followed, open events, and notices on their way. After a restart the source is read again from where each asset was, so
that nothing is lost, and events and notices keep their keys, so that nothing is told twice: a notice that reached the
log before the state was written is known by its key.
"""

from __future__ import annotations

import json
import logging
import math
import time as clock
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np

from readbench.cases._asking import DEFAULT_METHOD
from readbench.cases._library import Library
from readbench.cases._models import NORMAL_OPERATION, UNLIKE, Answer
from readbench.cases._questions import shorten_note
from readbench.cases._reports import link_case
from readbench.cases.connect import (
    AHEAD_S,
    LATE_S,
    MOST_CATCH_UP_S,
    SLACK,
    LibraryGrid,
    SignalSource,
    SourceReadings,
    on_clock,
)
from readbench.cases.watch._alerts import WatchHealth
from readbench.cases.watch._notices import (
    Kind,
    Notice,
    NoticeCase,
    NoticeEvidence,
    NoticeFault,
    NoticeLog,
    Webhook,
    note_trouble,
)
from readbench.cases.watch._tracks import AssetTrack, WatchedEvent, grid_step
from readbench.common.deadlines import within_seconds
from readbench.common.files import digest, write_text
from readbench.common.supervised import LoopState, SupervisedLoop
from readbench.common.times import DAY_S
from readbench.engine.departures import MIN_BLOCKS, DepartureDetector, find_onset
from readbench.engine.windows import WindowSet
from readbench.errors import AnswerError, DataError, OverdueError, ReadbenchError, UnreachableError, UsageError

log = logging.getLogger("readbench.watch")
LOOKS = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Shares of a usual window after the onset at which the library is asked."""
LATER = 1.5
"""Further looks come so many times as long after the onset as the one before."""
MOST_LOOKS = 8
"""Searches in one round; others wait for the next."""
MOST_ALERTS = 1000
MOST_OUTBOX = 1000
LEARN_WINDOWS = 60
"""Usual windows of history that are learned from, where nothing else is said."""
FROM_SOURCE = frozenset({"auto", "history"})
"""Ways of `WatchSettings.normals` by which readings of the source are learned from."""
LEARN_LEAST = MIN_BLOCKS + 2
"""Fewest windows that are learned from while they come: the first steps of them only fill the spans."""
SAVE_S = 30.0
FORGET_S = 7 * DAY_S
"""An asset that has been silent for so long, while others were read, is forgotten."""
PASSING_S = 3600.0
"""An asset that has been silent for so long, and was not learned, makes room for a new one."""
READ_S = 120.0
"""Longest that the source is read in one round."""
BLIND_S = 60.0
"""A source that was not read for so long is told of."""
MOST_SAID = 50
"""Sentences of one round."""
MOST_WORDS = 1000
"""Letters of a sentence."""
RETRY_S = (5.0, 300.0)
MOST_CASES = 5
MOST_EVIDENCE = 8


@dataclass(frozen=True)
class WatchSettings:
    """How a watch watches.

    Args:
        false_alarms_a_day: departures that normal operation of all assets together may show in a day.
        firm: probability from which a belief is firm.
        learn_s: seconds of history that normal operation is learned from; 0 for `LEARN_WINDOWS` windows.
        normals: where normal operation is learned from: `history` of the source, the `library`, or `auto`: the first
            that has enough, and where none has, what comes while it is followed.
        poll_s: seconds between rounds.
        lag_s: readings that are so late still count; each notice comes that much later.
        rate: steps a second, where the library does not say.
        method: of the grammar.
        link: address of the service, for links.
        name: of the source in links.
        most_assets: assets that are followed. Those that came first are; when there are so many, a new one takes the
            place of the one that has been silent longest, for an hour at least, and whose normal operation was not
            learned; else it is left out, which is told once a day.
    """

    false_alarms_a_day: float = 1.0
    firm: float = 0.7
    learn_s: float = 0.0
    normals: str = "auto"
    poll_s: float = 5.0
    lag_s: float = 2.0
    rate: float | None = None
    method: str = DEFAULT_METHOD
    link: str = ""
    name: str = ""
    most_assets: int = 2000


class Watcher:
    """Follows one source for one library.

    Args:
        library: that is asked.
        source: that is followed.
        folder: of its state.
        settings: how.
        hooks: where notices are sent, beside the log.
        log: of notices.
        say: told what goes on, in sentences; in a round `MOST_SAID` at most.
        now: the clock.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it works with
        self,
        library: Library,
        source: SignalSource,
        folder: Path,
        settings: WatchSettings,
        hooks: Sequence[Webhook] = (),
        log: NoticeLog | None = None,
        say: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = clock.time,
    ) -> None:
        self.library = library
        self.source = source
        self.folder = folder
        self.settings = settings
        self.hooks = hooks
        self.log = log or NoticeLog(folder / "notices.jsonl")
        self.tracks: dict[str, AssetTrack] = {}
        self._speak = say
        self._room = math.inf
        self._now = now
        self._said: deque[str] = deque(maxlen=10_000)
        self._outbox: list[dict[str, Any]] = []
        heard = _read_json(folder / "alerts.json")
        self._alerts = deque((tuple(own) for own in heard.get("waiting", [])), MOST_ALERTS)
        self._known_alerts = deque[str](heard.get("known", []), MOST_ALERTS)
        self._lock = Lock()
        self._saved = 0.0
        self._failed = self._failures = 0
        self._reason = ""
        self._read_at = self._blind_since = 0.0
        self._stumbled: dict[str, str] = {}
        self._no_room_until = self._full_day = 0.0
        self._loop = SupervisedLoop("a round of the watch", self._round, self._note_loop)
        self._follower: Any = None
        grid = LibraryGrid.of(library)
        rate = settings.rate or grid.rate
        if not math.isfinite(rate):
            raise UsageError("The cases do not say how often they were sampled. Give the steps a second: --rate")
        if not grid.steps:
            raise UsageError("The library has no case yet. Add some, with what they were, before watching.")
        self.step = 1.0 / rate
        self.window = grid.steps

    # What a watch does

    def start(self) -> None:
        """Learn what is normal, or read what was learned, and go on where the last watch ended."""
        now = self._now()
        kept = _read_json(self.folder / "state.json")
        learned = _read_json(self.folder / "normals.json")
        self._outbox = list(kept.get("outbox", []))
        self._read_at, self._blind_since = float(kept.get("read", now)), float(kept.get("blind", 0.0))
        assets = self._list_assets(kept)
        share = self.settings.false_alarms_a_day / max(1, len(assets))
        for asset, names in assets.items():
            detector = self._read_detector(learned.get(asset), share) or self._learn(asset, names, now, share)
            self.tracks[asset] = AssetTrack(asset, self.step, self.window, detector)
        self._save_normals()
        since = min((self._go_on(own, kept, now) for own in self.tracks.values()), default=now)
        late = max(LATE_S, self.settings.lag_s)
        self._follower = self.source.follow(since if self.source.keeps_history else now, late_s=late)
        self._save(now, at_once=True)
        watched = sum(len(own.channels) for own in self.tracks.values())
        self._say(
            f"watching {watched:,} channels of {len(self.tracks):,} assets every {self.settings.poll_s:g} s, a step of"
            f" {self.step:g} s, windows of {self.window} steps; {self.settings.false_alarms_a_day:g} departures a day"
            " are stated for normal operation"
        )

    def tick(self) -> list[Notice]:
        """One round; returns what was told."""
        now, self._room = self._now(), MOST_SAID
        found = self._read_source(now)
        self._stumbled.clear()
        for remark in found.remarks:
            self._say_once(remark)
        by_asset: dict[str, dict[str, Any]] = defaultdict(dict)
        for (asset, name), own in found.series.items():
            by_asset[asset][name] = own
        for asset, series in by_asset.items():
            with self._guarding(asset):
                track = self._track(asset, now)
                if track is not None:
                    track.take(series, self._say_once)
        self._take_alerts()
        told: list[Notice] = []
        until = self._whole_step(now)
        looks = 0
        # While the source is away, time stands still: what it has meanwhile is read when it is back.
        for track in () if self._failed else self.tracks.values():
            with self._guarding(track.asset):
                self._set_clock(track, until)
                made, looks = self._advance(track, until, looks)
                told += made
        self._flush(now)
        if now - self._saved >= SAVE_S:
            self._name_silent()
            self._forget_silent()
        self._save(now, at_once=bool(told))
        if self._room < 0:
            self._speak(f"and {-self._room:g} more sentences in this round")
        return told

    def run(self, stop: Event) -> None:
        """Go on until told to stop; a round that takes longer than `poll_s` is followed by the next at once.

        A round that fails, for whatever reason, is told, and tried again later.
        """
        self._loop.stopping = stop
        self._loop.run()
        self.close()

    def _round(self) -> None:
        began = clock.monotonic()
        self.tick()
        wait = self.settings.poll_s * min(2.0 ** min(self._failed, 5), 12.0 if self._failed else 1.0)
        self._loop.stopping.wait(max(0.0, wait - (clock.monotonic() - began)))

    @property
    def health(self) -> WatchHealth:
        """What does not work now, and how often what failed."""
        troubles = [f"the source is not read: {self._reason}"] if self._failed else []
        troubles += [f"{asset or 'the asset'}: {words}" for asset, words in list(self._stumbled.items())[:5]]
        loop = self._loop.state
        troubles += [f"{loop.name}: {loop.error}"] if loop.error else []
        loops = [loop, *self.library.loops]
        troubles += [f"{own.name}: {own.error}" for own in self.library.loops if own.error]
        failures = {"reads the source": self._failures, **{own.name: own.failures for own in loops}}
        blind_s = max(0.0, self._now() - self._read_at) if self._failed else 0.0
        return WatchHealth(len(self.tracks), tuple(troubles), failures, blind_s)

    def _read_source(self, now: float) -> SourceReadings:
        """What came; nothing where the source is away, in disorder, or answers with what cannot be read."""
        try:
            with within_seconds(READ_S):
                found: SourceReadings = self._follower.poll(now)
        except Exception as error:
            self._failed += 1
            self._failures += 1
            known = isinstance(error, ReadbenchError)
            self._reason = str(error) if known else f"{type(error).__name__}: {error}"
            if self._failed == 1:
                self._say(self._reason)
                if not known:
                    log.exception("the source cannot be read")
            if not self._blind_since and now - self._read_at >= max(BLIND_S, 3 * self.settings.poll_s):
                self._blind_since = self._read_at
                self._note_blind(now, f"nothing was read for {now - self._read_at:.0f} s: {self._reason}")
            return SourceReadings()
        if self._failed:
            self._say("the source answers again")
        self._failed, self._reason, self._read_at = 0, "", now
        if self._blind_since:
            self._note_blind(now, "")
            self._blind_since = 0.0
        return found

    def _note_blind(self, now: float, why: str) -> None:
        self._tell(note_trouble(self.source.shown, "reading the source", why, self._blind_since, now))

    def _note_loop(self, loop: LoopState) -> None:
        self._tell(note_trouble(self.source.shown, loop.name, loop.error, loop.since, self._now()))

    @contextmanager
    def _guarding(self, asset: str) -> Iterator[None]:
        """What one asset makes fail is told, and the others go on."""
        try:
            yield
        except Exception as error:
            words = f"{type(error).__name__}: {error}"[:MOST_WORDS]
            self._stumbled[asset] = words
            self._failures += 1
            if self._say_once(f"{asset or 'the asset'} is left out of a round: {words}"):
                log.exception("an asset is left out of a round")

    def _say(self, words: str) -> None:
        """Say something, unless much was said in this round already."""
        self._room -= 1
        if self._room >= 0:
            self._speak(words)

    def close(self) -> None:
        """Write how far it came, and end the connection."""
        self._save(self._now(), at_once=True)
        if self._follower is not None:
            self._follower.close()

    def alert(self, asset: str, started: float, name: str, key: str) -> bool:
        """Somebody else's alarm: the library is asked about this asset; False where this alert was here before."""
        with self._lock:
            if key in self._known_alerts:
                return False
            self._known_alerts.append(key)
            self._alerts.append((asset, started, name, key))
            self._save_alerts()
            return True

    @property
    def held_bytes(self) -> int:
        """Memory of what is held of all assets."""
        return sum(own.held_bytes for own in self.tracks.values())

    # Normal operation

    def _list_assets(self, kept: dict[str, Any]) -> dict[str, list[str]]:
        """Channels of each asset: of those that were followed before, then of others of the source, so many at most."""
        found: dict[str, list[str]] = {asset: [] for asset in kept.get("assets", {})}
        try:
            with within_seconds(READ_S):
                for own in self.source.channels():
                    found.setdefault(own.asset, []).append(own.name)
        except (UnreachableError, AnswerError, OverdueError) as error:
            if not kept:
                raise
            self._say(str(error))
        if len(found) > self.settings.most_assets:
            self._note_full(self._now())
        return dict(list(found.items())[: self.settings.most_assets])

    def _read_detector(self, kept: Any, share: float) -> DepartureDetector | None:  # noqa: ANN401 - JSON
        """What was learned, with as many false alarms as are stated now; None where it must be learned anew."""
        if not kept:
            return None
        try:
            detector = DepartureDetector.of_json(kept)
        except KeyError:  # of an earlier version
            return None
        same = max(2, round(self.window / 2)) == detector.memory
        return replace(detector, false_alarms_a_day=share) if same else None

    def _learn(self, asset: str, names: list[str], now: float, share: float) -> DepartureDetector | None:
        """What is normal of an asset, from the first place that knows enough."""
        reasons = []
        for place, read in (("history", self._read_history), ("library", self._read_normals)):
            if self.settings.normals not in {"auto", place}:
                continue
            try:
                return self._fit(asset, *read(asset, names, now), share, f"windows of its {place}")
            except (DataError, UsageError) as error:
                reasons.append(f"{place}: {error}")
        later = "" if self.settings.normals not in FROM_SOURCE else ", until it was followed for long enough"
        self._say(f"{asset or 'the asset'} is not watched for departures, only for alerts{later}. {' '.join(reasons)}")
        return None

    def _fit(
        self, asset: str, units: dict[str, str], stretches: list[Any], share: float, place: str
    ) -> DepartureDetector:
        detector = DepartureDetector.fit(
            stretches,
            tuple(units),
            units=tuple(units.values()),
            window=self.window,
            step_s=self.step,
            false_alarms_a_day=share,
        )
        self._say(
            f"{asset or 'the asset'}: normal operation from {len(detector.maxima)} {place}; departs above"
            f" {detector.limits[0]:.1f} sd in level, {detector.limits[1]:.1f} in roughness, {detector.limits[2]:.1f}"
            " beside the other channels"
        )
        return detector

    def _learn_on(self, track: AssetTrack, steps: int) -> None:
        """Where neither history nor library knew enough: learn from what comes, once that is as long as a history."""
        if self.settings.normals not in FROM_SOURCE:
            return
        wanted = max(self._learn_steps(), LEARN_LEAST * self.window)
        values = track.gather(steps, wanted)
        if values is None:
            return
        share = self.settings.false_alarms_a_day / len(self.tracks)
        units = {name: track.units.get(name, "") for name in track.channels}
        try:
            track.adopt(self._fit(track.asset, units, [values], share, "windows since it was first read"))
        except DataError as error:
            self._say_once(f"{track.asset or 'the asset'}: {error}")
        for own in self.tracks.values():  # a new asset has its part of what is stated for all together
            own.detector = own.detector and replace(own.detector, false_alarms_a_day=share)
        self._save_normals()

    def _learn_steps(self) -> int:
        return round(self.settings.learn_s / self.step) or LEARN_WINDOWS * self.window

    def _save_normals(self) -> None:
        known = {asset: own.detector.to_json() for asset, own in self.tracks.items() if own.detector is not None}
        if known:
            write_text(self.folder / "normals.json", json.dumps(known))

    def _read_history(self, asset: str, names: list[str], now: float) -> tuple[dict[str, str], list[Any]]:  # noqa: ARG002
        if not self.source.keeps_history:
            raise DataError("the source keeps none.")
        series = self.source.read(now - self._learn_steps() * self.step, now, asset=asset).of_asset(asset)
        if not series:
            raise DataError("nothing was read.")
        start = min(own.times[0] for own in series.values() if len(own.times))
        steps = grid_step(now - start, self.step)
        return {name: own.unit for name, own in series.items()}, [on_clock(series, start, self.step, steps)]

    def _read_normals(self, asset: str, names: list[str], now: float) -> tuple[dict[str, str], list[Any]]:  # noqa: ARG002
        normals = self.library.normals()
        own = normals[np.flatnonzero(normals.assets == asset)] if asset else normals
        if not len(own):
            raise DataError(f"the library has no normal windows of {asset or 'it'}.")
        usual = own.channels(0)
        same = [window for window in own if window.channels == usual]
        kept = [name for name in usual if not names or name in names]
        rows = [usual.index(name) for name in kept]
        if not rows:
            raise DataError(f"its normal windows have other channels than the source: {', '.join(usual[:5])}.")
        units = same[0].units or ("",) * len(usual)
        return {usual[row]: units[row] for row in rows}, [window.values[rows] for window in same]

    # Following

    def _go_on(self, track: AssetTrack, kept: dict[str, Any], now: float) -> float:
        """Bring a track to where the last watch left it, or to now; returns from when on it must be followed."""
        known = kept.get("assets", {}).get(track.asset)
        last = self._whole_step(now)
        if known is not None and self.source.keeps_history:
            last = min(last, max(int(known["last"]), last - grid_step(MOST_CATCH_UP_S, self.step)))
        if known is not None:
            track.event = WatchedEvent.of_json(known["event"]) if known["event"] else None
            track.quiet = int(known["quiet"])
            track.units |= known.get("units", {})
            self._recall(track.event)
        track.begin(last - track.size)
        if self.source.keeps_history:
            first = (last - track.size) * self.step
            try:
                track.take(
                    self.source.read(first, last * self.step, asset=track.asset).of_asset(track.asset), self._say
                )
            except (UnreachableError, DataError) as error:
                self._say_once(str(error))
        track.advance(last)
        track.heard = max(track.heard, float((known or {}).get("heard", last * self.step)))
        return last * self.step

    def _recall(self, event: WatchedEvent | None) -> None:
        """What the log has of an event although the state does not: the watch was killed between the two."""
        waits = {own["notice"]["key"] for own in self._outbox}
        for notice in self.log.latest(1000) if event is not None and not event.settled else ():
            if event is not None and notice.key == event.next_key and notice.key not in waits:
                event.outcome = notice.kind
                self._send_later(notice)

    def _whole_step(self, now: float) -> int:
        """The last step of the grid of which all readings should be there."""
        return grid_step(now - self.settings.lag_s - SLACK * self.step, self.step)

    def _track(self, asset: str, now: float) -> AssetTrack | None:
        """The track of an asset; of a new one where there is room for it."""
        if asset in self.tracks:
            return self.tracks[asset]
        if len(self.tracks) >= self.settings.most_assets and not self._make_room(now):
            self._note_full(now)
            return None
        self._say(f"{asset or 'an asset without a name'} is new: it is followed")
        track = self.tracks[asset] = AssetTrack(asset, self.step, self.window, None)
        track.begin(self._whole_step(now) - 1)
        return track

    def _make_room(self, now: float) -> bool:
        """Forget the asset that has been silent longest, of those whose normal operation was not learned."""
        if now < self._no_room_until:
            return False
        passing = [own for own in self.tracks.values() if own.detector is None and own.event is None]
        oldest = min(passing, key=lambda own: own.heard, default=None)
        if oldest is None or now - oldest.heard < PASSING_S:
            self._no_room_until = now + 1.0 if oldest is None else min(oldest.heard + PASSING_S, now + SAVE_S)
            return False
        del self.tracks[oldest.asset]
        return True

    def _note_full(self, now: float) -> None:
        """Once a day: assets are left out."""
        day = now - now % DAY_S
        if day == self._full_day:
            return
        self._full_day = day
        words = (
            f"there are more than {self.settings.most_assets:,}; those that came first are followed. Raise"
            " --most-assets, or name fewer in the address of the source"
        )
        self._tell(note_trouble(self.source.shown, "following every asset", words, day, now))

    def _set_clock(self, track: AssetTrack, until: int) -> None:
        """What a clock that ran ahead and was set right made of the grid is undone; a long pause is left out."""
        if track.last - until > AHEAD_S / self.step:
            self._say_once("the clock was set back: the watch goes on from there")
            track.rewind(until)
        longest = grid_step(MOST_CATCH_UP_S, self.step)
        track.advance(until - longest)

    def _advance(self, track: AssetTrack, until: int, looks: int) -> tuple[list[Notice], int]:
        """Bring a track to a step, in parts short enough that no look is missed; returns notices, and looks so far."""
        told: list[Notice] = []
        part = max(1, self.window // 16)
        while track.last < until:
            steps = track.advance(min(until, track.last + part))
            if track.detector is None:
                self._learn_on(track, steps)
            else:
                self._detect(track, steps)
            if track.event is not None and not track.event.settled and looks < MOST_LOOKS:
                made, asked = self._look(track)
                looks += asked
                told += made
        return told, looks

    def _detect(self, track: AssetTrack, steps: int) -> None:
        """Look at the last steps: open an event where the score is above the limit, close one after half a window."""
        above = track.scores[-steps:] > 1.0
        if above.any():
            track.quiet = 0
            if track.event is None:
                place = len(track.scores) - steps + int(np.argmax(above))
                onset = find_onset(track.scores[: place + 1])
                first = track.last - len(track.scores) + 1
                self._open(track, first + onset, first + place, "departure")
        else:
            track.quiet += steps
        if track.event is not None and track.event.outcome and track.quiet >= self.window // 2:
            track.event = None

    def _name_silent(self) -> None:
        for track in self.tracks.values():
            for name in track.silent():
                self._say_once(f"{track.asset}: {name} is silent.")

    def _forget_silent(self) -> None:
        """Assets that come and go, such as containers, do not pile up."""
        latest = max((own.heard for own in self.tracks.values()), default=0.0)
        gone = [asset for asset, own in self.tracks.items() if latest - own.heard > FORGET_S]
        for asset in gone:
            self._say(f"{asset or 'the asset'} has been silent for a week: it is forgotten")
            del self.tracks[asset]
        if gone:
            self._save_normals()

    def _open(self, track: AssetTrack, onset: int, seen: int, trigger: str, key: str = "") -> None:
        onset = max(onset, seen - self.window)
        key = digest(self.source.shown, track.asset, onset, trigger, key)
        track.event = WatchedEvent(key, onset, seen, trigger)
        self._say(f"{track.asset or 'the asset'} departs ({trigger})")
        self._save(self._now(), at_once=True)

    def _take_alerts(self) -> None:
        """Open events for alerts that came; an event that is open already will be told in any case."""
        with self._lock:
            alerts = list(self._alerts)
        for asset, started, name, key in alerts:
            whose = asset if asset in self.tracks or len(self.tracks) != 1 else next(iter(self.tracks))
            if whose not in self.tracks:
                self._say_once(f"The alert {name} is of {asset or 'no asset'}, which the source does not have.")
                continue
            track = self.tracks[whose]
            if track.event is None or track.event.outcome:
                self._open(track, grid_step(started, self.step), track.last, name, key)
            elif track.event.trigger == "departure":
                track.event.trigger = name
        if alerts:
            self._save(self._now(), at_once=True)
            with self._lock:
                self._alerts = deque([own for own in self._alerts if own not in alerts], MOST_ALERTS)
                self._save_alerts()

    def _save_alerts(self) -> None:
        heard = {"waiting": list(self._alerts), "known": list(self._known_alerts)}
        write_text(self.folder / "alerts.json", json.dumps(heard), durable=True)

    # Asking and telling

    def _look(  # noqa: PLR0911 - reasons to say nothing
        self, track: AssetTrack
    ) -> tuple[list[Notice], int]:
        """Ask the library, if it is time to; returns what is told, and how often it was asked."""
        event = track.event
        if event is None:
            return [], 0
        grown = (track.last - event.onset) / self.window
        alarmed = event.trigger != "departure" and event.looked < 0
        due = _last_look(event.looked, grown)
        departs = track.detector is not None and not track.quiet
        if (due <= event.looked or (event.outcome and not departs)) and not alarmed:
            return [], 0
        event.looked = max(due, 0.0)
        windows = track.cut(1.0 / self.step)
        if windows is None:
            if event.looked >= LOOKS[-1]:
                self._say(f"{track.asset or 'the asset'}: nothing is told, since nothing was read for a window")
                track.event = None
            return [], 0
        try:
            answer = self.library.search(windows, k=MOST_CASES, method=self.settings.method)
        except ReadbenchError as error:
            self._say(f"{track.asset}: the library cannot be asked: {error}")
            return [], 1
        kind = self._judge(event, answer, last=event.looked >= LOOKS[-1])
        if kind is None or (event.outcome and kind != "fault"):
            return [], 1
        if kind == "normal":
            event.outcome = kind
            self._say(f"{track.asset}: nothing is told, since the library takes it for normal operation")
            return [], 1
        notice = self._compose(track, event, kind, answer, windows)
        event.outcome = kind
        self._tell(notice)
        return [notice], 1

    def _judge(self, event: WatchedEvent, answer: Answer, *, last: bool) -> Kind | Literal["normal"] | None:
        """Whether an answer is to be told, and as what; None where it is too early."""
        top = answer.faults[0] if answer.faults else None
        label, share = (top.label, top.probability) if top else ("", 0.0)
        before, event.belief = event.belief, (label, share)
        if not answer.judgeable or top is None:
            return "unclear" if last else None
        if label not in {UNLIKE, NORMAL_OPERATION}:
            firm = self.settings.firm
            again = before[0] == label and before[1] >= firm
            if share >= firm and (again or last or share >= (1 + firm) / 2):
                return "fault"
        if not last:
            return None
        if label == NORMAL_OPERATION and share >= 0.5 and event.trigger == "departure":
            return "normal"
        return "unlike" if label == UNLIKE else "unclear"

    def _compose(
        self,
        track: AssetTrack,
        event: WatchedEvent,
        kind: Kind,
        answer: Answer,
        windows: WindowSet,
    ) -> Notice:
        onset, base = event.onset * self.step, self.settings.link.rstrip("/")
        cases = tuple(
            NoticeCase(
                id=hit.case.id,
                label=hit.case.label,
                asset=hit.case.asset,
                notes=shorten_note(hit.case.notes),
                link=link_case(base, hit.case.id) if base else "",
            )
            for hit in answer.hits
        )
        faults = tuple(NoticeFault(label=own.label, probability=own.probability) for own in answer.faults[:3])
        begun = max(0, event.onset - track.last + self.window - 1)
        evidence = self._explain(windows, cases[0].id, begun) if cases else ()
        now = self._now()
        return Notice(
            key=event.next_key,
            follows=event.key if event.next_key != event.key else "",
            kind=kind,
            asset=track.asset,
            source=self.source.shown,
            onset=onset,
            seen=event.seen * self.step,
            told=now,
            trigger=event.trigger,
            faults=faults,
            cases=cases,
            evidence=evidence,
            remarks=(*(own.words for own in answer.plausibility), *answer.remarks),
            link=self._link(base, track, onset) if base else "",
            text=_describe(track.asset, kind, faults, cases, now - onset, self.settings.firm),
        )

    def _explain(self, windows: WindowSet, case: str, onset: int) -> tuple[NoticeEvidence, ...]:
        try:
            found = self.library.explain(windows, case, onset=onset)
        except ReadbenchError as error:
            self._say_once(str(error))
            return ()
        return tuple(
            NoticeEvidence(channel=own.name, window=own.window, case=own.case, same_way=own.same_way)
            for own in found.channels[:MOST_EVIDENCE]
        )

    def _link(self, base: str, track: AssetTrack, onset: float) -> str:
        """The page that opens the range."""
        start, end = onset - self.window * self.step / 2, track.last * self.step
        asked = {"source": self.settings.name, "asset": track.asset, "start": f"{start:.0f}", "end": f"{end:.0f}"}
        return f"{base}/ranges?{urlencode(asked | {'onset': f'{onset:.0f}'})}"

    def _tell(self, notice: Notice) -> None:
        """Write a notice down, then the state, then send it: killed in between, the next watch knows where to go on."""
        self._say(notice.text)
        self.log.write(notice)
        self._send_later(notice)
        self._save(self._now(), at_once=True)
        self._flush(self._now())

    def _send_later(self, notice: Notice) -> None:
        left = [hook.key for hook in self.hooks]
        if left:
            entry = {"notice": notice.model_dump(mode="json"), "left": left, "tries": 0, "next": 0.0}
            self._outbox = [*self._outbox, entry][-MOST_OUTBOX:]

    def _flush(self, now: float) -> None:
        """Send what waits; who does not take it is asked again, later and later."""
        if not self._outbox:
            return
        hooks = {hook.key: hook for hook in self.hooks}
        silent: set[str] = set()
        changed = False
        for entry in self._outbox:
            if entry["next"] > now:
                continue
            notice, changed = Notice.model_validate(entry["notice"]), True
            waits = [key for key in entry["left"] if key in hooks]
            left = [key for key in waits if key in silent or not self._send(hooks[key], notice, silent)]
            entry["left"], entry["tries"] = left, entry["tries"] + 1
            entry["next"] = now + min(RETRY_S[0] * 2 ** min(entry["tries"], 10), RETRY_S[1])
        if changed:
            self._outbox = [entry for entry in self._outbox if entry["left"]]
            self._save(now, at_once=True)

    def _send(self, hook: Webhook, notice: Notice, silent: set[str]) -> bool:
        """Whether a notice was taken; who does not answer at all is silent, and waited for once in a round."""
        try:
            hook.send(notice)
        except ReadbenchError as error:
            if isinstance(error, UnreachableError):
                silent.add(hook.key)
            self._say_once(str(error))
            return False
        return True

    def _save(self, now: float, *, at_once: bool = False) -> None:
        if not at_once and now - self._saved < SAVE_S:
            return
        assets = {
            own.asset: {
                "last": own.last,
                "event": own.event and own.event.to_json(),
                "quiet": own.quiet,
                "heard": own.heard,
                "units": {name: unit for name, unit in own.units.items() if unit},
            }
            for own in self.tracks.values()
        }
        state = {"assets": assets, "outbox": self._outbox, "read": self._read_at, "blind": self._blind_since}
        write_text(self.folder / "state.json", json.dumps(state), durable=at_once)
        self._saved = now

    def _say_once(self, words: str) -> bool:
        """Say what was not said lately; False where it was."""
        words = words[:MOST_WORDS]
        if words in self._said:
            return False
        self._said.append(words)
        self._say(words)
        return True


def _last_look(looked: float, grown: float) -> float:
    """The last look that is due so long after the onset; the one that was, where none is.

    >>> _last_look(-1.0, 0.3), _last_look(0.25, 0.3), _last_look(1.0, 2.0), _last_look(1.0, 2.5)
    (0.25, 0.25, 1.5, 2.25)
    """
    for share in LOOKS:
        if looked < share <= grown:
            looked = share
    while looked >= LOOKS[-1] and LATER * looked <= grown:
        looked *= LATER
    return looked


def _describe(
    asset: str, kind: str, faults: Iterable[NoticeFault], cases: Sequence[NoticeCase], late_s: float, firm: float
) -> str:
    """All of a notice in a sentence or two."""
    best = next(iter(faults), None)
    whose, since = asset or "The asset", f"{max(0.0, late_s):.0f} s after it began"
    like = f" Most like case {cases[0].id}" + (f": {cases[0].notes}" if cases[0].notes else ".") if cases else ""
    if kind == "fault" and best is not None:
        return f"{whose}: {best.label} ({best.probability:.0%}), {since}.{like}"
    if kind == "unlike":
        return f"{whose} departs from normal, unlike anything here, {since}.{like}"
    below = f", below {firm:.0%}" if best is not None and best.probability < firm else ""
    likely = "" if best is not None and best.label == UNLIKE else "most likely "
    guess = f"; {likely}{best.label} ({best.probability:.0%}{below})" if best is not None else ""
    return f"{whose} departs from normal, {since}{guess}.{like}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}). Remove it: the watch learns anew.") from error
    return found if isinstance(found, dict) else {}
