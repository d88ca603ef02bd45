"""From rankings to answers: which cases are listed, how likely they are, and what the reader must know."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict

from readbench.cases.answers import Answer, Case, Fault, Hit, Vote
from readbench.cases.belief import options, unlike, unseen_share
from readbench.cases.engine import Found
from readbench.cases.learned import Ranked
from readbench.cases.snapshot import Snapshot

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


def answered(snapshot: Snapshot, found: Found, ranked: Ranked, question: Question) -> Answer:
    """One answer."""
    faults, new = _faults(snapshot, found, ranked)
    return Answer(
        hits=_hits(snapshot, found, ranked, question, new),
        faults=tuple(faults),
        novelty=None if ranked.opinion is None else ranked.opinion.novelty,
        novel=ranked.opinion is not None and ranked.opinion.novel,
        votes=_votes(snapshot, found, ranked, question.itself),
        method=question.method,
        change=snapshot.state.change,
        compared=len(found.positions),
        total=len(snapshot),
        remarks=tuple(_remarks(snapshot, found, ranked, question)),
    )


def _hits(snapshot: Snapshot, found: Found, ranked: Ranked, question: Question, new: float) -> tuple[Hit, ...]:
    hits: list[Hit] = []
    for position in ranked.order:
        case = snapshot.case(int(found.positions[position]))
        if len(hits) == question.k:
            break
        if case.id == question.itself or not question.where.admits(case):
            continue
        shared = None if ranked.shared is None else float(ranked.shared[position]) * (1.0 - new)
        hits.append(Hit(place=len(hits) + 1, case=case, score=float(ranked.scores[position]), probability=shared))
    return tuple(hits)


def _faults(snapshot: Snapshot, found: Found, ranked: Ranked) -> tuple[list[Fault], float]:
    """The options, most likely first, and the probability of a new type; nothing without labels."""
    if ranked.opinion is None or ranked.voters is None:
        return [], 0.0
    voters = found.positions[ranked.voters]
    groups = np.array([snapshot.case(int(i)).group or snapshot.case(int(i)).id for i in voters])
    prior = unseen_share(snapshot.labels[voters], np.unique(groups, return_inverse=True)[1])
    new = unlike(1.0 - ranked.opinion.novelty, prior)
    if not ranked.opinion.posterior.sum():  # everything known is ruled out
        new = 1.0
    return options(ranked.opinion, ranked.opinion.posterior, new, snapshot.classes), new


def _votes(snapshot: Snapshot, found: Found, ranked: Ranked, itself: str | None) -> tuple[Vote, ...]:
    if ranked.votes is None or ranked.voters is None:
        return ()
    strongest = np.argsort(-np.abs(ranked.votes), kind="stable")
    votes = [
        Vote(case=snapshot.case(int(found.positions[ranked.voters[i]])), weight=float(ranked.votes[i]))
        for i in strongest[: MOST_VOTES + 1]
    ]
    return tuple(vote for vote in votes if vote.case.id != itself)[:MOST_VOTES]


def _remarks(snapshot: Snapshot, found: Found, ranked: Ranked, question: Question) -> list[str]:
    remarks = []
    if len(found.positions) < len(snapshot):
        remarks.append(
            f"The library is large: the {len(found.positions)} cases nearest at first sight were compared by the"
            f" method, out of {len(snapshot)}."
        )
    resolved = 0 if ranked.voters is None else len(ranked.voters)
    if not resolved:
        remarks.append("No case has a label yet: the order is by likeness alone, and no fault type can be named.")
    elif resolved < FEW_LABELS:
        remarks.append(f"Only {resolved} cases have a label: take the probabilities with care.")
    if not len(snapshot.normals):
        remarks.append("The library has no normal windows: departures are measured by the cases themselves.")
    if question.itself and (label := snapshot.state.cases[question.itself].case.label):
        remarks.append(f"This case is already resolved as {label!r}, and the opinion knows that.")
    return remarks
