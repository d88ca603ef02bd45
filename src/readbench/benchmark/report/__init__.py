"""From a run folder alone to tables, figures and what may be said of them; nothing is computed again."""

from readbench.benchmark.report._assets import asset_table, compound_table, fault_table
from readbench.benchmark.report._audit import (
    audit_blocks,
    show_blocks,
    summary_blocks,
    tell_context,
    tell_verdicts,
    write_blocks,
)
from readbench.benchmark.report._bundle import Declared, read_bundle, write_bundle
from readbench.benchmark.report._case_figures import fault_against_shape, fault_strip, fault_types
from readbench.benchmark.report._compare import (
    as_json,
    case_link,
    check_data,
    compare,
    difference_table,
    markdown,
    pairs_of,
)
from readbench.benchmark.report._early import draw_early, early_table, notice_table, write_early
from readbench.benchmark.report._figures import (
    FIGURES,
    DrawnFigure,
    absent_figures,
    all_curves,
    figure_captions,
    figures,
)
from readbench.benchmark.report._gallery import (
    COARSEST,
    DEPTH,
    FINEST,
    Gallery,
    GalleryWindow,
    keep_gallery,
    read_gallery,
    tasks_of,
)
from readbench.benchmark.report._grid import TableStudy
from readbench.benchmark.report._methods import Methods, describe, is_partial, marks_of
from readbench.benchmark.report._opinions import (
    active_table,
    draw_active,
    draw_novelty,
    draw_reliability,
    novelty_table,
    opinion_table,
)
from readbench.benchmark.report._origins import MARKS, explain_marks
from readbench.benchmark.report._paper_tables import absent_tables, method_tables, paper_tables
from readbench.benchmark.report._readx import (
    draw_readx,
    ranking_table,
    readx_table,
    write_readx,
)
from readbench.benchmark.report._results import Leaderboard, Results, leaderboard, read_results
from readbench.benchmark.report._scale import measured_tables, two_stage_table, write_scale
from readbench.benchmark.report._standings import rank_submissions, rejected_table, standings_table, write_standings
from readbench.benchmark.report._table import Mark, ReportTable, latex
from readbench.benchmark.report._trec import write_trec
from readbench.benchmark.report._write import (
    RunOverview,
    comparison_table,
    dataset_table,
    leaderboard_table,
    overview,
    remarks,
    show_report,
    show_table,
    write_report,
)

__all__ = [
    "COARSEST",
    "DEPTH",
    "FIGURES",
    "FINEST",
    "MARKS",
    "Declared",
    "DrawnFigure",
    "Gallery",
    "GalleryWindow",
    "Leaderboard",
    "Mark",
    "Methods",
    "ReportTable",
    "Results",
    "RunOverview",
    "TableStudy",
    "absent_figures",
    "absent_tables",
    "active_table",
    "all_curves",
    "as_json",
    "asset_table",
    "audit_blocks",
    "case_link",
    "check_data",
    "compare",
    "comparison_table",
    "compound_table",
    "dataset_table",
    "describe",
    "difference_table",
    "draw_active",
    "draw_early",
    "draw_novelty",
    "draw_readx",
    "draw_reliability",
    "early_table",
    "explain_marks",
    "fault_against_shape",
    "fault_strip",
    "fault_table",
    "fault_types",
    "figure_captions",
    "figures",
    "is_partial",
    "keep_gallery",
    "latex",
    "leaderboard",
    "leaderboard_table",
    "markdown",
    "marks_of",
    "measured_tables",
    "method_tables",
    "notice_table",
    "novelty_table",
    "opinion_table",
    "overview",
    "pairs_of",
    "paper_tables",
    "rank_submissions",
    "ranking_table",
    "read_bundle",
    "read_gallery",
    "read_results",
    "readx_table",
    "rejected_table",
    "remarks",
    "show_blocks",
    "show_report",
    "show_table",
    "standings_table",
    "summary_blocks",
    "tasks_of",
    "tell_context",
    "tell_verdicts",
    "two_stage_table",
    "write_blocks",
    "write_bundle",
    "write_early",
    "write_readx",
    "write_report",
    "write_scale",
    "write_standings",
    "write_trec",
]
