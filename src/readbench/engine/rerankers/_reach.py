"""Reach of cases in one view: the share of a window that they leave unexplained, overall and per fault type.

Cases with cosines K form a Gaussian process. The unexplained variance of a window with cosines k is

    v(q) = 1 - k A k^T,     A = (K + `PENALTY`)^-1

and without the cases g, with o the others,

    v_-g(q) = 1 - k_o (A_oo - A_og (A_gg)^-1 A_go) k_o^T

so that a case can be held out with its recording or its whole fault type without fitting again. Holding out known types
shows what a new fault looks like.

Types differ in width. By the cases of one type alone, v is standardised by its values for held-out cases of that type;
types with few groups borrow from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
PENALTY = 0.1
MIN_VARIANCE = 1e-4
"""Minimum variance: copies of a case are not more familiar than near copies."""
COMMON_WEIGHT = 1.0
"""Weight, in groups, of the statistics of all types against those of one type."""
COMMON_SHARE = 0.1
"""Share of the mean variance within types that is added to each."""
MIN_SPREAD = 1e-3


def measure_unexplained(inverse: Array, near: Array, gone: Mask) -> Array:
    """(M,) log unexplained variance, without some of the cases.

    Args:
        inverse: (L, L) A.
        near: (M, L) cosines of windows and cases.
        gone: (L,) cases that are left out.
    """
    near = np.where(gone, 0.0, near)
    known = near @ inverse
    explained: Array = np.einsum("ml,ml->m", known, near)
    if gone.any():
        removed = known[:, gone]
        explained -= np.einsum("mg,gm->m", removed, np.linalg.solve(inverse[np.ix_(gone, gone)], removed.T))
    logs: Array = np.log(np.maximum(1.0 - explained, MIN_VARIANCE))
    return logs


def invert(kernel: Array) -> Array:
    """(L, L) A for cosines K."""
    return np.asarray(np.linalg.inv(kernel + PENALTY * np.eye(len(kernel))), np.float64)


@dataclass(frozen=True, eq=False)
class TypeReach:
    """Unexplained variance by the cases of one fault type, standardised for the type.

    Args:
        rows: (n,) the cases of the type.
        inverse: (n, n) their A.
        usual: mean for held-out cases of the type.
        spread: standard deviation.
    """

    rows: NDArray[np.intp]
    inverse: Array
    usual: float = 0.0
    spread: float = 1.0

    def measure(self, near: Array) -> Array:
        """(M,) standardised values of windows with cosines (M, L) to all cases."""
        logs = measure_unexplained(self.inverse, near[:, self.rows], np.zeros(len(self.rows), bool))
        standard: Array = (logs - self.usual) / self.spread
        return standard

    def measure_held_out(self, kernel: Array, apart: NDArray[np.integer]) -> Array:
        """(L,) log values of all cases: each without the cases of the type in its block.

        If all cases of the type share a block, they are held out one by one.
        """
        near, blocks = kernel[:, self.rows], apart[self.rows]
        found = np.empty(len(apart))
        elsewhere = ~np.isin(apart, blocks)
        found[elsewhere] = measure_unexplained(self.inverse, near[elsewhere], np.zeros(len(blocks), bool))
        for block in np.unique(blocks):
            rows = apart == block
            found[rows] = measure_unexplained(self.inverse, near[rows], blocks == block)
        if len(np.unique(blocks)) == 1:
            found[self.rows] = np.log(np.maximum(1.0 / np.diag(self.inverse) - PENALTY, MIN_VARIANCE))
        return found


@dataclass(frozen=True, eq=False)
class Reach:
    """Reach of the cases of a view.

    Args:
        inverse: (L, L) A of all cases.
        types: reach of each fault type alone.
        held_out: (L,) log unexplained variance of each case by cases of other groups.
        forgotten: (L,) the same without all cases of its fault type.
        by_type: (L, K) standardised values by each type.
    """

    inverse: Array
    types: tuple[TypeReach, ...]
    held_out: Array
    forgotten: Array
    by_type: Array

    @classmethod
    def of(
        cls, kernel: Array, codes: NDArray[np.intp], groups: NDArray[np.integer], apart: NDArray[np.integer]
    ) -> Self:
        """Fit to cases with cosines (L, L), types (L,), groups (L,) and blocks that are held out together (L,)."""
        inverse = invert(kernel)
        held_out, forgotten = np.empty(len(codes)), np.empty(len(codes))
        for block in np.unique(apart):
            inside = apart == block
            held_out[inside] = measure_unexplained(inverse, kernel[inside], inside)
            for code in np.unique(codes[inside]) if len(np.unique(codes[inside])) > 1 else ():
                rows = inside & (codes == code)
                forgotten[rows] = measure_unexplained(inverse, kernel[rows], inside | (codes == code))
        for code in np.unique(codes):
            mixed = np.unique(apart[codes != code])
            rows = (codes == code) & ~np.isin(apart, mixed)
            if rows.any():
                forgotten[rows] = measure_unexplained(inverse, kernel[rows], codes == code)
        places = [np.flatnonzero(codes == code) for code in np.unique(codes)]
        types = [TypeReach(rows, invert(kernel[np.ix_(rows, rows)])) for rows in places]
        by_type = np.stack([reach.measure_held_out(kernel, apart) for reach in types], axis=1)
        usual, spread = _describe_types(by_type[np.arange(len(codes)), codes], codes, groups)
        known = tuple(
            TypeReach(reach.rows, reach.inverse, *scale)
            for reach, *scale in zip(types, usual.tolist(), spread.tolist(), strict=True)
        )
        return cls(inverse, known, held_out, forgotten, (by_type - usual) / spread)

    def measure(self, near: Array) -> tuple[Array, Array]:
        """(M,) log unexplained variance of windows with cosines (M, L), and (M, K) standardised values by type."""
        whole = measure_unexplained(self.inverse, near, np.zeros(len(self.inverse), bool))
        return whole, np.stack([reach.measure(near) for reach in self.types], axis=1)


def _describe_types(logs: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> tuple[Array, Array]:
    """(K,) means and standard deviations of values (L,) of cases by their type, with one vote per group."""
    pairs, members, sizes = np.unique(np.stack([codes, groups]), axis=1, return_inverse=True, return_counts=True)
    votes, counts = (1.0 / sizes)[members.ravel()], np.bincount(pairs[0])
    means = np.bincount(codes, votes * logs) / counts
    variances = np.bincount(codes, votes * (logs - means[codes]) ** 2) / counts
    share = counts / counts.sum()
    mean, within = float(share @ means), float(share @ variances)
    trust = counts / (counts + COMMON_WEIGHT)
    common = within + float(share @ (means - mean) ** 2)
    spread = np.sqrt(trust * variances + (1.0 - trust) * common + COMMON_SHARE * within + MIN_SPREAD**2)
    return trust * means + (1.0 - trust) * mean, spread
