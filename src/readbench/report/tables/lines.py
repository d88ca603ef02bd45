"""Rows and columns of the tables that cross methods with something, found among the methods of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from readbench.registry import BUILT_IN
from readbench.report.paper_values import RERANKERS, SPREAD
from readbench.report.results import MetricFacts
from readbench.report.tables.coverage import marked
from readbench.report.tables.grid import Column, Row, Study, value
from readbench.report.tables.methods import reranker_title, title

PAPER_SYSTEM = "charm+nr|dtw-i+gpc"
"""The best system of the paper."""
PAPER_METRICS = ("P@1", "P@5", "HR@10", "NDCG@5", "NDCG@10", "NDCG@20", "macro_F1")
"""The metrics of the paper's grid."""
NORMS = ("channel", "normals", "none", "window")
MODES = {"RRF": "|", "WS": "|ws|", "2-step": "|2step|"}


def _method_row(study: Study, text: str, *, reference: bool = False) -> Row:
    family = study.methods.family(text)
    return Row((study.results.title(text), family), (text,), family, reference=reference)


def mode_columns(_: Study) -> Sequence[Column]:
    """Each fusion mode."""
    return [Column(name, f"{{0}}{mode}{{1}}") for name, mode in MODES.items()]


def headline_column(study: Study) -> Sequence[Column]:
    """The headline at the first level."""
    return [Column(study.results.headline)]


def best_composed(study: Study) -> str:
    """The composed method with the highest headline at the first level; empty where there is none."""
    column = Column("")
    scored = [(text, value(study, Row((), (text,)), column)) for text in study.methods.composed]
    known = [(figure.mean, text) for text, figure in scored if figure]
    return max(known, key=lambda pair: float(study.results.orient(np.array(pair[0]))))[1] if known else ""


def base_rows(study: Study) -> Sequence[Row]:
    """Base retrievers by family, the best composed method and the paper's, and the supervised references."""
    families = list(dict.fromkeys(map(study.methods.family, study.methods.bases)))
    bases = sorted(study.methods.bases, key=lambda text: families.index(study.methods.family(text)))
    composed = dict.fromkeys(text for text in (best_composed(study), PAPER_SYSTEM) if text in study.results.methods)
    rows = [_method_row(study, text, reference=study.methods.family(text) == "trivial") for text in bases]
    rows += [replace(_method_row(study, text), block="composed") for text in composed]
    return rows + [_method_row(study, text, reference=True) for text in study.methods.references]


def levels(study: Study, method: str = "{0}", over: str = "") -> list[Column]:
    """One column a pollution level."""
    return [Column(f"ρ={rho}%", method, rho, over=over) for rho in study.results.levels]


def metric_columns(study: Study) -> Sequence[Column]:
    """The paper's metrics, those of plug-ins, and the deviation over datasets."""
    known = study.results.metrics
    paper = [known[name] for name in PAPER_METRICS if name in known]
    added = [metric for metric in known.values() if metric.origin != BUILT_IN]
    return [*map(_metric_column, [*paper, *added]), Column("σ", metric=SPREAD, best="low")]


def _metric_column(metric: MetricFacts) -> Column:
    return Column(metric.title, metric=metric.name, best="high" if metric.larger_is_better else "low")


def nr_rows(study: Study) -> Sequence[Row]:
    """Each embedder without and with normal residuals."""
    variants = {"plain": "", "NR": "+nr"}
    return [
        Row((title(embedder), name), (embedder + suffix,), embedder)
        for embedder in study.methods.residuals
        for name, suffix in variants.items()
    ]


def nr_columns(study: Study) -> Sequence[Column]:
    """The levels, and what is lost from the first to the last."""
    first, last = study.results.levels[0], study.results.levels[-1]
    drop = Column("Δ", rho=last, minus=Column("", rho=first), best="")
    return [*levels(study), drop] if last != first else levels(study)


def fusion_rows(study: Study) -> Sequence[Row]:
    """Each embedder with each leg."""
    return [Row((title(first), title(second)), (first, second), first) for first, second in study.methods.fused]


def fused_pool_rows(study: Study) -> Sequence[Row]:
    """Each embedder that is fused with something."""
    return [Row((title(first),), (first,)) for first in dict.fromkeys(first for first, _ in study.methods.fused)]


def leg_columns(study: Study) -> Sequence[Column]:
    """Each leg at each level."""
    legs = dict.fromkeys(second for _, second in study.methods.fused)
    return [column for leg in legs for column in levels(study, f"{{0}}|{leg}", f"|{title(leg)}")]


def pool_rows(study: Study) -> Sequence[Row]:
    """Each pool that is reranked."""
    return [Row((title(pool),), (pool,)) for pool in study.methods.reranked]


def _rerankers(study: Study) -> dict[str, str]:
    """Title -> text of the rerankers of a run, the paper's first."""
    stages = dict.fromkeys(stage for found in study.methods.reranked.values() for stage in found)
    order = {name: place for place, name in enumerate(RERANKERS)}
    ranked = sorted(stages, key=lambda stage: order.get(str(stage), len(order)))
    return {reranker_title(stage): str(stage) for stage in ranked}


def reranker_columns(study: Study) -> Sequence[Column]:
    """The pool itself, and each reranker."""
    return [Column("Base"), *(Column(name, f"{{0}}+{text}") for name, text in _rerankers(study).items())]


def reranker_level_columns(study: Study) -> Sequence[Column]:
    """Each reranker at each level."""
    return [c for name, text in _rerankers(study).items() for c in levels(study, f"{{0}}+{text}", name)]


def stack_rows(study: Study) -> Sequence[Row]:
    """Fused pools that GPC reranks."""
    pools = [f"{first}|{second}" for first, second in study.methods.fused]
    return [Row((title(pool),), (pool,)) for pool in pools if f"{pool}+gpc" in study.results.methods]


def stack_columns(study: Study) -> Sequence[Column]:
    """The pool at the first level, and reranked at each."""
    first = study.results.levels[0]
    return [Column(f"ρ={first}%", over="Fusion"), *levels(study, "{0}+gpc", "Fusion+GPC")]


def embedder_rows(study: Study) -> Sequence[Row]:
    """Each embedder."""
    return [Row((title(embedder),), (embedder,)) for embedder in study.methods.embedders]


def neighbour_columns(study: Study) -> Sequence[Column]:
    """Each number of neighbours."""
    return [Column(f"k={k}", f"{{0}}+nr(k={k})") for k in study.methods.neighbours]


def distance_columns(_: Study) -> Sequence[Column]:
    """Both distances, and their difference."""
    cosine, euclid = (Column(name, f"{{0}}(metric={name})") for name in ("cosine", "euclidean"))
    return [replace(euclid, title="Euclid"), cosine, replace(cosine, title="Δ", minus=euclid, best="")]


def dataset_rows(study: Study) -> Sequence[Row]:
    """Each dataset, and the mean."""
    names = study.results.datasets
    rows = [Row((marked(study.results, name),), (), "datasets", name) for name in names]
    return [*rows, Row(("mean",), (), "mean")] if len(names) > 1 else rows


def dataset_level_rows(study: Study, method: str) -> Sequence[Row]:
    """One method on each dataset at each level, and below the mean over the datasets."""
    names = study.results.datasets
    places = [(name, marked(study.results, name)) for name in names] + ([("", "macro")] if len(names) > 1 else [])
    levels = study.results.levels
    return [Row((label, f"{rho}%"), (method,), label, name, rho) for name, label in places for rho in levels]


def all_metric_columns(study: Study) -> Sequence[Column]:
    """Every metric of the run."""
    return [_metric_column(metric) for metric in study.results.metrics.values()]


def sbd_columns(_: Study) -> Sequence[Column]:
    """Both forms of SBD, and their difference."""
    own, shared = Column("SBD-I", "sbd-i"), Column("SBD-D", "sbd-d")
    return [own, shared, replace(shared, title="Δ", minus=own, best="")]


def norm_rows(study: Study) -> Sequence[Row]:
    """Retrievers that were run with several scalings."""
    specs = [spec for spec in study.methods.specs.values() if len(spec.legs) == 1 and not spec.rerankers]
    scaled = [s.legs[0].stage.name for s in specs if "norm" in dict(s.legs[0].stage.parameters)]
    return [Row((title(name),), (name,)) for name in dict.fromkeys(scaled)]


def norm_columns(_: Study) -> Sequence[Column]:
    """Each scaling."""
    return [Column(norm, f"{{0}}(norm={norm})") for norm in NORMS]


def corpus_rows(study: Study) -> Sequence[Row]:
    """Methods that ran on both corpora."""
    both = study.results.methods if study.full else ()
    return [Row((title(text),), (text,)) for text in both if study.full and text in study.full.methods]


def corpus_columns(_: Study) -> Sequence[Column]:
    """Both corpora, and their difference."""
    capped, full = Column("Capped"), Column("Full", full=True)
    return [capped, full, replace(full, title="Δ", minus=capped, best="")]


def language_rows(study: Study) -> Sequence[Row]:
    """Language models by what they do, each pool that they rerank above them."""
    rows = []
    for pool, methods in study.methods.language.items():
        block = f"reranking {title(pool)}" if pool else "classification, no retrieval"
        base = [Row((title(pool), "base"), (pool,), block, reference=True)] if pool else []
        rows += base + [Row((title(text), block), (text,), block) for text in methods]
    return rows
