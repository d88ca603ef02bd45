"""Ready-made tasks: which windows are corpus, queries and normals is given, not drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.compose import Composition, Draw, Selection, pollute
from readbench.errors import DataError


@dataclass(frozen=True, eq=False)
class Parts:
    """Which windows of a set are what; indices of windows.

    Args:
        corpus: items of the corpus at its highest level, in order.
        queries: queries.
        normals: normals outside the corpus.
        lowest: (corpus,) the lowest pollution level that an item belongs to; None where the corpus holds faults only,
            and normals are drawn for each level.
        levels: the levels that were composed; empty where they are drawn.
        origin: dataset and seed that the task was exported from.
    """

    corpus: NDArray[np.intp]
    queries: NDArray[np.intp]
    normals: NDArray[np.intp]
    lowest: NDArray[np.int32] | None = None
    levels: tuple[int, ...] = ()
    origin: tuple[str, int] | None = None


def select_ready(parts: Parts, settings: Composition, seed: int) -> Selection:
    """The windows of a task that is divided already: all of them, whatever the caps.

    Without levels of its own, the corpus is polluted as usual with the normals that are there.
    """
    if settings.split_by == "asset":
        raise DataError("A ready-made task is split already: leave out --split-by asset.")
    if parts.lowest is None:
        rng = np.random.default_rng([seed, 0xC0])
        return pollute(Draw(parts.corpus, parts.queries, rng.permutation(parts.normals)), settings, rng)
    if missing := sorted(set(settings.rho) - set(parts.levels)):
        raise DataError(
            f"This ready-made task has no corpus with a pollution of {missing[0]} %. "
            f"Ask for its own levels: --rho {','.join(map(str, parts.levels))}."
        )
    kept = parts.lowest <= max(settings.rho)
    levels = {rho: np.flatnonzero(parts.lowest[kept] <= rho) for rho in settings.rho}
    notes = ("a ready-made task: the same at every split seed",)
    return Selection(parts.queries, parts.corpus[kept], levels, parts.normals, notes)
