"""From native files or a simulator to queries, corpora and relevance judgments."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.protocol._build import (
        Built as Built,
        build as build,
        build_fingerprint as build_fingerprint,
        builders_of as builders_of,
        find_source as find_source,
        write_windows_of as write_windows_of,
    )
    from readbench.benchmark.protocol._clean import fill_missing as fill_missing
    from readbench.benchmark.protocol._compose import (
        SHORT_OF_NORMALS as SHORT_OF_NORMALS,
        Composition as Composition,
        Parts as Parts,
    )
    from readbench.benchmark.protocol._cut import (
        rows_before as rows_before,
        window_starts as window_starts,
        windows_of as windows_of,
    )
    from readbench.benchmark.protocol._describe import (
        PAPER_COMPOSITION as PAPER_COMPOSITION,
        composition_facts as composition_facts,
        composition_row as composition_row,
        context_row as context_row,
        count_classes as count_classes,
        fault_panels as fault_panels,
    )
    from readbench.benchmark.protocol._onsets import (
        SHARES as SHARES,
        OnsetTask as OnsetTask,
        build_onsets as build_onsets,
        compose_onsets as compose_onsets,
    )
    from readbench.benchmark.protocol._origin import (
        DataOrigin as DataOrigin,
        find_origin as find_origin,
        tell_origin as tell_origin,
    )
    from readbench.benchmark.protocol._pools import (
        POOLS as POOLS,
        PoolName as PoolName,
        PoolTask as PoolTask,
        assets_of as assets_of,
        compose_pools as compose_pools,
    )
    from readbench.benchmark.protocol._shipped import (
        read_info as read_info,
        read_shipped as read_shipped,
        read_shipped_rows as read_shipped_rows,
    )
    from readbench.benchmark.protocol._source import (
        NORMAL_CLASS as NORMAL_CLASS,
        BeforeRule as BeforeRule,
        BeforeSource as BeforeSource,
        Channel as Channel,
        Cuts as Cuts,
        CutSource as CutSource,
        Protocol as Protocol,
        Recording as Recording,
        Side as Side,
        Source as Source,
        SourceInfo as SourceInfo,
        SplitUnit as SplitUnit,
        vary_before as vary_before,
    )
    from readbench.benchmark.protocol._split import MOST_SEED as MOST_SEED, check_seeds as check_seeds
    from readbench.benchmark.protocol._task import (
        TASK as TASK,
        Task as Task,
        TaskFile as TaskFile,
        compose_task as compose_task,
        find_copies as find_copies,
        find_same_corpora as find_same_corpora,
        load_task as load_task,
        read_facts as read_facts,
        read_task_file as read_task_file,
        write_facts as write_facts,
    )

open_room(__name__)
