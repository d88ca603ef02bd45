"""Search: the method on all cases of a small library, on a shortlist of a large one; fitted methods stay warm.

The first look at a large library says which cases are worth comparing in full: coarse MiniRocket features, drawn from
the first cases so that they stay while a library grows, are compared with all cases exactly; the nearest go to the
method. What a method does with them is `readbench.engine.method`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import Snapshot
from readbench.cases._store import LibraryVectors, Store, StoredArray
from readbench.common.deadlines import check_deadline
from readbench.common.progress import Progress, within
from readbench.engine.legs import conceal
from readbench.engine.method import FittedMethod, Knowledge, Method, Ranking
from readbench.engine.preparation import channel_axis
from readbench.engine.protocols import Encoder
from readbench.engine.registry import ENCODERS
from readbench.engine.rerankers import LabelModel
from readbench.engine.retrievers import top_k
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import encode_missing
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

FEATURES = 996
ENCODED_AT_ONCE = 2048
"""Cases read and encoded at a time."""


class Shortlister:
    """Keeps the coarse vectors of all cases in memory, and in the library.

    Args:
        vectors: of the library.
    """

    def __init__(self, vectors: LibraryVectors) -> None:
        self._store = vectors
        self._first: list[str] = []
        self._encoder: Encoder | None = None
        self._name = ""
        self._digests: list[str] = []
        self._vectors: StoredArray = np.empty((0, 0), np.float32)

    def find_nearest(self, snapshot: Snapshot, window: WindowSet, count: int, progress: Progress) -> NDArray[np.int64]:
        """Positions of the `count` nearest cases of one window, ascending."""
        encoder = self._fit(snapshot)
        self._update(snapshot, encoder, progress)
        found = top_k(encoder.encode(bare(window)), self._vectors, count, encoder.metric).indices[0]
        return np.sort(found)

    def _fit(self, snapshot: Snapshot) -> Encoder:
        """The encoder of the first cases, which rarely change."""
        first = [snapshot.naming.fingerprint, *(snapshot.entries[i].digest for i in snapshot.first)]
        if self._encoder is None or first != self._first:
            self._encoder, self._first = coarse_encoder(snapshot), first
        return self._encoder

    def _update(self, snapshot: Snapshot, encoder: Encoder, progress: Progress) -> None:
        """Bring the vectors in line with the snapshot; those of cases that stayed are kept."""
        wanted, name = [entry.digest for entry in snapshot.entries], encoder.fingerprint() + snapshot.naming.fingerprint
        if name == self._name and wanted == self._digests:
            return
        same = name == self._name and wanted[: len(self._digests)] == self._digests
        start = len(self._digests) if same else 0
        pieces = []
        for at in range(start, len(wanted), ENCODED_AT_ONCE):
            progress("encoding: first look", at, len(wanted))
            some = bare(snapshot.windows(range(at, min(at + ENCODED_AT_ONCE, len(wanted)))))
            pieces.append(encode_missing(self._store, encoder, some, block=ENCODED_AT_ONCE))
        progress("encoding: first look", len(wanted), len(wanted))
        new = np.concatenate(pieces) if pieces else self._vectors[:0]
        self._vectors = np.concatenate([self._vectors, new]) if start else new
        self._digests, self._name = wanted, name


def coarse_encoder(snapshot: Snapshot) -> Encoder:
    """The encoder of the first look, fitted on the first cases."""
    first = bare(snapshot.windows(snapshot.first))
    encoder: Encoder = ENCODERS.get("rocket").build(features=FEATURES)
    return encoder.fit(first.with_stats(snapshot.reference), first[:0])


def bare(windows: WindowSet) -> WindowSet:
    """Windows as the first look sees them: their values, and nothing that they bring along."""
    return conceal(windows.with_context(None))


EXACT_CASES = 2000
"""Largest library whose cases are all compared by the method."""
SHORTLIST = 500
"""Cases of a larger library that the method compares."""
REVIEWED = 1000
"""Latest cases of a larger library that are reviewed."""
KEPT = 2
"""Fitted methods that stay in memory."""
OPINIONS_BY = "verdict"
"""The reranker that says what a window is where the method says nothing."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a method says of windows, and the positions in the library that the ranked numbers mean."""

    positions: NDArray[np.int64]
    ranking: Ranking


@dataclass(frozen=True, eq=False)
class _Warm:
    """A fitted method and the windows, labels and context that it was fitted on."""

    fitted: FittedMethod
    content: str
    knowledge: str
    surroundings: str

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether it can answer as it is: the windows are the same and, where it uses them, labels and context too."""
        method = self.fitted.method
        same_labels = not method.legs_use_labels or self.knowledge == snapshot.knowledge
        uses_context = any(leg.uses_context for leg in method.legs)
        same_context = not uses_context or self.surroundings == snapshot.surroundings
        return same_labels and same_context and self.content == snapshot.content


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
        self.vectors = LibraryVectors(store)
        self._shortlister = Shortlister(self.vectors)
        self._warm: dict[str, _Warm] = {}

    def search(
        self,
        snapshot: Snapshot,
        spec: MethodSpec,
        windows: WindowSet,
        ruled_out: tuple[str, ...],
        progress: Progress,
    ) -> Iterator[SearchResult]:
        """Rank the cases for Q windows: all together in a small library, one by one in a large one.

        Args:
            snapshot: of the library, with at least one case.
            spec: the method.
            windows: finite.
            ruled_out: fault types that they are known not to be.
            progress: told how far cases have been encoded that were not.
        """
        if not len(snapshot):
            raise UsageError("The library has no cases yet. Add one: readbench cases add LIBRARY FILE")
        mask = np.isin(snapshot.classes, ruled_out) if ruled_out else None
        if len(snapshot) <= self.exact_cases:
            yield self._rank(self._fit(snapshot, spec, progress), snapshot, np.arange(len(snapshot)), windows, mask)
            return
        for window in windows.blocks(1):
            positions = self._shortlister.find_nearest(snapshot, window, self.shortlist, progress)
            corpus = snapshot.searched(positions).with_stats(snapshot.reference)
            fitted = self._build(spec, progress).fit(corpus, snapshot.normals)
            yield self._rank(fitted, snapshot, positions, window, mask)

    def review(self, snapshot: Snapshot, spec: MethodSpec, progress: Progress) -> Review:
        """The cases of a library to look through, all or the latest, and the method on them."""
        part = snapshot if len(snapshot) <= self.exact_cases else snapshot.latest(REVIEWED)
        return Review(part, self._fit(part, spec, progress), know_labels(part, np.arange(len(part))))

    def _rank(
        self,
        fitted: FittedMethod,
        snapshot: Snapshot,
        positions: NDArray[np.int64],
        windows: WindowSet,
        ruled_out: NDArray[np.bool_] | None,
    ) -> SearchResult:
        check_deadline()
        _require_common_channels(fitted.corpus, windows)
        knowledge = replace(know_labels(snapshot, positions), ruled_out=ruled_out)
        return SearchResult(positions, fitted.rank(windows, knowledge=knowledge))

    def _fit(self, snapshot: Snapshot, spec: MethodSpec, progress: Progress) -> FittedMethod:
        """The method on all cases, fitted, or as it is where only labels have changed."""
        warm = self._warm.pop(str(spec), None)
        if warm is None or not warm.fits(snapshot):
            fitted = self._build(spec, progress).fit(snapshot.corpus(), snapshot.normals).prepare()
            warm = _Warm(fitted, snapshot.content, snapshot.knowledge, snapshot.surroundings)
        self._warm[str(spec)] = warm  # the last used one is the last
        for name in list(self._warm)[:-KEPT]:
            del self._warm[name]
        return warm.fitted

    def _build(self, spec: MethodSpec, progress: Progress) -> Method:
        told = within(progress, "encoding")
        return Method(spec, vectors=self.vectors, progress=told, opinions_by=OPINIONS_BY)


@dataclass(frozen=True, eq=False)
class Review:
    """Cases to look through, the method on them, and what is known of them."""

    snapshot: Snapshot
    fitted: FittedMethod
    knowledge: Knowledge

    @property
    def lesson(self) -> LabelModel | None:
        """What the labels teach; None without labels."""
        return self.fitted.lesson(self.knowledge)


def know_labels(snapshot: Snapshot, positions: NDArray[np.integer]) -> Knowledge:
    """What is known of cases: their labels, and the fault types that they are known not to be."""
    return Knowledge(snapshot.labels[positions], snapshot.rejections[positions])


def _require_common_channels(corpus: WindowSet, windows: WindowSet) -> None:
    here = set(channel_axis(corpus))
    for i in range(len(windows)):
        if here.isdisjoint(windows.channels(i)):
            raise DataError(
                f"No channel of the window is known here: it has {_join(windows.channels(i))}, the cases have"
                f" {_join(here)}. Say what a channel is called: readbench cases channel LIBRARY NAME --alias OTHER"
            )


def _join(names: Iterable[str]) -> str:
    first = sorted(names)[:5]
    return ", ".join(first) + (", ..." if len(first) == 5 else "")
