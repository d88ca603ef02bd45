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
from readbench.benchmark.protocol._cut import windows_of
from readbench.benchmark.protocol._describe import (
    PAPER_COMPOSITION,
    TaskAudit,
    audit,
    composition_facts,
    composition_row,
    fault_panels,
)
from readbench.benchmark.protocol._shipped import read_shipped, read_shipped_rows
from readbench.benchmark.protocol._source import (
    NORMAL_CLASS,
    Channel,
    Cuts,
    CutSource,
    Protocol,
    Recording,
    Side,
    Source,
    SourceInfo,
    SplitUnit,
)
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
    "NORMAL_CLASS",
    "PAPER_COMPOSITION",
    "TASK",
    "Built",
    "Channel",
    "Composition",
    "CutSource",
    "Cuts",
    "Parts",
    "Protocol",
    "Recording",
    "Side",
    "Source",
    "SourceInfo",
    "SplitUnit",
    "Task",
    "TaskAudit",
    "TaskFile",
    "audit",
    "build",
    "build_fingerprint",
    "builders_of",
    "compose_task",
    "composition_facts",
    "composition_row",
    "fault_panels",
    "fill_missing",
    "find_source",
    "load_task",
    "read_facts",
    "read_shipped",
    "read_shipped_rows",
    "read_task_file",
    "windows_of",
    "write_facts",
    "write_windows_of",
]
