"""Answers from rankings: hits, probability of each fault type, probability of an unknown type, remarks.

The prior probability π that the next fault is of a type missing from the library follows from the types seen once
(`readbench.engine.rerankers.estimate_unseen_share`: Good and Turing's estimate, also used by Verdict). The novelty of a
window is a p-value p among held-out cases of the library; the Bayes factor for a new type is at most -1 / (e p ln p)
(Sellke, Bayarri and Berger, 2001). So

    P(unlike) = π / (π + (1 - π) b),     b = -e p ln p for p < 1/e, else 1

and the known types share the rest in proportion to their posterior. If some types are excluded, with posterior r in
total, the odds of the others and of a new type stay: b becomes (1 - r) b. A window that cannot be judged
(`_plausibility`) occurs in at most `FALSE_ALARM_RATE` of known faults, which bounds b; and since users also query wrong
files, units and names, π is at least `UNRELATED_QUERY_SHARE`.

If the library has enough normal windows, "normal operation" is an option (`_normal`), and the others share the rest.

An option "cannot be ruled out" above one threshold: the smallest probability that keeps the true type of nine in ten
held-out cases (`Opinion.threshold`).
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
from readbench.cases._plausibility import FALSE_ALARM_RATE
from readbench.cases._search import SearchResult
from readbench.engine.rerankers import Opinion

UNRELATED_QUERY_SHARE = 0.1
"""Assumed share of queries that do not come from this plant."""


def novelty_probability(p_value: float, prior: float, *, excluded: float = 0.0, judgeable: bool = True) -> float:
    """Probability that a window shows a fault type missing from the library.

    >>> round(novelty_probability(0.5, 0.1), 3), round(novelty_probability(0.001, 0.1), 3)
    (0.1, 0.855)
    >>> round(novelty_probability(0.5, 0.1, excluded=0.9), 3)  # the likeliest types are excluded
    0.526
    >>> round(novelty_probability(0.5, 0.1, judgeable=False), 3)
    0.847
    """
    known = -math.e * p_value * math.log(p_value) if p_value < 1 / math.e else 1.0
    if not judgeable:
        known, prior = min(known, FALSE_ALARM_RATE), max(prior, UNRELATED_QUERY_SHARE)
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
    """Options with their probabilities, most likely first.

    Args:
        opinion: opinion on the K known types.
        posterior: (K,) probabilities of the known types; excluded ones are 0.
        new: probability of a new type.
        classes: type names by label.
        normal: probability of normal operation; None if it is not an option.
        judgeable: False if the window is too odd to judge; then no option is ruled out.
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
    """Remark of an answer given while the library still learns from its last changes.

    >>> describe_learning(1)
    'Learning from the last change: probabilities follow from the library before it.'
    """
    last = "the last change" if behind == 1 else f"the last {behind} changes"
    return f"Learning from {last}: probabilities follow from the library before {'it' if behind == 1 else 'them'}."


MAX_VOTES = 10
MIN_LABELS = 10
MIN_HITS_PER_TYPE = 3
"""Cases listed of each type that cannot be ruled out, unless `k` is smaller."""


class SearchRequest(BaseModel):
    """Parameters of a search.

    Args:
        method: canonical text of the method.
        k: largest number of hits.
        where: filter of the listed cases.
        itself: name of the case that is searched for; it is not listed.
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
    """The answer to one window of a search, with the oddities of the window and the opinion on normal operation."""
    said, judgeable = _Said.of(found, query), all(remark.judgeable for remark in odd)
    new = _new(said, judgeable=judgeable)
    normal = None if operation is None else operation.beside(said.most_likely * (1.0 - new))
    if not judgeable and normal is not None:
        normal *= FALSE_ALARM_RATE  # a window that cannot be judged is rarely normal
    faults = _faults(found.classes, said, new, normal, judgeable=judgeable)
    other = 1.0 - (1.0 - new) * (1.0 - (normal or 0.0))
    listed = tuple(islice(_hits(snapshot, said, request, other), request.k))
    open_types = {fault.label for fault in faults if fault.possible}
    further = _hits(snapshot, said, request, other, behind=len(listed), types=open_types)
    return Answer(
        hits=listed,
        groups=group_hits(listed, further, faults, min(request.k, MIN_HITS_PER_TYPE)),
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
    """Result of a method for one window.

    Args:
        positions: (N,) positions in the library, best first.
        scores: (N,) scores in the same order.
        shared: (N,) probabilities of sharing the window's fault type, in the same order; None without labels.
        opinion: opinion on the fault type; None without labels.
        votes: (L,) weight of each resolved case for (positive) or against the most likely type.
        voters: (L,) positions of these cases in the library.
        unseen: prior probability of a type that no case has.
        excluded: posterior probability of the excluded types.
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
        """Probability of the most likely known type; 0 without labels."""
        return 0.0 if self.opinion is None else float(self.opinion.posterior.max())

    @classmethod
    def of(cls, found: SearchResult, query: int) -> _Said:
        """Result for window number `query` of a search."""
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
    """Cases admitted by the request, best first.

    Args:
        snapshot: state of the library.
        said: result of the method.
        request: parameters of the search.
        other: probability that the window shows no known fault type.
        behind: number of first places to skip.
        types: fault types to keep; None for all.
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
    """Group hits by fault type, the likeliest type first, open cases last.

    Args:
        listed: hits that are all kept.
        further: rest of the ranking; fills up the groups of types that cannot be ruled out.
        faults: options with their probabilities.
        best: number of hits up to which such a group is filled.
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
    """Probability of a new type; 0 without labels."""
    if said.opinion is None:
        return 0.0
    if not said.opinion.posterior.sum():  # everything known is ruled out
        return 1.0
    p_value = 1.0 - said.opinion.novelty
    return novelty_probability(p_value, said.unseen, excluded=said.excluded, judgeable=judgeable)


def _faults(classes: tuple[str, ...], said: _Said, new: float, normal: float | None, *, judgeable: bool) -> list[Fault]:
    """Options, most likely first; empty without labels."""
    if said.opinion is None:
        return []
    return list_fault_options(said.opinion, said.opinion.posterior, new, classes, normal=normal, judgeable=judgeable)


def _votes(snapshot: Snapshot, said: _Said, itself: str | None) -> tuple[Vote, ...]:
    strongest = np.argsort(-np.abs(said.votes), kind="stable")
    votes = [
        Vote(case=snapshot.case(int(said.voters[i])), weight=float(said.votes[i])) for i in strongest[: MAX_VOTES + 1]
    ]
    return tuple(vote for vote in votes if vote.case.id != itself)[:MAX_VOTES]


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
    elif resolved < MIN_LABELS:
        remarks.append(f"Only {resolved} cases have a label: take the probabilities with care.")
    if not snapshot.state.normals:
        remarks.append("The library has no normal windows: departures are measured by the cases themselves.")
    if request.itself and (label := snapshot.state.cases[request.itself].case.label):
        remarks.append(f"This case is already resolved as {label!r}, and the opinion knows that.")
    return remarks
