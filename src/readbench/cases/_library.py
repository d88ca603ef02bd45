"""`CaseLibrary`: resolved incidents, and the search through them."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from readbench.cases import _journal as journal
from readbench.cases._answer import Filter, Question, make_answer
from readbench.cases._channels import ChannelNames, check_unit, split_header
from readbench.cases._evidence import explain_match
from readbench.cases._intake import check_case, new_id, prepare_windows
from readbench.cases._journal import JournalEntry, State, What
from readbench.cases._models import Answer, Case, Change, Doubt, Evidence, Suggestion, Summary
from readbench.cases._review import find_doubtful, suggest_next
from readbench.cases._search import EXACT_CASES, SHORTLIST, Engine, Reviewed
from readbench.cases._snapshot import MOST_NAMED, Snapshot
from readbench.cases._store import Store, open_store
from readbench.engine.spec import parse
from readbench.engine.windows import UNLABELLED, WindowSet
from readbench.errors import UnknownNameError, UsageError

R = TypeVar("R")
DEFAULT_METHOD = "flagship"
BATCH = 1000
"""Cases written in one atomic step; a killed writer loses at most the step in flight."""


class CaseLibrary:
    """Cases, normal windows, and the search through them; safe to use from several threads.

    Every process may search; one at a time writes, and the others see the new state at their next call.

    Args:
        store: where it lives; `CaseLibrary.open` and `CaseLibrary.create` take a folder or an address.
        as_of: number of the last change that counts; the library is then read-only.
        exact_cases: up to this many cases, the method compares all of them; above, a shortlist.
        shortlist: cases of the shortlist.
    """

    def __init__(
        self, store: Store, *, as_of: int | None = None, exact_cases: int = EXACT_CASES, shortlist: int = SHORTLIST
    ) -> None:
        self.store = store
        self.as_of = as_of
        self._engine = Engine(store, exact_cases, shortlist)
        self._lock = RLock()
        self._revision = -1
        self._snapshot = Snapshot(State({}, {}, (), 0), store)

    @classmethod
    def create(cls, where: str | Path, **options: int) -> Self:
        """A new, empty library; refused where there is one."""
        return cls(open_store(where, create=True), **options)

    @classmethod
    def open(cls, where: str | Path, *, as_of: int | None = None, **options: int) -> Self:
        """A library that exists."""
        return cls(open_store(where), as_of=as_of, **options)

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

    def normals(self) -> WindowSet:
        """The windows of normal operation."""
        return self.snapshot().normals

    def find(self, text: str, limit: int = 20) -> list[Case]:
        """Cases whose notes speak of something, best first."""
        known = self.snapshot().state.cases
        matching = dict.fromkeys(self.store.matching(text, 10 * limit + 100))
        standing = [known[name].case for name, notes in matching if name in known and known[name].case.notes == notes]
        return standing[:limit]

    def history(self) -> list[Change]:
        """All changes, oldest first."""
        return list(self.snapshot().state.changes)

    def stats(self) -> Summary:
        """Counts."""
        snapshot = self.snapshot()
        cases = [entry.case for entry in snapshot.entries]
        normals = [entry.case for entry in snapshot.state.normals.values()]
        return Summary(
            cases=len(cases),
            normals=len(normals),
            change=snapshot.state.change,
            labels=_counted(case.label or "" for case in cases),
            assets=_counted(case.asset for case in cases),
            normal_assets=_counted(normal.asset for normal in normals),
        )

    # What changes it

    def add(
        self, windows: WindowSet, facts: Sequence[Case] | None = None, normal: Sequence[bool] | None = None
    ) -> list[str]:
        """Add cases, all of them or none; a very long list in steps of `BATCH`.

        Args:
            windows: N windows; without `facts`, their ids, labels, groups, assets and times count.
            facts: what is known of each; an empty id gets a name.
            normal: which of them are no cases but show normal operation; none by default.

        Returns:
            The names of the cases.
        """
        given = facts_of(windows) if facts is None else list(facts)
        if len(given) != len(windows):
            raise UsageError(f"Got {len(windows)} windows, but facts on {len(given)}.")
        flags = [False] * len(given) if normal is None else list(normal)
        return self._take_in(windows, [_named(case) for case in given], flags)

    def add_one(self, values: ArrayLike, channels: Sequence[str], **facts: Any) -> Case:  # noqa: ANN401 - fields of Case
        """Add one case.

        Args:
            values: (C, T).
            channels: C names.
            facts: fields of `Case`, all optional.
        """
        case = Case(**({"id": new_id()} | facts))
        names = self.add(WindowSet.from_arrays([values], channels=tuple(channels)), [case])
        return self.case(names[0])

    def add_normals(self, windows: WindowSet, asset: str | None = None) -> list[str]:
        """Add windows of normal operation; `asset` replaces that of the windows."""
        update = {} if asset is None else {"asset": asset}
        facts = [case.model_copy(update=update) for case in facts_of(windows)]
        return self.add(windows, facts, [True] * len(facts))

    def edit(self, case: str, **facts: Any) -> Case:  # noqa: ANN401 - fields of Case
        """Replace what is known of a case: any field of `Case` but its name."""
        if {"id", "changed"} & set(facts):
            raise UsageError("The name of a case stays. Delete it and add it again.")
        self._change([case], "edit", lambda old: Case.model_validate(old.model_dump() | facts))
        return self.case(case)

    def label(self, case: str, label: str | None) -> Case:
        """Say what a case was, or with None that nobody knows; counts in the next search."""
        return self.edit(case, label=label)

    def confirm(self, case: str, like: str) -> Case:
        """Say that a case is of the same fault type as another one."""
        return self.edit(case, label=self._label_of(like))

    def reject(self, case: str, like: str) -> Case:
        """Say that a case is not of the fault type of another one: it will not be counted among that type again."""
        label, own = self._label_of(like), self.case(case)
        return self.edit(
            case,
            rejected=tuple(dict.fromkeys((*own.rejected, label))),
            label=None if own.label == label else own.label,
        )

    def delete(self, cases: Iterable[str]) -> None:
        """Take cases or normal windows out; `undo` brings them back."""
        self._change(list(cases), "delete", lambda old: old)

    def undo(self) -> Change:
        """Take the last change back that still stands."""
        with self._writing() as state:
            standing = [change for change in state.changes if change.what != "undo" and not change.undone]
            if not standing:
                raise UsageError("There is no change to take back.")
            row = journal.undo_row(standing[-1].number, state.change + 1, state.steps, clock.time())
            self.store.append(row)
        return standing[-1]

    def name_channel(self, name: str, unit: str = "", aliases: Sequence[str] = ()) -> None:
        """Say what a channel is called here, in which unit it is kept, and what else it is called.

        Cases that are already in keep their names. An alias may have a unit of its own, `PT-101 [kPa]`.
        """
        entries = [(name, name, check_unit(unit))]
        for alias in aliases:
            base, own = split_header(alias)
            entries.append((base, name, check_unit(own) or unit))
        with self.store.writing():
            self.store.file_naming(entries)

    # What is asked of it

    def search(
        self,
        window: WindowSet | str,
        *,
        k: int = 10,
        method: str = DEFAULT_METHOD,
        where: Filter | None = None,
    ) -> Answer:
        """The cases most like a window, and what it may be.

        Args:
            window: a set of one, or the name of a case of this library.
            k: most hits.
            method: of the grammar.
            where: which cases are listed.
        """
        if isinstance(window, str):
            case = self.case(window)
            question = self._question(k, method, where, window)
            return self._answers(self.window(window), question, case.rejected)[0]
        if len(window) != 1:
            raise UsageError(f"Give one window; got {len(window)}. For more there is search_many.")
        return self.search_many(window, k=k, method=method, where=where)[0]

    def search_many(
        self, windows: WindowSet, *, k: int = 10, method: str = DEFAULT_METHOD, where: Filter | None = None
    ) -> list[Answer]:
        """The same for several windows at once."""
        own = prepare_windows(self.naming()(windows))
        return self._answers(own, self._question(k, method, where, None), ())

    def explain(self, window: WindowSet | str, case: str) -> Evidence:
        """Why a case resembles a window: channels that depart from normal in the same way, and the alignment."""
        asked = self.window(window) if isinstance(window, str) else prepare_windows(self.naming()(window))
        with self._lock:
            return explain_match(self.snapshot(), asked[0], self.case(case))

    def next_to_label(self, k: int = 10, method: str = DEFAULT_METHOD) -> list[Suggestion]:
        """The open cases whose labels would tell most about the others, most telling first.

        Of a large library, the latest cases are looked at.

        Args:
            k: most suggestions.
            method: of the grammar; its views say what is alike.
        """
        return self._reviewed(suggest_next, k, method)

    def doubtful(self, k: int = 20, method: str = DEFAULT_METHOD) -> list[Doubt]:
        """The resolved cases that look like another fault type to all other recordings; arguments as above."""
        return self._reviewed(find_doubtful, k, method)

    def warm(self, method: str = DEFAULT_METHOD) -> int:
        """Do now what the first search would do: encode and fit; returns how many cases had to be encoded."""
        before = self._engine.vectors.encoded
        if len(self):
            self.search(self.snapshot().case(0).id, k=1, method=method)
        return self._engine.vectors.encoded - before

    def naming(self) -> ChannelNames:
        """What the site calls its channels."""
        return ChannelNames.of(self.store.naming())

    def snapshot(self) -> Snapshot:
        """The state of the library now, or at `as_of`."""
        with self._lock:
            revision = self.store.revision()
            if revision != self._revision:
                self._snapshot = Snapshot(self._state(), self.store)
                self._revision = revision
            return self._snapshot

    # Inside

    def _state(self) -> State:
        """What the journal says; of a journal that only grew, the new rows are read."""
        known = self._snapshot.state
        if known.steps and self.as_of is None:
            state = journal.advance(known, self.store.journal(known.steps))
            if state is not None:
                return state
        return journal.fold(self.store.journal(), self.as_of)

    def _question(self, k: int, method: str, where: Filter | None, itself: str | None) -> Question:
        return Question(method=str(parse(method)), k=_count(k, "search"), where=where or Filter(), itself=itself)

    def _reviewed(self, look: Callable[[Reviewed, int], list[R]], k: int, method: str) -> list[R]:
        count, spec = _count(k, "a review"), parse(method)
        with self._lock:
            snapshot = self.snapshot()
            return look(self._engine.reviewed(snapshot, spec), count) if len(snapshot) else []

    def _answers(self, windows: WindowSet, question: Question, ruled_out: tuple[str, ...]) -> list[Answer]:
        with self._lock:
            snapshot, spec = self.snapshot(), parse(question.method)
            answers = []
            for found in self._engine.ask(snapshot, spec, windows, ruled_out):
                answers += [make_answer(snapshot, found, query, question) for query in range(len(found.ranking))]
            return answers

    def _take_in(self, windows: WindowSet, facts: list[Case], normal: list[bool]) -> list[str]:
        own = prepare_windows(self.naming()(windows))
        facts = [check_case(_unlabelled(case) if flag else case) for case, flag in zip(facts, normal, strict=True)]
        what: What = "normals" if normal and all(normal) else "add"
        with self._writing() as state:
            _require_new([case.id for case in facts], state)
            change, step, stamp = state.change + 1, state.steps, clock.time()
            for start in range(0, len(facts), BATCH):
                part = facts[start : start + BATCH]
                digests = self.store.file_windows(own[start : start + BATCH])
                entries = [
                    JournalEntry(case, step + start + i, digest, normal[start + i])
                    for i, (case, digest) in enumerate(zip(part, digests, strict=True))
                ]
                self.store.append(journal.journal_rows(entries, what, change, step + start, stamp))
        return [case.id for case in facts]

    def _change(self, names: list[str], what: What, new: Callable[[Case], Case]) -> None:
        """One row for each of the cases, in one atomic step."""
        with self._writing() as state:
            known = state.cases | state.normals
            for name in names:
                if name not in known:
                    raise UnknownNameError("case", name, list(known)[-MOST_NAMED:])
            entries = [replace(known[name], case=check_case(new(known[name].case))) for name in dict.fromkeys(names)]
            self.store.append(journal.journal_rows(entries, what, state.change + 1, state.steps, clock.time()))

    @contextmanager
    def _writing(self) -> Iterator[State]:
        """Hold the writer's lock, with the state that nobody else can change meanwhile."""
        if self.as_of is not None:
            raise UsageError(f"This is the library as of change {self.as_of}: it can be searched, not changed.")
        with self._lock, self.store.writing():
            yield self.snapshot().state

    def _label_of(self, case: str) -> str:
        label = self.case(case).label
        if label is None:
            raise UsageError(f"Case {case!r} has no label yet. Label it first.")
        return label


def facts_of(windows: WindowSet) -> list[Case]:
    """What a set knows of its windows; ids that are only numbers are no names, and a group of its own is none."""
    if windows.labels.max(initial=UNLABELLED) >= len(windows.classes):
        raise UsageError("The windows have labels, but no names for them: give `classes`, normal first.")
    return [
        Case(
            id="" if window.id.isdigit() else window.id,
            label=None if window.label == UNLABELLED else windows.classes[window.label],
            asset=window.asset,
            time=None if np.isnan(window.time) else window.time,
            group="" if window.group == window.id else window.group,
        )
        for window in windows
    ]


def _count(k: int, of: str) -> int:
    if k < 1:
        raise UsageError(f"The 'k' parameter of {of} must be an int in the range [1, inf). Got {k} instead.")
    return k


def _named(case: Case) -> Case:
    return case if case.id else case.model_copy(update={"id": new_id()})


def _unlabelled(case: Case) -> Case:
    return case.model_copy(update={"label": None})


def _require_new(names: list[str], state: State) -> None:
    seen = set(state.cases) | set(state.normals)
    for name in names:
        if name in seen:
            raise UsageError(f"There is a case {name!r} already. Give another name, or delete that one first.")
        seen.add(name)


def _counted(texts: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(texts).items()))
