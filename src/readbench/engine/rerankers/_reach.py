"""How far cases reach in one view: what they leave unexplained of a window, all of them and those of each fault type.

The cases of a view with likenesses K (cosines) are a Gaussian process; what a window with likenesses k is left with is

    v(q) = 1 - k A k^T,     A = (K + `PENALTY`)^-1

and without the cases g, as if they had never been seen, with o the others,

    v_-g(q) = 1 - k_o (A_oo - A_og (A_gg)^-1 A_go) k_o^T

so that a case can be held out with its recording, and forgotten with its whole fault type, without fitting again. That
is how a library learns what a new fault looks like: each type that it knows was new once.

A type is wide or narrow. By the cases of one type alone, v is measured in standard deviations of what that type's own
cases are left with, each held out with its group; a type of few groups is taken to be like the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
PENALTY = 0.1
LEAST = 1e-4
"""Least variance that counts: copies of a case are not more familiar than near copies."""
OTHERS_COUNT = 1.0
"""Groups that what is usual among all types counts for, beside those of a type."""
LEAST_OF_COMMON = 0.1
"""Share of the mean variance within types that is added to that of each."""
LEAST_SPREAD = 1e-3


def measure_unexplained(inverse: Array, near: Array, gone: Mask) -> Array:
    """(M,) logarithms of v without some of the cases.

    Args:
        inverse: (L, L) A.
        near: (M, L) likenesses of windows and cases.
        gone: (L,) the cases that are left out.
    """
    near = np.where(gone, 0.0, near)
    known = near @ inverse
    explained: Array = np.einsum("ml,ml->m", known, near)
    if gone.any():
        own = known[:, gone]
        explained -= np.einsum("mg,gm->m", own, np.linalg.solve(inverse[np.ix_(gone, gone)], own.T))
    logs: Array = np.log(np.maximum(1.0 - explained, LEAST))
    return logs


def invert(kernel: Array) -> Array:
    """(L, L) A of likenesses K."""
    return np.asarray(np.linalg.inv(kernel + PENALTY * np.eye(len(kernel))), np.float64)


@dataclass(frozen=True, eq=False)
class TypeReach:
    """What the cases of one fault type leave unexplained, in standard deviations of what is usual for the type.

    Args:
        rows: (n,) the cases of the type.
        inverse: (n, n) their A.
        usual: mean of what its own cases are left with.
        spread: standard deviation.
    """

    rows: NDArray[np.intp]
    inverse: Array
    usual: float = 0.0
    spread: float = 1.0

    def measure(self, near: Array) -> Array:
        """(M,) of windows with likenesses (M, L) to all cases."""
        own = measure_unexplained(self.inverse, near[:, self.rows], np.zeros(len(self.rows), bool))
        standard: Array = (own - self.usual) / self.spread
        return standard

    def measure_held_out(self, kernel: Array, apart: NDArray[np.integer]) -> Array:
        """(L,) of all cases, logarithms: each by the cases of the type that are held out with something else.

        Where all cases of the type are held out together, its own are held out one by one.
        """
        near, own = kernel[:, self.rows], apart[self.rows]
        found = np.empty(len(apart))
        elsewhere = ~np.isin(apart, own)
        found[elsewhere] = measure_unexplained(self.inverse, near[elsewhere], np.zeros(len(own), bool))
        for block in np.unique(own):
            rows = apart == block
            found[rows] = measure_unexplained(self.inverse, near[rows], own == block)
        if len(np.unique(own)) == 1:
            found[self.rows] = np.log(np.maximum(1.0 / np.diag(self.inverse) - PENALTY, LEAST))
        return found


@dataclass(frozen=True, eq=False)
class Reach:
    """How far the cases of a view reach.

    Args:
        inverse: (L, L) A of all cases.
        types: of each fault type alone.
        held_out: (L,) what all cases of other groups leave unexplained of each case.
        forgotten: (L,) the same if its fault type had never been seen.
        by_type: (L, K) what those of each type leave unexplained, in standard deviations.
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
        """Of cases with likenesses (L, L), types (L,), groups (L,), and what they are held out with (L,)."""
        inverse = invert(kernel)
        held_out, forgotten = np.empty(len(codes)), np.empty(len(codes))
        for block in np.unique(apart):
            own = apart == block
            held_out[own] = measure_unexplained(inverse, kernel[own], own)
            for code in np.unique(codes[own]) if len(np.unique(codes[own])) > 1 else ():
                rows = own & (codes == code)
                forgotten[rows] = measure_unexplained(inverse, kernel[rows], own | (codes == code))
        for code in np.unique(codes):
            mixed = np.unique(apart[codes != code])
            rows = (codes == code) & ~np.isin(apart, mixed)
            if rows.any():
                forgotten[rows] = measure_unexplained(inverse, kernel[rows], codes == code)
        places = [np.flatnonzero(codes == code) for code in np.unique(codes)]
        types = [TypeReach(rows, invert(kernel[np.ix_(rows, rows)])) for rows in places]
        by_type = np.stack([own.measure_held_out(kernel, apart) for own in types], axis=1)
        usual, spread = _describe_types(by_type[np.arange(len(codes)), codes], codes, groups)
        known = tuple(
            TypeReach(own.rows, own.inverse, *scale)
            for own, *scale in zip(types, usual.tolist(), spread.tolist(), strict=True)
        )
        return cls(inverse, known, held_out, forgotten, (by_type - usual) / spread)

    def measure(self, near: Array) -> tuple[Array, Array]:
        """What all cases leave unexplained of windows with likenesses (M, L), (M,), and those of each type, (M, K)."""
        whole = measure_unexplained(self.inverse, near, np.zeros(len(self.inverse), bool))
        return whole, np.stack([own.measure(near) for own in self.types], axis=1)


def _describe_types(own: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> tuple[Array, Array]:
    """(K,) means and standard deviations of what cases (L,) are left with by their own type; groups have one vote."""
    pairs, members, sizes = np.unique(np.stack([codes, groups]), axis=1, return_inverse=True, return_counts=True)
    votes, counts = (1.0 / sizes)[members.ravel()], np.bincount(pairs[0])
    means = np.bincount(codes, votes * own) / counts
    variances = np.bincount(codes, votes * (own - means[codes]) ** 2) / counts
    share = counts / counts.sum()
    mean, within = float(share @ means), float(share @ variances)
    trust = counts / (counts + OTHERS_COUNT)
    common = within + float(share @ (means - mean) ** 2)
    spread = np.sqrt(trust * variances + (1.0 - trust) * common + LEAST_OF_COMMON * within + LEAST_SPREAD**2)
    return trust * means + (1.0 - trust) * mean, spread
