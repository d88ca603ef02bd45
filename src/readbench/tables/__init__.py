"""Readers of users' tables and windows: CSV, Parquet and NPZ, from a file or from bytes, within limits, no pickle.

```
read_table(file) -> Table                 named columns
series_of(table, Roles(...)) -> [Series]  rows of one case together; wide, or long with a row per reading
read_windows(file) -> WindowSet           windows that are already cut
window_set(series) -> WindowSet           one window per series
```
"""

from readbench.tables.limits import Given, Limits
from readbench.tables.packed import read_windows, write_windows
from readbench.tables.read import read_table
from readbench.tables.series import Roles, Series, TimeUnit, series_of, window_set
from readbench.tables.table import Table

__all__ = [
    "Given",
    "Limits",
    "Roles",
    "Series",
    "Table",
    "TimeUnit",
    "read_table",
    "read_windows",
    "series_of",
    "window_set",
    "write_windows",
]
