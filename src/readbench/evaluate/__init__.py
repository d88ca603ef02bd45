"""How good a ranking is, whether stated certainty holds, and how sure one can be that one method beats another."""

from readbench.evaluate.bootstrap import Interval, mean_interval, paired_bootstrap
from readbench.evaluate.calibration import (
    Reliability,
    calibration_floor,
    coverage,
    expected_calibration_error,
    reliability,
)
from readbench.evaluate.evaluation import (
    DEFAULT_METRIC,
    Judgement,
    PerQuery,
    compute,
    count_relevant,
    evaluate,
    metric_order,
    plugin_metrics,
)
from readbench.evaluate.metrics import CUTOFFS, hit_rate, macro_f1, ndcg, precision
from readbench.evaluate.novelty import auroc, detection_rate, false_alarm_rate
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
    "DEFAULT_METRIC",
    "FriedmanResult",
    "Interval",
    "Judgement",
    "NemenyiResult",
    "PerQuery",
    "Reliability",
    "WilcoxonResult",
    "auroc",
    "calibration_floor",
    "cliques",
    "compute",
    "count_relevant",
    "coverage",
    "critical_difference",
    "detection_rate",
    "evaluate",
    "expected_calibration_error",
    "false_alarm_rate",
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
    "reliability",
    "wilcoxon",
    "wilcoxon_holm",
]
