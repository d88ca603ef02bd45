"""Kernel ridge on labelled cases: closed-form posteriors of fault types, chosen and calibrated on held-out cases.

Each class has a target of 1 for its cases and -1 / (K - 1) for the others; cases of rare classes weigh more. With the
cases' kernel S (larger is more alike), weights W and penalty λ the decision values of a new case are

    f(q) = k(q) D (D S D + λ)^-1 D Y,     D = W^(1/2)

and those of a case by all cases of *other groups* follow without fitting again: with A = (D S D + λ)^-1,

    f_-g = Y_g - D_g^-1 (A_gg)^-1 (A D Y)_g

Penalty, views and temperature maximise the likelihood of held-out cases; queries are not used. A class whose cases are
all of one group is held out case by case, since it would otherwise be unknown.

The same inverse gives the variance of the Gaussian process with mean f, that is, the unexplained part of a new case,
and of a case by all cases of other groups

    v(q) = s(q, q) - k(q) D A D k(q)^T,     v_-g = diag((A_gg)^-1 - λ) / W_g

`fit_ridge` and `fit_novelty` compute these for one kernel. `fit_verdict` chooses the views, or their combination, that
explain held-out groups best. If cases are of several assets, the next query may come from an unknown machine, and a few
machines do not show which views transfer to it (docs/flagship.md). Then it can pool instead: the logits of ridges on
all combinations of views, at three penalties, are averaged, each calibrated on *held-out assets*. A ridge that fails on
these hardly counts.

Few cases tell more by their nearness than by a ridge. With `nearest`, the posterior is

    p(c | q)^v exp(w n_c(q)) / sum

where n_c is the nearness of the nearest incident of class c; v and w follow from the number of incidents per class
(`_nearest`).

`estimate_unseen_share` estimates the probability that the next recording has a type without any label, for Verdict's
order and for a library's "unlike anything here".
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
from readbench.engine.rerankers._nearest import (
    Incidents,
    count_incidents,
    log_probability,
    softmax,
)
from readbench.engine.windows import UNLABELLED

Array = NDArray[np.float64]
Blocks = list[NDArray[np.intp]]
"""Blocks of cases that are held out together."""
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
POOLED_PENALTIES = (0.01, 0.1, 1.0)
"""Penalties of pooled ridges; more give the same result and take longer."""
TEMPERATURES = tuple(2.0 ** np.arange(-1, 7, 0.5))
SELF_KERNEL = 2.0
"""Kernel value of a window with itself: a cosine of one, plus the constant."""
RARITY_POWER = 0.5
"""Power of class rarity in case weights: 0 ignores imbalance, 1 gives all classes the same weight."""


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fitted ridge.

    Args:
        classes: (K,) labels.
        dual: (L, K) weights of the L cases; decision values are `(kernel + 1) @ dual`.
        penalty: λ.
        temperature: factor from decision values to logits of the posterior.
        loss: mean negative log-likelihood of held-out cases, weighted by rarity.
        held_out: (L, K) posteriors of the cases by cases of other groups.
        from_elsewhere: (L, K) the same by cases of other assets, if views are pooled; else as `held_out`.
    """

    classes: NDArray[np.int32]
    dual: Array
    penalty: float
    temperature: float
    loss: float
    held_out: Array
    from_elsewhere: Array

    def logits(self, kernel: Array) -> Array:
        """(Q, K) logits from cosines (Q, L) to the cases."""
        logits: Array = self.temperature * ((kernel + 1.0) @ self.dual)
        return logits

    def posterior(self, kernel: Array) -> Array:
        """(Q, K) probabilities of the classes from cosines (Q, L) to the cases."""
        return softmax(self.logits(kernel))


def fit_ridge(kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer]) -> Ridge:
    """Fit the ridge whose penalty and temperature explain held-out cases best.

    Args:
        kernel: (L, L) cosines of the cases; a constant is added for the level.
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
    """Ridges on different kernels of the same cases: calibrated mean of their logits.

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
        """Build from ridges fitted on the same cases with these labels (L,)."""
        codes = np.unique(labels, return_inverse=True)[1]
        mean = _mean_logs([ridge.held_out for ridge in ridges])
        temperature, _ = _calibrated(mean, codes, case_weights(codes))
        return cls(tuple(ridges), temperature, softmax(temperature * mean))

    def posterior(self, kernels: Sequence[Array]) -> Array:
        """(Q, K) probabilities of the classes from cosines (Q, L) to the cases, one kernel per ridge."""
        logits = [ridge.logits(kernel) for ridge, kernel in zip(self.ridges, kernels, strict=True)]
        return softmax(self.temperature * np.mean(logits, axis=0))


def _certain(labels: NDArray[np.int32]) -> Ridge:
    """Ridge for cases of one class."""
    certain = np.ones((len(labels), 1))
    return Ridge(labels[:1], np.zeros((len(labels), 1)), 1.0, 1.0, 0.0, certain, certain)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Cases of several classes, ready to be fitted with any penalty.

    One decomposition of D S D serves all penalties; the constant in S is the level, which is penalised as well.
    """

    classes: NDArray[np.int32]
    codes: NDArray[np.intp]
    targets: Array
    weights: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, kernel: Array, labels: NDArray[np.int32]) -> Self | None:
        """Build from a kernel (L, L); None if all cases are of one class."""
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) == 1:
            return None
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0 / (len(classes) - 1))
        weights = case_weights(codes)
        root = np.sqrt(weights)[:, None]
        values, vectors = np.linalg.eigh(root * (kernel + 1.0) * root.T)
        # A kernel has no negative eigenvalues; rounding may.
        return cls(classes, codes, targets, weights, np.maximum(values, 0.0), vectors)

    def fit(self, penalty: float, blocks: Blocks, *, certain_by: Blocks | None = None) -> Ridge:
        """Fit the ridge with this penalty.

        Args:
            penalty: λ.
            blocks: cases held out together, for its loss and held-out posteriors.
            certain_by: cases held out together for its temperature; by default the same.
        """
        root = np.sqrt(self.weights)[:, None]
        solution = self.vectors @ ((self.vectors.T @ (root * self.targets)) / (self.values + penalty)[:, None])
        half = self.vectors / np.sqrt(self.values + penalty)
        decision = _without_own_block(half, solution, root, self.targets, blocks)
        other = decision
        if certain_by is not None:
            other = _without_own_block(half, solution, root, self.targets, certain_by)
        temperature, loss = _calibrated(other, self.codes, self.weights)
        held_out, from_elsewhere = softmax(temperature * decision), softmax(temperature * other)
        return Ridge(self.classes, root * solution, penalty, temperature, loss, held_out, from_elsewhere)


@dataclass(frozen=True, eq=False)
class Novelty:
    """Unexplained share of windows, given the cases.

    Args:
        inverse: (L, L) D A D.
        held_out: (L,) unexplained share of each case by cases of other groups.
    """

    inverse: Array
    held_out: Array

    def unexplained_share(self, kernel: Array) -> Array:
        """(Q,) unexplained shares in [0, 1] from cosines (Q, L) to the cases."""
        near = kernel + 1.0
        return _share(SELF_KERNEL - np.einsum("ql,ql->q", near @ self.inverse, near))


def fit_novelty(kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer], penalty: float) -> Novelty:
    """Fit the unexplained share of windows.

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
        variance = np.diag(np.linalg.inv(inverse[np.ix_(rows, rows)]))
        held_out[rows] = (variance - penalty) / weights[rows]
    return Novelty(root * inverse * root.T, _share(held_out))


def _share(variance: Array) -> Array:
    """The variance as a share of that without any case, clipped to [0, 1]."""
    return np.clip(variance / SELF_KERNEL, 0.0, 1.0)


def case_weights(codes: NDArray[np.intp]) -> Array:
    """(L,) weights of the cases; larger for rare classes."""
    counts = np.bincount(codes)
    weights: Array = (len(codes) / (len(counts) * counts)) ** RARITY_POWER
    return weights[codes]


def find_single_group_cases(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(L,) cases of a class with only one group, which no other group could predict."""
    pairs = np.unique(np.stack([codes, groups]), axis=1)
    single: NDArray[np.bool_] = np.bincount(pairs[0])[codes] == 1
    return single


def held_out_assets(
    codes: NDArray[np.intp], groups: NDArray[np.integer], assets: NDArray[np.integer]
) -> NDArray[np.integer]:
    """(L,) block that each case is held out with: its asset, or its group if the class has only one asset."""
    single = find_single_group_cases(codes, assets)
    return np.where(single, assets.max(initial=0) + 1 + groups, assets)


def held_out_blocks(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> Blocks:
    """Blocks of cases held out together: groups, or single cases of a class with only one group."""
    lonely = find_single_group_cases(codes, groups)
    singly = [np.array([row]) for row in np.flatnonzero(lonely)]
    together = [np.flatnonzero((groups == group) & ~lonely) for group in np.unique(groups[~lonely])]
    return singly + together


def _without_own_block(half: Array, solution: Array, root: Array, targets: Array, blocks: Blocks) -> Array:
    """(L, K) decision values of each case by the cases outside its block.

    Args:
        half: (L, L) H with A = H H^T, so that a block of A costs only its rows.
        solution: (L, K) A D Y.
        root: (L, 1) square roots of the weights.
        targets: (L, K) Y.
        blocks: cases held out together.
    """
    decision = np.empty_like(targets)
    alone = np.array([rows[0] for rows in blocks if len(rows) == 1], np.intp)
    diagonal = np.einsum("ij,ij->i", half[alone], half[alone])[:, None]  # blocks of one, all at once
    decision[alone] = targets[alone] - solution[alone] / diagonal / root[alone]
    for rows in (rows for rows in blocks if len(rows) > 1):
        # (A_gg)^-1 (A D Y)_g is D_g (Y_g - f_-g), the error at held-out cases, without fitting again.
        error = np.linalg.solve(half[rows] @ half[rows].T, solution[rows])
        decision[rows] = targets[rows] - error / root[rows]
    return decision


def _calibrated(decision: Array, codes: NDArray[np.intp], weights: Array) -> tuple[float, float]:
    """Temperature that maximises the likelihood of held-out cases, and their loss."""
    losses = []
    for temperature in TEMPERATURES:
        logits = temperature * decision
        logits = logits - logits.max(axis=1, keepdims=True)
        likelihood = logits[np.arange(len(codes)), codes] - np.log(np.exp(logits).sum(axis=1))
        losses.append(-float(np.average(likelihood, weights=weights)))
    best = int(np.argmin(losses))
    return float(TEMPERATURES[best]), losses[best]


MAX_CASES = 4096
"""Maximum labelled cases that a ridge is fitted on; of more, every class keeps its share, evenly spread."""
MAX_POOLED_CASES = 2048
"""The same for pooled ridges, of which there are several."""


@dataclass(frozen=True, eq=False)
class Expert:
    """A ridge on the mean cosine of some views, by their indices."""

    views: tuple[int, ...]
    ridge: Ridge


@dataclass(frozen=True, eq=False)
class _Cosines:
    """Cosines of M windows and L cases.

    Args:
        views: (M, L) cosines in each view, by its index.
        sees: (M, V) whether a window has a non-zero vector in a view.
    """

    views: dict[int, Vectors]
    sees: NDArray[np.bool_]

    def rows(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> _Cosines:
        """Subset of the windows."""
        return _Cosines({v: cosines[chosen] for v, cosines in self.views.items()}, self.sees[chosen])

    def mean(self, views: tuple[int, ...]) -> Array:
        """(M, L) mean cosine over some views."""
        mean: Array = np.mean([self.views[v] for v in views], axis=0, dtype=np.float64)
        return mean


@dataclass(frozen=True, eq=False)
class FittedVerdict:
    """Posteriors of queries and items, learned from one set of labelled cases.

    Args:
        views: queries and items in each view, unit vectors.
        labels: (N,) of the corpus, -1 if unknown.
        groups: (N,) numbers of the corpus's recordings.
        cases: (L,) positions of the labelled cases in the corpus.
        experts: fitted on the cases; if there are several, their logits are averaged.
        temperature: of the mean of their logits.
        held_out: (L, K) posteriors of the cases by cases of other groups.
        from_elsewhere: (L, K) the same by cases of other assets, if views are pooled; else as `held_out`.
        apart: (L,) block that each case is held out with for it: its asset if views are pooled, else its group.
        alone: the best ridge on each single view, for novelty.
        incidents: nearness of the labelled incidents; None if the ridges alone decide.
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
        """Indices of the views that it uses."""
        return tuple(sorted({view for expert in self.experts for view in expert.views}))

    @property
    def pooled(self) -> bool:
        """Whether ridges are averaged, because the cases are of several assets."""
        return len(self.experts) > 1

    @property
    def penalty(self) -> float:
        """Penalty of its ridges; of several the geometric mean."""
        if len(self.experts) == 1:
            return self.experts[0].ridge.penalty
        return float(np.exp(np.mean([np.log(expert.ridge.penalty) for expert in self.experts])))

    @property
    def unseen_share(self) -> float:
        """Probability that a query is of a type without any case."""
        known = self.cases[self.labels[self.cases] != UNLABELLED]  # a label may have been removed since
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
        """(M, K) logits of queries (M,) by each single-view ridge; (M, views) whether the view is non-zero."""
        asked = self._asked.rows(queries)
        logits = [expert.ridge.logits(asked.mean(expert.views)) for expert in self.alone]
        return logits, np.stack([asked.sees[:, expert.views[0]] for expert in self.alone], axis=1)

    def query_cosines(self, queries: NDArray[np.intp]) -> list[Array]:
        """(M, L) cosines of queries (M,) and the cases in each view with a single-view ridge."""
        asked = self._asked.rows(queries)
        return [asked.mean(expert.views) for expert in self.alone]

    def case_cosines(self, rows: NDArray[np.intp]) -> tuple[list[Array], NDArray[np.bool_]]:
        """(M, M) cosines of some cases in the same views; (M, views) whether the view is non-zero."""
        taught = [self._taught[expert.views[0]][rows].astype(np.float64) for expert in self.alone]
        return [units @ units.T for units in taught], np.stack([units.any(axis=1) for units in taught], axis=1)

    def votes(self, query: int, column: int) -> Array:
        """(L,) contribution of each case to the decision value of one class for a query; mean of several ridges."""
        beside = self._asked.rows(np.array([query]))
        able = [*compress(self.experts, self._able(beside.sees)[0].tolist())]
        likeness = [beside.mean(expert.views)[0] + 1.0 for expert in able]
        votes = [near * expert.ridge.dual[:, column] for near, expert in zip(likeness, able, strict=True)]
        mean: Array = np.average(votes, axis=0, weights=[expert.ridge.temperature for expert in able])
        return mean

    @cached_property
    def _asked(self) -> _Cosines:
        """Cosines of queries and cases, computed once."""
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
            near = self.incidents.nearness(beside.mean(self._every_view))
            logits = self.incidents.exponent * (self.incidents.ridge_weight * log_probability(softmax(logits)) + near)
        return softmax(logits)

    @property
    def _every_view(self) -> tuple[int, ...]:
        return tuple(expert.views[0] for expert in self.alone)

    def _able(self, sees: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(M, E) experts used for each window: those whose views are all non-zero, else all."""
        able = np.stack([sees[:, expert.views].all(axis=1) for expert in self.experts], axis=1)
        return able | ~able.any(axis=1, keepdims=True)

    def _compare(self, vectors: list[Vectors]) -> _Cosines:
        """Cosines of windows and cases in the used views."""
        cosines = {v: vectors[v] @ taught.T for v, taught in self._taught.items()}
        return _Cosines(cosines, np.stack([rows.any(axis=1) for rows in vectors], axis=1))

    @cached_property
    def _taught(self) -> dict[int, Vectors]:
        """(L, D) cases in the used views."""
        whole = len(self.cases) == len(self.labels)
        used = sorted({*self.chosen, *(view for expert in self.alone for view in expert.views)})
        return {v: self.views[v].items if whole else self.views[v].items[self.cases] for v in used}

    def beside(self, queries: Sequence[Vectors]) -> FittedVerdict:
        """The same judgement with other queries."""
        views = tuple(View(vectors, view.items) for vectors, view in zip(queries, self.views, strict=True))
        return self._alike(replace(self, views=views))

    def on(self, items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64]) -> FittedVerdict:
        """The same judgement on a corpus with more items, or with other labels."""
        views = tuple(View(vectors[:0], vectors) for vectors in items)
        return self._alike(replace(self, views=views, labels=labels, groups=groups))

    def with_incidents(self) -> FittedVerdict:
        """The same, with the nearness of its incidents in all posteriors."""
        taught = [self._taught[view].astype(np.float64) for view in self._every_view]
        kernel = np.mean([vectors @ vectors.T for vectors in taught], axis=0)
        groups = self.groups[self.cases]
        incidents = Incidents.of(kernel, self.labels[self.cases], groups)

        def combine(posterior: Array, blocks: NDArray[np.integer]) -> Array:
            return incidents.ridge_weight * log_probability(posterior) + incidents.held_out(kernel, blocks)

        logits = combine(self.held_out, groups)
        incidents = replace(incidents, exponent=incidents.calibrate(logits))
        held_out = softmax(incidents.exponent * logits)
        elsewhere = softmax(incidents.exponent * combine(self.from_elsewhere, self.apart))
        return self._alike(replace(self, incidents=incidents, held_out=held_out, from_elsewhere=elsewhere))

    @property
    def incidents_per_class(self) -> float:
        """Labelled incidents (a class in a recording) per class."""
        return count_incidents(self.labels[self.cases], self.groups[self.cases]) / len(self.classes)

    def _alike(self, other: FittedVerdict) -> FittedVerdict:
        other.__dict__["_taught"] = self._taught  # the cases it was learned from do not change
        return other

    def shared(self, queries: NDArray[np.intp], items: NDArray[np.int64]) -> Array:
        """(M, K) probability that each item shares the fault type of its query.

        Args:
            queries: (M,) indices of queries.
            items: (M, K) positions in the corpus, one row per query.
        """
        used, places = np.unique(items, return_inverse=True)
        alike = self.query_posterior(queries) @ self.opinion(used).T
        return np.take_along_axis(alike, places.reshape(items.shape), axis=1)

    def opinion(self, items: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of items: their label, else the posterior.

        A label that is no class, as of a known normal that was not learned from, gives a row of zeros.
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
    """Learn from labelled cases, on the views that explain held-out groups best or pooled over views.

    Args:
        views: queries and items, unit vectors, zero if a view has nothing of a window.
        cases: positions of the cases in the corpus, at least one.
        labels: (N,) of the corpus, -1 if unknown.
        groups: (N,) of the corpus.
        assets: (N,) of the corpus, to pool views if there are several; None chooses views.
        nearest: also use the nearness of the labelled incidents.
    """
    fitted = _fit_ridges(views, cases, labels, groups, assets)
    return fitted.with_incidents() if nearest and len(fitted.classes) > 1 else fitted


def _fit_ridges(
    views: tuple[View, ...],
    cases: NDArray[np.intp],
    labels: NDArray[np.int32],
    groups: NDArray[np.int64],
    assets: NDArray[np.int64] | None,
) -> FittedVerdict:
    pooling = assets is not None and len(np.unique(assets[cases])) > 1 and len(np.unique(labels[cases])) > 1
    cases = subsample_cases(cases, labels, MAX_POOLED_CASES if pooling else MAX_CASES)
    seeing = [v for v, view in enumerate(views) if 2 * view.items[cases].any(axis=1).sum() >= len(cases)]
    numbers = seeing or [*range(len(views))]
    taught = {v: views[v].items[cases].astype(np.float64) for v in numbers}
    kernels = {v: rows @ rows.T for v, rows in taught.items()}
    choices = [chosen for size in range(len(numbers)) for chosen in combinations(numbers, size + 1)]
    joined = ((chosen, np.mean([kernels[v] for v in chosen], axis=0)) for chosen in choices)
    known_labels = labels[cases]
    if assets is None or not pooling:
        fits = [Expert(chosen, fit_ridge(kernel, known_labels, groups[cases])) for chosen, kernel in joined]
        best = min(fits, key=lambda expert: expert.ridge.loss)
        known = best.ridge.held_out
        alone = _choose_alone(fits)
        return FittedVerdict(views, labels, groups, cases, (best,), 1.0, known, known, groups[cases], alone)
    experts = _fit_pool(joined, known_labels, groups[cases], assets[cases])
    codes = np.unique(known_labels, return_inverse=True)[1]
    mean = _mean_logs([expert.ridge.held_out for expert in experts])
    temperature, _ = _calibrated(mean, codes, case_weights(codes))
    elsewhere = softmax(temperature * _mean_logs([expert.ridge.from_elsewhere for expert in experts]))
    known, alone = softmax(temperature * mean), _choose_alone(experts)
    apart = held_out_assets(codes, groups[cases], assets[cases])
    return FittedVerdict(views, labels, groups, cases, experts, temperature, known, elsewhere, apart, alone)


def _mean_logs(posteriors: list[Array]) -> Array:
    mean: Array = np.mean([log_probability(posterior) for posterior in posteriors], axis=0)
    return mean


def _choose_alone(experts: Iterable[Expert]) -> tuple[Expert, ...]:
    """The single-view ridge of each view that explains held-out cases best."""
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
    """Ridges of all combinations of views and pooled penalties, each calibrated on held-out assets."""
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
    """Probability that the next recording has a type without any label, from the types seen in one recording only.

    One is added to both counts: two recordings of one type do not prove that there is no other. The estimate is at most
    G / (G + 1) for G recordings, even if each has another type.

    >>> estimate_unseen_share(np.array([1, 1, 1, 2], np.int32), np.array([0, 0, 1, 2]))
    0.5
    """
    # Good (1953): the probability of a new type is the share of types seen once; recordings count, not windows.
    types, _ = np.unique(np.stack([labels, groups]), axis=1)
    _, recordings = np.unique(types, return_counts=True)
    count = len(np.unique(groups))
    return float(min((recordings == 1).sum() + 1, count) / (count + 1))


def subsample_cases(cases: NDArray[np.intp], labels: NDArray[np.int32], most: int = MAX_CASES) -> NDArray[np.intp]:
    """All cases, or about `most` of them: each class keeps its share, at least one case, evenly spread."""
    if len(cases) <= most:
        return cases
    kept = []
    for label in np.unique(labels[cases]):
        members = cases[labels[cases] == label]
        count = max(1, len(members) * most // len(cases))
        kept.append(members[np.linspace(0, len(members) - 1, count).astype(np.intp)])
    return np.sort(np.concatenate(kept))
