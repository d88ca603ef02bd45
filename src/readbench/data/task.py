"""`Task`: everything one evaluation needs, for one dataset and one split seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.data.build import Built, Progress, build
from readbench.data.compose import Composition, select
from readbench.data.source import Source, SourceInfo
from readbench.data.split import Split, split_by_group
from readbench.errors import DataError
from readbench.windows import ChannelStats, WindowSet


@dataclass(frozen=True, eq=False)
class Task:
    """Queries, corpora at all pollution levels, and normals.

    Args:
        info: the source.
        seed: seed of split and composition.
        queries: Q labelled anomalies of the test side. Methods never see this set, only `queries.anonymous()`.
        corpus: the corpus at the highest level, normals shuffled among anomalies, so that ties cannot favour either.
            Carries the channel statistics of the clean corpus.
        levels: rho in percent -> ascending positions in `corpus` of the items of that level; nested.
        normals: normals of the train side for scores relative to normal operation.
        notes: what the build wants its reader to know.
    """

    info: SourceInfo
    seed: int
    queries: WindowSet
    corpus: WindowSet
    levels: dict[int, NDArray[np.intp]]
    normals: WindowSet
    notes: tuple[str, ...] = ()

    def corpus_at(self, rho: int) -> WindowSet:
        """The corpus at one pollution level, in the order of the largest."""
        return self.corpus[self.levels[rho]]

    def fingerprint(self) -> str:
        """Hash of every value, label and name in the task."""
        parts = (self.queries.fingerprint(), self.corpus.fingerprint(), self.normals.fingerprint())
        levels = [(rho, positions.tolist()) for rho, positions in sorted(self.levels.items())]
        return hashlib.sha256(repr((self.info.name, self.seed, parts, levels)).encode()).hexdigest()[:16]


def load_task(
    source: Source,
    *,
    seed: int,
    root: Path | None = None,
    cache: Path,
    settings: Composition | None = None,
    progress: Progress | None = None,
) -> Task:
    """Build (or open) the windows of a source and compose one task from them."""
    built = build(source, root, cache, progress)
    return compose_task(built, source.info, seed=seed, settings=settings or Composition())


def compose_task(built: Built, info: SourceInfo, *, seed: int, settings: Composition) -> Task:
    """Split and compose windows that are already built."""
    windows = built.windows
    split = _split(built, info, seed)
    chosen = select(windows.labels, split.test, settings, seed)
    if not len(chosen.queries):
        raise DataError(
            f"{info.name}: split seed {seed} leaves no query with a relevant corpus item. Try another seed."
        )
    clean = windows[chosen.corpus[chosen.levels[min(chosen.levels)]]]
    return Task(
        info=info,
        seed=seed,
        queries=windows[chosen.queries],
        corpus=windows[chosen.corpus].with_stats(ChannelStats.of(clean)),
        levels=chosen.levels,
        normals=windows[chosen.normals],
        notes=(*split.notes, *chosen.notes),
    )


def _split(built: Built, info: SourceInfo, seed: int) -> Split:
    windows = built.windows
    if info.protocol.native_split:
        side = np.vectorize(_side_of(built), otypes=[bool])(windows.groups.tolist())
        return Split(np.asarray(side, bool))
    _, codes = np.unique(windows.groups, return_inverse=True)
    return split_by_group(windows.labels, codes, share=info.protocol.test_share, seed=seed)


def _side_of(built: Built) -> Callable[[str], bool]:
    def is_test(group: str) -> bool:
        if group not in built.sides:
            raise DataError(f"Group {group!r} has no side, but the source declares its own split.")
        return built.sides[group] == "test"

    return is_test
