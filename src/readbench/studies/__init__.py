"""Studies: what is measured over benchmark and library beside a run, each a grid with a metric and a figure."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.studies._study import (
        AXES,
        STUDIES,
        EndedCell,
        Failure,
        Grid,
        Measured,
        Row,
        Study,
        StudyCell,
        StudyResult,
        measure_cells,
        run_study,
        write_study,
    )

__all__ = [
    "AXES",
    "STUDIES",
    "EndedCell",
    "Failure",
    "Grid",
    "Measured",
    "Row",
    "Study",
    "StudyCell",
    "StudyResult",
    "measure_cells",
    "run_study",
    "write_study",
]

__getattr__ = open_room(__name__)
