"""From rankings to answers: which cases are listed, how likely they are, and what the reader must know.

An opinion on known fault types becomes one in which "unlike anything here" is an option.

How likely the next fault is of a type that the library has never seen, π, is told by the types it has seen once
(`readbench.engine.rerankers.estimate_unseen_share`, Good and Turing's estimate, which Verdict uses too). How strange a
window is comes as a p-value p among the library's own held-out cases, and speaks for a new type by -1 / (e p ln p) at
most (Sellke, Bayarri and Berger, 2001). So

    P(unlike) = π / (π + (1 - π) b),     b = -e p ln p for p < 1/e, else 1

and the known types share the rest as their posterior says. Where a window is known not to be of some of them, to which
the posterior gave r together, the odds of the other types and of a new one stay: (1 - r) b takes the place of b. A
window that cannot be judged (`_plausibility`) is one that known faults show in `FALSE_ALARMS` of cases at most, so that
b is no more than this; and since wrong files, units and names are asked about, too, π is taken for `ODD_QUESTIONS` at
least.

Where the library knows enough normal windows, "normal operation" is one more option (`_normal`), and all others share
what it leaves.

What cannot be ruled out is decided on one scale for all options: from the least probability with which held-out cases
of the library still hold their true type in nine of ten cases (`Opinion.threshold`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from readbench.cases._journal import Snapshot
from readbench.cases._models import NORMAL_OPERATION, UNLIKE, Answer, Fault, Filter, Hit, HitGroup, Remark, Vote
from readbench.cases._normal import NormalOpinion
from readbench.cases._plausibility import FALSE_ALARMS
from readbench.cases._search import SearchResult
from readbench.engine.rerankers import Opinion

ODD_QUESTIONS = 0.1
"""Share of questions that may be about no window of this plant; assumed, since no library can know it."""


def novelty_probability(p_value: float, prior: float, *, excluded: float = 0.0, judgeable: bool = True) -> float:
    """Probability of a type that the library does not know.

    >>> round(novelty_probability(0.5, 0.1), 3), round(novelty_probability(0.001, 0.1), 3)
    (0.1, 0.855)
    >>> round(novelty_probability(0.5, 0.1, excluded=0.9), 3)  # it is known not to be what it looks like
    0.526
    >>> round(novelty_probability(0.5, 0.1, judgeable=False), 3)
    0.847
    """
    known = -math.e * p_value * math.log(p_value) if p_value < 1 / math.e else 1.0
    if not judgeable:
        known, prior = min(known, FALSE_ALARMS), max(prior, ODD_QUESTIONS)
    return prior / (prior + (1.0 - prior) * (1.0 - excluded) * known)


def list_fault_options(
    opinion: Opinion,
    posterior: NDArray[np.float64],
    new: float,
    classes: tuple[str, ...],
    *,
    normal: float | None = None,
    judgeable: bool = True,
) -> list[Fault]:
    """All options, most likely first.

    Args:
        opinion: on the known types.
        posterior: (K,) their probabilities, which may rule out what the opinion does not.
        new: probability of a new type.
        classes: names by label.
        normal: probability of normal operation, which takes its share of all others; None where it is no option.
        judgeable: nothing odd forbids to judge the window; else nothing is ruled out.
    """
    fault = 1.0 - (normal or 0.0)
    known = zip(opinion.classes, posterior, strict=True)
    everything = [(classes[label], float(p) * (1.0 - new) * fault) for label, p in known]
    everything += [(UNLIKE, new * fault), *([] if normal is None else [(NORMAL_OPERATION, normal)])]
    least = min(opinion.threshold * (1.0 - new) * fault, max(p for _, p in everything))
    if opinion.novel:
        least = min(least, new * fault)
    found = [
        Fault(label=name, probability=p, possible=p > 0 and (p >= least or not judgeable)) for name, p in everything
    ]
    return sorted(found, key=lambda fault: -fault.probability)


def describe_learning(behind: int) -> str:
    """What an answer says while the library learns from its last changes.

    >>> describe_learning(1)
    'Learning from the last change: probabilities follow from the library before it.'
    """
    last = "the last change" if behind == 1 else f"the last {behind} changes"
    return f"Learning from {last}: probabilities follow from the library before {'it' if behind == 1 else 'them'}."


MOST_VOTES = 10
FEW_LABELS = 10
BEST_OF_TYPE = 3
"""Cases that are shown of a type that cannot be ruled out, where no fewer hits are asked for."""


class SearchRequest(BaseModel):
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


def make_answer(
    snapshot: Snapshot,
    found: SearchResult,
    query: int,
    request: SearchRequest,
    odd: tuple[Remark, ...] = (),
    operation: NormalOpinion | None = None,
) -> Answer:
    """One answer, to one of the windows that were asked about, with what is odd and how likely it is normal."""
    said, judgeable = _Said.of(found, query), all(remark.judgeable for remark in odd)
    new = _new(said, judgeable=judgeable)
    normal = None if operation is None else operation.beside(said.most_likely * (1.0 - new))
    if not judgeable and normal is not None:
        normal *= FALSE_ALARMS  # what cannot be judged is not normal, either
    faults = _faults(found.classes, said, new, normal, judgeable=judgeable)
    other = 1.0 - (1.0 - new) * (1.0 - (normal or 0.0))
    listed = tuple(islice(_hits(snapshot, said, request, other), request.k))
    open_types = {fault.label for fault in faults if fault.possible}
    further = _hits(snapshot, said, request, other, behind=len(listed), types=open_types)
    return Answer(
        hits=listed,
        groups=group_hits(listed, further, faults, min(request.k, BEST_OF_TYPE)),
        faults=tuple(faults),
        novelty=None if said.opinion is None else said.opinion.novelty,
        novel=said.opinion is not None and said.opinion.novel,
        votes=_votes(snapshot, said, request.itself),
        method=request.method,
        change=snapshot.state.change,
        compared=int((found.positions >= 0).sum()),
        total=len(snapshot),
        remarks=tuple(_remarks(snapshot, said, request, found.behind)),
        plausibility=odd,
        judgeable=judgeable,
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
        unseen: how likely a window is of a type that no case has, before it is looked at.
        excluded: what the posterior gave to the types that it is known not to be.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float32]
    shared: NDArray[np.float64] | None
    opinion: Opinion | None
    votes: NDArray[np.float64]
    voters: NDArray[np.int64]
    unseen: float = 1.0
    excluded: float = 0.0

    @property
    def most_likely(self) -> float:
        """Probability of the most likely known type, if it is one of them; 0 without labels."""
        return 0.0 if self.opinion is None else float(self.opinion.posterior.max())

    @classmethod
    def of(cls, found: SearchResult, query: int) -> _Said:
        """Taken from a ranking."""
        ranking = found.ranking
        order = ranking.order[query]
        order = order[found.positions[order] >= 0]
        scores = ranking.scores if ranking.judged is None else ranking.judged
        positions, ordered_scores = found.positions[order], scores[query][order]
        lesson, opinions = ranking.lesson, ranking.opinions
        if lesson is None or opinions is None:
            return cls(positions, ordered_scores, None, None, np.empty(0), np.empty(0, np.int64))
        opinion = opinions[query]
        shared = (opinion.posterior @ lesson.guesses.T)[order]
        voters, unseen = found.positions[lesson.cases], lesson.judgement.unseen_share
        votes = lesson.votes(query, opinion)[voters >= 0]
        return cls(
            positions, ordered_scores, shared, opinion, votes, voters[voters >= 0], unseen, float(found.excluded[query])
        )


def _hits(
    snapshot: Snapshot,
    said: _Said,
    request: SearchRequest,
    other: float,
    *,
    behind: int = 0,
    types: Collection[str | None] | None = None,
) -> Iterator[Hit]:
    """All cases that may be listed, best first.

    Args:
        snapshot: of the library.
        said: the ranking.
        request: which cases are listed.
        other: how likely the window shows no known fault.
        behind: places to leave out.
        types: the fault types that are wanted; all by default.
    """
    place = 0
    for at, position in enumerate(said.positions.tolist()):
        case = snapshot.case(position)
        if case.id == request.itself or not request.where.admits(case):
            continue
        place += 1
        if place <= behind or (types is not None and case.label not in types):
            continue
        shared = None if said.shared is None else float(said.shared[at]) * (1.0 - other)
        yield Hit(place=place, case=case, score=float(said.scores[at]), probability=shared)


def group_hits(
    listed: Sequence[Hit], further: Iterable[Hit], faults: Sequence[Fault], best: int
) -> tuple[HitGroup, ...]:
    """Hits by fault type, the likeliest type first, those that nobody resolved last.

    Args:
        listed: all of them are in a group.
        further: the rest of the ranking: it fills up the groups of types that cannot be ruled out.
        faults: what the window may be.
        best: cases of such a type, at least, where the ranking has them.
    """
    shares = {fault.label: fault.probability for fault in faults}
    groups: dict[str | None, list[Hit]] = {}
    for hit in listed:
        groups.setdefault(hit.case.label, []).append(hit)
    open_types = {fault.label for fault in faults if fault.possible}
    for hit in further:
        hits = groups.get(hit.case.label, [])
        if hit.case.label in open_types and len(hits) < best:
            groups[hit.case.label] = [*hits, hit]
    by_share = sorted(groups, key=lambda label: (label is None, -shares.get(label or "", 0.0)))
    return tuple(
        HitGroup(label=label, probability=shares.get(label or ""), hits=tuple(groups[label])) for label in by_share
    )


def _new(said: _Said, *, judgeable: bool) -> float:
    """The probability of a new type; nothing without labels."""
    if said.opinion is None:
        return 0.0
    if not said.opinion.posterior.sum():  # everything known is ruled out
        return 1.0
    p_value = 1.0 - said.opinion.novelty
    return novelty_probability(p_value, said.unseen, excluded=said.excluded, judgeable=judgeable)


def _faults(classes: tuple[str, ...], said: _Said, new: float, normal: float | None, *, judgeable: bool) -> list[Fault]:
    """The options, most likely first; none without labels."""
    if said.opinion is None:
        return []
    return list_fault_options(said.opinion, said.opinion.posterior, new, classes, normal=normal, judgeable=judgeable)


def _votes(snapshot: Snapshot, said: _Said, itself: str | None) -> tuple[Vote, ...]:
    strongest = np.argsort(-np.abs(said.votes), kind="stable")
    votes = [
        Vote(case=snapshot.case(int(said.voters[i])), weight=float(said.votes[i])) for i in strongest[: MOST_VOTES + 1]
    ]
    return tuple(vote for vote in votes if vote.case.id != itself)[:MOST_VOTES]


def _remarks(snapshot: Snapshot, said: _Said, request: SearchRequest, behind: int) -> list[str]:
    remarks = []
    if behind:
        remarks.append(describe_learning(behind))
    elif len(said.positions) < len(snapshot):
        remarks.append(
            f"The library is large: the {len(said.positions)} cases nearest at first sight were compared by the"
            f" method, out of {len(snapshot)}."
        )
    resolved = len(said.voters)
    if not resolved:
        remarks.append("No case has a label yet: the order is by likeness alone, and no fault type can be named.")
    elif resolved < FEW_LABELS:
        remarks.append(f"Only {resolved} cases have a label: take the probabilities with care.")
    if not snapshot.state.normals:
        remarks.append("The library has no normal windows: departures are measured by the cases themselves.")
    if request.itself and (label := snapshot.state.cases[request.itself].case.label):
        remarks.append(f"This case is already resolved as {label!r}, and the opinion knows that.")
    return remarks
