"""The back-test: a site's resolved history replayed in time order, each incident asked of those before it.

Nothing of the future is known: an incident is asked of a library that holds the incidents before it and the windows of
normal operation. Cases of one recording are one incident and never evidence for each other. Fitting a method again for
every incident would take hours; so a method serves until the history has grown by `GROWTH`, which makes figures
slightly worse than they would have been.

The library *names a fault* where a fault type is the most likely option with more than `SPEAKS_FROM`. Its *stated
precision* is the mean of these probabilities, its *realised precision* the share that was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from readbench.cases._asking import DEFAULT_METHOD
from readbench.cases._intake import FIRST_DATE
from readbench.cases._journal import NORMAL_LABEL, JournalEntry, Snapshot
from readbench.cases._library import Library
from readbench.cases._models import NORMAL_OPERATION, UNLIKE, Answer, Case, Fault, Record
from readbench.common.calibration import Reliability, expected_calibration_error, reliability
from readbench.common.progress import SILENT, Progress
from readbench.errors import UsageError

SPEAKS_FROM = 0.5
"""Probability above which a fault counts as named: one half is what the library says where it is not certain."""
DECIMALS = 9
LEVELS = (0.5, 0.7, 0.8, 0.9)
"""Confidences that coverage and precision are told at."""
FIRST_ASKED = 10
"""Resolved cases that a history needs before it is asked."""
GROWTH = 0.05
"""Share by which the history may grow before the method learns from it again."""
FIRST_HITS = 5
BINS = 6


class Replayed(Record):
    """One case of the history, as the library would have answered then.

    Args:
        case: with its label, the truth.
        history: resolved cases that were known then.
        known: whether the history had a case of its fault type.
        said: the most likely option.
        probability: of it.
        novel: whether the library called it unlike anything that it knew.
        first: name of the best case then.
        first_right: whether that case has the right fault.
        place: place of the first case with the right fault; None where it is not among the first `FIRST_HITS`.
        judgeable: whether the window could be judged.
    """

    case: Case
    history: int
    known: bool
    said: str
    probability: float
    novel: bool
    first: str
    first_right: bool
    place: int | None
    judgeable: bool

    @property
    def named(self) -> bool:
        """Whether a fault was named."""
        return self.said not in (UNLIKE, NORMAL_OPERATION) and round(self.probability, DECIMALS) > SPEAKS_FROM

    @property
    def right(self) -> bool:
        """Whether the most likely option was the truth."""
        return self.said == (NORMAL_OPERATION if self.case.label == NORMAL_LABEL else self.case.label)


class Assumptions(Record):
    """What a case costs, in minutes of an engineer; nobody but the site knows these.

    Args:
        unaided: to find the cause without the library.
        aided: to check a right answer.
        misled: lost to a wrong one, beside the search that is still to be done.
    """

    unaided: float = 60.0
    aided: float = 10.0
    misled: float = 20.0


class Backtest(Record):
    """What a library would have said, case by case.

    Args:
        library: where it lives.
        method: that was asked.
        by_time: whether the order is that of the cases' times; else of their intake.
        skipped: resolved cases at the beginning that nobody was asked about.
        cases: in order.
        assumptions: what a case costs.
    """

    library: str
    method: str
    by_time: bool
    skipped: int
    cases: tuple[Replayed, ...]
    assumptions: Assumptions = Assumptions()

    def told(self, level: float = SPEAKS_FROM) -> list[Replayed]:
        """Cases of which a fault was named with at least so much confidence."""
        return [own for own in self.cases if own.named and own.probability >= level]

    def coverage(self, level: float = SPEAKS_FROM) -> float:
        """Share of all cases of which a fault was named."""
        return len(self.told(level)) / len(self.cases)

    def stated(self, level: float = SPEAKS_FROM) -> float:
        """Mean confidence of the named faults; NaN without any."""
        return _mean([own.probability for own in self.told(level)])

    def realised(self, level: float = SPEAKS_FROM) -> float:
        """Share of the named faults that were right; NaN without any."""
        return _mean([own.right for own in self.told(level)])

    @property
    def gap(self) -> float:
        """Stated less realised precision: positive where the library promised too much."""
        return self.stated() - self.realised()

    @property
    def error(self) -> float:
        """Expected calibration error over all options that came first."""
        stated, right = self._answers()
        return expected_calibration_error(stated, right, bins=BINS)

    @property
    def curve(self) -> Reliability | None:
        """Stated against realised precision where a fault came first, however likely; None where none did."""
        faults = [own for own in self.cases if own.said not in (UNLIKE, NORMAL_OPERATION)]
        if not faults:
            return None
        return reliability([own.probability for own in faults], [own.right for own in faults], bins=BINS)

    @property
    def known(self) -> list[Replayed]:
        """Cases whose fault type the library had seen."""
        return [own for own in self.cases if own.known]

    @property
    def new(self) -> list[Replayed]:
        """Cases of a fault type that it had not."""
        return [own for own in self.cases if not own.known]

    @property
    def misled(self) -> list[Replayed]:
        """Wrong answers, the most confident first."""
        return sorted((own for own in self.told() if not own.right), key=lambda own: -own.probability)

    @property
    def reassured(self) -> list[Replayed]:
        """Faults that were called normal operation with at least `SPEAKS_FROM`."""
        calm = (own for own in self.cases if own.said == NORMAL_OPERATION and own.probability >= SPEAKS_FROM)
        return [own for own in calm if not own.right]

    @property
    def first_right(self) -> float:
        """Share of known fault types whose first case had the right fault; NaN without any."""
        return _mean([own.first_right for own in self.known])

    @property
    def found(self) -> float:
        """The same for the first `FIRST_HITS` cases."""
        return _mean([own.place is not None for own in self.known])

    @property
    def minutes_saved(self) -> float:
        """Time saved, by the assumptions; negative where wrong answers cost more than right ones saved."""
        costs = self.assumptions
        right = sum(own.right for own in self.told())
        wrong = len(self.misled) + len(self.reassured)
        return right * (costs.unaided - costs.aided) - wrong * costs.misled

    def _answers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return np.array([own.probability for own in self.cases]), np.array([own.right for own in self.cases])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def replay_history(
    library: Library,
    *,
    method: str = DEFAULT_METHOD,
    first: int = FIRST_ASKED,
    assumptions: Assumptions | None = None,
    progress: Progress = SILENT,
) -> Backtest:
    """Ask each incident of the library as it was before it.

    Args:
        library: with resolved cases.
        method: of the grammar.
        first: resolved cases that must be known before one is asked about.
        assumptions: what a case costs.
        progress: told how many cases have been asked about.
    """
    snapshot = library.snapshot()
    incidents, by_time = order_incidents(snapshot)
    total = sum(len(own) for own in incidents)
    past, found = PastLibrary(library), list[Replayed]()
    for history, asked in list_steps(incidents, first):
        progress("replaying", len(history), total)
        past.remember(snapshot, history, asked)
        found += _ask(past, snapshot, asked, method)
    progress("replaying", total, total)
    if not found:
        raise UsageError(
            f"{library.store.where} has {total} resolved cases of {len(incidents)} recordings: a back-test needs more"
            f" than {first}. Resolve more of them, or ask sooner (--first)."
        )
    return Backtest(
        library=str(library.store.where),
        method=method,
        by_time=by_time,
        skipped=total - len(found),
        cases=tuple(found),
        assumptions=assumptions or Assumptions(),
    )


def order_incidents(snapshot: Snapshot) -> tuple[list[list[JournalEntry]], bool]:
    """Resolved cases by recording, in the order of their times where all have a date, else of their intake."""
    resolved = [entry for entry in snapshot.entries if entry.case.label]
    timed = all(entry.case.time is not None and entry.case.time >= FIRST_DATE for entry in resolved)
    place = {entry.case.id: entry.case.time if timed else float(entry.place) for entry in resolved}
    ordered = sorted(resolved, key=lambda entry: (place[entry.case.id] or 0.0, entry.place))
    incidents: dict[str, list[JournalEntry]] = {}
    for entry in ordered:
        incidents.setdefault(entry.case.recording, []).append(entry)
    return list(incidents.values()), timed


def list_steps(
    incidents: Sequence[Sequence[JournalEntry]], first: int
) -> Iterator[tuple[list[JournalEntry], list[JournalEntry]]]:
    """Histories, and what is asked of each: incidents until the history has grown by `GROWTH`."""
    history, waiting = list[JournalEntry](), list[JournalEntry]()
    for incident in incidents:
        if len(history) < first:
            history += incident
            continue
        waiting += incident
        if len(waiting) >= GROWTH * len(history):
            yield list(history), waiting
            history, waiting = history + waiting, []
    if waiting:
        yield history, waiting


class PastLibrary(Library):
    """A library as it was, read-only: some of its cases, and all windows of normal operation.

    Args:
        library: as it is.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library.store, as_of=0)
        self._past = library.snapshot()

    def remember(self, whole: Snapshot, history: Sequence[JournalEntry], asked: Sequence[JournalEntry]) -> None:
        """Know the cases of a history only, and no normal window of the recordings that are asked about."""
        cases = {entry.case.id: entry for entry in history}
        own = {entry.case.group for entry in asked if entry.case.group}
        normals = {name: entry for name, entry in whole.state.normals.items() if entry.case.group not in own}
        self._past = replace(whole, state=replace(whole.state, cases=cases, normals=normals)).after(self._past)

    def snapshot(self) -> Snapshot:
        """What is remembered."""
        return self._past


def _ask(past: PastLibrary, whole: Snapshot, asked: Sequence[JournalEntry], method: str) -> Iterator[Replayed]:
    windows = whole.windows([whole.position(entry.case.id) for entry in asked])
    types = {case.label for case in past.cases()}
    for entry, answer in zip(asked, past.search_many(windows, k=FIRST_HITS, method=method), strict=True):
        yield _judge(entry.case, answer, len(past), types)


def _judge(case: Case, answer: Answer, history: int, types: set[str | None]) -> Replayed:
    best = answer.faults[0] if answer.faults else Fault(label=UNLIKE, probability=0.0, possible=True)
    same = [hit.place for hit in answer.hits if hit.case.label == case.label]
    return Replayed(
        case=case,
        history=history,
        known=case.label in types,
        said=best.label,
        probability=best.probability,
        novel=answer.novel or best.label == UNLIKE,
        first=answer.hits[0].case.id,
        first_right=bool(same) and same[0] == 1,
        place=same[0] if same else None,
        judgeable=answer.judgeable,
    )
