"""Tables of the studies of unseen assets and of compound faults.

Methods on known and on unseen assets: mean over queries and over fault types, and paired intervals.
The interval is that of the difference to the first method, paired over the queries of all seeds, whole recordings being
drawn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from readbench.benchmark.metrics import paired_bootstrap
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.studies import AssetResult, CompoundResult
from readbench.errors import UsageError

COLUMNS = ("NDCG@10", "macro", "HR@10", "own asset", "difference", "95 % interval")


def asset_table(measured: Sequence[AssetResult]) -> ReportTable:
    """One row a dataset, split, level and method; in each block the others are compared with the first."""
    rows: list[list[str]] = []
    rules = []
    for (dataset, split_by, rho), block in groupby(sorted(measured, key=_place), key=_place):
        by_method: dict[str, list[AssetResult]] = {}
        for one in block:
            by_method.setdefault(one.cell.method, []).append(one)
        rules.append(len(rows))
        first = next(iter(by_method.values()))
        for method, own in by_method.items():
            rows.append([dataset, split_by, str(rho), method, *_figures(own), *_difference(own, first)])
    seeds = len({one.cell.seed for one in measured})
    caption = (
        f"Held out by recording and by asset, mean over {seeds} split seed{'s' if seeds > 1 else ''}. macro: NDCG@10,"
        " mean over fault types. own asset: share of the hits that come from the query's own asset. difference: in"
        " NDCG@10, to the first method of the block"
    )
    header = ["Dataset", "Held out", "ρ", "Method", *COLUMNS]
    return ReportTable("assets", caption, header, rows, labels=4, rules=tuple(rules[1:]))


def fault_table(measured: Sequence[AssetResult]) -> ReportTable:
    """NDCG@10 of each fault type over the queries of all seeds; how many, with a time before, from how many assets."""
    methods = list(dict.fromkeys(one.cell.method for one in measured))
    rows = []
    for (dataset, split_by, rho), block in groupby(sorted(measured, key=_place), key=_place):
        results = list(block)
        for fault in dict.fromkeys(name for one in results for name in one.faults.tolist()):
            own = [one for one in results if one.cell.method == methods[0]]
            assets = {asset for one in own for asset in one.assets[one.faults == fault].tolist()}
            count = sum(int((one.faults == fault).sum()) for one in own)
            before = sum(int(one.has_before[one.faults == fault].sum()) for one in own)
            values = [_mean([one for one in results if one.cell.method == method], fault) for method in methods]
            rows.append([dataset, split_by, str(rho), fault, str(count), str(before), str(len(assets)), *values])
    header = ["Dataset", "Held out", "ρ", "Fault", "Queries", "With before", "Assets", *methods]
    return ReportTable("faults", "NDCG@10 by fault type, over the queries of all seeds", header, rows, labels=4)


def compound_table(measured: Sequence[CompoundResult]) -> ReportTable:
    """One row a source and method: what ten hits show of the causes of a query that has several."""
    rows = [
        [one.cell.dataset, one.cell.method, *(f"{value:.3f}" for value in (one.precision, one.shown, one.whole))]
        for one in measured
    ]
    queries = ", ".join(f"{n} of {name}" for name, n in {one.cell.dataset: one.queries for one in measured}.items())
    caption = (
        f"Faults of several causes among cases of single ones, first ten hits; queries: {queries}. of a cause: share of"
        " the hits that have one of the causes. causes shown: share of a query's causes among them. all shown: share of"
        " the queries all of whose causes are"
    )
    header = ["Dataset", "Method", "of a cause", "causes shown", "all shown"]
    return ReportTable("compound", caption, header, rows)


def _place(one: AssetResult) -> tuple[str, str, int]:
    return one.cell.dataset, one.cell.split_by, one.cell.rho


def _figures(results: Sequence[AssetResult]) -> list[str]:
    hits, own = (sum(int(getattr(one, name).sum()) for one in results) for name in ("hits", "own"))
    values = (
        np.mean([one.ndcg.mean() for one in results]),
        np.mean([one.macro for one in results]),
        np.mean([one.hit.mean() for one in results]),
        own / hits if hits else float("nan"),
    )
    return [f"{value:.3f}" for value in values]


def _difference(results: Sequence[AssetResult], first: Sequence[AssetResult]) -> list[str]:
    """The mean difference to the first method and its interval; empty for that method, or where seeds are missing."""
    theirs = {one.cell.seed: one for one in first}
    pairs = [(one, theirs[one.cell.seed]) for one in results if one.cell.seed in theirs]
    if results is first or len(pairs) < len(results):
        return ["", ""]
    own, other = (np.concatenate([pair[side].ndcg for pair in pairs]) for side in (0, 1))
    try:
        interval = paired_bootstrap(own, other, seed=0, clusters=np.concatenate([one.groups for one, _ in pairs]))
    except UsageError:  # all queries are of one recording
        return [f"{(own - other).mean():+.3f}", ""]
    return [f"{interval.mean:+.3f}", f"{interval.low:+.3f} to {interval.high:+.3f}"]


def _mean(results: Sequence[AssetResult], fault: str) -> str:
    values = np.concatenate([one.ndcg[one.faults == fault] for one in results]) if results else np.empty(0)
    return f"{values.mean():.3f}" if len(values) else ""
