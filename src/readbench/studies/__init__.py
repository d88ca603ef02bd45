"""Studies: what is measured over benchmark and library beside a run, each a grid with a metric and a figure."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.studies._study import (
        AXES as AXES,
        STUDIES as STUDIES,
        EndedCell as EndedCell,
        Failure as Failure,
        Grid as Grid,
        Measured as Measured,
        Row as Row,
        Study as Study,
        StudyCell as StudyCell,
        StudyResult as StudyResult,
        measure_cells as measure_cells,
        run_study as run_study,
        write_study as write_study,
    )

open_room(__name__)
