"""From native files or a simulator to queries, corpora and relevance judgments."""

from readbench.benchmark.protocol._build import (
    Built,
    build,
    build_fingerprint,
    builders_of,
    find_source,
    write_windows_of,
)
from readbench.benchmark.protocol._clean import fill_missing
from readbench.benchmark.protocol._compose import Composition, Parts
from readbench.benchmark.protocol._cut import rows_before, window_starts, windows_of
from readbench.benchmark.protocol._describe import (
    PAPER_COMPOSITION,
    composition_facts,
    composition_row,
    context_row,
    count_classes,
    fault_panels,
)
from readbench.benchmark.protocol._onsets import SHARES, OnsetTask, build_onsets, compose_onsets
from readbench.benchmark.protocol._origin import DataOrigin, find_origin, tell_origin
from readbench.benchmark.protocol._pools import POOLS, PoolName, PoolTask, assets_of, compose_pools
from readbench.benchmark.protocol._shipped import read_shipped, read_shipped_rows
from readbench.benchmark.protocol._source import (
    NORMAL_CLASS,
    BeforeRule,
    BeforeSource,
    Channel,
    Cuts,
    CutSource,
    Protocol,
    Recording,
    Side,
    Source,
    SourceInfo,
    SplitUnit,
    vary_before,
)
from readbench.benchmark.protocol._split import MOST_SEED, check_seeds
from readbench.benchmark.protocol._task import (
    TASK,
    Task,
    TaskFile,
    compose_task,
    load_task,
    read_facts,
    read_task_file,
    write_facts,
)

__all__ = [
    "MOST_SEED",
    "NORMAL_CLASS",
    "PAPER_COMPOSITION",
    "POOLS",
    "SHARES",
    "TASK",
    "BeforeRule",
    "BeforeSource",
    "Built",
    "Channel",
    "Composition",
    "CutSource",
    "Cuts",
    "DataOrigin",
    "OnsetTask",
    "Parts",
    "PoolName",
    "PoolTask",
    "Protocol",
    "Recording",
    "Side",
    "Source",
    "SourceInfo",
    "SplitUnit",
    "Task",
    "TaskFile",
    "assets_of",
    "build",
    "build_fingerprint",
    "build_onsets",
    "builders_of",
    "check_seeds",
    "compose_onsets",
    "compose_pools",
    "compose_task",
    "composition_facts",
    "composition_row",
    "context_row",
    "count_classes",
    "fault_panels",
    "fill_missing",
    "find_origin",
    "find_source",
    "load_task",
    "read_facts",
    "read_shipped",
    "read_shipped_rows",
    "read_task_file",
    "rows_before",
    "tell_origin",
    "vary_before",
    "window_starts",
    "windows_of",
    "write_facts",
    "write_windows_of",
]
