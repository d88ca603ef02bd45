"""Plan -> cells -> execute -> store; a run that was interrupted continues when started again."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.runs._budget import (
        ALL as ALL,
        Budget as Budget,
        parse_budget as parse_budget,
        parse_budgets as parse_budgets,
        with_noise as with_noise,
    )
    from readbench.benchmark.runs._cells import RANKING_DEPTH as RANKING_DEPTH, Setup as Setup, rank_level as rank_level
    from readbench.benchmark.runs._costs import Forecast as Forecast, forecasts as forecasts
    from readbench.benchmark.runs._encode import encode_first as encode_first
    from readbench.benchmark.runs._execute import Setting as Setting, load_cell_task as load_cell_task
    from readbench.benchmark.runs._executors import (
        TRIES as TRIES,
        Executor as Executor,
        ExecutorName as ExecutorName,
        InOrder as InOrder,
        Local as Local,
        LostItem as LostItem,
        Processes as Processes,
        RayCluster as RayCluster,
        Work as Work,
        executor_of as executor_of,
    )
    from readbench.benchmark.runs._fingerprint import fingerprint_of as fingerprint_of
    from readbench.benchmark.runs._folder import RunFolder as RunFolder
    from readbench.benchmark.runs._merge import merge as merge, plan_of as plan_of
    from readbench.benchmark.runs._opinions import (
        OPINION as OPINION,
        StatedProbabilities as StatedProbabilities,
        TaskOpinions as TaskOpinions,
    )
    from readbench.benchmark.runs._plan import (
        DEFAULT_SEEDS as DEFAULT_SEEDS,
        WHOLE as WHOLE,
        Cell as Cell,
        Plan as Plan,
        parse_shard as parse_shard,
    )
    from readbench.benchmark.runs._processor import (
        COSTS as COSTS,
        MethodCost as MethodCost,
        read_costs as read_costs,
        write_costs as write_costs,
    )
    from readbench.benchmark.runs._published import (
        LEFT_OUT as LEFT_OUT,
        PublishedFolder as PublishedFolder,
        PublishSummary as PublishSummary,
        is_planned as is_planned,
        open_folder as open_folder,
        open_published as open_published,
        publish as publish,
    )
    from readbench.benchmark.runs._runner import (
        RunSummary as RunSummary,
        build_first as build_first,
        run as run,
        take_once as take_once,
    )
    from readbench.benchmark.runs._suites import (
        POOL_WITH_NORMALS as POOL_WITH_NORMALS,
        SUITES as SUITES,
        SWEEPS as SWEEPS,
        WITH_NORMALS as WITH_NORMALS,
        Suite as Suite,
        datasets_at_hand as datasets_at_hand,
        suite as suite,
        sweep as sweep,
    )
    from readbench.benchmark.runs._tables import (
        DONE as DONE,
        KEY as KEY,
        QRELS_COLUMNS as QRELS_COLUMNS,
        TIMES as TIMES,
        UNANSWERED as UNANSWERED,
        Qrels as Qrels,
        cell_of as cell_of,
        metric_columns as metric_columns,
        score_columns as score_columns,
        take_tasks_once as take_tasks_once,
    )

open_room(__name__)
