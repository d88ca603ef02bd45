"""How good a ranking is, and how sure one can be that one method is better than another."""

from readbench.evaluate.bootstrap import Interval, paired_bootstrap
from readbench.evaluate.metrics import (
    CUTOFFS,
    MACRO_F1,
    METRICS,
    PerQuery,
    count_relevant,
    evaluate,
    hit_rate,
    macro_f1,
    ndcg,
    precision,
    relevance,
)
from readbench.evaluate.pairwise import WilcoxonResult, holm, wilcoxon, wilcoxon_holm
from readbench.evaluate.significance import (
    FriedmanResult,
    NemenyiResult,
    cliques,
    critical_difference,
    friedman,
    mean_ranks,
    nemenyi,
)

__all__ = [
    "CUTOFFS",
    "MACRO_F1",
    "METRICS",
    "FriedmanResult",
    "Interval",
    "NemenyiResult",
    "PerQuery",
    "WilcoxonResult",
    "cliques",
    "count_relevant",
    "critical_difference",
    "evaluate",
    "friedman",
    "hit_rate",
    "holm",
    "macro_f1",
    "mean_ranks",
    "ndcg",
    "nemenyi",
    "paired_bootstrap",
    "precision",
    "relevance",
    "wilcoxon",
    "wilcoxon_holm",
]
