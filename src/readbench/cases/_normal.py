"""Whether a window shows normal operation: learned from a library's normals and from cases labelled normal.

A ridge (`readbench.engine.rerankers`) tells normal windows from faults by one of two views, or by both, whichever
explains held-out recordings best: the levels, movement and roughness of the channels in standard deviations of normal
operation; and coarse MiniRocket features, which the first look at a large library uses, too. Penalty and temperature
are those under which held-out recordings are most likely.

Who asks has a reason: a question is normal less often than a window of a library's normals and cases. The odds of
normal operation are multiplied by `LESS_OFTEN`, which was chosen on simulators, with one real source in sight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import Snapshot
from readbench.cases._plausibility import LibraryProfile, describe_windows, mean_and_spread, spread_evenly
from readbench.cases._search import bare, coarse_encoder
from readbench.engine.protocols import Encoder, unit_vectors
from readbench.engine.rerankers import Ridge, fit_ridge
from readbench.engine.windows import NORMAL, WindowSet

Array = NDArray[np.float64]
LEAST_NORMALS = 10
"""Normal windows, of two recordings at least, from which normal operation is an option."""
MOST_LEARNED = 400
"""Faults, and normal windows, that it learns from, evenly spread."""
LESS_OFTEN = 0.7
"""Between 1 and 0.5 of a sweep of 1, 0.5 and 0.25 over simulators and SKAB: at 1, normal operation came first for many
true faults. `research.normal_operation` measures what it gives."""
FARTHEST = 8.0
LEAST_SPREAD = 0.05


@dataclass(frozen=True, eq=False)
class NormalModel:
    """Tells normal operation from faults.

    Args:
        profile: of the library.
        encoder: of the coarse features.
        centre: (F,) mean description of normal windows.
        spread: (F,) its standard deviation.
        views: (L, D) the windows that it learned from, as each of the two views sees them; rows of length one.
        chosen: numbers of the views that it uses.
        ridge: fitted on the mean of their cosines.
    """

    profile: LibraryProfile
    encoder: Encoder
    centre: Array
    spread: Array
    views: tuple[Array, Array]
    chosen: tuple[int, ...]
    ridge: Ridge

    @classmethod
    def of(cls, snapshot: Snapshot, profile: LibraryProfile | None) -> Self | None:
        """Learned from a library; None where it knows too few normal windows, or no fault."""
        alarms, faults = np.flatnonzero(snapshot.labels == NORMAL), np.flatnonzero(snapshot.labels > NORMAL)
        stored = snapshot.normals[spread_evenly(len(snapshot.normals), MOST_LEARNED)]
        count = len(stored) + len(alarms)
        if profile is None or count < LEAST_NORMALS or not len(faults):
            return None
        chosen = np.concatenate([alarms, faults[spread_evenly(len(faults), MOST_LEARNED)]])
        cases = snapshot.windows(chosen)
        windows = WindowSet.of([*cases, *stored])
        normal = np.concatenate([snapshot.labels[chosen] == NORMAL, np.ones(len(stored), bool)])
        groups = np.unique(windows.groups.tolist(), return_inverse=True)[1]
        if len(np.unique(groups[normal])) == 1:
            return None
        described = describe_windows(profile, windows)
        centre, spread = mean_and_spread(described[normal])
        encoder = coarse_encoder(snapshot)
        views = _depart(described, centre, spread), _unit(encoder.encode(bare(windows)))
        labels = np.where(normal, 0, 1).astype(np.int32)
        fits = [(own, fit_ridge(_likeness(views, views, own), labels, groups)) for own in ((0,), (1,), (0, 1))]
        best, ridge = min(fits, key=lambda fit: fit[1].loss)
        return cls(profile, encoder, centre, spread, views, best, ridge)

    def probabilities(self, windows: WindowSet) -> Array:
        """(Q,) how likely windows show normal operation."""
        described = _depart(describe_windows(self.profile, windows), self.centre, self.spread)
        asked = described, _unit(self.encoder.encode(bare(windows)))
        normal, fault = self.ridge.posterior(_likeness(asked, self.views, self.chosen)).T
        probabilities: Array = LESS_OFTEN * normal / (LESS_OFTEN * normal + fault)
        return probabilities


def _depart(described: Array, centre: Array, spread: Array) -> Array:
    """(N, 2 F) departures from normal and their sizes, rows of length one: both ways to leave it are alike."""
    scores = np.nan_to_num((described - centre) / np.maximum(spread, LEAST_SPREAD)).clip(-FARTHEST, FARTHEST)
    return _unit(np.concatenate([scores, np.abs(scores)], axis=1))


def _unit(vectors: NDArray[np.floating]) -> Array:
    return unit_vectors(vectors.astype(np.float32)).astype(np.float64)


def _likeness(left: tuple[Array, Array], right: tuple[Array, Array], chosen: tuple[int, ...]) -> Array:
    mean: Array = np.mean([left[v] @ right[v].T for v in chosen], axis=0)
    return mean
