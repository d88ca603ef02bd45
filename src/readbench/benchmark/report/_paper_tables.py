"""The tables of a report: which rows and columns each has, and which table of the paper it stands beside.

Rows and columns of the tables that cross methods with something are found among the methods of a run; `GRIDS` is the
list of these tables. Some are of another form: what the datasets of a run are made of, beside the paper's composition
table (`composition_table`), whether stated certainty holds, method by method (`calibration_table`), and what is in
`_settings`. `paper_tables` makes all that a run has methods for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from functools import partial

import numpy as np

from readbench.benchmark.protocol import PAPER_COMPOSITION
from readbench.benchmark.report._grid import GridColumn, GridRow, TableGrid, TableStudy, grid_tables, value
from readbench.benchmark.report._methods import coverage, describe, mark_dataset, reranker_title, title, under
from readbench.benchmark.report._paper_values import RERANKERS, SPREAD
from readbench.benchmark.report._results import (
    MetricFacts,
    Results,
    by_method,
    read_stated_probabilities,
)
from readbench.benchmark.report._settings import labelling_table, settings_tables
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import StatedProbabilities
from readbench.engine.registry import BUILT_IN

PAPER_SYSTEM = "charm+nr|dtw-i+gpc"
"""The best system of the paper."""
PAPER_METRICS = ("P@1", "P@5", "HR@10", "NDCG@5", "NDCG@10", "NDCG@20", "macro_F1")
"""The metrics of the paper's grid."""
NORMS = ("channel", "normals", "none", "window")
MODES = {"RRF": "|", "WS": "|ws|", "2-step": "|2step|"}


def _method_row(study: TableStudy, text: str, *, reference: bool = False) -> GridRow:
    family = study.methods.family(text)
    return GridRow((study.results.title(text), family), (text,), family, reference=reference)


def mode_columns(_: TableStudy) -> Sequence[GridColumn]:
    """Each fusion mode."""
    return [GridColumn(name, f"{{0}}{mode}{{1}}") for name, mode in MODES.items()]


def headline_column(study: TableStudy) -> Sequence[GridColumn]:
    """The headline at the first level."""
    return [GridColumn(study.results.headline)]


def best_composed(study: TableStudy) -> str:
    """The composed method with the highest headline at the first level; empty where there is none."""
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
    """One column a pollution level."""
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


def fused_pool_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each embedder that is fused with something."""
    return [GridRow((title(first),), (first,)) for first in dict.fromkeys(first for first, _ in study.methods.fused)]


def leg_columns(study: TableStudy) -> Sequence[GridColumn]:
    """Each leg at each level."""
    legs = dict.fromkeys(second for _, second in study.methods.fused)
    return [column for leg in legs for column in levels(study, f"{{0}}|{leg}", f"|{title(leg)}")]


def pool_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each pool that is reranked."""
    return [GridRow((title(pool),), (pool,)) for pool in study.methods.reranked]


def _rerankers(study: TableStudy) -> dict[str, str]:
    """Title -> text of the rerankers of a run, the paper's first."""
    stages = dict.fromkeys(stage for found in study.methods.reranked.values() for stage in found)
    order = {name: place for place, name in enumerate(RERANKERS)}
    ranked = sorted(stages, key=lambda stage: order.get(str(stage), len(order)))
    return {reranker_title(stage): str(stage) for stage in ranked}


def reranker_columns(study: TableStudy) -> Sequence[GridColumn]:
    """The pool itself, and each reranker."""
    return [GridColumn("Base"), *(GridColumn(name, f"{{0}}+{text}") for name, text in _rerankers(study).items())]


def reranker_level_columns(study: TableStudy) -> Sequence[GridColumn]:
    """Each reranker at each level."""
    return [c for name, text in _rerankers(study).items() for c in levels(study, f"{{0}}+{text}", name)]


def stack_rows(study: TableStudy) -> Sequence[GridRow]:
    """Fused pools that GPC reranks."""
    pools = [f"{first}|{second}" for first, second in study.methods.fused]
    return [GridRow((title(pool),), (pool,)) for pool in pools if f"{pool}+gpc" in study.results.methods]


def stack_columns(study: TableStudy) -> Sequence[GridColumn]:
    """The pool at the first level, and reranked at each."""
    first = study.results.levels[0]
    return [GridColumn(f"ρ={first}%", over="Fusion"), *levels(study, "{0}+gpc", "Fusion+GPC")]


def embedder_rows(study: TableStudy) -> Sequence[GridRow]:
    """Each embedder."""
    return [GridRow((title(embedder),), (embedder,)) for embedder in study.methods.embedders]


def neighbour_columns(study: TableStudy) -> Sequence[GridColumn]:
    """Each number of neighbours."""
    return [GridColumn(f"k={k}", f"{{0}}+nr(k={k})") for k in study.methods.neighbours]


def distance_columns(_: TableStudy) -> Sequence[GridColumn]:
    """Both distances, and their difference."""
    cosine, euclid = (GridColumn(name, f"{{0}}(metric={name})") for name in ("cosine", "euclidean"))
    return [replace(euclid, title="Euclid"), cosine, replace(cosine, title="Δ", minus=euclid, best="")]


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


def sbd_columns(_: TableStudy) -> Sequence[GridColumn]:
    """Both forms of SBD, and their difference."""
    own, shared = GridColumn("SBD-I", "sbd-i"), GridColumn("SBD-D", "sbd-d")
    return [own, shared, replace(shared, title="Δ", minus=own, best="")]


def norm_rows(study: TableStudy) -> Sequence[GridRow]:
    """Retrievers that were run with several scalings."""
    specs = [spec for spec in study.methods.specs.values() if len(spec.legs) == 1 and not spec.rerankers]
    scaled = [s.legs[0].stage.name for s in specs if "norm" in dict(s.legs[0].stage.parameters)]
    return [GridRow((title(name),), (name,)) for name in dict.fromkeys(scaled)]


def norm_columns(_: TableStudy) -> Sequence[GridColumn]:
    """Each scaling."""
    return [GridColumn(norm, f"{{0}}(norm={norm})") for norm in NORMS]


def corpus_rows(study: TableStudy) -> Sequence[GridRow]:
    """Methods that ran on both corpora."""
    both = study.results.methods if study.full else ()
    return [GridRow((title(text),), (text,)) for text in both if study.full and text in study.full.methods]


def corpus_columns(_: TableStudy) -> Sequence[GridColumn]:
    """Both corpora, and their difference."""
    capped, full = GridColumn("Capped"), GridColumn("Full", full=True)
    return [capped, full, replace(full, title="Δ", minus=capped, best="")]


def language_rows(study: TableStudy) -> Sequence[GridRow]:
    """Language models by what they do, each pool that they rerank above them."""
    rows = []
    for pool, methods in study.methods.language.items():
        block = f"reranking {title(pool)}" if pool else "classification, no retrieval"
        base = [GridRow((title(pool), "base"), (pool,), block, reference=True)] if pool else []
        rows += base + [GridRow((study.results.title(text), block), (text,), block) for text in methods]
    return rows


GRIDS = (
    TableGrid(
        "backbones",
        "{headline} of every base retriever, the best composed method and the supervised references",
        ("Method", "Family"),
        base_rows,
        levels,
        filled_by="`readbench run --suite classical`",
        beside="tab:backbones",
        needs=(2, 1),
        spread=True,
    ),
    TableGrid(
        "metrics",
        "Full metric grid at ρ={first}%; σ: deviation of {headline} over datasets",
        ("Method", "Family"),
        base_rows,
        metric_columns,
        filled_by="`readbench run --suite classical`",
        beside="tab:app-backbones",
        needs=(2, 1),
    ),
    TableGrid(
        "normal-residuals",
        "{headline} with and without normal residuals (NR); Δ: from the first to the last level",
        ("Embedder", "Scoring"),
        nr_rows,
        nr_columns,
        filled_by="`readbench run --sweep nr`",
        beside="tab:app-nr",
        spread=True,
    ),
    TableGrid(
        "neighbours",
        "{headline} of normal residuals over k neighbours at ρ={first}%",
        ("Embedder",),
        embedder_rows,
        neighbour_columns,
        filled_by="`readbench run --sweep nr-k`",
        among="row",
        needs=(1, 2),
    ),
    TableGrid(
        "fusion-modes",
        "{headline} of every leg under every fusion mode at ρ={first}%; best of each embedder marked",
        ("Embedder", "Leg"),
        fusion_rows,
        mode_columns,
        filled_by="`readbench run --sweep fusion`",
        beside="tab:fusion-joint",
        among="block",
        needs=(1, 2),
    ),
    TableGrid(
        "fusion",
        "{headline} of reciprocal-rank fusion with each leg",
        ("Embedder",),
        fused_pool_rows,
        leg_columns,
        filled_by="`readbench run --sweep fusion`",
        beside="tab:app-hybrids",
    ),
    TableGrid(
        "rerankers",
        "{headline} of rerankers on each pool at ρ={first}%; best of each pool marked",
        ("Pool",),
        pool_rows,
        reranker_columns,
        filled_by="`readbench run --sweep rerank`",
        beside="tab:rerankers",
        among="row",
        needs=(1, 2),
    ),
    TableGrid(
        "reranker-levels",
        "{headline} of rerankers on each pool at each level",
        ("Pool",),
        pool_rows,
        reranker_level_columns,
        filled_by="`readbench run --sweep rerank`",
        beside="tab:app-rerankers",
    ),
    TableGrid(
        "composition-of-stages",
        "{headline} of fused pools, and of the same reranked by GPC",
        ("Fusion",),
        stack_rows,
        stack_columns,
        filled_by="`readbench run --sweep rerank`",
        beside="tab:stack",
        needs=(1, 2),
    ),
    TableGrid(
        "cosine",
        "{headline} of embedders by Euclidean distance and by cosine at ρ={first}%",
        ("Embedder",),
        embedder_rows,
        distance_columns,
        filled_by="`readbench run --sweep metric`",
        among="row",
        needs=(1, 3),
    ),
    TableGrid(
        "sbd",
        "{headline} of SBD with a lag of its own for each channel (I) and one for all (D) at ρ={first}%",
        ("Dataset",),
        dataset_rows,
        sbd_columns,
        filled_by="`readbench run --sweep sbd`",
        among="row",
        needs=(1, 3),
    ),
    TableGrid(
        "scaling",
        "{headline} of distances by how raw windows are scaled, at ρ={first}%",
        ("Distance",),
        norm_rows,
        norm_columns,
        filled_by="`readbench run --sweep norm`",
        among="row",
        needs=(1, 2),
    ),
    TableGrid(
        "corpus",
        "{headline} on the capped and on the full corpus at ρ={first}%",
        ("Method",),
        corpus_rows,
        corpus_columns,
        filled_by="`readbench run --cap none` of the same methods, then `readbench report RUN --full FULLRUN`",
        beside="tab:fullcorpus",
        needs=(1, 3),
    ),
    TableGrid(
        "language-models",
        "{headline} of language models that rerank a pool, or classify without retrieval, at ρ={first}%",
        ("Method", "Task"),
        language_rows,
        headline_column,
        filled_by="`readbench run --sweep llm`, with profiles of the models (docs/language-models.md)",
        beside="tab:llm",
        among="block",
    ),
)
"""Every table that crosses methods with something; those that a run does not have methods for do not appear."""


def full_grid(name: str, title: str, method: str) -> TableGrid:
    """Every metric of one method, on each dataset at each level."""
    return TableGrid(
        name,
        f"Full metric grid of {title}",
        ("Dataset", "ρ"),
        partial(dataset_level_rows, method=method),
        all_metric_columns,
        among="none",
    )


FIELDS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
HEADER = ("Dataset", "", "C", "T", "Classes", "Corpus", "Queries", "rel/q", "Imbalance")


def composition_table(results: Results) -> ReportTable:
    """Two rows a dataset: this run, a range where its splits differ, and the paper where it has the dataset."""
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
            rows.append(["", "paper", *map(_text, astuple(paper))])
    caption = (
        "Composition: channels C, steps T, fault types, corpus at each level, queries, relevant items a query and most"
        f" over least frequent fault type in the clean corpus. {coverage(results)}"
    )
    return ReportTable("composition", caption, list(HEADER), rows, rules=tuple(rules[1:]))


def _range(values: Sequence[object]) -> str:
    """One text where all splits agree, else the first and the last of them in order."""
    if all(value == values[0] for value in values):
        return _text(values[0])
    return "–".join(map(_text, (min(values), max(values))))  # type: ignore[type-var]


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


CALIBRATION_HEADER = ("Method", "Dataset", "ρ", "Queries", "Accuracy", "Stated", "p(true)", "ECE", "Floor")


def calibration_table(results: Results) -> ReportTable | None:
    """One row a method, level and dataset, and one for all of them; None where no method has an opinion."""
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
    """The tables of the catalogue, each followed by the paper's values where it has some, composition, and settings."""
    results = study.results
    tables = [table for grid in GRIDS for table in grid_tables(grid, study)]
    more = (calibration_table(results), composition_table(results), labelling_table(results))
    return [*tables, *(table for table in more if table), *settings_tables(results)]


def absent_tables(tables: Iterable[ReportTable]) -> dict[str, str]:
    """Tables of the catalogue that a run has nothing for, and what would fill each."""
    present = {table.name for table in tables}
    wanted = {grid.name: grid.filled_by for grid in GRIDS} | {"calibration": "`readbench run --suite flagship`"}
    return {name: filled_by for name, filled_by in wanted.items() if name not in present}


def method_tables(study: TableStudy) -> list[ReportTable]:
    """Every metric on each dataset at each level, one table a method, numbered in plan order."""
    tables = []
    for number, method in enumerate(study.results.methods, start=1):
        name = f"{number:02d}-{re.sub(r'[^a-z0-9.+-]+', '_', method).strip('_')}"
        tables += grid_tables(full_grid(name, study.results.title(method), method), study)
    return tables
