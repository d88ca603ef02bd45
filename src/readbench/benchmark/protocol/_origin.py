"""Where the values of a dataset come from: measured, simulated by others, or simulated by this project."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol as Interface, runtime_checkable

from readbench.benchmark.protocol._build import find_source
from readbench.common.files import data_root
from readbench.errors import ReadbenchError

DataOrigin = Literal["real", "simulated", "simulated by us"]
"""Measured; simulated by others, whose files are read; or simulated by this project, when values are needed or as a
copy in place of the official files (a substitute). What users bring counts as real, unless it was exported from what is
simulated."""


@runtime_checkable
class Substitutable(Interface):
    """A source whose files may be a substitute for the official ones."""

    def substituted(self, root: Path | None) -> bool:
        """Whether the files that are read under `root` were simulated by this project."""
        ...


def find_origin(dataset: str, root: Path | None = None) -> DataOrigin:
    """Where the values of a dataset come from.

    Args:
        dataset: a text of the grammar.
        root: data root, `READBENCH_DATA` by default; where files are missing, they count as the official ones.

    >>> find_origin("sim_tanks"), find_origin("nppad"), find_origin("skab")
    ('simulated by us', 'simulated', 'real')
    """
    source = find_source(dataset)
    try:
        substitute = isinstance(source, Substitutable) and source.substituted(data_root(root))
    except ReadbenchError:  # missing or damaged files, which are told where they are read
        substitute = False
    return tell_origin(simulated=source.info.simulated, ours=source.info.generated or substitute)


def tell_origin(*, simulated: bool, ours: bool) -> DataOrigin:
    """Which of the three it is."""
    if not simulated:
        return "real"
    return "simulated by us" if ours else "simulated"
