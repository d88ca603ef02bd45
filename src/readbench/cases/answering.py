"""From rankings to answers: which cases are listed, how likely they are, and what the reader must know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from readbench.cases.answers import Answer, Case, Fault, Hit, Vote
from readbench.cases.belief import options, unlike, unseen_share
from readbench.cases.engine import Found
from readbench.cases.snapshot import Snapshot
from readbench.rerank.opinion import Opinion

MOST_VOTES = 10
FEW_LABELS = 10


class Filter(BaseModel):
    """Which cases are listed; the opinion on the fault type is formed on all.

    Args:
        asset: only this asset.
        label: only this fault type.
        tag: only with this tag.
        since: not before, in seconds since the epoch.
        until: not after.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    asset: str | None = None
    label: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None

    def admits(self, case: Case) -> bool:
        """Whether a case is listed; one without a time is not, where a time is asked for."""
        time = case.time
        return (
            (self.asset is None or case.asset == self.asset)
            and (self.label is None or case.label == self.label)
            and (self.tag is None or self.tag in case.tags)
            and (self.since is None or (time is not None and time >= self.since))
            and (self.until is None or (time is not None and time <= self.until))
        )


class Question(BaseModel):
    """What is asked beside the window.

    Args:
        method: canonical text of the method.
        k: most hits.
        where: which cases are listed.
        itself: the case whose window is asked about; it is not listed.
    """

    model_config = ConfigDict(frozen=True)

    method: str
    k: int
    where: Filter = Filter()
    itself: str | None = None


def answered(snapshot: Snapshot, found: Found, query: int, question: Question) -> Answer:
    """One answer, to one of the windows that were asked about."""
    said = _Said.of(found, query)
    faults, new = _faults(snapshot, said)
    return Answer(
        hits=_hits(snapshot, said, question, new),
        faults=tuple(faults),
        novelty=None if said.opinion is None else said.opinion.novelty,
        novel=said.opinion is not None and said.opinion.novel,
        votes=_votes(snapshot, said, question.itself),
        method=question.method,
        change=snapshot.state.change,
        compared=len(found.positions),
        total=len(snapshot),
        remarks=tuple(_remarks(snapshot, said, question)),
    )


@dataclass(frozen=True, eq=False)
class _Said:
    """What a method says of one window, about positions in the library.

    Args:
        positions: (N,) in the library, best first.
        scores: (N,) in the same order.
        shared: (N,) probabilities of sharing the window's fault type, in the same order; None without labels.
        opinion: on the fault type; None without labels.
        votes: (L,) what each of the resolved cases says about the most likely type; positive is for it.
        voters: (L,) their positions in the library.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float32]
    shared: NDArray[np.float64] | None
    opinion: Opinion | None
    votes: NDArray[np.float64]
    voters: NDArray[np.int64]

    @classmethod
    def of(cls, found: Found, query: int) -> _Said:
        """Taken from a ranking."""
        ranking = found.ranking
        order = ranking.order[query]
        scores = ranking.scores if ranking.judged is None else ranking.judged
        positions, own = found.positions[order], scores[query][order]
        lesson, opinions = ranking.lesson, ranking.opinions
        if lesson is None or opinions is None:
            return cls(positions, own, None, None, np.empty(0), np.empty(0, np.int64))
        opinion = opinions[query]
        shared = (opinion.posterior @ lesson.guesses.T)[order]
        return cls(positions, own, shared, opinion, lesson.votes(query, opinion), found.positions[lesson.cases])


def _hits(snapshot: Snapshot, said: _Said, question: Question, new: float) -> tuple[Hit, ...]:
    hits: list[Hit] = []
    for place, position in enumerate(said.positions.tolist()):
        case = snapshot.case(position)
        if len(hits) == question.k:
            break
        if case.id == question.itself or not question.where.admits(case):
            continue
        shared = None if said.shared is None else float(said.shared[place]) * (1.0 - new)
        hits.append(Hit(place=len(hits) + 1, case=case, score=float(said.scores[place]), probability=shared))
    return tuple(hits)


def _faults(snapshot: Snapshot, said: _Said) -> tuple[list[Fault], float]:
    """The options, most likely first, and the probability of a new type; nothing without labels."""
    if said.opinion is None:
        return [], 0.0
    groups = np.array([snapshot.case(int(i)).group or snapshot.case(int(i)).id for i in said.voters])
    prior = unseen_share(snapshot.labels[said.voters], np.unique(groups, return_inverse=True)[1])
    new = unlike(1.0 - said.opinion.novelty, prior)
    if not said.opinion.posterior.sum():  # everything known is ruled out
        new = 1.0
    return options(said.opinion, said.opinion.posterior, new, snapshot.classes), new


def _votes(snapshot: Snapshot, said: _Said, itself: str | None) -> tuple[Vote, ...]:
    strongest = np.argsort(-np.abs(said.votes), kind="stable")
    votes = [
        Vote(case=snapshot.case(int(said.voters[i])), weight=float(said.votes[i])) for i in strongest[: MOST_VOTES + 1]
    ]
    return tuple(vote for vote in votes if vote.case.id != itself)[:MOST_VOTES]


def _remarks(snapshot: Snapshot, said: _Said, question: Question) -> list[str]:
    remarks = []
    if len(said.positions) < len(snapshot):
        remarks.append(
            f"The library is large: the {len(said.positions)} cases nearest at first sight were compared by the"
            f" method, out of {len(snapshot)}."
        )
    resolved = len(said.voters)
    if not resolved:
        remarks.append("No case has a label yet: the order is by likeness alone, and no fault type can be named.")
    elif resolved < FEW_LABELS:
        remarks.append(f"Only {resolved} cases have a label: take the probabilities with care.")
    if not len(snapshot.normals):
        remarks.append("The library has no normal windows: departures are measured by the cases themselves.")
    if question.itself and (label := snapshot.state.cases[question.itself].case.label):
        remarks.append(f"This case is already resolved as {label!r}, and the opinion knows that.")
    return remarks
