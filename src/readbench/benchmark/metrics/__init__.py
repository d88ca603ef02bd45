"""How good a ranking is, and how sure one can be that one method beats another."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.metrics._bootstrap import (
        MIN_DATASETS as MIN_DATASETS,
        ConfidenceInterval as ConfidenceInterval,
        bootstrap_datasets as bootstrap_datasets,
        mean_interval as mean_interval,
        paired_bootstrap as paired_bootstrap,
        sums_interval as sums_interval,
    )
    from readbench.benchmark.metrics._evaluation import (
        DEFAULT_METRIC as DEFAULT_METRIC,
        Judgement as Judgement,
        PerQuery as PerQuery,
        compute as compute,
        count_relevant as count_relevant,
        evaluate as evaluate,
        expect as expect,
        metric_order as metric_order,
        plugin_metrics as plugin_metrics,
    )
    from readbench.benchmark.metrics._metrics import (
        CUTOFFS as CUTOFFS,
        hit_rate as hit_rate,
        macro_f1 as macro_f1,
        ndcg as ndcg,
        precision as precision,
    )
    from readbench.benchmark.metrics._ranks import (
        RankedMethods as RankedMethods,
        datasets_to_separate as datasets_to_separate,
        rank_methods as rank_methods,
        smallest_adjusted_p as smallest_adjusted_p,
    )
    from readbench.benchmark.metrics._significance import (
        FriedmanResult as FriedmanResult,
        NemenyiResult as NemenyiResult,
        WilcoxonResult as WilcoxonResult,
        cliques as cliques,
        critical_difference as critical_difference,
        friedman as friedman,
        holm as holm,
        mean_ranks as mean_ranks,
        nemenyi as nemenyi,
        wilcoxon as wilcoxon,
        wilcoxon_holm as wilcoxon_holm,
    )

open_room(__name__)
