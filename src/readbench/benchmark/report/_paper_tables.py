"""The tables of a report, with the paper's tables beside them.

`report_tables.csv` lists the tables that cross methods with something; `ROWS` and `COLUMNS` find their rows and columns
among the methods of a run. Tables of another form are `composition_table`, `calibration_table` and those of
`_settings`. `paper_tables` makes all that a run has data for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import cast

import numpy as np

from readbench.benchmark.protocol import PAPER_COMPOSITION, read_shipped_rows
from readbench.benchmark.report._grid import Among, GridColumn, GridRow, TableGrid, TableStudy, grid_tables, value
from readbench.benchmark.report._methods import coverage, describe, mark_dataset, reranker_title, title, under
from readbench.benchmark.report._paper_values import RERANKERS, SPREAD
from readbench.benchmark.report._results import MetricFacts, Results, by_method, read_stated_probabilities
from readbench.benchmark.report._settings import labelling_table, settings_tables
from readbench.benchmark.report._table import ReportTable, tell_values
from readbench.benchmark.runs import StatedProbabilities
from readbench.engine.registry import BUILT_IN

PAPER_SYSTEM = "charm+nr|dtw-i+gpc"
"""The best system of the paper."""
PAPER_METRICS = ("P@1", "P@5", "HR@10", "NDCG@5", "NDCG@10", "NDCG@20", "macro_F1")
"""The metrics of the paper's grid."""
NORMS = ("channel", "normals", "none", "window")
MakeRows = Callable[[TableStudy], Sequence[GridRow]]
MakeColumns = Callable[[TableStudy], Sequence[GridColumn]]
MODES = {"RRF": "|", "WS": "|ws|", "2-step": "|2step|"}


def _method_row(study: TableStudy, text: str, *, reference: bool = False) -> GridRow:
    family = study.methods.family(text)
    return GridRow((study.results.title(text), family), (text,), family, reference=reference)


def best_composed(study: TableStudy) -> str:
    """The composed method with the best headline at the first level; empty without any."""
    column = GridColumn("")
    scored = [(text, value(study, GridRow((), (text,)), column)) for text in study.methods.composed]
    known = [(figure.mean, text) for text, figure in scored if figure]
    return max(known, key=lambda pair: float(study.results.orient(np.array(pair[0]))))[1] if known else ""


def base_rows(study: TableStudy) -> Sequence[GridRow]:
    """Base retrievers by family, the best composed method and the paper's, and the supervised references."""
    families = list(dict.fromkeys(map(study.methods.family, study.methods.bases)))
    bases = sorted(study.methods.bases, key=lambda text: families.index(study.methods.family(text)))
    composed = dict.fromkeys(text for text in (best_composed(study), PAPER_SYSTEM) if text in study.results.methods)
    rows = [_method_row(study, text, reference=study.methods.family(text) == "trivial") for text in bases]
    rows += [replace(_method_row(study, text), block="composed") for text in composed]
    return rows + [_method_row(study, text, reference=True) for text in study.methods.references]


def levels(study: TableStudy, method: str = "{0}", over: str = "") -> list[GridColumn]:
    """One column per pollution level."""
    return [GridColumn(f"ρ={rho}%", method, rho, over=over) for rho in study.results.levels]


def metric_columns(study: TableStudy) -> Sequence[GridColumn]:
    """The paper's metrics, those of plug-ins, and the deviation over datasets."""
    known = study.results.metrics
    paper = [known[name] for name in PAPER_METRICS if name in known]
    added = [metric for metric in known.values() if metric.origin != BUILT_IN]
    return [*map(_metric_column, [*paper, *added]), GridColumn("σ", metric=SPREAD, best="low")]


def _metric_column(metric: MetricFacts) -> GridColumn:
    return GridColumn(metric.title, metric=metric.name, best="high" if metric.larger_is_better else "low")


def nr_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each embedder without and with normal residuals."""
    variants = {"plain": "", "NR": "+nr"}
    return [
        GridRow((title(embedder), name), (embedder + suffix,), embedder)
        for embedder in study.methods.residuals
        for name, suffix in variants.items()
    ]


def nr_columns(study: TableStudy) -> Sequence[GridColumn]:
    """The levels, and what is lost from the first to the last."""
    first, last = study.results.levels[0], study.results.levels[-1]
    drop = GridColumn("Δ", rho=last, minus=GridColumn("", rho=first), best="")
    return [*levels(study), drop] if last != first else levels(study)


def fusion_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each embedder with each leg."""
    return [GridRow((title(first), title(second)), (first, second), first) for first, second in study.methods.fused]


def leg_columns(study: TableStudy) -> Sequence[GridColumn]:
    """Each leg at each level."""
    legs = dict.fromkeys(second for _, second in study.methods.fused)
    return [column for leg in legs for column in levels(study, f"{{0}}|{leg}", f"|{title(leg)}")]


def _rerankers(study: TableStudy) -> dict[str, str]:
    """Title -> text of the rerankers of a run, the paper's first."""
    stages = dict.fromkeys(stage for found in study.methods.reranked.values() for stage in found)
    order = {name: place for place, name in enumerate(RERANKERS)}
    ranked = sorted(stages, key=lambda stage: order.get(str(stage), len(order)))
    return {reranker_title(stage): str(stage) for stage in ranked}


def _stacks(study: TableStudy) -> Iterable[str]:
    """Fused pools that GPC reranks."""
    pools = (f"{first}|{second}" for first, second in study.methods.fused)
    return [pool for pool in pools if f"{pool}+gpc" in study.results.methods]


def _scaled(study: TableStudy) -> Iterable[str]:
    """Retrievers that were run with several scalings."""
    specs = [spec for spec in study.methods.specs.values() if len(spec.legs) == 1 and not spec.rerankers]
    stages = [spec.legs[0].stage for spec in specs]
    return dict.fromkeys(stage.name for stage in stages if "norm" in dict(stage.parameters))


def dataset_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each dataset, and the mean."""
    names = study.results.datasets
    rows = [GridRow((mark_dataset(study.results, name),), (), "datasets", name) for name in names]
    return [*rows, GridRow(("mean",), (), "mean")] if len(names) > 1 else rows


def dataset_level_rows(study: TableStudy, method: str) -> Sequence[GridRow]:
    """One method on each dataset at each level, and below the mean over the datasets."""
    names = study.results.datasets
    places = [(name, mark_dataset(study.results, name)) for name in names] + ([("", "macro")] if len(names) > 1 else [])
    levels = study.results.levels
    return [GridRow((label, f"{rho}%"), (method,), label, name, rho) for name, label in places for rho in levels]


def all_metric_columns(study: TableStudy) -> Sequence[GridColumn]:
    """Every metric of the run."""
    return [_metric_column(metric) for metric in study.results.metrics.values()]


def _changed(first: GridColumn, second: GridColumn) -> list[GridColumn]:
    """Two columns, and the second minus the first."""
    return [first, second, replace(second, title="Δ", minus=first, best="")]


def language_rows(study: TableStudy) -> Sequence[GridRow]:
    """Language models by what they do, each pool that they rerank above them."""
    rows = []
    for pool, methods in study.methods.language.items():
        block = f"reranking {title(pool)}" if pool else "classification, no retrieval"
        base = [GridRow((title(pool), "base"), (pool,), block, reference=True)] if pool else []
        rows += base + [GridRow((study.results.title(text), block), (text,), block) for text in methods]
    return rows


def _one_each(texts: Callable[[TableStudy], Iterable[str]]) -> MakeRows:
    """A row for each retriever or pool among these."""
    return lambda study: [GridRow((title(text),), (text,)) for text in texts(study)]


ROWS: dict[str, MakeRows] = {
    "bases": base_rows,
    "datasets": dataset_rows,
    "embedders": _one_each(lambda study: study.methods.embedders),
    "embedders-and-legs": fusion_rows,
    "fused-embedders": _one_each(lambda study: dict.fromkeys(first for first, _ in study.methods.fused)),
    "language-models": language_rows,
    "on-both-corpora": _one_each(
        lambda study: [text for text in study.results.methods if study.full and text in study.full.methods]
    ),
    "residuals": nr_rows,
    "reranked-pools": _one_each(lambda study: study.methods.reranked),
    "scaled": _one_each(_scaled),
    "stacks": _one_each(_stacks),
}
"""Rows of tables by their names in `report_tables.csv`."""
COLUMNS: dict[str, MakeColumns] = {
    "corpora": lambda _: _changed(GridColumn("Capped"), GridColumn("Full", full=True)),
    "distances": lambda _: _changed(
        GridColumn("Euclid", "{0}(metric=euclidean)"), GridColumn("cosine", "{0}(metric=cosine)")
    ),
    "headline": lambda study: [GridColumn(study.results.headline)],
    "legs": leg_columns,
    "levels": levels,
    "metrics": metric_columns,
    "modes": lambda _: [GridColumn(name, f"{{0}}{mode}{{1}}") for name, mode in MODES.items()],
    "neighbours": lambda study: [GridColumn(f"k={k}", f"{{0}}+nr(k={k})") for k in study.methods.neighbours],
    "norms": lambda _: [GridColumn(norm, f"{{0}}(norm={norm})") for norm in NORMS],
    "reranker-levels": lambda study: [
        column for name, text in _rerankers(study).items() for column in levels(study, f"{{0}}+{text}", name)
    ],
    "rerankers": lambda study: [
        GridColumn("Base"),
        *(GridColumn(name, f"{{0}}+{text}") for name, text in _rerankers(study).items()),
    ],
    "residual-levels": nr_columns,
    "sbd": lambda _: _changed(GridColumn("SBD-I", "sbd-i"), GridColumn("SBD-D", "sbd-d")),
    "stack-levels": lambda study: [
        GridColumn(f"ρ={study.results.levels[0]}%", over="Fusion"),
        *levels(study, "{0}+gpc", "Fusion+GPC"),
    ],
}
"""Columns of tables by their names in `report_tables.csv`."""


def _read_grid(row: dict[str, str]) -> TableGrid:
    fewest_rows, fewest_columns = map(int, row["needs"].split())
    return TableGrid(
        name=row["name"],
        title=row["title"],
        heads=tuple(row["heads"].split(";")),
        rows=ROWS[row["rows"]],
        columns=COLUMNS[row["columns"]],
        filled_by=row["filled_by"],
        beside=row["beside"],
        among=cast("Among", row["among"]),
        needs=(fewest_rows, fewest_columns),
        spread=row["spread"] == "yes",
    )


GRIDS = tuple(map(_read_grid, read_shipped_rows(__name__, "report_tables.csv")))
"""All tables that cross methods with something."""


def full_grid(name: str, title: str, method: str) -> TableGrid:
    """Every metric of one method, on each dataset at each level."""
    rows = partial(dataset_level_rows, method=method)
    heads, caption = ("Dataset", "ρ"), f"Full metric grid of {title}"
    return TableGrid(name, caption, heads, rows, all_metric_columns, among="none")


FIELDS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
HEADER = ("Dataset", "", "C", "T", "Classes", "Corpus", "Queries", "rel/q", "Imbalance")


def composition_table(results: Results) -> ReportTable:
    """Table with two rows per dataset: this run, with ranges where splits differ, and the paper."""
    rows: list[list[str]] = []
    rules = []
    for dataset in results.datasets:
        sizes = list(results.sizes(dataset).values())
        if not sizes:
            continue
        rules.append(len(rows))
        own = "this run, files partial" if results.files(dataset) == "partial" else "this run"
        rows.append([mark_dataset(results, dataset), own, *(_range([s[name] for s in sizes]) for name in FIELDS)])
        if paper := PAPER_COMPOSITION.get(dataset):
            rows.append(["", "paper", *map(tell_values, astuple(paper))])
    caption = (
        "Composition: channels C, steps T, fault types, corpus at each level, queries, relevant items a query and most"
        f" over least frequent fault type in the clean corpus. {coverage(results)}"
    )
    return ReportTable("composition", caption, list(HEADER), rows, rules=tuple(rules[1:]))


def _range(values: Sequence[object]) -> str:
    """The common value of all splits, or the smallest and the largest."""
    if all(value == values[0] for value in values):
        return tell_values(values[0])
    return "–".join(map(tell_values, (min(values), max(values))))  # type: ignore[type-var]


CALIBRATION_HEADER = ("Method", "Dataset", "ρ", "Queries", "Accuracy", "Stated", "p(true)", "ECE", "Floor")


def calibration_table(results: Results) -> ReportTable | None:
    """Table of stated probabilities by method, level and dataset; None if no method states any."""
    stated = read_stated_probabilities(results)
    if not stated:
        return None
    rows: list[list[str]] = []
    rules: list[int] = []
    for method in dict.fromkeys(method for method, _, _ in stated):
        rules.append(len(rows))
        for rho in results.levels:
            own = {dataset: one for (m, level, dataset), one in stated.items() if (m, level) == (method, rho)}
            names = {mark_dataset(results, dataset): one for dataset, one in own.items()}
            if len(own) > 1:
                names["all"] = by_method(stated, rho)[method]
            rows += [[results.title(method), name, f"{rho}%", *_figures(one)] for name, one in names.items()]
    caption = (
        "Opinions on the fault type: share of right ones, mean stated probability of the most likely and of the true"
        " type, expected calibration error, and its floor: what honest probabilities would show with so many queries;"
        f" {describe(results)}, queries of all split seeds together"
    )
    return ReportTable(
        "calibration", caption + under(results), list(CALIBRATION_HEADER), rows, labels=3, rules=tuple(rules[1:])
    )


def _figures(stated: StatedProbabilities) -> list[str]:
    values = (stated.correct.mean(), stated.confidence.mean(), stated.truth.mean(), stated.curve.error, stated.floor)
    return [str(len(stated.correct)), *(f"{value:.3f}" for value in values)]


def paper_tables(study: TableStudy) -> list[ReportTable]:
    """All tables that the run has data for, each followed by the paper's values if any."""
    results = study.results
    tables = [table for grid in GRIDS for table in grid_tables(grid, study)]
    more = (calibration_table(results), composition_table(results), labelling_table(results))
    return [*tables, *(table for table in more if table), *settings_tables(results)]


def absent_tables(tables: Iterable[ReportTable]) -> dict[str, str]:
    """Tables of the catalogue that a run lacks, and what each needs."""
    present = {table.name for table in tables}
    wanted = {grid.name: grid.filled_by for grid in GRIDS} | {"calibration": "`readbench run --suite flagship`"}
    return {name: filled_by for name, filled_by in wanted.items() if name not in present}


def method_tables(study: TableStudy) -> list[ReportTable]:
    """One table per method in plan order: every metric on each dataset at each level."""
    tables = []
    for number, method in enumerate(study.results.methods, start=1):
        name = f"{number:02d}-{re.sub(r'[^a-z0-9.+-]+', '_', method).strip('_')}"
        tables += grid_tables(full_grid(name, study.results.title(method), method), study)
    return tables
