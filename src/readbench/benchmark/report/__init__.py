"""From a run folder alone to tables, figures and what may be said of them; nothing is computed again."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.report._against import (
        AgainstRow as AgainstRow,
        ScoredCell as ScoredCell,
        against_table as against_table,
        check_published as check_published,
        compare_with_published as compare_with_published,
        find_published as find_published,
        read_scored_cells as read_scored_cells,
    )
    from readbench.benchmark.report._audit import (
        audit_blocks as audit_blocks,
        show_blocks as show_blocks,
        summary_blocks as summary_blocks,
        tell_context as tell_context,
        tell_verdicts as tell_verdicts,
        write_blocks as write_blocks,
    )
    from readbench.benchmark.report._bundle import (
        Declared as Declared,
        read_bundle as read_bundle,
        write_bundle as write_bundle,
    )
    from readbench.benchmark.report._case_figures import (
        fault_against_shape as fault_against_shape,
        fault_strip as fault_strip,
        fault_types as fault_types,
    )
    from readbench.benchmark.report._checking import (
        check_submissions as check_submissions,
        published_bundle as published_bundle,
    )
    from readbench.benchmark.report._compare import (
        as_json as as_json,
        case_link as case_link,
        check_data as check_data,
        compare as compare,
        difference_table as difference_table,
        markdown as markdown,
        pairs_of as pairs_of,
    )
    from readbench.benchmark.report._figures import (
        FIGURES as FIGURES,
        draw_curve as draw_curve,
        figure_captions as figure_captions,
        figures as figures,
    )
    from readbench.benchmark.report._gallery import (
        DEPTH as DEPTH,
        FINEST as FINEST,
        Gallery as Gallery,
        GalleryWindow as GalleryWindow,
        keep_gallery as keep_gallery,
        points_within as points_within,
        read_gallery as read_gallery,
        tasks_of as tasks_of,
    )
    from readbench.benchmark.report._grid import TableStudy as TableStudy, grid_tables as grid_tables
    from readbench.benchmark.report._methods import (
        Methods as Methods,
        base_name as base_name,
        canonical as canonical,
        describe as describe,
        is_partial as is_partial,
        mark_dataset as mark_dataset,
        marks_of as marks_of,
    )
    from readbench.benchmark.report._origins import (
        MARKS as MARKS,
        count_origins as count_origins,
        explain_marks as explain_marks,
        find_origins as find_origins,
        find_real as find_real,
    )
    from readbench.benchmark.report._overview import (
        overview as overview,
        show_report as show_report,
        show_table as show_table,
    )
    from readbench.benchmark.report._paper_tables import (
        GRIDS as GRIDS,
        absent_tables as absent_tables,
        composition_table as composition_table,
        method_tables as method_tables,
        paper_tables as paper_tables,
    )
    from readbench.benchmark.report._places import (
        MethodPlace as MethodPlace,
        Places as Places,
        place_methods as place_methods,
        places_table as places_table,
        tell_place as tell_place,
        tell_untested as tell_untested,
    )
    from readbench.benchmark.report._results import (
        Leaderboard as Leaderboard,
        Results as Results,
        choose_headline as choose_headline,
        dataset_scores as dataset_scores,
        leaderboard as leaderboard,
        read_results as read_results,
    )
    from readbench.benchmark.report._retained import (
        UNSEEN as UNSEEN,
        RetainedShare as RetainedShare,
        read_beside as read_beside,
        retained_shares as retained_shares,
        retained_table as retained_table,
        tell_retained as tell_retained,
    )
    from readbench.benchmark.report._settings import (
        PAGES as PAGES,
        labelling_table as labelling_table,
        settings_table as settings_table,
        settings_tables as settings_tables,
    )
    from readbench.benchmark.report._significance import (
        ALPHA as ALPHA,
        bracket as bracket,
        friedman_sentences as friedman_sentences,
    )
    from readbench.benchmark.report._standings import (
        rank_submissions as rank_submissions,
        rejected_table as rejected_table,
        standings_table as standings_table,
        write_standings as write_standings,
    )
    from readbench.benchmark.report._statements import (
        LABEL_USES as LABEL_USES,
        LABEL_WORDS as LABEL_WORDS,
        LabelUse as LabelUse,
        MethodStatement as MethodStatement,
        state_method as state_method,
    )
    from readbench.benchmark.report._table import ReportTable as ReportTable, latex as latex
    from readbench.benchmark.report._trec import write_trec as write_trec
    from readbench.benchmark.report._write import write_report as write_report

open_room(__name__)
