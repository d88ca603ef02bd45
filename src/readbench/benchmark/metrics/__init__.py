"""How good a ranking is, and how sure one can be that one method beats another."""

from readbench.benchmark.metrics._bootstrap import (
    MIN_DATASETS,
    ConfidenceInterval,
    bootstrap_datasets,
    mean_interval,
    paired_bootstrap,
    sums_interval,
)
from readbench.benchmark.metrics._evaluation import (
    DEFAULT_METRIC,
    Judgement,
    PerQuery,
    compute,
    count_relevant,
    evaluate,
    expect,
    metric_order,
    plugin_metrics,
)
from readbench.benchmark.metrics._metrics import CUTOFFS, hit_rate, macro_f1, ndcg, precision
from readbench.benchmark.metrics._ranks import RankedMethods, datasets_to_separate, rank_methods, smallest_adjusted_p
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
