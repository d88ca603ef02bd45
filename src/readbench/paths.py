"""Where things are: the data root, the cache, and what a user imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_root(given: Path | None = None) -> Path | None:
    """The folder with one sub-folder per source: the argument, else `READBENCH_DATA`, else nothing."""
    if given is not None:
        return given
    variable = os.environ.get("READBENCH_DATA")
    return Path(variable) if variable else None


def cache_root() -> Path:
    """The folder for everything that can be computed again: `READBENCH_CACHE`, else the platform's user cache."""
    if variable := os.environ.get("READBENCH_CACHE"):
        return Path(variable)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = _local_data()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "readbench"


def imported_root() -> Path:
    """The folder of imported datasets: `READBENCH_IMPORTED`, else in the platform's folder of user data.

    Unlike the cache it holds what cannot be computed again.
    """
    if variable := os.environ.get("READBENCH_IMPORTED"):
        return Path(variable)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = _local_data()
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "readbench" / "imported"


def _local_data() -> Path:
    """Where Windows keeps data of a user that stay on the machine."""
    return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
