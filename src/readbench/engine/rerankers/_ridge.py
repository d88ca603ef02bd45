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
that explain held-out cases best. `estimate_unseen_share` says how likely the next recording is of a type that no label
names yet: the one estimate of unseen types, for Verdict's order and for a library's "unlike anything here".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from readbench.engine.protocols import Vectors, View
from readbench.engine.windows import UNLABELLED

Array = NDArray[np.float64]
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
TEMPERATURES = tuple(2.0 ** np.arange(-1, 7, 0.5))
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
    """

    classes: NDArray[np.int32]
    dual: Array
    penalty: float
    temperature: float
    loss: float
    held_out: Array

    def posterior(self, kernel: Array) -> Array:
        """(Q, K) probabilities of the classes from likenesses (Q, L) to the cases."""
        return _softmax(self.temperature * ((kernel + 1.0) @ self.dual))


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
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return Ridge(classes, np.zeros((len(labels), 1)), 1.0, 1.0, 0.0, np.ones((len(labels), 1)))
    targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0 / (len(classes) - 1))
    weights = case_weights(codes)
    root = np.sqrt(weights)[:, None]
    # One decomposition of D S D serves all penalties; the constant in S is the level, which is penalised like the rest.
    values, vectors = np.linalg.eigh(root * (kernel + 1.0) * root.T)
    values = np.maximum(values, 0.0)  # a kernel has none below zero; rounding has
    turned = vectors.T @ (root * targets)
    blocks = held_out_blocks(codes, groups)
    trials = []
    for penalty in PENALTIES:
        solution = vectors @ (turned / (values + penalty)[:, None])
        decision = _without_own_block(vectors / np.sqrt(values + penalty), solution, root, targets, blocks)
        temperature, loss = _calibrated(decision, codes, weights)
        trials.append(Ridge(classes, root * solution, penalty, temperature, loss, _softmax(temperature * decision)))
    return min(trials, key=lambda trial: trial.loss)


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


def held_out_blocks(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> list[NDArray[np.intp]]:
    """Which cases are held out together: groups, but single cases of a class that has one group only."""
    lonely = find_single_group_cases(codes, groups)
    singly = [np.array([row]) for row in np.flatnonzero(lonely)]
    together = [np.flatnonzero((groups == group) & ~lonely) for group in np.unique(groups[~lonely])]
    return singly + together


def _without_own_block(
    half: Array, solution: Array, root: Array, targets: Array, blocks: list[NDArray[np.intp]]
) -> Array:
    """(L, K) decision values of each case by the cases outside its block.

    Args:
        half: (L, L) H with A = H H^T, so that a block of A costs no more than its own rows.
        solution: (L, K) A D Y.
        root: (L, 1) square roots of the weights.
        targets: (L, K) Y.
        blocks: cases that are held out together.
    """
    decision = np.empty_like(targets)
    for rows in blocks:
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


@dataclass(frozen=True, eq=False)
class FittedVerdict:
    """What one set of labelled cases teaches: posteriors of queries and of items.

    Args:
        views: queries and items as each view sees them, rows of length one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) numbers of the corpus's recordings.
        cases: (L,) positions in the corpus of the labelled cases.
        chosen: numbers of the views that it was fitted on.
        ridge: fitted on the cases.
    """

    views: tuple[View, ...]
    labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    cases: NDArray[np.intp]
    chosen: tuple[int, ...]
    ridge: Ridge

    @property
    def unseen_share(self) -> float:
        """How likely a query is of a type that no case has."""
        return estimate_unseen_share(self.labels[self.cases], self.groups[self.cases])

    def query_likeness(self, queries: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of queries (M,) and the cases."""
        return self._likeness([view.queries[queries] for view in self.views])

    def item_likeness(self, items: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of corpus items (M,) and the cases."""
        return self._likeness([view.items[items] for view in self.views])

    def _likeness(self, vectors: list[Vectors]) -> Array:
        cosines = [vectors[v] @ self.views[v].items[self.cases].T for v in self.chosen]
        mean: Array = np.mean(cosines, axis=0, dtype=np.float64)
        return mean

    def shared(self, queries: NDArray[np.intp], items: NDArray[np.int64]) -> Array:
        """(M, K) probability that each item shares the fault type of its query.

        Args:
            queries: (M,) their numbers.
            items: (M, K) positions in the corpus, one row a query.
        """
        used, places = np.unique(items, return_inverse=True)
        posterior = self.ridge.posterior(self.query_likeness(queries))
        alike = posterior @ self.opinion(used).T
        return np.take_along_axis(alike, places.reshape(items.shape), axis=1)

    def opinion(self, items: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of items: their label, else the ridge's opinion.

        A label that is no class, as that of a known normal which taught nothing, leaves a row of zeros.
        """
        labels = self.labels[items]
        opinion = (labels[:, None] == self.ridge.classes).astype(np.float64)
        silent = labels == UNLABELLED
        if silent.any():
            opinion[silent] = self.ridge.posterior(self.item_likeness(items[silent]))
        return opinion


def fit_verdict(
    views: tuple[View, ...], cases: NDArray[np.intp], labels: NDArray[np.int32], groups: NDArray[np.int64]
) -> FittedVerdict:
    """Learn from labelled cases on the views, or the combination of them, that explains held-out cases best.

    Args:
        views: queries and items, rows of length one.
        cases: positions in the corpus of those to learn from, at least one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) of the corpus.
    """
    cases = subsample_cases(cases, labels)
    kernels = [view.items[cases].astype(np.float64) @ view.items[cases].T for view in views]
    numbers = range(len(views))
    choices = [chosen for size in numbers for chosen in combinations(numbers, size + 1)]
    ridges = [
        fit_ridge(np.mean([kernels[v] for v in chosen], axis=0), labels[cases], groups[cases]) for chosen in choices
    ]
    best = int(np.argmin([ridge.loss for ridge in ridges]))
    return FittedVerdict(views, labels, groups, cases, choices[best], ridges[best])


def estimate_unseen_share(labels: NDArray[np.int32], groups: NDArray[np.int64]) -> float:
    """How likely the next recording is of a type that no label names yet, from the types met in one recording only.

    One is added to both counts: two recordings of one type are no proof that there is no other.

    >>> estimate_unseen_share(np.array([1, 1, 1, 2], np.int32), np.array([0, 0, 1, 2]))
    0.5
    """
    # Good (1953): the chance of something new is the share of what was met once; recordings count, not windows.
    types, _ = np.unique(np.stack([labels, groups]), axis=1)
    _, recordings = np.unique(types, return_counts=True)
    return min(1.0, float(((recordings == 1).sum() + 1) / (len(np.unique(groups)) + 1)))


def subsample_cases(cases: NDArray[np.intp], labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """All cases, or about `MOST_CASES` of them: every class its share, one at least, evenly spread."""
    if len(cases) <= MOST_CASES:
        return cases
    kept = []
    for label in np.unique(labels[cases]):
        own = cases[labels[cases] == label]
        count = max(1, len(own) * MOST_CASES // len(cases))
        kept.append(own[np.linspace(0, len(own) - 1, count).astype(np.intp)])
    return np.sort(np.concatenate(kept))
