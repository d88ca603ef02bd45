"""`Library`: resolved incidents, and the search through them."""

from __future__ import annotations

import math
import sys
import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.cases import _journal as journal
from readbench.cases._answer import SearchRequest, make_answer
from readbench.cases._asking import DEFAULT_METHOD, AskedWindow
from readbench.cases._bulk import encode_cases
from readbench.cases._channels import ChannelNames, check_unit, compare_channels
from readbench.cases._evidence import explain_match
from readbench.cases._intake import (
    GivenWindows,
    ReadRecording,
    attach_context,
    check_case,
    check_seen,
    describe_context,
    describe_still,
    facts_of,
    new_id,
    prepare_windows,
    read_recording,
    to_windows,
)
from readbench.cases._journal import MAX_SUGGESTED_CASES, JournalEntry, Snapshot, State, What
from readbench.cases._learning import BackgroundLearner, Kept, Learned, LessonFollower, work_half_time
from readbench.cases._models import (
    AddedCase,
    Answer,
    Case,
    CaseDetails,
    Change,
    Doubt,
    Evidence,
    Filter,
    LibraryOverview,
    Remark,
    Suggestion,
    Summary,
    WindowCheck,
)
from readbench.cases._normal import NormalModel
from readbench.cases._overview import draw_map, find_doubtful, suggest_next
from readbench.cases._plausibility import LibraryProfile, check_window
from readbench.cases._questions import QUESTIONS
from readbench.cases._search import EXACT_CASES, SHORTLIST, Engine, Review
from readbench.cases._store import LibraryVectors, Store, open_store
from readbench.cases.roles import Deed, check_deed
from readbench.common.deadlines import hold_lock
from readbench.common.progress import SILENT, Progress
from readbench.common.supervised import Hear, LoopState
from readbench.common.tables import split_header
from readbench.engine.context import Facts
from readbench.engine.spec import MethodSpec, parse
from readbench.engine.windows import WindowSet
from readbench.errors import ReadbenchError, UnknownNameError, UsageError

R = TypeVar("R")
Reviewed = TypeVar("Reviewed", Suggestion, Doubt)
FEW_MORE = 1.05
"""Factor by which a library may have grown before cases on their way in are compared with what it is now."""
ADD_BATCH = 1000
"""Cases written in one atomic step; a killed writer loses at most the step in flight."""


class Library:
    """Cases, normal windows, and the search through them; safe to use from several threads.

    Example: `Library.open("plant").search(Path("new.csv"), k=5)`; a text is the name of a case.

    Every process may search; one at a time writes, and the others see the new state at their next call. Who reads waits
    for nobody: a question is answered from the state in which the library was when it came.

    Args:
        store: where it lives; `Library.open` and `Library.create` take a folder or an address.
        as_of: number of the last change that counts; the library is then read-only.
        exact_cases: up to this many cases, the method compares all of them; above, a shortlist.
        shortlist: cases of the shortlist.
        progress: told how far cases have been encoded before a first question, and how many were added.
        background: for processes that live long: what changes is searched at once, but learned from beside the
            questions, which say so meanwhile (`readbench.cases._learning`). By default the next question learns from it
            first.
        follower: for processes that search for another, which tells them what it learns (`follow`): they learn nothing
            themselves, keep no vectors, and raise `UntaughtError` where they cannot answer.
    """

    def __init__(
        self,
        store: Store,
        *,
        as_of: int | None = None,
        exact_cases: int = EXACT_CASES,
        shortlist: int = SHORTLIST,
        progress: Progress = SILENT,
        background: bool = False,
        follower: bool = False,
    ) -> None:
        self.store = store
        self.as_of = as_of
        self.progress = progress
        self.limits = {"exact_cases": exact_cases, "shortlist": shortlist}
        self.heard: Callable[[Answer, float], None] | None = None
        """Told of every answer, and how many seconds it took; for those who count."""
        self._learner = LessonFollower() if follower else BackgroundLearner() if background else None
        self._encoding = BackgroundLearner("encodes cases ahead") if background else None
        self._encoded_ahead = set[str]()
        self._engine = Engine(store, exact_cases, shortlist, self._learner, self.snapshot)
        self._write_lock = RLock()
        self._snapshot_lock = Lock()
        self._current = -1, Snapshot(State({}, {}, (), 0), store)
        self._overview = self._keep("overview", _changes_of, lambda snapshot, *_: draw_map(snapshot))
        # Labels do not count for the profile, recordings and assets do: they are held out together.
        self._profile = self._keep("profile", _state_of, lambda snapshot, *_: snapshot.profile, lasting=True)
        self._normal = self._keep("normal", _state_of, lambda snapshot, *_: NormalModel.of(snapshot, snapshot.profile))

    @classmethod
    def create(
        cls,
        where: str | Path,
        *,
        progress: Progress = SILENT,
        background: bool = False,
        **options: Any,  # noqa: ANN401 - numbers, as the constructor takes them
    ) -> Self:
        """A new, empty library; refused where there is one."""
        return cls(open_store(where, create=True), progress=progress, background=background, **options)

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        as_of: int | None = None,
        progress: Progress = SILENT,
        background: bool = False,
        **options: Any,  # noqa: ANN401 - likewise
    ) -> Self:
        """A library that exists."""
        return cls(open_store(where), as_of=as_of, progress=progress, background=background, **options)

    def __repr__(self) -> str:
        held = self.stats()
        faults, unresolved = len(set(held.labels) - {""}), held.labels.get("", 0)
        when = "" if self.as_of is None else f", as of change {self.as_of}"
        return (
            f"Library({self.store.where!r}{when})\n"
            f"  {held.cases} cases of {faults} faults, {unresolved} of them open; {held.normals} normal windows\n"
            f"  change {held.change}; ask: {', '.join(('search', *QUESTIONS))}"
        )

    # What is in it

    def __len__(self) -> int:
        return len(self.snapshot())

    def cases(self, where: Filter | None = None) -> list[Case]:
        """All cases, or those of a filter, in the order in which they came."""
        chosen = where or Filter()
        return [entry.case for entry in self.snapshot().entries if chosen.admits(entry.case)]

    def case(self, case: str) -> Case:
        """What is known of one case."""
        snapshot = self.snapshot()
        return snapshot.case(snapshot.position(case))

    def window(self, case: str) -> WindowSet:
        """The window of a case: a set of one."""
        snapshot = self.snapshot()
        return snapshot.windows([snapshot.position(case)])

    def details(self, case: str) -> CaseDetails:
        """What is known of one case, and what its window is and brings along."""
        found = self.window(case)[0]
        return CaseDetails(
            case=self.case(case),
            channels=found.channels,
            steps=found.values.shape[1],
            before=0 if found.before is None else found.before.shape[1],
            rate=None if math.isnan(found.rate) else found.rate,
            units=found.units,
            facts=dict(found.facts),
        )

    def describe_contexts(self, cases: Sequence[Case]) -> list[str]:
        """What the windows of cases brought along, in a few words each; "" for those that brought nothing."""
        known = self.snapshot().state.cases
        digests = [known[case.id].context for case in cases]
        found = self.store.list_contexts(digests)
        words = {name: describe_context(window.before, window.rate, window.facts) for name, window in found.items()}
        return [words.get(digest, "") for digest in digests]

    def normals(self) -> WindowSet:
        """The windows of normal operation."""
        return self.snapshot().normals

    def find(self, text: str, limit: int = 20) -> list[Case]:
        """Cases whose name has a text in it, the shortest first; then those whose notes speak of it, best first."""
        known, wanted = self.snapshot().state.cases, text.strip().casefold()
        named = sorted((name for name in known if wanted and wanted in name.casefold()), key=len)
        matching = dict.fromkeys(self.store.match_notes(text, 10 * limit + 100))
        noted = [name for name, notes in matching if name in known and known[name].case.notes == notes]
        return [known[name].case for name in list(dict.fromkeys((*named, *noted)))[:limit]]

    def history(self) -> list[Change]:
        """All changes, oldest first."""
        return list(self.snapshot().state.changes)

    def describe_changes(self, changes: Sequence[Change]) -> list[Change]:
        """The same changes, each with what it did to which cases."""
        first = max(0, self.snapshot().state.steps - journal.DETAILED_ROWS)
        return journal.describe_changes(self.store.journal(first), changes)

    def stats(self) -> Summary:
        """Counts."""
        return _summarise(self.snapshot())

    # What changes it

    def add(
        self,
        windows: GivenWindows,
        facts: Sequence[Case] | None = None,
        normal: Sequence[bool] | None = None,
        *,
        channels: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Add cases, all of them or none; a very long list in steps of `ADD_BATCH`.

        Args:
            windows: N windows: a set, whose ids, labels, groups, assets and times count without `facts`; windows; an
                array (C, T) or (N, C, T); a list of arrays (C, T); or the path of a file. The context that they bring
                is kept.
            facts: what is known of each; an empty id gets a name.
            normal: which of them are no cases but show normal operation; none by default.
            channels: C names, of arrays.
            labels: N fault types, None where nobody knows, instead of `facts`.
            progress: told how many were added; by default the library's own.

        Returns:
            The names of the cases.
        """
        read = read_recording(windows) if isinstance(windows, str | Path) and channels is None else windows
        converted = to_windows(read, channels)
        known = read.facts() if isinstance(read, ReadRecording) else facts_of(converted)
        given = _with_labels(known if facts is None else list(facts), labels)
        if len(given) != len(converted):
            raise UsageError(f"Got {len(converted)} windows, but facts on {len(given)}.")
        flags = [False] * len(given) if normal is None else list(normal)
        return self._take_in(converted, [_name(case) for case in given], flags, progress or self.progress)

    def add_one(
        self,
        values: ArrayLike,
        channels: Sequence[str],
        *,
        before: ArrayLike | None = None,
        rate: float | None = None,
        units: Sequence[str] | None = None,
        facts: Facts | None = None,
        **known: Any,  # noqa: ANN401 - fields of Case
    ) -> Case:
        """Add one case.

        Args:
            values: (C, T).
            channels: C names.
            before: (C, T_b) readings of the same asset in the time before, in the same channels.
            rate: samples a second.
            units: of the channels.
            facts: numbers that were known beforehand, such as `{"speed": 29.5}`.
            known: fields of `Case`, all optional.
        """
        case = Case(**({"id": new_id()} | known))
        converted = to_windows([np.asarray(values)], channels)
        names = self.add(attach_context(converted, before=before, rate=rate, units=units, facts=facts), [case])
        return self.case(names[0])

    def add_checked(self, windows: GivenWindows, case: Case, remarks: tuple[str, ...] = ()) -> AddedCase:
        """Add one case with remarks on its file, and say what is odd about its window beside those that are here.

        Where the same window of the same asset and time is here already, and the case has no other name, nothing is
        added: that case comes back, with a remark.
        """
        odd, named = self.check_many(windows, exact=False)[0], _name(case)
        known = named.id in self.snapshot().state.cases
        once = known or not case.id
        added = self.case(self._take_in(to_windows(windows), [named], [False], self.progress, once=once)[0])
        if known or added.id != named.id:
            remarks = (*remarks, f"The same window is here already, as case {added.id!r}: nothing was added.")
        return AddedCase(**added.model_dump(), remarks=remarks, plausibility=odd)

    def add_normals(
        self,
        windows: GivenWindows,
        asset: str | None = None,
        *,
        channels: Sequence[str] | None = None,
        rate: float | None = None,
        facts: Facts | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Add windows of normal operation, given as in `add`; `asset`, `rate` and `facts` replace their own."""
        converted = attach_context(to_windows(windows, channels), rate=rate, facts=facts)
        update = {} if asset is None else {"asset": asset}
        cases = [case.model_copy(update=update) for case in facts_of(converted)]
        return self.add(converted, cases, [True] * len(cases), progress=progress)

    def edit(self, case: str, *, seen: float | None = None, **facts: Any) -> Case:  # noqa: ANN401 - fields of Case
        """Replace what is known of a case: any field of `Case` but its name.

        A label ends that the same fault type is ruled out, and ruling out its fault type ends a label.

        Args:
            case: its name.
            seen: `changed` of the case as the writer saw it: what was written since is not replaced unseen but raises
                `ConflictError`. `UNSEEN` admits what replaces nothing. None replaces whatever is there.
            facts: fields of `Case`.
        """
        if {"id", "changed"} & set(facts):
            raise UsageError("The name of a case stays. Delete it and add it again.")

        def replace_facts(old: Case) -> Case:
            new = _agree(Case.model_validate(old.model_dump() | facts), set(facts))
            check_seen(old, check_case(new, old), seen)
            return new

        self._change([case], "edit", replace_facts)
        return self.case(case)

    def label(self, case: str, label: str | None, *, seen: float | None = None) -> Case:
        """Say what a case was, or with None that nobody knows; counts in the next search."""
        return self.edit(case, seen=seen, label=label)

    def confirm(self, case: str, like: str, *, seen: float | None = None) -> Case:
        """Say that a case is of the same fault type as another one."""
        return self.edit(case, seen=seen, label=self._label_of(like))

    def reject(self, case: str, like: str, *, seen: float | None = None) -> Case:
        """Say that a case is not of the fault type of another one: it will not be counted among that type again."""
        ruled_out = tuple(dict.fromkeys((*self.case(case).rejected, self._label_of(like))))
        return self.edit(case, seen=seen, rejected=ruled_out)

    def delete(self, cases: Iterable[str], *, seen: float | None = None) -> None:
        """Take cases or normal windows out; `undo` brings them back. `seen` as in `edit`."""

        def look(old: Case) -> Case:
            check_seen(old, None, seen)
            return old

        self._change(list(cases), "delete", look)

    def undo(self, change: int | None = None) -> Change:
        """Take a change back: the last one that still stands, or any; what later ones said of its cases stays."""
        return self._revert(change, lambda entry: entry.what != "undo")

    def redo(self, change: int | None = None) -> Change:
        """Make a change again that was taken back: the one that was taken back last, or any."""
        undos = [change_made for change_made in self.history() if change_made.takes_back and not change_made.undone]
        taken = [undo for undo in undos if change in (None, undo.takes_back)]
        if not taken:
            what = "No change" if change is None else f"Change {change} is not one that"
            raise UsageError(f"{what} was taken back. `history` lists the changes.")
        self._revert(taken[-1].number, lambda entry: entry.what == "undo")
        return next(entry for entry in self.history() if entry.number == taken[-1].takes_back)

    def name_channel(self, name: str, unit: str = "", aliases: Sequence[str] = ()) -> None:
        """Say what a channel is called here, in which unit it is kept, and what else it is called.

        It counts for cases that are already in, too. An alias may have a unit of its own, `PT-101 [kPa]`.
        """
        entries = [(name, name, check_unit(unit))]
        for alias in aliases:
            base, unit_of_alias = split_header(alias)
            entries.append((base, name, check_unit(unit_of_alias) or unit))
        check_deed(Deed.NAME_CHANNELS)
        with self.store.writing():
            self.store.file_naming(entries)

    # What is asked of it

    def ask(self, question: str, **parameters: Any) -> Any:  # noqa: ANN401 - as the question declares them
        """Ask one of `readbench.cases.QUESTIONS` by its name, such as `library.ask("doubtful", k=5)`."""
        if question not in QUESTIONS:
            raise UnknownNameError("question", question, list(QUESTIONS))
        return QUESTIONS[question](self, **parameters)

    def search(  # noqa: PLR0913 - what is asked about, how, and what is known of it
        self,
        window: AskedWindow,
        *,
        channels: Sequence[str] | None = None,
        k: int = 10,
        method: str = DEFAULT_METHOD,
        where: Filter | None = None,
        before: ArrayLike | None = None,
        rate: float | None = None,
        units: Sequence[str] | None = None,
        facts: Facts | None = None,
    ) -> Answer:
        """The cases most like a window, and what it may be.

        Args:
            window: the name of a case of this library, or one window: a set or `Window`, what was read of a file, an
                array (C, T), or the path of a file.
            channels: C names, of an array.
            k: most hits.
            method: of the grammar; it sees context only where it uses any.
            where: which cases are listed.
            before: (C, T_b) readings of the same asset in the time before.
            rate: samples a second.
            units: of the channels.
            facts: numbers that are known beforehand, by name.
        """
        if isinstance(window, str):
            if not (before is None and rate is None and units is None and facts is None):
                raise UsageError(f"{window!r} is the name of a case, which has its own context. Give none beside it.")
            snapshot, request = self.snapshot(), self._request(k, method, where, window)
            position = snapshot.position(window)
            converted, ruled_out = snapshot.windows([position]), snapshot.case(position).rejected
            return self._answer(
                snapshot, converted, request, ruled_out, self._check(snapshot, converted, None, window)
            )[0]
        read = read_recording(window) if isinstance(window, Path) and channels is None else window
        converted = attach_context(to_windows(read, channels), before=before, rate=rate, units=units, facts=facts)
        if len(converted) != 1:
            raise UsageError(f"Give one window; got {len(converted)}. For more there is search_many.")
        answer = self.search_many(converted, k=k, method=method, where=where)[0]
        return _remark(answer, list(read.remarks)) if isinstance(read, ReadRecording) else answer

    def search_many(
        self,
        windows: GivenWindows,
        *,
        channels: Sequence[str] | None = None,
        k: int = 10,
        method: str = DEFAULT_METHOD,
        where: Filter | None = None,
    ) -> list[Answer]:
        """The same for several windows at once, given as in `add`."""
        given, snapshot = to_windows(windows, channels), self.snapshot()
        named, request = snapshot.naming(prepare_windows(given)), self._request(k, method, where, None)
        answers = self._answer(snapshot, named, request, (), self._check(snapshot, named, given, None))
        return [
            _remark(answer, compare_channels(given.channels(i), named.channels(i), snapshot.usual_channels))
            for i, answer in enumerate(answers)
        ]

    def check(self, window: AskedWindow, *, channels: Sequence[str] | None = None) -> WindowCheck:
        """What is odd about a window, given as in `search`, beside the cases and normals of the library."""
        if isinstance(window, str):
            odd = self._check(self.snapshot(), self.window(window), None, window)[0]
        else:
            converted = to_windows(window, channels)
            if len(converted) != 1:
                raise UsageError(f"Give one window; got {len(converted)}.")
            odd = self.check_many(converted)[0]
        return WindowCheck(plausibility=odd, judgeable=all(remark.judgeable for remark in odd))

    def check_many(
        self, windows: GivenWindows, *, channels: Sequence[str] | None = None, exact: bool = True
    ) -> list[tuple[Remark, ...]]:
        """What is odd about each of several windows, given as in `add`.

        Args:
            windows: N of them.
            channels: C names, of arrays.
            exact: look at the library as it is now; else as it was a few cases ago may do, which is faster while many
                come in.
        """
        converted = to_windows(windows, channels)
        return self._check(self.snapshot(), self.prepare(converted), converted, None, exact=exact)

    def explain(
        self,
        window: AskedWindow,
        case: str,
        *,
        channels: Sequence[str] | None = None,
        before: ArrayLike | None = None,
        units: Sequence[str] | None = None,
        onset: int = 0,
    ) -> Evidence:
        """Why a case resembles a window: channels that depart from normal in the same way, and the alignment.

        A window that brings a time before it is measured by that; `before` and `units` as in `search`. Where a fault
        begins within the window, `onset` is the step: departures count from there on.
        """
        if isinstance(window, str):
            asked = self.window(window)
        else:
            asked = self.prepare(attach_context(to_windows(window, channels), before=before, units=units))
        snapshot = self.snapshot()
        return explain_match(snapshot, asked[0], snapshot.case(snapshot.position(case)), onset)

    def overview(self) -> LibraryOverview:
        """A map of the latest cases, and which are near-duplicates; looked at once after each change."""
        return self._overview.get(self.snapshot()).value

    def next_to_label(self, k: int = 10, method: str = DEFAULT_METHOD) -> list[Suggestion]:
        """The open cases whose labels would tell most about the others, most telling first.

        Of a large library, the latest cases are looked at.

        Args:
            k: most suggestions.
            method: of the grammar; its views say what is alike.
        """
        found = self._review(suggest_next, k, method)
        return [suggestion for suggestion in found if suggestion.case.label is None][:k]

    def doubtful(self, k: int = 20, method: str = DEFAULT_METHOD) -> list[Doubt]:
        """The resolved cases that look like another fault type to all other recordings; arguments as above."""
        return self._review(find_doubtful, k, method)[:k]

    def warm(self, method: str = DEFAULT_METHOD, progress: Progress | None = None) -> int:
        """Do now what the first search would do: encode and fit; returns how many cases had to be encoded.

        Args:
            method: of the grammar.
            progress: told how far that has come; by default the library's own.
        """
        before = self._engine.vectors.encoded
        snapshot = self.snapshot()
        if len(snapshot):
            first = snapshot.case(0)
            request = self._request(1, method, None, first.id)
            first_window = snapshot.windows([0])
            odd = self._check(snapshot, first_window, None, first.id)
            self._answer(snapshot, first_window, request, first.rejected, odd, progress)
        return self._engine.vectors.encoded - before

    def learned(self) -> dict[str, Learned[Any]]:
        """What a search needs beside the cases, as far as it is known: by name, as `follow` takes it."""
        learned = {kept.name: kept.known for kept in (self._profile, self._normal) if kept.known}
        return {**learned, **self._engine.learned()}

    def keep_up(self) -> None:
        """Learn in the background from what changed since; nobody else may ask for it where others search."""
        snapshot = self.snapshot()
        if 0 < len(snapshot) <= self._engine.exact_cases:
            self._profile.get(snapshot)
            self._normal.get(snapshot)
            self._engine.keep_up(snapshot)

    def follow(self, name: str, learned: Learned[Any]) -> None:
        """Go on with what another process has learned."""
        for kept in (self._profile, self._normal):
            if kept.name == name:
                kept.known = learned
                return
        if self._current[0] < 0:  # the state is there already: only what came since is read
            with self._snapshot_lock:
                self._current = -1, learned.snapshot
        self._engine.follow(name, learned)

    @property
    def vectors(self) -> LibraryVectors:
        """Where the vectors of its cases are kept."""
        return self._engine.vectors

    def list_compared(self, window: WindowSet) -> NDArray[np.int64]:
        """Positions of the cases that a method is given to compare with one window: all, or a shortlist."""
        snapshot = self.snapshot()
        named = snapshot.naming(prepare_windows(window))
        return self._engine.shortlist_for(snapshot, named, self.progress)

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is learned or encoded in the background; False where one takes longer than so long."""
        return all(background.settle(timeout_s) for background in (self._learner, self._encoding) if background)

    @property
    def loops(self) -> list[LoopState]:
        """How the loops are that learn and encode in the background."""
        return [background.loop for background in (self._learner, self._encoding) if background]

    def hear_loops(self, hear: Hear) -> None:
        """Be told when one of them fails, and when it works again."""
        for background in (self._learner, self._encoding):
            if background:
                background.hear(hear)

    def count_known(self) -> int:
        """Cases when the library was last read: at once, whatever goes on; it is read where it never was."""
        return len(self.snapshot() if self._current[0] < 0 else self._current[1])

    def stats_known(self) -> Summary:
        """`stats` of the library when it was last read, likewise."""
        return _summarise(self.snapshot() if self._current[0] < 0 else self._current[1])

    def prepare(self, windows: WindowSet) -> WindowSet:
        """Windows and their context without gaps, under the site's names and in its units."""
        return self.snapshot().naming(prepare_windows(windows))

    def naming(self) -> ChannelNames:
        """What the site calls its channels."""
        return ChannelNames.of(self.store.naming())

    def snapshot(self) -> Snapshot:
        """The state of the library now, or at `as_of`."""
        revision = self.store.revision()
        known, snapshot = self._current
        if revision == known:
            return snapshot
        with self._snapshot_lock:
            known, snapshot = self._current
            if revision != known:
                snapshot = Snapshot(self._state(snapshot.state), self.store, self.naming()).after(snapshot)
                self._current = revision, snapshot
            return snapshot

    # Inside

    def _keep(
        self,
        name: str,
        key_of: Callable[[Snapshot], str],
        learn: Callable[[Snapshot, Learned[R] | None, Progress], R],
        *,
        lasting: bool = False,
    ) -> Kept[R]:
        return Kept(name, key_of, learn, self._learner, self.snapshot, lasting=lasting)

    def _state(self, known: State) -> State:
        """What the journal says; of a journal that only grew, the new rows are read."""
        if known.steps and self.as_of is None:
            state = journal.advance(known, self.store.journal(known.steps))
            if state is not None:
                return state
        return journal.fold(self.store.journal(), self.as_of)

    def _request(self, k: int, method: str, where: Filter | None, itself: str | None) -> SearchRequest:
        return SearchRequest(
            method=_read_method(method), k=_check_count(k, "search"), where=where or Filter(), itself=itself
        )

    def _review(self, look: Callable[[Review, int], list[Reviewed]], k: int, method: str) -> list[Reviewed]:
        """What is found, of cases as they are now: those that changed since the review learned are left out."""
        count, spec, snapshot = _check_count(k, "a review"), parse(method), self.snapshot()
        if not len(snapshot):
            return []
        review = self._engine.review(snapshot, spec, self.progress)
        known, learned = snapshot.state.cases, review.snapshot.state.cases
        changed = [] if learned is known else [name for name, value in learned.items() if known.get(name) != value]
        found = look(review, count + len(changed))
        return [suggestion for suggestion in found if suggestion.case.id not in set(changed)]

    def _check(
        self, snapshot: Snapshot, windows: WindowSet, given: WindowSet | None, itself: str | None, *, exact: bool = True
    ) -> list[tuple[Remark, ...]]:
        """What is odd about windows: prepared, as they were given, and the case that is asked about."""
        profile = self._know_profile(snapshot, exact=exact)
        reference = profile and profile.without(itself)
        count = range(len(windows))
        return [tuple(check_window(reference, windows[i], None if given is None else given[i])) for i in count]

    def _know_profile(self, snapshot: Snapshot, *, exact: bool) -> LibraryProfile | None:
        """What the windows of the library look like, as it is now or was a few cases ago."""
        known = self._profile.known
        if known and not exact and len(known.snapshot) <= len(snapshot) <= len(known.snapshot) * FEW_MORE:
            return known.value
        return self._profile.get(snapshot).value

    def _answer(
        self,
        snapshot: Snapshot,
        windows: WindowSet,
        request: SearchRequest,
        ruled_out: tuple[str, ...],
        odd: list[tuple[Remark, ...]],
        progress: Progress | None = None,
    ) -> list[Answer]:
        began = clock.perf_counter()
        spec, learned = _read_spec(request.method), self._normal.get(snapshot)
        model, behind = learned.value, self._normal.count_behind(learned, snapshot)
        normal = [None] * len(windows) if model is None else model.judge(windows)
        answers = list[Answer]()
        for found in self._engine.search(snapshot, spec, windows, ruled_out, progress or self.progress):
            last = replace(found, behind=max(behind, found.behind))
            for query in range(len(found.ranking)):
                i = len(answers)
                answers.append(make_answer(snapshot, last, query, request, odd[i], normal[i]))
        if len(snapshot) > self._engine.exact_cases:
            self._encode_ahead(spec)
        told = [_remark(answer, describe_still(windows[i : i + 1])) for i, answer in enumerate(answers)]
        if self.heard:
            for answer in told:
                self.heard(answer, (clock.perf_counter() - began) / len(told))
        return told

    def _encode_ahead(self, spec: MethodSpec) -> None:
        """Encode all cases of a large library beside the searches, once: a shortlist of unknown ones takes long."""
        if self._encoding and str(spec) not in self._encoded_ahead:
            self._encoded_ahead.add(str(spec))
            encode = partial(encode_cases, exact_cases=self._engine.exact_cases)
            self._encoding.submit(str(spec), lambda: _try_encoding(encode, self.snapshot(), spec))

    def _take_in(
        self,
        windows: WindowSet,
        facts: list[Case],
        normal: list[bool],
        progress: Progress,
        *,
        once: bool = False,
    ) -> list[str]:
        """Add windows; of one that comes `once`, the name of the case that has it already."""
        check_deed(Deed.ADD)
        prepared = self.prepare(windows)
        facts = [check_case(_unlabel(case) if flag else case) for case, flag in zip(facts, normal, strict=True)]
        what: What = "normals" if normal and all(normal) else "add"
        with self._writing() as state:
            if once and (same := state.find_same(journal.enter(prepared, facts[0]))):
                return [same]
            _require_new([case.id for case in facts], state)
            change, step, stamp = state.change + 1, state.steps, state.next_stamp()
            for start in range(0, len(facts), ADD_BATCH):
                progress("adding windows", start, len(facts))
                part = facts[start : start + ADD_BATCH]
                some = prepared[start : start + ADD_BATCH]
                digests = zip(self.store.file_windows(some), self.store.file_contexts(some), strict=True)
                entries = [
                    JournalEntry(case, step + start + i, window, normal[start + i], context)
                    for i, (case, (window, context)) in enumerate(zip(part, digests, strict=True))
                ]
                self.store.append(journal.journal_rows(entries, what, change, step + start, stamp))
        progress("adding windows", len(facts), len(facts))
        return [case.id for case in facts]

    def _change(self, names: list[str], what: What, new: Callable[[Case], Case]) -> None:
        """One row for each of the cases, in one atomic step."""
        check_deed(Deed.DELETE if what == journal.DELETE else Deed.EDIT)
        with self._writing() as state:
            known = state.cases | state.normals
            for name in names:
                if name not in known:
                    raise UnknownNameError("case", name, list(known)[-MAX_SUGGESTED_CASES:])
            old = {name: known[name].case for name in names}
            entries = [replace(known[name], case=check_case(new(case), case)) for name, case in old.items()]
            self.store.append(journal.journal_rows(entries, what, state.change + 1, state.steps, state.next_stamp()))

    def _revert(self, change: int | None, admits: Callable[[Change], bool]) -> Change:
        """Take a change of a kind back, by default the last one that stands."""
        with self._writing() as state:
            standing = [entry for entry in state.changes if admits(entry) and not entry.undone]
            chosen = [entry for entry in standing if change in (None, entry.number)]
            if not chosen:
                number = "" if change is None else f"{change} "
                raise UsageError(f"There is no change {number}to take back. `history` lists the changes.")
            check_deed(_deed_of_revert(chosen[-1], state.changes))
            rows = journal.revert(self.store.journal(), chosen[-1].number, state.change + 1, state.next_stamp())
            self.store.append(rows)
        return chosen[-1]

    @contextmanager
    def _writing(self) -> Iterator[State]:
        """Hold the writer's lock, with the state that nobody else can change meanwhile."""
        if self.as_of is not None:
            raise UsageError(f"This is the library as of change {self.as_of}: it can be searched, not changed.")
        with hold_lock(self._write_lock), self.store.writing():
            yield self.snapshot().state
        self.snapshot()  # what was written has been read, for those who ask what is known

    def _label_of(self, case: str) -> str:
        label = self.case(case).label
        if label is None:
            raise UsageError(f"Case {case!r} has no label yet. Label it first.")
        return label


def _deed_of_revert(change: Change, changes: Sequence[Change]) -> Deed:
    """What it is to take a change back; who takes back an undo makes the change again that it took back."""
    made = next((earlier for earlier in changes if earlier.number == change.takes_back), change)
    return Deed.REVERT_EDIT if made.what == journal.EDIT else Deed.REVERT


def _summarise(snapshot: Snapshot) -> Summary:
    """Counts of one state."""
    cases = [entry.case for entry in snapshot.entries]
    normals = [entry.case for entry in snapshot.state.normals.values()]
    return Summary(
        cases=len(cases),
        normals=len(normals),
        change=snapshot.state.change,
        labels=_count(case.label or "" for case in cases),
        assets=_count(case.asset for case in cases),
        normal_assets=_count(normal.asset for normal in normals),
        named=snapshot.state.named,
    )


def _try_encoding(encode: Callable[..., int], snapshot: Snapshot, spec: MethodSpec) -> None:
    """In the background; what fails there is encoded, or fails again, in the search that needs it."""
    with suppress(ReadbenchError, OSError):
        encode(snapshot, spec, work_half_time)


@lru_cache(maxsize=64)
def _read_spec(text: str) -> MethodSpec:
    """A method, which takes longer to read than some searches."""
    return parse(text)


@lru_cache(maxsize=64)
def _read_method(text: str) -> str:
    """Its canonical text."""
    return str(_read_spec(text))


def _changes_of(snapshot: Snapshot) -> str:
    return f"{snapshot.state.steps} {snapshot.naming.fingerprint}"


def _state_of(snapshot: Snapshot) -> str:
    return snapshot.state_key


def _check_count(k: int, of: str) -> int:
    if k < 1:
        raise UsageError(f"The 'k' parameter of {of} must be an int in the range [1, inf). Got {k} instead.")
    return min(k, sys.maxsize)


def _with_labels(facts: list[Case], labels: Sequence[str | None] | None) -> list[Case]:
    if labels is None:
        return facts
    if len(labels) != len(facts):
        raise UsageError(f"Got {len(facts)} windows, but {len(labels)} labels.")
    return [case.model_copy(update={"label": label}) for case, label in zip(facts, labels, strict=True)]


def _remark(answer: Answer, remarks: list[str]) -> Answer:
    return answer.model_copy(update={"remarks": (*answer.remarks, *remarks)}) if remarks else answer


def _agree(case: Case, given: set[str]) -> Case:
    """A case that is not ruled out to be what it is: of its label and what is ruled out, the one just given counts."""
    if case.label not in case.rejected:
        return case
    if {"label", "rejected"} <= given:
        raise UsageError(f"{case.id!r} cannot be {case.label!r} and be known not to be that. Give one of both.")
    if "rejected" in given:
        return case.model_copy(update={"label": None})
    return case.model_copy(update={"rejected": tuple(label for label in case.rejected if label != case.label)})


def _name(case: Case) -> Case:
    return case if case.id else case.model_copy(update={"id": new_id()})


def _unlabel(case: Case) -> Case:
    return case.model_copy(update={"label": None})


def _require_new(names: list[str], state: State) -> None:
    seen = set(state.cases) | set(state.normals)
    for name in names:
        if name in seen:
            raise UsageError(f"There is a case {name!r} already. Give another name, or delete that one first.")
        seen.add(name)


def _count(texts: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(texts).items()))
