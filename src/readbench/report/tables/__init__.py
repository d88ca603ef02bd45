"""Tables of a run: plain cells first, then terminal text, markdown, CSV or LaTeX."""

from readbench.report.tables.collect import absent_tables, method_tables, paper_tables
from readbench.report.tables.coverage import describe
from readbench.report.tables.grid import Study
from readbench.report.tables.latex import latex
from readbench.report.tables.overview import comparison_table, dataset_table, leaderboard_table, remarks
from readbench.report.tables.table import Mark, Table

__all__ = [
    "Mark",
    "Study",
    "Table",
    "absent_tables",
    "comparison_table",
    "dataset_table",
    "describe",
    "latex",
    "leaderboard_table",
    "method_tables",
    "paper_tables",
    "remarks",
]
