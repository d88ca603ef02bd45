"""All tables that a run has methods for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from readbench.report.tables.calibration import calibration_table
from readbench.report.tables.catalogue import GRIDS, full_grid
from readbench.report.tables.datasets import composition_table
from readbench.report.tables.grid import Study, grid_tables
from readbench.report.tables.table import Table


def paper_tables(study: Study) -> list[Table]:
    """The tables of the catalogue, each followed by the paper's values where it has some, and the composition."""
    calibration = calibration_table(study.results)
    tables = [table for grid in GRIDS for table in grid_tables(grid, study)]
    return [*tables, *([calibration] if calibration else []), composition_table(study.results)]


def absent_tables(tables: Iterable[Table]) -> dict[str, str]:
    """Tables of the catalogue that a run has nothing for, and what would fill each."""
    present = {table.name for table in tables}
    wanted = {grid.name: grid.filled_by for grid in GRIDS} | {"calibration": "`readbench run --suite flagship`"}
    return {name: filled_by for name, filled_by in wanted.items() if name not in present}


def method_tables(study: Study) -> list[Table]:
    """Every metric on each dataset at each level, one table a method, numbered in plan order."""
    tables = []
    for number, method in enumerate(study.results.methods, start=1):
        name = f"{number:02d}-{re.sub(r'[^a-z0-9.+-]+', '_', method).strip('_')}"
        tables += grid_tables(full_grid(name, study.results.title(method), method), study)
    return tables
