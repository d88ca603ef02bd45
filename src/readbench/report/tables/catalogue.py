"""The tables of a report, as one list: which rows and columns, and which table of the paper each stands beside."""

from __future__ import annotations

from functools import partial

from readbench.report.leaderboard import HEADLINE
from readbench.report.tables import lines
from readbench.report.tables.grid import Grid

GRIDS = (
    Grid(
        "backbones",
        f"{HEADLINE} of every base retriever, the best composed method and the supervised references",
        ("Method", "Family"),
        lines.base_rows,
        lines.levels,
        filled_by="`readbench run --suite classical`",
        beside="tab:backbones",
        needs=(2, 1),
        spread=True,
    ),
    Grid(
        "metrics",
        "Full metric grid at ρ={first}%; σ: deviation of NDCG@10 over datasets",
        ("Method", "Family"),
        lines.base_rows,
        lines.metric_columns,
        filled_by="`readbench run --suite classical`",
        beside="tab:app-backbones",
        needs=(2, 1),
    ),
    Grid(
        "normal-residuals",
        f"{HEADLINE} with and without normal residuals (NR); Δ: from the first to the last level",
        ("Embedder", "Scoring"),
        lines.nr_rows,
        lines.nr_columns,
        filled_by="`readbench run --suite nr`",
        beside="tab:app-nr",
        spread=True,
    ),
    Grid(
        "neighbours",
        f"{HEADLINE} of normal residuals over k neighbours at ρ={{first}}%",
        ("Embedder",),
        lines.embedder_rows,
        lines.neighbour_columns,
        filled_by="`readbench run --suite nr-k`",
        among="row",
        needs=(1, 2),
    ),
    Grid(
        "fusion-modes",
        f"{HEADLINE} of every leg under every fusion mode at ρ={{first}}%; best of each embedder marked",
        ("Embedder", "Leg"),
        lines.fusion_rows,
        lines.mode_columns,
        filled_by="`readbench run --suite fusion`",
        beside="tab:fusion-joint",
        among="block",
        needs=(1, 2),
    ),
    Grid(
        "fusion",
        f"{HEADLINE} of reciprocal-rank fusion with each leg",
        ("Embedder",),
        lines.fused_pool_rows,
        lines.leg_columns,
        filled_by="`readbench run --suite fusion`",
        beside="tab:app-hybrids",
    ),
    Grid(
        "rerankers",
        f"{HEADLINE} of rerankers on each pool at ρ={{first}}%; best of each pool marked",
        ("Pool",),
        lines.pool_rows,
        lines.reranker_columns,
        filled_by="`readbench run --suite rerank`",
        beside="tab:rerankers",
        among="row",
        needs=(1, 2),
    ),
    Grid(
        "reranker-levels",
        f"{HEADLINE} of rerankers on each pool at each level",
        ("Pool",),
        lines.pool_rows,
        lines.reranker_level_columns,
        filled_by="`readbench run --suite rerank`",
        beside="tab:app-rerankers",
    ),
    Grid(
        "composition-of-stages",
        f"{HEADLINE} of fused pools, and of the same reranked by GPC",
        ("Fusion",),
        lines.stack_rows,
        lines.stack_columns,
        filled_by="`readbench run --suite rerank`",
        beside="tab:stack",
        needs=(1, 2),
    ),
    Grid(
        "cosine",
        f"{HEADLINE} of embedders by Euclidean distance and by cosine at ρ={{first}}%",
        ("Embedder",),
        lines.embedder_rows,
        lines.distance_columns,
        filled_by="`readbench run --suite metric`",
        among="row",
        needs=(1, 3),
    ),
    Grid(
        "sbd",
        f"{HEADLINE} of SBD with a lag of its own for each channel (I) and one for all (D) at ρ={{first}}%",
        ("Dataset",),
        lines.dataset_rows,
        lines.sbd_columns,
        filled_by="`readbench run --suite sbd`",
        among="row",
        needs=(1, 3),
    ),
    Grid(
        "scaling",
        f"{HEADLINE} of distances by how raw windows are scaled, at ρ={{first}}%",
        ("Distance",),
        lines.norm_rows,
        lines.norm_columns,
        filled_by="`readbench run --suite norm`",
        among="row",
        needs=(1, 2),
    ),
    Grid(
        "corpus",
        f"{HEADLINE} on the capped and on the full corpus at ρ={{first}}%",
        ("Method",),
        lines.corpus_rows,
        lines.corpus_columns,
        filled_by="`readbench run --cap none` of the same methods, then `readbench report RUN --full FULLRUN`",
        beside="tab:fullcorpus",
        needs=(1, 3),
    ),
    Grid(
        "language-models",
        f"{HEADLINE} of language models that rerank a pool, or classify without retrieval, at ρ={{first}}%",
        ("Method", "Task"),
        lines.language_rows,
        lines.headline_column,
        filled_by="methods with `llm(PROFILE)` or `classify(PROFILE)`: none was run, they need a model and its key",
        beside="tab:llm",
        among="block",
    ),
)
"""Every table that crosses methods with something; those that a run does not have methods for do not appear."""


def full_grid(name: str, title: str, method: str) -> Grid:
    """Every metric of one method, on each dataset at each level."""
    return Grid(
        name,
        f"Full metric grid of {title}",
        ("Dataset", "ρ"),
        partial(lines.dataset_level_rows, method=method),
        lines.all_metric_columns,
        among="none",
    )
