"""Plan -> cells -> execute -> store; a run that was interrupted continues when started again."""

from readbench.benchmark.runs._budget import ALL, Budget, parse_budget, parse_budgets, with_noise
from readbench.benchmark.runs._cells import RANKING_DEPTH, Setup, rank_level
from readbench.benchmark.runs._costs import Forecast, forecasts
from readbench.benchmark.runs._encode import encode_first
from readbench.benchmark.runs._execute import Setting, load_cell_task
from readbench.benchmark.runs._executors import (
    TRIES,
    Executor,
    ExecutorName,
    InOrder,
    Local,
    LostItem,
    Processes,
    RayCluster,
    Work,
    executor_of,
)
from readbench.benchmark.runs._fingerprint import fingerprint_of
from readbench.benchmark.runs._folder import RunFolder
from readbench.benchmark.runs._merge import merge, plan_of
from readbench.benchmark.runs._opinions import OPINION, StatedProbabilities, TaskOpinions
from readbench.benchmark.runs._plan import DEFAULT_SEEDS, WHOLE, Cell, Plan, parse_shard
from readbench.benchmark.runs._processor import COSTS, MethodCost, read_costs, write_costs
from readbench.benchmark.runs._published import (
    LEFT_OUT,
    PublishedFolder,
    PublishSummary,
    is_planned,
    open_folder,
    open_published,
    publish,
)
from readbench.benchmark.runs._runner import RunSummary, build_first, run, take_once
from readbench.benchmark.runs._suites import (
    POOL_WITH_NORMALS,
    SUITES,
    SWEEPS,
    WITH_NORMALS,
    Suite,
    datasets_at_hand,
    suite,
    sweep,
)
from readbench.benchmark.runs._tables import (
    DONE,
    KEY,
    QRELS_COLUMNS,
    TIMES,
    UNANSWERED,
    Qrels,
    cell_of,
    metric_columns,
    score_columns,
    take_tasks_once,
)
