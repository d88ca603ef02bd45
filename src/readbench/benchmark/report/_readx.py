"""READ-X as tables and as a picture: the same faults, found on the same asset and on others.

```
readx.csv            every dataset, level and method; each fault type counts the same, and in it each asset
readx-queries.csv    the same, each query counting the same
readx-ranking.csv    methods by what they find on other assets, with the tests over datasets, a file a level
readx.md             all of them, and what the tests allow to be said
readx.svg, readx.png same asset against other assets, a panel a method and a point a dataset
```

The *corrected score* of a pool is the share of what is beyond chance that a method finds, 0 for random lists and 1 for
perfect ones: sum w (NDCG - chance) / sum w (1 - chance) over queries with weights w. The *retained share* is the
corrected score among other assets over that among other groups of the same asset, on the same queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    MIN_DATASETS,
    ConfidenceInterval,
    nemenyi,
    paired_bootstrap,
    sums_interval,
    wilcoxon_holm,
)
from readbench.benchmark.protocol import POOLS, PoolName
from readbench.benchmark.report._significance import ALPHA
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.studies import READX_METRICS, ReadxResult
from readbench.common.files import write_text
from readbench.common.plots import GRID_GREY, METHOD_COLOURS, REFERENCE_GREY, entitle, save, sheet, with_style
from readbench.engine.spec import parse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
FEWEST_BEYOND_CHANCE = 0.1
"""Corrected score on the same asset below which there is nothing to retain, and no share is given."""
AWAY: tuple[PoolName, ...] = ("other", "matched")
"""Pools without the query's own asset."""
SIMULATED_MARK = "†"
BRIEF = ("Queries", "corrected same", "corrected other", "retained", "over assets", "retained matched")
"""Columns that have room on a terminal."""
SHOWN = (-0.25, 1.05)
"""Corrected scores that the picture shows; a lower one stands at the edge."""
MARKERS = "osD^vP*Xhp<>d"


@dataclass(frozen=True, eq=False)
class ReadxBlock:
    """What a method found on one dataset at one level: the queries of all its assets, and how much each counts.

    Args:
        results: one an asset and seed.
        by_query: each query counts the same; else each fault type, and in it each asset.
    """

    results: tuple[ReadxResult, ...]
    by_query: bool = False

    @cached_property
    def scores(self) -> Floats:
        """(2, 4, Q) metrics in pools."""
        return np.concatenate([one.scores for one in self.results], axis=2)

    @cached_property
    def chance(self) -> Floats:
        """(2, 4, Q) of random lists."""
        return np.concatenate([one.chance for one in self.results], axis=2)

    @cached_property
    def faults(self) -> NDArray[np.str_]:
        """(Q,) fault types."""
        return np.concatenate([one.faults for one in self.results])

    @cached_property
    def assets(self) -> NDArray[np.str_]:
        """(Q,) names of assets."""
        return np.repeat([one.cell.asset for one in self.results], [len(one.faults) for one in self.results])

    @cached_property
    def groups(self) -> NDArray[np.str_]:
        """(Q,) recordings."""
        return np.concatenate([one.groups for one in self.results])

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
        return sums_interval(weighted, _share, clusters=clusters[own], seed=0)

    def _beyond(self, pool: PoolName) -> tuple[Floats, Floats]:
        """(Q,) each: NDCG less chance, and the most that this can be."""
        at = POOLS.index(pool)
        return self.scores[0, at] - self.chance[0, at], 1 - self.chance[0, at]


def _share(sums: Floats) -> Floats:
    """Retained shares from sums (4, R): gain and room of other assets, gain and room of the same."""
    other, same = sums[0] / sums[1], sums[2] / sums[3]
    return np.divide(other, same, out=np.full_like(other, np.inf), where=same > 0)


Blocks = dict[tuple[str, int, str], ReadxBlock]


def readx_blocks(measured: Sequence[ReadxResult], *, by_query: bool = False) -> Blocks:
    """By dataset, level and method, in the order of the study."""
    found: dict[tuple[str, int, str], list[ReadxResult]] = {}
    for one in measured:
        found.setdefault((one.cell.dataset, one.rho, one.cell.method), []).append(one)
    datasets, methods = (_once(getattr(one.cell, name) for one in measured) for name in ("dataset", "method"))
    place = {name: number for number, name in enumerate([*datasets, *methods])}
    order = sorted(found, key=lambda key: (place[key[0]], key[1], place[key[2]]))
    return {key: ReadxBlock(tuple(found[key]), by_query) for key in order}


def readx_table(measured: Sequence[ReadxResult], *, by_query: bool = False, brief: bool = False) -> ReportTable:
    """One row a dataset, level and method.

    Args:
        measured: of all datasets.
        by_query: each query counts the same; else each fault type, and in it each asset.
        brief: leave out hit rates, chance and all cases, for a terminal.
    """
    rows: list[list[str]] = []
    rules, last = [], ("", -1)
    for (dataset, rho, method), block in readx_blocks(measured, by_query=by_query).items():
        if (dataset, rho) != last:
            rules.append(len(rows))
            last = (dataset, rho)
        mark = SIMULATED_MARK if block.results[0].simulated else ""
        figures = _figures(block)
        chosen = BRIEF if brief else figures
        rows.append([f"{dataset}{mark}", str(rho), method_title(method), *(figures[name] for name in chosen)])
    counted = "each query counts the same" if by_query else "each fault type counts the same, and in it each asset"
    caption = (
        "READ-X: the same faults searched among all cases, among other groups of the same asset, and among other"
        f" assets only; {counted}. Corrected: the share of what is beyond chance that is found; retained: other assets"
        " over the same one, with 95 % intervals over assets and over groups; matched: among as many cases of other"
        " assets as the same one has. Figures are over queries that can find something in both;"
        f" {SIMULATED_MARK} simulated"
    )
    header = ["Dataset", "ρ", "Method", *(BRIEF if brief else _figures(block))]
    name = "readx-queries" if by_query else "readx"
    return ReportTable(name, caption, header, rows, labels=3, rules=tuple(rules[1:]))


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
    counts = {"Assets": str(len(np.unique(block.assets[asked]))), "Queries": str(int(asked.sum()))}
    clusters = {"over assets": block.assets, "over groups": block.groups}
    intervals = {title: _bracket(block.retained_interval(names)) for title, names in clusters.items()}
    matched = {
        "corrected matched": _number(block.corrected("matched", block.can_find("same", "matched"))),
        "retained matched": _number(block.retained("matched")),
        "matched, over assets": _bracket(block.retained_interval(block.assets, "matched")),
        "matched, over groups": _bracket(block.retained_interval(block.groups, "matched")),
    }
    return counts | {title: _number(value) for title, value in values.items()} | intervals | matched


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
        means = [_number(float(part[:, m].mean())) for part in (board.other, board.same["other"])]
        shares = [_with_interval(board.retained(m, pool)) for pool in AWAY]
        rows.append([method_title(board.methods[m]), *means, *shares, f"{board.ranks[m]:.2f}", board.letters[m], gap])
    kind = "real datasets" if real else "datasets"
    caption = (
        f"READ-X at ρ={board.rho}%, {len(board.datasets)} {kind}: mean corrected score among other assets, and among"
        f" the same asset ({len(board.paired)} of them); the retained share of the latter, among all and among as many"
        " cases, with its interval over datasets; mean rank on other assets; methods that share a letter are not shown"
        " to differ (Wilcoxon and Holm); how far the first is ahead, with its interval over datasets"
    )
    header = ["Method", "Other assets", "Same asset", "Retained", "Matched", "Rank", "Tied", "First is ahead by"]
    name = "-".join(["readx-ranking", *([f"rho{board.rho}"] if board.rho else []), *(["real"] if real else [])])
    return ReportTable(name, caption, header, rows, labels=1)


@dataclass(frozen=True, eq=False)
class ReadxStandings:
    """Methods over datasets at one level.

    Args:
        rho: the level.
        datasets: D names.
        methods: M texts, those that are measured on all.
        other: (D, M) corrected scores among other assets, over all queries.
        paired: of the datasets, those whose assets have a history of their own.
        same: by what it is compared with, (paired, M) corrected scores on the same asset.
        kept: of that pool, (paired, M) those on the same queries.
    """

    rho: int
    datasets: list[str]
    methods: list[str]
    other: Floats
    paired: list[str]
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
        texts = ["" for _ in self.methods]
        for letter, group in zip("abcdefghijklmnopqrstuvwxyz", wilcoxon_holm(self.other).cliques, strict=False):
            for m in group:
                texts[m] += letter
        return texts

    @cached_property
    def ahead(self) -> list[ConfidenceInterval]:
        """(M,) the first method less each one."""
        best = self.other[:, self.order[0]]
        return [paired_bootstrap(best, self.other[:, m], seed=0) for m in range(len(self.methods))]

    def retained(self, m: int, pool: PoolName) -> ConfidenceInterval | None:
        """Mean of a method in a pool of other assets over that on the same one, datasets being drawn."""
        kept, same = self.kept[pool][:, m], self.same[pool][:, m]
        there = ~np.isnan(kept + same)
        if there.sum() < 2 or same[there].mean() < FEWEST_BEYOND_CHANCE:
            return None
        columns = np.stack([kept[there], same[there]], axis=1)
        return sums_interval(columns, _plain_share, clusters=np.flatnonzero(there), seed=0)

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
            f"{method_title(self.methods[best])} {lead} {method_title(self.methods[second])}: {_signed(gap)}.",
        ]


def standings(measured: Sequence[ReadxResult], *, rho: int | None = None, real: bool = False) -> ReadxStandings | None:
    """Methods that have every dataset; arguments as of `ranking_table`."""
    rho = min(one.rho for one in measured) if rho is None else rho
    blocks = readx_blocks([one for one in measured if one.rho == rho and not (real and one.simulated)])
    datasets = _once(dataset for dataset, _, _ in blocks)
    methods = [
        method
        for method in _once(method for _, _, method in blocks)
        if all((dataset, rho, method) in blocks for dataset in datasets)
    ]
    if len(datasets) < MIN_DATASETS or len(methods) < 2:
        return None

    def collect(names: list[str], value: Callable[[ReadxBlock], float]) -> Floats:
        return np.array([[value(blocks[name, rho, method]) for method in methods] for name in names])

    paired = [name for name in datasets if blocks[name, rho, methods[0]].paired.any()]
    return ReadxStandings(
        rho,
        datasets,
        methods,
        collect(datasets, lambda block: block.other),
        paired,
        {pool: collect(paired, partial(_at_home, pool=pool)) for pool in AWAY},
        {pool: collect(paired, partial(_away, pool=pool)) for pool in AWAY},
    )


def _at_home(block: ReadxBlock, pool: PoolName) -> float:
    return block.corrected("same", block.can_find("same", pool))


def _away(block: ReadxBlock, pool: PoolName) -> float:
    return block.corrected(pool, block.can_find("same", pool))


def _plain_share(sums: Floats) -> Floats:
    return np.divide(sums[0], sums[1], out=np.full_like(sums[0], np.inf), where=sums[1] > 0)


@with_style
def draw_readx(measured: Sequence[ReadxResult]) -> Figure | None:
    """Corrected scores on the same asset and on others at the lowest level; None where no asset has a history."""
    rho = min(one.rho for one in measured)
    blocks = {
        (dataset, method): block
        for (dataset, level, method), block in readx_blocks(measured).items()
        if level == rho and block.paired.any()
    }
    if not blocks:
        return None
    datasets, methods = (_once(key[at] for key in blocks) for at in (0, 1))
    panels = len(methods) + 1
    columns = min((5, 4, 6), key=lambda count: -panels % count) if panels > 5 else panels  # the fewest empty places
    rows = -(-panels // columns)
    figure = sheet(2.1 * columns + 0.4, 2.2 * rows + 0.6)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for place, (axis, method) in enumerate(zip(axes, methods, strict=False)):
        own = {name: blocks[name, method] for name in datasets if (name, method) in blocks}
        _panel(axis, method_title(method), own, datasets)
        axis.tick_params(labelbottom=place + columns >= len(methods))
    for axis in axes[len(methods) :]:
        axis.set_axis_off()
    _name_datasets(axes[len(methods)], {name: block for (name, _), block in blocks.items()})
    figure.supxlabel("other recordings of the same asset", fontsize=9)
    figure.supylabel("other assets only", fontsize=9)
    entitle(figure, f"Does the fault come back on another machine? Corrected NDCG@10 at ρ={rho}%")
    return figure


def _panel(axis: Axes, title: str, blocks: dict[str, ReadxBlock], datasets: Sequence[str]) -> None:
    axis.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axis.axhline(0, color=GRID_GREY, linewidth=0.8, zorder=0)
    axis.axvline(0, color=GRID_GREY, linewidth=0.8, zorder=0)
    for name, block in blocks.items():
        same, other = (max(SHOWN[0], block.corrected(pool, block.paired)) for pool in ("same", "other"))
        axis.scatter([same], [other], **_mark(datasets.index(name), block))
    axis.set_title(title, fontsize=8)
    axis.set_xlim(*SHOWN)
    axis.set_ylim(*SHOWN)
    axis.set_xticks([0, 0.5, 1])
    axis.set_yticks([0, 0.5, 1])
    axis.set_aspect("equal")
    axis.tick_params(labelsize=7)


def _mark(number: int, block: ReadxBlock) -> dict[str, Any]:
    """How the points of a dataset look: hollow where it is simulated."""
    colour = METHOD_COLOURS[number % len(METHOD_COLOURS)]
    face = "none" if block.results[0].simulated else colour
    return {"s": 26, "marker": MARKERS[number % len(MARKERS)], "facecolors": face, "edgecolors": colour}


def _name_datasets(axis: Axes, blocks: dict[str, ReadxBlock]) -> None:
    """Which mark is which dataset, in a panel of its own."""
    for number, (name, block) in enumerate(blocks.items()):
        axis.scatter([], [], label=name, **_mark(number, block))
    title = "filled: real\nhollow: simulated\ndashed: nothing lost"
    axis.legend(loc="center", frameon=False, fontsize=7, title=title, title_fontsize=7)


def write_readx(measured: Sequence[ReadxResult], folder: Path) -> list[str]:
    """Write tables, the page and the picture; their names."""
    tables = [readx_table(measured), readx_table(measured, by_query=True)]
    asked = [(rho, real) for rho in sorted({one.rho for one in measured}) for real in (False, True)]
    boards = [standings(measured, rho=rho, real=real) for rho, real in asked]
    tables += [table for rho, real in asked if (table := ranking_table(measured, rho=rho, real=real))]
    said = [line for board in boards if board for line in board.sentences()]
    page = "\n".join([*(table.markdown() for table in tables), *said, ""])
    written = ["readx.md"]
    write_text(folder / written[0], page)
    for table in tables:
        written.append(f"{table.name}.csv")
        write_text(folder / written[-1], table.csv())
    if figure := draw_readx(measured):
        for suffix in ("svg", "png"):
            written.append(f"readx.{suffix}")
            save(figure, folder / written[-1])
    return written


def method_title(text: str) -> str:
    """Name of a method in tables."""
    return parse(text).title


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _bracket(interval: ConfidenceInterval | None) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}" if interval else ""


def _with_interval(interval: ConfidenceInterval | None) -> str:
    return f"{interval.mean:.3f} [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""


def _signed(interval: ConfidenceInterval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
