"""Search: the method on all cases of a small library, on a shortlist of a large one; fitted methods stay warm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.cases.learned import FittedMethod, Ranked
from readbench.cases.shortlist import Shortlister
from readbench.cases.snapshot import Snapshot
from readbench.cases.store import Store
from readbench.cases.vectors import StoredVectors
from readbench.errors import DataError, UsageError
from readbench.spec import MethodSpec
from readbench.windows import WindowSet, channel_axis

EXACT_CASES = 2000
"""Largest library whose cases are all compared by the method."""
SHORTLIST = 500
"""Cases of a larger library that the method compares."""
REVIEWED = 1000
"""Latest cases of a larger library that are reviewed."""
KEPT = 2
"""Fitted methods that stay in memory."""


@dataclass(frozen=True, eq=False)
class Found:
    """Rankings of windows, and the positions in the library that the ranked numbers mean."""

    positions: NDArray[np.int64]
    ranked: list[Ranked]


@dataclass(frozen=True, eq=False)
class _Warm:
    """A fitted method and the state of the library that it knows."""

    method: FittedMethod
    content: str
    knowledge: str

    def knows(self, snapshot: Snapshot) -> bool:
        """Whether nothing has changed."""
        return (self.content, self.knowledge) == (snapshot.content, snapshot.knowledge)

    def can_learn(self, snapshot: Snapshot) -> bool:
        """Whether only labels have changed, and the method has read none while it was fitted."""
        return self.content == snapshot.content and self.method.verdict is not None


class Engine:
    """Runs methods on snapshots of one library.

    Args:
        store: of the library.
        exact_cases: largest library whose cases are all compared.
        shortlist: cases compared of a larger one.
    """

    def __init__(self, store: Store, exact_cases: int = EXACT_CASES, shortlist: int = SHORTLIST) -> None:
        self.exact_cases = exact_cases
        self.shortlist = shortlist
        self.vectors = StoredVectors(store)
        self._shortlister = Shortlister()
        self._warm: dict[str, _Warm] = {}

    def ask(
        self, snapshot: Snapshot, spec: MethodSpec, windows: WindowSet, ruled_out: tuple[str, ...] = ()
    ) -> Iterator[Found]:
        """Rank the cases for Q windows: all together in a small library, one by one in a large one.

        Args:
            snapshot: of the library, with at least one case.
            spec: the method.
            windows: finite.
            ruled_out: fault types that they are known not to be.
        """
        if not len(snapshot):
            raise UsageError("The library has no cases yet. Add one: readbench cases add LIBRARY FILE")
        mask = np.isin(snapshot.classes, ruled_out) if ruled_out else None
        if len(snapshot) <= self.exact_cases:
            method = self._fitted(snapshot, spec)
            yield Found(np.arange(len(snapshot)), _asked(method, windows, mask))
            return
        for window in windows.blocks(1):
            positions = self._shortlister.nearest(snapshot, window, self.shortlist)
            corpus = snapshot.windows(positions).with_stats(snapshot.reference)
            method = FittedMethod(spec, corpus, snapshot.normals, self.vectors, rejections(snapshot, positions))
            yield Found(positions, _asked(method, window, mask))

    def reviewed(self, snapshot: Snapshot, spec: MethodSpec) -> tuple[Snapshot, FittedMethod]:
        """The cases of a library to look through, all or the latest, and the method on them."""
        part = snapshot if len(snapshot) <= self.exact_cases else snapshot.latest(REVIEWED)
        return part, self._fitted(part, spec)

    def _fitted(self, snapshot: Snapshot, spec: MethodSpec) -> FittedMethod:
        """The method on all cases; fitted, taught anew or taken as it is, whichever is enough."""
        warm = self._warm.pop(str(spec), None)
        if warm is None or not warm.knows(snapshot):
            rejected = rejections(snapshot, np.arange(len(snapshot)))
            if warm is not None and warm.can_learn(snapshot):
                method = warm.method
                method.relabel(snapshot.corpus(), rejected)
            else:
                method = FittedMethod(spec, snapshot.corpus(), snapshot.normals, self.vectors, rejected)
            warm = _Warm(method, snapshot.content, snapshot.knowledge)
        self._warm[str(spec)] = warm  # the last used one is the last
        for name in list(self._warm)[:-KEPT]:
            del self._warm[name]
        return warm.method


def rejections(snapshot: Snapshot, positions: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(M, K) fault types that cases are known not to be."""
    number = {name: i for i, name in enumerate(snapshot.classes)}
    mask = np.zeros((len(positions), len(number)), bool)
    for row, position in enumerate(positions):
        for name in snapshot.case(int(position)).rejected:
            if name in number:
                mask[row, number[name]] = True
    return mask


def _asked(method: FittedMethod, windows: WindowSet, ruled_out: NDArray[np.bool_] | None) -> list[Ranked]:
    known = set(channel_axis(method.corpus))
    for i in range(len(windows)):
        if known.isdisjoint(windows.channels(i)):
            raise DataError(
                f"No channel of the window is known here: it has {_listed(windows.channels(i))}, the cases have"
                f" {_listed(known)}. Say what a channel is called: readbench cases channel LIBRARY NAME --alias OTHER"
            )
    return method.ask(windows, ruled_out)


def _listed(names: Iterable[str]) -> str:
    first = sorted(names)[:5]
    return ", ".join(first) + (", ..." if len(first) == 5 else "")
