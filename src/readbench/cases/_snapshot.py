"""A library at one time, as the engine needs it: cases by position, their labels as numbers, windows on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import JournalEntry, State
from readbench.cases._models import Case
from readbench.cases._store import Store
from readbench.engine.preparation import ChannelStats
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet, strings
from readbench.errors import UnknownNameError

NORMAL_LABEL = "normal"
"""Label of a case that turned out to be normal operation."""
MOST_NAMED = 20
"""Cases among which a mistyped name looks for the right one: the latest."""
REFERENCE_CASES = 256
"""First cases that give the channel statistics of a shortlist, so that they stay while a library grows."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """N cases in the order in which they came.

    Args:
        state: what the journal says.
        store: where the windows are.
    """

    state: State
    store: Store

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
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.state.cases)}

    def position(self, case: str) -> int:
        """Position of a case, or an error that names the nearest ones."""
        if case not in self._places:
            raise UnknownNameError("case", case, list(self._places)[-MOST_NAMED:])
        return self._places[case]

    def case(self, position: int) -> Case:
        """What is known of a case."""
        return self.entries[position].case

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the labels by number, normal first."""
        names = {entry.case.label for entry in self.entries}
        return (NORMAL_LABEL, *sorted(name for name in names if name and name != NORMAL_LABEL))

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """(N,) numbers of the labels, -1 where nobody resolved a case."""
        number = {name: i for i, name in enumerate(self.classes)}
        return np.array([number.get(entry.case.label or "", UNLABELLED) for entry in self.entries], np.int32)

    def windows(self, positions: Sequence[int] | NDArray[np.integer]) -> WindowSet:
        """Windows of cases, with their labels, groups, assets and times."""
        chosen = [self.entries[i] for i in positions]
        windows = _described(self.store.windows([entry.digest for entry in chosen]), chosen)
        return replace(windows, labels=self.labels[np.asarray(positions, np.intp)], classes=self.classes)

    @cached_property
    def normals(self) -> WindowSet:
        """Windows of normal operation."""
        entries = list(self.state.normals.values())
        windows = _described(self.store.windows([entry.digest for entry in entries]), entries)
        return replace(windows, labels=np.full(len(entries), NORMAL, np.int32), classes=(NORMAL_LABEL,))

    def corpus(self) -> WindowSet:
        """All cases, to be scaled by those that are not known to be normal."""
        windows = self.windows(range(len(self)))
        faults = windows[np.flatnonzero(self.labels != NORMAL)]
        return windows.with_stats(ChannelStats.of(faults if len(faults) else windows))

    @cached_property
    def reference(self) -> ChannelStats:
        """Channel statistics of the first cases that are not known to be normal."""
        return ChannelStats.of(self.windows(self.first))

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Positions of the first cases that are not known to be normal; of the first cases where all are."""
        faults = np.flatnonzero(self.labels != NORMAL)
        return (faults if len(faults) else np.arange(len(self)))[:REFERENCE_CASES]

    @cached_property
    def content(self) -> str:
        """Hash of the windows of cases and normals, and of which cases are known to be normal."""
        digest = hashlib.sha256(np.packbits(self.labels == NORMAL).tobytes())
        for entry in (*self.entries, *self.state.normals.values()):
            digest.update(f"{entry.digest}{int(entry.normal)}".encode())
        return digest.hexdigest()

    @cached_property
    def knowledge(self) -> str:
        """Hash of all labels, groups and rejections."""
        facts = [(e.case.label, e.case.group, e.case.rejected) for e in self.entries]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def _described(windows: WindowSet, entries: list[JournalEntry]) -> WindowSet:
    cases, count = [entry.case for entry in entries], len(entries)
    return replace(
        windows,
        ids=strings([case.id for case in cases], count),
        groups=strings([case.group or case.id for case in cases], count),
        assets=strings([case.asset for case in cases], count),
        times=np.array([np.nan if case.time is None else case.time for case in cases], np.float64),
    )
