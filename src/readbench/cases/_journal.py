"""The journal: the append-only list of changes of a library, from which its state at any time follows.

A row holds all facts of one case after a change. A later row replaces an earlier one of the same case; `undo` is a row
that reverts a whole change, also another undo, with further rows that keep later changes to the same cases. Stores only
append, which back ends do atomically, and every earlier state can be read again. A `Snapshot` is a state for searches.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.cases._channels import NO_NAMES, ChannelNames
from readbench.cases._models import Case, Change
from readbench.cases._plausibility import MOST_PROFILED, LibraryProfile, spread_evenly
from readbench.engine.preparation import ChannelStats, lend_before
from readbench.engine.vectors import window_digests
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet, strings
from readbench.errors import UnknownNameError

if TYPE_CHECKING:
    from readbench.cases._store import Store

What = Literal["add", "normals", "edit", "delete", "undo"]
EDIT: What = "edit"
DELETE: What = "delete"
SCHEMA = pa.schema(
    [
        ("step", pa.int64()),
        ("change", pa.int64()),
        ("what", pa.string()),
        ("stamp", pa.float64()),
        ("target", pa.int64()),
        ("id", pa.string()),
        ("place", pa.int64()),
        ("normal", pa.bool_()),
        ("digest", pa.string()),
        ("label", pa.string()),
        ("asset", pa.string()),
        ("time", pa.float64()),
        ("group", pa.string()),
        ("notes", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("links", pa.list_(pa.string())),
        ("rejected", pa.list_(pa.string())),
        ("context", pa.string()),
        ("end", pa.float64()),
        ("zone", pa.string()),
        ("author", pa.string()),
    ]
)
"""`step` numbers the rows; `place` is the step that first wrote the case and orders the corpus; `target` is the change
that an undo reverts; `normal` marks windows of normal operation; `context` is the digest of the context, or "";
`author` is the author of the change, or "". Older journals lack the columns of `LATER`."""
LATER = {"context": "''", "end": "cast('NaN' as double)", "zone": "''", "author": "''"}
"""Columns added in later versions, with the value in older rows."""
_AUTHOR: ContextVar[str] = ContextVar("author", default="")
_MADE: ContextVar[list[str] | None] = ContextVar("made", default=None)


@contextmanager
def sign_changes(author: str) -> Iterator[list[str]]:
    """Set the author of the changes made in the block; yields their list, such as `12: edit of w0`."""
    made: list[str] = []
    tokens = _AUTHOR.set(author), _MADE.set(made)
    try:
        yield made
    finally:
        _AUTHOR.reset(tokens[0])
        _MADE.reset(tokens[1])


TICK_S = 1e-5
"""Least time between two changes in seconds, so that the time of a change is a version of its cases."""
CaseKey = tuple[str, str, str]
"""Name of a case, digest of its window and of its context."""


@dataclass(frozen=True)
class JournalEntry:
    """One case or normal window in the journal.

    Args:
        case: facts of the case.
        place: position in the order of the corpus.
        digest: digest of its window.
        normal: True for a window of normal operation.
        context: digest of the context; "" without one.
    """

    case: Case
    place: int
    digest: str
    normal: bool = False
    context: str = ""


def enter(windows: WindowSet, case: Case) -> JournalEntry:
    """Entry of one window, without its place."""
    context = "" if windows.context is None else windows.context.digest_of(0).hex()
    return JournalEntry(case, 0, window_digests(windows.with_context(None))[0], context=context)


@dataclass(frozen=True, eq=False)
class State:
    """State of a library after some change.

    Args:
        cases: entries of cases by id, in the order of their places.
        normals: entries of normal windows by id, in the same order.
        changes: all changes, oldest first.
        steps: number of journal rows.
        named: all labels ever given, in order of first use.
    """

    cases: dict[str, JournalEntry]
    normals: dict[str, JournalEntry]
    changes: tuple[Change, ...]
    steps: int
    named: tuple[str, ...] = ()

    def find_same(self, new: JournalEntry) -> str | None:
        """Name of the case with the same window, context, time and asset, preferably with the same name."""
        told = new.digest, new.context, new.case.time, new.case.asset
        known = self.cases.items() if new.case.id not in self.cases else [(new.case.id, self.cases[new.case.id])]
        return next(
            (name for name, entry in known if (entry.digest, entry.context, entry.case.time, entry.case.asset) == told),
            None,
        )

    def next_stamp(self) -> float:
        """Time for a new change: now, or just after the last change if the clock was set back."""
        last = self.changes[-1].time + TICK_S if self.changes else 0.0
        return max(time.time(), last)

    @property
    def change(self) -> int:
        """Number of the last change; 0 for an empty library."""
        return self.changes[-1].number if self.changes else 0


def fold(journal: pa.Table, as_of: float | None = None) -> State:
    """State after all changes, or after a given one.

    Args:
        journal: rows of `SCHEMA` in any order.
        as_of: number of the last change to apply; None for all.
    """
    journal = journal.sort_by("step")
    if as_of is not None:
        journal = journal.filter(pa.compute.less_equal(journal["change"], int(as_of)))
    change, what = _column(journal, "change"), np.array(journal["what"].to_pylist(), object)
    undone = _find_undone(journal)
    valid = (what != "undo") & ~np.isin(change, list(undone))
    entries = [entry for entry in _last_rows(journal, np.flatnonzero(valid)) if entry]
    entries.sort(key=lambda entry: entry.place)
    return State(
        cases={entry.case.id: entry for entry in entries if not entry.normal},
        normals={entry.case.id: entry for entry in entries if entry.normal},
        changes=_changes(journal, undone),
        steps=len(journal) and int(_column(journal, "step")[-1]) + 1,
        named=_names(journal),
    )


def advance(state: State, new: pa.Table) -> State | None:
    """State after further rows; None if they contain an undo, which needs all rows."""
    if "undo" in set(new["what"].to_pylist()):
        return None
    touched = any(new["normal"].to_pylist())
    cases, normals = dict(state.cases), dict(state.normals) if touched else state.normals
    for row in new.sort_by("step").to_pylist():
        entry, kept = _entry(row), normals if row["normal"] else cases
        if entry is None:
            kept.pop(row["id"], None)
        else:
            kept[row["id"]] = entry
    changes = {change.number: change for change in state.changes}
    for change in _changes(new, set()):
        known = changes.get(change.number)
        count = change.cases + (known.cases if known else 0)
        changes[change.number] = (known or change).model_copy(update={"cases": count})
    named = tuple(dict.fromkeys((*state.named, *_names(new.sort_by("step")))))
    return State(cases, normals, tuple(changes.values()), state.steps + len(new), named)


def _names(journal: pa.Table) -> tuple[str, ...]:
    """Distinct labels, in order of first use."""
    return tuple(name for name in pa.compute.unique(journal["label"]).to_pylist() if name)


def journal_rows(entries: list[JournalEntry], what: What, change: int, first_step: int, stamp: float) -> pa.Table:
    """Journal rows of a change or a part of it."""
    return pa.Table.from_pylist(
        [_row(entry, what, change, first_step + i, stamp) for i, entry in enumerate(entries)], schema=SCHEMA
    )


def undo_row(target: int, change: int, step: int, stamp: float) -> pa.Table:
    """Row that reverts a change."""
    entry = JournalEntry(Case(id=""), step, "")
    return pa.Table.from_pylist([_row(entry, "undo", change, step, stamp) | {"target": target}], schema=SCHEMA)


def revert(journal: pa.Table, target: int, change: int, stamp: float) -> pa.Table:
    """Rows that revert one change and keep all others to the same cases.

    Args:
        journal: all rows, of `SCHEMA`, in any order.
        target: number of the change to revert; reverting an undo reapplies its change.
        change: number of the new change.
        stamp: time of the new rows.
    """
    step = len(journal) and int(_column(journal, "step").max()) + 1
    undo = undo_row(target, change, step, stamp)
    touched = pa.array(sorted(_touched(journal, target)), pa.string())
    mine = pa.compute.is_in(journal["id"], touched)
    part = journal.filter(pa.compute.or_(mine, pa.compute.equal(journal["what"], "undo")))
    part = pa.concat_tables([part, undo.select(part.column_names)])
    wanted, plain, rows = _replay(part), _entries(fold(part)), [undo]
    for name in touched.to_pylist():
        if _told(wanted.get(name)) != _told(plain.get(name)):
            entry, what = (wanted[name], EDIT) if name in wanted else (plain[name], DELETE)
            rows.append(journal_rows([entry], what, change, step + len(rows), stamp))
    return pa.concat_tables(rows)


def _replay(journal: pa.Table) -> dict[str, JournalEntry]:
    """Entries from the fields that each change in effect altered, since a row also repeats unchanged fields."""
    rows = journal.sort_by("step").to_pylist()
    undos = [(row["change"], row["target"]) for row in rows if row["what"] == "undo"]
    # Changes reverted at the time of each change, by the number of undos so far.
    undone = [_settle(undos[:count]) for count in range(len(undos) + 1)]
    spelt_out, found = {change for change, _ in undos}, dict[str, JournalEntry]()
    earlier: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["what"] == "undo":
            continue
        name, then = row["id"], undone[bisect_left(undos, (row["change"],))]
        past = earlier.setdefault(name, [])
        old = next((_entry(row) for row in reversed(past) if row["change"] not in then), None)
        past.append(row)
        if row["change"] in spelt_out or row["change"] in undone[-1]:
            continue
        new = _entry(row)
        if new is None:
            found.pop(name, None)
        elif old is None:
            found[name] = new
        elif name in found:
            said = {field: value for field, value in new.case if value != getattr(old.case, field)}
            found[name] = replace(found[name], case=found[name].case.model_copy(update=said))
    return found


def _entries(state: State) -> dict[str, JournalEntry]:
    return {**state.cases, **state.normals}


def _told(entry: JournalEntry | None) -> Case | None:
    """Facts of an entry without the time of writing."""
    return None if entry is None else entry.case.model_copy(update={"changed": 0.0})


def _touched(journal: pa.Table, change: int) -> set[str]:
    """Names of the cases that a change altered, including those of a change that it reverts."""
    rows = journal.filter(pa.compute.equal(journal["change"], change)).select(["id", "what", "target"]).to_pylist()
    names = {row["id"] for row in rows if row["what"] != "undo"}
    return names.union(*(_touched(journal, row["target"]) for row in rows if row["what"] == "undo"))


def _find_undone(journal: pa.Table) -> set[int]:
    """Numbers of the reverted changes."""
    rows = journal.filter(pa.compute.equal(journal["what"], "undo"))
    return _settle(list(zip(rows["change"].to_pylist(), rows["target"].to_pylist(), strict=True)))


def _settle(undos: list[tuple[int, int]]) -> set[int]:
    """Numbers of the changes reverted by (change, target) pairs; a reverted undo has no effect.

    >>> _settle([(3, 2), (4, 3)])
    {3}
    """
    undone: set[int] = set()
    for change, target in sorted(undos, reverse=True):
        if change not in undone:
            undone.add(target)
    return undone


def _row(entry: JournalEntry, what: What, change: int, step: int, stamp: float) -> dict[str, Any]:
    case, made = entry.case, _MADE.get()
    if made is not None:
        made.append(f"{change}: {what} of {case.id}" if case.id else f"{change}: {what}")
    return {
        **case.model_dump(exclude={"changed"}),
        "label": case.label or "",
        "time": float("nan") if case.time is None else case.time,
        "end": float("nan") if case.end is None else case.end,
        "step": step,
        "change": change,
        "what": what,
        "stamp": stamp,
        "target": 0,
        "place": entry.place,
        "normal": entry.normal,
        "digest": entry.digest,
        "context": entry.context,
        "author": _AUTHOR.get(),
    }


def _last_rows(journal: pa.Table, positions: NDArray[np.intp]) -> list[JournalEntry | None]:
    """Last row of each case; None if it deletes the case."""
    last: dict[str, int] = {}
    ids = journal["id"].to_pylist()
    for position in positions.tolist():
        last[ids[position]] = position
    kept = journal.take(pa.array(sorted(last.values()), pa.int64()))
    return [_entry(row) for row in kept.to_pylist()]


def _entry(row: dict[str, Any]) -> JournalEntry | None:
    if row["what"] == "delete":
        return None
    case = Case.model_construct(
        id=row["id"],
        label=row["label"] or None,
        asset=row["asset"],
        time=None if np.isnan(row["time"]) else row["time"],
        end=None if np.isnan(row.get("end", np.nan)) else row["end"],
        zone=row.get("zone") or "",
        group=row["group"],
        notes=row["notes"],
        tags=tuple(row["tags"]),
        links=tuple(row["links"]),
        rejected=tuple(row["rejected"]),
        changed=row["stamp"],
    )
    return JournalEntry(case, row["place"], row["digest"], row["normal"], row.get("context") or "")


def _changes(journal: pa.Table, undone: set[int]) -> tuple[Change, ...]:
    numbers, first, counts = np.unique(_column(journal, "change"), return_index=True, return_counts=True)
    columns = [name for name in ("what", "stamp", "target", "author") if name in journal.column_names]
    heads = journal.select(columns).take(pa.array(first, pa.int64())).to_pylist()
    return tuple(
        Change(
            number=number,
            what=head["what"],
            cases=count,
            time=head["stamp"],
            undone=number in undone,
            author=head.get("author") or "",
            takes_back=head["target"] or None,
        )
        for number, count, head in zip(numbers.tolist(), counts.tolist(), heads, strict=True)
    )


DETAILED_ROWS = 20_000
"""Last rows of the journal from which details of changes are read."""
MAX_DETAILED_CHANGES = 3
"""Cases of one change that are described one by one."""
DETAILED = ("label", "asset", "group", "notes", "tags", "links", "rejected")
"""Fields in the description of an edit, in order."""


def describe_changes(journal: pa.Table, changes: Sequence[Change]) -> list[Change]:
    """Fill in `detail` of changes; `journal` holds their rows and some earlier ones."""
    columns = [name for name in ("change", "what", "target", "id", *DETAILED) if name in journal.column_names]
    ids, kinds, targets = (journal[name].to_pylist() for name in ("id", "what", "target"))
    numbers, wanted = journal["change"].to_pylist(), {change.number for change in changes}
    rows: dict[int, list[tuple[int, int | None]]] = {}
    known: dict[str, list[int]] = {}
    undone: set[int] = set()
    undid: dict[int, int] = {}
    for place, (number, name) in enumerate(zip(numbers, ids, strict=True)):
        if number in wanted:
            before = next((place for place in reversed(known.get(name, ())) if numbers[place] not in undone), None)
            rows.setdefault(number, []).append((place, before))
        if targets[place]:
            undone.add(targets[place])
            undone.discard(undid.get(targets[place], 0))
            undid[number] = targets[place]
        elif kinds[place]:
            known.setdefault(name, []).append(place)
    told = []
    for change in changes:
        parts = [(place, before) for place, before in rows.get(change.number, ()) if not targets[place]]
        asked = sorted({one for pair in parts[:MAX_DETAILED_CHANGES] for one in pair if one is not None})
        held: dict[int | None, dict[str, Any]] = dict(
            zip(asked, journal.select(columns).take(pa.array(asked, pa.int64())).to_pylist(), strict=True)
        )
        words = [_describe_row(held[place], held.get(before)) for place, before in parts[:MAX_DETAILED_CHANGES]]
        more = [f"and {len(parts) - MAX_DETAILED_CHANGES} more"] if len(parts) > MAX_DETAILED_CHANGES else []
        told.append(change.model_copy(update={"detail": "; ".join([*filter(None, words), *more])}))
    return told


def _describe_row(row: dict[str, Any], before: dict[str, Any] | None) -> str:
    """Difference between a journal row and the one before it of the same case, in words."""
    if row["what"] != EDIT or before is None:
        return f"{row['id']}: {row['label']}" if row["label"] and row["what"] != DELETE else str(row["id"])
    parts = []
    for name in DETAILED:
        old, new = before[name], row[name]
        if old == new:
            continue
        if name in {"label", "asset", "group"}:
            parts.append(f"{name} {old or 'none'} -> {new or 'none'}")
        else:
            parts.append(name if name != "rejected" else f"not {', '.join(set(new) - set(old)) or 'rejected'}")
    return f"{row['id']}: {', '.join(parts) or 'as before'}"


def _column(journal: pa.Table, name: str) -> NDArray[np.int64]:
    return journal[name].to_numpy()


NORMAL_LABEL = "normal"
"""Label of a case that turned out to be normal operation."""
MAX_SUGGESTED_CASES = 20
"""Latest cases among which similar names are suggested."""
FEW_RESOLVED = 20
"""Number of resolved cases and normals below which the profile also uses open cases."""
REFERENCE_CASES = 256
"""Number of first cases whose channel statistics scale a shortlist; fixed, so that vectors stay valid."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a library with N cases, in order of addition.

    Args:
        state: state of the journal.
        store: store of the windows.
        naming: present channel names; applied to all windows when they are read.
    """

    state: State
    store: Store
    naming: ChannelNames = NO_NAMES

    def __len__(self) -> int:
        return len(self.entries)

    def latest(self, count: int) -> Snapshot:
        """The same library with the last `count` cases only."""
        cases = dict(list(self.state.cases.items())[-count:])
        return replace(self, state=replace(self.state, cases=cases))

    @cached_property
    def entries(self) -> list[JournalEntry]:
        """The N cases."""
        return list(self.state.cases.values())

    @cached_property
    def digests(self) -> list[str]:
        """(N,) digests of the windows."""
        return [entry.digest for entry in self.entries]

    @cached_property
    def keys(self) -> list[CaseKey]:
        """(N,) keys of the cases."""
        return [(entry.case.id, entry.digest, entry.context) for entry in self.entries]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.state.cases)}

    def position(self, case: str) -> int:
        """Position of a case; raises with similar names if there is none."""
        if case not in self._places:
            raise UnknownNameError("case", case, list(self._places)[-MAX_SUGGESTED_CASES:])
        return self._places[case]

    def case(self, position: int) -> Case:
        """Facts of a case."""
        return self.entries[position].case

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Fault types by label number, normal first."""
        names = {entry.case.label for entry in self.entries}
        return (NORMAL_LABEL, *sorted(name for name in names if name and name != NORMAL_LABEL))

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """(N,) label numbers, -1 for open cases."""
        number = {name: i for i, name in enumerate(self.classes)}
        return np.array([number.get(entry.case.label or "", UNLABELLED) for entry in self.entries], np.int32)

    @cached_property
    def rejections(self) -> NDArray[np.bool_]:
        """(N, K) True where a fault type is rejected for a case."""
        number = {name: i for i, name in enumerate(self.classes)}
        mask = np.zeros((len(self), len(number)), np.bool_)
        for row, entry in enumerate(self.entries):
            for name in entry.case.rejected:
                if name in number:
                    mask[row, number[name]] = True
        return mask

    def windows(self, positions: Sequence[int] | NDArray[np.integer]) -> WindowSet:
        """Windows of cases with labels, groups, assets, times and context."""
        windows = self._read([self.entries[i] for i in positions])
        return replace(windows, labels=self.labels[np.asarray(positions, np.intp)], classes=self.classes)

    def searched(self, positions: Sequence[int] | NDArray[np.integer]) -> WindowSet:
        """`windows` for methods: cases without readings before get normal windows of their asset instead."""
        return lend_before(self.windows(positions), self.normals)

    @cached_property
    def normals(self) -> WindowSet:
        """Windows of normal operation."""
        entries = list(self.state.normals.values())
        windows = self._read(entries)
        return replace(windows, labels=np.full(len(entries), NORMAL, np.int32), classes=(NORMAL_LABEL,))

    def corpus(self) -> WindowSet:
        """Windows of all cases, scaled by those that are not labelled normal."""
        windows = self.searched(range(len(self)))
        faults = windows[np.flatnonzero(self.labels != NORMAL)]
        return windows.with_stats(ChannelStats.of(faults if len(faults) else windows))

    @cached_property
    def reference(self) -> ChannelStats:
        """Channel statistics of the first cases that are not labelled normal."""
        return ChannelStats.of(self.windows(self.first))

    @cached_property
    def usual_steps(self) -> float:
        """Median length of the windows of the first cases; 0 without any."""
        lengths = self.windows(self.first).lengths
        return float(np.median(lengths)) if len(lengths) else 0.0

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Positions of the first cases that are not labelled normal, or of the first cases if all are."""
        faults = np.flatnonzero(self.labels != NORMAL)
        return (faults if len(faults) else np.arange(len(self)))[:REFERENCE_CASES]

    @cached_property
    def profile(self) -> LibraryProfile | None:
        """Profile of the windows of resolved cases and normals; None for an empty library."""
        resolved = np.flatnonzero(self.labels != UNLABELLED)
        chosen = resolved if len(resolved) + len(self.state.normals) >= FEW_RESOLVED else np.arange(len(self))
        return LibraryProfile.of(self.windows(chosen[spread_evenly(len(chosen), MOST_PROFILED)]), self.normals)

    @cached_property
    def usual_channels(self) -> tuple[str, ...]:
        """Channels that at least half of the first cases have."""
        windows = self.windows(self.first)
        counts = Counter(name for i in range(len(windows)) for name in windows.channels(i))
        return tuple(name for name, count in counts.items() if 2 * count >= len(windows))

    def after(self, earlier: Snapshot) -> Snapshot:
        """This snapshot with the unchanged cached values of an earlier one."""
        if earlier.naming.fingerprint == self.naming.fingerprint and earlier.store is self.store:
            taken = ["normals"] if earlier.state.normals is self.state.normals else []
            if [earlier.digests[i] for i in earlier.first] == [self.digests[i] for i in self.first]:
                taken += ["reference", "usual_steps", "usual_channels"]
            vars(self).update({name: vars(earlier)[name] for name in taken if name in vars(earlier)})
        return self

    def describe(self, windows: WindowSet) -> WindowSet:
        """Windows of all cases, read earlier, with their present facts."""
        told = _tell(windows, [entry.case for entry in self.entries])
        return replace(told, labels=self.labels, classes=self.classes)

    def _read(self, entries: list[JournalEntry]) -> WindowSet:
        return self.naming.rename_stored(_read_windows(self.store, entries))

    @cached_property
    def content(self) -> str:
        """Hash of the windows of cases and normals, and of which cases are labelled normal."""
        digest = hashlib.sha256(np.packbits(self.labels == NORMAL).tobytes() + self.naming.fingerprint.encode())
        for entry in (*self.entries, *self.state.normals.values()):
            digest.update(f"{entry.digest}{int(entry.normal)}".encode())
        return digest.hexdigest()

    @cached_property
    def state_key(self) -> str:
        """Hash of everything that a method is fitted on."""
        return f"{self.content}{self.knowledge}{self.surroundings}"

    @cached_property
    def surroundings(self) -> str:
        """Hash of contexts and assets, for methods that use context."""
        facts = [(e.context, e.case.asset) for e in (*self.entries, *self.state.normals.values())]
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    @cached_property
    def knowledge(self) -> str:
        """Hash of all labels, groups and rejections."""
        facts = [(e.case.label, e.case.group, e.case.rejected) for e in self.entries]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def _read_windows(store: Store, entries: list[JournalEntry]) -> WindowSet:
    windows, contexts = store.windows([entry.digest for entry in entries]), [entry.context for entry in entries]
    with_context = windows.with_context(store.contexts(contexts) if any(contexts) else None)
    return _tell(with_context, [entry.case for entry in entries])


def _tell(windows: WindowSet, cases: list[Case]) -> WindowSet:
    """Windows with the facts of their cases except labels."""
    count = len(cases)
    return replace(
        windows,
        ids=strings([case.id for case in cases], count),
        groups=strings([case.recording for case in cases], count),
        assets=strings([case.asset for case in cases], count),
        times=np.array([np.nan if case.time is None else case.time for case in cases], np.float64),
    )
