"""The same queries three ways: among all cases, among other groups of the same asset, among other assets only.

Other assets have more cases than one has. So that this is not mistaken for a likeness of machines, they are searched a
fourth way: with as many cases of each fault type as the asset itself has.

The groups of an asset are dealt into two folds. The faults of one fold are queries, and the other fold is the asset's
own history; then the folds change places, so that every group is asked about once. A pool never holds a window of a
group that its queries come from, whichever asset that window is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._build import Built
from readbench.benchmark.protocol._compose import Composition, Draw, order_stratified, pollute
from readbench.benchmark.protocol._split import split_by_group
from readbench.benchmark.protocol._task import Task, task_of
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError

PoolName = Literal["all", "same", "other", "matched"]
POOLS: tuple[PoolName, ...] = ("all", "same", "other", "matched")
QUERIES_A_TYPE = 10
"""Most queries of one fault type in one fold: windows of one recording resemble each other, more tell little."""
NO_MACHINES = ("simulated", "drawn")
"""Names of assets that stand for what was simulated or drawn beside real recordings: searched, never asked about."""
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PoolTask:
    """One way to search for the faults of an asset.

    Args:
        pool: what is searched.
        task: queries, corpora and normals. Queries whose fault type the corpus lacks are among them.
    """

    pool: PoolName
    task: Task


def assets_of(built: Built) -> list[str]:
    """The machines of a source that have faults; an error where there are fewer than two, and nothing can be asked."""
    windows = built.windows
    named = np.unique(windows.assets[windows.labels > NORMAL]).tolist()
    found = [name for name in named if name not in {"", *NO_MACHINES}]
    if built.parts is not None:
        raise DataError(f"{built.info.name} is a ready-made task: its corpus is fixed, and not searched by asset.")
    if len(found) < 2:
        raise DataError(
            f"{built.info.name} has faults of {len(found)} asset{'' if len(found) == 1 else 's'}: two are needed to ask"
            " whether a fault comes back on another one."
        )
    return found


def compose_pools(built: Built, asset: str, *, seed: int, settings: Composition) -> list[PoolTask]:
    """The tasks of an asset: one among other assets, and for each fold with a history of its own the other pools.

    Where an asset has one group only there is no history: `all` is then what `other` is, and `same` is nothing.

    Args:
        built: all windows of a source.
        asset: whose faults are asked about.
        seed: of folds and draws.
        settings: cap of the corpus (of own and of other cases, each for itself), levels, cap of normals.
    """
    windows = built.windows
    rng = np.random.default_rng([seed, 0xA5, crc32(asset.encode())])
    folds = deal_folds(windows, asset, seed)
    queries = [draw_queries(windows, fold, rng) for fold in folds]
    asked = np.concatenate(queries)
    if not len(asked):
        raise DataError(f"{built.info.name}: {asset} has no fault to ask about.")
    other = draw_pool(windows, windows.assets != asset, np.concatenate(folds), settings, rng)
    if not len(other.corpus):
        raise DataError(f"{built.info.name}: no other asset has a fault outside the groups of {asset}.")
    same = [draw_pool(windows, windows.assets == asset, fold, settings, rng) for fold in folds]
    draws: list[tuple[PoolName, Draw]] = [("other", Draw(other.corpus, asked, other.normals))]
    for own, chosen in zip(same, queries, strict=True):
        if len(own.corpus) and len(chosen):
            corpus = np.concatenate([own.corpus, other.corpus])
            normals = rng.permutation(np.concatenate([own.normals, other.normals]))
            matched = match_pool(windows.labels, other, own, rng)
            draws += [("same", Draw(own.corpus, chosen, own.normals)), ("all", Draw(corpus, chosen, normals))]
            draws += [("matched", Draw(matched.corpus, chosen, matched.normals))] if len(matched.corpus) else []
    return [PoolTask(pool, task_of(built, windows, pollute(draw, settings, rng), seed)) for pool, draw in draws]


def deal_folds(windows: WindowSet, asset: str, seed: int) -> tuple[Indices, Indices]:
    """Windows of an asset in two folds of whole groups; fault types with several groups are in both."""
    own = np.flatnonzero(windows.assets == asset)
    _, codes = np.unique(windows.groups[own], return_inverse=True)
    first = split_by_group(windows.labels[own], codes, share=0.5, seed=seed).test
    return own[first], own[~first]


def draw_queries(windows: WindowSet, fold: Indices, rng: np.random.Generator) -> Indices:
    """Faults of a fold, at most `QUERIES_A_TYPE` of a type."""
    labels = windows.labels[fold]
    kept = [rng.permutation(fold[labels == label])[:QUERIES_A_TYPE] for label in np.unique(labels[labels > NORMAL])]
    return np.concatenate([np.empty(0, np.intp), *kept]).astype(np.intp)


def draw_pool(
    windows: WindowSet, among: NDArray[np.bool_], held_out: Indices, settings: Composition, rng: np.random.Generator
) -> Draw:
    """Faults and normals that may be searched: some windows, without any group of those that are held out."""
    free = among & ~np.isin(windows.groups, np.unique(windows.groups[held_out]))
    faults = np.flatnonzero(free & (windows.labels > NORMAL))
    corpus = order_stratified(faults, windows.labels, settings.corpus_cap, rng)
    normals = rng.permutation(np.flatnonzero(free & (windows.labels == NORMAL)))
    return Draw(corpus, np.empty(0, np.intp), normals)


def match_pool(labels: NDArray[np.int32], pool: Draw, like: Draw, rng: np.random.Generator) -> Draw:
    """As many cases of each fault type, and as many normals, as another pool has; fewer where there are no more."""
    types, counts = np.unique(labels[like.corpus], return_counts=True)
    shuffled = rng.permutation(pool.corpus)
    kept = [shuffled[labels[shuffled] == label][:count] for label, count in zip(types, counts, strict=True)]
    corpus = np.concatenate([np.empty(0, np.intp), *kept]).astype(np.intp)
    return Draw(corpus, pool.queries, pool.normals[: len(like.normals)])
