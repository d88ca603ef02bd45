"""Search with fitted methods: over all cases of a small library, over a shortlist of a large one.

The shortlist holds the nearest cases by coarse MiniRocket features. These are fitted on the first cases, so that they
stay the same while the library grows, and compared exactly with all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import CaseKey, Snapshot
from readbench.cases._learning import BackgroundLearner, Kept, Learned
from readbench.cases._lessons import LessonShelf
from readbench.cases._store import LibraryVectors, Store, StoredArray
from readbench.common.deadlines import check_deadline
from readbench.common.progress import Progress, during, within
from readbench.engine.legs import conceal
from readbench.engine.method import FittedMethod, Knowledge, Method, Ranking
from readbench.engine.preparation import ChannelStats, channel_axis
from readbench.engine.protocols import Encoder
from readbench.engine.registry import ENCODERS
from readbench.engine.rerankers import LabelModel
from readbench.engine.retrievers import top_k
from readbench.engine.spec import MethodSpec, parse
from readbench.engine.vectors import blocks_of, encode_missing
from readbench.engine.windows import UNLABELLED, WindowSet
from readbench.errors import DataError, UsageError

FEATURES = 996
ENCODING_BATCH = 2048
"""Cases read and encoded at a time."""


@dataclass(frozen=True, eq=False)
class _FirstLook:
    """Coarse vectors of all N cases of a snapshot.

    Args:
        first: digests of the windows that the encoder was fitted on.
        encoder: the fitted encoder.
        digests: (N,) digests of the windows.
        vectors: (N, D) vectors.
    """

    first: list[str]
    encoder: Encoder
    digests: list[str]
    vectors: StoredArray


class Shortlister:
    """Nearest-neighbour search by coarse vectors, which are kept in memory and in the library.

    Args:
        vectors: stored vectors of the library.
    """

    def __init__(self, vectors: LibraryVectors) -> None:
        self._store = vectors
        self._lock = Lock()
        self._known: _FirstLook | None = None

    def find_nearest(self, snapshot: Snapshot, window: WindowSet, count: int, progress: Progress) -> NDArray[np.int64]:
        """Positions of the `count` nearest cases of one window, in ascending order."""
        look = self._look(snapshot, progress)
        found = top_k(look.encoder.encode(bare(window)), look.vectors, count, look.encoder.metric).indices[0]
        return np.sort(found)

    def _look(self, snapshot: Snapshot, progress: Progress) -> _FirstLook:
        """Vectors of a snapshot; those known from earlier ones are reused."""
        wanted = snapshot.digests
        with self._lock:
            known = self._known
            first = [snapshot.naming.fingerprint, *(wanted[i] for i in snapshot.first)]
            if known is not None and known.first == first and known.digests == wanted:
                return known
            if known is None or known.first != first:
                known = _FirstLook(first, coarse_encoder(snapshot), [], np.empty((0, 0), np.float32))
            self._known = self._extend(known, snapshot, progress)
            return self._known

    def _extend(self, known: _FirstLook, snapshot: Snapshot, progress: Progress) -> _FirstLook:
        wanted = snapshot.digests
        start = len(known.digests) if wanted[: len(known.digests)] == known.digests else 0
        vectors = self._vectors_of(snapshot, np.arange(start, len(wanted)), known.encoder, progress)
        return replace(known, digests=wanted, vectors=np.concatenate([known.vectors, vectors]) if start else vectors)

    def _vectors_of(
        self, snapshot: Snapshot, positions: NDArray[np.intp], encoder: Encoder, progress: Progress
    ) -> StoredArray:
        """(M, D) vectors of cases; windows are read only where a vector is missing, or where channels were renamed."""
        renamed = bool(snapshot.naming.aliases)
        digests = [snapshot.digests[i] for i in positions]
        found = {} if renamed else self._store.read(self._store.key_of(encoder), digests)
        missing = [int(i) for i, digest in zip(positions, digests, strict=True) if digest not in found]
        done = len(snapshot) - len(missing)
        for some in blocks_of(missing, ENCODING_BATCH):
            progress("encoding: first look", done, len(snapshot))
            done += len(some)
            vectors = encode_missing(self._store, encoder, bare(snapshot.windows(some)), block=ENCODING_BATCH)
            found |= dict(zip((snapshot.digests[i] for i in some), vectors, strict=True))
        if missing:
            progress("encoding: first look", len(snapshot), len(snapshot))
        return np.stack([found[digest] for digest in digests])


def coarse_encoder(snapshot: Snapshot) -> Encoder:
    """Coarse encoder of a library, fitted on its first cases."""
    return fit_coarse(snapshot.windows(snapshot.first), snapshot.reference)


def fit_coarse(windows: WindowSet, stats: ChannelStats) -> Encoder:
    """Coarse encoder fitted on windows scaled by channel statistics."""
    first = bare(windows)
    encoder: Encoder = ENCODERS.get("rocket").build(features=FEATURES)
    return encoder.fit(first.with_stats(stats), first[:0])


def bare(windows: WindowSet) -> WindowSet:
    """Windows without their context."""
    return conceal(windows.with_context(None))


EXACT_CASES = 2000
"""Largest library that is compared whole."""
SHORTLIST = 500
"""Number of compared cases of a larger library."""
MAX_REVIEWED = 1000
"""Number of reviewed cases of a larger library: the latest."""
CACHED_FITS = 4
"""Fitted methods kept in memory, including those of reviews."""
MAX_GROWTH = 64
"""New cases that one search adds to a fitted method; further ones wait for the next search or the background."""
OPINION_METHOD = "verdict"
"""Reranker that estimates fault probabilities for methods that give none."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Ranking of N cases for Q windows.

    Args:
        positions: (N,) positions of the ranked cases in the library; -1 for a deleted case.
        ranking: the ranking.
        classes: fault types by label, as in the ranking.
        excluded: (Q,) posterior probability of the excluded types.
        behind: number of changes that the method has not learned from yet.
    """

    positions: NDArray[np.int64]
    ranking: Ranking
    classes: tuple[str, ...]
    excluded: NDArray[np.float64]
    behind: int = 0


@dataclass(frozen=True, eq=False)
class _Corpus:
    """The N cases that a fitted method searches, with their state in a snapshot.

    Args:
        keys: keys of the cases, in order.
        positions: (N,) positions in the snapshot; -1 for a deleted case.
        classes: fault types by label; learned ones keep their numbers.
        knowledge: labels and rejections of the cases.
    """

    keys: list[CaseKey]
    positions: NDArray[np.int64]
    classes: tuple[str, ...]
    knowledge: Knowledge

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Corpus:
        """All cases of a snapshot."""
        positions = np.arange(len(snapshot))
        return cls(snapshot.keys, positions, snapshot.classes, know_labels(snapshot, positions))

    def at(self, snapshot: Snapshot, most: int) -> _Corpus:
        """The same cases in a later snapshot, followed by at most `most` new ones."""
        known, places = set(self.keys), {key: i for i, key in enumerate(snapshot.keys)}
        keys = [*self.keys, *[key for key in snapshot.keys if key not in known][:most]]
        positions = np.array([places.get(key, -1) for key in keys], np.int64)
        here, gone = np.flatnonzero(positions >= 0), positions < 0
        classes = (*self.classes, *(name for name in snapshot.classes if name not in self.classes))
        number = np.array([classes.index(name) for name in snapshot.classes], np.int32)
        labels = np.full(len(keys), UNLABELLED, np.int32)
        labels[: len(self.keys)] = np.where(gone[: len(self.keys)], self.knowledge.labels, UNLABELLED)
        labels_here = snapshot.labels[positions[here]]
        labels[here] = np.where(labels_here == UNLABELLED, UNLABELLED, number[labels_here])
        rejected = np.zeros((len(keys), len(classes)), np.bool_)
        rejected[np.ix_(here, number)] = snapshot.rejections[positions[here]]
        return _Corpus(keys, positions, classes, Knowledge(labels, rejected))


@dataclass(frozen=True, eq=False)
class _Grown:
    """A fitted method updated with later changes."""

    learned: Learned[FittedMethod]
    snapshot: Snapshot
    fitted: FittedMethod
    corpus: _Corpus


class Engine:
    """Runs methods on snapshots of one library.

    Args:
        store: store of the library.
        exact_cases: largest library that is compared whole.
        shortlist: number of compared cases of a larger one.
        learner: fits in the background; None fits during the search.
        latest: returns the present state of the library, for the background.
    """

    def __init__(
        self,
        store: Store,
        exact_cases: int,
        shortlist: int,
        learner: BackgroundLearner | None,
        latest: Callable[[], Snapshot],
    ) -> None:
        self.exact_cases = exact_cases
        self.shortlist = shortlist
        self.vectors = LibraryVectors(store, files=learner is None or learner.learns)
        self._learner, self._latest = learner, latest
        self._lessons = LessonShelf.of(store.address)
        self._shortlister = Shortlister(self.vectors)
        self._lock = Lock()
        self._kept: dict[str, Kept[FittedMethod]] = {}
        self._grown: dict[str, _Grown] = {}

    def search(
        self,
        snapshot: Snapshot,
        spec: MethodSpec,
        windows: WindowSet,
        ruled_out: tuple[str, ...],
        progress: Progress,
    ) -> Iterator[SearchResult]:
        """Rank the cases for Q windows: together in a small library, one by one in a large one.

        Args:
            snapshot: state of the library, with at least one case.
            spec: the method.
            windows: Q windows with finite readings.
            ruled_out: excluded fault types.
            progress: called with the number of encoded cases.
        """
        if not len(snapshot):
            raise UsageError("The library has no cases yet. Add one: readbench cases add LIBRARY FILE")
        if len(snapshot) <= self.exact_cases:
            yield self._search_all(snapshot, spec, windows, ruled_out, progress)
            return
        for window in windows.blocks(1):
            positions = self.shortlist_for(snapshot, window, progress)
            corpus = snapshot.searched(positions).with_stats(snapshot.reference)
            fitted = self._build(spec, progress).fit(corpus, snapshot.normals)
            known = _Corpus([], positions, snapshot.classes, know_labels(snapshot, positions))
            yield _rank(fitted, known, windows=window, ruled_out=ruled_out)

    def shortlist_for(self, snapshot: Snapshot, window: WindowSet, progress: Progress) -> NDArray[np.int64]:
        """Positions of the cases that the method compares with one window, in ascending order."""
        if len(snapshot) <= self.exact_cases:
            return np.arange(len(snapshot))
        return self._shortlister.find_nearest(snapshot, window, self.shortlist, progress)

    def learned(self) -> dict[str, Learned[FittedMethod]]:
        """Methods fitted on all cases, by canonical text."""
        with self._lock:
            return {name: kept.known for name, kept in self._kept.items() if kept.known and " on the " not in name}

    def follow(self, name: str, learned: Learned[FittedMethod]) -> None:
        """Adopt a fitted method from another process."""
        self._keep(parse(name)).known = learned

    def keep_up(self, snapshot: Snapshot) -> None:
        """Refit the kept methods on the latest changes."""
        for name in self.learned():
            self._keep(parse(name)).get(snapshot)

    def review(self, snapshot: Snapshot, spec: MethodSpec, progress: Progress) -> Review:
        """The method on all or the latest cases, for reviews.

        With a background learner, the state before the latest changes until these are learned.
        """
        kept = self._keep(spec, latest=None if len(snapshot) <= self.exact_cases else MAX_REVIEWED)
        learned = kept.get(snapshot, progress)
        part = learned.snapshot if len(snapshot) <= self.exact_cases else learned.snapshot.latest(MAX_REVIEWED)
        return Review(part, learned.value, know_labels(part, np.arange(len(part))))

    def _search_all(
        self,
        snapshot: Snapshot,
        spec: MethodSpec,
        windows: WindowSet,
        ruled_out: tuple[str, ...],
        progress: Progress,
    ) -> SearchResult:
        """Search with the method fitted on this state, else with the last one, updated with later changes."""
        kept = self._keep(spec)
        learned = kept.get(snapshot, progress)
        if behind := kept.count_behind(learned, snapshot):
            grown = self._grow(str(spec), learned, snapshot)
            if grown:
                return _rank(grown.fitted, grown.corpus, windows=windows, ruled_out=ruled_out, behind=behind)
            learned = kept.learn_now(snapshot, progress)
        return _rank(learned.value, _Corpus.of(snapshot), windows=windows, ruled_out=ruled_out)

    def _grow(self, name: str, learned: Learned[FittedMethod], snapshot: Snapshot) -> _Grown | None:
        """A fitted method updated with later changes, once per state; None if it cannot be."""
        if snapshot.naming.fingerprint != learned.snapshot.naming.fingerprint:
            return None
        with self._lock:
            last = self._grown.get(name)
            if last is None or last.learned is not learned:
                last = _Grown(learned, learned.snapshot, learned.value, _Corpus.of(learned.snapshot))
            if last.snapshot is snapshot and len(last.corpus.keys) >= len(snapshot):
                return last
            corpus = last.corpus.at(snapshot, MAX_GROWTH)
            more = snapshot.searched(corpus.positions[len(last.corpus.keys) :])
            fitted = last.fitted.grow(more, corpus.knowledge)
            if fitted is None:
                return None
            self._grown[name] = _Grown(learned, snapshot, fitted, corpus)
            return self._grown[name]

    def _keep(self, spec: MethodSpec, latest: int | None = None) -> Kept[FittedMethod]:
        """Holder of a method fitted on all or the latest cases."""
        name = str(spec) if latest is None else f"{spec} on the latest {latest}"
        with self._lock:
            kept = self._kept.pop(name, None)
            if kept is None:
                part = _whole if latest is None else partial(_take_latest, latest)
                learn = partial(self._fit, spec, part)
                kept = Kept(name, lambda snapshot: part(snapshot).state_key, learn, self._learner, self._latest)
            self._kept[name] = kept  # the last used one is the last
            for old in list(self._kept)[:-CACHED_FITS]:
                del self._kept[old]
                self._grown.pop(old, None)
            return kept

    def _fit(
        self,
        spec: MethodSpec,
        part: Callable[[Snapshot], Snapshot],
        snapshot: Snapshot,
        known: Learned[FittedMethod] | None,
        progress: Progress,
    ) -> FittedMethod:
        """Fit a method on cases and labels; fitted legs are reused if only facts changed."""
        corpus_part = part(snapshot)
        if known is not None and _fits_still(known.value, part(known.snapshot), corpus_part):
            fitted = known.value.retell(corpus_part.describe(known.value.corpus))
        else:
            fitted = self._build(spec, progress).fit(corpus_part.corpus(), corpus_part.normals).prepare()
        knowledge = know_labels(corpus_part, np.arange(len(corpus_part)))
        if known_before := self._lessons.recall(fitted, knowledge):
            fitted.recall(knowledge, known_before)
            return fitted
        with during(progress, "learning from labels"):
            lesson = fitted.lesson(knowledge)
            if lesson:
                self._lessons.keep(fitted, knowledge, lesson.prepare())
        return fitted

    def _build(self, spec: MethodSpec, progress: Progress) -> Method:
        told = within(progress, "encoding")
        return Method(spec, vectors=self.vectors, progress=told, opinions_by=OPINION_METHOD)


def _rank(
    fitted: FittedMethod, corpus: _Corpus, *, windows: WindowSet, ruled_out: tuple[str, ...], behind: int = 0
) -> SearchResult:
    check_deadline()
    _require_common_channels(fitted.corpus, windows)
    mask = np.isin(corpus.classes, ruled_out) if ruled_out else None
    ranking = fitted.rank(windows, knowledge=replace(corpus.knowledge, ruled_out=mask))
    excluded = np.zeros(len(windows))
    if mask is not None and ranking.lesson is not None:
        lesson = ranking.lesson
        excluded = np.array([opinion.posterior[mask[lesson.classes]].sum() for opinion in lesson.opinions()])
    return SearchResult(corpus.positions, ranking, corpus.classes, excluded, behind)


def _whole(snapshot: Snapshot) -> Snapshot:
    return snapshot


def _take_latest(count: int, snapshot: Snapshot) -> Snapshot:
    return snapshot.latest(count)


def _fits_still(fitted: FittedMethod, before: Snapshot, now: Snapshot) -> bool:
    """True if windows, and the labels and context that legs use, are unchanged."""
    method = fitted.method
    same_labels = not method.legs_use_labels or before.knowledge == now.knowledge
    uses_context = any(leg.uses_context for leg in method.legs)
    same_context = not uses_context or before.surroundings == now.surroundings
    return same_labels and same_context and before.content == now.content


@dataclass(frozen=True, eq=False)
class Review:
    """Cases to review, with the method fitted on them."""

    snapshot: Snapshot
    fitted: FittedMethod
    knowledge: Knowledge

    @property
    def lesson(self) -> LabelModel | None:
        """Model learned from the labels; None without labels."""
        return self.fitted.lesson(self.knowledge)


def know_labels(snapshot: Snapshot, positions: NDArray[np.integer]) -> Knowledge:
    """Labels and rejected fault types of cases."""
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
