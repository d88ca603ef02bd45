"""Kernel ridge on labelled cases: posteriors of fault types in closed form, judged and calibrated by held-out cases.

Each class has a target of 1 for its own cases and -1 / (K - 1) for the others; a case weighs the more, the rarer its
class. With the cases' kernel S (larger is more alike), weights W and penalty λ the decision values of a new case are

    f(q) = k(q) D (D S D + λ)^-1 D Y,     D = W^(1/2)

and those of a case by all cases of *other groups* follow without fitting again: with A = (D S D + λ)^-1,

    f_-g = Y_g - D_g^-1 (A_gg)^-1 (A D Y)_g

which is how penalty, views and temperature are chosen: by the likelihood of held-out cases, never by a query. A class
whose cases are all of one group is held out case by case: without any of them it could not be known.

The same inverse says how much of a case the others leave unexplained: the variance of the Gaussian process whose mean
is f, for a new case and for a case by all cases of other groups

    v(q) = s(q, q) - k(q) D A D k(q)^T,     v_-g = diag((A_gg)^-1 - λ) / W_g

`fit_ridge` and `fit_novelty` compute these for one kernel. `fit_verdict` takes the views, or the combination of them,
that explain held-out groups best. Where cases are of several assets, the next query may come from a machine that nobody
has seen, and which views carry over to it cannot be told from a few machines (docs/flagship.md). There it can pool
instead of choosing: the ridges of all combinations of views, at three penalties, are averaged (the mean of their
logits), each as certain as *held-out assets* let it be. One that fails on them hardly counts.

A few cases say more by being near than by a hyperplane between them. Where `fit_verdict` is asked to, the posterior
becomes p(c | q)^v exp(w n_c(q)) / sum, where n_c is how near the nearest incident of class c is; v and w follow from the
number of incidents per class (`_nearest`).

`estimate_unseen_share` says how likely the next recording is of a type that no label names yet: the one estimate of
unseen types, for Verdict's order and for a library's "unlike anything here".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.protocols import Vectors, View
from readbench.engine.rerankers._nearest import Incidents, count_incidents
from readbench.engine.windows import UNLABELLED

Array = NDArray[np.float64]
Blocks = list[NDArray[np.intp]]
"""Cases that are held out together."""
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
POOLED_PENALTIES = (0.01, 0.1, 1.0)
"""Those of the ridges that are pooled: more of them give the same and take longer."""
TEMPERATURES = tuple(2.0 ** np.arange(-1, 7, 0.5))
TINY = 1e-30
"""Least probability: what was rounded to zero is not impossible."""
LARGEST = 2.0
"""Likeness of a window and itself: a cosine of one, and the constant."""
BALANCE = 0.5
"""Power of a class's rarity in the weight of its cases: 0 ignores imbalance, 1 gives all classes the same weight."""


@dataclass(frozen=True, eq=False)
class Ridge:
    """Fitted decision values.

    Args:
        classes: (K,) labels.
        dual: (L, K) weights of the L cases; decision values are `(kernel + 1) @ dual`.
        penalty: λ.
        temperature: decision values times this are the logits of the posterior.
        loss: mean negative log-likelihood of held-out cases, weighted by rarity.
        held_out: (L, K) posteriors of the cases by cases of other groups.
        from_elsewhere: (L, K) the same by cases of other assets, where views are pooled; else as `held_out`.
    """

    classes: NDArray[np.int32]
    dual: Array
    penalty: float
    temperature: float
    loss: float
    held_out: Array
    from_elsewhere: Array

    def logits(self, kernel: Array) -> Array:
        """(Q, K) decision values from likenesses (Q, L) to the cases, times the temperature."""
        logits: Array = self.temperature * ((kernel + 1.0) @ self.dual)
        return logits

    def posterior(self, kernel: Array) -> Array:
        """(Q, K) probabilities of the classes from likenesses (Q, L) to the cases."""
        return _softmax(self.logits(kernel))


def fit_ridge(kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer]) -> Ridge:
    """The ridge whose penalty and temperature explain held-out cases best.

    Args:
        kernel: (L, L) likenesses of the cases; a constant is added for the level.
        labels: (L,) at least one.
        groups: (L,) cases of one group are held out together.

    >>> kernel = np.kron(np.eye(2), np.ones((3, 3)))
    >>> ridge = fit_ridge(kernel, np.repeat(np.int32([1, 2]), 3), np.arange(6))
    >>> ridge.posterior(kernel[:1]).argmax()
    np.int64(0)
    """
    problem = _Problem.of(kernel, labels)
    if problem is None:
        return _certain(labels)
    blocks = held_out_blocks(problem.codes, groups)
    trials = (problem.fit(penalty, blocks) for penalty in PENALTIES)
    return min(trials, key=lambda trial: trial.loss)


@dataclass(frozen=True, eq=False)
class RidgePool:
    """Ridges on different kernels of the same cases: the mean of their logits, as certain as held-out cases let it be.

    Args:
        ridges: of the same classes.
        temperature: of the mean.
        held_out: (L, K) posteriors of the cases by cases of other groups.
    """

    ridges: tuple[Ridge, ...]
    temperature: float
    held_out: Array

    @classmethod
    def of(cls, ridges: Sequence[Ridge], labels: NDArray[np.int32]) -> Self:
        """Of ridges that were fitted on the same cases with these labels (L,)."""
        codes = np.unique(labels, return_inverse=True)[1]
        mean = _mean_logs([ridge.held_out for ridge in ridges])
        temperature, _ = _calibrated(mean, codes, case_weights(codes))
        return cls(tuple(ridges), temperature, _softmax(temperature * mean))

    def posterior(self, kernels: Sequence[Array]) -> Array:
        """(Q, K) probabilities of the classes, from likenesses (Q, L) to the cases by each ridge's kernel."""
        logits = [ridge.logits(kernel) for ridge, kernel in zip(self.ridges, kernels, strict=True)]
        return _softmax(self.temperature * np.mean(logits, axis=0))


def _certain(labels: NDArray[np.int32]) -> Ridge:
    """What cases of one class teach."""
    certain = np.ones((len(labels), 1))
    return Ridge(labels[:1], np.zeros((len(labels), 1)), 1.0, 1.0, 0.0, certain, certain)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Cases of several classes, ready to be fitted with any penalty.

    One decomposition of D S D serves all penalties; the constant in S is the level, which is penalised like the rest.
    """

    classes: NDArray[np.int32]
    codes: NDArray[np.intp]
    targets: Array
    weights: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, kernel: Array, labels: NDArray[np.int32]) -> Self | None:
        """The problem of a kernel (L, L); None where all cases are of one class."""
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) == 1:
            return None
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0 / (len(classes) - 1))
        weights = case_weights(codes)
        root = np.sqrt(weights)[:, None]
        values, vectors = np.linalg.eigh(root * (kernel + 1.0) * root.T)
        # A kernel has no values below zero; rounding has.
        return cls(classes, codes, targets, weights, np.maximum(values, 0.0), vectors)

    def fit(self, penalty: float, blocks: Blocks, *, certain_by: Blocks | None = None) -> Ridge:
        """The ridge with this penalty.

        Args:
            penalty: λ.
            blocks: which cases are held out together, for its loss and its held-out posteriors.
            certain_by: which are held out for its temperature; by default the same.
        """
        root = np.sqrt(self.weights)[:, None]
        solution = self.vectors @ ((self.vectors.T @ (root * self.targets)) / (self.values + penalty)[:, None])
        half = self.vectors / np.sqrt(self.values + penalty)
        decision = _without_own_block(half, solution, root, self.targets, blocks)
        other = decision
        if certain_by is not None:
            other = _without_own_block(half, solution, root, self.targets, certain_by)
        temperature, loss = _calibrated(other, self.codes, self.weights)
        held_out, from_elsewhere = _softmax(temperature * decision), _softmax(temperature * other)
        return Ridge(self.classes, root * solution, penalty, temperature, loss, held_out, from_elsewhere)


@dataclass(frozen=True, eq=False)
class Novelty:
    """How much of a window the cases leave unexplained.

    Args:
        inverse: (L, L) D A D.
        held_out: (L,) unexplained share of each case by cases of other groups.
    """

    inverse: Array
    held_out: Array

    def unexplained_share(self, kernel: Array) -> Array:
        """(Q,) shares in [0, 1] from likenesses (Q, L), cosines, to the cases."""
        near = kernel + 1.0
        return _share(LARGEST - np.einsum("ql,ql->q", near @ self.inverse, near))


def fit_novelty(kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer], penalty: float) -> Novelty:
    """The reach of cases.

    Args:
        kernel: (L, L) cosines of the cases.
        labels: (L,) at least one.
        groups: (L,) cases of one group are held out together.
        penalty: of the ridge.
    """
    codes = np.unique(labels, return_inverse=True)[1]
    weights = case_weights(codes)
    root = np.sqrt(weights)[:, None]
    inverse = np.linalg.inv(root * (kernel + 1.0) * root.T + penalty * np.eye(len(codes)))
    held_out = np.empty(len(codes))
    for rows in held_out_blocks(codes, groups):
        # (A_gg)^-1 is the covariance of the block given all others, noise included.
        own = np.diag(np.linalg.inv(inverse[np.ix_(rows, rows)]))
        held_out[rows] = (own - penalty) / weights[rows]
    return Novelty(root * inverse * root.T, _share(held_out))


def _share(variance: Array) -> Array:
    """The variance as a share of what there is when no case is known, within rounding."""
    return np.clip(variance / LARGEST, 0.0, 1.0)


def case_weights(codes: NDArray[np.intp]) -> Array:
    """(L,) weights of the cases: the rarer its class, the more a case weighs."""
    counts = np.bincount(codes)
    weights: Array = (len(codes) / (len(counts) * counts)) ** BALANCE
    return weights[codes]


def find_single_group_cases(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(L,) cases of a class that has one group only: no other group could tell them."""
    pairs = np.unique(np.stack([codes, groups]), axis=1)
    single: NDArray[np.bool_] = np.bincount(pairs[0])[codes] == 1
    return single


def held_out_assets(
    codes: NDArray[np.intp], groups: NDArray[np.integer], assets: NDArray[np.integer]
) -> NDArray[np.integer]:
    """(L,) what each case is held out with: its asset, or its group where the class has one asset only."""
    single = find_single_group_cases(codes, assets)
    return np.where(single, assets.max(initial=0) + 1 + groups, assets)


def held_out_blocks(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> Blocks:
    """Which cases are held out together: groups, but single cases of a class that has one group only."""
    lonely = find_single_group_cases(codes, groups)
    singly = [np.array([row]) for row in np.flatnonzero(lonely)]
    together = [np.flatnonzero((groups == group) & ~lonely) for group in np.unique(groups[~lonely])]
    return singly + together


def _without_own_block(half: Array, solution: Array, root: Array, targets: Array, blocks: Blocks) -> Array:
    """(L, K) decision values of each case by the cases outside its block.

    Args:
        half: (L, L) H with A = H H^T, so that a block of A costs no more than its own rows.
        solution: (L, K) A D Y.
        root: (L, 1) square roots of the weights.
        targets: (L, K) Y.
        blocks: cases that are held out together.
    """
    decision = np.empty_like(targets)
    alone = np.array([rows[0] for rows in blocks if len(rows) == 1], np.intp)
    own = np.einsum("ij,ij->i", half[alone], half[alone])[:, None]  # blocks of one, all at once
    decision[alone] = targets[alone] - solution[alone] / own / root[alone]
    for rows in (rows for rows in blocks if len(rows) > 1):
        # (A_gg)^-1 (A D Y)_g is D_g (Y_g - f_-g): the error at the cases that are held out, without fitting again.
        error = np.linalg.solve(half[rows] @ half[rows].T, solution[rows])
        decision[rows] = targets[rows] - error / root[rows]
    return decision


def _calibrated(decision: Array, codes: NDArray[np.intp], weights: Array) -> tuple[float, float]:
    """The temperature under which held-out cases are most likely, and their loss."""
    losses = []
    for temperature in TEMPERATURES:
        logits = temperature * decision
        logits = logits - logits.max(axis=1, keepdims=True)
        likelihood = logits[np.arange(len(codes)), codes] - np.log(np.exp(logits).sum(axis=1))
        losses.append(-float(np.average(likelihood, weights=weights)))
    best = int(np.argmin(losses))
    return float(TEMPERATURES[best]), losses[best]


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    posterior: Array = shifted / shifted.sum(axis=1, keepdims=True)
    return posterior


MOST_CASES = 4096
"""Labelled cases that a ridge is fitted on; above it, every class gives its share, evenly spread over its cases."""
MOST_POOLED = 2048
"""The same where ridges are pooled: there are several times as many of them."""


@dataclass(frozen=True, eq=False)
class Expert:
    """A ridge on the mean cosine of some views, by their numbers."""

    views: tuple[int, ...]
    ridge: Ridge


@dataclass(frozen=True, eq=False)
class _Cosines:
    """M windows beside L cases.

    Args:
        views: (M, L) cosines in each view, by its number.
        sees: (M, V) whether a view sees anything of a window.
    """

    views: dict[int, Vectors]
    sees: NDArray[np.bool_]

    def rows(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> _Cosines:
        """Some of the windows."""
        return _Cosines({v: own[chosen] for v, own in self.views.items()}, self.sees[chosen])

    def mean(self, views: tuple[int, ...]) -> Array:
        """(M, L) over some views."""
        mean: Array = np.mean([self.views[v] for v in views], axis=0, dtype=np.float64)
        return mean


@dataclass(frozen=True, eq=False)
class FittedVerdict:
    """What one set of labelled cases teaches: posteriors of queries and of items.

    Args:
        views: queries and items as each view sees them, rows of length one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) numbers of the corpus's recordings.
        cases: (L,) positions in the corpus of the labelled cases.
        experts: fitted on the cases; where there are several, their logits are averaged.
        temperature: of the mean of their logits.
        held_out: (L, K) posteriors of the cases by cases of other groups.
        from_elsewhere: (L, K) the same by cases of other assets, where views are pooled; else as `held_out`.
        apart: (L,) what each case is held out with for it: its asset where views are pooled, else its group.
        alone: the best ridge on each single view, by which it is judged whether the views tell a known story.
        incidents: how near the cases of each class are; None where ridges alone decide.
    """

    views: tuple[View, ...]
    labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    cases: NDArray[np.intp]
    experts: tuple[Expert, ...]
    temperature: float
    held_out: Array
    from_elsewhere: Array
    apart: NDArray[np.integer]
    alone: tuple[Expert, ...]
    incidents: Incidents | None = None

    @property
    def classes(self) -> NDArray[np.int32]:
        """(K,) labels of the fault types."""
        return self.experts[0].ridge.classes

    @property
    def chosen(self) -> tuple[int, ...]:
        """Numbers of the views that it uses."""
        return tuple(sorted({view for expert in self.experts for view in expert.views}))

    @property
    def pooled(self) -> bool:
        """Whether ridges were averaged, because the cases are of several assets."""
        return len(self.experts) > 1

    @property
    def penalty(self) -> float:
        """The penalty of its ridges; of several the geometric mean."""
        if len(self.experts) == 1:
            return self.experts[0].ridge.penalty
        return float(np.exp(np.mean([np.log(expert.ridge.penalty) for expert in self.experts])))

    @property
    def unseen_share(self) -> float:
        """How likely a query is of a type that no case has."""
        known = self.cases[self.labels[self.cases] != UNLABELLED]  # a label may have been taken back since
        return estimate_unseen_share(self.labels[known], self.groups[known])

    def query_likeness(self, queries: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of queries (M,) and the cases."""
        return self._asked.rows(queries).mean(self.chosen)

    def item_likeness(self, items: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of corpus items (M,) and the cases."""
        return self._compare([view.items[items] for view in self.views]).mean(self.chosen)

    def query_posterior(self, queries: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of queries (M,)."""
        return self._posterior(self._asked.rows(queries))

    def item_posterior(self, items: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of corpus items (M,), by the cases alone."""
        return self._posterior(self._compare([view.items[items] for view in self.views]))

    def query_decisions(self, queries: NDArray[np.intp]) -> tuple[list[Array], NDArray[np.bool_]]:
        """Logits (M, K) of queries (M,) by each ridge on a single view, and (M, views) whether that sees them."""
        asked = self._asked.rows(queries)
        logits = [expert.ridge.logits(asked.mean(expert.views)) for expert in self.alone]
        return logits, np.stack([asked.sees[:, expert.views[0]] for expert in self.alone], axis=1)

    def query_cosines(self, queries: NDArray[np.intp]) -> list[Array]:
        """(M, L) cosines of queries (M,) and the cases, by each view that has a ridge of its own."""
        asked = self._asked.rows(queries)
        return [asked.mean(expert.views) for expert in self.alone]

    def case_cosines(self, rows: NDArray[np.intp]) -> tuple[list[Array], NDArray[np.bool_]]:
        """(M, M) cosines of some of the cases by the same views, and (M, views) whether these see them."""
        taught = [self._taught[expert.views[0]][rows].astype(np.float64) for expert in self.alone]
        return [own @ own.T for own in taught], np.stack([own.any(axis=1) for own in taught], axis=1)

    def votes(self, query: int, column: int) -> Array:
        """(L,) what each case adds to the decision value of one class for a query; of several ridges the mean."""
        beside = self._asked.rows(np.array([query]))
        able = [*compress(self.experts, self._able(beside.sees)[0].tolist())]
        likeness = [beside.mean(expert.views)[0] + 1.0 for expert in able]
        votes = [own * expert.ridge.dual[:, column] for own, expert in zip(likeness, able, strict=True)]
        mean: Array = np.average(votes, axis=0, weights=[expert.ridge.temperature for expert in able])
        return mean

    @cached_property
    def _asked(self) -> _Cosines:
        """The queries beside the cases, compared once for all that is asked of them."""
        return self._compare([view.queries for view in self.views])

    def _posterior(self, beside: _Cosines) -> Array:
        able = self._able(beside.sees)
        logits = np.full((len(able), len(self.classes)), np.nan)
        for shown in np.unique(able, axis=0):
            rows = (able == shown).all(axis=1)
            some = beside.rows(rows)
            experts = compress(self.experts, shown.tolist())
            logits[rows] = np.mean([e.ridge.logits(some.mean(e.views)) for e in experts], axis=0)
        logits *= self.temperature
        if self.incidents:
            logits = self.incidents.ridge_weight * logits + self.incidents.nearness(beside.mean(self._every_view))
        return _softmax(logits)

    @property
    def _every_view(self) -> tuple[int, ...]:
        return tuple(expert.views[0] for expert in self.alone)

    def _able(self, sees: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(M, E) the experts that each window is shown to: those whose views all see something of it, else all."""
        able = np.stack([sees[:, expert.views].all(axis=1) for expert in self.experts], axis=1)
        return able | ~able.any(axis=1, keepdims=True)

    def _compare(self, vectors: list[Vectors]) -> _Cosines:
        """Windows beside the cases, in the views that are used."""
        cosines = {v: vectors[v] @ taught.T for v, taught in self._taught.items()}
        return _Cosines(cosines, np.stack([own.any(axis=1) for own in vectors], axis=1))

    @cached_property
    def _taught(self) -> dict[int, Vectors]:
        """(L, D) the cases in the views that are used."""
        whole = len(self.cases) == len(self.labels)
        used = sorted({*self.chosen, *(view for expert in self.alone for view in expert.views)})
        return {v: self.views[v].items if whole else self.views[v].items[self.cases] for v in used}

    def beside(self, queries: Sequence[Vectors]) -> FittedVerdict:
        """The same judgement with other queries in its views."""
        views = tuple(View(own, view.items) for own, view in zip(queries, self.views, strict=True))
        return self._alike(replace(self, views=views))

    def on(self, items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64]) -> FittedVerdict:
        """The same judgement on a corpus with more items behind those that taught it, or with other labels of them."""
        views = tuple(View(own[:0], own) for own in items)
        return self._alike(replace(self, views=views, labels=labels, groups=groups))

    @property
    def incidents_per_class(self) -> float:
        """Labelled incidents (a class in a recording) per class."""
        return count_incidents(self.labels[self.cases], self.groups[self.cases]) / len(self.classes)

    def _alike(self, other: FittedVerdict) -> FittedVerdict:
        other.__dict__["_taught"] = self._taught  # what taught it stays
        return other

    def shared(self, queries: NDArray[np.intp], items: NDArray[np.int64]) -> Array:
        """(M, K) probability that each item shares the fault type of its query.

        Args:
            queries: (M,) their numbers.
            items: (M, K) positions in the corpus, one row a query.
        """
        used, places = np.unique(items, return_inverse=True)
        alike = self.query_posterior(queries) @ self.opinion(used).T
        return np.take_along_axis(alike, places.reshape(items.shape), axis=1)

    def opinion(self, items: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of items: their label, else the ridges' opinion.

        A label that is no class, as that of a known normal which taught nothing, leaves a row of zeros.
        """
        labels = self.labels[items]
        opinion = (labels[:, None] == self.classes).astype(np.float64)
        silent = labels == UNLABELLED
        if silent.any():
            opinion[silent] = self.item_posterior(items[silent])
        return opinion


def fit_verdict(
    views: tuple[View, ...],
    cases: NDArray[np.intp],
    labels: NDArray[np.int32],
    groups: NDArray[np.int64],
    assets: NDArray[np.int64] | None = None,
    *,
    nearest: bool = False,
) -> FittedVerdict:
    """Learn from labelled cases: on the views that explain held-out groups best, or on all that see half of the cases.

    Args:
        views: queries and items, rows of length one, zero where a view sees nothing of a window.
        cases: positions in the corpus of those to learn from, at least one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) of the corpus.
        assets: (N,) of the corpus, to pool views where there are several; None chooses views.
        nearest: whether the nearest cases count beside the ridges.
    """
    fitted = _fit_ridges(views, cases, labels, groups, assets)
    if not nearest or len(fitted.classes) == 1:
        return fitted
    kernel = np.mean([fitted._taught[v].astype(np.float64) @ fitted._taught[v].T for v in fitted._every_view], axis=0)
    taught = labels[fitted.cases]
    incidents = Incidents.of(kernel, taught, groups[fitted.cases])

    def count_nearest(posterior: Array, apart: NDArray[np.integer]) -> Array:
        logs = incidents.ridge_weight * np.log(np.maximum(posterior, TINY))
        return _softmax(logs + incidents.held_out(kernel, apart))

    return replace(
        fitted,
        incidents=incidents,
        held_out=count_nearest(fitted.held_out, groups[fitted.cases]),
        from_elsewhere=count_nearest(fitted.from_elsewhere, fitted.apart),
    )


def _fit_ridges(
    views: tuple[View, ...],
    cases: NDArray[np.intp],
    labels: NDArray[np.int32],
    groups: NDArray[np.int64],
    assets: NDArray[np.int64] | None,
) -> FittedVerdict:
    pooling = assets is not None and len(np.unique(assets[cases])) > 1 and len(np.unique(labels[cases])) > 1
    cases = subsample_cases(cases, labels, MOST_POOLED if pooling else MOST_CASES)
    seeing = [v for v, view in enumerate(views) if 2 * view.items[cases].any(axis=1).sum() >= len(cases)]
    numbers = seeing or [*range(len(views))]
    taught = {v: views[v].items[cases].astype(np.float64) for v in numbers}
    kernels = {v: own @ own.T for v, own in taught.items()}
    choices = [chosen for size in range(len(numbers)) for chosen in combinations(numbers, size + 1)]
    joined = ((chosen, np.mean([kernels[v] for v in chosen], axis=0)) for chosen in choices)
    own = labels[cases]
    if assets is None or not pooling:
        fits = [Expert(chosen, fit_ridge(kernel, own, groups[cases])) for chosen, kernel in joined]
        best = min(fits, key=lambda expert: expert.ridge.loss)
        known = best.ridge.held_out
        alone = _choose_alone(fits)
        return FittedVerdict(views, labels, groups, cases, (best,), 1.0, known, known, groups[cases], alone)
    experts = _fit_pool(joined, own, groups[cases], assets[cases])
    codes = np.unique(own, return_inverse=True)[1]
    mean = _mean_logs([expert.ridge.held_out for expert in experts])
    temperature, _ = _calibrated(mean, codes, case_weights(codes))
    elsewhere = _softmax(temperature * _mean_logs([expert.ridge.from_elsewhere for expert in experts]))
    known, alone = _softmax(temperature * mean), _choose_alone(experts)
    apart = held_out_assets(codes, groups[cases], assets[cases])
    return FittedVerdict(views, labels, groups, cases, experts, temperature, known, elsewhere, apart, alone)


def _mean_logs(posteriors: list[Array]) -> Array:
    mean: Array = np.mean([np.log(np.maximum(own, TINY)) for own in posteriors], axis=0)
    return mean


def _choose_alone(experts: Iterable[Expert]) -> tuple[Expert, ...]:
    """Of the ridges on each single view the one that explains held-out cases best."""
    best: dict[int, Expert] = {}
    for expert in experts:
        view = expert.views[0]
        if len(expert.views) == 1 and (view not in best or expert.ridge.loss < best[view].ridge.loss):
            best[view] = expert
    return tuple(best.values())


def _fit_pool(
    kernels: Iterable[tuple[tuple[int, ...], Array]],
    labels: NDArray[np.int32],
    groups: NDArray[np.int64],
    assets: NDArray[np.int64],
) -> tuple[Expert, ...]:
    """The ridges of all combinations of views and pooled penalties, each as certain as held-out assets let it be."""
    codes = np.unique(labels, return_inverse=True)[1]
    blocks = held_out_blocks(codes, groups)
    other_assets = held_out_blocks(codes, held_out_assets(codes, groups, assets))
    experts = []
    for chosen, kernel in kernels:
        problem = _Problem.of(kernel, labels)
        if problem is not None:
            fits = (problem.fit(penalty, blocks, certain_by=other_assets) for penalty in POOLED_PENALTIES)
            experts += [Expert(chosen, ridge) for ridge in fits]
    return tuple(experts)


def estimate_unseen_share(labels: NDArray[np.int32], groups: NDArray[np.int64]) -> float:
    """How likely the next recording is of a type that no label names yet, from the types met in one recording only.

    One is added to both counts: two recordings of one type are no proof that there is no other. The estimate is never
    taken for certainty: G recordings, each of another type, are not enough to say more than G / (G + 1).

    >>> estimate_unseen_share(np.array([1, 1, 1, 2], np.int32), np.array([0, 0, 1, 2]))
    0.5
    """
    # Good (1953): the chance of something new is the share of what was met once; recordings count, not windows.
    types, _ = np.unique(np.stack([labels, groups]), axis=1)
    _, recordings = np.unique(types, return_counts=True)
    count = len(np.unique(groups))
    return float(min((recordings == 1).sum() + 1, count) / (count + 1))


def subsample_cases(cases: NDArray[np.intp], labels: NDArray[np.int32], most: int = MOST_CASES) -> NDArray[np.intp]:
    """All cases, or about `most` of them: every class its share, one at least, evenly spread."""
    if len(cases) <= most:
        return cases
    kept = []
    for label in np.unique(labels[cases]):
        own = cases[labels[cases] == label]
        count = max(1, len(own) * most // len(cases))
        kept.append(own[np.linspace(0, len(own) - 1, count).astype(np.intp)])
    return np.sort(np.concatenate(kept))
