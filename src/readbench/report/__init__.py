"""From a run folder alone to tables, figures and what may be said of them; nothing is computed again."""

from readbench.report.leaderboard import Leaderboard, leaderboard
from readbench.report.results import Results, read_results
from readbench.report.write import Overview, overview, show_report, show_table, write_report

__all__ = [
    "Leaderboard",
    "Overview",
    "Results",
    "leaderboard",
    "overview",
    "read_results",
    "show_report",
    "show_table",
    "write_report",
]
