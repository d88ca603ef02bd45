"""From a run folder alone to tables; nothing is computed again."""

from readbench.report.leaderboard import Leaderboard, leaderboard
from readbench.report.results import Results, read_results
from readbench.report.write import show_report, show_table, write_report

__all__ = ["Leaderboard", "Results", "leaderboard", "read_results", "show_report", "show_table", "write_report"]
