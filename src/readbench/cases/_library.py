"""`Library`: the case library; stores cases and searches them."""

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
"""Growth of the library up to which added cases are checked against the profile learned before."""
ADD_BATCH = 1000
"""Cases written in one atomic step."""


class Library:
    """A case library: resolved cases, normal windows, search; thread-safe.

    Example: `Library.open("plant").search(Path("new.csv"), k=5)`; a text is the name of a case.

    Any number of processes may search, one at a time writes; the others see the new state at their next call. Readers
    never wait: a question is answered from the state of the library when it was asked.

    Args:
        store: back end; `Library.open` and `Library.create` take a folder or an address.
        as_of: number of the change after which to read the library, which is then read-only.
        exact_cases: largest library that is compared whole; a larger one is compared by a shortlist.
        shortlist: number of cases in the shortlist.
        progress: called with the number of encoded and added cases.
        background: learn from changes in a background thread, for services; answers say so meanwhile
            (`readbench.cases._learning`). By default the next question learns from them first.
        follower: for search processes of a service, which receive what was learned by `follow`: learns nothing, stores
            no vectors, and raises `UntaughtError` where it cannot answer.
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
        """Called after each answer with its duration in seconds."""
        self._learner = LessonFollower() if follower else BackgroundLearner() if background else None
        self._encoding = BackgroundLearner("encodes cases ahead") if background else None
        self._encoded_ahead = set[str]()
        self._engine = Engine(store, exact_cases, shortlist, self._learner, self.snapshot)
        self._write_lock = RLock()
        self._snapshot_lock = Lock()
        self._current = -1, Snapshot(State({}, {}, (), 0), store)
        self._overview = self._keep("overview", _changes_of, lambda snapshot, *_: draw_map(snapshot))
        # The profile depends on recordings and assets, which are held out together, but not on labels.
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
        """Create an empty library; raises if there is one already."""
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
        """Open an existing library."""
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

    # Contents

    def __len__(self) -> int:
        return len(self.snapshot())

    def cases(self, where: Filter | None = None) -> list[Case]:
        """Cases that pass a filter, in order of addition."""
        chosen = where or Filter()
        return [entry.case for entry in self.snapshot().entries if chosen.admits(entry.case)]

    def case(self, case: str) -> Case:
        """Facts of one case."""
        snapshot = self.snapshot()
        return snapshot.case(snapshot.position(case))

    def window(self, case: str) -> WindowSet:
        """Window of a case, as a set of one."""
        snapshot = self.snapshot()
        return snapshot.windows([snapshot.position(case)])

    def details(self, case: str) -> CaseDetails:
        """Facts, window and context of one case."""
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
        """Context of the window of each case in a few words; "" without context."""
        known = self.snapshot().state.cases
        digests = [known[case.id].context for case in cases]
        found = self.store.list_contexts(digests)
        words = {name: describe_context(window.before, window.rate, window.facts) for name, window in found.items()}
        return [words.get(digest, "") for digest in digests]

    def normals(self) -> WindowSet:
        """Windows of normal operation."""
        return self.snapshot().normals

    def find(self, text: str, limit: int = 20) -> list[Case]:
        """Cases whose name contains a text, the shortest first; then those whose notes match it, best first."""
        known, wanted = self.snapshot().state.cases, text.strip().casefold()
        named = sorted((name for name in known if wanted and wanted in name.casefold()), key=len)
        matching = dict.fromkeys(self.store.match_notes(text, 10 * limit + 100))
        noted = [name for name, notes in matching if name in known and known[name].case.notes == notes]
        return [known[name].case for name in list(dict.fromkeys((*named, *noted)))[:limit]]

    def history(self) -> list[Change]:
        """All changes, oldest first."""
        return list(self.snapshot().state.changes)

    def describe_changes(self, changes: Sequence[Change]) -> list[Change]:
        """The changes with their `detail` filled in."""
        first = max(0, self.snapshot().state.steps - journal.DETAILED_ROWS)
        return journal.describe_changes(self.store.journal(first), changes)

    def stats(self) -> Summary:
        """Number of cases by label and asset."""
        return _summarise(self.snapshot())

    # Changes

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
        """Add cases, all or none; more than `ADD_BATCH` in several steps.

        Args:
            windows: N windows: a set, whose ids, labels, groups, assets and times are used without `facts`; windows; an
                array (C, T) or (N, C, T); a list of arrays (C, T); or the path of a file. Their context is stored.
            facts: facts of each case; an empty id is replaced by a generated name.
            normal: (N,) True for windows of normal operation, which are no cases; default all False.
            channels: C names, for arrays.
            labels: N fault types, None if unknown; instead of `facts`.
            progress: called with the number of added cases; default `self.progress`.

        Returns:
            Names of the cases.
        """
        read = read_recording(windows) if isinstance(windows, str | Path) and channels is None else windows
        converted = to_windows(read, channels)
        known = read.facts() if isinstance(read, ReadRecording) else facts_of(converted)
        given = _with_labels(known if facts is None else list(facts), labels)
        if len(given) != len(converted):
            raise UsageError(f"Got {len(converted)} windows and facts of {len(given)} cases. Give one for each window.")
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
            values: (C, T) readings.
            channels: C names.
            before: (C, T_b) readings before the window, of the same asset and channels.
            rate: samples per second.
            units: C units.
            facts: known quantities, such as `{"speed": 29.5}`.
            known: fields of `Case`, all optional.
        """
        case = Case(**({"id": new_id()} | known))
        converted = to_windows([np.asarray(values)], channels)
        names = self.add(attach_context(converted, before=before, rate=rate, units=units, facts=facts), [case])
        return self.case(names[0])

    def add_checked(self, windows: GivenWindows, case: Case, remarks: tuple[str, ...] = ()) -> AddedCase:
        """Add one case; returns it with remarks and the oddities of its window.

        If the library has the same window of the same asset and time, and the case has no other name, nothing is added
        and that case is returned with a remark.
        """
        odd, named = self.check_many(windows, exact=False)[0], _name(case)
        known = named.id in self.snapshot().state.cases
        once = known or not case.id
        added = self.case(self._take_in(to_windows(windows), [named], [False], self.progress, once=once)[0])
        if known or added.id != named.id:
            remarks = (*remarks, f"The library already has this window as case {added.id!r}: nothing was added.")
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
        """Add windows of normal operation, given as in `add`; `asset`, `rate`, `facts` override theirs."""
        converted = attach_context(to_windows(windows, channels), rate=rate, facts=facts)
        update = {} if asset is None else {"asset": asset}
        cases = [case.model_copy(update=update) for case in facts_of(converted)]
        return self.add(converted, cases, [True] * len(cases), progress=progress)

    def edit(self, case: str, *, seen: float | None = None, **facts: Any) -> Case:  # noqa: ANN401 - fields of Case
        """Replace facts of a case: any field of `Case` except its name.

        Setting a label removes it from the rejected types, and rejecting the label removes the label.

        Args:
            case: name of the case.
            seen: `changed` of the case when it was read; a later change raises `ConflictError`. `UNSEEN` allows only
                edits that replace nothing; None allows all.
            facts: fields of `Case`.
        """
        if {"id", "changed"} & set(facts):
            raise UsageError("The name of a case cannot be changed. Delete the case and add it under the new name.")

        def replace_facts(old: Case) -> Case:
            new = _agree(Case.model_validate(old.model_dump() | facts), set(facts))
            check_seen(old, check_case(new, old), seen)
            return new

        self._change([case], "edit", replace_facts)
        return self.case(case)

    def label(self, case: str, label: str | None, *, seen: float | None = None) -> Case:
        """Set the fault type of a case; None removes it."""
        return self.edit(case, seen=seen, label=label)

    def confirm(self, case: str, like: str, *, seen: float | None = None) -> Case:
        """Give a case the fault type of another case."""
        return self.edit(case, seen=seen, label=self._label_of(like))

    def reject(self, case: str, like: str, *, seen: float | None = None) -> Case:
        """Exclude the fault type of another case for a case."""
        ruled_out = tuple(dict.fromkeys((*self.case(case).rejected, self._label_of(like))))
        return self.edit(case, seen=seen, rejected=ruled_out)

    def delete(self, cases: Iterable[str], *, seen: float | None = None) -> None:
        """Delete cases or normal windows; `undo` restores them. `seen` as in `edit`."""

        def look(old: Case) -> Case:
            check_seen(old, None, seen)
            return old

        self._change(list(cases), "delete", look)

    def undo(self, change: int | None = None) -> Change:
        """Revert a change, by default the last one in effect; later changes to the same cases are kept."""
        return self._revert(change, lambda entry: entry.what != "undo")

    def redo(self, change: int | None = None) -> Change:
        """Reapply a reverted change, by default the one reverted last."""
        undos = [change_made for change_made in self.history() if change_made.takes_back and not change_made.undone]
        taken = [undo for undo in undos if change in (None, undo.takes_back)]
        if not taken:
            what = "No change was" if change is None else f"Change {change} was not"
            raise UsageError(f"{what} reverted. `history` lists the changes.")
        self._revert(taken[-1].number, lambda entry: entry.what == "undo")
        return next(entry for entry in self.history() if entry.number == taken[-1].takes_back)

    def name_channel(self, name: str, unit: str = "", aliases: Sequence[str] = ()) -> None:
        """Set a channel's name, unit and aliases, also for stored cases.

        An alias may have a different unit: `PT-101 [kPa]`.
        """
        entries = [(name, name, check_unit(unit))]
        for alias in aliases:
            base, unit_of_alias = split_header(alias)
            entries.append((base, name, check_unit(unit_of_alias) or unit))
        check_deed(Deed.NAME_CHANNELS)
        with self.store.writing():
            self.store.file_naming(entries)

    # Questions

    def ask(self, question: str, **parameters: Any) -> Any:  # noqa: ANN401 - as the question declares them
        """Answer one of `readbench.cases.QUESTIONS` by name, such as `library.ask("doubtful", k=5)`."""
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
        """Find the cases most similar to a window, and the probability of each fault type.

        Args:
            window: the query: name of a case, a set of one window, a `Window`, a recording that was read, an array
                (C, T), or the path of a file.
            channels: C names, for an array.
            k: largest number of hits.
            method: retrieval method.
            where: filter of the listed cases.
            before: (C, T_b) readings before the window, of the same asset and channels.
            rate: samples per second.
            units: C units.
            facts: known quantities, by name.
        """
        if isinstance(window, str):
            if not (before is None and rate is None and units is None and facts is None):
                raise UsageError(
                    f"{window!r} is a stored case with stored context. Leave out before, rate, units and facts."
                )
            snapshot, request = self.snapshot(), self._request(k, method, where, window)
            position = snapshot.position(window)
            converted, ruled_out = snapshot.windows([position]), snapshot.case(position).rejected
            return self._answer(
                snapshot, converted, request, ruled_out, self._check(snapshot, converted, None, window)
            )[0]
        read = read_recording(window) if isinstance(window, Path) and channels is None else window
        converted = attach_context(to_windows(read, channels), before=before, rate=rate, units=units, facts=facts)
        if len(converted) != 1:
            raise UsageError(f"Give one window. Got {len(converted)}; use search_many for several.")
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
        """Search for several windows, given as in `add`; one answer each."""
        given, snapshot = to_windows(windows, channels), self.snapshot()
        named, request = snapshot.naming(prepare_windows(given)), self._request(k, method, where, None)
        answers = self._answer(snapshot, named, request, (), self._check(snapshot, named, given, None))
        return [
            _remark(answer, compare_channels(given.channels(i), named.channels(i), snapshot.usual_channels))
            for i, answer in enumerate(answers)
        ]

    def check(self, window: AskedWindow, *, channels: Sequence[str] | None = None) -> WindowCheck:
        """Oddities of a window, given as in `search`, compared with the windows of the library."""
        if isinstance(window, str):
            odd = self._check(self.snapshot(), self.window(window), None, window)[0]
        else:
            converted = to_windows(window, channels)
            if len(converted) != 1:
                raise UsageError(f"Give one window. Got {len(converted)}; use check_many for several.")
            odd = self.check_many(converted)[0]
        return WindowCheck(plausibility=odd, judgeable=all(remark.judgeable for remark in odd))

    def check_many(
        self, windows: GivenWindows, *, channels: Sequence[str] | None = None, exact: bool = True
    ) -> list[tuple[Remark, ...]]:
        """Oddities of each of several windows.

        Args:
            windows: N windows, given as in `add`.
            channels: C names, for arrays.
            exact: compare with the present library; False allows the state of a few cases ago, which is faster.
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
        """Evidence that a case matches a window: channels that depart from normal in the same way, and the alignment.

        A window is compared with the readings before it, if given; `before` and `units` as in `search`. `onset` is the
        step at which the fault begins; departures are measured from there on.
        """
        if isinstance(window, str):
            asked = self.window(window)
        else:
            asked = self.prepare(attach_context(to_windows(window, channels), before=before, units=units))
        snapshot = self.snapshot()
        return explain_match(snapshot, asked[0], snapshot.case(snapshot.position(case)), onset)

    def overview(self) -> LibraryOverview:
        """Map of the latest cases, and near-duplicates; computed once per change."""
        return self._overview.get(self.snapshot()).value

    def next_to_label(self, k: int = 10, method: str = DEFAULT_METHOD) -> list[Suggestion]:
        """Open cases to label next, the most informative first; in a large library among the latest cases.

        Args:
            k: largest number of suggestions.
            method: retrieval method whose similarity is used.
        """
        found = self._review(suggest_next, k, method)
        return [suggestion for suggestion in found if suggestion.case.label is None][:k]

    def doubtful(self, k: int = 20, method: str = DEFAULT_METHOD) -> list[Doubt]:
        """Resolved cases whose label contradicts other recordings; arguments as in `next_to_label`."""
        return self._review(find_doubtful, k, method)[:k]

    def warm(self, method: str = DEFAULT_METHOD, progress: Progress | None = None) -> int:
        """Encode the cases and fit a method ahead of the first search; returns the number of encoded cases.

        Args:
            method: retrieval method.
            progress: called with the number of encoded cases; default `self.progress`.
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
        """Fitted state that a search needs, by name, for `follow`."""
        learned = {kept.name: kept.known for kept in (self._profile, self._normal) if kept.known}
        return {**learned, **self._engine.learned()}

    def keep_up(self) -> None:
        """Learn in the background from the latest changes, for services whose searches run in other processes."""
        snapshot = self.snapshot()
        if 0 < len(snapshot) <= self._engine.exact_cases:
            self._profile.get(snapshot)
            self._normal.get(snapshot)
            self._engine.keep_up(snapshot)

    def follow(self, name: str, learned: Learned[Any]) -> None:
        """Adopt fitted state from another process."""
        for kept in (self._profile, self._normal):
            if kept.name == name:
                kept.known = learned
                return
        if self._current[0] < 0:  # later rows are appended to the received state
            with self._snapshot_lock:
                self._current = -1, learned.snapshot
        self._engine.follow(name, learned)

    @property
    def vectors(self) -> LibraryVectors:
        """Stored vectors of the cases."""
        return self._engine.vectors

    def list_compared(self, window: WindowSet) -> NDArray[np.int64]:
        """Positions of the cases that a method compares with one window: all, or a shortlist."""
        snapshot = self.snapshot()
        named = snapshot.naming(prepare_windows(window))
        return self._engine.shortlist_for(snapshot, named, self.progress)

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until background work is finished; False after `timeout_s` seconds."""
        return all(background.settle(timeout_s) for background in (self._learner, self._encoding) if background)

    @property
    def loops(self) -> list[LoopState]:
        """State of the background loops."""
        return [background.loop for background in (self._learner, self._encoding) if background]

    def hear_loops(self, hear: Hear) -> None:
        """Call `hear` when a background loop fails or recovers."""
        for background in (self._learner, self._encoding):
            if background:
                background.hear(hear)

    def count_known(self) -> int:
        """Number of cases when the library was last read; does not wait for a reader."""
        return len(self.snapshot() if self._current[0] < 0 else self._current[1])

    def stats_known(self) -> Summary:
        """`stats` of the library when it was last read; does not wait for a reader."""
        return _summarise(self.snapshot() if self._current[0] < 0 else self._current[1])

    def prepare(self, windows: WindowSet) -> WindowSet:
        """Fill the gaps of windows, rename their channels and convert their units."""
        return self.snapshot().naming(prepare_windows(windows))

    def naming(self) -> ChannelNames:
        """Channel names and units of the library."""
        return ChannelNames.of(self.store.naming())

    def snapshot(self) -> Snapshot:
        """State of the library now, or at `as_of`."""
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

    # Internals

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
        """State of the journal; if it only grew, only the new rows are read."""
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
        """Run a review; cases that changed since it was learned are left out."""
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
        """Oddities of prepared windows; `given`: the same with gaps; `itself`: name of the case they belong to."""
        profile = self._know_profile(snapshot, exact=exact)
        reference = profile and profile.without(itself)
        count = range(len(windows))
        return [tuple(check_window(reference, windows[i], None if given is None else given[i])) for i in count]

    def _know_profile(self, snapshot: Snapshot, *, exact: bool) -> LibraryProfile | None:
        """Profile of the library's windows, now or (not `exact`) a few cases ago."""
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
        """Encode all cases of a large library in the background, so that shortlists have vectors."""
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
        """Add windows; with `once`, returns the name of the case that has the same window already."""
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
        """Write one row per case in one atomic step."""
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
        """Revert a change that `admits` accepts, by default the last one in effect."""
        with self._writing() as state:
            standing = [entry for entry in state.changes if admits(entry) and not entry.undone]
            chosen = [entry for entry in standing if change in (None, entry.number)]
            if not chosen:
                number = "" if change is None else f"{change} "
                raise UsageError(f"There is no change {number}to revert. `history` lists the changes.")
            check_deed(_deed_of_revert(chosen[-1], state.changes))
            rows = journal.revert(self.store.journal(), chosen[-1].number, state.change + 1, state.next_stamp())
            self.store.append(rows)
        return chosen[-1]

    @contextmanager
    def _writing(self) -> Iterator[State]:
        """Hold the writer's lock; yields the state, which no other process can change meanwhile."""
        if self.as_of is not None:
            raise UsageError(f"This is the library as of change {self.as_of}: it can be searched, not changed.")
        with hold_lock(self._write_lock), self.store.writing():
            yield self.snapshot().state
        self.snapshot()  # reads the written rows

    def _label_of(self, case: str) -> str:
        label = self.case(case).label
        if label is None:
            raise UsageError(f"Case {case!r} has no label yet. Label it first.")
        return label


def _deed_of_revert(change: Change, changes: Sequence[Change]) -> Deed:
    """Right needed to revert a change; reverting an undo reapplies the change that it reverted."""
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
