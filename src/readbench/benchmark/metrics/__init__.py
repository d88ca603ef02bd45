"""How good a ranking is, and how sure one can be that one method beats another."""

from readbench.benchmark.metrics._bootstrap import ConfidenceInterval, mean_interval, paired_bootstrap
from readbench.benchmark.metrics._evaluation import (
    DEFAULT_METRIC,
    Judgement,
    PerQuery,
    compute,
    count_relevant,
    evaluate,
    metric_order,
    plugin_metrics,
)
from readbench.benchmark.metrics._metrics import CUTOFFS, hit_rate, macro_f1, ndcg, precision
from readbench.benchmark.metrics._significance import (
    FriedmanResult,
    NemenyiResult,
    WilcoxonResult,
    cliques,
    critical_difference,
    friedman,
    holm,
    mean_ranks,
    nemenyi,
    wilcoxon,
    wilcoxon_holm,
)

__all__ = [
    "CUTOFFS",
    "DEFAULT_METRIC",
    "ConfidenceInterval",
    "FriedmanResult",
    "Judgement",
    "NemenyiResult",
    "PerQuery",
    "WilcoxonResult",
    "cliques",
    "compute",
    "count_relevant",
    "critical_difference",
    "evaluate",
    "friedman",
    "hit_rate",
    "holm",
    "macro_f1",
    "mean_interval",
    "mean_ranks",
    "metric_order",
    "ndcg",
    "nemenyi",
    "paired_bootstrap",
    "plugin_metrics",
    "precision",
    "wilcoxon",
    "wilcoxon_holm",
]
