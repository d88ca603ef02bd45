"""Datasets that users bring: tables of recordings, or ready-made tasks; named, and usable everywhere."""

from readbench.data.imported.divided import Divided, check_unchanged, is_divided, read_divided
from readbench.data.imported.explain import explain
from readbench.data.imported.measured import Measured, read_cases, table_files
from readbench.data.imported.store import Draft, Imported, check_name, draft

__all__ = [
    "Divided",
    "Draft",
    "Imported",
    "Measured",
    "check_name",
    "check_unchanged",
    "draft",
    "explain",
    "is_divided",
    "read_cases",
    "read_divided",
    "table_files",
]
