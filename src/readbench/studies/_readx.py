"""READ-X: does the fault come back on another machine?

The faults of each asset are searched three ways, with the same queries: among all cases, among other groups of the same
asset, and among other assets only; there once more among as many cases as the asset itself has
(`readbench.benchmark.protocol.compose_pools`). Pools differ in their share of relevant items, so every score stands
beside what random lists reach in the same pool.

The *corrected score* of a pool is the share of what is beyond chance that a method finds, 0 for random lists and 1 for
perfect ones: sum w (NDCG - chance) / sum w (1 - chance) over queries with weights w. The *retained share* is the
corrected score among other assets over that among other groups of the same asset, on the same queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    MIN_DATASETS,
    ConfidenceInterval,
    count_relevant,
    evaluate,
    expect,
    nemenyi,
    paired_bootstrap,
    sums_interval,
    wilcoxon_holm,
)
from readbench.benchmark.protocol import (
    POOLS,
    PoolName,
    PoolTask,
    Task,
    assets_of,
    build,
    compose_pools,
)
from readbench.benchmark.report import ALPHA, ReportTable
from readbench.benchmark.runs import Setting, Setup, rank_level
from readbench.common.plots import GRID_GREY, METHOD_COLOURS, REFERENCE_GREY
from readbench.common.progress import Progress, within
from readbench.engine.parameters import Parameter, ParameterRange
from readbench.engine.registry import SOURCES
from readbench.engine.spec import parse
from readbench.studies._study import (
    SIMULATED_MARK,
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    draw_panels,
    find_blocks,
    once,
    tell,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
READX_METRICS = ("NDCG@10", "HR@10")
WITH_ASSETS = ("itu_5gc", "lbnl_ahu", "phmap23", "petrobras_3w", "nppad", "mit_bih", "bearings")
"""Sources with faults of several assets; the one with the longest windows comes last."""
METHODS = (
    *("channel-presence", "departure", "euclidean", "sonde", "orders", "rocket", "sbd-d", "dtw-i", "ours"),
    *("ours-before", "flagship-window", "flagship", "flagship-pool", "sonde+nr|dtw-i+gpc"),
    *("mr-hydra(form=joint)", "ts2vec", "rdst"),
)
"""Shortcuts, methods without labels, with context and with labels; those that learn from each pool anew come last."""
MOST_ASSETS = 24
"""Assets of a source that are asked about: all where there are no more, else so many by lot."""
NEEDED_FACTS = {"orders": "speed"}
"""Parts of methods that see nothing in windows without a fact: they are not measured on sources that have none."""
NORMALS = 150
"""Most normals of a pool. Encoders that measure by them encode every pool anew, so pools are small (`cap` too)."""
FEWEST_BEYOND_CHANCE = 0.1
"""Corrected score on the same asset below which there is nothing to retain, and no share is given."""
AWAY: tuple[PoolName, ...] = ("other", "matched")
"""Pools without the query's own asset."""
BRIEF = ("Queries", "corrected same", "corrected other", "retained", "over assets", "retained matched")
"""Columns that have room on a terminal."""
SHOWN = (-0.25, 1.05)
"""Corrected scores that the picture shows; a lower one stands at the edge."""
MARKERS = "osD^vP*Xhp<>d"


@dataclass(frozen=True, eq=False)
class ReadxResult(Measured):
    """What a method found for the Q queries of an asset, the part of its cell, in each pool.

    Args:
        queries: (Q,) ids.
        faults: (Q,) fault types.
        groups: (Q,) recordings.
        scores: (2, 4, Q) `READX_METRICS` in `POOLS`; NaN where the pool has no case of the fault type.
        chance: (2, 4, Q) what random lists reach there.
    """

    queries: NDArray[np.str_]
    faults: NDArray[np.str_]
    groups: NDArray[np.str_]
    scores: Floats
    chance: Floats


def sources_with_assets(root: Path | None) -> list[str]:
    """Sources of `WITH_ASSETS` that have a folder under the root, and the generated ones."""
    generated = [own.name for own in SOURCES if own.origin != "imported" and own.build().info.generated]
    *first, last = WITH_ASSETS
    return [name for name in (*first, *generated, last) if name in generated or (root and (root / name).is_dir())]


def compose_tasks(grid: Grid) -> Grid:
    """The grid with small pools."""
    return grid.composed(normals_cap=NORMALS, corpus_cap=grid["cap"])


def cells_of_assets(dataset: str, method: str, grid: Grid) -> Iterable[StudyCell]:
    """Those of a method on a source; none where it needs facts that the source does not have."""
    _, assets, facts = _survey(dataset, grid.setting())
    needed = {NEEDED_FACTS[leg.stage.name] for leg in parse(method).legs if leg.stage.name in NEEDED_FACTS}
    if needed <= set(facts):
        for seed in grid.seeds:
            chosen = np.random.default_rng([seed, 0xA5]).permutation(len(assets))[:MOST_ASSETS]
            for number, rho in product(sorted(chosen), grid.levels):
                yield StudyCell(dataset, method, seed, rho, assets[number])


@lru_cache(maxsize=64)
def _survey(dataset: str, setting: Setting) -> tuple[str, list[str], tuple[str, ...]]:
    """Of a source: the fingerprint of its windows, its assets with faults, and the names of known facts."""
    built = build(dataset, setting.root, setting.cache)
    context = built.windows.context
    return built.windows.fingerprint(), assets_of(built), context.fact_names if context else ()


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The windows of the source, and how they are drawn."""
    setting = grid.setting()
    return _survey(cell.dataset, setting)[0], setting.composition


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row."""
    judged = []
    for pool, setup in _load_pools(cell.dataset, cell.part, cell.seed, grid.setting()):
        order = rank_level(setup, setup.method(parse(cell.method), within(progress, "encoding")), cell.rho).order
        judged.append((pool, setup.task, judge_pool(setup.task, cell.rho, order)))
    return [join_pools(judged)]


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
    """The row of a cell: all queries of an asset, with their scores and chance in each pool.

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


@dataclass(frozen=True, eq=False)
class ReadxBlock:
    """What a method found on one dataset at one level: the queries of all its assets, and how much each counts.

    Args:
        scores: (2, 4, Q) metrics in pools.
        chance: (2, 4, Q) of random lists.
        faults: (Q,) fault types.
        assets: (Q,) names of assets.
        groups: (Q,) recordings.
        by_query: each query counts the same; else each fault type, and in it each asset.
    """

    scores: Floats
    chance: Floats
    faults: NDArray[np.str_]
    assets: NDArray[np.str_]
    groups: NDArray[np.str_]
    by_query: bool = False

    @classmethod
    def of(cls, results: Sequence[ReadxResult], *, by_query: bool = False) -> ReadxBlock:
        """From the results of all assets and seeds."""
        scores, chance = (
            np.concatenate([getattr(one, name) for one in results], axis=2) for name in ("scores", "chance")
        )
        faults, groups = (np.concatenate([getattr(one, name) for one in results]) for name in ("faults", "groups"))
        assets = np.repeat([one.cell.part for one in results], [len(one.faults) for one in results])
        return cls(scores, chance, faults, assets, groups, by_query)

    def can_find(self, *pools: PoolName) -> NDArray[np.bool_]:
        """(Q,) queries with something to find in all of these pools: cases of their type, and cases that are not."""
        chance = self.chance[0][[POOLS.index(pool) for pool in pools]]
        return np.asarray((chance < 1).all(axis=0))  # NaN, where the type is lacking, is not less

    @cached_property
    def paired(self) -> NDArray[np.bool_]:
        """(Q,) queries that count where the same asset is compared with others."""
        return self.can_find("same", "other")

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """(Q,) what figures of all pools are over: the paired ones, or where there are none, all of `other`."""
        return self.paired if self.paired.any() else self.can_find("other")

    def weigh(self, chosen: NDArray[np.bool_]) -> Floats:
        """(Q,) how much each chosen query counts; they add up to 1."""
        weights = chosen.astype(np.float64)
        if not self.by_query:
            pairs = np.stack([self.faults[chosen], self.assets[chosen]])
            kinds, of_query, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
            _, fault, assets = np.unique(kinds[0], return_inverse=True, return_counts=True)
            weights[chosen] = (1 / (counts * assets[fault]))[of_query]
        return weights / max(weights.sum(), 1e-12)

    def mean(self, values: Floats, chosen: NDArray[np.bool_]) -> float:
        """Mean over chosen queries; NaN where there are none, or where one has no value."""
        weights = self.weigh(chosen)[chosen]
        return float(weights @ values[chosen]) if chosen.any() else float("nan")

    def corrected(self, pool: PoolName, chosen: NDArray[np.bool_]) -> float:
        """The share of what is beyond chance that is found in a pool."""
        gain, room = (self.mean(part, chosen) for part in self._beyond(pool))
        return gain / room if room > 0 else float("nan")

    @property
    def other(self) -> float:
        """The corrected score among other assets, over all queries that can find something there."""
        return self.corrected("other", self.can_find("other"))

    def retained(self, pool: PoolName = "other") -> float:
        """Corrected score of other assets over that of the same one; NaN where that is hardly beyond chance."""
        own = self.can_find("same", pool)
        same, other = (self.corrected(searched, own) for searched in ("same", pool))
        return other / same if same >= FEWEST_BEYOND_CHANCE else float("nan")

    def retained_interval(self, clusters: NDArray[np.str_], pool: PoolName = "other") -> ConfidenceInterval | None:
        """Of the retained share, whole clusters being drawn; None where there is no share, or one cluster."""
        own = self.can_find("same", pool)
        if np.isnan(self.retained(pool)) or len(np.unique(clusters[own])) < 2:
            return None
        columns = [part for searched in (pool, "same") for part in self._beyond(searched)]
        weighted = (np.stack(columns) * self.weigh(own))[:, own].T
        return sums_interval(weighted, _share_of, clusters=clusters[own], seed=0)

    def _beyond(self, pool: PoolName) -> tuple[Floats, Floats]:
        """(Q,) each: NDCG less chance, and the most that this can be."""
        at = POOLS.index(pool)
        return self.scores[0, at] - self.chance[0, at], 1 - self.chance[0, at]


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full_like(above, np.inf), where=below > 0)


def _share_of(sums: Floats) -> Floats:
    """Retained shares from sums (4, R): gain and room of other assets, gain and room of the same."""
    return _ratio(sums[0] / sums[1], sums[2] / sums[3])


def readx_table(measured: Sequence[ReadxResult], *, by_query: bool = False, brief: bool = False) -> ReportTable:
    """One row a dataset, level and method.

    Args:
        measured: of all datasets.
        by_query: each query counts the same; else each fault type, and in it each asset.
        brief: leave out hit rates, chance and all cases, for a terminal.
    """
    rows = []
    for (_, rho, method), results in find_blocks(measured).items():
        figures = _figures(ReadxBlock.of(results, by_query=by_query))
        titles = BRIEF if brief else tuple(figures)
        rows.append([results[0].marked, str(rho), parse(method).title, *(figures[name] for name in titles)])
    counted = "each query counts the same" if by_query else "each fault type counts the same, and in it each asset"
    caption = (
        "READ-X: the same faults searched among all cases, among other groups of the same asset, and among other"
        f" assets only; {counted}. Corrected: the share of what is beyond chance that is found; retained: other assets"
        " over the same one, with 95 % intervals over assets and over groups; matched: among as many cases of other"
        " assets as the same one has. Figures are over queries that can find something in both;"
        f" {SIMULATED_MARK} simulated"
    )
    name = "readx-queries" if by_query else "readx"
    return ReportTable(name, caption, ["Dataset", "ρ", "Method", *titles], rows, labels=3)


def _figures(block: ReadxBlock) -> dict[str, str]:
    """The figures of a row by the titles of their columns."""
    asked, paired = block.asked, block.paired
    values = {
        f"{said}{name} {pool}": block.mean(part[metric, at], asked)
        for said, part in (("", block.scores), ("chance ", block.chance))
        for metric, name in enumerate(READX_METRICS)
        for at, pool in enumerate(POOLS)
    }
    values |= {f"corrected {pool}": block.corrected(pool, paired) for pool in ("same", "other")}
    values |= {"other, all queries": block.other, "retained": block.retained()}
    matched = {
        "corrected matched": block.corrected("matched", block.can_find("same", "matched")),
        "retained matched": block.retained("matched"),
    }
    counts = {"Assets": str(len(np.unique(block.assets[asked]))), "Queries": str(int(asked.sum()))}
    numbers, others = (dict(zip(part, tell(part.values()), strict=True)) for part in (values, matched))
    return counts | numbers | _intervals(block, "other") | others | _intervals(block, "matched")


def _intervals(block: ReadxBlock, pool: PoolName) -> dict[str, str]:
    """Of the retained share, by the titles of their columns."""
    found = {name: block.retained_interval(getattr(block, name), pool) for name in ("assets", "groups")}
    start = "" if pool == "other" else f"{pool}, "
    return {f"{start}over {name}": f"{i.low:.2f} to {i.high:.2f}" if i else "" for name, i in found.items()}


def ranking_table(measured: Sequence[ReadxResult], *, rho: int | None = None, real: bool = False) -> ReportTable | None:
    """Methods by what they find on other assets, with tests over datasets.

    None where there are fewer than three datasets, or two methods that are measured on all of them.

    Args:
        measured: of all datasets.
        rho: the level, the lowest by default.
        real: leave out simulated ones.
    """
    board = standings(measured, rho=rho, real=real)
    if board is None:
        return None
    rows = []
    for m in board.order:
        gap = "" if m == board.order[0] else _signed(board.ahead[m])
        means = tell(part[:, m].mean() for part in (board.other, board.same["other"]))
        shares = [
            f"{i.mean:.3f} [{i.low:.2f}, {i.high:.2f}]" if i else "" for i in (board.retained(m, pool) for pool in AWAY)
        ]
        rows.append([board.titles[m], *means, *shares, f"{board.ranks[m]:.2f}", board.letters[m], gap])
    kind = "real datasets" if real else "datasets"
    caption = (
        f"READ-X at ρ={board.rho}%, {len(board.other)} {kind}: mean corrected score among other assets, and among"
        f" the same asset ({len(board.same['other'])} of them); the retained share of the latter, among all and among"
        " as many cases, with its interval over datasets; mean rank on other assets; methods that share a letter are"
        " not shown to differ (Wilcoxon and Holm); how far the first is ahead, with its interval over datasets"
    )
    header = ["Method", "Other assets", "Same asset", "Retained", "Matched", "Rank", "Tied", "First is ahead by"]
    name = "-".join(["readx-ranking", *([f"rho{board.rho}"] if board.rho else []), *(["real"] if real else [])])
    return ReportTable(name, caption, header, rows, labels=1)


@dataclass(frozen=True, eq=False)
class ReadxStandings:
    """Methods over datasets at one level.

    Args:
        rho: the level.
        titles: of the M methods that are measured on all datasets.
        other: (D, M) corrected scores among other assets, over all queries.
        same: by what it is compared with, (P, M) corrected scores on the same asset, of datasets whose assets have a
            history.
        kept: of that pool, (P, M) those on the same queries.
    """

    rho: int
    titles: list[str]
    other: Floats
    same: dict[PoolName, Floats]
    kept: dict[PoolName, Floats]

    @cached_property
    def ranks(self) -> Floats:
        """(M,) mean rank on other assets."""
        return nemenyi(self.other).mean_ranks

    @cached_property
    def order(self) -> list[int]:
        """Methods from best to worst, by their mean on other assets."""
        return np.argsort(-self.other.mean(axis=0), kind="stable").tolist()

    @cached_property
    def letters(self) -> list[str]:
        """(M,) methods that share a letter are not shown to differ."""
        texts = ["" for _ in self.titles]
        for letter, group in zip("abcdefghijklmnopqrstuvwxyz", wilcoxon_holm(self.other).cliques, strict=False):
            for m in group:
                texts[m] += letter
        return texts

    @cached_property
    def ahead(self) -> list[ConfidenceInterval]:
        """(M,) the first method less each one."""
        best = self.other[:, self.order[0]]
        return [paired_bootstrap(best, self.other[:, m], seed=0) for m in range(len(self.titles))]

    def retained(self, m: int, pool: PoolName) -> ConfidenceInterval | None:
        """Mean of a method in a pool of other assets over that on the same one, datasets being drawn."""
        kept, same = self.kept[pool][:, m], self.same[pool][:, m]
        there = ~np.isnan(kept + same)
        if there.sum() < 2 or same[there].mean() < FEWEST_BEYOND_CHANCE:
            return None
        columns = np.stack([kept[there], same[there]], axis=1)
        return sums_interval(columns, lambda sums: _ratio(*sums), clusters=np.flatnonzero(there), seed=0)

    def sentences(self) -> list[str]:
        """What the tests allow to be said."""
        test = nemenyi(self.other).friedman
        differ = "some methods differ" if test.p_value <= ALPHA else "no difference shown"
        over = f"{test.datasets} datasets and {test.methods} methods"
        best, second = self.order[:2]
        gap = self.ahead[second]
        lead = "is ahead of" if gap.low > 0 else "is not shown to be ahead of"
        return [
            f"ρ={self.rho}%: Friedman over {over}: p = {test.p_value:.2g}, {differ}.",
            f"{self.titles[best]} {lead} {self.titles[second]}: {_signed(gap)}.",
        ]


def standings(measured: Sequence[ReadxResult], *, rho: int | None = None, real: bool = False) -> ReadxStandings | None:
    """Methods that have every dataset; arguments as of `ranking_table`."""
    level = min(one.cell.rho for one in measured) if rho is None else rho
    blocks = _at_level([one for one in measured if not (real and one.simulated)], level)
    datasets = once(dataset for dataset, _ in blocks)
    methods = [m for m in once(method for _, method in blocks) if all((dataset, m) in blocks for dataset in datasets)]
    if len(datasets) < MIN_DATASETS or len(methods) < 2:
        return None
    table = [[blocks[dataset, method] for method in methods] for dataset in datasets]
    paired = [row for row in table if row[0].paired.any()]
    same: dict[PoolName, Floats] = {}
    kept: dict[PoolName, Floats] = {}
    for pool in AWAY:
        scores = [
            [[b.corrected(own, b.can_find("same", pool)) for b in row] for row in paired] for own in ("same", pool)
        ]
        same[pool], kept[pool] = np.array(scores)
    other = np.array([[block.other for block in row] for row in table])
    return ReadxStandings(level, [parse(method).title for method in methods], other, same, kept)


def _at_level(measured: Sequence[ReadxResult], rho: int) -> dict[tuple[str, str], ReadxBlock]:
    """By dataset and method."""
    blocks = find_blocks([one for one in measured if one.cell.rho == rho])
    return {(dataset, method): ReadxBlock.of(results) for (dataset, _, method), results in blocks.items()}


def draw_readx(measured: Sequence[ReadxResult]) -> Figure | None:
    """Corrected scores on the same asset and on others at the lowest level; None where no asset has a history."""
    rho = min(one.cell.rho for one in measured)
    blocks = {key: block for key, block in _at_level(measured, rho).items() if block.paired.any()}
    if not blocks:
        return None
    hollow = {one.cell.dataset: one.simulated for one in measured}
    marks = {name: _mark(number, hollow[name]) for number, name in enumerate(once(name for name, _ in blocks))}
    panels: dict[str, dict[str, ReadxBlock]] = {}
    for (name, method), block in blocks.items():
        panels.setdefault(method, {})[name] = block
    title = f"Does the fault come back on another machine? Corrected NDCG@10 at ρ={rho}%"
    labels = "other recordings of the same asset", "other assets only"
    return draw_panels(panels | {"": {}}, partial(_draw_panel, marks=marks), (2.1, 2.2), title, labels)


def _draw_panel(axis: Axes, method: str, blocks: dict[str, ReadxBlock], marks: dict[str, dict[str, Any]]) -> None:
    """The datasets of a method; without any, the last panel, which says whose mark is which."""
    if not blocks:
        axis.set_axis_off()
        for name, mark in marks.items():
            axis.scatter([], [], label=name, **mark)
        title = "filled: real\nhollow: simulated\ndashed: nothing lost"
        axis.legend(loc="center", frameon=False, fontsize=7, title=title, title_fontsize=7)
        return
    axis.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axis.axhline(0, color=GRID_GREY, linewidth=0.8, zorder=0)
    axis.axvline(0, color=GRID_GREY, linewidth=0.8, zorder=0)
    for name, block in blocks.items():
        same, other = (max(SHOWN[0], block.corrected(pool, block.paired)) for pool in ("same", "other"))
        axis.scatter([same], [other], **marks[name])
    axis.set_title(parse(method).title, fontsize=8)
    axis.set(xlim=SHOWN, ylim=SHOWN, xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
    axis.tick_params(labelsize=7)


def _mark(number: int, hollow: bool) -> dict[str, Any]:  # noqa: FBT001 - of a dataset
    """How the points of a dataset look: hollow where it is simulated."""
    colour = METHOD_COLOURS[number % len(METHOD_COLOURS)]
    face = "none" if hollow else colour
    return {"s": 26, "marker": MARKERS[number % len(MARKERS)], "facecolors": face, "edgecolors": colour}


def ranking_tables(measured: Sequence[ReadxResult]) -> list[ReportTable]:
    """The ranking at each level, of all datasets and of real ones."""
    return [table for asked in _rankings(measured) if (table := ranking_table(measured, **asked))]


def say(measured: Sequence[ReadxResult]) -> list[str]:
    """What the tests of each ranking allow to be said."""
    boards = [standings(measured, **asked) for asked in _rankings(measured)]
    return [line for board in boards if board for line in board.sentences()]


def _rankings(measured: Sequence[ReadxResult]) -> list[dict[str, Any]]:
    return [{"rho": rho, "real": real} for rho in sorted({one.cell.rho for one in measured}) for real in (False, True)]


def _signed(interval: ConfidenceInterval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


STUDIES.register(
    Study(
        name="readx",
        summary="The same faults searched on the same asset and on others: what a method retains on another machine.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_of_assets,
        complete=compose_tasks,
        result=ReadxResult,
        tables=(readx_table, partial(readx_table, by_query=True), ranking_tables),
        figures={"readx": draw_readx},
        shown=(partial(readx_table, brief=True), ranking_table),
        notes=say,
        datasets=sources_with_assets,
        methods=METHODS,
        seeds=(0,),
        levels=(0, 20),
        settings=(Parameter("cap", int, 300, interval=ParameterRange(1), optional=True),),
        metrics=READX_METRICS,
    )
)
