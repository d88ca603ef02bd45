"""All tables that a run has methods for."""

from __future__ import annotations

import re

from readbench.report.tables.catalogue import GRIDS, full_grid
from readbench.report.tables.datasets import composition_table
from readbench.report.tables.grid import Study, grid_tables
from readbench.report.tables.table import Table


def paper_tables(study: Study) -> list[Table]:
    """The tables of the catalogue, each followed by the paper's values where it has some, and the composition."""
    return [table for grid in GRIDS for table in grid_tables(grid, study)] + [composition_table(study.results)]


def method_tables(study: Study) -> list[Table]:
    """Every metric on each dataset at each level, one table a method, numbered in plan order."""
    tables = []
    for number, method in enumerate(study.results.methods, start=1):
        name = f"{number:02d}-{re.sub(r'[^a-z0-9.+-]+', '_', method).strip('_')}"
        tables += grid_tables(full_grid(name, study.results.title(method), method), study)
    return tables
