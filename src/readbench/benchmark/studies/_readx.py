"""READ-X: does the fault come back on another machine?

The faults of each asset are searched three ways, with the same queries: among all cases, among other groups of the same
asset, and among other assets only; there once more among as many cases as the asset itself has
(`readbench.benchmark.protocol.compose_pools`). Pools differ in their share of relevant items, so every score stands
beside what random lists reach in the same pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import count_relevant, evaluate, expect
from readbench.benchmark.protocol import (
    POOLS,
    PoolName,
    PoolTask,
    Task,
    assets_of,
    build,
    compose_pools,
    find_source,
)
from readbench.benchmark.runs import (
    EVERY_LABEL,
    Executor,
    Plan,
    Setting,
    Setup,
    build_first,
    fingerprint_of,
    rank_level,
)
from readbench.benchmark.studies._study import Failure, Rows, SeededCell, Study, measure_results
from readbench.common.progress import SILENT, Progress, within
from readbench.common.provenance import Root
from readbench.engine.method import Method
from readbench.engine.registry import METRICS
from readbench.engine.spec import parse
from readbench.errors import DataError, UsageError

READX_METRICS = ("NDCG@10", "HR@10")
MOST_ASSETS = 24
"""Assets of a source that are asked about: all where there are no more, else so many by lot."""
NEEDED_FACTS = {"orders": "speed"}
"""Parts of methods that see nothing in windows without a fact: they are not measured on sources that have none."""
NORMALS = 150
"""Most normals of a pool. Encoders that measure by them encode every pool anew, so pools are small (`--cap` too)."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReadxCell(SeededCell):
    """A method on the faults of one asset."""

    asset: str

    @property
    def place(self) -> str:
        """Dataset, seed and asset."""
        return f"{super().place} {self.asset}"


@dataclass(frozen=True, eq=False)
class ReadxResult:
    """What a method found for the Q queries of an asset, in each pool.

    Args:
        cell: where.
        rho: pollution level in percent.
        simulated: whether the source is.
        queries: (Q,) ids.
        faults: (Q,) fault types.
        groups: (Q,) recordings.
        scores: (2, 4, Q) `READX_METRICS` in `POOLS`; NaN where the pool has no case of the fault type.
        chance: (2, 4, Q) what random lists reach there.
    """

    cell: ReadxCell
    rho: int
    simulated: bool
    queries: NDArray[np.str_]
    faults: NDArray[np.str_]
    groups: NDArray[np.str_]
    scores: Floats
    chance: Floats

    @classmethod
    def of(cls, cell: ReadxCell, row: dict[str, Any]) -> Self:
        """From a row that `measure_readx` keeps."""
        queries, faults, groups = (np.array(row[name]) for name in ("queries", "faults", "groups"))
        scores, chance = (np.array(row[name], np.float64) for name in ("scores", "chance"))
        simulated = find_source(cell.dataset).info.simulated
        return cls(cell, row["rho"], simulated, queries, faults, groups, scores, chance)


def measure_readx(
    plan: Plan,
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[ReadxResult], Sequence[Failure]]:
    """Search the faults of all assets three ways; finished cells in the folder are kept.

    Methods are measured one after the other, each on all datasets: an interrupted study has the first ones whole.

    Args:
        plan: datasets, seeds of the folds, levels and methods, all labels.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    if plan.split_by != "group" or plan.labels != EVERY_LABEL:
        raise UsageError("READ-X holds out assets itself, and knows all labels: leave out --split-by, budgets.")
    composition = replace(plan.composition, normals_cap=NORMALS)
    setting = replace(Setting.of(plan, out, root, cache), composition=composition)
    build_first(plan.datasets, setting, progress)
    cells, failures = [], []
    for method in plan.methods:
        for dataset in plan.datasets:
            try:
                cells += list(_cells_of(dataset, method, plan.seeds, setting))
            except (DataError, OSError) as error:
                failures.append(Failure(f"{dataset} {method}", str(error)))
    levels = tuple(plan.levels)
    identify = partial(identify_cell, setting=setting, levels=levels)
    measure = partial(measure_cell, setting=setting, levels=levels)
    results, failed = measure_results(Study(cells, identify, measure), ReadxResult.of, out, executor, progress)
    return results, (*failures, *failed)


def _cells_of(dataset: str, method: str, seeds: Iterable[int], setting: Setting) -> Iterable[ReadxCell]:
    """Those of a method on a source; none where it needs facts that the source does not have."""
    _, assets, facts = _survey(dataset, setting)
    needed = {NEEDED_FACTS[leg.stage.name] for leg in parse(method).legs if leg.stage.name in NEEDED_FACTS}
    if not needed <= set(facts):
        return
    for seed in seeds:
        chosen = np.random.default_rng([seed, 0xA5]).permutation(len(assets))[:MOST_ASSETS]
        yield from (ReadxCell(dataset, method, seed, assets[number]) for number in sorted(chosen))


@lru_cache(maxsize=64)
def _survey(dataset: str, setting: Setting) -> tuple[str, list[str], tuple[str, ...]]:
    """Of a source: the fingerprint of its windows, its assets with faults, and the names of known facts."""
    built = build(dataset, setting.root, setting.cache)
    context = built.windows.context
    return built.windows.fingerprint(), assets_of(built), context.fact_names if context else ()


def identify_cell(cell: ReadxCell, setting: Setting, levels: tuple[int, ...]) -> str:
    """Fingerprint of the windows of a source, of how they are drawn, and of a method on them."""
    method = Method(cell.method)
    metrics = [METRICS.get(name) for name in READX_METRICS]
    windows, _, _ = _survey(cell.dataset, setting)
    also = (windows, cell.asset, cell.seed, setting.composition, levels, *method.content_keys)
    judges: list[Root] = [part for metric in metrics for part in (metric.factory, metric.chance) if part]
    roots: list[Root] = [compose_pools, rank_level, judge_pool, join_pools, *judges]
    return fingerprint_of(*roots, spec=method.spec, also=also)


def measure_cell(cell: ReadxCell, progress: Progress, setting: Setting, levels: tuple[int, ...]) -> Rows:
    """In a worker: one row a level."""
    found: dict[int, list[tuple[PoolName, Task, Floats]]] = {rho: [] for rho in levels}
    for pool, setup in _load_pools(cell.dataset, cell.asset, cell.seed, setting):
        method = setup.method(parse(cell.method), within(progress, "encoding"))
        for rho in levels:
            order = rank_level(setup, method, rho).order
            found[rho].append((pool, setup.task, judge_pool(setup.task, rho, order)))
    return [{"rho": rho} | join_pools(judged) for rho, judged in found.items()]


@lru_cache(maxsize=256)
def _load_pools(dataset: str, asset: str, seed: int, setting: Setting) -> list[tuple[PoolName, Setup]]:
    """The tasks of an asset; they hold no values, so that many can stay in memory."""
    built = build(dataset, setting.root, setting.cache)
    pools: list[PoolTask] = compose_pools(built, asset, seed=seed, settings=setting.composition)
    return [(own.pool, Setup.of(own.task, setting.cache)) for own in pools]


def judge_pool(task: Task, rho: int, order: NDArray[np.int64]) -> Floats:
    """(2, 2, Q) scores and chance of `READX_METRICS`; NaN for queries whose fault type the corpus lacks."""
    asked, corpus = task.queries.labels, task.corpus_at(rho).labels
    values = evaluate(order, asked, corpus, READX_METRICS).values
    scores = np.stack([values[metric] for metric in READX_METRICS])
    chance = np.stack([expect(asked, corpus, metric) for metric in READX_METRICS])
    return np.where(count_relevant(asked, corpus) > 0, np.stack([scores, chance]), np.nan)


def join_pools(judged: Sequence[tuple[PoolName, Task, Floats]]) -> dict[str, Any]:
    """The row of one level: all queries of an asset, with their scores and chance in each pool.

    A query whose asset has no other group finds among all cases what it finds among other assets.
    """
    queries = next(task.queries for pool, task, _ in judged if pool == "other")
    place = {name: number for number, name in enumerate(queries.ids.tolist())}
    values = np.full((2, len(READX_METRICS), len(POOLS), len(queries)), np.nan)
    asked = np.zeros((len(POOLS), len(queries)), bool)
    for pool, task, own in judged:
        columns = [place[name] for name in task.queries.ids.tolist()]
        values[:, :, POOLS.index(pool), columns] = own
        asked[POOLS.index(pool), columns] = True
    everything, other = POOLS.index("all"), POOLS.index("other")
    alone = ~asked[everything]
    values[:, :, everything, alone] = values[:, :, other, alone]
    kept = values.astype(object)
    kept[np.isnan(values)] = None  # JSON has no NaN
    scores, chance = kept.tolist()
    return {
        "queries": queries.ids.tolist(),
        "faults": [queries.classes[label] for label in queries.labels],
        "groups": queries.groups.tolist(),
        "scores": scores,
        "chance": chance,
    }
