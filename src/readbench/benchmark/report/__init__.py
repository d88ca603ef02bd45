"""From a run folder alone to tables, figures and what may be said of them; nothing is computed again."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.report._against import (
        AgainstRow,
        ScoredCell,
        against_table,
        check_published,
        compare_with_published,
        find_published,
        read_scored_cells,
    )
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
    from readbench.benchmark.report._checking import check_submissions, published_bundle
    from readbench.benchmark.report._compare import (
        as_json,
        case_link,
        check_data,
        compare,
        difference_table,
        markdown,
        pairs_of,
    )
    from readbench.benchmark.report._figures import FIGURES, draw_curve, figure_captions, figures
    from readbench.benchmark.report._gallery import (
        DEPTH,
        FINEST,
        Gallery,
        GalleryWindow,
        keep_gallery,
        points_within,
        read_gallery,
        tasks_of,
    )
    from readbench.benchmark.report._grid import TableStudy, grid_tables
    from readbench.benchmark.report._methods import (
        Methods,
        base_name,
        canonical,
        describe,
        is_partial,
        mark_dataset,
        marks_of,
    )
    from readbench.benchmark.report._origins import MARKS, count_origins, explain_marks, find_origins, find_real
    from readbench.benchmark.report._overview import overview, show_report, show_table
    from readbench.benchmark.report._paper_tables import (
        GRIDS,
        absent_tables,
        composition_table,
        method_tables,
        paper_tables,
    )
    from readbench.benchmark.report._places import (
        MethodPlace,
        Places,
        place_methods,
        places_table,
        tell_place,
        tell_untested,
    )
    from readbench.benchmark.report._results import (
        Leaderboard,
        Results,
        choose_headline,
        dataset_scores,
        leaderboard,
        read_results,
    )
    from readbench.benchmark.report._retained import (
        UNSEEN,
        RetainedShare,
        read_beside,
        retained_shares,
        retained_table,
        tell_retained,
    )
    from readbench.benchmark.report._settings import PAGES, labelling_table, settings_table, settings_tables
    from readbench.benchmark.report._significance import ALPHA, bracket, friedman_sentences
    from readbench.benchmark.report._standings import rank_submissions, rejected_table, standings_table, write_standings
    from readbench.benchmark.report._statements import LABEL_USES, LABEL_WORDS, LabelUse, MethodStatement, state_method
    from readbench.benchmark.report._table import ReportTable, latex
    from readbench.benchmark.report._trec import write_trec
    from readbench.benchmark.report._write import write_report

__getattr__ = open_room(__name__)
